"""Which broker should be whose home, so that most subscribers get what they should.

What a subscriber gets depends on where everybody else is: events that are wanted at a broker cross
and load all brokers on their way. So what each would get at each broker, and what that does to
everybody else, is worked out to first order for all moves at once. For these numbers the best
assignment is found by integer programming (SciPy's HiGHS), then by moves of one and exchanges of
two. Where theory agrees, that is the next start; else the moves that promise most are tried one by
one. The few best of all are predicted as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from tidings.model.json_text import plain
from tidings.model.progress import with_step_numbers
from tidings.model.shown import Shown
from tidings.model.system import System
from tidings.planning.evidence import MISSES, Evidence, Play, Standing, weigh
from tidings.planning.home_search import Homes, Search, Worth
from tidings.planning.outlook import MOST_TRIED, outlook

MOST_ROUNDS = 5
MOST_PLAYED = 5  # assignments, best first, until the simulation speaks for one


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Homes of those that may move, and how the system stands with them."""

    homes: dict[str, str]
    evidence: Evidence

    @property
    def standing(self) -> Standing:
        """How the system stands with them, predicted."""
        return self.evidence.predicted


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HomesAdvice(Shown):
    """The best assignment found, the present one, and the system with the best."""

    _table = "standings"
    _columns = ("homes", "satisfied", "on_time", "margin", "worst")

    best: Assignment
    present: Assignment
    predictions: int
    plan: System
    most: int | None  # heads that a broker should be home to at most, as asked
    limit: int | None  # ... and the least possible at or above it, which is kept

    @property
    def verdict(self) -> str:
        """Whether the targets are met, within the limit that was asked for."""
        return self.best.evidence.verdict if self.limit == self.most else MISSES

    @property
    def standings(self) -> pd.DataFrame:
        """How the system stands at present, and with the best homes."""
        both = {"present": self.present, "best": self.best}
        rows = [{"homes": name, **each.standing.to_document()} for name, each in both.items()]
        return pd.DataFrame(rows)

    def to_document(self) -> dict[str, Any]:
        """The advice as plain data for JSON."""
        moves = {
            name: {"from": self.present.homes[name], "to": home}
            for name, home in self.best.homes.items()
            if home != self.present.homes[name]
        }
        simulated = self.best.evidence.simulated
        return dict(
            plain(
                {
                    "moves": moves,
                    "present": self.present.standing.to_document(),
                    "best": self.best.standing.to_document(),
                    "simulated": None if simulated is None else simulated.to_document(),
                    "most": self.most,
                    "least_possible": self.limit,
                    "verdict": self.verdict,
                    "predictions": self.predictions,
                }
            )
        )


def assign_homes(search: Search, play: Play | None = None) -> HomesAdvice:
    """The best homes that the search finds, and how much better they are than the present ones.

    With ``play`` the best is played through; where that speaks against what is predicted to meet
    the target, the next best of those that were looked at are.
    """
    steps = MOST_ROUNDS * (len(search.system.brokers) + MOST_TRIED) + 2 * MOST_PLAYED
    search = replace(search, progress=with_step_numbers(search.progress, steps))
    start = tuple(search.system.subscribers[index].at for index in search.movers)
    looked = _looked_at(search, start)
    best = max(_finalists(search, looked, start), key=search.worth)
    best, evidence = _proved(search, best, play)
    return HomesAdvice(
        best=_assignment(search, best, evidence),
        present=_assignment(search, start, search.evidence(start)),
        predictions=len(looked),
        plan=search.placed(best),
        most=search.most,
        limit=search.limit,
    )


def _looked_at(search: Search, start: Homes) -> dict[Homes, Worth]:
    """Look around in rounds, each from the best of the last; what assignments are worth."""
    best, looked = start, dict[Homes, Worth]()
    for _ in range(MOST_ROUNDS):
        view = outlook(search, best)
        looked[best] = view.worth(best)
        better = next((each for each in view.proposals() if view.is_better(each, best)), None)
        looked |= view.known
        if better is None:
            break
        best = better
    return looked


def _finalists(search: Search, looked: dict[Homes, Worth], start: Homes) -> list[Homes]:
    """The assignments that are worth most; the present one, too, where it is allowed."""
    allowed = [each for each in looked if search.allows(each)]
    most = sorted(allowed, key=lambda each: looked[each], reverse=True)[:MOST_PLAYED]
    return list(dict.fromkeys([*([start] if search.allows(start) else []), *most]))


def _proved(search: Search, best: Homes, play: Play | None) -> tuple[Homes, Evidence]:
    """The best homes that are not spoken against, if any that were looked at meet the target."""
    others = sorted(
        (
            each
            for each, known in search.known.items()
            if known.predicted.meets and search.allows(each)
        ),
        key=search.worth,
        reverse=True,
    )
    weighed: dict[Homes, Evidence] = {}
    for each in [best, *(other for other in others if other != best)][:MOST_PLAYED]:
        search.progress(
            f"the best but {len(weighed)}, simulated" if weighed else "the best, simulated"
        )
        weighed[each] = weigh(search.placed(each), search.target, play)
        if play is None or weighed[each].meets or not search.evidence(best).predicted.meets:
            return each, weighed[each]
    return best, weighed[best]


def _assignment(search: Search, homes: Homes, evidence: Evidence) -> Assignment:
    names = [search.system.subscribers[index].name for index in search.movers]
    return Assignment(homes=dict(zip(names, homes, strict=True)), evidence=evidence)
