"""What the content-timeliness paper claims of its predictions, and what our runs say to that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from tidings.model.study import Finding

ALMOST_ALL = 0.95  # what we read "almost all" as
SAME = 1e-9  # two models that "produce the same result"
_EXPONENTIAL = ("exponential", "exponential")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The runs of one load: points, errors by setting, errors by skewness."""

    points: pd.DataFrame
    by_setting: pd.DataFrame
    by_skewness: pd.DataFrame

    def of(self, model: str, measure: str = "mean_absolute") -> dict[tuple[str, str], float]:
        """A measure of one model's errors, by (publishing, matching)."""
        rows = self.by_setting[self.by_setting["model"] == model]
        keys = zip(rows["publishing"], rows["matching"], strict=True)
        return dict(zip(keys, rows[measure], strict=True))


# What was found, and whether the claim holds; None where the runs cannot tell.
Answer = tuple[str, bool] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the paper says, where, and how our runs are asked about it."""

    section: str
    says: str
    ask: Callable[[Evidence], Answer]


def findings(
    points: pd.DataFrame, by_setting: pd.DataFrame, by_skewness: pd.DataFrame
) -> list[Finding]:
    """Every claim under every load, as far as the runs can tell."""
    found = []
    for load in dict.fromkeys(by_setting["load"]):
        tables = (each[each["load"] == load] for each in (points, by_setting, by_skewness))
        evidence = Evidence(**dict(zip(Evidence.__slots__, tables, strict=True)))
        for claim in CLAIMS:
            answer = claim.ask(evidence)
            if answer is not None:
                text, holds = answer
                about = {"section": claim.section, "says": claim.says, "case": f"{load} load"}
                found.append(Finding(**about, found=text, holds=holds))
    return found


def _best_where_exponential(evidence: Evidence) -> Answer:
    found = evidence.of("mm1")
    if _EXPONENTIAL not in found or len(found) < 2:
        return None
    others = {key: value for key, value in found.items() if key != _EXPONENTIAL}
    nearest = min(others, key=lambda key: others[key])
    text = (
        f"mean absolute error {found[_EXPONENTIAL]:.4f} there, elsewhere at least "
        f"{others[nearest]:.4f} ({'/'.join(nearest)})"
    )
    return text, found[_EXPONENTIAL] < others[nearest]


def _a_lower_bound(evidence: Evidence) -> Answer:
    shares = evidence.of("mm1", "at_most_actual")
    shares.pop(_EXPONENTIAL, None)
    if not shares:
        return None
    text = (
        f"between {min(shares.values()):.2f} and {max(shares.values()):.2f} of the subscribers, "
        f"by setting (we take almost all as {ALMOST_ALL:g})"
    )
    return text, min(shares.values()) >= ALMOST_ALL


def _burstiness_helps(evidence: Evidence) -> Answer:
    simple, improved = evidence.of("mm1"), evidence.of("gg1")
    settings = [key for key in improved if key in simple and key != _EXPONENTIAL]
    if not settings:
        return None
    better = [key for key in settings if improved[key] < simple[key]]
    worse = [
        f"{'/'.join(key)} {improved[key]:.4f} against {simple[key]:.4f}"
        for key in settings
        if key not in better
    ]
    text = f"in {len(better)} of {len(settings)} settings"
    return text + (f"; not in {', '.join(worse)}" if worse else ""), not worse


def _same_where_exponential(evidence: Evidence) -> Answer:
    rows = evidence.points[
        (evidence.points["publishing"] == "exponential")
        & (evidence.points["matching"] == "exponential")
        & (evidence.points["alpha"] == 1.0)
    ]
    values = {
        model: rows[rows["model"] == model].set_index(["seed", "subscriber"])["predicted"]
        for model in ("mm1", "gg1")
    }
    if any(each.empty for each in values.values()):
        return None
    largest = float((values["mm1"] - values["gg1"]).abs().max())
    return f"the largest difference is {largest:.1e}", largest <= SAME


def _too_flat_is_worse(evidence: Evidence) -> Answer:
    rows = evidence.by_skewness
    series = {
        model: dict(zip(each["alpha"], each["mean_absolute"], strict=True))
        for model, each in rows.groupby("model", sort=False)
        if model in ("mm1", "law")  # gg1 is the same as mm1 here
    }
    paper = series.get("mm1", {})
    if not {0.5, 2.0} <= set(paper):
        return None
    parts = [
        f"{model}: " + ", ".join(f"{value:.4f} at α = {alpha:g}" for alpha, value in each.items())
        for model, each in series.items()
    ]
    return "mean absolute error, " + "; ".join(parts), paper[0.5] > paper[2.0]


CLAIMS = (
    Claim(
        section="5.2",
        says="The M/M/1 model is most accurate where intervals and matching are exponential.",
        ask=_best_where_exponential,
    ),
    Claim(
        section="5.2",
        says="Elsewhere almost all of its predictions are at most the actual value.",
        ask=_a_lower_bound,
    ),
    Claim(
        section="5.3",
        says="The G/G/1 model is more accurate than M/M/1 where something is not exponential.",
        ask=_burstiness_helps,
    ),
    Claim(
        section="5.3",
        says="Where all is exponential both models give the same.",
        ask=_same_where_exponential,
    ),
    Claim(
        section="5.4",
        says="Accuracy falls slightly for α above 1, but significantly for α below 1.",
        ask=_too_flat_is_worse,
    ),
)
