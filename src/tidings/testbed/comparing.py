"""A system on real servers beside its prediction, from parameters measured in a separate run.

1. *Calibration*: the system at a low load, on the servers; its traces give service times and link
   delays as they are on this machine, with whatever servers, relays and timers cost.
2. *Prediction*: those brokers and links under the rates of the system itself.
3. *Reality*: the system at its own load, several times. Nothing of it goes into the prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tidings.characterisation.job import characterise
from tidings.errors import EngineError, UnstableError
from tidings.model.outcome import Outcome
from tidings.model.system import System
from tidings.model.trace_files import write_trace_folder
from tidings.prediction.predicting import predict
from tidings.simulation.run import simulate
from tidings.testbed.running import run_testbed
from tidings.testbed.runs import Run, TestbedOptions
from tidings.testbed.tables import doubts, lateness, manifest, trace_tables
from tidings.traces.reading import read_traces
from tidings.validation.comparison import Comparison, compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str], None]

CALIBRATION_LOAD = 0.15  # of the busiest broker
_SEEDS_APART = 1_000  # repetitions and the calibration share no random numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """One run at the system's own load, and how far the prediction was off."""

    measured: Outcome
    against_predicted: Comparison
    against_simulated: Comparison
    lateness_s: float  # of relays, 99th percentile
    doubts: tuple[str, ...]

    @property
    def latency_error(self) -> float:
        """Mean over subscribers of |predicted − measured| mean delay, as a share of the latter."""
        table = self.against_predicted.subscribers
        off = (table["delay_mean_s_difference"] / table["delay_mean_s_b"]).abs()
        return float(off.mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class Reality:
    """A system's prediction from a calibration, beside what was measured."""

    fitted: System
    load: float  # of the busiest broker, predicted
    predicted: Outcome
    simulated: Outcome
    repetitions: tuple[Repetition, ...]
    notes: tuple[str, ...]


def confront(
    system: System,
    spark: SparkSession,
    folder: Path,
    options: TestbedOptions,
    *,
    repetitions: int = 3,
    progress: Progress = lambda _: None,
) -> Reality:
    """Calibrate, predict and measure; all traces are left in ``folder``."""
    calm = scaled_rates(system, CALIBRATION_LOAD / _busiest(predict(system, delays=False)))
    progress("calibrating at low load")
    seed = options.seed + _SEEDS_APART
    _recorded(calm, replace(options, seed=seed), folder / "calibration", progress)
    found = characterise(read_traces(spark, folder / "calibration"), progress=progress)
    fitted = with_workload_of(system, found.system)
    progress("predicting and simulating what was calibrated")
    predicted = predict(fitted)
    simulated = simulate(fitted, seed=options.seed)
    done = []
    for number in range(1, repetitions + 1):
        place = folder / f"run-{number}"
        chosen = replace(options, seed=options.seed + number)
        run = _recorded(system, chosen, place, _within(progress, f"reality {number}"))
        measured = characterise(read_traces(spark, place)).measured
        done.append(_repetition(run, measured, predicted, simulated))
    return Reality(
        fitted=fitted,
        load=_busiest(predicted),
        predicted=predicted,
        simulated=simulated,
        repetitions=tuple(done),
        notes=found.notes,
    )


def _within(progress: Progress, what: str) -> Progress:
    """Tells each step as one of something larger."""
    return lambda step: progress(f"{what}, {step}")


def scaled_rates(system: System, factor: float) -> System:
    """The system with every publisher so many times as fast, its intervals of the same shape."""
    return replace(
        system,
        publishers=tuple(
            replace(each, every=None if each.every is None else each.every.scaled(1.0 / factor))
            for each in system.publishers
        ),
    )


def with_workload_of(system: System, fitted: System) -> System:
    """Fitted brokers and links under the publishers' rates and contents that a system states."""
    links = {each.name: each.link for each in fitted.publishers}
    known = {
        path: error
        for path, error in fitted.standard_errors
        if not path.startswith("publishers.") or ".link." in path
    }
    return replace(
        fitted,
        publishers=tuple(
            replace(each, link=links.get(each.name, each.link)) for each in system.publishers
        ),
        lifetime=system.lifetime,
        standard_errors=tuple(known.items()),
    )


def _busiest(outcome: Outcome) -> float:
    load = float(outcome.brokers["utilisation"].max())
    if not 0.0 < load < 1.0:
        raise UnstableError(
            f"the busiest broker has a load of {load:.3g}; reality is compared below 1 and above 0"
        )
    return load


def _recorded(system: System, options: TestbedOptions, place: Path, progress: Progress) -> Run:
    run = run_testbed(system, options, progress=progress)
    write_trace_folder(trace_tables(run), manifest(run), place)
    if run.incomplete is not None:
        raise EngineError(f"the run ended early, its traces are in {place}: {run.incomplete}")
    return run


def _repetition(run: Run, measured: Outcome, predicted: Outcome, simulated: Outcome) -> Repetition:
    return Repetition(
        measured=measured,
        against_predicted=compare(predicted, measured),
        against_simulated=compare(simulated, measured),
        lateness_s=lateness(run)["relay_p99_s"],
        doubts=tuple(doubts(run)),
    )
