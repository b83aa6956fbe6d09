"""The notification-loss experiments as a study: curves of spreading, d against T_ON, covering."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from studies.notification_loss.claims import findings, over_topologies
from studies.notification_loss.experiment import (
    CHOICES,
    FAMILY_S,
    PAPER,
    PAPER_RAPIDITY,
    SIMULATED_STAY,
    Results,
)
from tidings.model.study import Curves, Grid, Points, Section, Study
from tidings.prediction.notification_loss import notified_share


def study(results: Results) -> Study:
    """The experiments, to be shown."""
    plan = results.plan
    return Study(
        paper="notification-loss",
        title="Notification loss: the paper's experiments, run again",
        summary=f"{plan.couples} couples on each of {plan.topologies} random overlays of "
        f"{plan.shape.nodes} brokers, {plan.publications} publication(s) for each T_ON.",
        settings=PAPER,
        choices=CHOICES,
        findings=tuple(findings(results)),
        sections=(_spreading(results), _shares(results), _covering(results), _family()),
        tables={
            "topologies": results.topologies,
            "points": results.shares,
            "covering": results.covering,
        },
        plan=plan.to_document(),
    )


def _points(x: object, y: object) -> Points:
    pairs = zip(np.asarray(x, dtype=float), np.asarray(y, dtype=float), strict=True)
    return tuple((float(a), float(b)) for a, b in pairs)


def _spreading(results: Results) -> Section:
    rows = tuple(
        (
            f"{row['seed']:.0f}",
            f"{row['spread_s']:.2f} s",
            f"{row['r']:.2f}",
            f"{row['typical_s']:.2f} s",
            f"{row['r_typical']:.2f}",
            f"{row['mean_s']:.2f} s",
        )
        for _, row in results.topologies.iterrows()
    )
    columns = (
        "topology", "S, worst", "r", "S, mean over origins", "r of that", "mean X",
    )  # fmt: skip
    return Section(
        title="How fast subscriptions and events spread",
        words="B(t) is the share of the other brokers that have what was issued at time 0, over "
        "all origins (the paper's figure 6). Subscriptions and events spread alike here; S is "
        "T_sub + T_diff, X what a subscription and an event take together.",
        exhibits=(
            Grid(title="Times to spread, and r by area", columns=columns, rows=rows),
            Curves(
                title="Share of brokers reached",
                lines={f"topology {s}": _points(*curve) for s, curve in results.curves.items()},
                x_label="seconds since it was issued",
                y_label="B(t)",
            ),
        ),
    )


def _shares(results: Results) -> Section:
    pooled = over_topologies(results.shares)
    rows = tuple(
        (
            f"{row['stay']:g}",
            f"{row['stay_s']:.1f} s",
            f"{row['sampled']:.3f} ± {row['sampled_se']:.3f}",
            f"{row['exact']:.4f}",
            f"{row['exact_all']:.4f}",
            f"{row['closed']:.4f}",
            f"{row['closed'] - row['exact_all']:+.4f}",
        )
        for _, row in pooled.iterrows()
    )
    columns = (
        "T_ON / S", "T_ON", "sampled", "exact", "exact, all", "closed form", "closed − exact",
    )  # fmt: skip
    return Section(
        title="How many notifications arrive, by how long a subscription lasts",
        words="The paper's figures 7 and 9: means over topologies, S = T_sub + T_diff. Exact is "
        "the expectation over the drawn couples, and over all couples there are. Below S the "
        "closed form is continued by ours, and the exact expectation over couples shows what the "
        "shape of the curves does.",
        exhibits=(
            Grid(title="Notification probability d", columns=columns, rows=rows),
            Curves(
                title="d against T_ON",
                lines={
                    "exact": _points(pooled["stay"], pooled["exact_all"]),
                    "closed form": _points(pooled["stay"], pooled["closed"]),
                },
                marks={"sampled": _points(pooled["stay"], pooled["sampled"])},
                x_label="T_ON / (T_sub + T_diff)",
                y_label="d",
            ),
        ),
    )


def _covering(results: Results) -> Section:
    by = results.covering.groupby(["coverers", "stay"])
    means = by["exact"].mean().unstack("coverers")
    columns = ("T_ON / S", *(f"{count} others" for count in means.columns))
    rows = tuple(
        (f"{stay:g}", *(f"{share:.4f}" for share in shares))
        for stay, shares in zip(means.index, means.to_numpy(), strict=True)
    )
    return Section(
        title="What covering filters of others change",
        words="Subscribers at random brokers that stay for ever and whose filters contain the new "
        "one. It need spread only until it meets a way on which events come already, and what is "
        "on that way then is told as well. Exact, over the drawn couples; for one T_ON also "
        "simulated, with what spreading costs.",
        exhibits=(
            _costs(results),
            Grid(title="d by number of covering subscribers", columns=columns, rows=rows),
            Curves(
                title="d with covering filters of others",
                lines={f"{c} others": _points(means.index, means[c]) for c in means.columns},
                x_label="T_ON / (T_sub + T_diff)",
                y_label="d",
            ),
        ),
    )


def _costs(results: Results) -> Grid:
    sampled = results.covering.dropna(subset=["sampled"])
    means = sampled.groupby("coverers")[["exact", "sampled", "messages"]].mean()
    errors = sampled.groupby("coverers")["sampled_se"].apply(_mean_error)
    return Grid(
        title=f"Simulated, T_ON = {SIMULATED_STAY:g} S",
        columns=("others", "exact", "sampled", "messages for a subscription"),
        rows=tuple(
            (
                f"{count}",
                f"{row['exact']:.4f}",
                f"{row['sampled']:.3f} ± {errors[count]:.3f}",
                f"{row['messages']:.1f}",
            )
            for count, row in means.iterrows()
        ),
    )


def _mean_error(errors: pd.Series) -> float:
    """The standard error of a mean of independent values, from theirs."""
    return math.sqrt(float((errors**2).sum())) / len(errors)


def _family() -> Section:
    stays_s = np.linspace(1.0, 200.0, 200)
    return Section(
        title="The family of curves",
        words=f"The paper's figure 10: r = {PAPER_RAPIDITY} and several sums T_sub + T_diff; only "
        "T_ON of at least the sum, where the closed form is the paper's.",
        exhibits=(
            Curves(
                title="d against T_ON for several T_sub + T_diff",
                lines={
                    f"{sum_s:g} s": _points(
                        stays_s[stays_s >= sum_s],
                        notified_share(stays_s[stays_s >= sum_s], sum_s, PAPER_RAPIDITY),
                    )
                    for sum_s in FAMILY_S
                },
                x_label="T_ON, seconds",
                y_label="d",
            ),
        ),
    )
