"""A system on real servers beside its prediction, from parameters measured in a separate run.

1. *Calibration*: the system at a low load, on the servers; its traces give service times and link
   delays as they are on this machine. How late relays and timers are, and what servers cost, is in
   the delays of links: a stage of the prediction like any other.
2. *Prediction*: those brokers and links under the rates of the system itself.
3. *Reality*: the system at its own load, several times. Nothing of it goes into the prediction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from tidings.characterisation.job import characterise
from tidings.errors import EngineError, UnstableError, UnsupportedError
from tidings.model.behaviour import Channel
from tidings.model.features import FEATURES
from tidings.model.outcome import Outcome
from tidings.model.system import System
from tidings.model.trace_files import write_trace_folder
from tidings.prediction.predicting import predict
from tidings.simulation.run import simulate
from tidings.testbed.drilling import Reconnection, drill
from tidings.testbed.outages import compressed, failing, without_failures
from tidings.testbed.running import run_testbed
from tidings.testbed.runs import Run, StateChange, TestbedOptions
from tidings.testbed.spreading import event_spread, subscription_spread
from tidings.testbed.tables import doubts, lateness, manifest, trace_tables
from tidings.traces.reading import read_traces
from tidings.validation.comparison import Comparison, compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Progress = Callable[[str], None]

CALIBRATION_LOAD = 0.15  # of the busiest broker
CALIBRATION_LENGTH = 3.0  # beside that of a run
MOST_SHARE, MOST_LATENCY = 0.02, 0.10  # a run agrees that is off by no more, mean over subscribers
MOST_ERRORS = 3.0
_RUNS_ALIKE = 200  # simulated, each as long as a real one, to know how much runs differ by chance
_SAME = 1e-6  # shares that differ by less, or vary by less from run to run, do not differ
_SEEDS_APART = 1_000  # repetitions and the calibration share no random numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """One run at the system's own load, and how far the prediction was off."""

    measured: Outcome
    against_predicted: Comparison
    against_simulated: Comparison | None  # None: the simulator does not handle the system
    on_time_errors: pd.Series  # by subscriber: predicted − measured, in standard errors of a run
    is_steady: bool  # nothing fails or comes and goes: shares and delays themselves must agree
    duration_s: float
    lateness_s: float  # of relays, 99th percentile
    timeline: tuple[StateChange, ...]  # by seconds from the beginning of the window
    doubts: tuple[str, ...]
    subscription_spread: pd.DataFrame | None  # T_sub by broker; None: nothing comes and goes
    event_spread: pd.DataFrame | None  # T_diff by broker

    @property
    def latency_error(self) -> float:
        """Mean over subscribers of |predicted − measured| mean delay, as a share of the latter."""
        return _latency_error(self.against_predicted)

    @property
    def simulated_latency_error(self) -> float:
        """The same of what was simulated; NaN where nothing was."""
        compared = self.against_simulated
        return math.nan if compared is None else _latency_error(compared)

    @property
    def most_errors(self) -> float:
        """The largest difference of on-time shares, in standard errors of a run as long as this."""
        return float(self.on_time_errors.abs().max())

    @property
    def agrees(self) -> bool:
        """Whether the prediction is as near to reality as it should be.

        Where outages make most of the chance in a run, that is within ``MOST_ERRORS`` of the
        standard errors that runs of this length have.
        """
        if not self.is_steady:
            return self.most_errors <= MOST_ERRORS
        share = self.against_predicted.summary.mean_absolute
        return share <= MOST_SHARE and self.latency_error <= MOST_LATENCY


def _latency_error(compared: Comparison) -> float:
    table = compared.subscribers
    return float((table["delay_mean_s_difference"] / table["delay_mean_s_b"]).abs().mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class Reality:
    """A system's prediction from a calibration, beside what was measured."""

    fitted: System
    load: float  # of the busiest broker, predicted
    predicted: Outcome
    simulated: Outcome | None
    reconnection: Reconnection | None  # None: nothing fails
    repetitions: tuple[Repetition, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """Where and how reality is run: traces are read on ``spark``, every run is as ``options`` say.

    A run has the seed of the options and its number.
    """

    spark: SparkSession
    options: TestbedOptions
    repetitions: int = 3
    progress: Progress = lambda _: None

    def within(self, what: str) -> Bench:
        """The same, each step told as one of something larger."""
        return replace(self, progress=lambda step: self.progress(f"{what}: {step}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What a run at low load says of brokers and links."""

    fitted: System
    notes: tuple[str, ...]


def calibrate(bench: Bench, system: System, folder: Path) -> Calibration:
    """Run a system at low load and fit brokers and links to it; the traces are left in ``folder``.

    Nothing fails, comes or goes meanwhile. It publishes ``CALIBRATION_LENGTH`` times as long: at
    low load little happens, and whatever is fitted badly spoils every prediction.
    """
    _refuse_churn(system)
    sound = steady(system)
    calm = scaled_rates(sound, CALIBRATION_LOAD / _busiest(predict(sound, delays=False)))
    bench.progress("calibrating at low load")
    longer = replace(
        bench.options,
        seed=bench.options.seed + _SEEDS_APART,
        duration_s=CALIBRATION_LENGTH * bench.options.duration_s,
    )
    run = _recorded(calm, longer, folder, bench.progress)
    found = characterise(read_traces(bench.spark, folder), progress=bench.progress)
    doubtful = tuple(f"calibration: {doubt}" for doubt in doubts(run))
    return Calibration(fitted=found.system, notes=(*found.notes, *doubtful))


def confront(bench: Bench, system: System, calibration: Calibration, folder: Path) -> Reality:
    """Predict a system from what was calibrated and measure it; traces are left in ``folder``."""
    fitted = with_measured(compressed(system, bench.options.compression), calibration.fitted)
    rejoined = None
    if failing(system):
        bench.progress("taking down what fails, to see how long it takes to join again")
        rejoined = drill(system, bench.options, bench.within("drill").progress)
        fitted = rejoined.added_to(fitted)
    bench.progress("predicting and simulating what was calibrated")
    # Errors of parameters by hundreds of further predictions would take longer than reality.
    predicted = predict(fitted, pairs=True, error_bars=False)
    simulated = _simulated(fitted, bench.options)
    done = []
    for number in range(1, bench.repetitions + 1):
        place = folder / f"run-{number}"
        chosen = replace(bench.options, seed=bench.options.seed + number)
        tell = bench.within(f"reality {number}").progress
        run = _recorded(system, chosen, place, tell)
        measured = characterise(read_traces(bench.spark, place), progress=tell).measured
        done.append(_repetition(run, measured, predicted, simulated, fitted))
    return Reality(
        fitted=fitted,
        load=_busiest(predicted),
        predicted=predicted,
        simulated=simulated,
        reconnection=rejoined,
        repetitions=tuple(done),
        notes=calibration.notes,
    )


def _refuse_churn(system: System) -> None:
    """Measured shares are of all events that match, also while nobody was subscribed."""
    for place in FEATURES["subscription churn"](system):
        raise UnsupportedError(
            f"{place}: what is measured in traces does not leave out events published between two "
            "subscriptions, so it cannot be set beside a prediction that does; 'tidings testbed "
            "run' records such a system, with when each broker learnt of a subscription"
        )


def _simulated(fitted: System, options: TestbedOptions) -> Outcome | None:
    """Many runs as long as the real ones; None where the simulator does not handle the system."""
    try:
        return simulate(
            fitted, seed=options.seed, replications=_RUNS_ALIKE, duration_s=options.duration_s
        )
    except UnsupportedError:
        return None


def steady(system: System) -> System:
    """The system with everybody there and subscribed all the time, and nothing that fails."""
    return replace(
        without_failures(system),
        publishers=tuple(replace(each, connectivity=None) for each in system.publishers),
        subscribers=tuple(
            replace(each, connectivity=None, stays=None, away=None) for each in system.subscribers
        ),
    )


def scaled_rates(system: System, factor: float) -> System:
    """The system with every publisher so many times as fast, its intervals of the same shape."""
    return replace(
        system,
        publishers=tuple(
            replace(each, every=None if each.every is None else each.every.scaled(1.0 / factor))
            for each in system.publishers
        ),
    )


def with_measured(system: System, fitted: System) -> System:
    """A system with the services, delays and losses that were fitted; all else is as it states."""
    services = {each.name: each.service for each in fitted.brokers}
    channels = {each.name: each.link for each in fitted.publishers}
    channels |= {each.name: each.link for each in fitted.subscribers}
    arcs = {each.between: each.there for each in fitted.links}
    arcs |= {each.between[::-1]: each.back for each in fitted.links}
    known = [
        (path, error)
        for path, error in fitted.standard_errors
        if not path.startswith("publishers.") or ".link." in path
    ]

    def crossed(stated: Channel, found: Channel | None) -> Channel:
        if found is None:
            return stated
        return replace(stated, delay=found.delay, reliability=found.reliability)

    return replace(
        system,
        brokers=tuple(
            replace(each, service=services.get(each.name, each.service)) for each in system.brokers
        ),
        links=tuple(
            replace(
                each,
                there=crossed(each.there, arcs.get(each.between)),
                back=crossed(each.back, arcs.get(each.between[::-1])),
            )
            for each in system.links
        ),
        publishers=tuple(
            replace(each, link=crossed(each.link, channels.get(each.name)))
            for each in system.publishers
        ),
        subscribers=tuple(
            replace(each, link=crossed(each.link, channels.get(each.name)))
            for each in system.subscribers
        ),
        standard_errors=tuple(known),
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


def _repetition(
    run: Run, measured: Outcome, predicted: Outcome, simulated: Outcome | None, fitted: System
) -> Repetition:
    compared = compare(predicted, measured)
    begin_s = run.start_s + run.options.warmup_s
    return Repetition(
        measured=measured,
        against_predicted=compared,
        against_simulated=None if simulated is None else compare(simulated, measured),
        on_time_errors=_in_standard_errors(compared, measured, simulated),
        is_steady=run.system == steady(run.system),
        duration_s=run.options.duration_s,
        lateness_s=lateness(run)["relay_p99_s"],
        timeline=tuple(replace(each, at_s=each.at_s - begin_s) for each in run.states),
        doubts=tuple(doubts(run)),
        subscription_spread=subscription_spread(run, fitted) if run.stays else None,
        event_spread=event_spread(run, steady(fitted)) if run.stays else None,
    )


def _in_standard_errors(
    compared: Comparison, measured: Outcome, simulated: Outcome | None
) -> pd.Series:
    """Predicted − measured on-time shares in what runs of this length differ by, by chance.

    Known from simulated runs; without any from the measured one itself, event by event.
    """
    if simulated is None:
        of_run = measured.subscribers.set_index("subscriber")["on_time_se"]
    else:
        of_mean = simulated.subscribers.set_index("subscriber")["on_time_se"]
        of_run = of_mean * math.sqrt(_RUNS_ALIKE)
    off = compared.subscribers.set_index("subscriber")["on_time_difference"]
    return off.where(off.abs() > _SAME, 0.0) / of_run.clip(lower=_SAME)
