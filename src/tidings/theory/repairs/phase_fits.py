"""Times of any law as phases, so that they can be followed as a Markov chain.

A law that has phases keeps them. A law at least as uneven as the exponential (Weibull of shape
below 1, most log-normals) becomes a mixture of a few exponential times, of which the shortest may
take two phases, by least squares on P[X > t] and on the same of its residual law, which is what an
event meets; a more even one a mixture of two Erlang laws with its mean and variance (Tijms). The
mean is always kept, so availabilities are.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import optimize, special

from tidings.model.arrays import Floats, Ints
from tidings.model.laws import Law, phases, residual

Chain = tuple[Floats, Floats]  # initial shares and generator (1/s) of a phase-type law

MOST_ERLANG = 12  # phases; a constant time would need any number
_POINTS = 64  # times at which laws are compared
_TAIL = 5e-4  # of the residual law, beyond which nothing is compared


def fit(law: Law, parts: int) -> Chain:
    """Express a law as phases, its own or those of a mixture of so many parts.

    >>> from tidings.model.laws import Exponential
    >>> fit(Exponential(mean_s=2.0), 3)[1].tolist()
    [[-0.5]]
    """
    own = phases(law)
    if own is not None and own.shift_s == 0.0 and abs(own.initial.sum() - 1.0) < 1e-12:
        return own.initial, own.generator
    return _mixture(law, parts) if law.scv >= 1.0 else _erlangs(law)


def _mixture(law: Law, parts: int) -> Chain:
    """Fit times of different means; of two forms and two starts the nearest."""
    rest = residual(law)
    end_s = float(rest.quantile(1.0 - _TAIL))
    begin_s = max(float(law.quantile(0.02)), 1e-6 * law.mean_s)
    times_s = np.geomspace(begin_s, end_s, _POINTS)
    wanted = np.concatenate([1.0 - law.cdf(times_s), 1.0 - rest.cdf(times_s)])
    ratio = times_s[:, None] / law.mean_s
    logs = np.log(np.geomspace(2.0 * begin_s, 0.3 * end_s, parts) / law.mean_s)
    fits = []
    for first, rarity in itertools.product((1, 2), (0.4, 0.9)):  # long times are rare
        shapes = np.array([first] + [1] * (parts - 1))

        def off(parameters: Floats, shapes: Ints = shapes) -> Floats:
            off_by: Floats = _beyond(ratio, shapes, *_parts(parameters)) - wanted
            return off_by

        fits.append(
            (shapes, optimize.least_squares(off, np.append(-rarity * logs, logs), max_nfev=40))
        )
    shapes, best = min(fits, key=lambda each: float(each[1].cost))
    shares, means = _parts(best.x)
    return _blocks(shapes, shares, means * law.mean_s)


def _parts(parameters: Floats) -> tuple[Floats, Floats]:
    """Compute shares and means (in units of the distribution's) of a mixture whose mean is 1."""
    count = parameters.size // 2
    shares = special.softmax(parameters[:count])
    means = np.exp(np.clip(parameters[count:], -30.0, 30.0))
    return shares, means / (shares @ means)


def _beyond(ratio: Floats, shapes: Ints, shares: Floats, means: Floats) -> Floats:
    """Compute P[X > t] of a mixture of one- and two-phase distributions.

    The same of its residual distribution follows. Of two equal phases the residual distribution is
    that of the last one or of both, with the same probability.
    """
    places = shapes * ratio / means
    left, second = np.exp(-places), places * (shapes - 1)
    beyond: Floats = left * (1.0 + second) @ shares
    after: Floats = left * (1.0 + 0.5 * second) @ (shares * means)
    return np.concatenate([beyond, after])


def _blocks(shapes: Ints, shares: Floats, means_s: Floats) -> Chain:
    """Make a mixture of Erlang distributions."""
    count = int(shapes.sum())
    initial, generator = np.zeros(count), np.zeros((count, count))
    begin = 0
    for shape, share, mean_s in zip(shapes, shares, means_s, strict=True):
        initial[begin] = share
        inside = slice(begin, begin + shape)
        generator[inside, inside] = shape / mean_s * (np.eye(shape, k=1) - np.eye(shape))
        begin += shape
    return initial, generator


def _erlangs(law: Law) -> Chain:
    """Fit phases of one rate, k − 1 with probability p, else k: mean and variance are kept."""
    scv = max(law.scv, 1.0 / MOST_ERLANG)
    count = math.ceil(1.0 / scv - 1e-12)
    share = (count * scv - math.sqrt(count * (1.0 + scv) - count**2 * scv)) / (1.0 + scv)
    rate = (count - share) / law.mean_s
    initial = np.zeros(count)
    initial[0] = 1.0 - share
    if count > 1:
        initial[1] = share
    return initial, rate * (np.eye(count, k=1) - np.eye(count))
