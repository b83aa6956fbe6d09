"""Why events are not on time, and which single change helps most.

What each cause costs is known from the paths of one prediction. It says which changes are worth
trying; these are predicted by theory, and the best of them, like the system as it is, with the
error that every prediction promises.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from tidings.model.causes import LEAST, Cost, causes_of, total_costs
from tidings.model.json_text import plain
from tidings.model.outcome import Outcome, by_share
from tidings.model.outcome_files import costs_document
from tidings.model.progress import Progress, within
from tidings.model.shown import Shown
from tidings.model.system import System
from tidings.planning.change_search import AS_IT_IS_SECONDS, OWN, Aim, ChangeSearch, Remedy
from tidings.planning.evidence import Target
from tidings.planning.remedies import promising
from tidings.prediction.predict import predict

FEW_CAUSES = 3  # whose remedies are tried for a single best change, the dearest


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Budget(Shown):
    """What every cause costs, the busiest broker, and single changes by what they give."""

    _table = "remedies"
    _columns = ("change", "gain", "error", "on_time")

    outcome: Outcome
    totals: list[Cost]  # on-time share of all events gained without it
    remedies: tuple[Remedy, ...] = ()  # best first, proven ones before others
    untried: dict[str, str] = field(default_factory=dict)  # changes not predicted, and why
    target: float | None = None
    aim: Aim | None = None  # the targets in the system, where they are not surely met

    @property
    def best(self) -> Remedy | None:
        """The change that helps most; None where none does."""
        return next(iter(self.remedies), None)

    @property
    def bottleneck(self) -> dict[str, Any]:
        """The busiest broker, its utilisation and its mean wait in seconds; empty where none is."""
        rows = self.outcome.brokers
        busy = rows[rows["utilisation"] > 0]
        if busy.empty:
            return {}
        busiest = busy.loc[busy["utilisation"].round(9).idxmax()]
        return {name: busiest[name] for name in ("broker", "utilisation", "wait_mean_s")}

    def headline(self) -> str:
        """Say how many events are on time in percent, and what costs most."""
        cause = f"; dearest: {self.totals[0].cause.words}" if self.totals else ""
        return f"{100 * self.outcome.on_time:.1f} % on time{cause}"

    def to_document(self, worst: int | None = None) -> dict[str, Any]:
        """Give the budget as plain data for JSON, the worst subscribers first."""
        own = ["subscriber", "broker", "count", "on_time", "error", "by", "delay_mean_s"]
        rows = by_share(self.outcome.subscribers)[own]
        of = causes_of(self.outcome)
        subscribers = [
            {**row, "causes": costs_document(of.get(row["subscriber"], ()))}
            for row in (rows if worst is None else rows.head(worst)).to_dict("records")
        ]
        document = {
            "on_time": self.outcome.on_time,
            "target": self.target,
            "causes": costs_document(self.totals),
            "bottleneck": self.bottleneck,
            "remedies": [each.to_document() for each in self.remedies],
            "aim": None if self.aim is None else _aim(self.aim),
            "untried": self.untried,
            "subscribers": subscribers,
        }
        return dict(plain(document))


def _aim(aim: Aim) -> dict[str, Any]:
    least = aim.least and {**aim.least.to_document(), "verdict": aim.least.verdict}
    return {**aim.standing.to_document(), "least": least, "is_smallest": aim.is_smallest}


def explain(
    system: System,
    *,
    remedies: bool = True,
    target: float | None = None,
    of: Collection[str] | None = None,
    goal: Target = OWN,
    progress: Progress = lambda _: None,
) -> Budget:
    """Work out what each cause costs in on-time share, and which single changes help most.

    With a ``target`` for the on-time share, changes are as small as meets it; without, the smallest
    that meets what everybody should get (``goal``; by default the targets in the system) is looked
    for too. ``of`` names the subscribers whose events count; by default those of all do.
    """
    progress("as it is")
    everybody = predict(
        system,
        causes=True,
        delays=False,
        error_bars=False,
        seconds=AS_IT_IS_SECONDS,
        progress=within(progress, "as it is"),
    )
    search = ChangeSearch(
        system=system, everybody=everybody, target=target, progress=progress, of=of, goal=goal
    )
    outcome = search.outcome
    totals = total_costs(outcome)
    tried: tuple[Remedy, ...] = ()
    untried: dict[str, str] = {}
    if remedies and totals:
        tried, untried = search.tried(list(promising(system, outcome, totals)))
    aim = search.aim(tried) if remedies and target is None else None
    tried = search.proven(tried) if tried else ()
    return Budget(
        outcome=outcome, totals=totals, remedies=tried, untried=untried, target=target, aim=aim
    )


def advise(system: System, outcome: Outcome, progress: Progress = lambda _: None) -> Budget:
    """Find the single change that helps most against the dearest causes of a prediction.

    Where the system has targets that are not surely met, also the smallest change that meets them.
    """
    totals = total_costs(outcome)
    search = ChangeSearch(system=system, everybody=outcome, target=None, progress=progress)
    tried, untried = search.tried(list(promising(system, outcome, totals, FEW_CAUSES)))
    best = tuple(each for each in tried if each.gain > LEAST)[:1]
    aim = search.aim(tried)
    best = search.proven(best) if best else ()
    return Budget(outcome=outcome, totals=totals, remedies=best, untried=untried, aim=aim)
