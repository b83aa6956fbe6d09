"""The experiments of the fault-tolerance paper: every scheme, on cheap and on dear machines.

Random systems are simulated and predicted under every recovery scheme; every subscriber is a point.
A run is simulated as the paper did it, or, with ``precise``, for as long as it takes until chance
alone accounts for no more than ``NOISE`` of the mean absolute error: failures are rare, so it is
components' cycles that must be many, not events.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd
import typer

from studies.fault_tolerance.random_systems import random_system
from studies.fault_tolerance.real_uptimes import (
    Effort,
    TraceFindings,
    examine,
    uptime_sections,
    uptime_tables,
)
from studies.fault_tolerance.uptime_traces import read_uptimes
from studies.harness import Experiment, Texts
from studies.points import MEAN_SIZE, errors, points_of, scatter
from studies.settings.fault_tolerance import Settings
from tidings.model.outcome import Outcome
from tidings.model.progress import Progress
from tidings.model.study import Finding, Scatter, Section, Study, TextTable
from tidings.model.system import System
from tidings.prediction.predict import predict
from tidings.simulation.run import simulate

NOISE = {"low-end": 0.002, "high-end": 0.0003}  # a third of the error that is worth knowing
MOST_RUNS = 4_000
NEAR = 0.02  # what we read "accurately" as: the mean absolute error of on-time shares
# What we read "as well as" as: a difference of mean shares that operators would not pay for.
EQUAL = 0.0005
SURE = 2.0  # standard errors from which on a difference is told
TEXTS = Texts("fault-tolerance")
_AMPLE = 1.2  # times as many runs as should do, for the noise is an estimate itself

RUN = ["topology", "machines", "scheme"]
POINT_COLUMNS = [
    *("seed", *RUN, "model", "subscriber", "broker", "events"),
    *("predicted", "actual", "actual_se"),
]


def run(settings: Settings, progress: Progress) -> Study:
    """Run the experiments, and look at real traces of uptimes if there are any."""
    if settings.machines == "none" and not settings.uptimes:
        raise typer.BadParameter("'none' leaves nothing to do without --uptimes")
    traces = [  # all are read before hours are spent on the rest
        trace
        for place in settings.uptimes or []
        for trace in read_uptimes(place, settings.leave_out or [])
    ]
    points = simulate_all(settings, progress)
    effort = Effort(runs=settings.replications, seed=settings.seed)
    return study(settings, points, [examine(trace, effort, progress) for trace in traces])


def simulate_all(settings: Settings, progress: Progress) -> pd.DataFrame:
    """Simulate and predict every run: a point for each subscriber and model."""
    parts = [pd.DataFrame(columns=POINT_COLUMNS)] if not settings.runs else []
    for place, each in enumerate(settings.runs, start=1):
        where = dict(zip(("seed", *RUN), each, strict=True))
        progress(f"run {place} of {len(settings.runs)}: {', '.join(each[1:])}")
        parts += [points.assign(**where) for points in _points(settings, where)]
    return pd.concat(parts, ignore_index=True)[POINT_COLUMNS]


def _points(settings: Settings, where: Mapping[str, Any]) -> Iterator[pd.DataFrame]:
    system = random_system(**where, every_s=settings.every_s)
    noise = NOISE[where["machines"]] if settings.precise else math.inf
    actual = _simulated(settings, system, where["seed"], noise)
    yield points_of(predict(system, delays=False, causes=False, by="theory"), actual).assign(
        model="exact"
    )
    if where["scheme"].startswith("bypass"):
        paper = predict(system, delays=False, causes=False, faults="paper", by="theory")
        yield points_of(paper, actual).assign(model="paper")


def _simulated(settings: Settings, system: System, seed: int, noise: float) -> Outcome:
    """Simulate the system as planned, and again for longer where that was too noisy.

    Noise falls with the square root of the number of runs.
    """
    replications = settings.replications
    while True:
        outcome = simulate(
            system,
            seed=seed,
            replications=replications,
            duration_s=settings.duration_s,
            warmup_s=0.0,  # every component starts in its stationary state
        )
        level = MEAN_SIZE * float(outcome.subscribers["on_time_se"].mean())
        if level <= noise or replications >= MOST_RUNS:
            return outcome
        replications = min(MOST_RUNS, math.ceil(_AMPLE * replications * (level / noise) ** 2))


def by_run(points: pd.DataFrame) -> pd.DataFrame:
    """Compute errors and mean shares for each topology, kind of machines, scheme and model."""
    means = points.groupby([*RUN, "model"], sort=False)[["predicted", "actual"]].mean()
    means["actual_se"] = mean_se(points)
    return errors(points, (*RUN, "model")).merge(means.reset_index(), on=[*RUN, "model"])


def mean_se(points: pd.DataFrame) -> pd.Series:
    """Bound the standard error of the mean simulated share of each run and model.

    As if the subscribers of a system, who share brokers, were all off together; systems are
    independent of each other, and their means weigh as much as they have subscribers.
    """
    levels = [*RUN, "model"]
    together = points.groupby([*levels, "seed"], sort=False)["actual_se"].sum()
    off = together.pow(2).groupby(level=levels, sort=False).sum().pow(0.5)
    return off / points.groupby(levels, sort=False).size()


class Difference(NamedTuple):
    """By how much something is above something else, and its standard error (at most)."""

    value: float
    se: float


def all_above_zero(differences: Iterable[Difference]) -> bool | None:
    """Say whether all differences are above 0; None where the noise is too large to tell.

    >>> all_above_zero([Difference(0.3, 0.1), Difference(0.1, 0.1)]) is None
    True
    """
    known = list(differences)
    if any(each.value < -SURE * each.se or each.value == each.se == 0.0 for each in known):
        return False
    return True if all(each.value > SURE * each.se for each in known) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The errors and mean shares of one topology, from exact predictions and from the paper's."""

    topology: str
    rows: pd.DataFrame

    def mean(self, machines: str) -> dict[str, float]:
        """Find the simulated mean on-time share under every scheme."""
        rows = self.rows[(self.rows["machines"] == machines) & (self.rows["model"] == "exact")]
        return dict(zip(rows["scheme"], rows["actual"], strict=True))

    def gain(self, machines: str, better: str, worse: str) -> Difference:
        """Compute by how much one scheme's simulated mean share is above another's."""
        return self.apart((machines, better), (machines, worse))

    def apart(self, first: tuple[str, str], second: tuple[str, str]) -> Difference:
        """Compute by how much the mean share is larger in one case (machines, scheme)."""
        rows = self.rows[self.rows["model"] == "exact"].set_index(["machines", "scheme"])
        (one, one_se), (two, two_se) = (
            rows.loc[[case], ["actual", "actual_se"]].to_numpy()[0] for case in (first, second)
        )
        return Difference(float(one - two), math.hypot(one_se, two_se))


def findings(table: pd.DataFrame) -> Iterator[Finding]:
    """Answer every claim for every topology, as far as the runs can tell."""
    for topology, rows in table.groupby("topology", sort=False):
        evidence = Evidence(topology=str(topology), rows=rows)
        machines = set(rows["machines"])
        yield _accurate(evidence)
        if topology == "tree" and len(machines) > 1:
            yield _machines_matter_more(evidence)
        if topology != "tree" and "low-end" in machines:
            yield _ranking_of_low_end(evidence)
        if topology != "tree" and "high-end" in machines:
            yield _no_need_to_bypass(evidence)


def _accurate(evidence: Evidence) -> Finding:
    rows = evidence.rows
    # What the paper calls its model: exact for static schemes, its own formulas for bypassing.
    own = rows[(rows["model"] == "paper") | ~rows["scheme"].str.startswith("bypass")]
    worst = own.loc[own["mean_absolute"].idxmax()].to_dict()
    # What chance explains is held neither against the model nor for it.
    surely_off = worst["mean_absolute"] - worst["noise"] > NEAR
    holds = True if worst["mean_absolute"] <= NEAR else False if surely_off else None
    kind = "trees" if evidence.topology == "tree" else "graphs"
    return TEXTS.claim(f"accurate in {kind}", holds, **worst)


def _machines_matter_more(evidence: Evidence) -> Finding:
    by_scheme = evidence.gain("low-end", "buffering", "periodic")
    by_machines = evidence.apart(("high-end", "periodic"), ("low-end", "periodic"))
    more = evidence.apart(("high-end", "periodic"), ("low-end", "buffering"))
    return TEXTS.claim(
        "machines matter more",
        all_above_zero([by_scheme, more]),
        topology=evidence.topology,
        by_scheme=by_scheme,
        by_machines=by_machines,
        se=max(by_scheme.se, by_machines.se),
    )


def _ranking_of_low_end(evidence: Evidence) -> Finding:
    means = evidence.mean("low-end")
    ranked = sorted(means, key=lambda scheme: -means[scheme])
    wanted = ["bypass-buffering", "bypass", "buffering", "periodic"]
    steps = [evidence.gain("low-end", *pair) for pair in itertools.pairwise(wanted)]
    return TEXTS.claim(
        "ranking of low-end",
        all_above_zero(steps),
        topology=evidence.topology,
        listed=", ".join(f"{scheme} {means[scheme]:.4f}" for scheme in ranked),
        se=max(each.se for each in steps),
    )


def _no_need_to_bypass(evidence: Evidence) -> Finding:
    means = evidence.mean("high-end")
    gain = evidence.gain("high-end", "bypass-buffering", "buffering")
    above = evidence.gain("high-end", "buffering", "bypass")
    return TEXTS.claim(
        "no need to bypass",
        all_above_zero([Difference(EQUAL - gain.value, gain.se), above]),
        topology=evidence.topology,
        best=max(means, key=lambda scheme: means[scheme]),
        gain=gain,
        listed=", ".join(f"{scheme} {share:.5f}" for scheme, share in means.items()),
    )


def study(settings: Settings, points: pd.DataFrame, uptimes: Sequence[TraceFindings] = ()) -> Study:
    """Show the experiments, and what real traces of uptimes say to their assumptions."""
    table = by_run(points) if settings.kinds else None
    experiments = {} if table is None else {"points": points, "by_run": table}
    sections = () if table is None else (_best(table), *_topologies(points, table))
    return TEXTS.study(
        summary=_summary(settings, len(points)),
        findings=() if table is None else findings(table),
        sections=(*sections, *uptime_sections(TEXTS, uptimes)),
        tables={**experiments, **uptime_tables(uptimes)},
        plan=settings.plan,
        notes=(TEXTS.all["precise"],) if settings.precise else (),
    )


def _summary(settings: Settings, points: int) -> str:
    if not settings.kinds:
        return "Real traces of times up and down alone; the random systems were left out."
    runs = f"{settings.replications} runs of {settings.duration_s / 86_400:g} days each"
    length = "for as long as the noise demands" if settings.precise else runs
    return (
        f"{settings.systems} random {'system' if settings.systems == 1 else 'systems'} for each "
        f"topology, kind of machines and scheme, simulated {length}; {points:,} points."
    )


def _best(table: pd.DataFrame) -> Section:
    exact = table[table["model"] == "exact"]
    schemes = list(dict.fromkeys(exact["scheme"]))
    rows = []
    for (topology, machines), group in exact.groupby(["topology", "machines"], sort=False):
        by_scheme = group.set_index("scheme")
        best = " = ".join(best_schemes(by_scheme["actual"], by_scheme["noise"]))
        means = {**dict.fromkeys(schemes), **by_scheme["actual"]}
        rows.append({"topology": topology, "machines": machines, "best": best, **means})
    further = "".join(f" | {scheme} = {{{scheme}:.5f}}" for scheme in schemes)
    return TEXTS.section("best", TEXTS.grid("best", rows, further))


def best_schemes(means: pd.Series, noise: pd.Series) -> list[str]:
    """Name the scheme with the largest share, then those that the noise may have put below it."""
    best = str(means.idxmax())
    return [best] + [
        str(each)
        for each in means.index
        if each != best and means[best] - means[each] <= math.hypot(noise[best], noise[each])
    ]


def _topologies(points: pd.DataFrame, table: pd.DataFrame) -> Iterator[Section]:
    for topology, rows in table.groupby("topology", sort=False):
        name = str(topology)
        plots = _scatters(points[points["topology"] == topology])
        heading = f"{name[0].upper()}{name[1:]}"
        yield TEXTS.section("topology", _errors(name, rows), *plots, topology=heading)


def _errors(topology: str, table: pd.DataFrame) -> TextTable:
    cell = "{mean_absolute:.5f} ({maximum:.4f})"
    exact, paper = (
        table[table["model"] == model].set_index(["machines", "scheme"])
        for model in ("exact", "paper")
    )
    by_paper = {key: cell.format_map(row) for key, row in paper.iterrows()}
    rows = [
        {**row, "machines": key[0], "scheme": key[1], "paper": by_paper.get(key, "the same")}
        for key, row in exact.iterrows()
    ]
    return TEXTS.grid("errors", rows, topology=topology)


def _scatters(points: pd.DataFrame) -> Iterator[Scatter]:
    schemes = list(dict.fromkeys(points["scheme"]))
    shown = points[points["model"] == "exact"]
    for (machines, scheme), group in shown.groupby(["machines", "scheme"], sort=False):
        same = shown[shown["machines"] == machines]
        lowest = float(same[["predicted", "actual"]].min().min())
        steps = 100 if lowest > 0.9 else 10
        title = f"{machines}: {scheme}"
        yield scatter(title, group, schemes.index(scheme), math.floor(lowest * steps) / steps)


EXPERIMENT = Experiment(texts=TEXTS, settings=Settings, run=run)
