"""Which broker should be whose home, so that most subscribers get what they should.

What a subscriber gets depends on where everybody else is: events that are wanted at a broker cross
and load all brokers on their way. So what each would get at each broker is predicted with the
others where they are, the best assignment for these numbers is found by integer programming
(SciPy's HiGHS), predicted as a whole, and taken as the next start, until it gets no better; then
single subscribers are moved, and pairs exchanged, as long as that helps.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import optimize, sparse

from tidings.errors import InvalidInputError
from tidings.model.outcome_files import plain
from tidings.model.system import System
from tidings.planning.evidence import Standing, foreseen
from tidings.planning.selections import ALL, check_target, means
from tidings.planning.targets import Target

MET = 10.0  # how much more a met target counts than any on-time share
MOST_ROUNDS = 5

Progress = Callable[[str], None]
Homes = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Homes of those that may move, and how the system stands with them."""

    homes: dict[str, str]
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class HomesAdvice:
    """The best assignment found, the present one, and the system with the best."""

    best: Assignment
    present: Assignment
    predictions: int
    plan: System

    def to_document(self) -> dict[str, Any]:
        """The advice as plain data for JSON."""
        moves = {
            name: {"from": self.present.homes[name], "to": home}
            for name, home in self.best.homes.items()
            if home != self.present.homes[name]
        }
        return dict(
            plain(
                {
                    "moves": moves,
                    "present": self.present.standing.to_document(),
                    "best": self.best.standing.to_document(),
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
    brokers: tuple[str, ...]
    most: int | None = None  # heads that a broker may be home to
    progress: Progress = lambda _: None
    known: dict[Homes, Standing] = field(default_factory=dict)

    def placed(self, homes: Homes) -> System:
        """The system with these homes of the movers."""
        everyone = list(self.system.subscribers)
        for index, home in zip(self.movers, homes, strict=True):
            everyone[index] = replace(everyone[index], at=home)
        return replace(self.system, subscribers=tuple(everyone))

    def stands(self, homes: Homes) -> Standing:
        """How the system stands with these homes; every assignment is predicted once."""
        if homes not in self.known:
            self.progress(f"assignment {len(self.known) + 1}")
            self.known[homes] = foreseen(self.placed(homes), self.target)
        return self.known[homes]

    def worth(self, homes: Homes) -> tuple[float, float]:
        """What is made as large as possible: subscribers with their target, then shares."""
        found = self.stands(homes)
        return round(found.satisfied, 12), found.on_time

    def fits(self, homes: Homes) -> bool:
        """Whether no broker is home to more than it may be."""
        if self.most is None:
            return True
        placed = self.placed(homes).subscribers
        return all(
            sum(each.count for each in placed if each.at == broker) <= self.most
            for broker in self.brokers
        )


def assign_homes(search: Search) -> HomesAdvice:
    """The best homes that the search finds, and how much better they are than the present ones."""
    start = tuple(search.system.subscribers[index].at for index in search.movers)
    best = start
    for _ in range(MOST_ROUNDS):
        proposed = _programmed(search, best)
        if proposed is None or not _better(search, proposed, best):
            break
        best = proposed
    best = _improved(search, best)
    return HomesAdvice(
        best=_assignment(search, best),
        present=_assignment(search, start),
        predictions=len(search.known),
        plan=search.placed(best),
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
    """A search for the homes of some subscribers among some brokers (all, where none is named)."""
    check_target(system, ("subscribers",), who)
    for name in brokers:
        check_target(system, ("brokers",), name)
    target.wanted(system)
    movers = tuple(i for i, each in enumerate(system.subscribers) if means(who, each))
    found = Search(
        system=system,
        target=target,
        movers=movers,
        brokers=tuple(brokers) or tuple(each.name for each in system.brokers),
        most=most,
        progress=progress,
    )
    heads = sum(each.count for each in system.subscribers)
    if most is not None and most * len(found.brokers) < heads:
        raise InvalidInputError(
            f"{len(found.brokers)} brokers with at most {most} subscribers each cannot be home to "
            f"{heads}"
        )
    return found


def _better(search: Search, one: Homes, other: Homes) -> bool:
    if not search.fits(other):
        return True
    return search.worth(one) > search.worth(other)


def _assignment(search: Search, homes: Homes) -> Assignment:
    names = [search.system.subscribers[index].name for index in search.movers]
    return Assignment(homes=dict(zip(names, homes, strict=True)), standing=search.stands(homes))


def _programmed(search: Search, homes: Homes) -> Homes | None:
    """The best assignment if what each gets at each broker were what it gets there alone moved."""
    gains = np.array(
        [
            [_alone(search, homes, row, broker) for broker in search.brokers]
            for row in range(len(homes))
        ]
    )
    rows, columns = gains.shape
    once = sparse.kron(sparse.eye_array(rows), np.ones((1, columns)))
    limits = [optimize.LinearConstraint(once, 1.0, 1.0)]
    if search.most is not None:
        everyone = search.system.subscribers
        heads = np.array([[everyone[index].count for index in search.movers]])
        resting = [each for i, each in enumerate(everyone) if i not in search.movers]
        taken = [sum(each.count for each in resting if each.at == b) for b in search.brokers]
        full = sparse.kron(heads, sparse.eye_array(columns))
        limits.append(optimize.LinearConstraint(full, 0.0, search.most - np.array(taken)))
    found = optimize.milp(
        -gains.ravel(), constraints=limits, integrality=np.ones(gains.size), bounds=(0.0, 1.0)
    )
    if found.x is None:
        return None
    chosen = np.argmax(found.x.reshape(gains.shape), axis=1)
    return tuple(search.brokers[int(at)] for at in chosen)


def _alone(search: Search, homes: Homes, row: int, broker: str) -> float:
    """The worth of one subscriber's move: its own and everybody's shares after it."""
    moved = (*homes[:row], broker, *homes[row + 1 :])
    found = search.stands(moved)
    return MET * found.satisfied + found.on_time


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
                if search.fits(each) and _better(search, each, best)
            ),
            None,
        )
        if better is None:
            return best
        best = better
