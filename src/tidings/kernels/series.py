"""How often to simulate: replications until what matters is known as well as is wanted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

from tidings.kernels.replications import more_replications
from tidings.model.progress import Progress

Counts = TypeVar("Counts")
Counted = TypeVar("Counted", contravariant=True)


class Clock:
    """The CPU seconds that replications have taken, and how many they may take."""

    def __init__(self, seconds: float | None = None) -> None:
        self.seconds, self.spent_s = seconds, 0.0

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to spend."""
        return self.seconds is not None and self.spent_s >= self.seconds

    def spend(self, cpu_s: float) -> None:
        """Add what one replication took."""
        self.spent_s += cpu_s

    def watched(self, results: Iterator[Counts]) -> Iterator[Counts]:
        """Give results of another machine, whose time is taken by the clock on the wall."""
        start_s = time.perf_counter()
        for each in results:
            self.spend(time.perf_counter() - start_s)
            start_s = time.perf_counter()
            yield each


class Adding(Protocol[Counted]):
    """Totals that counts of replications are added to."""

    replications: int

    def add(self, counts: Counted) -> None:
        """Add what one replication counted."""


class Series(Generic[Counts]):
    """Replications of one kind, added to totals until these are precise enough."""

    def __init__(
        self,
        totals: Adding[Counts],
        run: Callable[[range], Iterator[Counts]],
        clock: Clock,
        tell: Progress,
    ) -> None:
        self._totals, self._run = totals, run
        self.clock, self.tell = clock, tell
        self.spent_s = 0.0

    def add(self, more: int) -> None:
        """Run more replications, fewer if the seconds end."""
        done, before_s = self._totals.replications, self.clock.spent_s
        for number, counts in enumerate(self._run(range(done, done + more)), start=done + 1):
            self._totals.add(counts)
            self.tell(f"replication {number} of {done + more}")
            if self.clock.is_over and number > 1:
                break
        self.spent_s += self.clock.spent_s - before_s

    def until(self, shortfall: Callable[[], float], most: int) -> bool:
        """Add replications until errors are at most those wanted; say whether that was reached.

        ``shortfall`` is the largest error in units of what is wanted of it, and NaN where none is
        known. The number of replications grows by at most as many again, so that errors are
        looked at a few times only.
        """
        while (short := shortfall()) > 1.0:
            done = self._totals.replications
            if most <= done or self.clock.is_over:
                return False
            more = more_replications(done, short, 1.0, most)
            self.tell(f"{short:.2g} times the error wanted after {done}, {more} more")
            self.add(more)
        return True
