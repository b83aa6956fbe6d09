"""What the fault-tolerance paper claims, and what our runs say to that."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from tidings.model.study import Finding

NEAR = 0.02  # what we read "accurately" as: the mean absolute error of on-time shares
# What we read "as well as" as: a difference of mean shares that operators would not pay for.
EQUAL = 0.0005
SURE = 2.0  # standard errors from which on a difference is told


class Difference(NamedTuple):
    """By how much something is above something else, and its standard error (at most)."""

    value: float
    se: float


def all_above_zero(differences: Iterable[Difference]) -> bool | None:
    """Whether all differences are above 0; None where the noise is too large to tell.

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
        """The simulated mean on-time share under every scheme."""
        rows = self.rows[(self.rows["machines"] == machines) & (self.rows["model"] == "exact")]
        return dict(zip(rows["scheme"], rows["actual"], strict=True))

    def gain(self, machines: str, better: str, worse: str) -> Difference:
        """By how much one scheme's simulated mean share is above another's."""
        return self.apart((machines, better), (machines, worse))

    def apart(self, first: tuple[str, str], second: tuple[str, str]) -> Difference:
        """By how much the mean share is larger in one case (machines, scheme) than in another."""
        rows = self.rows[self.rows["model"] == "exact"].set_index(["machines", "scheme"])
        (one, one_se), (two, two_se) = (
            rows.loc[[case], ["actual", "actual_se"]].to_numpy()[0] for case in (first, second)
        )
        return Difference(float(one - two), math.hypot(one_se, two_se))

    @property
    def machines(self) -> list[str]:
        """The kinds of machines that were run."""
        return list(dict.fromkeys(self.rows["machines"]))


Answer = tuple[str, bool | None] | None  # what was found, whether the claim holds (None: open)


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
    # What chance explains is held neither against the model nor for it.
    if worst["mean_absolute"] <= NEAR:
        return text, True
    return text, None if worst["mean_absolute"] - worst["noise"] <= NEAR else False


def _machines_matter_more(evidence: Evidence) -> Answer:
    if len(evidence.machines) < 2:
        return None
    by_scheme = evidence.gain("low-end", "buffering", "periodic")
    by_machines = evidence.apart(("high-end", "periodic"), ("low-end", "periodic"))
    more = evidence.apart(("high-end", "periodic"), ("low-end", "buffering"))
    text = (
        f"buffering gains {by_scheme.value:.3f} on low-end machines, high-end ones "
        f"{by_machines.value:.3f} (standard errors up to {max(by_scheme.se, by_machines.se):.4f})"
    )
    return text, all_above_zero([by_scheme, more])


def _ranking_of_low_end(evidence: Evidence) -> Answer:
    if "low-end" not in evidence.machines:
        return None
    means = evidence.mean("low-end")
    ranked = sorted(means, key=lambda scheme: -means[scheme])
    wanted = ["bypass-buffering", "bypass", "buffering", "periodic"]
    steps = [evidence.gain("low-end", *pair) for pair in itertools.pairwise(wanted)]
    text = ", ".join(f"{scheme} {means[scheme]:.4f}" for scheme in ranked)
    noise = max(each.se for each in steps)
    return f"{text} (standard errors of differences up to {noise:.4f})", all_above_zero(steps)


def _no_need_to_bypass(evidence: Evidence) -> Answer:
    if "high-end" not in evidence.machines:
        return None
    means = evidence.mean("high-end")
    best = max(means, key=lambda scheme: means[scheme])
    gain = evidence.gain("high-end", "bypass-buffering", "buffering")
    above = evidence.gain("high-end", "buffering", "bypass")
    listed = ", ".join(f"{scheme} {share:.5f}" for scheme, share in means.items())
    text = (
        f"best: {best}; bypass-buffering gains {gain.value:+.5f} ± {gain.se:.5f} over buffering "
        f"({listed})"
    )
    return text, all_above_zero([Difference(EQUAL - gain.value, gain.se), above])


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
