"""How long periods last, where observation cuts some of them off: what was measured, as a law.

A period whose end was not seen counts with the length that was seen, as at least that long. One
whose beginning was not seen is older than anybody knows: it is no length of the law, but its time
and its end count for the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize, special

from tidings.model.arrays import Floats
from tidings.model.laws import Empirical

LEAST_PERIODS = 5  # whole ones of each kind, to tell how a component fails or a peer comes and goes
_TWO_SIDES = float(special.ndtr(2.0))
_LEAST_SHARE = 1e-300
_BINS_PER_E = 20  # of the measured law: times this dense in their logarithm are put together
_FEW_CUT_OFF = 0.05  # of the whole ones: as many more may lack their end without one alike


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """Lengths in seconds, how often each was seen, and whether the end was seen with it.

    A length may stand for several, from ``lowest_s`` to ``highest_s``. ``older`` periods had begun
    before anybody watched: they are no lengths, but time of ``older_s`` in all, and ends.
    """

    lengths_s: Floats
    ended: NDArray[np.bool_]
    counts: Floats
    lowest_s: Floats
    highest_s: Floats
    older: int = 0
    older_s: float = 0.0

    @property
    def whole(self) -> int:
        """How many ends were seen of periods whose beginning was, too."""
        return round(float(self.counts[self.ended].sum()))

    @property
    def cut_off(self) -> int:
        """How many were not."""
        return round(float(self.counts[~self.ended].sum()))

    @property
    def ends(self) -> int:
        """How many ends were seen."""
        return self.whole + self.older

    @property
    def total_s(self) -> float:
        """For how long they were watched, in seconds."""
        return float(self.lengths_s @ self.counts) + self.older_s

    @property
    def is_cut_short(self) -> bool:
        """Whether so many lack their end that time by ends is no mean: the longest do."""
        return self.cut_off - self.older > max(1.0, _FEW_CUT_OFF * self.whole)

    def mean_se_s(self, mean_s: float) -> float:
        """Compute the standard error of their mean as time by ends, in seconds, as periods differ.

        That of a ratio: √(n/(n − 1) · Σ (length − mean · 1[ended])²) by the ends. Of a few periods
        it is itself unsure, and wider, as Student's distribution has it at two standard errors.
        """
        apart_s = np.append(
            self.lengths_s - mean_s * self.ended, self.older_s - self.older * mean_s
        )
        counts = np.append(self.counts, 1.0 / self.older if self.older else 0.0)
        freedom = max(self.whole + self.cut_off + self.older - 1, 1)
        spread_s = math.sqrt(float(counts @ apart_s**2) * (freedom + 1) / freedom)
        return spread_s / self.ends * float(special.stdtrit(freedom, _TWO_SIDES)) / 2.0


def durations(lengths_s: Floats, ended: NDArray[np.bool_]) -> Durations:
    """Count each of these lengths, in seconds, once."""
    return Durations(
        lengths_s=lengths_s,
        ended=ended,
        counts=np.ones(lengths_s.size),
        lowest_s=lengths_s,
        highest_s=lengths_s,
    )


def cycle_means_s(on: Durations, off: Durations) -> tuple[float, float] | tuple[None, None]:
    """Compute mean lengths of alternating periods, in seconds, as their shares of time have it.

    Time in each by the cycles seen, half of all ends. None where a family must tell it, as too many
    periods were cut off.

    >>> on = durations(np.array([7.0, 9.0, 2.0]), np.array([True, True, False]))
    >>> cycle_means_s(on, durations(np.array([1.0, 3.0]), np.array([True, True])))
    (9.0, 2.0)
    """
    if on.is_cut_short or off.is_cut_short:
        return None, None
    cycles = 0.5 * (on.ends + off.ends)
    return on.total_s / cycles, off.total_s / cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was measured: P[X ≤ t] by the product-limit estimate, at the times at which it jumps.

    If the longest time was cut off it is taken to end there, so the mean is rather too short. A
    jump may stand for several, from ``lowest_s`` to ``highest_s``.
    """

    times_s: Floats
    cdf: Floats
    whole: int
    cut_off: int
    lowest_s: Floats
    highest_s: Floats
    is_open: bool  # the longest was cut off

    @property
    def mean_s(self) -> float:
        """The mean of the measured law, in seconds."""
        return float(self.times_s @ np.diff(self.cdf, prepend=0.0))

    @property
    def scv(self) -> float:
        """The squared coefficient of variation of the measured law."""
        square_s2 = float(self.times_s**2 @ np.diff(self.cdf, prepend=0.0))
        return square_s2 / self.mean_s**2 - 1.0

    def law(self, mean_s: float | None = None) -> Empirical:
        """Give the measured distribution; times within 1/20 of an e-fold lie around their mean.

        Its mean is made ``mean_s``, that of the times by default, by weights that rise or fall
        exponentially with time; only where it lies beyond all times are these stretched.
        """
        mean_s = self.mean_s if mean_s is None else mean_s
        weights = np.diff(self.cdf, prepend=0.0)
        _, begin = np.unique(np.floor(_BINS_PER_E * np.log(self.times_s)), return_index=True)
        shares = np.add.reduceat(weights, begin)
        low_s, high_s = self.lowest_s[begin], np.maximum.reduceat(self.highest_s, begin)
        middle_s = np.add.reduceat(weights * self.times_s, begin) / shares
        means_s = np.clip(middle_s, low_s, high_s)  # rounding moves no tie
        wide = high_s > low_s
        below = np.where(wide, (high_s - means_s) / np.where(wide, high_s - low_s, 1.0), 0.5)
        tilted = _tilted(shares, means_s, mean_s)
        edges_s = np.maximum.accumulate(np.stack([low_s, means_s, high_s], 1).ravel())
        between = np.stack([below * tilted, (1.0 - below) * tilted, 0.0 * tilted], 1).ravel()[:-1]
        law = Empirical(edges_s=tuple(edges_s), weights=tuple(np.maximum(between, 0.0)))
        return law if means_s[0] < mean_s < means_s[-1] else law.scaled(mean_s / law.mean_s)

    def distance(self, cdf: Callable[[Floats], Floats]) -> float:
        """Compute the largest difference of a distribution's P[X ≤ t] from the measured one."""
        after, before = self.cdf, np.concatenate([[0.0], self.cdf[:-1]])
        below = np.abs(cdf(np.nextafter(self.lowest_s, 0.0)) - before)
        above = np.abs(cdf(self.highest_s) - after)
        return float(max(below.max(), (above[:-1] if self.is_open else above).max(initial=0.0)))


def _tilted(shares: Floats, times_s: Floats, mean_s: float) -> Floats:
    """Give shares another mean, each times exp(tilt · time); leave them where that cannot be."""
    if not times_s[0] < mean_s < times_s[-1]:
        return shares
    places = (times_s - mean_s) / (times_s[-1] - times_s[0])

    def weights(tilt: float) -> Floats:
        logs = np.log(np.maximum(shares, _LEAST_SHARE)) + tilt * places
        tilted: Floats = np.exp(logs - logs.max())
        tilted /= tilted.sum()
        return tilted

    def beyond(tilt: float) -> float:
        return float(weights(tilt) @ places)

    reach = 1.0
    while beyond(-reach) > 0 or beyond(reach) < 0:
        reach *= 2.0
    return weights(float(optimize.brentq(beyond, -reach, reach)))


def measure(seen: Durations) -> Measured:
    """Compute the product-limit estimate (Kaplan and Meier) from times of which some are cut off.

    >>> law = measure(durations(np.array([1.0, 2.0, 3.0]), np.array([True, False, True])))
    >>> law.cdf.round(3).tolist(), law.times_s.tolist()
    ([0.333, 1.0], [1.0, 3.0])
    """
    times_s, place = np.unique(seen.lengths_s, return_inverse=True)
    ends = np.bincount(place, seen.ended * seen.counts)
    gone = np.cumsum(np.bincount(place, seen.counts))
    at_risk = seen.counts.sum() - np.concatenate([[0.0], gone[:-1]])
    left = np.cumprod(1.0 - ends / at_risk)
    left[-1] = 0.0
    jumps = ends > 0
    jumps[-1] = True
    lowest_s, highest_s = times_s.copy(), times_s.copy()
    np.minimum.at(lowest_s, place[seen.ended], seen.lowest_s[seen.ended])
    np.maximum.at(highest_s, place[seen.ended], seen.highest_s[seen.ended])
    return Measured(
        times_s=times_s[jumps],
        cdf=1.0 - left[jumps],
        whole=seen.whole,
        cut_off=seen.cut_off,
        lowest_s=lowest_s[jumps],
        highest_s=highest_s[jumps],
        is_open=not ends[-1],
    )


def durations_by_path(cells: pd.DataFrame) -> dict[str, dict[bool, Durations]]:
    """Read collected cells as lengths: by path, and by whether peers are connected meanwhile."""
    lengths: dict[str, dict[bool, Durations]] = {}
    for (path, connected), rows in cells.sort_values(["path", "bin"]).groupby(
        ["path", "connected"]
    ):
        lengths.setdefault(str(path), {})[bool(connected)] = durations_of(rows)
    return lengths


def durations_of(cells: pd.DataFrame) -> Durations:
    """Read cells of one kind as lengths, in seconds, each as long as the mean of its bin.

    Reads ``begun``, ``ended``, ``count`` (above 0), ``total_s`` and the extremes.
    """
    begun = cells["begun"].to_numpy(np.bool_)
    older, known = cells[~begun], cells[begun]
    counts = known["count"].to_numpy(np.float64)
    lengths_s = known["total_s"].to_numpy(np.float64) / counts
    return Durations(
        lengths_s=lengths_s,
        ended=known["ended"].to_numpy(np.bool_),
        counts=counts,
        lowest_s=known["lowest_s"].to_numpy(np.float64),
        highest_s=known["highest_s"].to_numpy(np.float64),
        older=int(older["count"].sum()),
        older_s=float(older["total_s"].sum()),
    )
