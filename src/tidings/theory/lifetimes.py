"""On time against a lifetime, certain or random: P[D ≤ L] = E[F(L)], F the law of the path.

An event's own lifetime and a subscriber's are independent, and the shorter one counts. Certain
lifetimes ask the path law once. Exponential ones (and mixtures of them) ask its transform, which is
exact: P[D ≤ L] = E[exp(−θD)]. All others are summed up over cells of time, of each of which the
lifetime's probability is known exactly and over which F can only grow; cells are halved until the
sum stands still.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidings.model.laws import (
    Deterministic,
    Empirical,
    Exponential,
    HyperExponential,
    Law,
    unshifted,
)
from tidings.theory.path_laws import Estimate, PathLaw
from tidings.theory.stages import Stage

Floats = NDArray[np.float64]

_TRANSFORM_ERROR = 1e-12
_WANTED = 2e-6  # change of the sum from which on cells are not halved further
_MOST_HALVINGS = 6
_SMALL = 1e-9  # probability times growth of F, below which a cell is left as it is
_REST = 1e-10  # of a lifetime that may lie beyond the last cell
# Shares at which a lifetime is cut, close together at both ends.
_CUTS = 0.5 * (1.0 - np.cos(np.pi * np.arange(1, 48) / 48))


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """The shortest of independent times: at most one of them certain; none: for ever."""

    random: tuple[Law, ...] = ()
    certain_s: float = math.inf

    @property
    def value_s(self) -> float:
        """How long it is, in seconds, if that is certain; else NaN."""
        return math.nan if self.random else self.certain_s


def shorter(*laws: Law | None) -> Lifetime:
    """The shortest of several lifetimes, None being for ever.

    >>> shorter(Deterministic(value_s=2.0), None, Deterministic(value_s=1.0)).value_s
    1.0
    """
    given = [law for law in laws if law is not None]
    certain = [law.value_s for law in given if isinstance(law, Deterministic)]
    random = tuple(law for law in given if not isinstance(law, Deterministic))
    return Lifetime(random=random, certain_s=min(certain, default=math.inf))


def on_time(stage: Stage, law: PathLaw, lifetime: Lifetime) -> Estimate:
    """The share of events that survive a path, of this stage and law, within their lifetime."""
    if not lifetime.random:
        return law.cdf(lifetime.certain_s)
    rates = _rates(lifetime)
    if rates is None:
        return _summed(law, lifetime)
    shares, per_s = rates
    z = per_s.astype(np.complex128)
    transform = np.exp(-per_s * stage.shift_s)
    for delay in stage.delays:
        transform = transform * delay.transform(z).real
    value = stage.survives * float(shares @ transform)
    return Estimate(np.array(value), np.array(_TRANSFORM_ERROR * stage.survives))


def _rates(lifetime: Lifetime) -> tuple[Floats, Floats] | None:
    """The lifetime as a mixture of exponential times, shares and rates, or None if it is not."""
    if lifetime.certain_s < math.inf:
        return None
    shares, per_s = np.ones(1), np.zeros(1)
    for law in lifetime.random:
        if isinstance(law, Exponential):
            weights, means_s = np.ones(1), np.array([law.mean_s])
        elif isinstance(law, HyperExponential):
            weights, means_s = np.array(law.weights), np.array(law.means_s)
        else:
            return None
        shares = np.outer(shares, weights).ravel()
        per_s = np.add.outer(per_s, 1.0 / means_s).ravel()
    return shares, per_s


def _summed(law: PathLaw, lifetime: Lifetime) -> Estimate:
    """Over cells: probability of the cell times the mean of F at its ends, and steps exactly."""
    cuts_s = _cuts(law, lifetime)
    value, noise = law.cdf(cuts_s)
    before = math.nan
    for _ in range(_MOST_HALVINGS):
        steps, between = _probabilities(cuts_s, lifetime)
        # Just before its shift a path has delivered nothing.
        ends = np.where(cuts_s[1:] == law.shift_s, 0.0, value[1:])
        growth = np.maximum(ends - value[:-1], 0.0)
        total = float(steps @ value + between @ (0.5 * (value[:-1] + ends)))
        bound = 0.5 * float(between @ growth)  # F grows: no sum can be further off than this
        change = abs(total - before)
        if change <= _WANTED or bound <= _WANTED:
            break
        halved = np.flatnonzero(between * growth > _SMALL)
        middles_s = 0.5 * (cuts_s[halved] + cuts_s[halved + 1])
        more, more_noise = law.cdf(middles_s)
        cuts_s = np.insert(cuts_s, halved + 1, middles_s)
        value, noise = np.insert(value, halved + 1, more), np.insert(noise, halved + 1, more_noise)
        before = total
    error = float(noise.max()) + min(bound, math.inf if math.isnan(change) else change)
    beyond = max(1.0 - float(steps.sum() + between.sum()), 0.0)
    total += beyond * float(value[-1])
    return Estimate(np.array(total), np.array(error + beyond * law.mass + _TRANSFORM_ERROR))


def _cuts(law: PathLaw, lifetime: Lifetime) -> Floats:
    """Where to cut: quantiles and steps of the lifetimes, and the scale of the path itself."""
    shares = np.concatenate([[0.0], _CUTS, 1.0 - np.geomspace(3e-4, _REST, 12)])
    parts = [np.zeros(1), np.array([law.shift_s])]
    ends_s = [lifetime.certain_s]
    for each in lifetime.random:
        quantiles_s = each.quantile(shares)
        parts += [quantiles_s, _steps(each)]
        ends_s.append(float(quantiles_s.max()))
    spread_s = law.mean_s - law.shift_s
    if math.isfinite(spread_s) and spread_s > 0.0:
        parts.append(law.shift_s + spread_s * np.geomspace(1e-3, 30.0, 24))
    end_s = min(ends_s)
    found: Floats = np.unique(np.concatenate([*parts, [end_s]]))
    return found[found <= end_s]


def _steps(law: Law) -> Floats:
    """Times that a lifetime takes with a probability of their own (0 apart)."""
    base, shift_s = unshifted(law)
    if isinstance(base, Empirical):
        edges_s = np.array(base.edges_s)
        found: Floats = shift_s + edges_s[1:][np.diff(edges_s) == 0.0]
        return found
    return np.array([shift_s])


def left_of(lifetime: Lifetime, t_s: Floats) -> Floats:
    """P[L ≥ t]: what is still in time at t."""
    left: Floats = (t_s <= lifetime.certain_s).astype(np.float64)
    for law in lifetime.random:
        left = left * (1.0 - law.cdf(np.nextafter(t_s, -math.inf)))
    return left


def _probabilities(cuts_s: Floats, lifetime: Lifetime) -> tuple[Floats, Floats]:
    """P[L = cut] at each cut, and P[L strictly between] each two."""
    left: Floats = (cuts_s < lifetime.certain_s).astype(np.float64)  # P[L > t]
    for law in lifetime.random:
        left *= 1.0 - law.cdf(cuts_s)
    left_before = left_of(lifetime, cuts_s)
    return left_before - left, np.maximum(left[:-1] - left_before[1:], 0.0)
