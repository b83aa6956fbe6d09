"""Events counted between two moments: wanted, delivered and on time, by subscriber."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCounts:
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
