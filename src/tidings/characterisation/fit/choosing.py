"""How the members of a consumer group come by their events, as far as traces tell.

Two things tell. Members that are served in turn handle almost equally many events: their numbers
vary far less than if chance had chosen. And where events are bound to a member as they come, one
takes up its next event while others have nothing to do; members that share one queue never do.
Who is chosen at random, whoever is busy, handles as many events as the others but for chance: where
numbers differ by more, events were bound in another way, by who was least busy, say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from scipy import stats

from tidings.model.arrays import Floats
from tidings.model.consumers import CHOICES

IN_TURN, AT_RANDOM = CHOICES[0], CHOICES[2]
_TURNS = 0.1  # variance of the numbers of members over that of chance, in turn
_IDLE = 0.1  # share of events taken up while others were idle, from which on they were bound
_ENOUGH = 200  # events taken up at once, and events of each member
_CHANCE = 1e-3  # numbers that chance makes as unlike less often than this are no random choice


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which member gets the next event, and how many it may hold; 0: it is handed all at once."""

    choose: str
    prefetch: int


COMPETING = Chosen(choose=IN_TURN, prefetch=1)


def find_choice(events: Floats, pickups: Mapping[int, int]) -> Chosen | None:
    """Tell how members are chosen, by their numbers of ``events`` [member, batch].

    None: traces do not tell. ``pickups`` counts events that members took up at once after another,
    by how many others were busy then.

    >>> import numpy as np
    >>> in_turn = np.tile([[50.0], [51.0]], 10)
    >>> find_choice(in_turn, {})
    Chosen(choose='round robin', prefetch=0)
    >>> by_chance = np.tile([[50.0, 62.0], [63.0, 54.0]], 5)
    >>> find_choice(by_chance, {0: 900, 1: 2100})
    Chosen(choose='random', prefetch=0)
    >>> find_choice(by_chance, {0: 20, 1: 2100})
    Chosen(choose='round robin', prefetch=1)
    >>> find_choice(by_chance * [[1], [2]], {0: 900, 1: 2100}) is None
    True
    """
    others = len(events) - 1
    if others < 1 or events.sum(axis=1).min() < _ENOUGH:
        return None
    mean = events.mean(axis=0)
    filled = mean > 0
    spread = ((events - mean) ** 2).sum(axis=0)[filled] / mean[filled]
    if spread.mean() < _TURNS * others:
        return Chosen(choose=IN_TURN, prefetch=0)
    taken = sum(pickups.values())
    if taken < _ENOUGH:
        return None
    idle = sum(count for busy, count in pickups.items() if busy < others)
    if idle <= _IDLE * taken:
        return COMPETING
    by_chance = float(stats.chisquare(events.sum(axis=1)).pvalue) >= _CHANCE
    return Chosen(choose=AT_RANDOM, prefetch=0) if by_chance else None
