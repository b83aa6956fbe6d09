"""The fault-tolerance experiments as a study: claims, errors, scatter plots, the best scheme."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from studies.fault_tolerance.claims import findings
from studies.fault_tolerance.experiment import NOISE, Plan, Results
from studies.fault_tolerance.random_systems import CHOICES, PAPER
from studies.fault_tolerance.real_uptimes import TraceFindings
from studies.fault_tolerance.uptime_sections import uptime_sections
from tidings.model.study import Grid, Points, Scatter, Section, Study

_READING = (
    "Shares are on-time shares, means over subscribers. Noise is the mean absolute error that a "
    "perfect prediction would show, because the simulation is a sample; subscribers share brokers, "
    "so it does not average out over them. 'exact' is what Tidings predicts by default, 'paper' "
    "the paper's own formulas (corrected where they exceed 1), where they differ."
)
_LONGER = (
    "Runs are simulated until chance alone accounts for a mean absolute error of at most "
    + ", ".join(f"{noise:g} ({machines})" for machines, noise in NOISE.items())
    + "; the paper simulated 10 runs of 14 days."
)


def study(results: Results, uptimes: Sequence[TraceFindings] = ()) -> Study:
    """The experiments, and what real traces of uptimes say to their assumptions, to be shown."""
    plan = results.plan
    ran = bool(plan.machines)
    experiments = {"points": results.points, "by_run": results.by_run} if ran else {}
    return Study(
        paper="fault-tolerance",
        title="Fault tolerance: the paper's experiments, run again",
        summary=_summary(plan, len(results.points)),
        settings=PAPER,
        choices=(*CHOICES, *((_LONGER,) if plan.precise else ())),
        findings=tuple(findings(results.by_run)) if ran else (),
        sections=(
            *((_best(results.by_run), *_topologies(results)) if ran else ()),
            *uptime_sections(uptimes),
        ),
        tables={**experiments, **_uptime_tables(uptimes)},
        plan=plan.to_document(),
    )


def _uptime_tables(uptimes: Sequence[TraceFindings]) -> dict[str, pd.DataFrame]:
    if not uptimes:
        return {}
    return {
        "uptime_laws": pd.concat([each.by_law for each in uptimes], ignore_index=True),
        "uptime_groups": pd.concat([each.by_group for each in uptimes], ignore_index=True),
    }


def _summary(plan: Plan, points: int) -> str:
    if not plan.machines:
        return "Real traces of times up and down alone; the random systems were left out."
    runs = f"{plan.replications} runs of {plan.duration_s / 86_400:g} days each"
    length = "for as long as the noise demands" if plan.precise else runs
    return (
        f"{plan.systems} random {'system' if plan.systems == 1 else 'systems'} for each topology, "
        f"kind of machines and scheme, simulated {length}; {points:,} points."
    )


def _best(by_run: pd.DataFrame) -> Section:
    exact = by_run[by_run["model"] == "exact"]
    schemes = list(dict.fromkeys(exact["scheme"]))
    rows = []
    for (topology, machines), group in exact.groupby(["topology", "machines"], sort=False):
        means = dict(zip(group["scheme"], group["actual"], strict=True))
        best = " = ".join(
            best_schemes(means, dict(zip(group["scheme"], group["noise"], strict=True)))
        )
        shown = (f"{means[each]:.5f}" if each in means else "" for each in schemes)
        rows.append((str(topology), str(machines), best, *shown))
    return Section(
        title="Which scheme is best for which machines",
        words="Simulated on-time share, mean over subscribers and systems; = is between schemes "
        "that the noise does not tell apart from the best. What bypassing gains depends on how "
        "long the static path is, and so on where the topic's tree has its root.",
        exhibits=(
            Grid(
                title="On-time share under each scheme",
                columns=("topology", "machines", "best", *schemes),
                rows=tuple(rows),
                names=3,
            ),
        ),
    )


def best_schemes(means: Mapping[str, float], noise: Mapping[str, float]) -> list[str]:
    """The scheme with the largest share, then those whose share the noise may have put below it."""
    best = max(means, key=lambda scheme: means[scheme])
    return [best] + [
        each
        for each in means
        if each != best and means[best] - means[each] <= math.hypot(noise[best], noise[each])
    ]


def _topologies(results: Results) -> Iterator[Section]:
    for topology, rows in results.by_run.groupby("topology", sort=False):
        points = results.points[results.points["topology"] == topology]
        yield Section(
            title=f"{str(topology)[0].upper()}{str(topology)[1:]}",
            words=_READING,
            exhibits=(_errors(str(topology), rows), *_scatters(points)),
        )


def _errors(topology: str, rows: pd.DataFrame) -> Grid:
    found = []
    for (machines, scheme), group in rows.groupby(["machines", "scheme"], sort=False):
        models = {row["model"]: row for row in group.to_dict("records")}
        exact, paper = models["exact"], models.get("paper")
        found.append(
            (
                str(machines),
                str(scheme),
                f"{exact['actual']:.4f}",
                f"{exact['predicted']:.4f}",
                f"{exact['noise']:.5f}",
                f"{exact['mean_absolute']:.5f} ({exact['maximum']:.4f})",
                f"{paper['mean_absolute']:.5f} ({paper['maximum']:.4f})" if paper else "the same",
            )
        )
    return Grid(
        title=f"Mean absolute error (largest), {topology}",
        columns=("machines", "scheme", "simulated", "predicted", "noise", "exact", "paper"),
        rows=tuple(found),
        names=2,
    )


def _scatters(points: pd.DataFrame) -> Iterator[Scatter]:
    schemes = list(dict.fromkeys(points["scheme"]))
    shown = points[points["model"] == "exact"]
    for (machines, scheme), group in shown.groupby(["machines", "scheme"], sort=False):
        same = shown[shown["machines"] == machines]
        lowest = float(same[["predicted", "actual"]].min().min())
        digits = 2 if lowest > 0.9 else 1
        clouds: dict[str, Points] = {
            f"system {seed}": tuple(zip(each["predicted"], each["actual"], strict=True))
            for seed, each in group.groupby("seed", sort=False)
        }
        yield Scatter(
            title=f"{machines}: {scheme}",
            clouds=clouds,
            series=schemes.index(scheme),
            low=math.floor(lowest * 10**digits) / 10**digits,
        )
