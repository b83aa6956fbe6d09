"""The time that traces cover, and its division into equal batches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError

NANOSECONDS = 1_000_000_000
HOUR_NS = 3_600 * NANOSECONDS
DAY_NS = 24 * HOUR_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceWindow:
    """From one moment (included) until another (excluded), in nanoseconds.

    ``unobserved_ns`` of it, in gaps between traces that were put together, nobody watched.

    >>> TraceWindow(from_ns=0, until_ns=2_500_000_000).seconds
    2.5
    """

    from_ns: int
    until_ns: int
    unobserved_ns: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        if not 0 <= self.from_ns < self.until_ns:
            raise InvalidTracesError(
                f"the observed window runs from {self.from_ns} to {self.until_ns} ns; "
                "wants a beginning of 0 or later and an end after it"
            )

    @property
    def seconds(self) -> float:
        """For how long it was observed."""
        return (self.until_ns - self.from_ns - self.unobserved_ns) / NANOSECONDS

    def shortened(self, by_s: float) -> TraceWindow:
        """End the window earlier by so many seconds; at least a tenth of it must remain.

        >>> TraceWindow(from_ns=0, until_ns=10 * NANOSECONDS).shortened(2.5).seconds
        7.5
        """
        if not 0 <= by_s <= 0.9 * self.seconds:
            raise InvalidTracesError(
                f"--settle {by_s:g} s leaves too little of a recorded time of "
                f"{self.seconds:g} s; wants at most nine tenths of it"
            )
        return replace(self, until_ns=self.until_ns - round(by_s * NANOSECONDS))

    def holds(self, at_ns: Column) -> Column:
        """Test whether a moment lies in the window."""
        return (at_ns >= F.lit(self.from_ns)) & (at_ns < F.lit(self.until_ns))

    def batch(self, at_ns: Column, batches: int) -> Column:
        """Compute which of so many equal parts of the window holds a moment.

        Beyond the window's ends it is the nearest part. Whole numbers throughout, so that every
        engine agrees on the last nanosecond.
        """
        return _part_of(at_ns - F.lit(self.from_ns), self.until_ns - self.from_ns, batches)

    def piece(self, at_ns: Column, batches: int) -> Column:
        """Compute the same for parts without gaps: only after number k·batches − 1 may be one.

        Rows that are put in order, and told from the one before, are so within a piece.
        """
        return self.batch(at_ns, batches)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartedWindow(TraceWindow):
    """A window whose batches are those of its parts, of which each begins where another ends.

    Of n batches each, those of the first part are numbered from 0 on, those of the second from n.
    """

    parts: tuple[TraceWindow, ...]

    def batch(self, at_ns: Column, batches: int) -> Column:
        """Compute which batch of which part holds a moment."""
        number = self.parts[0].batch(at_ns, batches)
        for place, part in enumerate(self.parts[1:], start=1):
            here = part.batch(at_ns, batches) + F.lit(place * batches)
            number = F.when(at_ns >= F.lit(part.from_ns), here).otherwise(number)
        return number


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyHours(TraceWindow):
    """The same hours of every day (UTC) between two moments: a time of day, whatever the date.

    They begin ``begin_ns`` after midnight and last ``length_ns``, beyond the next midnight perhaps.

    >>> night = DailyHours(from_ns=0, until_ns=2 * DAY_NS, begin_ns=22 * HOUR_NS,
    ...                    length_ns=8 * HOUR_NS)
    >>> night.seconds / 3600  # until 6 and from 22 on, twice
    16.0
    """

    begin_ns: int
    length_ns: int

    @property
    def seconds(self) -> float:
        """For how long it was observed."""
        return self._watched_ns(self.from_ns, self.until_ns) / NANOSECONDS

    def holds(self, at_ns: Column) -> Column:
        """Test whether a moment lies in the hours of a day, between the two moments."""
        between = TraceWindow.holds(self, at_ns)
        return between & (self._into_day(at_ns) < F.lit(self.length_ns))

    def batch(self, at_ns: Column, batches: int) -> Column:
        """Compute which of so many parts, equal in watched time, holds a moment."""
        into_ns = F.least(self._into_day(at_ns), F.lit(self.length_ns))
        watched_ns = self._day(at_ns) * F.lit(self.length_ns) + into_ns
        so_far = watched_ns - F.lit(self._watched_at(self.from_ns))
        return _part_of(so_far, self._watched_ns(self.from_ns, self.until_ns), batches)

    def piece(self, at_ns: Column, batches: int) -> Column:
        """Compute which of so many equal pieces of the hours of which day holds a moment."""
        first = (self.from_ns + self._shift_ns) // DAY_NS
        here = _part_of(self._into_day(at_ns), self.length_ns, batches)
        return ((self._day(at_ns) - F.lit(first)) * batches + here).cast("int")

    @property
    def _shift_ns(self) -> int:
        """What makes a moment one of days that begin with the hours; never below 0 with it."""
        return DAY_NS - self.begin_ns

    def _day(self, at_ns: Column) -> Column:
        return F.call_function("div", at_ns + F.lit(self._shift_ns), F.lit(DAY_NS))

    def _into_day(self, at_ns: Column) -> Column:
        return F.pmod(at_ns + F.lit(self._shift_ns), F.lit(DAY_NS))

    def _watched_at(self, at_ns: int) -> int:
        days, into_ns = divmod(at_ns + self._shift_ns, DAY_NS)
        return days * self.length_ns + min(into_ns, self.length_ns)

    def _watched_ns(self, from_ns: int, until_ns: int) -> int:
        """Compute how much of the time between two moments lies in the hours, in nanoseconds."""
        return self._watched_at(until_ns) - self._watched_at(from_ns)


def _part_of(so_far_ns: Column, whole_ns: int, parts: int) -> Column:
    """Compute in which of so many equal parts of a time this much of it ends.

    Beyond the time, it is the nearest part.
    """
    index = F.call_function("div", so_far_ns, F.lit(-(-whole_ns // parts)))
    inside = F.least(F.greatest(index, F.lit(0)), F.lit(parts - 1)).cast("int")
    return F.when(so_far_ns.isNotNull(), inside)  # greatest and least pass over nulls
