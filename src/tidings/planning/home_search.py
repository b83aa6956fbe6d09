"""A search for home brokers: who may move where, how many a broker may be home to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, sparse

from tidings.model.arrays import Floats
from tidings.model.progress import Progress
from tidings.model.system import System
from tidings.planning.choices import ALL
from tidings.planning.evidence import Evidence, weigh
from tidings.planning.selections import check_target, means
from tidings.planning.targets import Target

Homes = tuple[str, ...]
Counts = NDArray[np.int64]
Worth = tuple[float, float]  # share of subscribers that get their target, share of events in time


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search for homes: who may move where, and all assignments proven so far."""

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
            self.progress("proving an assignment")
            self.known[homes] = weigh(self.placed(homes), self.target)
        return self.known[homes]

    def worth(self, homes: Homes) -> Worth:
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

    def programmed(self, gains: Floats) -> Homes:
        """Find the homes with the largest sum of gains [mover, broker] that are allowed."""
        limits = [_once(self)]
        if self.limit is not None:
            full = sparse.kron(self.heads()[np.newaxis], sparse.eye_array(len(self.brokers)))
            limits.append(optimize.LinearConstraint(full, -np.inf, self.limit - self.resting()))
        solution = optimize.milp(
            -gains.ravel(),
            constraints=limits,
            integrality=np.ones(gains.size),
            bounds=(0.0, 1.0),
            options={"mip_rel_gap": 0.0},
        )
        chosen = np.argmax(solution.x.reshape(gains.shape), axis=1)
        return tuple(self.brokers[int(at)] for at in chosen)


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
