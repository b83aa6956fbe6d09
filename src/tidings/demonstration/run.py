"""The main job: play a system as reality, learn it from its traces, predict, simulate, compare."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.job import characterise
from tidings.errors import InvalidInputError
from tidings.model import json_text, reading
from tidings.model.json_text import plain
from tidings.model.outcome import SOURCES, Outcome
from tidings.model.outcome_files import save_outcome
from tidings.model.parameter_values import parameter_values
from tidings.model.plain_files import read_text
from tidings.model.progress import Progress, within
from tidings.model.system import System
from tidings.model.writing import check_new_folder, new_folder
from tidings.planning.budget import Budget, advise
from tidings.prediction.predict import predict
from tidings.reporting.page import Report, write_page
from tidings.simulation.recording import Recording, record, write_traces
from tidings.simulation.run import simulate
from tidings.traces.reading import read_traces
from tidings.validation.comparison import Check, compare, verdict
from tidings.validation.parameters import check_parameters

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession


MARKER, MARK, FORMAT_VERSION = "demo.json", "tidings_demo", 1
# All that a folder of ours may hold, if it is to be replaced.
NAMES = frozenset(
    {MARKER, "traces", "system.yaml", "fitted.yaml", "report.html"}
    | {f"{source}.json" for source in SOURCES}
)
MAX_MAE = 0.02
MIN_WITHIN_2SE = 0.9
MAX_Z = 5.0
REPLICATIONS = 12
PROBES_PER_S = 10.0  # of every link


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """What the main job found, and whether measured, predicted and simulated agree."""

    folder: Path
    fitted: Characterisation
    parameters: pd.DataFrame
    measured: Outcome
    predicted: Outcome
    simulated: Outcome
    budget: Budget  # why events are late in the fitted system, and what helps most
    checks: tuple[Check, ...]

    @property
    def page(self) -> Path:
        """The report."""
        return self.folder / "report.html"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the reader of the results must know, each once."""
        every = (*self.fitted.notes, *self.predicted.warnings, *self.simulated.warnings)
        return tuple(dict.fromkeys(every))

    def to_document(self) -> dict[str, Any]:
        """Give the findings as plain data for JSON."""
        outcomes = (self.measured, self.predicted, self.simulated)
        document = {
            "folder": str(self.folder),
            "page": str(self.page),
            "on_time": {outcome.source: outcome.on_time for outcome in outcomes},
            "checks": [asdict(check) for check in self.checks],
            "warnings": list(self.warnings),
        }
        return dict(plain(document))


def demonstrate(
    system: System,
    spark: SparkSession,
    *,
    folder: str | os.PathLike[str],
    minutes: float = 30.0,
    seed: int = 1,
    progress: Progress = lambda _: None,
) -> Demonstration:
    """Run the main job and leave traces, systems, outcomes and the page in ``folder``.

    The folder appears whole or not at all; an earlier one of ours is replaced.
    """
    folder = Path(folder)
    check_place(folder)
    with new_folder(folder, replace=True) as place:
        progress(f"playing {minutes:g} minutes of traffic as the real system")
        write_traces(_play(system, seed, minutes, progress), place / "traces")
        characterisation = characterise(read_traces(spark, place / "traces"), progress=progress)
        progress("predicting the fitted system")
        predicted = predict(characterisation.system)
        budget = advise(characterisation.system, predicted, within(progress, "what helps most"))
        progress("simulating the fitted system")
        simulated = simulate(
            characterisation.system,
            seed=seed + 1,
            replications=REPLICATIONS,
            duration_s=60.0 * minutes,
            progress=progress,
        )
        parameters = with_truth(characterisation.parameters, system, characterisation.system)
        result = Demonstration(
            folder=folder,
            fitted=characterisation,
            parameters=parameters,
            measured=characterisation.measured,
            predicted=predicted,
            simulated=simulated,
            budget=budget,
            checks=_checks(characterisation.measured, predicted, simulated, parameters),
        )
        progress("writing the page")
        _write(result, system, place)
        check_place(folder)  # it may have changed meanwhile
    return result


def check_place(folder: Path) -> None:
    """Refuse a folder that cannot be written, or is there and not wholly ours to replace."""
    check_new_folder(folder, replace=True)
    if folder.exists() and not _is_ours(folder):
        raise InvalidInputError(
            f"{folder} exists and was not made by tidings demo; choose another folder with --to"
        )


def _is_ours(folder: Path) -> bool:
    try:
        marker = json_text.parse(read_text(folder / MARKER))
        names = {path.name for path in folder.iterdir()}
    except (OSError, ValueError):
        return False
    return isinstance(marker, dict) and marker.get(MARK) == FORMAT_VERSION and names <= NAMES


def _play(system: System, seed: int, minutes: float, progress: Progress) -> Recording:
    return record(
        system,
        seed=seed,
        duration_s=60.0 * minutes,
        probes_per_s=PROBES_PER_S,
        progress=lambda step: progress(f"reality, {step}"),
    )


def _checks(
    measured: Outcome, predicted: Outcome, simulated: Outcome, parameters: pd.DataFrame
) -> tuple[Check, ...]:
    theory = verdict(compare(predicted, measured), max_mae=MAX_MAE)
    runs = verdict(compare(simulated, measured), max_mae=None, min_within_2se=MIN_WITHIN_2SE)
    named = [("predicted and measured", theory, "mean_absolute")]
    named.append(("simulated and measured", runs, "within_2se"))
    return (
        *(
            Check(**{**asdict(check), "text": f"{between}: {check.text}"})
            for between, judged, name in named
            for check in judged.checks
            if check.name == name
        ),
        check_parameters(parameters, max_z=MAX_Z),
    )


def _write(result: Demonstration, truth: System, place: Path) -> None:
    reading.save(truth, place / "system.yaml")
    reading.save(result.fitted.system, place / "fitted.yaml")
    outcomes = {each.source: each for each in (result.predicted, result.simulated, result.measured)}
    for source, outcome in outcomes.items():
        save_outcome(outcome, place / f"{source}.json")
    write_page(
        Report(
            title=truth.description or "Demonstration",
            system=result.fitted.system,
            outcomes=outcomes,
            parameters=result.parameters,
            notes=[check.text for check in result.checks],
            sections=result.fitted.sections,
            budget=result.budget,
        ),
        place / "report.html",
    )
    marker = {MARK: FORMAT_VERSION, **result.to_document()}
    (place / MARKER).write_text(json.dumps(marker, indent=1), encoding="utf-8")


def with_truth(parameters: pd.DataFrame, truth: System, fitted: System) -> pd.DataFrame:
    """Add a column ``truth`` to the table of parameters, empty where the true system has none."""
    known = dict(_true_values(truth, fitted))
    return parameters.assign(truth=parameters["path"].map(known))


def _true_values(truth: System, fitted: System) -> Iterator[tuple[str, float]]:
    yield from parameter_values(truth)
    yield from _of_contents(truth, fitted)


def _of_contents(truth: System, fitted: System) -> Iterator[tuple[str, float]]:
    """Yield the true shares of contents, each with its parameter's path.

    Contents are numbered in the order in which they were learnt, so they are looked up by event.
    """
    true_shares = {
        (publisher.name, row.text): row.probability
        for publisher in truth.publishers
        for row in publisher.content.rows()
    }
    for publisher in fitted.publishers:
        for number, row in enumerate(publisher.content.rows(), start=1):
            share = true_shares.get((publisher.name, row.text))
            if share is not None:
                yield f"publishers.{publisher.name}.content.{number}.p", share
