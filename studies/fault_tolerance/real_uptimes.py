"""What exponential times and independent failures are worth on real traces of uptimes.

The random systems of the experiments get brokers that are up and down as in a trace; links do not
fail, so that nothing else blurs it. Availabilities are those of the trace throughout: only the
shape of the times differs (exponential, fitted, as measured), or who fails together with whom.

Real outages vary so much that simulated shares are noisy. What buffers *gain* is not: run by run,
the same outages are met with and without them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from studies.durations import AS_MEASURED, HOURS, goodness, longer_than
from studies.fault_tolerance.random_systems import random_system
from studies.fault_tolerance.uptime_traces import Togetherness, Uptimes, together
from studies.harness import Texts
from tidings.characterisation.fit.duration_laws import Fitted, fit, likeliest
from tidings.characterisation.fit.durations import Measured, durations, measure
from tidings.model.arrays import Floats
from tidings.model.behaviour import Failure
from tidings.model.laws import Deterministic, Exponential
from tidings.model.progress import Progress
from tidings.model.study import Section, TextTable
from tidings.model.system import FailureGroup, System
from tidings.prediction.predict import predict
from tidings.simulation.run import simulate

FAMILIES = ("exponential", "weibull", "lognormal")
EXPONENTIAL, FITTED = "exponential", "fitted"
GROUP_SCHEMES = ("periodic", "buffering", "bypass")
LIFETIMES_S = (3_600.0, 86_400.0)  # the paper's, and one that outlives most outages
# A simulation is long in cycles of up and down: outages are rare, and it is they that are sampled.
EVENTS_PER_CYCLE = 20
SHARES = ("predicted", "simulated", "simulated_se")
GAINS = ("gain_predicted", "gain_simulated", "gain_simulated_se")
LAW_COLUMNS = ("trace", "law", "scheme", "lifetime_s", *SHARES, *GAINS)
GROUP_COLUMNS = ("trace", "scheme", "outages", *SHARES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is simulated for every share."""

    runs: int = 10
    cycles: float = 100.0  # of up and down of a broker, in each run
    lifetimes_s: Sequence[float] = LIFETIMES_S
    seed: int = 1  # of the random system, and of the first run


@dataclass(frozen=True, kw_only=True)
class TraceFindings:
    """One trace: how its times are spread, and what that does to on-time shares."""

    trace: Uptimes
    measured: Mapping[str, Measured]  # 'up' and 'down'
    fits: Mapping[str, tuple[Fitted, ...]]  # likewise
    together: Togetherness
    by_law: pd.DataFrame  # LAW_COLUMNS
    by_group: pd.DataFrame  # GROUP_COLUMNS

    @property
    def availability(self) -> float:
        """The share of time in which a component of the trace is up."""
        up_s, down_s = (self.measured[state].mean_s for state in ("up", "down"))
        return up_s / (up_s + down_s)


def examine(trace: Uptimes, effort: Effort, progress: Progress) -> TraceFindings:
    """Fit laws to a trace, and put them into a random system."""
    progress(f"laws of {trace.name}")
    seen = {state: durations(*trace.lengths(up=state == "up")) for state in ("up", "down")}
    measured = {state: measure(each) for state, each in seen.items()}
    fits = {state: tuple(fit(name, each) for name in FAMILIES) for state, each in seen.items()}
    common = together(trace)
    means_s = (measured["up"].mean_s, measured["down"].mean_s)
    laws = {
        EXPONENTIAL: Failure(
            up=Exponential(mean_s=means_s[0]), down=Exponential(mean_s=means_s[1])
        ),
        FITTED: Failure(up=likeliest(fits["up"]).law, down=likeliest(fits["down"]).law),
        AS_MEASURED: Failure(up=measured["up"].law(), down=measured["down"].law()),
    }
    by_law = []
    for name, failure in laws.items():
        progress(f"{trace.name}, {name}")
        by_law += [(trace.name, name, *row) for row in _under_law(name, failure, effort)]
    by_group = []
    for row in _in_groups(means_s, common.share, effort):
        progress(f"{trace.name}, {row[0]}, {row[1]}")
        by_group.append((trace.name, *row))
    return TraceFindings(
        trace=trace,
        measured=measured,
        fits=fits,
        together=common,
        by_law=pd.DataFrame(by_law, columns=list(LAW_COLUMNS)),
        by_group=pd.DataFrame(by_group, columns=list(GROUP_COLUMNS)),
    )


def _under_law(name: str, failure: Failure, effort: Effort) -> Iterator[tuple[object, ...]]:
    """The tree, where ways are longest, without buffers and with them for every lifetime.

    The measured law is simulated alone: it has no phases of its own to follow.
    """
    cycle_s = failure.up.mean_s + failure.down.mean_s
    predicts = name != AS_MEASURED

    def shares(scheme: str, lifetime_s: float) -> tuple[float, Floats]:
        system = replace(
            _failing(_bare(effort.seed, "tree", scheme), failure),
            lifetime=Deterministic(value_s=lifetime_s),
        )
        return _predicted(system) if predicts else np.nan, _simulated(system, cycle_s, effort)

    plain, plain_runs = shares("periodic", effort.lifetimes_s[0])
    yield "periodic", np.nan, plain, *_mean(plain_runs), np.nan, np.nan, np.nan
    for lifetime_s in effort.lifetimes_s:
        share, runs = shares("buffering", lifetime_s)
        gains = (share - plain, *_mean(runs - plain_runs))
        yield "buffering", lifetime_s, share, *_mean(runs), *gains


def _in_groups(
    means_s: tuple[float, float], share: float, effort: Effort
) -> Iterator[tuple[object, ...]]:
    """The graph under every scheme: brokers that fail alone, and that fail together as measured."""
    if not share > 0:
        return
    for scheme in GROUP_SCHEMES:
        system = _bare(effort.seed, "graph, own trees", scheme)
        cases = {"independent": independent, "together": grouped}
        for name, outages in cases.items():
            failing = outages(system, means_s, share)
            runs = _simulated(failing, sum(means_s), effort)
            yield scheme, name, _predicted(failing), *_mean(runs)


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


def _predicted(system: System) -> float:
    return predict(system, delays=False, causes=False, by="theory").on_time


def _simulated(system: System, cycle_s: float, effort: Effort) -> Floats:
    """The on-time share of all that is wanted, in every run."""
    every = Exponential(mean_s=cycle_s / EVENTS_PER_CYCLE)
    sparse = replace(
        system, publishers=tuple(replace(each, every=every) for each in system.publishers)
    )
    runs = (
        simulate(
            sparse,
            seed=effort.seed + number,
            replications=1,
            duration_s=effort.cycles * cycle_s,
            warmup_s=0.0,  # every component starts in its stationary state
        )
        for number in range(effort.runs)
    )
    return np.array([run.on_time for run in runs])


def _mean(runs: Floats) -> tuple[float, float]:
    """Mean and standard error over runs: subscribers share brokers and are no sample."""
    error = float(runs.std(ddof=1)) / runs.size**0.5 if runs.size > 1 else np.nan
    return float(runs.mean()), error


def uptime_tables(findings: Sequence[TraceFindings]) -> dict[str, pd.DataFrame]:
    """Put the tables of all traces together."""
    if not findings:
        return {}
    return {
        "uptime_laws": pd.concat([each.by_law for each in findings], ignore_index=True),
        "uptime_groups": pd.concat([each.by_group for each in findings], ignore_index=True),
    }


def uptime_sections(texts: Texts, findings: Sequence[TraceFindings]) -> Iterator[Section]:
    """Show what the traces say of exponential times and of independent failures."""
    for each in findings:
        name = each.trace.name
        yield texts.section(
            "trace",
            goodness(f"Laws of times up and down, {name}", each.measured, each.fits, HOURS),
            *(
                longer_than(f"{name}: longer than this, {state}", seen, each.fits[state], HOURS)
                for state, seen in each.measured.items()
            ),
            trace=name,
            about=_about(each),
        )
    if findings:
        yield texts.section("by law", _by_law(texts, findings))
        yield texts.section("together", *_together(texts, findings))


def _about(findings: TraceFindings) -> str:
    trace = findings.trace
    counts = " and ".join(
        f"{each.whole:,} whole times {state} (and {each.cut_off:,} cut off)"
        for state, each in findings.measured.items()
    )
    empty = f" {trace.empty:,} without length were left out." if trace.empty else ""
    available = f"availability {findings.availability:.4f}"
    return f"{trace.components:,} components, {counts}; {available}.{empty}"


def _by_law(texts: Texts, findings: Sequence[TraceFindings]) -> TextTable:
    order = {"by": ["scheme", "lifetime_s"], "ascending": [False, True], "kind": "stable"}
    rows = pd.concat([each.by_law.sort_values(**order) for each in findings])
    hours = (rows["lifetime_s"] / 3600).map(", {:g} h".format).where(rows["lifetime_s"].notna(), "")
    return texts.grid("by law", rows.assign(scheme=rows["scheme"] + hours))


def _together(texts: Texts, findings: Sequence[TraceFindings]) -> tuple[TextTable, TextTable]:
    rows = [
        {
            "trace": each.trace.name,
            "outages": each.together.outages,
            "share": 100 * each.together.share,
            "chance": 100 * each.together.by_chance,
        }
        for each in findings
    ]
    groups = pd.concat([each.by_group for each in findings])
    return texts.grid("together", rows), texts.grid("by group", groups)
