"""Events that are matched after a random time E, for subscribers that stay an exponential time.

Notified is what arrives in time max(S, E) + R of the stay, S being the time its subscription took
to where the event is matched, hence with E[exp(−θ max(S, E))] exp(−θR). That is exp(−θ(E + R)), as
for a subscription known all along, less what arrives in vain: (exp(−θE) − exp(−θS))⁺ exp(−θR). The
first is a sum of weighted delays, as exact as these; only what is taken off it is tabulated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import CubicSpline, PchipInterpolator

from tidings.theory.churn.running import RunningIntegral, panel_edges
from tidings.theory.churn.staying import corners_s, far_s
from tidings.theory.churn.weighing import Weighed
from tidings.theory.lattice import Lattice
from tidings.theory.path_laws import PathLaw, Workshop, is_rough, path_law
from tidings.theory.stages import Chain, Complexes, Delay, Floats, Stage

_EXACTLY = 1e-10  # error of weights, seen against quadrature, with a margin
_SMOOTHLY, _BESIDE_CORNERS = 1e-7, 2e-5  # errors of tables, the same way
_TIMES, _LEAST = 320, 1e-7  # of a table, from so small a part of its end on
_PARTS, _WIDTH = 320, 16.0  # of a sum, by the logarithm of E/R, from −16 to 16
_ALL = 30.0  # standard deviations beyond the mean, past which next to nothing is left


@dataclass(frozen=True, kw_only=True)
class NotKnown:
    """E[(exp(−θt) − exp(−θS))⁺] = ∫ θ exp(−θu) P[S > u] du from t on, as a weight of E."""

    spreading: Stage  # S
    per_s: float  # θ
    workshop: Workshop

    @cached_property
    def _area(self) -> RunningIntegral:
        """That integral, from the least S on."""
        start_s = self.spreading.shift_s
        return RunningIntegral(
            of=lambda t_s: self.slope(start_s + t_s),
            edges_s=panel_edges(far_s(self.spreading), corners_s(self.spreading)),
        )

    def share(self, t_s: Floats) -> Floats:
        """The weight of what takes t."""
        start_s = self.spreading.shift_s
        for_certain = np.exp(-self.per_s * t_s) * -np.expm1(
            -self.per_s * np.maximum(start_s - t_s, 0.0)
        )
        return np.asarray(for_certain + self._area.total - self._area.up_to(t_s - start_s))

    def slope(self, t_s: Floats) -> Floats:
        """By how much it falls at t, per second."""
        unknown = 1.0 - path_law(self.spreading, self.workshop).cdf(t_s).value
        found: Floats = self.per_s * np.exp(-self.per_s * t_s) * unknown
        return found

    @property
    def error(self) -> float:
        """How far weights can be off."""
        return _EXACTLY

    @property
    def last_s(self) -> float:
        """By when the subscription is known for certain."""
        return self.spreading.shift_s + float(self._area.edges_s[-1])

    @property
    def corners_s(self) -> list[float]:
        """Times at which it may bend."""
        start_s = self.spreading.shift_s
        return [start_s, *(start_s + each for each in corners_s(self.spreading))]


@dataclass(frozen=True, kw_only=True, eq=False)
class InVain:
    """E + R of what arrives for a subscription that was not known yet, as each is weighted."""

    first: Weighed  # E
    rest: tuple[Delay, ...]  # R
    workshop: Workshop

    @property
    def mean_s(self) -> float:
        """Mean, in seconds, shifts not counted."""
        return self.first.mean_s + sum(delay.mean_s for delay in self.rest)

    @property
    def variance_s2(self) -> float:
        """Variance, in seconds squared."""
        return self.first.variance_s2 + sum(delay.variance_s2 for delay in self.rest)

    @property
    def atom(self) -> float:
        """P[E and R take no time]."""
        return self.first.atom * math.prod(delay.atom for delay in self.rest)

    @property
    def _rough(self) -> bool:
        bends = bool(self.first.staying.corners_s[1:]) or self.first.staying.corners_s[0] > 0.0
        return bends or is_rough(self.first.way.delays) or is_rough(self.rest)

    def cdf(self, t_s: Floats) -> Floats:
        """P[E + R ≤ t], shifts not counted."""
        return self._table[0](t_s) if self.rest else self.first.cdf(t_s)

    @property
    def cdf_error(self) -> float:
        """What tables can be off, and what half as many parts would change."""
        if not self.rest:
            return self.first.cdf_error
        tables = _BESIDE_CORNERS if self._rough else _SMOOTHLY
        return self.first.cdf_error + self._table[1] + tables

    @cached_property
    def _table(self) -> tuple[_Table, float]:
        law = path_law(Stage(delays=self.rest), self.workshop)
        parts = (
            _table(self.first.cdf, (self.first.mean_s, self.first.variance_s2), self._rough),
            _table(
                lambda t_s: law.cdf(t_s).value,
                (law.mean_s, sum(delay.variance_s2 for delay in self.rest)),
                self._rough,
            ),
        )
        errors = []

        def summed(t_s: Floats) -> Floats:
            value, error = _summed(*parts, t_s)
            errors.append(float(error.max()))
            return value

        found = _table(summed, (self.mean_s, self.variance_s2), self._rough)
        return found, max(errors)

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)], for moderate z."""
        found = self.first.transform(z)
        for delay in self.rest:
            found = found * delay.transform(z)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A law by the logarithm of time, and what takes no time."""

    curve: CubicSpline | PchipInterpolator
    atom: float

    def __call__(self, t_s: Floats) -> Floats:
        times_s = np.asarray(t_s, dtype=np.float64)
        place = np.log(np.maximum(times_s, 1e-300))
        first, last = self.curve.x[0], self.curve.x[-1]
        inside = np.clip(self.curve(np.clip(place, first, last)), 0.0, 1.0)
        soon = self.atom + (inside - self.atom) * np.exp(np.minimum(place - first, 0.0))
        found = np.where(place < first, soon, np.where(place > last, 1.0, inside))
        return np.where(times_s < 0.0, 0.0, np.where(times_s == 0.0, self.atom, found))


def _table(of: Callable[[Floats], Floats], moments: tuple[float, float], rough: bool) -> _Table:
    """A law at times that grow by a constant factor, up to where its moments let it end."""
    end_s = moments[0] + _ALL * math.sqrt(moments[1])
    times_s = np.geomspace(_LEAST * end_s, end_s, _TIMES)
    values = of(np.concatenate([[0.0], times_s]))
    curve = (PchipInterpolator if rough else CubicSpline)(np.log(times_s), values[1:])
    return _Table(curve=curve, atom=float(values[0]))


def _summed(one: _Table, other: _Table, t_s: Floats) -> tuple[Floats, Floats]:
    """P[X + Y ≤ t] = Σ P[X in a part] P[Y ≤ t − X], and what half as many parts change.

    Parts are finest at both ends, as X or Y may be far less than t. Within a part Y's law is taken
    as straight; what that is off falls with the square of the width, and twice it is taken off.
    """
    inside = np.linspace(-_WIDTH, _WIDTH, _PARTS + 1)
    up, down = (1.0 / (1.0 + np.exp(-each)) for each in (inside, -inside))
    up[0], down[0], up[-1], down[-1] = 0.0, 1.0, 1.0, 0.0
    here, beyond = one(t_s[:, None] * up), other(t_s[:, None] * down)

    def straight(every: int) -> Floats:
        shares, ends = np.diff(here[:, ::every], axis=1), beyond[:, ::every]
        found: Floats = (shares * 0.5 * (ends[:, 1:] + ends[:, :-1])).sum(axis=1)
        return found + here[:, 0] * beyond[:, 0]

    fine, middle, coarse = map(straight, (1, 2, 4))
    better, good = fine + (fine - middle) / 3.0, middle + (middle - coarse) / 3.0
    best: Floats = better + (better - good) / 15.0
    return best, np.abs(best - better)


@dataclass(frozen=True, kw_only=True, eq=False)
class Met:
    """The delay of what is notified: of all that arrives, without what arrives in vain."""

    arriving: tuple[Delay, ...]  # as weighted by exp(−θX)
    vain: tuple[tuple[float, InVain], ...]  # each with its share of what arrives
    workshop: Workshop

    @cached_property
    def _law(self) -> PathLaw:
        return path_law(Stage(delays=self.arriving), self.workshop)

    @property
    def _left(self) -> float:
        return 1.0 - sum(share for share, _ in self.vain)

    @cached_property
    def mean_s(self) -> float:
        """Mean, in seconds."""
        off_s = sum(share * each.mean_s for share, each in self.vain)
        return (self._law.mean_s - off_s) / self._left

    @cached_property
    def variance_s2(self) -> float:
        """Variance, in seconds squared."""
        square = self._law.mean_s**2 + sum(delay.variance_s2 for delay in self.arriving)
        off = sum(share * (each.variance_s2 + each.mean_s**2) for share, each in self.vain)
        return max((square - off) / self._left - self.mean_s**2, 0.0)

    @cached_property
    def atom(self) -> float:
        """P[it takes no time]."""
        off = sum(share * each.atom for share, each in self.vain)
        return max(self._law.atom - off, 0.0) / self._left

    @property
    def order(self) -> float:
        """As smooth as what arrives."""
        return sum(delay.order for delay in self.arriving)

    @property
    def kinked(self) -> bool:
        """Whether it may have corners."""
        return True

    def chain(self) -> Chain | None:
        """None: it is asked by its CDF."""
        return None

    def cdf(self, t_s: Floats) -> Floats:
        """P[X ≤ t]."""
        times_s = np.asarray(t_s, dtype=np.float64)
        off = sum(share * each.cdf(times_s) for share, each in self.vain)
        return np.clip((self._law.cdf(times_s).value - off) / self._left, 0.0, 1.0)

    @cached_property
    def cdf_error(self) -> float:
        """How far the CDF can be off."""
        times_s = self._law.mean_s * np.geomspace(0.01, 100.0, 41)
        worst = float(self._law.cdf(times_s).error.max())
        return (worst + sum(share * each.cdf_error for share, each in self.vain)) / self._left

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)], for moderate z."""
        found: Complexes = np.ones(np.shape(z), dtype=np.complex128)
        for delay in self.arriving:
            found = found * delay.transform(z)
        off = sum(share * each.transform(z) for share, each in self.vain)
        return np.asarray((found - off) / self._left)

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Images of the delay made earlier and made later."""
        return lattice.enclosing(self.cdf)
