"""Which broker should be whose home, so that most subscribers get what they should.

What a subscriber gets depends on where everybody else is: events that are wanted at a broker cross
and load all brokers on their way. So what each would get at each broker is predicted with the
others where they are, the best assignment for these numbers is found by integer programming
(SciPy's HiGHS), predicted as a whole, and taken as the next start, until it gets no better; then
single subscribers are moved, and pairs exchanged, as long as that helps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize, sparse

from tidings.model.json_text import plain
from tidings.model.progress import Progress
from tidings.model.shown import Shown
from tidings.model.system import System
from tidings.planning.choices import ALL
from tidings.planning.evidence import MISSES, Evidence, Play, Standing, weigh
from tidings.planning.selections import check_target, means
from tidings.planning.targets import Target

MET = 10.0  # how much more a met target counts than any on-time share
MOST_ROUNDS = 5
MOST_PLAYED = 5  # assignments, best first, until the simulation speaks for one

Homes = tuple[str, ...]
Counts = NDArray[np.int64]


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


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search for homes: who may move where, and all assignments predicted so far."""

    system: System
    target: Target
    movers: tuple[int, ...]  # subscribers by position
    brokers: tuple[str, ...]  # where movers may be
    most: int | None = None  # heads that a broker should be home to at most, as asked
    limit: int | None = None  # ... that one can be: as asked, or the least that is possible
    progress: Progress = lambda _: None
    known: dict[Homes, Evidence] = field(default_factory=dict)

    def placed(self, homes: Homes) -> System:
        """The system with these homes of the movers."""
        everyone = list(self.system.subscribers)
        for index, home in zip(self.movers, homes, strict=True):
            everyone[index] = replace(everyone[index], at=home)
        return replace(self.system, subscribers=tuple(everyone))

    def evidence(self, homes: Homes) -> Evidence:
        """How the system stands with these homes; every assignment is predicted once."""
        if homes not in self.known:
            self.progress(f"assignment {len(self.known) + 1}")
            self.known[homes] = weigh(self.placed(homes), self.target)
        return self.known[homes]

    def worth(self, homes: Homes) -> tuple[float, float]:
        """What is made as large as possible: subscribers with their target, then shares."""
        standing = self.evidence(homes).predicted
        return round(standing.satisfied, 12), standing.on_time

    def allows(self, homes: Homes) -> bool:
        """Whether movers are where they may be, and no broker is home to more than it may be."""
        if not set(homes) <= set(self.brokers):
            return False
        return self.limit is None or bool(
            (self.resting() + self.heads() @ self.at(homes)).max(initial=0) <= self.limit
        )

    def heads(self) -> Counts:
        """How many each mover stands for."""
        return np.array([self.system.subscribers[index].count for index in self.movers])

    def resting(self) -> Counts:
        """By broker the heads that stay there whatever the movers do."""
        movers = set(self.movers)
        staying = [each for i, each in enumerate(self.system.subscribers) if i not in movers]
        return np.array([sum(e.count for e in staying if e.at == b) for b in self.brokers])

    def at(self, homes: Homes) -> Counts:
        """[mover, broker] 1 where it is at home, else 0."""
        return np.array([[int(home == broker) for broker in self.brokers] for home in homes])


def assign_homes(search: Search, play: Play | None = None) -> HomesAdvice:
    """The best homes that the search finds, and how much better they are than the present ones.

    With ``play`` the best is played through; where that speaks against what is predicted to meet
    the target, the next best of those that were looked at are.
    """
    start = tuple(search.system.subscribers[index].at for index in search.movers)
    best = start
    for _ in range(MOST_ROUNDS):
        proposed = _programmed(search, best)
        if not _better(search, proposed, best):
            break
        best = proposed
    best, evidence = _proved(search, _improved(search, best), play)
    return HomesAdvice(
        best=_assignment(search, best, evidence),
        present=_assignment(search, start, search.evidence(start)),
        predictions=len(search.known),
        plan=search.placed(best),
        most=search.most,
        limit=search.limit,
    )


def search_for(
    system: System,
    target: Target,
    *,
    who: str = ALL,
    brokers: Sequence[str] = (),
    most: int | None = None,
    progress: Progress = lambda _: None,
) -> Search:
    """A search for the homes of some subscribers among some brokers (all, where none is named).

    Where ``most`` is less than is possible, the least that is possible is the limit.
    """
    check_target(system, ("subscribers",), who)
    for name in brokers:
        check_target(system, ("brokers",), name)
    target.wanted(system)
    search = Search(
        system=system,
        target=target,
        movers=tuple(i for i, each in enumerate(system.subscribers) if means(who, each)),
        brokers=tuple(dict.fromkeys(brokers)) or tuple(each.name for each in system.brokers),
        most=most,
        progress=progress,
    )
    return search if most is None else replace(search, limit=max(most, _least_limit(search)))


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


def _better(search: Search, one: Homes, other: Homes) -> bool:
    return not search.allows(other) or search.worth(one) > search.worth(other)


def _assignment(search: Search, homes: Homes, evidence: Evidence) -> Assignment:
    names = [search.system.subscribers[index].name for index in search.movers]
    return Assignment(homes=dict(zip(names, homes, strict=True)), evidence=evidence)


def _programmed(search: Search, homes: Homes) -> Homes:
    """The best assignment if what each gets at each broker were what it gets there alone moved."""
    gains = np.array(
        [
            [_alone(search, homes, row, broker) for broker in search.brokers]
            for row in range(len(homes))
        ]
    )
    limits = [_once(search)]
    if search.limit is not None:
        full = sparse.kron(search.heads()[np.newaxis], sparse.eye_array(len(search.brokers)))
        room = search.limit - search.resting()
        limits.append(optimize.LinearConstraint(full, -np.inf, room))
    solution = optimize.milp(
        -gains.ravel(),
        constraints=limits,
        integrality=np.ones(gains.size),
        bounds=(0.0, 1.0),
        options={"mip_rel_gap": 0.0},
    )
    chosen = np.argmax(solution.x.reshape(gains.shape), axis=1)
    return tuple(search.brokers[int(at)] for at in chosen)


def _once(search: Search, others: int = 0) -> optimize.LinearConstraint:
    """Everybody has one home; ``others`` are variables after those that say where."""
    one = sparse.kron(sparse.eye_array(len(search.movers)), np.ones((1, len(search.brokers))))
    rest = sparse.csr_array((len(search.movers), others))
    return optimize.LinearConstraint(sparse.hstack([one, rest]), 1.0, 1.0)


def _least_limit(search: Search) -> int:
    """The least number of heads that the fullest broker can be home to."""
    rows, columns = len(search.movers), len(search.brokers)
    full = sparse.kron(search.heads()[np.newaxis], sparse.eye_array(columns))
    below = sparse.hstack([full, -np.ones((columns, 1))])  # heads at each, less the limit
    solution = optimize.milp(
        np.append(np.zeros(rows * columns), 1.0),
        constraints=[
            _once(search, 1),
            optimize.LinearConstraint(below, -np.inf, -search.resting()),
        ],
        integrality=np.ones(rows * columns + 1),
        bounds=optimize.Bounds(0.0, np.append(np.ones(rows * columns), np.inf)),
        options={"mip_rel_gap": 0.0},
    )
    least: int = round(solution.fun)
    return least


def _alone(search: Search, homes: Homes, row: int, broker: str) -> float:
    """The worth of one subscriber's move: its own and everybody's shares after it."""
    standing = search.evidence((*homes[:row], broker, *homes[row + 1 :])).predicted
    return MET * standing.satisfied + standing.on_time


def _neighbours(search: Search, homes: Homes) -> Iterator[Homes]:
    for row, broker in itertools.product(range(len(homes)), search.brokers):
        if broker != homes[row]:
            yield (*homes[:row], broker, *homes[row + 1 :])
    for one, other in itertools.combinations(range(len(homes)), 2):
        if homes[one] != homes[other]:
            swapped = list(homes)
            swapped[one], swapped[other] = homes[other], homes[one]
            yield tuple(swapped)


def _improved(search: Search, homes: Homes) -> Homes:
    """The assignment after every single move and exchange that helps."""
    best = homes
    while True:
        better = next(
            (
                each
                for each in _neighbours(search, best)
                if search.allows(each) and _better(search, each, best)
            ),
            None,
        )
        if better is None:
            return best
        best = better
