"""Shares of events on time, of many subscribers at once: measured, promised and predicted.

Shares have Wilson's interval, widened to that of batch means over stretches of time where these
differ by more than single events would.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import special

from tidings.model.standard_errors import Reals, ratio_se
from tidings.watching.certainty import LEAST_COUNT, LEAST_SHARE, certain
from tidings.watching.counts import EventCounts, Stretch, added
from tidings.watching.state import EVERYBODY, Share

WINDOWS_S = {"5m": 300.0, "30m": 1800.0, "1h": 3600.0, "6h": 21600.0}
# A month's budget in two days, or in five: a long window to be sure and a short one to be current
# (the multiwindow, multi-burn-rate alerts of the SRE workbook). Last, any breach that is certain.
RULES = (("1h", "5m", 14.4), ("6h", "30m", 6.0), ("6h", "30m", 1.0))
USUAL = 1.96
MOST_BURN = 1e9  # stands for the burn rate of a budget of nothing
TOGETHER = (1, 2, 4)  # stretches that make a batch: queues and outages outlast a single one
LEAST_BATCHES = 8  # of several stretches; of fewer, next to nothing would be certain
NOTHING = EventCounts(wanted=0, delivered=0, on_time=0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StretchTally:
    """How many events some wanted and had on time: a row for each of them, a column a stretch."""

    names: tuple[str, ...]
    from_ns: npt.NDArray[np.int64]  # when each stretch began
    until_ns: npt.NDArray[np.int64]  # when it ended
    wanted: npt.NDArray[np.int32]
    on_time: npt.NDArray[np.int32]

    def since(self, since_ns: int) -> StretchTally:
        """Leave out stretches that ended by a moment."""
        return self._only(self.until_ns > since_ns)

    def told_by(self, window_ns: int) -> StretchTally:
        """Leave out stretches that say nothing of a window: longer than it, and than is usual.

        Such a stretch is of the time in which nobody watched.
        """
        lengths_ns = self.until_ns - self.from_ns
        usual_ns = 2.0 * float(np.median(lengths_ns)) if lengths_ns.size else 0.0
        return self._only(lengths_ns <= max(window_ns, usual_ns))

    def _only(self, kept: npt.NDArray[np.bool_]) -> StretchTally:
        return replace(
            self,
            from_ns=self.from_ns[kept],
            until_ns=self.until_ns[kept],
            wanted=self.wanted[:, kept],
            on_time=self.on_time[:, kept],
        )

    def then(self, stretch: Stretch) -> StretchTally:
        """Add one more stretch."""
        new = tally([stretch], self.names)
        return replace(
            self,
            from_ns=np.append(self.from_ns, new.from_ns),
            until_ns=np.append(self.until_ns, new.until_ns),
            wanted=np.append(self.wanted, new.wanted, axis=1),
            on_time=np.append(self.on_time, new.on_time, axis=1),
        )

    def of(self, names: Collection[str]) -> StretchTally:
        """Leave out all but some of those whom it is of."""
        kept = [n for n, name in enumerate(self.names) if name in names]
        if len(kept) == len(self.names):
            return self
        return replace(
            self,
            names=tuple(self.names[n] for n in kept),
            wanted=self.wanted[kept],
            on_time=self.on_time[kept],
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeasuredShares:
    """Shares with their intervals, in the order of a tally's names; NaN of those without events."""

    share: Reals
    low: Reals
    high: Reals


def tally(stretches: Iterable[Stretch], names: Sequence[str]) -> StretchTally:
    """Count what each of some, or everybody, wanted and had on time in each of some stretches."""
    times: list[tuple[int, int]] = []
    columns: list[npt.NDArray[np.int32]] = []
    for stretch in stretches:
        times.append((stretch.from_ns, stretch.until_ns))
        columns.append(_column(stretch.counts, names))
    begun_ns, ended_ns = np.array(times, dtype=np.int64).reshape(-1, 2).T
    wanted, on_time = np.stack(columns, 2) if columns else np.zeros((2, len(names), 0), np.int32)
    return StretchTally(
        names=tuple(names), from_ns=begun_ns, until_ns=ended_ns, wanted=wanted, on_time=on_time
    )


def _column(counts: Mapping[str, EventCounts], names: Sequence[str]) -> npt.NDArray[np.int32]:
    if EVERYBODY in names:
        counts = {**counts, EVERYBODY: added(counts.values())}
    each = [counts.get(name, NOTHING) for name in names]
    return np.array([[one.wanted for one in each], [one.on_time for one in each]], np.int32)


# ---- intervals -----------------------------------------------------------------------------------


def wilson(hits: npt.ArrayLike, trials: npt.ArrayLike, z: float = USUAL) -> MeasuredShares:
    """Give shares of trials with Wilson's interval of so many standard errors.

    >>> found = wilson(9, 10)
    >>> round(float(found.low), 3), float(found.share), round(float(found.high), 3)
    (0.596, 0.9, 0.982)
    """
    n, z2 = np.asarray(trials, dtype=np.float64), z * z
    some = np.where(n > 0, n, np.nan)
    share = np.asarray(hits, dtype=np.float64) / some
    middle = (share + z2 / (2 * some)) / (1 + z2 / some)
    spread = np.sqrt(share * (1 - share) / some + z2 / (4 * some**2))
    half = z / (1 + z2 / some) * spread
    return MeasuredShares(
        share=share,
        low=np.where(n > 0, np.maximum(middle - half, 0.0), 0.0),
        high=np.where(n > 0, np.minimum(middle + half, 1.0), 1.0),
    )


def measured_shares(tally: StretchTally, z: float = USUAL) -> MeasuredShares:
    """Give the on-time shares of all stretches together, with the widest of their intervals.

    Events of one stretch share queues, and so do stretches that follow each other: beside Wilson's
    interval stand those of batch means, of one stretch, two and four.
    """
    found = wilson(tally.on_time.sum(axis=1), tally.wanted.sum(axis=1), z)
    half = np.zeros(len(tally.names))
    for size in TOGETHER:
        half = np.maximum(half, _batch_half(tally, size, z))
    return MeasuredShares(
        share=found.share,
        low=np.fmin(found.low, np.maximum(found.share - half, 0.0)),
        high=np.fmax(found.high, np.minimum(found.share + half, 1.0)),
    )


def _batch_half(tally: StretchTally, size: int, z: float) -> Reals:
    """Compute half the intervals by batches of so many stretches; 0 where there are too few."""
    starts = np.arange(0, len(tally.until_ns), size)
    if not len(starts) or (size > 1 and len(starts) < LEAST_BATCHES):
        return np.zeros(len(tally.names))
    hits, trials = (
        np.add.reduceat(each, starts, axis=1, dtype=np.float64) if size > 1 else each * 1.0
        for each in (tally.on_time, tally.wanted)
    )
    freedom = (trials > 0).sum(axis=1) - 1
    far = -special.stdtrit(np.maximum(freedom, 1), special.ndtr(-z))
    return np.where(freedom >= 1, far * np.nan_to_num(ratio_se(hits, trials)), 0.0)


# ---- promises ------------------------------------------------------------------------------------


def burn_rate(share: npt.ArrayLike, promised: npt.ArrayLike) -> Reals:
    """Compute how many times as fast as planned the budget of late and lost events is spent.

    >>> float(burn_rate(0.98, 0.99))
    2.0
    """
    missed, budget = 1.0 - np.asarray(share), 1.0 - np.asarray(promised)
    spent = np.round(missed / np.where(budget > 0, budget, 1.0), 12)
    of_nothing = np.where(missed > 0, MOST_BURN, 0.0)
    return np.minimum(np.where(budget > 0, spent, of_nothing), MOST_BURN)


def burn_rates(
    tally: StretchTally,
    promised: npt.ArrayLike,
    now_ns: int,
    z: float = 0.0,
    windows: Iterable[str] = tuple(WINDOWS_S),
) -> dict[str, Reals]:
    """Give burn rates by window; with ``z``, those that are certain by so many standard errors.

    Nothing is certain of few events, nor of a single stretch: what made one of them late may have
    made all of them so. A window that is longer than has been watched is what has been watched.
    """
    rates = {}
    for window in windows:
        window_ns = round(WINDOWS_S[window] * 1e9)
        within = tally.told_by(window_ns).since(now_ns - window_ns)
        wanted = within.wanted.sum(axis=1)
        told = wanted >= (LEAST_COUNT if z else 1)
        if z:
            told &= (within.wanted > 0).sum(axis=1) > 1
            share = measured_shares(within, z).high
        else:
            share = within.on_time.sum(axis=1) / np.where(told, wanted, 1.0)
        rates[window] = np.where(told, burn_rate(share, promised), 0.0)
    return rates


def breaks_promise(sure: Mapping[str, float], rates: Mapping[str, float], promised: float) -> bool:
    """Test whether burn rates of a long window and of a short one want an alarm, and surely so.

    The long window tells how much is spent, the short one that it still goes on; one of them has to
    be ``sure``. Of an hour in which all went well until minutes ago nothing is sure, so much do its
    minutes differ; of these minutes alone it is. Where the budget is large no burn rate reaches
    those of the rules: half of the way from 1 to the largest possible is enough there.
    """
    most = math.inf if promised >= 1.0 else 1.0 / (1.0 - promised)
    return any(
        min(rates[long], rates[short], max(sure[long], sure[short]))
        > max(min(factor, 0.5 * (1.0 + most)), 1.0)
        for long, short, factor in RULES
    )


# ---- predictions ---------------------------------------------------------------------------------


def find_unforeseen(
    tally: StretchTally, predicted: Mapping[str, Share], looks_per_day: float
) -> dict[str, float]:
    """Find measured shares that surely lie outside the predicted interval; gives by how much.

    How far a share strays by chance is told by how far stretches differ, and by nothing else: a
    queue that is long for a minute makes hundreds of events late. Of one stretch nobody can tell.
    An hour that lacks such minutes has a larger share and differs less by itself: as in Wilson's
    interval, the spread is that of the share which is tested, if that is larger, for as many events
    as depend on each other.
    """
    wanted, on_time = tally.wanted.sum(axis=1), tally.on_time.sum(axis=1)
    told = (wanted >= LEAST_COUNT) & ((tally.wanted > 0).sum(axis=1) > 1)
    measured = measured_shares(tally, certain(len(tally.names), looks_per_day))
    foretold = [predicted[name] for name in tally.names]
    least = np.array([each.low for each in foretold]) - LEAST_SHARE
    most = np.array([each.high for each in foretold]) + LEAST_SHARE
    spread = _spread((on_time + 2.0) / (wanted + 4.0))
    fewer = measured.share + (measured.high - measured.share) * _wider(least, spread) < least
    more = measured.share - (measured.share - measured.low) * _wider(most, spread) > most
    return {
        tally.names[n]: float(measured.share[n]) - foretold[n].share
        for n in np.flatnonzero(told & (fewer | more))
    }


def _spread(share: Reals) -> Reals:
    """Compute the standard deviation of a single event."""
    return np.sqrt(np.clip(share * (1.0 - share), 0.0, None))


def _wider(tested: Reals, spread: Reals) -> Reals:
    """Compute how many times as far a share strays where it is the one that is tested."""
    return np.maximum(_spread(tested) / spread, 1.0)
