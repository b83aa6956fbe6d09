"""``tidings testbed compare``: predicted from a calibration run, then measured."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidings.cli import console, options, spark
from tidings.model.writing import check_new_folder

if TYPE_CHECKING:
    from tidings.testbed.reality import Reality, Repetition

DISAGREE = 1
REALITY = "reality.html"
_VERDICTS = ("agrees", "does not", "not reliable")


def compare(
    system: options.SystemFile,
    to: Annotated[
        Path, typer.Option(metavar="FOLDER", help="New folder for traces, results and the report.")
    ],
    duration: Annotated[
        str, typer.Option(metavar="TIME", help="How long each run publishes and records.")
    ] = "30s",
    repetitions: Annotated[
        int, typer.Option(metavar="N", min=1, help="Number of measured runs.")
    ] = 3,
    compress: Annotated[
        float,
        typer.Option(
            metavar="N",
            help="Make times between failures and repair times this many times shorter.",
        ),
    ] = 1.0,
    broker: options.Broker = "nats",
    seed: options.Seed = 1,
    master: options.Master = None,
    memory: options.Memory = None,
    json: options.Json = False,
) -> int:
    """Predict a system from a calibration run on real brokers, then measure it at its own load.

    Parameters are fitted on Spark to a run at low load, never to the runs that are predicted.
    Exit code 1 if, over all runs, on-time shares differ by more than 0.02 or mean delays by more
    than 5 % (with failures, mobile peers or churn: either by more than three standard errors),
    or if this machine was too busy for any run to be reliable.

    Example: tidings testbed compare city.yaml --to city-for-real
    """
    from tidings.model import reading
    from tidings.reporting import terminal

    # The client library comes with an extra; help must not depend on it.
    from tidings.testbed.calibrating import Bench, calibrate
    from tidings.testbed.comparing import confront
    from tidings.testbed.outages import compressed
    from tidings.testbed.reality_study import first_text, rejoining
    from tidings.testbed.running import check_size
    from tidings.testbed.runs import TestbedOptions

    chosen = TestbedOptions(
        duration_s=options.seconds(duration), seed=seed, compression=compress, broker=broker
    )
    check_new_folder(to)
    loaded_system = reading.load(system)
    check_size(compressed(loaded_system, compress), chosen)
    with console.progress("testbed") as step:
        step("starting Spark")
        with spark.started(master, memory=memory, small=True) as session:
            # Written in place: what a run that breaks has recorded must stay.
            bench = Bench(spark=session, options=chosen, repetitions=repetitions, progress=step)
            known = calibrate(bench, loaded_system, to / "calibration")
            result = confront(bench, loaded_system, known, to)
            _write(result, loaded_system.description or system.stem, to)
    if json:
        console.show_json(_document(result, to))
    else:
        _, first = result.first
        beside = [each for each in (result.simulated, result.predicted) if each is not None]
        console.show(terminal.side_by_side([first, *beside], limit=12))
        console.show(f"{first_text(result)}\n")
        for number, each in enumerate(result.repetitions, 1):
            console.show_checked(each.agrees, _VERDICTS, f"run {number}: {_repetition_text(each)}")
        console.show_checked(result.agrees, _VERDICTS, _together(result))
        for note in rejoining(result):
            console.note(note)
        console.show(f"\nMeasured against predicted: {to / REALITY} (open it in a browser)")
        console.show(f"Report of late and lost events: {to / 'report.html'}")
    console.warn((*result.notes, *result.all_doubts))
    return 0 if result.agrees else DISAGREE


def _together(result: Reality) -> str:
    from tidings.testbed.reality_study import (
        errors_text,
        means_text,
        nothing_believed,
        runs_together,
    )

    if nothing_believed(result):
        return "the calibration, or every run, is not reliable on this machine now"  # why: below
    return f"{runs_together(result)}: {means_text(result)}; {errors_text(result)}"


def _repetition_text(one: Repetition) -> str:
    from tidings.testbed.reality_study import how_far_off, late_text

    played = one.against_simulated
    simulated = "" if played is None else f"; simulated {played.summary.mean_absolute:.4f}"
    again = "".join(
        f"; '{name}' handles {measured:.3f} of its events again, predicted {predicted:.3f}"
        for name, (predicted, measured) in one.handled_again.items()
        if max(predicted, measured) > 0.0
    )
    return f"predicted {how_far_off(one)}{simulated}; {late_text(one)}{again}"


def _document(result: Reality, folder: Path) -> dict[str, object]:
    return {
        "folder": str(folder),
        "busiest_broker": result.load,
        "agrees": result.agrees,
        "on_time_error": result.share_error,
        "on_time_error_largest": result.largest_share_error,
        "on_time_error_in_standard_errors": result.most_share_errors,
        "mean_delay_error": result.latency_error,
        "mean_delay_error_largest": result.largest_latency_error,
        "mean_delay_error_in_standard_errors": result.most_delay_errors,
        "beyond_chance": result.beyond_chance,
        "runs_believed": len(result.trusted),
        "run_in_measured_json": result.first[0],
        "doubts": list(result.doubts),
        "joining_again": result.reconnection and asdict(result.reconnection),
        "runs": [
            {
                "agrees": each.agrees,
                "on_time_error": each.against_predicted.summary.mean_absolute,
                "on_time_error_largest": each.against_predicted.summary.maximum,
                "on_time_error_simulated": each.against_simulated
                and each.against_simulated.summary.mean_absolute,
                "on_time_error_in_standard_errors": each.most_share_errors,
                "on_time_error_by_chance": each.share_by_chance,
                "mean_delay_error": each.latency_error,
                "mean_delay_error_by_chance": each.latency_by_chance,
                "mean_delay_error_in_standard_errors": each.most_delay_errors,
                "relays_lateness_p99_s": each.relays_late_s,
                "publishers_lateness_p99_s": each.publishers_late_s,
                "handled_again": {
                    name: {"predicted": predicted, "measured": measured}
                    for name, (predicted, measured) in each.handled_again.items()
                },
                "doubts": list(each.doubts),
            }
            for each in result.repetitions
        ],
    }


def _write(result: Reality, title: str, place: Path) -> None:
    from tidings.model import reading
    from tidings.model.outcome_files import save_outcome
    from tidings.reporting.page import Report, write_page
    from tidings.reporting.study_page import write_study
    from tidings.testbed.reality_study import first_text, reality_study, rejoining

    reading.save(result.fitted, place / "fitted.yaml")
    _, measured = result.first
    known = (result.predicted, result.simulated, measured)
    outcomes = {each.source: each for each in known if each is not None}
    for source, outcome in outcomes.items():
        save_outcome(outcome, place / f"{source}.json")
    notes = [first_text(result), *rejoining(result)]
    notes += [f"run {n}: {_repetition_text(each)}" for n, each in enumerate(result.repetitions, 1)]
    notes += [f"not reliable: {doubt}" for doubt in result.all_doubts]
    page = Report(title=title, system=result.fitted, outcomes=outcomes, notes=notes)
    write_page(page, place / "report.html")
    write_study(reality_study(result, f"{title}: measured against predicted"), place / REALITY)
