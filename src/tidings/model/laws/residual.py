"""How much longer a running time lasts: the residual (equilibrium) law of a law."""

from __future__ import annotations

import math

import numpy as np
import scipy

from tidings.errors import UnsupportedError
from tidings.model.laws.empirical import Empirical, cumulative
from tidings.model.laws.heavy import LogNormal, Weibull
from tidings.model.laws.law import Law, Reals
from tidings.model.laws.phase_type import (
    MOST_PHASES,
    HyperExponential,
    PhaseType,
    equilibrium,
)
from tidings.model.laws.simple import Deterministic, Exponential, Gamma, Uniform, unshifted


def residual(law: Law) -> Law:
    r"""Make the distribution of what is left of a time met at a random moment, in seconds.

    .. math:: P[X_e \le t] = \frac{1}{E[X]} \int_0^t P[X > s] \, ds, \quad
       E[X_e] = \frac{E[X]\,(1 + c^2)}{2}

    Exact for constant, exponential, hyperexponential, phase-type and Erlang laws (the last up to
    ``MOST_PHASES``). Any other becomes a table of about 4500 bins whose CDF is exact at every edge,
    off by less than 1e-5 between edges, and whose mean is right to 1e-4.

    >>> residual(Deterministic(value_s=2.0))  # of a fixed period, anything up to all of it
    Uniform(low_s=0.0, high_s=2.0)
    """
    base, shift_s = unshifted(law)
    if law.mean_s == 0:
        return Deterministic(value_s=0.0)
    if isinstance(base, Deterministic):
        return Uniform(low_s=0.0, high_s=shift_s + base.value_s)
    exact = _exact(base) if shift_s == 0 else None
    return exact if exact is not None else _table(base, shift_s)


def left_share(law: Law, t_s: Reals) -> Reals:
    """Compute P[X_e > t] = E[(X − t)⁺]/E[X] for t ≥ 0, to rounding.

    It holds of any distribution with a mean above 0.

    >>> left_share(Uniform(low_s=0.0, high_s=2.0), np.array([0.0, 1.0])).tolist()
    [1.0, 0.25]
    """
    base, shift_s = unshifted(law)
    over_s = np.maximum(t_s - shift_s, 0.0)
    inside_s = np.zeros(t_s.shape)  # E[(X − t)⁺] of what is random
    if isinstance(base, Deterministic):
        shift_s, over_s = shift_s + base.value_s, inside_s
    elif base.mean_s > 0:
        inside_s = base.mean_s * _beyond(base, over_s)
    left: Reals = (inside_s + np.maximum(shift_s - t_s, 0.0)) / law.mean_s
    return left


def _exact(law: Law) -> Law | None:
    """Give the residual distribution in closed form, or None."""
    match law:
        case Exponential():
            return law
        case HyperExponential():
            parts = np.array(law.weights) * np.array(law.means_s)
            return HyperExponential(weights=tuple(parts / parts.sum()), means_s=law.means_s)
        case PhaseType():
            return PhaseType(initial=tuple(equilibrium(law)), generator=law.generator)
        case Gamma() if float(law.shape).is_integer() and law.shape <= MOST_PHASES:
            count = int(law.shape)  # any of its stages is equally likely to be under way
            rate = count / law.mean_s
            chain = rate * (np.eye(count, k=1) - np.eye(count))
            return PhaseType(initial=(1.0 / count,) * count, generator=tuple(map(tuple, chain)))
    return None


def _table(law: Law, shift_s: float) -> Empirical:
    """Make the residual distribution of ``law`` + ``shift_s`` as a histogram.

    While the shift runs, what is left is uniform; after it, it is the residual of the law itself.
    """
    if law.mean_s == 0:  # a law that is all atom at 0
        return Empirical(edges_s=(0.0, shift_s), weights=(1.0,))
    edges_s = _edges_s(law)
    beyond = _beyond(law, edges_s)
    weights = np.maximum(-np.diff(beyond), 0.0)
    weights[-1] += beyond[-1]
    weights /= weights.sum()
    if shift_s == 0:
        return Empirical(edges_s=tuple(edges_s), weights=tuple(weights))
    in_shift = shift_s / (shift_s + law.mean_s)
    return Empirical(
        edges_s=(0.0, *(shift_s + edges_s)),
        weights=(in_shift, *((1.0 - in_shift) * weights)),
    )


def _edges_s(law: Law) -> Reals:
    """Choose edges, in seconds, that are fine where the distribution's mass is.

    Others are spaced by ratio, from far below to far above its mean.
    """
    end_s = law.mean_s
    aim = 1e-10 * law.mean_s * (1.0 + law.scv) / 2.0
    while float(_beyond(law, np.array([end_s]))[0]) * end_s > aim:
        end_s *= 2.0
    end_s = min(end_s, float(law.quantile(1.0)))
    parts = [np.zeros(1), np.geomspace(1e-9 * law.mean_s, end_s, 3072)]
    if isinstance(law, PhaseType):  # smooth, and its quantiles are dear
        parts.append(np.linspace(0.0, min(end_s, 8.0 * law.mean_s), 1536))
    else:
        shares = [np.linspace(0.0, 1.0, 1024), scipy.special.expit(np.linspace(-25.0, 25.0, 512))]
        parts.append(law.quantile(np.concatenate(shares)))
    if isinstance(law, Empirical):
        parts.append(np.array(law.edges_s))
    edges_s: Reals = np.unique(np.concatenate(parts))
    return edges_s[edges_s <= end_s]


def _beyond(law: Law, t_s: Reals) -> Reals:
    """Compute P[X_e > t] = E[(X − t)⁺]/E[X], accurate in the tail as well."""
    value: Reals
    match law:
        case Uniform():
            tops = np.maximum(law.high_s - np.maximum(t_s, law.low_s), 0.0)
            before = np.maximum(law.low_s - t_s, 0.0)
            value = (tops**2 / (2.0 * (law.high_s - law.low_s)) + before) / law.mean_s
        case Gamma():
            x = t_s * (law.shape / law.mean_s)
            value = scipy.special.gammaincc(law.shape + 1.0, x) - (
                t_s / law.mean_s * scipy.special.gammaincc(law.shape, x)
            )
        case LogNormal():
            depth = (np.log(np.maximum(t_s, 1e-300)) - law.mu) / law.sigma
            value = scipy.special.ndtr(law.sigma - depth) - t_s / law.mean_s * scipy.special.ndtr(
                -depth
            )
        case Weibull():
            value = scipy.special.gammaincc(1.0 / law.shape, (t_s / law.scale_s) ** law.shape)
        case Empirical():
            value = _empirical_beyond(law, t_s)
        case _:
            exact = _exact(law)
            if exact is None:
                raise UnsupportedError(
                    f"no residual distribution is known for {type(law).__name__}"
                )
            value = 1.0 - exact.cdf(t_s)
    return np.maximum(value, 0.0)


def _empirical_beyond(law: Empirical, t_s: Reals) -> Reals:
    """Compute ∫ₜ P[X > s] ds over the mean: trapezia, since P[X > s] is linear within a bin."""
    edges_s, shares = np.array(law.edges_s), np.array(law.weights)
    above = 1.0 - cumulative(shares)
    pieces = np.diff(edges_s) * (above[1:] + above[:-1]) / 2.0
    from_edge = np.concatenate([np.cumsum(pieces[::-1])[::-1], [0.0]])
    right = np.clip(np.searchsorted(edges_s, t_s, side="right"), 0, len(edges_s) - 1)
    height = (1.0 - law.cdf(t_s) + above[right]) / 2.0
    rest: Reals = np.maximum(edges_s[right] - t_s, 0.0) * height + from_edge[right]
    return rest / (math.fsum(pieces) + law.edges_s[0])
