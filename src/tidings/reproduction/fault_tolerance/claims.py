"""What the fault-tolerance paper claims, and what our runs say to that."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pandas as pd

from tidings.model.study import Finding

NEAR = 0.02  # what we read "accurately" as: the mean absolute error of on-time shares
# What we read "as well as" as: a difference of mean shares that operators would not pay for.
EQUAL = 0.0005


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The errors and mean shares of one topology, from exact predictions and from the paper's."""

    topology: str
    rows: pd.DataFrame

    def mean(self, machines: str) -> dict[str, float]:
        """The simulated mean on-time share under every scheme."""
        rows = self.rows[(self.rows["machines"] == machines) & (self.rows["model"] == "exact")]
        return dict(zip(rows["scheme"], rows["actual"], strict=True))

    @property
    def machines(self) -> list[str]:
        """The kinds of machines that were run."""
        return list(dict.fromkeys(self.rows["machines"]))


Answer = tuple[str, bool] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the paper says, where, of which topologies, and how our runs are asked about it."""

    section: str
    says: str
    trees: bool  # of trees, or of graphs
    ask: Callable[[Evidence], Answer]


def findings(by_run: pd.DataFrame) -> Iterator[Finding]:
    """Every claim for every topology, as far as the runs can tell."""
    for topology, rows in by_run.groupby("topology", sort=False):
        evidence = Evidence(topology=str(topology), rows=rows)
        for claim in CLAIMS:
            if claim.trees != (topology == "tree"):
                continue
            answer = claim.ask(evidence)
            if answer is not None:
                found, holds = answer
                yield Finding(
                    section=claim.section,
                    says=claim.says,
                    case=evidence.topology,
                    found=found,
                    holds=holds,
                )


def _accurate(evidence: Evidence) -> Answer:
    rows = evidence.rows
    # What the paper calls its model: exact for static schemes, its own formulas for bypassing.
    own = rows[(rows["model"] == "paper") | ~rows["scheme"].str.startswith("bypass")]
    worst = own.loc[own["mean_absolute"].idxmax()]
    text = (
        f"mean absolute error at most {worst['mean_absolute']:.4f} "
        f"({worst['machines']}, {worst['scheme']}; chance alone {worst['noise']:.4f})"
    )
    # What chance explains is not held against the model.
    return text, bool(worst["mean_absolute"] - worst["noise"] <= NEAR)


def _machines_matter_more(evidence: Evidence) -> Answer:
    if len(evidence.machines) < 2:
        return None
    low, high = evidence.mean("low-end"), evidence.mean("high-end")
    by_scheme = low["buffering"] - low["periodic"]
    by_machines = high["periodic"] - low["periodic"]
    text = f"buffering gains {by_scheme:.3f} on low-end machines, high-end ones {by_machines:.3f}"
    return text, 0 < by_scheme < by_machines


def _ranking_of_low_end(evidence: Evidence) -> Answer:
    if "low-end" not in evidence.machines:
        return None
    means = evidence.mean("low-end")
    ranked = sorted(means, key=lambda scheme: -means[scheme])
    wanted = ["bypass-buffering", "bypass", "buffering", "periodic"]
    return ", ".join(f"{scheme} {means[scheme]:.4f}" for scheme in ranked), ranked == wanted


def _no_need_to_bypass(evidence: Evidence) -> Answer:
    if "high-end" not in evidence.machines:
        return None
    means = evidence.mean("high-end")
    best = max(means, key=lambda scheme: means[scheme])
    gain = means["bypass-buffering"] - means["buffering"]
    listed = ", ".join(f"{scheme} {share:.5f}" for scheme, share in means.items())
    text = f"best: {best}; bypass-buffering gains {gain:+.5f} over buffering ({listed})"
    return text, gain <= EQUAL and means["buffering"] > means["bypass"]


CLAIMS = (
    Claim(
        section="5.2.1",
        says="The model predicts the reliability of every subscriber accurately.",
        trees=True,
        ask=_accurate,
    ),
    Claim(
        section="5.2.1",
        says="Buffering events gains reliability, but better machines gain more.",
        trees=True,
        ask=_machines_matter_more,
    ),
    Claim(
        section="5.2.2",
        says="The model predicts the reliability of every subscriber accurately.",
        trees=False,
        ask=_accurate,
    ),
    Claim(
        section="5.2.2",
        says="On low-end machines bypass + buffering is best, then bypass + periodic, "
        "static + buffering, static + periodic.",
        trees=False,
        ask=_ranking_of_low_end,
    ),
    Claim(
        section="5.2.2",
        says="On high-end machines static + buffering is best, as good as bypass + buffering.",
        trees=False,
        ask=_no_need_to_bypass,
    ),
)
