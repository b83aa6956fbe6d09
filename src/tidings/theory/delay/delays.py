r"""Delays of events: which share survives, and when it arrives.

A :class:`Delays` holds any number of delays side by side, one a path or stage. Of each it knows the
share of events that survives, what the rest is lost to, the part of the delay that is certain (a
*shift*, added up exactly), and the Laplace transform of the random part at the inversion nodes of
one common :class:`Grid` of times. That one form does everything:

- stages in *series*: transforms multiply;
- a *mix*: transforms are averaged;
- *weighing* by who is still there: the CDF is weighted over time and transformed back;
- *at* a time, and *quantiles*: Euler inversion at the grid's times (:class:`Distributions`).

The on-time share with lifetime t and the distribution at t are one and the same function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from tidings.model.arrays import Complexes, Floats, Ints
from tidings.model.laws import (
    Deterministic,
    Empirical,
    Law,
    LogNormal,
    Uniform,
    Weibull,
    unshifted,
)
from tidings.theory.delay.distributions import Distributions
from tidings.theory.delay.grids import Grid

_NOTHING, _ROUNDING = 1e-250, 1e-12  # of a transform; of a mean
_SURELY = 6.0  # standard deviations below the mean that a narrow delay never is


@dataclass(frozen=True, kw_only=True, eq=False)
class Delays:
    """Delays side by side; all arrays have one entry for each of them."""

    grid: Grid
    survival: Floats  # share of events that arrive at all
    shift_s: Floats  # the certain part of the delay
    mean_s: Floats  # of the random part, of what survives
    atom: Floats  # probability that the random part is 0
    values: Complexes  # [n, time · node]: transform of the random part, of what survives
    lost: Mapping[str, Floats] = field(default_factory=dict)  # shares by cause; the first counts

    def __len__(self) -> int:
        return self.survival.size

    def take(self, rows: Ints | Sequence[int]) -> Delays:
        """Select some of the delays, in the order asked for."""
        chosen = np.asarray(rows, dtype=np.int64)
        return Delays(
            grid=self.grid,
            survival=self.survival[chosen],
            shift_s=self.shift_s[chosen],
            mean_s=self.mean_s[chosen],
            atom=self.atom[chosen],
            values=self.values[chosen],
            lost={cause: share[chosen] for cause, share in self.lost.items()},
        )

    @property
    def is_nothing(self) -> bool:
        """Whether this is one delay of 0 seconds that loses nothing."""
        sure = len(self) == 1 and self.atom[0] == self.survival[0] == 1.0
        return bool(sure and self.mean_s[0] == self.shift_s[0] == 0.0 and not self.lost)

    def series(self, then: Delays) -> Delays:
        """Let every delay be followed by another; one delay may serve all."""
        if then.is_nothing:
            return self
        if self.is_nothing:
            return then
        lost = {
            cause: np.broadcast_to(each, self._shape(then)) for cause, each in self.lost.items()
        }
        for cause, share in then.lost.items():
            lost[cause] = lost.get(cause, 0.0) + self.survival * share
        return Delays(
            grid=self.grid,
            survival=self.survival * then.survival,
            shift_s=self.shift_s + then.shift_s,
            mean_s=self.mean_s + then.mean_s,
            atom=self.atom * then.atom,
            values=self.values * then.values,
            lost=lost,
        )

    def without(self, part: Delays) -> Delays:
        """Take a part out of every delay that has it, or one that all have; losses stay as named.

        The transform is divided by that of the part. What rounding leaves of a mean is nothing.
        What the rest loses beside a part that loses everything nobody can tell: taken as nothing.
        """
        mean_s = self.mean_s - part.mean_s
        passes = part.survival > 0.0
        held = np.abs(part.values) > _NOTHING
        return replace(
            self,
            survival=np.where(
                passes, np.minimum(self.survival / np.where(passes, part.survival, 1.0), 1.0), 1.0
            ),
            shift_s=np.maximum(self.shift_s - part.shift_s, 0.0),
            mean_s=np.where(mean_s > _ROUNDING * self.mean_s, mean_s, 0.0),
            atom=np.clip(self.atom / np.where(part.atom > 0.0, part.atom, np.inf), 0.0, 1.0),
            values=np.where(held, self.values / np.where(held, part.values, 1.0), 0.0),
        )

    def take_series(self, rows: Ints, then: Delays, places: Ints) -> Delays:
        """Select some of the delays, each followed by one of others, without a copy of either."""
        first_row = int(rows[0]) if rows.size else 0
        in_a_row = np.array_equal(rows, np.arange(first_row, first_row + rows.size))
        own = self.values[first_row : first_row + rows.size] if in_a_row else self.values[rows]
        values = then.values[places]
        values *= own
        first, second = (replace(each, values=each.values[:, :0]) for each in (self, then))
        return replace(first.take(rows).series(second.take(places)), values=values)

    def overwritten(self, rows: Ints, part: Delays) -> Delays:
        """Put other delays in the place of some; what was there is gone."""
        lost = {cause: np.array(share) for cause, share in self.lost.items()}
        for cause in {*lost, *part.lost}:
            share = lost.setdefault(cause, np.zeros(len(self)))
            share[rows] = part.lost.get(cause, 0.0)
        for name in ("survival", "shift_s", "mean_s", "atom", "values"):
            getattr(self, name)[rows] = getattr(part, name)
        return replace(self, lost=lost)

    def _shape(self, then: Delays) -> tuple[int, ...]:
        return np.broadcast_shapes(self.survival.shape, then.survival.shape)

    def scaled(self, steps: int) -> Delays:
        """Stretch the random parts by so many steps of the grid."""
        points = self.grid.times_s.size
        source = np.clip(np.arange(points) - steps, 0, points - 1)
        folded = self.values.reshape(len(self), points, -1)[:, source]
        stretched = self.mean_s * math.exp(self.grid.step * steps)
        return replace(self, values=folded.reshape(len(self), -1), mean_s=stretched)

    def mix(self, weights: Floats) -> Delays:
        """Mix the delays with these probabilities [mixture, delay].

        Shifts that differ become part of the random delay, beyond the least one.
        """
        surviving = weights * self.survival
        survival = surviving.sum(axis=1)
        shares = surviving / np.where(survival > 0.0, survival, 1.0)[:, None]
        used = np.any(surviving > 0.0, axis=0)
        least_s = float(self.shift_s[used].min()) if np.any(used) else 0.0
        later_s = np.where(used, self.shift_s - least_s, 0.0)
        delayed = self.values.copy() if np.any(later_s) else self.values
        for row in np.flatnonzero(later_s):
            delayed[row] *= np.exp(-later_s[row] * self.grid.z)
        return Delays(
            grid=self.grid,
            survival=survival,
            shift_s=np.full(len(weights), least_s),
            mean_s=shares @ (self.mean_s + later_s),
            atom=shares @ np.where(later_s > 0.0, 0.0, self.atom),
            values=shares @ delayed,
            lost={cause: weights @ share for cause, share in self.lost.items()},
        )

    def weigh(self, still_there: Callable[[Floats], Floats], cause: str) -> Delays:
        """Keep an event that takes t with probability ``still_there(t)``; ``cause`` has the rest.

        Times are those of the whole delay, in seconds.
        """
        fine_s = self.grid.fine_s
        rest_s = np.broadcast_to(fine_s, (len(self), fine_s.size))
        below = self.distributions.random_at(rest_s, np.arange(len(self)))
        below[:, 0] = self.atom
        middles_s = np.append(0.5 * (fine_s[1:] + fine_s[:-1]), 2.0 * fine_s[-1])
        kept = np.diff(below, axis=1, append=1.0) * still_there(self.shift_s[:, None] + middles_s)
        at_once = self.atom * still_there(self.shift_s)
        total = at_once + kept.sum(axis=1)
        scale = np.where(total > 0.0, total, 1.0)
        arrived = np.cumsum(np.column_stack([at_once, kept[:, :-1]]), axis=1) / scale[:, None]
        return Delays(
            grid=self.grid,
            survival=self.survival * total,
            shift_s=self.shift_s,
            mean_s=kept @ middles_s / scale,
            atom=at_once / scale,
            values=self.grid.transform(arrived),
            lost={**self.lost, cause: self.lost.get(cause, 0.0) + self.survival * (1.0 - total)},
        )

    def on(self, grid: Grid) -> Delays:
        """Keep what a part of the grid needs; all times of that are among its own."""
        if grid is self.grid:
            return self
        points, nodes = np.searchsorted(self.grid.times_s, grid.times_s), self.grid.weights.size
        if points[-1] - points[0] == points.size - 1:  # in a row: nothing is copied
            columns = slice(points[0] * nodes, (points[-1] + 1) * nodes)
            return replace(self, grid=grid, values=self.values[:, columns])
        folded = self.values.reshape(len(self), self.grid.times_s.size, nodes)[:, points]
        return replace(self, grid=grid, values=folded.reshape(len(self), grid.z.size))

    # ---- the distribution ----------------------------------------------------------------------

    @cached_property
    def distributions(self) -> Distributions:
        """Which share has arrived by when: CDFs of the random parts that never fall."""
        return self.distributed(self.grid, *self.grid.invert(self.values))

    def distributed(self, grid: Grid, below: Floats, slope: Floats) -> Distributions:
        """Make distributions of CDFs and slopes [n, time] as inverted on any grid."""
        fixed = self.mean_s <= 0.0
        below[fixed], slope[fixed] = 1.0, 0.0
        below = np.maximum.accumulate(np.clip(below, self.atom[:, None], 1.0), axis=1)
        rise = np.diff(below, axis=1)
        most = np.minimum(
            np.concatenate([rise[:, :1], rise], axis=1),
            np.concatenate([rise, rise[:, -1:]], axis=1),
        )
        return Distributions(
            grid=grid,
            survival=self.survival,
            shift_s=self.shift_s,
            mean_s=self.mean_s,
            atom=self.atom,
            below=below,
            slope=np.clip(slope, 0.0, 3.0 * most),
            lost=self.lost,
        )

    def at(self, t_s: Floats) -> Floats:
        """Compute the share of events that has arrived by t seconds; t is [n] or [n, times]."""
        return self.distributions.at(t_s)

    def quantiles(self, weights: Floats | sparse.csr_array, shares: Sequence[float]) -> Floats:
        """Compute quantiles of mixtures [mixture, delay] of what arrives, in seconds."""
        return self.distributions.quantiles(weights, shares)


# ---- where delays come from ----------------------------------------------------------------------


def nothing(grid: Grid, count: int = 1) -> Delays:
    """Build delays of 0 seconds that lose nothing."""
    return Delays(
        grid=grid,
        survival=np.ones(count),
        shift_s=np.zeros(count),
        mean_s=np.zeros(count),
        atom=np.ones(count),
        values=np.ones((count, grid.z.size), dtype=np.complex128),
    )


def from_law(grid: Grid, law: Law, survival: float = 1.0, cause: str = "link") -> Delays:
    """Build the delay that follows a law and loses a share to ``cause``.

    What a narrow law surely takes is part of the shift: the inversion resolves a few hundredths.
    """
    base, shift_s = starting_at_0(law)
    delay = replace(
        nothing(grid),
        survival=np.array([survival]),
        lost={} if survival == 1.0 else {cause: np.array([1.0 - survival])},
    )
    if isinstance(base, Deterministic):
        return replace(delay, shift_s=np.array([shift_s + base.value_s]))
    sure_s = max(base.mean_s * (1.0 - _SURELY * math.sqrt(base.scv)), 0.0)

    def transformed() -> Complexes:
        cut = Tabulated(grid, base.cdf(sure_s + grid.fine_s)) if sure_s else tabulated(grid, base)
        return cut.transform(grid.z)

    return replace(
        delay,
        shift_s=np.array([shift_s + sure_s]),
        mean_s=np.array([base.mean_s - sure_s]),
        atom=np.array([float(base.cdf(0.0))]),
        values=grid.kept(base, sure_s, transformed)[None, :],
    )


@dataclass(frozen=True, eq=False)
class Tabulated:
    """A time with a CDF that is straight between the fine times of a grid.

    For laws whose transform is dear. Whoever computes with it must take its mean and variability,
    too: a queue is not solved by the transform of one law and the load of another.
    """

    grid: Grid
    below: Floats  # [fine time]

    @cached_property
    def _masses(self) -> Floats:
        return np.diff(self.below, append=1.0)

    @cached_property
    def mean_s(self) -> float:
        """E[X], in seconds."""
        fine_s = self.grid.fine_s
        return float(self._masses @ np.append(0.5 * (fine_s[1:] + fine_s[:-1]), fine_s[-1]))

    @cached_property
    def scv(self) -> float:
        """Var X/E[X]²."""
        low, high = self.grid.fine_s[:-1], self.grid.fine_s[1:]
        squares = np.append((low * low + low * high + high * high) / 3.0, high[-1] ** 2)
        return float(self._masses @ squares) / self.mean_s**2 - 1.0

    def transform(self, z: Complexes) -> Complexes:
        """Compute E[exp(−zX)] for Re z ≥ 0."""
        if z is self.grid.z:
            values: Complexes = self.grid.transform(self.below[None, :])[0]
            return values
        fine_s = self.grid.fine_s
        starts: Complexes = np.exp(-np.outer(z.ravel(), fine_s))
        width = np.outer(z.ravel(), np.diff(fine_s))
        flat = np.abs(width) < 1e-12
        pieces = np.where(flat, 1.0, -np.expm1(-width) / np.where(flat, 1.0, width))
        inside = (starts[:, :-1] * pieces) @ self._masses[:-1]
        return np.reshape(inside + starts[:, -1] * self._masses[-1] + self.below[0], z.shape)


def tabulated(grid: Grid, law: Law) -> Law | Tabulated:
    """Give a law as it is, or tabulated where its transform is dear."""
    if isinstance(law, LogNormal | Weibull):
        return Tabulated(grid, law.cdf(grid.fine_s))
    return law


def from_transform(grid: Grid, values: Complexes, *, mean_s: float, atom: float) -> Delays:
    """Build the delay with this transform at the grid's nodes; it loses nothing."""
    return replace(
        nothing(grid), values=values[None, :], mean_s=np.array([mean_s]), atom=np.array([atom])
    )


def all_lost(grid: Grid, cause: str) -> Delays:
    """Build the delay of events that never arrive."""
    return replace(nothing(grid), survival=np.zeros(1), lost={cause: np.ones(1)})


def stack(delays: Sequence[Delays]) -> Delays:
    """Put delays of one grid side by side."""
    causes = list(dict.fromkeys(cause for each in delays for cause in each.lost))
    return Delays(
        grid=delays[0].grid,
        survival=np.concatenate([each.survival for each in delays]),
        shift_s=np.concatenate([each.shift_s for each in delays]),
        mean_s=np.concatenate([each.mean_s for each in delays]),
        atom=np.concatenate([each.atom for each in delays]),
        values=np.concatenate([each.values for each in delays]),
        lost={
            cause: np.concatenate([each.lost.get(cause, np.zeros(len(each))) for each in delays])
            for cause in causes
        },
    )


def starting_at_0(law: Law) -> tuple[Law, float]:
    """Split a law into one that begins at 0 and a shift, in seconds.

    >>> starting_at_0(Deterministic(value_s=0.25))
    (Deterministic(value_s=0.0), 0.25)
    """
    base, shift_s = unshifted(law)
    if isinstance(base, Deterministic):
        return Deterministic(value_s=0.0), shift_s + base.value_s
    if isinstance(base, Uniform) and base.low_s > 0.0:
        return Uniform(low_s=0.0, high_s=base.high_s - base.low_s), shift_s + base.low_s
    if isinstance(base, Empirical):
        first = next(index for index, weight in enumerate(base.weights) if weight > 0.0)
        start_s = base.edges_s[first]
        if start_s > 0.0:
            edges_s = tuple(edge_s - start_s for edge_s in base.edges_s[first:])
            return Empirical(edges_s=edges_s, weights=base.weights[first:]), shift_s + start_s
    return base, shift_s
