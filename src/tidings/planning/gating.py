"""A gate: does everybody get what they should, and if not, who does not, why, and what helps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tidings.model.causes import LEAST
from tidings.model.json_text import plain
from tidings.model.progress import Progress
from tidings.model.shown import Shown
from tidings.model.system import System
from tidings.planning.budget import Budget, explain
from tidings.planning.change_search import Remedy
from tidings.planning.changes import changed
from tidings.planning.evidence import MEETS, MISSES, OPEN, Evidence, Play, Target, errors, weigh


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Gate(Shown):
    """Whether targets are met; where they are not, what keeps those from theirs who miss them."""

    _table = "subscribers"
    _columns = ("subscriber", "on_time", "error", "target", "verdict", "broker")

    evidence: Evidence
    rows: list[dict[str, Any]]  # of each subscriber with a target, the furthest below it first
    budget: Budget | None = None  # of those who miss their target
    remedy: Remedy | None = None  # the single change that helps them most
    after: str = ""  # the verdict with that change
    least: Remedy | None = None  # the smallest single change that is known to meet all targets

    @property
    def verdict(self) -> str:
        """Whether targets are met, missed, or that is open."""
        return self.evidence.verdict

    @property
    def met(self) -> bool:
        """Whether the gate opens: only where it is sure that the targets are met."""
        return self.evidence.meets

    def to_document(self) -> dict[str, Any]:
        """Give the gate as plain data for JSON."""
        budget = {} if self.budget is None else self.budget.to_document()
        causes = {row["subscriber"]: row["causes"] for row in budget.get("subscribers", ())}
        remedy = self.remedy and {**self.remedy.to_document(), "verdict": self.after}
        simulated = self.evidence.simulated
        document = {
            "verdict": self.evidence.verdict,
            "predicted": self.evidence.predicted.to_document(),
            "simulated": None if simulated is None else simulated.to_document(),
            "subscribers": [
                {**row, "causes": causes.get(row["subscriber"], [])} for row in self.rows
            ],
            "causes": budget.get("causes", []),
            "remedy": remedy,
            "least": self.least and self.least.to_document(),
        }
        return dict(plain(document))


def hold(
    system: System,
    target: Target,
    play: Play | None = None,
    *,
    progress: Progress = lambda _: None,
) -> Gate:
    """Hold a system against its targets; ``play`` simulates what prediction leaves open."""
    evidence = weigh(system, target, play)
    rows = _rows(system, target, evidence)
    if evidence.meets:
        return Gate(evidence=evidence, rows=rows)
    missing = [row["subscriber"] for row in rows if row["verdict"] == MISSES]
    open_ = [row["subscriber"] for row in rows if row["verdict"] == OPEN]
    budget = explain(system, of=missing or open_, goal=target, progress=progress)
    best = next((each for each in budget.remedies if each.gain > LEAST), None)
    after = ""
    if best is not None:
        progress(f"targets after {best.change}")
        after = weigh(changed(system, best.changes), target, play).verdict
    least = _enough(system, target, play, budget, progress)
    if least is not None and best is not None and least.changes == best.changes:
        least = None  # it is told already
    return Gate(evidence=evidence, rows=rows, budget=budget, remedy=best, after=after, least=least)


def _enough(
    system: System, target: Target, play: Play | None, budget: Budget, progress: Progress
) -> Remedy | None:
    """Find the smallest change that surely meets all targets; None where none is known."""
    least = budget.aim.least if budget.aim else None
    if least is None:
        return None
    verdict = least.verdict
    if verdict == OPEN:
        progress(f"targets after {least.change}")
        verdict = weigh(changed(system, least.changes), target, play).verdict
    return least if verdict == MEETS else None


def _rows(system: System, target: Target, evidence: Evidence) -> list[dict[str, Any]]:
    """Compare each subscriber with its target, the furthest below first."""
    own = ["subscriber", "broker", "count", "on_time", "error", "by"]
    table = evidence.outcome.subscribers[own].assign(target=target.wanted(system))
    error = errors(evidence.outcome)
    low, high = (table["on_time"] + sign * error for sign in (-1.0, 1.0))
    table["verdict"] = np.select(
        [low >= table["target"], high < table["target"]], [MEETS, MISSES], OPEN
    )
    asked = table[table["target"].notna() & table["on_time"].notna()]
    order = (asked["on_time"] - asked["target"]).round(12).sort_values(kind="stable").index
    rows: list[dict[str, Any]] = asked.loc[order].to_dict("records")
    return rows
