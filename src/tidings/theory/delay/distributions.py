"""Distributions of delays side by side: which share has arrived by when, and quantiles.

CDFs of the random parts are known at the times of a :class:`Grid`, with cubics between them; shares
that never arrive, and the part of a delay that is certain, are kept apart and exact.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from tidings.model.arrays import Floats, Ints

if TYPE_CHECKING:
    from tidings.theory.delay.grids import Grid

_REFINEMENTS, _PARTS = 12, 16  # of a step between common times, at most
_REACHED = 1e-7  # by how much of a share a quantile may be too late
_FEW = 8  # mixtures whose quantiles are refined; those of more are read off the table
_COARSE = 32  # times at which some mixtures are tabulated to see where most arrives
_COMMON = (80, 300)  # times there at which all are, fewest and most
_ENTRIES = 40_000  # of such a table, which decide between these
_NOTHING, _ALL = 1e-3, 1.0 - 1e-4  # shares between which that is
_ROUNDING = 1e-14  # of a shift
_NOBODY = 1e-9  # share that arrives outside a grid's times and is not looked at


@dataclass(frozen=True, kw_only=True, eq=False)
class Distributions:
    """Distributions of delays; all arrays have one entry for each of them."""

    grid: Grid
    survival: Floats  # share of events that arrive at all
    shift_s: Floats  # the certain part of the delay
    mean_s: Floats  # of the random part, of what survives
    atom: Floats  # probability that the random part is 0
    below: Floats  # [n, time]: CDF of the random part, of what survives, never falling
    slope: Floats  # [n, time]: of that, per step of the grid
    lost: Mapping[str, Floats] = field(default_factory=dict)  # shares by cause

    def __len__(self) -> int:
        return self.survival.size

    def take(self, rows: Ints | Sequence[int]) -> Distributions:
        """Select some of the distributions, in the order asked for."""
        chosen = np.asarray(rows, dtype=np.int64)
        arrays = {name: getattr(self, name)[chosen] for name in ARRAYS}
        lost = {cause: share[chosen] for cause, share in self.lost.items()}
        return Distributions(grid=self.grid, **arrays, lost=lost)

    def at(self, t_s: Floats, rows: Ints | None = None) -> Floats:
        """Compute the share of events that has arrived by t seconds; t is [n] or [n, times].

        Of all delays, or of some. What rounding of the shift alone has made late is not late.
        """
        chosen = np.arange(len(self)) if rows is None else rows
        times = np.asarray(t_s, dtype=np.float64)
        shift_s = self.shift_s[chosen, None]
        rest_s = times.reshape(chosen.size, -1) - shift_s
        arrived: Floats = self.survival[chosen, None] * self.random_at(rest_s, chosen)
        return arrived.reshape(times.shape)

    def random_at(self, rest_s: Floats, chosen: Ints) -> Floats:
        """Compute P[random part ≤ t], [chosen, times]."""
        grid_s, step = self.grid.times_s, self.grid.step
        row = chosen[:, None]
        place = np.clip(rest_s, grid_s[0], grid_s[-1])
        np.log(place / grid_s[0], out=place)
        place /= step
        at = np.minimum(place.astype(np.int64), grid_s.size - 2)
        # Both tables seen as one long row each: that is faster to look up.
        below, slope = self.below.ravel(), self.slope.ravel()
        place -= at
        at += row * grid_s.size
        value = cubic(below[at], below[at + 1], slope[at], slope[at + 1], place)
        self._set_early(value, rest_s, chosen)
        self._set_late(value, rest_s, chosen)
        return value

    def _set_early(self, value: Floats, rest_s: Floats, chosen: Ints) -> None:
        """Put in what arrives before the first time of the grid: straight from the atom on."""
        first, atom = self.below[chosen, 0], self.atom[chosen]
        some = np.flatnonzero((first >= _NOBODY) | (atom > 0.0))
        if not some.size or rest_s.min(initial=np.inf) >= self.grid.times_s[0]:
            return
        row, column = np.nonzero(rest_s[some] < self.grid.times_s[0])
        row = some[row]
        rest, at_once = rest_s[row, column], atom[row]
        part = np.clip(rest / self.grid.times_s[0], 0.0, 1.0)
        too_early = rest < -_ROUNDING * self.shift_s[chosen[row]]
        arrived = at_once + (first[row] - at_once) * part
        value[row, column] = np.where(too_early, 0.0, arrived)

    def _set_late(self, value: Floats, rest_s: Floats, chosen: Ints) -> None:
        """Put in what arrives after the last time of the grid: it goes on as it does there."""
        last_s = self.grid.times_s[-1]
        left, slope = 1.0 - self.below[chosen, -1], self.slope[chosen, -1]
        some = np.flatnonzero(left >= _NOBODY)
        if not some.size or rest_s.max(initial=0.0) <= last_s:
            return
        row, column = np.nonzero(rest_s[some] > last_s)
        row = some[row]
        hazard = np.maximum(slope[row] / (self.grid.step * left[row]), 1.0)  # a log-time
        value[row, column] = 1.0 - left[row] * np.exp(
            -hazard * (rest_s[row, column] / last_s - 1.0)
        )

    def on_time(self, lifetimes_s: Floats, rows: Ints) -> Floats:
        """Compute which share arrives within lifetimes [node], equally likely, [rows]."""
        share: Floats = self.at(np.tile(lifetimes_s, (rows.size, 1)), rows).mean(axis=1)
        return share

    def roughness(self, lifetimes_s: Floats, rows: Ints) -> Floats:
        """Estimate how far these shares are off by inversion and interpolation, [rows].

        By how much they change if one of the two nearest times of the grid is left out. Smooth
        distributions hardly notice; at the corner of a lone uniform delay it is a hundredth.
        """
        below, slope, grid_s = self.below, self.slope, self.grid.times_s
        row = rows[:, None]
        rest_s = lifetimes_s - self.shift_s[row]
        place = np.log(np.clip(rest_s, grid_s[0], grid_s[-1]) / grid_s[0]) / self.grid.step
        near = place.astype(np.int64)
        known = self.random_at(rest_s, rows)
        rough = np.zeros_like(known)
        for first in (near - 1, near):
            at = np.clip(first, 0, grid_s.size - 3)
            ends = below[row, at], below[row, at + 2]
            slopes = 2.0 * slope[row, at], 2.0 * slope[row, at + 2]
            rough = np.maximum(rough, np.abs(cubic(*ends, *slopes, (place - at) / 2.0) - known))
        inside = (rest_s > grid_s[0]) & (rest_s < grid_s[-1])
        change: Floats = self.survival[rows] * np.where(inside, rough, 0.0).mean(axis=1)
        return change

    # ---- quantiles of mixtures -------------------------------------------------------------------

    def quantiles(self, weights: Floats | sparse.csr_array, shares: Sequence[float]) -> Floats:
        """Compute quantiles of what arrives, in seconds, [mixture, share].

        Mixtures are given by weights [mixture, delay]; NaN where nothing arrives. All mixtures are
        tabulated at common times; the step in which a share is reached is then cut into parts,
        unless there are many mixtures.
        """
        mixing = sparse.csr_array(weights)
        quantiles_s = np.full((mixing.shape[0], len(shares)), np.nan)
        wanted = np.outer(mixing @ self.survival, shares)
        if not wanted.any():
            return quantiles_s
        times_s, arrived = self._tabulated
        table = np.maximum.accumulate(mixing @ arrived, axis=1)
        if len(table) > _FEW:
            return _read_off(table, times_s, wanted)
        for row in np.flatnonzero(wanted[:, 0] > 0.0):
            mine, parts = mixing[[row]].indices, mixing[[row]].data
            at = np.searchsorted(table[row], wanted[row])
            high = times_s[np.minimum(at, times_s.size - 1)]
            low = np.where(at > 0, times_s[np.maximum(at - 1, 0)], 0.0)
            quantiles_s[row] = self._refined((mine, parts), wanted[row], (low, high))
        return quantiles_s

    @cached_property
    def _tabulated(self) -> tuple[Floats, Floats]:
        """Common times in seconds, and which share of each has arrived by then, [n, time].

        Close together where most arrives, and far apart up to the first and last of all.
        """
        grid_s = self.grid.times_s
        alive = np.flatnonzero(self.survival > 0.0)
        shift_s = self.shift_s[alive]
        first_s, last_s = shift_s.min() + grid_s[0], shift_s.max() + 64.0 * grid_s[-1]
        wide_s = np.geomspace(0.5 * first_s, last_s, _COARSE)
        some = alive[:: max(1, alive.size // 64)]
        arrived = self.at(np.tile(wide_s, (some.size, 1)), some) / self.survival[some, None]
        first = int(np.searchsorted(arrived.max(axis=0), _NOTHING))
        last = int(np.searchsorted(arrived.min(axis=0), _ALL))
        edges_s = wide_s[max(first - 1, 0)], wide_s[min(last, wide_s.size - 1)]
        count = int(np.clip(_ENTRIES // len(self), *_COMMON))
        outside_s = wide_s[(wide_s < edges_s[0]) | (wide_s > edges_s[1])]
        times_s = np.union1d(outside_s, np.geomspace(edges_s[0], edges_s[1], count))
        return times_s, self.at(np.tile(times_s, (len(self), 1)))

    def _refined(
        self, mixture: tuple[Ints, Floats], wanted: Floats, between_s: tuple[Floats, Floats]
    ) -> Floats:
        """Find when a mixture (rows, weights) reaches shares of it, between times in seconds."""
        low, high = between_s
        rows, weights = mixture
        row = np.arange(wanted.size)
        for _ in range(_REFINEMENTS):
            times_s = low[:, None] + np.outer(high - low, np.linspace(0.0, 1.0, _PARTS + 1))
            asked = np.broadcast_to(times_s.ravel(), (rows.size, times_s.size))
            reached = (weights @ self.at(asked, rows)).reshape(times_s.shape)
            at = np.clip((reached < wanted[:, None]).sum(axis=1), 1, _PARTS)
            low, high = times_s[row, at - 1], times_s[row, at]
            if np.all(reached[row, at] <= wanted + _REACHED):
                break
        return high


ARRAYS = ("survival", "shift_s", "mean_s", "atom", "below", "slope")  # of distributions


def side_by_side(parts: Sequence[Distributions]) -> Distributions:
    """Put distributions of one grid side by side."""
    if len(parts) == 1:
        return parts[0]
    causes = list(dict.fromkeys(cause for each in parts for cause in each.lost))
    return Distributions(
        grid=parts[0].grid,
        **{name: np.concatenate([getattr(each, name) for each in parts]) for name in ARRAYS},
        lost={
            cause: np.concatenate([each.lost.get(cause, np.zeros(len(each))) for each in parts])
            for cause in causes
        },
    )


def _read_off(table: Floats, times_s: Floats, wanted: Floats) -> Floats:
    """Find where each row of a table reaches the shares wanted of it, straight between times."""
    at = np.stack([(table < share[:, None]).sum(axis=1) for share in wanted.T], axis=1)
    at = np.clip(at, 1, times_s.size - 1)
    row = np.arange(len(table))[:, None]
    before, after = table[row, at - 1], table[row, at]
    rise = np.where(after > before, after - before, 1.0)
    part = np.clip((wanted - before) / rise, 0.0, 1.0)
    reached: Floats = times_s[at - 1] * (times_s[at] / times_s[at - 1]) ** part
    return np.where(wanted > 0.0, reached, np.nan)


def cubic(f0: Floats, f1: Floats, s0: Floats, s1: Floats, x: Floats) -> Floats:
    """Evaluate the cubic with these ends and slopes at x from 0 to 1."""
    rise = f1 - f0
    bend, twist = 3.0 * rise - 2.0 * s0 - s1, s0 + s1 - 2.0 * rise
    return f0 + x * (s0 + x * (bend + x * twist))
