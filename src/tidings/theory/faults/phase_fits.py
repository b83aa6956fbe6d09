"""Times up and down of any law as phases, so that they can be followed as a Markov chain.

Laws that have phases keep them. A law at least as uneven as the exponential (Weibull of shape below
1, most log-normals) becomes a mixture of a few exponential times, of which the shortest may take
two phases, by least squares on P[X > t] and on the same of its residual law, which is what an event
meets; a more even one a mixture of two Erlang laws with its mean and variance. The mean is always
kept, so availabilities are; how far the fit is off is said.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from tidings.model.laws import Law, ended_share, phases, residual
from tidings.theory.faults.processes import Chain, Floats

PARTS, _POINTS = 4, 64  # of a mixture, and times at which laws are compared
_TAIL = 5e-4  # of the residual law, beyond which nothing is compared
MOST_ERLANG = 12  # phases; a constant time would need any number


Shapes = NDArray[np.int64]


class Fit(NamedTuple):
    """A law as phases, and the largest distance of its P[X ≤ t] or its residual's from the law."""

    chain: Chain
    error: float


def fit(law: Law, parts: int = PARTS) -> Fit:
    """The law as phases: itself where it has them, else fitted, a mixture of so many parts.

    >>> from tidings.model.laws import Exponential, Weibull
    >>> fit(Exponential(mean_s=2.0)).error
    0.0
    >>> heavy = fit(Weibull(scale_s=1.0, shape=0.5))
    >>> len(heavy.chain[0]) < 10, heavy.error < 0.02
    (True, True)
    """
    own = phases(law)
    if own is not None and own.shift_s == 0.0 and abs(own.initial.sum() - 1.0) < 1e-12:
        return Fit((own.initial, own.generator), 0.0)
    chain = _mixture(law, parts) if law.scv >= 1.0 else _erlangs(law)
    return Fit(chain, _distance(law, chain))


def _mixture(law: Law, parts: int) -> Chain:
    """Times of different means; which of two forms of it is nearer is tried."""
    left = residual(law)
    end_s = float(left.quantile(1.0 - _TAIL))
    begin_s = max(float(law.quantile(0.02)), 1e-6 * law.mean_s)
    times_s = np.geomspace(begin_s, end_s, _POINTS)
    wanted = np.concatenate([1.0 - law.cdf(times_s), 1.0 - left.cdf(times_s)])
    ratio = times_s[:, None] / law.mean_s
    logs = np.log(np.geomspace(2.0 * begin_s, 0.3 * end_s, parts) / law.mean_s)
    best: tuple[float, Chain] | None = None
    # Long times are rare: from two guesses of how rare, the search ends well at least once.
    for first, rarity in itertools.product((1, 2), (0.4, 0.9)):
        shapes = np.array([first] + [1] * (parts - 1))

        def off(parameters: Floats, shapes: Shapes = shapes) -> Floats:
            shares, means = _parts(parameters)
            off_by: Floats = np.concatenate(_beyond(ratio, shapes, shares, means)) - wanted
            return off_by

        start = np.concatenate([-rarity * logs, logs])
        found = optimize.least_squares(off, start, max_nfev=40)
        if best is None or found.cost < best[0]:
            shares, means = _parts(found.x)
            chosen = list(zip(shapes.tolist(), shares.tolist(), means.tolist(), strict=True))
            best = found.cost, _blocks(chosen, law.mean_s)
    assert best is not None
    return best[1]


def _parts(parameters: Floats) -> tuple[Floats, Floats]:
    """Shares and means (in units of the law's) of a mixture whose mean is 1."""
    count = parameters.size // 2
    shares = special.softmax(parameters[:count])
    means = np.exp(np.clip(parameters[count:], -30.0, 30.0))
    return shares, means / (shares @ means)


def _beyond(ratio: Floats, shapes: Shapes, shares: Floats, means: Floats) -> tuple[Floats, Floats]:
    """P[X > t] of a mixture of one- and two-phase laws, and of its residual law.

    Of two equal phases the residual law is the last one or both, with the same probability.
    """
    places = shapes * ratio / means
    left, second = np.exp(-places), places * (shapes - 1)
    beyond: Floats = left * (1.0 + second) @ shares
    after: Floats = left * (1.0 + 0.5 * second) @ (shares * means)
    return beyond, after


def _blocks(parts: list[tuple[int, float, float]], mean_s: float) -> Chain:
    """A mixture of Erlang laws (phases, share, mean), its mean made exact."""
    total = sum(share for _, share, _ in parts)
    actual_s = sum(share * mean for _, share, mean in parts) / total
    count = sum(shape for shape, _, _ in parts)
    initial, generator = np.zeros(count), np.zeros((count, count))
    begin = 0
    for shape, share, mean in parts:
        rate = shape / (mean * mean_s / actual_s)
        initial[begin] = share / total
        inside = slice(begin, begin + shape)
        generator[inside, inside] = rate * (np.eye(shape, k=1) - np.eye(shape))
        begin += shape
    return initial, generator


def _erlangs(law: Law) -> Chain:
    """K − 1 phases with probability p, else k, all of one rate: mean and variance kept (Tijms)."""
    scv = max(law.scv, 1.0 / MOST_ERLANG)
    count = math.ceil(1.0 / scv - 1e-12)
    share = (count * scv - math.sqrt(count * (1.0 + scv) - count**2 * scv)) / (1.0 + scv)
    rate = (count - share) / law.mean_s
    initial = np.zeros(count)
    initial[0] = 1.0 - share
    if count > 1:
        initial[1] = share
    return initial, rate * (np.eye(count, k=1) - np.eye(count))


def _distance(law: Law, chain: Chain) -> float:
    """The largest difference of P[X ≤ t], of the law and of its residual law."""
    left = residual(law)
    initial, generator = chain
    spent_s = np.linalg.solve(-generator.T, initial)
    quantiles = special.expit(np.linspace(-9.0, 9.0, 120))
    furthest = 0.0
    for wanted, start in ((law, initial), (left, spent_s / spent_s.sum())):
        times_s = np.unique(wanted.quantile(quantiles))
        off = np.abs(ended_share(start, generator, times_s) - wanted.cdf(times_s))
        furthest = max(furthest, float(off.max()))
    return furthest
