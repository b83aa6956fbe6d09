"""How much of what takes a time t a subscriber gets that stays a time T and took S to be known.

    w(t) = E[(T − S − t)⁺]/E[T],    v(t) = −w′(t) = P[T − S > t]/E[T]

With an event that is on its way for a time E before the subscription must be known, (S − E)⁺ stands
for S. Exact for exponential, constant and uniform stays and for histograms of them, and for any
stays where S is constant; otherwise tabulated, good to some 1e-8.
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
from tidings.theory.churn.running import RunningIntegral, panel_edges
from tidings.theory.churn.tilting import transform_at
from tidings.theory.path_laws import PathLaw, Workshop, path_law
from tidings.theory.stages import Floats, LawDelay, Stage

Function = Callable[[Floats], Floats]

_EXACTLY, _TABULATED = 1e-10, 1e-7  # errors of shares, seen against quadrature, with a margin
_FAR = 40.0  # standard deviations beyond the mean, where a law has ended
_MOST_CORNERS = 100  # beyond, panels are narrow enough beside what is left of each
_REST = 1e-12  # of stays that may be longer than the table
_EVEN_TIMES, _GROWING_TIMES = 500, 500  # of the table


def far_s(way: Stage) -> float:
    """A time after the shift of a way by which it has all but certainly ended, in seconds."""
    deviation_s = math.sqrt(sum(delay.variance_s2 for delay in way.delays))
    return way.mean_s - way.shift_s + _FAR * deviation_s


def corners_s(way: Stage) -> list[float]:
    """Times after the shift of a way at which its law may have corners; none if they are many."""
    found = {0.0}
    for delay in way.delays:
        if isinstance(delay, LawDelay):
            found = {one + other for one in found for other in (0.0, *_edges_s(delay.law))}
        if len(found) > _MOST_CORNERS:
            return []
    return sorted(found - {0.0})


def _edges_s(law: Law) -> tuple[float, ...]:
    match law:
        case Uniform():
            return law.low_s, law.high_s
        case Empirical():
            return tuple(law.edges_s)
    return ()


@dataclass(frozen=True, kw_only=True)
class Staying:
    """A law of stays, and the way of the subscription to the publisher's broker."""

    stays: Law
    spreading: Stage
    workshop: Workshop
    ahead_s: float = 0.0  # E: how long an event is on its way until it is matched

    @property
    def _shift_s(self) -> float:
        """The least (S − E)⁺, in seconds."""
        return max(self.spreading.shift_s - self.ahead_s, 0.0)

    @property
    def _over_s(self) -> float:
        """By how much E is more than the least S."""
        return max(self.ahead_s - self.spreading.shift_s, 0.0)

    def share(self, t_s: Floats) -> Floats:
        """w(t): the share of events that take t and are notified."""
        if isinstance(self.stays, Exponential):
            return self._met * np.exp(-t_s / self.stays.mean_s)
        if not self.spreading.delays:
            return left_share(self.stays, t_s + self._shift_s)
        if self._bins is not None:
            return self._over_bins(t_s, (self._spread_area, self._spread_area_of_area))
        return self._tabulated(t_s, 0)

    def slope(self, t_s: Floats) -> Floats:
        """v(t), per second."""
        if isinstance(self.stays, Exponential):
            return self.share(t_s) / self.stays.mean_s
        if not self.spreading.delays:
            return (1.0 - self.stays.cdf(t_s + self._shift_s)) / self.stays.mean_s
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
        return float(self.stays.quantile(1.0)) - self._shift_s

    @property
    def corners_s(self) -> list[float]:
        """Times at which v may jump or bend."""
        edges = [float(self.stays.quantile(0.0)), float(self.stays.quantile(1.0))]
        if self._bins is not None:
            edges += [float(each) for each in self._bins[0]]
        known_s = {0.0, *self._spread_corners_s}
        return [each - self._shift_s - after_s for each in edges for after_s in known_s]

    @cached_property
    def _met(self) -> float:
        """E[exp(−θ(S − E)⁺)], for exponential stays."""
        rate = 1.0 / self.stays.mean_s
        if self.spreading.delays and self._over_s > 0.0:  # ∫ θ exp(−θt) P[S − E ≤ t] dt
            edges_s = self._running[0].edges_s
            weighted = RunningIntegral(
                of=lambda t_s: rate * np.exp(-rate * t_s) * self._spread_by(t_s), edges_s=edges_s
            )
            return weighted.total + math.exp(-rate * float(edges_s[-1]))
        known = math.exp(-rate * self._shift_s)
        return known * math.prod(transform_at(each, rate) for each in self.spreading.delays)

    # ---- the law of (S − E)⁺ and its integrals, from its shift on -------------------------------

    @cached_property
    def _spread(self) -> PathLaw:
        return path_law(self.spreading, self.workshop)

    def _spread_by(self, t_s: Floats) -> Floats:
        """P[(S − E)⁺ − shift ≤ t]."""
        return self._spread.cdf(self.spreading.shift_s + self._over_s + t_s).value

    @cached_property
    def _spread_corners_s(self) -> list[float]:
        """Where that law may bend."""
        return [each - self._over_s for each in corners_s(self.spreading) if each > self._over_s]

    @cached_property
    def _running(self) -> tuple[RunningIntegral, RunningIntegral]:
        edges_s = panel_edges(far_s(self.spreading), self._spread_corners_s)
        first = RunningIntegral(of=self._spread_by, edges_s=edges_s)
        return first, RunningIntegral(of=first.up_to, edges_s=edges_s)

    def _spread_area(self, t_s: Floats) -> Floats:
        """∫ P[(S − E)⁺ − shift ≤ s] ds up to t."""
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
            until_s = np.maximum(high_s - self._shift_s - t_s, 0.0)
            if low_s == high_s:
                alive = high_s - self._shift_s >= t_s
                found += share * np.where(alive, plain(until_s), 0.0)
                continue
            from_s = np.maximum(low_s - self._shift_s - t_s, 0.0)
            grown = integral(until_s) - integral(from_s)
            found += share * grown / (high_s - low_s)
        return found / self.stays.mean_s

    # ---- all others ------------------------------------------------------------------------------

    @cached_property
    def _table(self) -> CubicSpline:
        """W by times: E[g(S)] = ∫ −g′(s) P[S ≤ s] ds, with g(s) = E[(T − t − s)⁺]."""
        area, _ = self._running
        nodes_s, start_s = area.nodes_s.ravel(), self._shift_s
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


@dataclass(frozen=True, kw_only=True)
class MixedStaying:
    """One of several, each with its probability; the law of stays is the same."""

    parts: tuple[tuple[float, Staying], ...]

    @property
    def stays(self) -> Law:
        """How long subscribers stay."""
        return self.parts[0][1].stays

    def share(self, t_s: Floats) -> Floats:
        """w(t): the share of events that take t and are notified."""
        return np.asarray(sum(chance * each.share(t_s) for chance, each in self.parts))

    def slope(self, t_s: Floats) -> Floats:
        """v(t), per second."""
        return np.asarray(sum(chance * each.slope(t_s) for chance, each in self.parts))

    @property
    def error(self) -> float:
        """How far shares can be off."""
        return max(each.error for _, each in self.parts)

    @property
    def last_s(self) -> float:
        """When nobody is left that could be told, in seconds; perhaps infinite."""
        return max(each.last_s for _, each in self.parts)

    @property
    def corners_s(self) -> list[float]:
        """Times at which v may jump or bend."""
        return [corner_s for _, each in self.parts for corner_s in each.corners_s]


def mixed(chances: Sequence[float], stayings: Sequence[Staying]) -> Staying | MixedStaying:
    """One of some, with these probabilities."""
    if len(stayings) == 1:
        return stayings[0]
    return MixedStaying(parts=tuple(zip(chances, stayings, strict=True)))
