"""What exponential times and independent failures are worth on real traces of uptimes.

The random systems of the experiments get brokers that are up and down as in a trace; links do not
fail, so that nothing else blurs it. Availabilities are those of the trace throughout: only the
shape of the times differs (exponential, fitted, as measured), or who fails together with whom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tidings.model.behaviour import Failure
from tidings.model.laws import Exponential, Law
from tidings.model.system import FailureGroup, System
from tidings.prediction.predicting import predict
from tidings.reproduction.fault_tolerance.random_systems import random_system
from tidings.reproduction.fault_tolerance.uptime_laws import (
    FAMILIES,
    Fitted,
    Measured,
    fit,
    measure,
)
from tidings.reproduction.fault_tolerance.uptime_traces import Togetherness, Uptimes, together
from tidings.simulation.run import simulate

AS_MEASURED = "as measured"
LAW_SCHEMES = ("periodic", "buffering")
GROUP_SCHEMES = ("periodic", "buffering", "bypass", "bypass-buffering")
# A simulation is long in cycles of up and down: outages are rare, and it is they that are sampled.
EVENTS_PER_CYCLE = 20
SHARE_COLUMNS = ("trace", "scheme", "case", "predicted", "simulated", "simulated_se")

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is simulated for every share."""

    runs: int = 16
    cycles: int = 200  # of up and down of a broker, in each run
    seed: int = 1  # of the random system, and of the first run

    def __post_init__(self) -> None:
        if self.runs < 2:
            raise ValueError(f"runs is {self.runs}; a standard error wants 2 or more")


@dataclass(frozen=True, kw_only=True)
class TraceFindings:
    """One trace: how its times are spread, and what that does to on-time shares."""

    trace: Uptimes
    measured: Mapping[str, Measured]  # 'up' and 'down'
    fits: Mapping[str, tuple[Fitted, ...]]  # likewise
    together: Togetherness
    by_law: pd.DataFrame  # SHARE_COLUMNS; case: the law
    by_group: pd.DataFrame  # SHARE_COLUMNS; case: 'independent' or 'together'

    @property
    def availability(self) -> float:
        """The share of time in which a component of the trace is up."""
        up_s, down_s = (self.measured[state].mean_s for state in ("up", "down"))
        return up_s / (up_s + down_s)


def examine(
    trace: Uptimes, effort: Effort | None = None, *, progress: Progress = lambda _: None
) -> TraceFindings:
    """Fit laws to a trace, and put them into a random system."""
    chosen = effort or Effort()
    progress(f"laws of {trace.name}")
    lengths = {state: trace.lengths(up=state == "up") for state in ("up", "down")}
    measured = {state: measure(*lengths[state]) for state in lengths}
    fits = {
        state: tuple(fit(family, *lengths[state]) for family in FAMILIES) for state in lengths
    }
    found = together(trace)
    means_s = (measured["up"].mean_s, measured["down"].mean_s)

    def shares(cases: Iterator[tuple[str, str, System]]) -> pd.DataFrame:
        rows = []
        for scheme, case, system in cases:
            progress(f"{trace.name}: {scheme}, {case}")
            rows.append((trace.name, scheme, case, *_shares(system, sum(means_s), chosen)))
        return pd.DataFrame(rows, columns=list(SHARE_COLUMNS))

    return TraceFindings(
        trace=trace,
        measured=measured,
        fits=fits,
        together=found,
        by_law=shares(_by_law(measured, fits, chosen.seed)),
        by_group=shares(_by_group(means_s, found.share, chosen.seed)),
    )


def _by_law(
    measured: Mapping[str, Measured], fits: Mapping[str, tuple[Fitted, ...]], seed: int
) -> Iterator[tuple[str, str, System]]:
    """The tree, where ways are longest, under the static schemes: with every law."""
    laws: dict[str, tuple[Law, Law]] = {
        up.family: (up.law, down.law) for up, down in zip(fits["up"], fits["down"], strict=True)
    }
    laws[AS_MEASURED] = (measured["up"].law, measured["down"].law)
    for scheme in LAW_SCHEMES:
        for name, (up, down) in laws.items():
            system = _bare(seed, "tree", scheme)
            yield scheme, name, _failing(system, Failure(up=up, down=down))


def _by_group(
    means_s: tuple[float, float], share: float, seed: int
) -> Iterator[tuple[str, str, System]]:
    """The graph under every scheme: brokers that fail alone, and that fail together as measured."""
    if not share > 0:
        return
    for scheme in GROUP_SCHEMES:
        system = _bare(seed, "graph, own trees", scheme)
        yield scheme, "independent", independent(system, means_s, share)
        yield scheme, "together", grouped(system, means_s, share)


def grouped(system: System, means_s: tuple[float, float], share: float) -> System:
    """Brokers of which a share of the outages are outages of all of them; exponential times.

    A broker's outages begin once in a mean up-time: a share of them with the group's.
    """
    up_s, down_s = means_s
    down = Exponential(mean_s=down_s)
    own = Failure(up=Exponential(mean_s=up_s / (1.0 - share)), down=down) if share < 1 else None
    group = FailureGroup(
        name="all",
        members=tuple(broker.name for broker in system.brokers),
        failure=Failure(up=Exponential(mean_s=up_s / share), down=down),
    )
    return replace(_failing(system, own), failure_groups=(group,))


def independent(system: System, means_s: tuple[float, float], share: float) -> System:
    """Brokers as available as those of :func:`grouped`, and down as long, each on its own."""
    up_s, down_s = means_s
    odds = (1.0 + share * down_s / up_s) * (1.0 + (1.0 - share) * down_s / up_s) - 1.0
    up, down = Exponential(mean_s=down_s / odds), Exponential(mean_s=down_s)
    return _failing(system, Failure(up=up, down=down))


def _bare(seed: int, topology: str, scheme: str) -> System:
    """A random system of the experiments whose links do not fail."""
    system = random_system(seed, topology=topology, machines="high-end", scheme=scheme)
    links = tuple(
        replace(
            link, there=replace(link.there, failure=None), back=replace(link.back, failure=None)
        )
        for link in system.links
    )
    return replace(system, links=links)


def _failing(system: System, failure: Failure | None) -> System:
    return replace(
        system, brokers=tuple(replace(broker, failure=failure) for broker in system.brokers)
    )


def _shares(system: System, cycle_s: float, effort: Effort) -> tuple[float, float, float]:
    """The on-time share of all that is wanted: predicted, simulated, and its standard error.

    Subscribers share brokers, so the error is taken over whole runs, not over subscribers.
    """
    every = Exponential(mean_s=cycle_s / EVENTS_PER_CYCLE)
    sparse = replace(
        system, publishers=tuple(replace(each, every=every) for each in system.publishers)
    )
    runs = [
        simulate(
            sparse,
            seed=effort.seed + number,
            replications=1,
            duration_s=effort.cycles * cycle_s,
            warmup_s=0.0,  # every component starts in its stationary state
        ).on_time
        for number in range(effort.runs)
    ]
    error = float(np.std(runs, ddof=1)) / len(runs) ** 0.5
    return predict(sparse, delays=False).on_time, float(np.mean(runs)), error
