"""The time that traces cover, and its division into equal batches."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError

NANOSECONDS = 1_000_000_000


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
        """The same window, ended earlier; at least a tenth of it must remain.

        >>> TraceWindow(from_ns=0, until_ns=10 * NANOSECONDS).shortened(2.5).seconds
        7.5
        """
        if not 0 <= by_s <= 0.9 * self.seconds:
            raise InvalidTracesError(
                f"to settle for {by_s:g} s leaves too little of a window of {self.seconds:g} s; "
                "wants at most nine tenths of it"
            )
        return replace(self, until_ns=self.until_ns - round(by_s * NANOSECONDS))

    def holds(self, at_ns: Column) -> Column:
        """Whether a moment lies in the window."""
        return (at_ns >= F.lit(self.from_ns)) & (at_ns < F.lit(self.until_ns))

    def batch(self, at_ns: Column, batches: int) -> Column:
        """Which of so many equal parts of the window holds a moment; beyond its ends, the nearest.

        Whole numbers throughout, so that every engine agrees on the last nanosecond.
        """
        width = -(-(self.until_ns - self.from_ns) // batches)
        index = F.call_function("div", at_ns - F.lit(self.from_ns), F.lit(width))
        inside = F.least(F.greatest(index, F.lit(0)), F.lit(batches - 1)).cast("int")
        return F.when(at_ns.isNotNull(), inside)  # greatest and least pass over nulls


@dataclass(frozen=True, slots=True, kw_only=True)
class PartedWindow(TraceWindow):
    """A window whose batches are those of its parts, of which each begins where another ends.

    Of n batches each, those of the first part are numbered from 0 on, those of the second from n.
    """

    parts: tuple[TraceWindow, ...]

    def batch(self, at_ns: Column, batches: int) -> Column:
        """Which batch of which part holds a moment."""
        found = self.parts[0].batch(at_ns, batches)
        for place, part in enumerate(self.parts[1:], start=1):
            here = part.batch(at_ns, batches) + F.lit(place * batches)
            found = F.when(at_ns >= F.lit(part.from_ns), here).otherwise(found)
        return found
