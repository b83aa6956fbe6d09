"""Events counted between two moments: wanted, delivered and on time, by subscriber."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple


class EventCounts(NamedTuple):
    """How many events a subscriber wanted, received at all, and received on time."""

    wanted: int
    delivered: int
    on_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What became of the events published between two moments, by subscriber."""

    from_ns: int
    until_ns: int
    counts: Mapping[str, EventCounts]


def added(counts: Iterable[EventCounts]) -> EventCounts:
    """Add counts up.

    >>> added([EventCounts(wanted=3, delivered=2, on_time=1)] * 2)
    EventCounts(wanted=6, delivered=4, on_time=2)
    """
    every = list(counts)
    return EventCounts(
        wanted=sum(each.wanted for each in every),
        delivered=sum(each.delivered for each in every),
        on_time=sum(each.on_time for each in every),
    )


def joined(one: Stretch, other: Stretch) -> Stretch:
    """Make one stretch of two that follow each other."""
    names = [*one.counts, *(name for name in other.counts if name not in one.counts)]
    counts = {
        name: added(each.counts[name] for each in (one, other) if name in each.counts)
        for name in names
    }
    return Stretch(from_ns=one.from_ns, until_ns=other.until_ns, counts=counts)
