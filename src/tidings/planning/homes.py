"""Which broker should be whose home, so that most subscribers get what they should.

What a subscriber gets depends on where everybody else is: events that are wanted at a broker cross
and load all brokers on their way. So what each would get at each broker, and what that does to
everybody else, is worked out to first order for all moves at once. For these numbers the best
assignment is found by integer programming (SciPy's HiGHS), then by moves of one and exchanges of
two. Where theory agrees, that is the next start; else the moves that promise most are tried one by
one. The few best of all are predicted as a whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize, sparse

from tidings.errors import UnsupportedError
from tidings.model.arrays import Floats
from tidings.model.json_text import plain
from tidings.model.progress import Progress, with_step_numbers
from tidings.model.shown import Shown
from tidings.model.system import System
from tidings.planning.choices import ALL
from tidings.planning.evidence import MISSES, Evidence, Play, Target, TargetStanding, weigh
from tidings.planning.selections import check_target, means
from tidings.theory.other_homes import Elsewhere

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
        """Move the movers to these homes."""
        everyone = list(self.system.subscribers)
        for index, home in zip(self.movers, homes, strict=True):
            everyone[index] = replace(everyone[index], at=home)
        return replace(self.system, subscribers=tuple(everyone))

    def evidence(self, homes: Homes) -> Evidence:
        """Predict how the system stands with these homes; every assignment is predicted once."""
        if homes not in self.known:
            self.progress("proving an assignment")
            self.known[homes] = weigh(self.placed(homes), self.target)
        return self.known[homes]

    def worth(self, homes: Homes) -> Worth:
        """Rate an assignment: share of subscribers that get their target, then on-time share."""
        standing = self.evidence(homes).predicted
        return round(standing.satisfied, 12), standing.on_time

    def allows(self, homes: Homes) -> bool:
        """Test whether an assignment is allowed.

        Movers are where they may be, and no broker is home to more than it may be.
        """
        if not set(homes) <= set(self.brokers):
            return False
        return self.limit is None or bool(
            (self.resting() + self.heads() @ self.at(homes)).max(initial=0) <= self.limit
        )

    def heads(self) -> Counts:
        """Count the subscribers that each mover stands for."""
        return np.array([self.system.subscribers[index].count for index in self.movers])

    def resting(self) -> Counts:
        """Count, by broker, the subscribers that stay there whatever the movers do."""
        movers = set(self.movers)
        staying = [each for i, each in enumerate(self.system.subscribers) if i not in movers]
        return np.array([sum(e.count for e in staying if e.at == b) for b in self.brokers])

    def at(self, homes: Homes) -> Counts:
        """Make the matrix [mover, broker] with 1 where a mover is at home, else 0."""
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
    """Set up a search for homes of some subscribers among some brokers (all, where none is named).

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
    """Make the constraint that everybody has one home.

    ``others`` are variables after those that say where.
    """
    one = sparse.kron(sparse.eye_array(len(search.movers)), np.ones((1, len(search.brokers))))
    rest = sparse.csr_array((len(search.movers), others))
    return optimize.LinearConstraint(sparse.hstack([one, rest]), 1.0, 1.0)


def _least_limit(search: Search) -> int:
    """Compute the least number of subscribers that the fullest broker can be home to."""
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


MET = 10.0  # how much more a met target counts than any on-time share
MOST_TRIED = 20  # moves, the most promising first, that are tried one by one
MOST_SWAPS = 200  # exchanges, the most promising first, that are estimated
MOST_CLIMBS = 8
NOTHING = 1e-9  # a gain that is rounding

Move = tuple[tuple[int, str], ...]  # movers by position, each with its new home


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """Assignments around one of them; theory's answers are those of the network from there."""

    search: Search
    here: Homes
    weights: Floats  # [subscriber]: events per second that all its heads want
    elsewhere: Elsewhere | None  # None: theory has no answer, only whole predictions have
    known: dict[Homes, Worth] = field(default_factory=dict)  # of those that were tried
    _guessed: dict[Homes, Worth] = field(default_factory=dict)

    def worth(self, homes: Homes) -> Worth:
        """Rate an assignment by theory; where that has no answer, by prediction."""
        if homes not in self.known:
            self.search.progress("trying an assignment")
            self.known[homes] = (
                self.search.worth(homes)
                if self.elsewhere is None
                else self._worth_of(self.elsewhere.shares_at(homes))
            )
        return self.known[homes]

    def is_better(self, one: Homes, other: Homes) -> bool:
        """Test whether one assignment is worth more than another, or allowed where that is not."""
        return not self.search.allows(other) or _exceeds(self.worth(one), self.worth(other))

    def proposals(self) -> Iterator[Homes]:
        """Give assignments to try: the best by estimate, then single moves and exchanges."""
        if self.elsewhere is None:
            moves = [*self._singles(self.here), *self._swaps(self.here)]
        else:
            highest = self._climbed()
            if highest != self.here:
                yield highest
            moves = sorted(
                [*self._singles(self.here), *self._likely_swaps(self.here)],
                key=lambda move: self._guess(applied(self.here, move)),
                reverse=True,
            )
        every = (applied(self.here, move) for move in moves)
        yield from itertools.islice(filter(self.search.allows, every), MOST_TRIED)

    # ---- by estimate -----------------------------------------------------------------------------

    def _climbed(self) -> Homes:
        """Find the best assignment by estimate: programmed, then by moves as long as they help."""
        self.search.progress("the best assignment by estimate")
        best, proposed = self.here, self.search.programmed(self._gains)
        if not self.search.allows(best) or _exceeds(self._guess(proposed), self._guess(best)):
            best = proposed
        for _ in range(MOST_CLIMBS):
            before, moves = best, [*self._singles(best), *self._likely_swaps(best)]
            worths = {move: self._guess(applied(best, move)) for move in moves}
            for move in sorted(moves, key=lambda each: worths[each], reverse=True):
                if not _exceeds(worths[move], self._guess(before)):
                    break
                moved = applied(best, move)
                if self.search.allows(moved) and _exceeds(self._guess(moved), self._guess(best)):
                    best = moved
            if best == before:
                break
        return best

    def _singles(self, homes: Homes) -> list[Move]:
        every = itertools.product(range(len(homes)), self.search.brokers)
        return [((row, broker),) for row, broker in every if broker != homes[row]]

    def _swaps(self, homes: Homes) -> Iterator[Move]:
        for one, other in itertools.combinations(range(len(homes)), 2):
            if homes[one] != homes[other]:
                yield (one, homes[other]), (other, homes[one])

    def _likely_swaps(self, homes: Homes) -> list[Move]:
        """List the exchanges whose two moves together would gain most, each taken alone."""
        gains, column = self._gains, {name: at for at, name in enumerate(self.search.brokers)}

        def gain(move: Move) -> float:
            return sum(float(gains[row, column[home]]) for row, home in move)

        movable = (move for move in self._swaps(homes) if all(home in column for _, home in move))
        return sorted(movable, key=gain, reverse=True)[:MOST_SWAPS]

    @cached_property
    def _gains(self) -> Floats:
        """[mover, broker]: the worth of everything if one alone moved there, as one number."""
        rows = range(len(self.here))
        worths = [
            [self._guess(applied(self.here, ((row, broker),))) for broker in self.search.brokers]
            for row in rows
        ]
        return np.array([[MET * met + shares for met, shares in row] for row in worths])

    def _guess(self, homes: Homes) -> Worth:
        if homes not in self._guessed:
            assert self.elsewhere is not None
            self._guessed[homes] = self._worth_of(self.elsewhere.shares_near(homes))
        return self._guessed[homes]

    def _worth_of(self, shares: Floats) -> Worth:
        met = self.search.target.satisfied_by(self.search.system, shares)
        known = ~np.isnan(shares) & (self.weights > 0.0)
        whole = self.weights[known].sum()
        on_time = float(shares[known] @ self.weights[known]) / whole if whole > 0.0 else 1.0
        return round(met, 12), on_time


def outlook(search: Search, here: Homes) -> Outlook:
    """Give the outlook from an assignment."""
    rows = search.evidence(here).outcome.subscribers
    elsewhere = Elsewhere(
        system=search.placed(here), movers=search.movers, progress=search.progress
    )
    try:
        _ = elsewhere.by_arrivals
    except UnsupportedError:
        return Outlook(search=search, here=here, weights=_weights(rows), elsewhere=None)
    return Outlook(search=search, here=here, weights=_weights(rows), elsewhere=elsewhere)


def _weights(rows: pd.DataFrame) -> Floats:
    weights: Floats = (rows["wanted_per_s"] * rows["count"]).to_numpy()
    return weights


def applied(homes: Homes, move: Move) -> Homes:
    """Give the homes after a move."""
    moved = list(homes)
    for row, home in move:
        moved[row] = home
    return tuple(moved)


def _exceeds(one: Worth, other: Worth) -> bool:
    return one[0] > other[0] or (one[0] == other[0] and one[1] > other[1] + NOTHING)


MOST_ROUNDS = 5
MOST_PLAYED = 5  # assignments, best first, until the simulation speaks for one


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """Homes of those that may move, and how the system stands with them."""

    homes: dict[str, str]
    evidence: Evidence

    @property
    def standing(self) -> TargetStanding:
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
        """Give the advice as plain data for JSON."""
        moves = {
            name: {"from": self.present.homes[name], "to": home}
            for name, home in self.best.homes.items()
            if home != self.present.homes[name]
        }
        simulated = self.best.evidence.simulated
        document = {
            "moves": moves,
            "present": self.present.standing.to_document(),
            "best": self.best.standing.to_document(),
            "simulated": None if simulated is None else simulated.to_document(),
            "most": self.most,
            "least_possible": self.limit,
            "verdict": self.verdict,
            "predictions": self.predictions,
        }
        return dict(plain(document))


def assign_homes(search: Search, play: Play | None = None) -> HomesAdvice:
    """Find the best homes by search, and how much better they are than the present ones.

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
    """List the assignments that are worth most; the present one, too, where it is allowed."""
    allowed = [each for each in looked if search.allows(each)]
    most = sorted(allowed, key=lambda each: looked[each], reverse=True)[:MOST_PLAYED]
    return list(dict.fromkeys([*([start] if search.allows(start) else []), *most]))


def _proved(search: Search, best: Homes, play: Play | None) -> tuple[Homes, Evidence]:
    """Find the best homes that simulation does not speak against.

    Tries those that were looked at and are predicted to meet the target, the best first; if the
    best is not, or none of them holds, it is the best all the same.
    """
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
