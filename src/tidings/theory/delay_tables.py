"""Whole delay laws at a price that allows thousands: tables of paths, mixtures of them, quantiles.

The random part of each path is tabulated once on a common grid of times that grow by a constant
factor, with its slopes; between the points a cubic follows both. Shifts never enter the tables, so
a corner at a shift stays a corner. Values are good to about 1e-5, beside other corners to about
1e-3 (a step of the grid is 0.1 or less in the logarithm, 0.03 where there are corners).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tidings.theory.inversion import NodeValues, euler_rule
from tidings.theory.path_laws import (
    ClosedForm,
    Workshop,
    has_closed_form,
    is_rough,
    on_lattice,
)
from tidings.theory.stage_columns import StageColumns
from tidings.theory.stages import Complexes, Delay, Floats, Stage

_WIDEST_STEP, _NARROWEST_STEP = 0.1, 0.02  # of the grid, in the logarithm
_STEP_BESIDE_CORNERS = 0.03
_TERMS = 10  # of the inversion rule: good to about 1e-6
_NUDGE = 1e-5  # by which times are moved to see a slope
_MOST_POINTS = 600
_BLOCK = 1 << 18  # (mixture, time, part) triples handled at once
_LATTICE_POINTS = 1 << 12
_ROUNDS = 80
GRID_POINTS = 160  # of a mixture of many paths
_HALVINGS = 24


@dataclass(slots=True)
class Extent:
    """How far and how finely the tables must reach, gathered path by path."""

    least_s: float = math.inf
    most_s: float = 0.0
    narrowest: float = math.inf  # standard deviation over mean
    corners: bool = False

    def include(self, paths: StageColumns) -> None:
        """Take the random parts of paths into account."""
        mine = paths.random_s > 0.0
        if not np.any(mine):
            return
        mean_s, order = paths.random_s[mine], paths.order[mine]
        deviation_s = np.sqrt(paths.variance_s2[mine])
        # The smoother a law begins and the narrower it is, the less of it lies near 0.
        wide = (order < 2.0) | (deviation_s > mean_s)
        near_0 = np.where(wide, 0.002, np.where(order < 4.0, 0.01, 0.04))
        self.least_s = min(self.least_s, float((near_0 * mean_s).min()))
        self.most_s = max(self.most_s, float((mean_s + 14.0 * deviation_s).max()))
        self.narrowest = min(self.narrowest, float((deviation_s / mean_s).min()))
        self.corners = self.corners or bool(np.any(paths.rough[mine]))

    def times_s(self, *, coarse: bool = False) -> Floats:
        """The grid, in seconds; a coarse one is good to about 1e-3."""
        if self.most_s == 0.0:
            return np.array([1e-6, 1e-5])
        low, high = math.log(self.least_s), math.log(self.most_s)
        widest = _STEP_BESIDE_CORNERS if self.corners else _WIDEST_STEP
        step = min(max(0.25 * self.narrowest, _NARROWEST_STEP), widest)
        step = _WIDEST_STEP if coarse else step
        count = min(int((high - low) / step) + 2, _MOST_POINTS)
        times: Floats = np.exp(np.linspace(low, high, count))
        return times


class Tables:
    """Makes the tables of one prediction: CDF and slope at each time of one grid."""

    def __init__(self, times_s: Floats, workshop: Workshop) -> None:
        self.times_s = times_s
        self.step = math.log(times_s[1] / times_s[0])
        self._workshop = workshop
        self._nodes = NodeValues((_TERMS,))

    def stack(self, stages: Sequence[Stage]) -> tuple[Floats, Floats, Floats]:
        """CDF and change per grid step of the random part of each path, [path, time]; its atom."""
        atoms = np.array([math.prod(delay.atom for delay in stage.delays) for stage in stages])
        below = np.ones((len(stages), self.times_s.size))
        slope = np.zeros(below.shape)
        smooth = []
        for index, stage in enumerate(stages):
            if has_closed_form(stage.delays):
                below[index], slope[index] = self._closed(stage.delays[0])
            elif is_rough(stage.delays):
                below[index], slope[index] = self._enclosed(stage.delays)
            elif stage.delays:
                smooth.append(index)
        if smooth:
            below[smooth], slope[smooth] = self._inverted([stages[i].delays for i in smooth])
        return *_rising(below, slope, atoms), atoms

    def stack_bundle(
        self, transforms: Complexes, paths: StageColumns
    ) -> tuple[Floats, Floats, Floats]:
        """As :meth:`stack`, for many paths by their transforms at :attr:`z`, [path, time · node].

        Corners are smeared by some 1e-3 where fewer than a few delays are added up.
        """
        values = transforms.reshape(len(transforms), self.times_s.size, -1)
        _, weights = euler_rule(_TERMS)
        shape = (self.times_s.size, weights.size)
        below: Floats = (values / self.z.reshape(shape)).real @ weights / self.times_s
        slope: Floats = values.real @ weights * self.step
        fixed = paths.random_s == 0.0
        below[fixed], slope[fixed] = 1.0, 0.0
        return *_rising(below, slope, paths.atom), paths.atom

    @cached_property
    def z(self) -> Complexes:
        """The inversion nodes of all times, one time after the other."""
        nodes, _ = euler_rule(_TERMS)
        z: Complexes = (nodes / self.times_s[:, None]).ravel()
        return z

    def _closed(self, delay: Delay) -> tuple[Floats, Floats]:
        form = ClosedForm(delay=delay)
        above, under = (form.cdf(self.times_s * (1.0 + e)).value for e in (_NUDGE, -_NUDGE))
        return form.cdf(self.times_s).value, (above - under) * (0.5 * self.step / _NUDGE)

    def _enclosed(self, delays: tuple[Delay, ...]) -> tuple[Floats, Floats]:
        form = on_lattice(delays, self._workshop, _LATTICE_POINTS)
        below = form.cdf(self.times_s).value
        return below, np.gradient(below)

    def _inverted(self, paths: list[tuple[Delay, ...]]) -> tuple[Floats, Floats]:
        _, weights = euler_rule(_TERMS)
        transforms = []
        for delays in paths:
            z, transform = self._nodes.product(delays, self.times_s)
            transforms.append(transform)
        stacked = np.array(transforms)
        below: Floats = (stacked / z).real @ weights / self.times_s
        slope: Floats = stacked.real @ weights * self.step  # t f(t), the slope in the logarithm
        return below, slope


def _rising(below: Floats, slope: Floats, atoms: Floats) -> tuple[Floats, Floats]:
    """Values that never fall, and slopes that keep the cubics between them from falling."""
    below = np.maximum.accumulate(np.clip(below, atoms[:, None], 1.0), axis=1)
    return below, _monotone(below, slope)


def _monotone(below: Floats, slope: Floats) -> Floats:
    """Slopes cut to what keeps the cubics between the points from turning back."""
    rise = np.diff(below, axis=1)
    most = np.empty(below.shape)
    most[:, 0], most[:, -1] = rise[:, 0], rise[:, -1]
    np.minimum(rise[:, 1:], rise[:, :-1], out=most[:, 1:-1])
    cut: Floats = np.clip(slope, 0.0, 3.0 * most)
    return cut


@dataclass(frozen=True, kw_only=True)
class PathTable:
    """The laws of some paths on the grid, and how to read them anywhere."""

    tables: Tables
    shifts_s: Floats
    below: Floats  # [path, grid point]
    slope: Floats
    atoms: Floats

    @cached_property
    def _first(self) -> Floats:
        """Exponent by which each law grows below the grid."""
        grown = np.maximum(self.below[:, 0] - self.atoms, 1e-300)
        return np.clip(self.slope[:, 0] / self.tables.step / grown, 0.05, 60.0)

    @cached_property
    def _last(self) -> Floats:
        """Rate at which each law ends beyond the grid, 1/s."""
        left = np.maximum(1.0 - self.below[:, -1], 1e-300)
        per_s = self.slope[:, -1] / self.tables.step / self.tables.times_s[-1]
        rate: Floats = np.clip(per_s / left, 1.0 / self.tables.times_s[-1], 1e300)
        return rate

    def at(self, t_s: Floats) -> tuple[Floats, Floats]:
        """P[delay ≤ t] and density of every path at every time, [..., path] for times [...]."""
        times_s, step = self.tables.times_s, self.tables.step
        rest = t_s[..., None] - self.shifts_s
        rest = np.where(np.abs(rest) <= 1e-14 * self.shifts_s, 0.0, rest)
        safe = np.maximum(rest, 1e-300)
        place = np.log(safe / times_s[0]) / step
        at = np.clip(place, 0, times_s.size - 2).astype(np.int64)
        path = np.arange(self.shifts_s.size)
        value, slope = _cubic(self.below, self.slope, path, at, place - at)
        early = place < 0
        if np.any(early):
            shrunk = np.exp(np.minimum(place, 0.0) * step * self._first)
            grown = (self.below[:, 0] - self.atoms) * shrunk
            value = np.where(early, self.atoms + grown, value)
            slope = np.where(early, grown * self._first * step, slope)
        late = place > times_s.size - 1
        if np.any(late):
            over = np.maximum(rest - times_s[-1], 0.0)
            left = (1.0 - self.below[:, -1]) * np.exp(-self._last * over)
            value = np.where(late, 1.0 - left, value)
            slope = np.where(late, left * self._last * safe * step, slope)
        value = np.where(rest < 0, 0.0, np.where(rest == 0, self.atoms, value))
        return value, np.where(rest > 0, slope / (step * safe), 0.0)


@dataclass(frozen=True, kw_only=True)
class Mixtures:
    """Several mixtures of the same paths: row i of ``weights`` mixes the paths into law i."""

    paths: PathTable
    weights: Floats  # [mixture, path], rows sum to 1
    cuts: tuple[Floats, Floats]  # [path] of each path: share before buffers drop what has expired,
    # and what they leave of the share beyond

    def cdf(self, t_s: Floats) -> Floats:
        """P[delay ≤ t] of each mixture, [mixture, time]; times are [mixture, time] too."""
        return self._cdf_and_density(t_s)[0]

    def quantiles(self, shares: Sequence[float]) -> Floats:
        """Quantiles of each mixture in seconds, [mixture, share]."""
        count = max(1, _BLOCK // (len(shares) * self.paths.shifts_s.size))
        parts = [
            self._rows(slice(begin, begin + count))._solve(np.array(shares))
            for begin in range(0, len(self.weights), count)
        ]
        return np.concatenate(parts) if parts else np.empty((0, len(shares)))

    def only(self, row: int) -> Mixtures:
        """One of the mixtures."""
        return self._rows(slice(row, row + 1))

    def _rows(self, rows: slice) -> Mixtures:
        return Mixtures(paths=self.paths, weights=self.weights[rows], cuts=self.cuts)

    def _solve(self, shares: Floats) -> Floats:
        """Newton's steps where they stay inside the bracket, halving where they do not."""
        used = self.weights > 0
        shape = (len(self.weights), shares.size)
        least = np.where(used, self.paths.shifts_s, np.inf).min(axis=1)
        low = np.broadcast_to(least[:, None], shape) * (1.0 - 1e-12)
        most = np.where(used, self.paths.shifts_s, 0.0).max(axis=1)
        high = np.broadcast_to(most[:, None], shape) + 2.0 * self.paths.tables.times_s[-1]
        t_s = low + 0.1 * (high - low)
        for number in range(_ROUNDS):
            value, density = self._cdf_and_density(t_s)
            missing = shares - value
            low = np.where(missing > 0, t_s, low)
            high = np.where(missing > 0, high, t_s)
            with np.errstate(divide="ignore", invalid="ignore"):
                step = t_s + missing / density
            inside = (step > low) & (step < high) & (number < 12 or number % 2 == 0)
            next_s = np.where(inside, step, 0.5 * (low + high))
            settled = (np.abs(next_s - t_s) <= 1e-9 * t_s) | (high - low <= 1e-12 * high)
            t_s = next_s
            if np.all(settled):
                break
        found: Floats = np.where(high - low <= 1e-9 * high, high, t_s)
        return found

    def _cdf_and_density(self, t_s: Floats) -> tuple[Floats, Floats]:
        value, density = self._without_expired(*self.paths.at(t_s))
        return (
            np.einsum("atp,ap->at", value, self.weights),
            np.einsum("atp,ap->at", density, self.weights),
        )

    def _without_expired(self, value: Floats, density: Floats) -> tuple[Floats, Floats]:
        """The laws of what is delivered: beyond the cut, only what buffers leave."""
        before, left = self.cuts
        if np.all(left == 1.0):
            return value, density
        whole = before + (1.0 - before) * left
        beyond = value > before
        value = np.where(beyond, before + (value - before) * left, value) / whole
        return value, np.where(beyond, density * left, density) / whole


def _cubic(
    below: Floats, slope: Floats, path: NDArray[np.int64], at: NDArray[np.int64], x: Floats
) -> tuple[Floats, Floats]:
    """Value and derivative of the cubic between two grid points, x from 0 to 1."""
    f0, f1 = below[path, at], below[path, at + 1]
    s0, s1 = slope[path, at], slope[path, at + 1]
    rise = f1 - f0
    bend, twist = 3.0 * rise - 2.0 * s0 - s1, s0 + s1 - 2.0 * rise
    value = f0 + x * (s0 + x * (bend + x * twist))
    return value, s0 + x * (2.0 * bend + 3.0 * x * twist)


def mixtures(
    tables: Tables,
    stages: Sequence[Stage],
    weights: Floats,
    cuts: tuple[Floats, Floats] | None = None,
) -> Mixtures:
    """Mixtures of the delays of what survives each stage; rows of weights need not sum to 1.

    ``cuts`` says what buffers leave of it, see ``Mixtures``; by default everything.
    """
    below, slope, atoms = tables.stack(stages)
    shifts_s = np.array([stage.shift_s for stage in stages])
    paths = PathTable(tables=tables, shifts_s=shifts_s, below=below, slope=slope, atoms=atoms)
    nothing = np.ones(len(stages))
    return Mixtures(
        paths=paths,
        weights=weights / weights.sum(axis=1, keepdims=True),
        cuts=cuts or (nothing, nothing),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonGrid:
    """The laws of many paths, shifts included, at the same times: mixtures are then one product.

    Between the times, which grow by a constant factor, a cubic leads on. Whatever corners lie
    there, a quantile is never further off than to the next of these times.
    """

    times_s: Floats
    below: Floats  # [path, time]
    slope: Floats  # per step of the grid

    def quantiles(self, weights: sparse.csr_array, shares: Sequence[float]) -> Floats:
        """Quantiles of mixtures in seconds, [mixture, share]; weights are [mixture, path]."""
        total = weights.sum(axis=1)[:, None]
        below, slope = (weights @ self.below) / total, (weights @ self.slope) / total
        below, slope = _rising(below, slope, np.zeros(len(below)))
        columns = [_crossing(below, slope, share, self.times_s) for share in shares]
        return np.stack(columns, axis=1)


def common_grid(paths: PathTable) -> CommonGrid:
    """The laws of paths at ``GRID_POINTS`` common times."""
    first_s = float((paths.shifts_s + paths.tables.times_s[0]).min())
    last_s = float((paths.shifts_s + paths.tables.times_s[-1]).max())
    times_s = np.geomspace(first_s, last_s, GRID_POINTS)
    value, density = paths.at(times_s)
    slope = density.T * (times_s * math.log(times_s[1] / times_s[0]))
    return CommonGrid(times_s=times_s, below=np.ascontiguousarray(value.T), slope=slope)


def _crossing(below: Floats, slope: Floats, share: float, times_s: Floats) -> Floats:
    """Where each row first reaches a share, in seconds, by halving the step in which it does."""
    row = np.arange(len(below))
    at = np.clip((below < share).sum(axis=1) - 1, 0, times_s.size - 2)
    low, high = np.zeros(row.size), np.ones(row.size)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        short = _cubic(below, slope, row, at, middle)[0] < share
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    found: Floats = times_s[at] * np.exp(high * math.log(times_s[1] / times_s[0]))
    return np.where(below[:, 0] >= share, times_s[0], found)
