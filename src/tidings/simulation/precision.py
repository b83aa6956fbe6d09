"""How often to simulate: until all shares that matter are known as well as is wanted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator

import numpy as np

from tidings.kernels.replications import more_replications
from tidings.model.arrays import Floats
from tidings.model.progress import Progress
from tidings.model.record_tables import names
from tidings.model.remarks import Remark
from tidings.simulation.options import SimulationOptions
from tidings.simulation.tally import Counts
from tidings.simulation.totals import Totals

Run = Callable[[range], Iterator[Counts]]  # replications of these numbers, in order


class Clock:
    """The CPU seconds that replications have taken, and how many they may take."""

    def __init__(self, seconds: float | None) -> None:
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


class Series:
    """Replications of one kind: what they have counted, and how far that is from what is wanted."""

    def __init__(
        self, totals: Totals, run: Run, options: SimulationOptions, clock: Clock, tell: Progress
    ) -> None:
        self.totals, self._run, self.options = totals, run, options
        self.clock, self.tell = clock, tell
        self.spent_s = 0.0

    def add(self, more: int) -> None:
        """Run more replications, fewer if the seconds end."""
        done, before_s = self.totals.replications, self.clock.spent_s
        for number, counts in enumerate(self._run(range(done, done + more)), start=done + 1):
            self.totals.add(counts)
            self.tell(f"replication {number} of {done + more}")
            if self.clock.is_over and number > 1:
                break
        self.spent_s += self.clock.spent_s - before_s

    @property
    def times_wanted(self) -> Floats:
        """[subscriber]: its half-width, in units of what is wanted of it."""
        unit = self.totals.units.of_subscriber
        wanted = self.options.wanted(self.totals.on_time.value[unit])
        times: Floats = self.totals.half_widths[unit] / wanted
        return times

    @property
    def shortfall(self) -> float:
        """The largest half-width in units of what is wanted of it; NaN where none is known."""
        times = self.times_wanted
        return float(np.nanmax(times)) if np.any(~np.isnan(times)) else math.nan

    @property
    def needed_s(self) -> float:
        """Estimate the CPU seconds after which all is known as well as is wanted."""
        unit = self.totals.units.of_subscriber
        wanted = self.options.wanted(self.totals.on_time.value[unit])
        return self.spent_s * float(np.nanmax(self.totals.seen_widths[unit] / wanted)) ** 2

    @property
    def is_enough(self) -> bool:
        """Whether nothing more is wanted, or can be known."""
        return self.options.precision is None or not self.shortfall > 1.0

    def until_precise(self) -> list[Remark]:
        """Add replications until all that matters is known well enough, or no more are allowed.

        Their number grows by at most as many again, so that the half-widths are looked at a few
        times only.
        """
        most = self.options.max_replications
        while not self.is_enough:
            short, done = self.shortfall, self.totals.replications
            if most <= done or self.clock.is_over:
                return [self._not_held()]
            more = more_replications(done, short, 1.0, most)
            self.tell(f"{short:.2g} times the error wanted after {done}, {more} more")
            self.add(more)
        unknown = self.options.precision is not None and math.isnan(self.shortfall)
        return [_NOBODY] if unknown and self.totals.replications > 1 else []

    def _not_held(self) -> Remark:
        widths = self.totals.half_widths[self.totals.units.of_subscriber]
        rows = np.flatnonzero(self.times_wanted > 1.0)
        rows = rows[np.argsort(-widths[rows], kind="stable")]
        named = names(self.totals.compiled.system.subscribers)
        bound = "seconds" if self.clock.is_over else "replications"
        return Remark(
            kind="not held",
            what=f"on-time shares are known less well than wanted when the {bound} allowed ended",
            where=tuple(named[row] for row in rows[:20]),
            size=float(widths[rows].max()),
            unit="(half-width, 95 %)",
            do=f"allow more {bound}, or want less",
        )


_NOBODY = Remark(
    kind="nobody",
    what="nobody wants anything that is published, so no share can be known",
    do="look at what subscribers want and publishers publish",
)
