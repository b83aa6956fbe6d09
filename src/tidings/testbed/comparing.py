"""A system on real servers beside its prediction, from parameters measured in a separate run.

1. *Calibration*: the system at a low load, on the servers; its traces give service times and link
   delays as they are on this machine. How late relays and timers are, and what servers cost, is in
   the delays of links: a stage of the prediction like any other.
2. *Prediction*: those brokers and links under the rates of the system itself.
3. *Reality*: the system at its own load, several times. Nothing of it goes into the prediction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from tidings.characterisation.job import characterise
from tidings.errors import UnsupportedError
from tidings.model.outcome import Outcome
from tidings.model.system import System
from tidings.prediction.predicting import predict
from tidings.simulation.run import simulate
from tidings.testbed.calibrating import (
    Bench,
    Calibration,
    busiest_load,
    recorded,
    steady,
    with_measured,
)
from tidings.testbed.drilling import Reconnection, drill
from tidings.testbed.forwarding import forwarding
from tidings.testbed.outages import compressed, failing
from tidings.testbed.runs import Run, StateChange, TestbedOptions
from tidings.testbed.spreading import event_spread, subscription_spread
from tidings.testbed.tables import doubts, lateness
from tidings.traces.reading import read_traces
from tidings.validation.comparison import Comparison, compare

MOST_SHARE, MOST_LATENCY = 0.02, 0.10  # a run agrees that is off by no more, mean over subscribers
MOST_ERRORS = 3.0
_RUNS_ALIKE = 200  # simulated, each as long as a real one, to know how much runs differ by chance
_SAME = 1e-6  # shares that differ by less, or vary by less from run to run, do not differ
_MEAN_OF_NORMAL = math.sqrt(2.0 / math.pi)  # E|X| in standard deviations


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """One run at the system's own load, and how far the prediction was off."""

    measured: Outcome
    against_predicted: Comparison
    against_simulated: Comparison | None  # None: the simulator does not handle the system
    on_time_errors: pd.Series  # by subscriber: predicted − measured, in standard errors of a run
    delay_errors: pd.Series  # the same of mean delays; NaN where nothing was simulated
    share_by_chance: float  # how far runs as long as this are off by chance, mean over subscribers
    latency_by_chance: float  # the same of mean delays, as a share of them
    is_steady: bool  # nothing fails or comes and goes: shares and delays themselves must agree
    duration_s: float
    lateness_s: float  # of relays, 99th percentile
    timeline: tuple[StateChange, ...]  # by seconds from the beginning of the window
    doubts: tuple[str, ...]
    subscription_spread: pd.DataFrame | None  # T_sub by broker; None: nothing comes and goes
    event_spread: pd.DataFrame | None  # T_diff by broker
    forwarded: pd.DataFrame  # source, target, events, went: which way events went on

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
        return _largest(self.on_time_errors)

    @property
    def most_delay_errors(self) -> float:
        """The same of mean delays; NaN where nothing was simulated."""
        return _largest(self.delay_errors)

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


def _largest(errors: pd.Series) -> float:
    return float(errors.abs().max())


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

    @property
    def share_error(self) -> float:
        """Mean over subscribers of |predicted − measured| on-time share, all runs together."""
        return float(_mean(self.repetitions, "on_time_difference").abs().mean())

    @property
    def latency_error(self) -> float:
        """Mean over subscribers of |predicted − measured| mean delay, as a share of the latter."""
        off = _mean(self.repetitions, "delay_mean_s_difference")
        return float((off / _mean(self.repetitions, "delay_mean_s_b")).abs().mean())

    @property
    def most_errors(self) -> float:
        """The largest difference of on-time shares in standard errors of all runs together."""
        errors = [each.on_time_errors for each in self.repetitions]
        return _largest(pd.concat(errors, axis=1).mean(axis=1)) * math.sqrt(len(errors))

    @property
    def agrees(self) -> bool:
        """Whether all runs together agree with the prediction, by the measure of one of them."""
        if not all(each.is_steady for each in self.repetitions):
            return self.most_errors <= MOST_ERRORS
        return self.share_error <= MOST_SHARE and self.latency_error <= MOST_LATENCY


def _mean(repetitions: Sequence[Repetition], column: str) -> pd.Series:
    """A column of the comparisons by subscriber, its mean over runs."""
    tables = [each.against_predicted.subscribers for each in repetitions]
    return pd.concat([table.set_index("subscriber")[column] for table in tables], axis=1).mean(
        axis=1
    )


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
        run = recorded(system, chosen, place, tell)
        measured = characterise(read_traces(bench.spark, place), progress=tell).measured
        done.append(_repetition(run, measured, predicted, simulated, fitted))
    return Reality(
        fitted=fitted,
        load=busiest_load(predicted),
        predicted=predicted,
        simulated=simulated,
        reconnection=rejoined,
        repetitions=tuple(done),
        notes=calibration.notes,
    )


def _simulated(fitted: System, options: TestbedOptions) -> Outcome | None:
    """Many runs as long as the real ones; None where the simulator does not handle the system."""
    try:
        return simulate(
            fitted, seed=options.seed, replications=_RUNS_ALIKE, duration_s=options.duration_s
        )
    except UnsupportedError:
        return None


def _repetition(
    run: Run, measured: Outcome, predicted: Outcome, simulated: Outcome | None, fitted: System
) -> Repetition:
    compared = compare(predicted, measured)
    on_time_sd, delay_sd = _spread(measured, simulated)
    begin_s = run.start_s + run.options.warmup_s
    return Repetition(
        measured=measured,
        against_predicted=compared,
        against_simulated=None if simulated is None else compare(simulated, measured),
        on_time_errors=_in_standard_errors(compared, "on_time", on_time_sd, least=_SAME),
        delay_errors=_in_standard_errors(compared, "delay_mean_s", delay_sd),
        share_by_chance=float((_MEAN_OF_NORMAL * on_time_sd).mean()),
        latency_by_chance=_latency_by_chance(compared, delay_sd),
        is_steady=run.system == steady(run.system),
        duration_s=run.options.duration_s,
        lateness_s=lateness(run)["relay_p99_s"],
        timeline=tuple(replace(each, at_s=each.at_s - begin_s) for each in run.states),
        doubts=tuple(doubts(run)),
        subscription_spread=subscription_spread(run, fitted) if run.stays else None,
        event_spread=event_spread(run, steady(fitted)) if run.stays else None,
        forwarded=forwarding(run),
    )


def _spread(measured: Outcome, simulated: Outcome | None) -> tuple[pd.Series, pd.Series]:
    """What on-time shares and mean delays of runs as long as this differ by, by subscriber.

    Known from simulated runs; without any, shares from the measured one itself, event by event.
    """
    if simulated is None:
        table = measured.subscribers.set_index("subscriber")
        return table["on_time_se"], table["on_time_se"] * math.nan
    table = simulated.subscribers.set_index("subscriber")
    of_run = math.sqrt(_RUNS_ALIKE)
    return table["on_time_se"] * of_run, table["delay_mean_se_s"] * of_run


def _in_standard_errors(
    compared: Comparison, value: str, of_run: pd.Series, least: float = 0.0
) -> pd.Series:
    """Predicted − measured in what runs of this length differ by, by chance."""
    off = compared.subscribers.set_index("subscriber")[f"{value}_difference"]
    return off.where(off.abs() > least, 0.0) / of_run.clip(lower=least)


def _latency_by_chance(compared: Comparison, of_run: pd.Series) -> float:
    predicted_s = compared.subscribers.set_index("subscriber")["delay_mean_s_a"]
    return float((_MEAN_OF_NORMAL * of_run / predicted_s).mean())
