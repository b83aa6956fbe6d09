"""Whether shares are known as well as is wanted, and what to say where they are not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from tidings.kernels.series import Clock, Series
from tidings.model.arrays import Floats
from tidings.model.progress import Progress
from tidings.model.record_tables import names
from tidings.model.remarks import Remark
from tidings.simulation.options import SimulationOptions
from tidings.simulation.tally import Counts
from tidings.simulation.totals import Totals


class Shares(Series[Counts]):
    """Replications of a system, and how far the shares that matter are from what is wanted."""

    def __init__(
        self,
        totals: Totals,
        run: Callable[[range], Iterator[Counts]],
        options: SimulationOptions,
        clock: Clock,
        tell: Progress,
    ) -> None:
        super().__init__(totals, run, clock, tell)
        self.totals, self.options = totals, options

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

    def until_precise(self) -> list[Remark]:
        """Add replications until all that matters is known well enough, or no more are allowed."""
        if self.options.precision is None:
            return []
        if not self.until(lambda: self.shortfall, self.options.max_replications):
            return [self._not_held()]
        unknown = math.isnan(self.shortfall) and self.totals.replications > 1
        return [_NOBODY] if unknown else []

    def _not_held(self) -> Remark:
        widths = self.totals.half_widths[self.totals.units.of_subscriber]
        rows = np.flatnonzero(self.times_wanted > 1.0)
        rows = rows[np.argsort(-widths[rows], kind="stable")]
        named = names(self.totals.compiled.system.subscribers)
        bound = "seconds" if self.clock.is_over else "replications"
        return Remark(
            kind="not held",
            what=f"on-time shares are less precise than asked: the allowed {bound} ran out",
            where=tuple(named[row] for row in rows[:20]),
            size=float(widths[rows].max()),
            unit="at worst (half-width, 95 %)",
            do=f"allow more {bound}, or accept a larger error",
        )


_NOBODY = Remark(
    kind="nobody",
    what="no subscriber wants anything that is published, so there are no on-time shares",
    do="compare the subscribers' filters with the contents that are published",
)
