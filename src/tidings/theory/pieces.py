r"""How finely a sum of delays must be rounded: the error of a lattice, known before it is used.

A delay is a random number of independent *pieces*, each with a density; a wait is often none. Every
piece is rounded to the nearest of 0, h, 2h, …, and the CDF of the sum is asked between points, at
(k + ½)h. One piece alone is then exact. With more, let L be the piece that is rounded last. What
the rounding of another piece X changes is at most

.. math:: \tfrac{h^2}{8} \left( M_L V_X + V_L M_X \right),

M a bound of the density and V its total variation: within a step the CDF of L (smoothed by all the
rest) is a line but for the variation of its slope, the density of X a constant but for its own, and
the rounding of a constant density changes no line. A piece without such bounds (an atom, a density
that is infinite somewhere) is shared between the two next points instead, which keeps its mean; the
change is then at most h²/8 times the bound M_L V_K of the second derivative of two other pieces,
or h/4 · V_L where there is only one. Between the points asked the CDF is drawn straight, which adds
h²/8 times the same bound again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import special

from tidings.model.laws import (
    Empirical,
    Exponential,
    Gamma,
    HyperExponential,
    Law,
    LogNormal,
    PhaseType,
    Uniform,
    Weibull,
    phases,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """The pieces of a delay: how many on average, and how steep the density of one can be."""

    count: float
    none: float  # P[there is none]
    peak_per_s: float  # bound of the density; infinite where it has none
    swing_per_s: float  # its total variation, from 0 up and down to 0

    @property
    def bounded(self) -> bool:
        """Whether the density has bounds."""
        return math.isfinite(self.swing_per_s)

    @property
    def always(self) -> bool:
        """Whether there is at least one."""
        return self.none == 0.0


def law_pieces(law: Law) -> Pieces:
    """One piece, the law itself; none with the probability of its atom at 0."""
    atom = float(law.cdf(0.0))
    peak_per_s, swing_per_s = _steepness(law)
    return Pieces(
        count=1.0 - atom,
        none=atom,
        peak_per_s=peak_per_s / max(1.0 - atom, 1e-300),
        swing_per_s=swing_per_s / max(1.0 - atom, 1e-300),
    )


def rounding_error(parts: Sequence[Pieces], step_s: float) -> float:
    """How far the CDF of a sum can be off if its pieces are rounded to a step; infinite: unknown.

    >>> uniform = Pieces(count=1.0, none=0.0, peak_per_s=1.0, swing_per_s=2.0)
    >>> round(rounding_error([uniform, uniform], 0.01), 9)
    7.5e-05
    """
    eighth = step_s**2 / 8.0
    flattest = sorted(parts, key=lambda part: part.peak_per_s if part.always else math.inf)
    found = math.inf
    if flattest and flattest[0].always and flattest[0].bounded:
        found = _beside(flattest[0], flattest[1:], step_s)
    if all(part.bounded for part in parts):
        peak = max(part.peak_per_s for part in parts)
        swing = max(part.swing_per_s for part in parts)
        # Whichever piece is rounded last, there are that many besides, and the line between points.
        none = math.prod(part.none for part in parts)
        others = max(sum(part.count for part in parts) - 1.0 + none, 0.0)
        found = min(found, eighth * peak * swing * (2.0 * others + min(others, 1.0)))
    return found


def _beside(last: Pieces, others: Sequence[Pieces], step_s: float) -> float:
    """The bound where one piece, which is always there, is rounded last."""
    eighth = step_s**2 / 8.0
    curved = min((_curvature(last, part) for part in others if part.always), default=math.inf)
    smooth = min(eighth * curved, 0.25 * step_s * last.swing_per_s)
    total = straight = 0.0
    for part in others:
        if part.bounded:
            twisted = last.peak_per_s * part.swing_per_s + last.swing_per_s * part.peak_per_s
            total += part.count * min(eighth * twisted, 0.5 * step_s * last.peak_per_s)
            line = min(eighth * _curvature(last, part), 0.25 * step_s * last.swing_per_s)
        else:
            total += part.count * smooth
            line = smooth
        straight = max(straight, line)
    return total + straight


def _curvature(one: Pieces, other: Pieces) -> float:
    """A bound of the slope of the density of two pieces together, in 1/s²."""
    return min(one.peak_per_s * other.swing_per_s, one.swing_per_s * other.peak_per_s)


def _steepness(law: Law) -> tuple[float, float]:
    """Bound and total variation of the density above 0, in 1/s; infinite where there is none."""
    match law:
        case Exponential():
            return _one_hump(1.0 / law.mean_s)
        case HyperExponential():
            pairs = zip(law.weights, law.means_s, strict=True)
            return _one_hump(sum(weight / mean_s for weight, mean_s in pairs))
        case Uniform():
            return _one_hump(1.0 / (law.high_s - law.low_s))
        case Gamma() if law.shape >= 1.0:
            more = law.shape - 1.0
            top = special.xlogy(more, more) - more - special.gammaln(law.shape)
            return _one_hump(math.exp(top) * law.shape / law.mean_s)
        case Weibull() if law.shape >= 1.0:
            more = 1.0 - 1.0 / law.shape
            return _one_hump(law.shape / law.scale_s * more**more * math.exp(-more))
        case LogNormal():
            top = math.exp(0.5 * law.sigma**2 - law.mu)
            return _one_hump(top / (law.sigma * math.sqrt(2.0 * math.pi)))
        case Empirical():
            return _histogram(law)
        case PhaseType():
            return _chain(law)
    return math.inf, math.inf


def _one_hump(peak_per_s: float) -> tuple[float, float]:
    """A density that rises and then falls."""
    return peak_per_s, 2.0 * peak_per_s


def _histogram(law: Empirical) -> tuple[float, float]:
    heights = []
    for (low_s, high_s), weight in zip(pairwise(law.edges_s), law.weights, strict=True):
        if high_s > low_s:
            heights.append(weight / (high_s - low_s))
        elif weight > 0.0 and low_s > 0.0:
            return math.inf, math.inf
    outline = np.array([0.0, *heights, 0.0])
    return float(outline.max()), float(np.abs(np.diff(outline)).sum())


def _chain(law: PhaseType) -> tuple[float, float]:
    """No steeper than the fastest way out; f' = initial exp(Tt) T t₀, its terms taken as sizes."""
    found = phases(law)
    assert found is not None
    leaving = np.maximum(-found.generator.sum(axis=1), 0.0)
    spent_s = np.linalg.solve(-found.generator.T, found.initial)
    changing = float(np.maximum(spent_s, 0.0) @ np.abs(found.generator @ leaving))
    return float(leaving.max()), changing + float(found.initial @ leaving)
