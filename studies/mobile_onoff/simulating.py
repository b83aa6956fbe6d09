"""The same experiments simulated: what theory says against what happens, with standard errors.

Sojourns at a queue that comes and goes hang together over many periods, the more the higher its
load: runs are long in periods ON and OFF, longer at high load, and errors are those between
independent runs. Every row has random numbers of its own, so that rows do not err together.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from studies.mobile_onoff.centre import OnOff, exponential_centre, mean_response_s
from tidings.model.behaviour import Connectivity, DailyRates
from tidings.model.connectivity_traces import resampled
from tidings.model.content import ContentRow, ContentTable
from tidings.model.filters import as_filter
from tidings.model.laws import Exponential, Law
from tidings.model.system import Broker, Publisher, Subscriber, System
from tidings.simulation.run import simulate

MINIMUM_EVENTS = 20_000  # of a run
MOST_EVENTS = 500_000  # to which a run is lengthened for its load
_ROUNDS = 10.0  # times as many periods where rates change: events are few
SETTLING_CYCLES = 50.0  # of ON and OFF at load 0 before a run is looked at; more at high load
TRACE_HOURS, TRACE_MEANS_S, TRACE_SERVICE_S = 12.13, (155.88, 72.15), 0.0625
TRACE_RATES_PER_S = (1.0, 5.0, 9.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is simulated for every number; no runs: nothing."""

    runs: int = 20
    cycles: float = 1000.0  # of ON and OFF, in each run at low load
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A mean response and its standard error, in seconds; NaN where nothing was simulated."""

    mean_s: float = np.nan
    error_s: float = np.nan

    @property
    def columns(self) -> dict[str, float]:
        """Both, as columns of a table."""
        return {"simulated_s": self.mean_s, "simulated_se_s": self.error_s}


def one_centre(centre: OnOff, arrivals: Law | DailyRates) -> System:
    """A system in which events wait for one publisher that comes and goes, and for nothing else."""
    connectivity = Connectivity(on=centre.on, off=centre.off, service=centre.service)
    return _behind(connectivity, arrivals)


def _behind(connectivity: Connectivity, arrivals: Law | DailyRates) -> System:
    """Random numbers follow the peer's name, which says what it is."""
    means_s = [law.mean_s for law in (connectivity.on, connectivity.off) if law is not None]
    if isinstance(arrivals, DailyRates):
        rate_per_s = sum(arrivals.per_s) / len(arrivals.per_s)
    else:
        rate_per_s = 1.0 / arrivals.mean_s
    name = "-".join(["peer", *(f"{number:.6g}" for number in (*means_s, rate_per_s))])
    times = {"rates" if isinstance(arrivals, DailyRates) else "every": arrivals}
    return System(
        version=1,
        brokers=(Broker(name="hub"),),
        publishers=(
            Publisher(
                name=name,
                at="hub",
                content=ContentTable(table=(ContentRow(probability=1.0, event={"topic": "a"}),)),
                connectivity=connectivity,
                **times,  # type: ignore[arg-type]
            ),
        ),
        subscribers=(Subscriber(name="reader", at="hub", wants=as_filter({"topic": "a"})),),
    )


def respond(
    system: System, effort: Effort, *, cycle_s: float, rate_per_s: float, load: float = 0.0
) -> Simulated:
    """The mean time from publication to receipt, simulated, in seconds."""
    if effort.runs == 0:
        return Simulated()
    spare = max(1.0 - load, 0.02)
    asked = effort.cycles * cycle_s * rate_per_s
    events = max(asked * np.clip(MOST_EVENTS / asked, 1.0, 1.0 / spare), MINIMUM_EVENTS)
    duration_s, warmup_s = float(events) / rate_per_s, SETTLING_CYCLES * cycle_s / spare
    return _simulated(system, effort, duration_s=duration_s, warmup_s=warmup_s)


def _simulated(system: System, effort: Effort, *, duration_s: float, warmup_s: float) -> Simulated:
    outcome = simulate(
        system,
        seed=effort.seed,
        replications=effort.runs,
        duration_s=duration_s,
        warmup_s=warmup_s,
    )
    row = outcome.subscribers.iloc[0]
    return Simulated(mean_s=float(row["delay_mean_s"]), error_s=float(row["delay_mean_se_s"]))


def respond_at_centre(centre: OnOff, rate_per_s: float, effort: Effort) -> Simulated:
    """The mean response of one ON/OFF centre with Poisson arrivals, simulated, in seconds."""
    system = one_centre(centre, Exponential(mean_s=1.0 / rate_per_s))
    cycle_s = centre.on.mean_s + centre.off.mean_s
    load = centre.load(rate_per_s)
    return respond(system, effort, cycle_s=cycle_s, rate_per_s=rate_per_s, load=load)


def respond_to_rates(centre: OnOff, rates: DailyRates, effort: Effort) -> Simulated:
    """The same with rates that change; a run is whole rounds of them."""
    if effort.runs == 0:
        return Simulated()
    cycle_s = centre.on.mean_s + centre.off.mean_s
    rounds = math.ceil(_ROUNDS * effort.cycles * cycle_s / rates.length_s)
    return _simulated(
        one_centre(centre, rates),
        effort,
        duration_s=rounds * rates.length_s,
        warmup_s=rates.length_s,
    )


def short_trace(seed: int) -> list[tuple[str, int]]:
    """Changes of a synthetic traveller for as long as the paper observed its second metro path."""
    rng = np.random.default_rng([seed, 2])
    changes, at_s, connected = [], 0.0, True
    while at_s < 3600.0 * TRACE_HOURS:
        changes.append(("connected" if connected else "disconnected", round(1e9 * at_s)))
        at_s += float(rng.exponential(TRACE_MEANS_S[0] if connected else TRACE_MEANS_S[1]))
        connected = not connected
    return changes


def trace_rows(effort: Effort) -> Iterator[dict[str, float]]:
    """Periods of a short trace by its means, drawn from it at random, and gone through in turn."""
    changes = short_trace(effort.seed)
    at_s = np.array([at_ns for _, at_ns in changes]) / 1e9
    lengths_s = np.diff(at_s)
    # The first period is not seen to begin: it is looped, but no whole one.
    on_s, off_s = lengths_s[2::2], lengths_s[1::2]
    own = exponential_centre(TRACE_SERVICE_S, float(on_s.mean()), float(off_s.mean()))
    measured = replace(own, on=resampled(on_s), off=resampled(off_s))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sessions.csv"
        lines = [f"{state},{at_ns}" for state, at_ns in changes]
        file.write_text("\n".join(["state,at_ns", *lines]) + "\n", encoding="utf-8")
        for rate_per_s in TRACE_RATES_PER_S:
            played = {
                how: _respond_to_trace(file, how, own, rate_per_s, effort)
                for how in ("resample", "loop")
            }
            yield {
                "rate_per_s": rate_per_s,
                "load": own.load(rate_per_s),
                "by_means_s": mean_response_s(own, rate_per_s),
                "by_law_s": mean_response_s(measured, rate_per_s),
                "resampled_s": played["resample"].mean_s,
                "resampled_se_s": played["resample"].error_s,
                "looped_s": played["loop"].mean_s,
                "looped_se_s": played["loop"].error_s,
            }


def _respond_to_trace(
    file: Path, how: str, own: OnOff, rate_per_s: float, effort: Effort
) -> Simulated:
    connectivity = Connectivity(trace=str(file), replay=how, service=own.service)
    return respond(
        _behind(connectivity, Exponential(mean_s=1.0 / rate_per_s)),
        effort,
        cycle_s=own.on.mean_s + own.off.mean_s,
        rate_per_s=rate_per_s,
        load=own.load(rate_per_s),
    )
