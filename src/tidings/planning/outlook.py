"""The outlook from an assignment of homes: what others would be worth, and which to try."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd

from tidings.errors import UnsupportedError
from tidings.model.arrays import Floats
from tidings.planning.home_search import Homes, Search, Worth
from tidings.prediction.elsewhere import Elsewhere

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
        """What an assignment is worth by theory; where that has no answer, as predicted."""
        if homes not in self.known:
            self.search.progress("trying an assignment")
            self.known[homes] = (
                self.search.worth(homes)
                if self.elsewhere is None
                else self._worth_of(self.elsewhere.shares_at(homes))
            )
        return self.known[homes]

    def is_better(self, one: Homes, other: Homes) -> bool:
        """Whether one assignment is worth more than another, or allowed where that is not."""
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
    """The homes after a move."""
    moved = list(homes)
    for row, home in move:
        moved[row] = home
    return tuple(moved)


def _exceeds(one: Worth, other: Worth) -> bool:
    return one[0] > other[0] or (one[0] == other[0] and one[1] > other[1] + NOTHING)
