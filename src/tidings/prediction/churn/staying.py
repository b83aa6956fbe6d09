"""How much of what takes a time t a subscriber gets that stays a time T and took S to be known.

    w(t) = E[(T − S − t)⁺]/E[T],    v(t) = −w′(t) = P[T − S > t]/E[T]

Exact for exponential, constant and uniform stays and for histograms of them, and for any stays
where S is constant; otherwise tabulated, good to some 1e-8.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.interpolate import CubicSpline

from tidings.model.laws import (
    Deterministic,
    Empirical,
    Exponential,
    Law,
    Uniform,
    left_share,
    unshifted,
)
from tidings.prediction.churn.running import RunningIntegral, panel_edges
from tidings.prediction.churn.tilting import transform_at
from tidings.prediction.path_laws import PathLaw, Workshop, path_law
from tidings.prediction.stages import Floats, Stage

Function = Callable[[Floats], Floats]

_EXACTLY, _TABULATED = 1e-10, 1e-7  # errors of shares, seen against quadrature, with a margin
_FAR = 40.0  # standard deviations beyond the mean, where a law has ended
_REST = 1e-12  # of stays that may be longer than the table
_EVEN_TIMES, _GROWING_TIMES = 500, 500  # of the table


def far_s(way: Stage) -> float:
    """A time after the shift of a way by which it has all but certainly ended, in seconds."""
    deviation_s = math.sqrt(sum(delay.variance_s2 for delay in way.delays))
    return way.mean_s - way.shift_s + _FAR * deviation_s


@dataclass(frozen=True, kw_only=True)
class Staying:
    """A law of stays, and the way of the subscription to the publisher's broker."""

    stays: Law
    spreading: Stage
    workshop: Workshop

    def share(self, t_s: Floats) -> Floats:
        """w(t): the share of events that take t and are notified."""
        if isinstance(self.stays, Exponential):
            return self._met * np.exp(-t_s / self.stays.mean_s)
        if not self.spreading.delays:
            return left_share(self.stays, t_s + self.spreading.shift_s)
        if self._bins is not None:
            return self._over_bins(t_s, (self._spread_area, self._spread_area_of_area))
        return self._tabulated(t_s, 0)

    def slope(self, t_s: Floats) -> Floats:
        """v(t), per second."""
        if isinstance(self.stays, Exponential):
            return self.share(t_s) / self.stays.mean_s
        if not self.spreading.delays:
            return (1.0 - self.stays.cdf(t_s + self.spreading.shift_s)) / self.stays.mean_s
        if self._bins is not None:
            return self._over_bins(t_s, (self._spread_by, self._spread_area))
        return -self._tabulated(t_s, 1)

    @property
    def error(self) -> float:
        """How far shares can be off."""
        exact = isinstance(self.stays, Exponential) or self._bins is not None
        return _EXACTLY if exact or not self.spreading.delays else _TABULATED

    @property
    def last_s(self) -> float:
        """When nobody is left that could be told, in seconds; perhaps infinite."""
        return float(self.stays.quantile(1.0)) - self.spreading.shift_s

    @property
    def corners_s(self) -> list[float]:
        """Times at which v may jump or bend."""
        edges = [float(self.stays.quantile(0.0)), float(self.stays.quantile(1.0))]
        if self._bins is not None:
            edges += [float(each) for each in self._bins[0]]
        return [each - self.spreading.shift_s for each in edges]

    @cached_property
    def _met(self) -> float:
        """E[exp(−θS)], for exponential stays."""
        rate = 1.0 / self.stays.mean_s
        known = math.exp(-rate * self.spreading.shift_s)
        return known * math.prod(transform_at(each, rate) for each in self.spreading.delays)

    # ---- the law of S and its integrals, from its shift on ---------------------------------------

    @cached_property
    def _spread(self) -> PathLaw:
        return path_law(self.spreading, self.workshop)

    def _spread_by(self, t_s: Floats) -> Floats:
        """P[S − shift ≤ t]."""
        return self._spread.cdf(self.spreading.shift_s + t_s).value

    @cached_property
    def _running(self) -> tuple[RunningIntegral, RunningIntegral]:
        edges_s = panel_edges(far_s(self.spreading))
        first = RunningIntegral(of=self._spread_by, edges_s=edges_s)
        return first, RunningIntegral(of=first.up_to, edges_s=edges_s)

    def _spread_area(self, t_s: Floats) -> Floats:
        """∫ P[S − shift ≤ s] ds up to t."""
        first, _ = self._running
        return np.asarray(first.up_to(t_s) + np.maximum(t_s - first.edges_s[-1], 0.0))

    def _spread_area_of_area(self, t_s: Floats) -> Floats:
        """The integral of that."""
        first, second = self._running
        over_s = np.maximum(t_s - first.edges_s[-1], 0.0)
        return np.asarray(second.up_to(t_s) + over_s * (first.total + 0.5 * over_s))

    # ---- stays that are evenly spread over bins --------------------------------------------------

    @cached_property
    def _bins(self) -> tuple[Floats, Floats, Floats] | None:
        """Where bins begin and end, and the share of stays in each; None if there are no bins."""
        base, shift_s = unshifted(self.stays)
        edges: Sequence[float]
        shares: Sequence[float] = (1.0,)
        match base:
            case Deterministic():
                edges = (base.value_s, base.value_s)
            case Uniform():
                edges = (base.low_s, base.high_s)
            case Empirical():
                edges, shares = base.edges_s, base.weights
            case _:
                return None
        edges_s = shift_s + np.array(edges)
        return edges_s[:-1], edges_s[1:], np.array(shares)

    def _over_bins(self, t_s: Floats, forms: tuple[Function, Function]) -> Floats:
        """E[g((T − t − shift)⁺)]/E[T] from g, for bins of no width, and from its integral."""
        assert self._bins is not None
        plain, integral = forms
        found = np.zeros(t_s.shape)
        for low_s, high_s, share in zip(*self._bins, strict=True):
            until_s = np.maximum(high_s - self.spreading.shift_s - t_s, 0.0)
            if low_s == high_s:
                alive = high_s - self.spreading.shift_s >= t_s
                found += share * np.where(alive, plain(until_s), 0.0)
                continue
            from_s = np.maximum(low_s - self.spreading.shift_s - t_s, 0.0)
            grown = integral(until_s) - integral(from_s)
            found += share * grown / (high_s - low_s)
        return found / self.stays.mean_s

    # ---- all others ------------------------------------------------------------------------------

    @cached_property
    def _table(self) -> CubicSpline:
        """W by times: E[g(S)] = ∫ −g′(s) P[S ≤ s] ds, with g(s) = E[(T − t − s)⁺]."""
        area, _ = self._running
        nodes_s, start_s = area.nodes_s.ravel(), self.spreading.shift_s
        weights = self._spread_by(nodes_s) * area.weights_s.ravel() / self.stays.mean_s
        end_s, mean_s = float(self.stays.quantile(1.0 - _REST)), self.stays.mean_s
        even = np.linspace(0.0, min(4.0 * mean_s, end_s), _EVEN_TIMES)
        growing = np.geomspace(1e-3 * mean_s, end_s, _GROWING_TIMES)
        times_s = np.unique(np.concatenate([even, growing]))
        inside = [weights @ (1.0 - self.stays.cdf(t + start_s + nodes_s)) for t in times_s]
        beyond = left_share(self.stays, times_s + start_s + area.edges_s[-1])
        return CubicSpline(times_s, np.array(inside) + beyond)

    def _tabulated(self, t_s: Floats, derivative: int) -> Floats:
        inside = np.minimum(t_s, self._table.x[-1])
        return np.where(t_s > inside, 0.0, self._table(inside, derivative))
