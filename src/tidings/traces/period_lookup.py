"""Planted periods as events look them up: all in one constant, cut into pieces of time.

What is looked through for one event is what touches one piece of one list: a period or two, however
many there are. The constant goes to tasks with their code; rows carry only where a list stands.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidings.traces.drawing import bound
from tidings.traces.planted_periods import Period, Periods
from tidings.traces.window import TraceWindow

PLACE = "struct<first int, last int, width_ns bigint>"  # of a list among all pieces
_PIECES = "array<array<struct<from_ns bigint, until_ns bigint>>>"

Place = dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodLookup:
    """Where the periods of each kind (``down``, ``away``, ``stays``) and name stand, and all."""

    places: Mapping[tuple[str, str], Place]
    pieces: Sequence[Sequence[Period]]
    from_ns: int

    def within(self, place: Column, at_ns: Column) -> Column:
        """Whether a moment lies in one of the periods at a place; null where there are none."""
        return bound(
            at_ns, lambda at: F.exists(self._near(place, at), lambda each: _holds(each, at))
        )

    def until(self, place: Column, at_ns: Column) -> Column:
        """The end of the period a moment lies in; null where it lies in none."""

        def end(at: Column) -> Column:
            held = F.filter(self._near(place, at), lambda each: _holds(each, at))
            return F.get(held, F.lit(0))["until_ns"]

        return bound(at_ns, end)

    def _near(self, place: Column, at_ns: Column) -> Column:
        """The periods that touch the piece of time a moment lies in; beyond the end, the last."""
        number = F.call_function("div", at_ns - F.lit(self.from_ns), place["width_ns"])
        text = json.dumps([[each._asdict() for each in piece] for piece in self.pieces])
        pieces = F.from_json(F.lit(text), _PIECES)  # a constant: parsed once, when planned
        return F.get(pieces, F.least(place["first"] + number, place["last"]).cast("int"))


def look_up(periods: Periods, window: TraceWindow) -> PeriodLookup:
    """Lists of periods cut into as many equal pieces of time as there are periods in each.

    >>> day = TraceWindow(from_ns=0, until_ns=10)
    >>> found = look_up(Periods(away={"bob": [Period(1, 3), Period(4, 8)]}), day)
    >>> [[tuple(each) for each in piece] for piece in found.pieces]
    [[(1, 3), (4, 8)], [(4, 8)]]
    >>> found.places
    {('away', 'bob'): {'first': 0, 'last': 1, 'width_ns': 5}}
    """
    kinds = {"down": periods.down, "away": periods.away, "stays": periods.stays}
    places: dict[tuple[str, str], Place] = {}
    pieces: list[list[Period]] = []
    for kind, by_name in kinds.items():
        for name, mine in by_name.items():
            count = max(1, len(mine))
            width_ns = -(-(window.until_ns - window.from_ns) // count)
            first = len(pieces)
            places[kind, name] = {"first": first, "last": first + count - 1, "width_ns": width_ns}
            pieces += _cut(mine, count, window.from_ns, width_ns)
    return PeriodLookup(places=places, pieces=pieces, from_ns=window.from_ns)


def _cut(periods: Sequence[Period], count: int, from_ns: int, width_ns: int) -> list[list[Period]]:
    """The periods that touch each piece of time; the last piece never ends."""
    pieces: list[list[Period]] = [[] for _ in range(count)]
    for each in periods:
        begins = min(max((each.from_ns - from_ns) // width_ns, 0), count - 1)
        ends = min(max((each.until_ns - 1 - from_ns) // width_ns, -1), count - 1)
        for piece in pieces[begins : ends + 1]:
            piece.append(each)
    return pieces


def _holds(period: Column, at_ns: Column) -> Column:
    return (period["from_ns"] <= at_ns) & (at_ns < period["until_ns"])
