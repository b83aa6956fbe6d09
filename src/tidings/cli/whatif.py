"""``tidings whatif``: the system before and after changes, side by side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidings.cli import console, options
from tidings.errors import InvalidInputError
from tidings.model.writing import check_new_folder
from tidings.prediction.choices import SECONDS, WITHIN

if TYPE_CHECKING:
    from tidings.model.system import System
    from tidings.planning.scenarios import Difference, Scenario
    from tidings.prediction.predict import PredictOptions


ON_SPARK_FROM = 50  # scenarios; starting Spark takes as long as some predictions
Step = Callable[[str], None]


def whatif(
    system: options.SystemFile,
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CHANGES",
            help="Changes made together, each in quotes: 'rate all x2', 'speed hub x0.5', "
            "'remove a--b', 'scheme bypass', 'add 100 like alice at east' … "
            "(docs/reference/changes.md).",
        ),
    ] = None,
    scenarios: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="YAML or JSON file of many scenarios: a list of changes under each name.",
        ),
    ] = None,
    simulated: Annotated[
        bool, typer.Option("--simulate", help="Also simulate the system before and after.")
    ] = False,
    within: options.Within = str(WITHIN),
    by: options.By = None,
    seconds: options.Seconds = SECONDS,
    seed: options.Seed = 1,
    to: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write a row for every scenario, with all its subscribers, to this new "
            "folder (Parquet).",
        ),
    ] = None,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
    limit: options.Limit = 10,
) -> None:
    """Predict a system before and after changes; many scenarios at once on Spark.

    One scenario is predicted to --within; many are predicted by theory alone, with its errors.

    Example: tidings whatif city.yaml 'rate all x2' 'speed hub x2'
    """
    from tidings.model import reading

    if bool(changes) == (scenarios is not None):
        raise typer.BadParameter("give either CHANGES or a file of --scenarios")
    if scenarios is not None and simulated:
        raise typer.BadParameter(
            "--simulate works for one scenario only; give CHANGES instead of --scenarios"
        )
    if changes and (to is not None or master is not None):
        raise typer.BadParameter("--to and --master work with --scenarios only")
    if to is not None:
        check_new_folder(to)
    loaded_system = reading.load(system)
    # Slow to import: a mistake in the file is reported before.
    from tidings.planning.scenarios import read_scenarios
    from tidings.prediction.predict import PredictOptions
    from tidings.reporting.what_ifs import scenario_table

    asked_of = PredictOptions(
        within=within, by=by, seconds=seconds, seed=seed, delays=False, error_bars=False
    )
    if scenarios is None:
        with console.progress("what if") as step:
            differences = _one(loaded_system, tuple(changes or ()), asked_of, simulated, step)
        _show(differences, json=json, limit=limit)
        return
    asked = read_scenarios(scenarios)
    if master is None and to is None and len(asked) < ON_SPARK_FROM:
        rows = _one_by_one(loaded_system, asked)
    else:
        rows = _on_spark(loaded_system, asked, to, (master, memory))
    order = {each.name: number for number, each in enumerate(asked)}
    rows = sorted(rows, key=lambda row: order[row["scenario"]])
    if json:
        console.show_json({"scenarios": rows})
    else:
        known = [row for row in rows if not row["error"]]
        console.show(scenario_table(known, limit))
        console.warn(tuple(f"{row['scenario']}: {row['error']}" for row in rows if row["error"]))
    if all(row["error"] for row in rows):
        raise InvalidInputError(f"none of the scenarios could be predicted: {rows[0]['error']}")


def _one(
    system: System,
    changes: tuple[str, ...],
    asked: PredictOptions,
    simulated: bool,
    step: Step,
) -> list[Difference]:
    from tidings.planning.scenarios import Scenario, difference
    from tidings.prediction.predict import predict

    scenario = Scenario(name=", ".join(changes), changes=changes)
    differences = [difference(system, scenario, lambda each: predict(each, asked, progress=step))]
    if simulated:
        differences.append(_played(system, scenario, asked.seed, step))
    return differences


def _show(differences: list[Difference], *, json: bool, limit: int) -> None:
    from tidings.reporting.what_ifs import causes_table, difference_table

    documents = [each.to_document() for each in differences]
    if json:
        sources = {each["source"]: each for each in documents}
        console.show_json(sources)
        return
    console.show(difference_table(documents[0], limit), causes_table(documents[0]))
    for document in documents[1:]:
        console.show(difference_table(document, limit))
    console.warn(differences[0].after.warnings)


def _played(system: System, scenario: Scenario, seed: int, step: Step) -> Difference:
    from tidings.planning.scenarios import difference
    from tidings.simulation.run import simulate

    return difference(system, scenario, lambda each: simulate(each, seed=seed, progress=step))


def _one_by_one(system: System, scenarios: tuple[Scenario, ...]) -> list[dict[str, Any]]:
    from tidings.planning.evidence import foretell
    from tidings.planning.scenarios import assess

    rows = []
    with console.progress("what if") as step:
        step("as it is")
        before = foretell(system)
        for number, each in enumerate(scenarios, start=1):
            step(f"{each.name}, {number} of {len(scenarios)}")
            rows.append(assess(system, each, before))
    return [{key: row[key] for key in row if key != "subscribers"} for row in rows]


def _on_spark(
    system: System,
    scenarios: tuple[Scenario, ...],
    to: Path | None,
    where: tuple[str | None, str | None],
) -> list[dict[str, Any]]:
    from tidings.cli import spark
    from tidings.sweeps.what_if import assess_all, summaries

    with console.progress("what if") as step:
        step("starting Spark")
        with spark.started(where[0], memory=where[1]) as session:
            step(f"{len(scenarios)} scenarios")
            return summaries(assess_all(session, system, scenarios), to)
