"""A system on real servers beside its prediction, from parameters measured in a separate run.

1. *Calibration*: the system at a low load, on the servers; its traces give service times and link
   delays as they are on this machine. How late relays and timers are, and what servers cost, is in
   the delays of links: a stage of the prediction like any other.
2. *Prediction*: those brokers and links under the rates of the system itself.
3. *Reality*: the system at its own load, several times. Nothing of it goes into the prediction.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from tidings.characterisation.job import characterise
from tidings.errors import UnsupportedError
from tidings.model.outcome import Outcome
from tidings.model.system import System
from tidings.model.uncertainty import Uncertain, uncertain_parameters, with_values
from tidings.prediction.predict import predict
from tidings.simulation.run import simulate
from tidings.testbed.calibrating import (
    Bench,
    Calibration,
    busiest_load,
    drill,
    recorded,
    steady,
    with_measured,
)
from tidings.testbed.outages import compressed, failing
from tidings.testbed.reality import NUMBERS, RUNS_ALIKE, Reality, Repetition, apart
from tidings.testbed.runs import Run, TestbedOptions
from tidings.testbed.spreading import event_spread, forwarding, subscription_spread
from tidings.testbed.tables import doubts, handled_by_groups, lateness
from tidings.traces.reading import read_traces
from tidings.validation.comparison import compare


def errors_by_calibration(fitted: System) -> pd.DataFrame:
    """Compute standard errors of predicted on-time shares and mean delays, by subscriber.

    To first order, from those of the parameters, as in error bars of a prediction; but services
    that were fitted together are wrong together.
    """
    squares = pd.DataFrame(
        0.0, index=[each.name for each in fitted.subscribers], columns=[*NUMBERS]
    )
    for group in _wrong_together(uncertain_parameters(fitted)[0], fitted):
        low, high = (
            _numbers(with_values(fitted, values))
            for values in ({one: one.low for one in group}, {one: one.high for one in group})
        )
        squares += ((high - low) / 2.0).fillna(0.0) ** 2
    return np.sqrt(squares)


def _wrong_together(parameters: Iterable[Uncertain], fitted: System) -> Iterable[list[Uncertain]]:
    """Group parameters to be moved together; those of subscribers, as each concerns nobody else."""
    services = {each.name: each.service for each in fitted.brokers}
    groups: dict[Hashable, list[Uncertain]] = {}
    for one in parameters:
        key: Hashable = one.path
        if one.field == "service":
            key = services[one.owner]
        elif one.section == "subscribers":
            key = one.section, one.field
        groups.setdefault(key, []).append(one)
    return groups.values()


def _numbers(system: System) -> pd.DataFrame:
    subscribers = predict(system, delays=False, error_bars=False).subscribers
    return subscribers.set_index("subscriber")[[*NUMBERS]]


def confront(bench: Bench, system: System, calibration: Calibration, folder: Path) -> Reality:
    """Predict a system from what was calibrated and measure it; traces are left in ``folder``."""
    fitted = with_measured(compressed(system, bench.options.compression), calibration.fitted)
    rejoined = None
    if failing(system):
        bench.progress("taking failing components down, to measure how long they take to reconnect")
        rejoined = drill(system, bench.options, bench.within("drill").progress)
        fitted = rejoined.added_to(fitted)
    bench.progress("predicting and simulating what was calibrated")
    # Errors of parameters by hundreds of further predictions would take longer than reality.
    predicted = predict(fitted, pairs=True, error_bars=False)
    simulated = _simulated(fitted, bench.options)
    is_steady = system == steady(system)
    unsure = None if is_steady else errors_by_calibration(fitted)
    done = []
    for number in range(1, bench.repetitions + 1):
        place = folder / f"run-{number}"
        chosen = replace(bench.options, seed=bench.options.seed + number)
        tell = bench.within(f"measured run {number}").progress
        run = recorded(system, chosen, place, tell)
        measured = characterise(read_traces(bench.spark, place), progress=tell).measured
        known = _Known(fitted=fitted, predicted=predicted, simulated=simulated, unsure=unsure)
        done.append(_repetition(run, measured, known))
    return Reality(
        fitted=fitted,
        load=busiest_load(predicted),
        predicted=predicted,
        simulated=simulated,
        reconnection=rejoined,
        repetitions=tuple(done),
        notes=calibration.notes,
        doubts=(*calibration.doubts, *(() if rejoined is None else rejoined.doubts)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is known of a system before it is run."""

    fitted: System
    predicted: Outcome
    simulated: Outcome | None
    unsure: pd.DataFrame | None  # standard errors of what is predicted, by subscriber


def _simulated(fitted: System, options: TestbedOptions) -> Outcome | None:
    """Simulate many runs as long as the real ones; None where the simulator does not handle it."""
    try:
        return simulate(
            fitted, seed=options.seed, replications=RUNS_ALIKE, duration_s=options.duration_s
        )
    except UnsupportedError:
        return None


def _repetition(run: Run, measured: Outcome, known: _Known) -> Repetition:
    fitted, simulated = known.fitted, known.simulated
    begin_s = run.start_s + run.options.warmup_s
    shares, delays = apart(measured, simulated, known.unsure)
    late = lateness(run)
    return Repetition(
        measured=measured,
        against_predicted=compare(known.predicted, measured),
        against_simulated=None if simulated is None else compare(simulated, measured),
        shares_apart=shares,
        delays_apart=delays,
        is_steady=run.system == steady(run.system),
        duration_s=run.options.duration_s,
        relays_late_s=late["relay_p99_s"],
        publishers_late_s=late["publisher_p99_s"],
        timeline=tuple(replace(each, at_s=each.at_s - begin_s) for each in run.states),
        doubts=tuple(doubts(run)),
        subscription_spread=subscription_spread(run, fitted) if run.stays else None,
        event_spread=event_spread(run, steady(fitted)) if run.stays else None,
        forwarded=forwarding(run),
        handled_again=_handled_again(run, known.predicted),
    )


def _handled_again(run: Run, predicted: Outcome) -> dict[str, tuple[float, float]]:
    """Give, by consumer group, the share of events handled more than once: predicted, measured."""
    shares = predicted.subscribers.set_index("subscriber")["handled_again"]
    return {
        name: (float(shares[name]), counts["handled_again"])
        for name, counts in handled_by_groups(run).items()
    }
