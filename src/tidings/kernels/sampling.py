"""Drawing random times in compiled code: laws as rows of one parameter array.

A law is a kind and an offset. From the offset on, the array holds its shift in seconds and then
what its kind needs:

====================  ===============================================================
deterministic         (only the shift)
exponential           mean
uniform               width
gamma                 shape, scale
hyperexponential      n, n cumulative weights, n means
lognormal             μ, σ
weibull               scale, 1/shape
phase-type            n, n cumulative initial shares, n mean stays, n rows of n
                      cumulative jump shares
empirical             n, n + 1 values of the CDF, n + 1 edges
====================  ===============================================================
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.errors import UnsupportedError
from tidings.kernels.compile import inlined, primitive
from tidings.kernels.streams import States, uniform, uniform_open
from tidings.kernels.ziggurat import exponential
from tidings.model import laws
from tidings.model.laws import Law, Reals

DETERMINISTIC, EXPONENTIAL, UNIFORM, GAMMA, HYPEREXPONENTIAL = 0, 1, 2, 3, 4
LOGNORMAL, WEIBULL, PHASE_TYPE, EMPIRICAL = 5, 6, 7, 8

Integers = npt.NDArray[np.int64]


class LawTable(NamedTuple):
    """Laws as :func:`draw` wants them: law i is ``kinds[i]`` with parameters at ``offsets[i]``."""

    kinds: Integers
    offsets: Integers
    params: Reals


def encode(times: Iterable[Law]) -> LawTable:
    """The laws as one table; equal laws share their parameters.

    >>> table = encode([laws.Deterministic(value_s=0.25), laws.Exponential(mean_s=0.5)])
    >>> table.kinds.tolist(), table.offsets.tolist(), table.params.tolist()
    ([0, 1], [0, 1], [0.25, 0.0, 0.5])
    """
    kinds, offsets = [], []
    params: list[float] = []
    known: dict[Law, tuple[int, int]] = {}
    for law in times:
        if law not in known:
            kind, values = _encoded(law)
            known[law] = kind, len(params)
            params.extend(values)
        kind, offset = known[law]
        kinds.append(kind)
        offsets.append(offset)
    return LawTable(
        np.array(kinds, dtype=np.int64),
        np.array(offsets, dtype=np.int64),
        np.array(params, dtype=np.float64),
    )


def _encoded(law: Law) -> tuple[int, list[float]]:
    """The kind of a law and its parameters, the shift first."""
    base, shift_s = laws.unshifted(law)
    match base:
        case laws.Deterministic():
            return DETERMINISTIC, [shift_s + base.value_s]
        case laws.Exponential():
            return EXPONENTIAL, [shift_s, base.mean_s]
        case laws.Uniform():
            return UNIFORM, [shift_s + base.low_s, base.high_s - base.low_s]
        case laws.Gamma():
            return GAMMA, [shift_s, base.shape, base.mean_s / base.shape]
        case laws.LogNormal():
            return LOGNORMAL, [shift_s, base.mu, base.sigma]
        case laws.Weibull():
            return WEIBULL, [shift_s, base.scale_s, 1.0 / base.shape]
        case laws.HyperExponential():
            below = laws.cumulative(np.array(base.weights))[1:]
            return HYPEREXPONENTIAL, [shift_s, len(below), *below, *base.means_s]
        case laws.PhaseType():
            start, stay_s, jumps = laws.walk(base)
            return PHASE_TYPE, [shift_s, len(start), *start, *stay_s, *jumps.ravel()]
        case laws.Empirical():
            below = laws.cumulative(np.array(base.weights))
            return EMPIRICAL, [shift_s, len(base.weights), *below, *base.edges_s]
    raise UnsupportedError(f"a law of the family {type(base).__name__} cannot be drawn from")


@inlined
def draw(kind: int, offset: int, params: Reals, states: States, i: int) -> float:
    """A random time in seconds, by the numbers of stream i, which moves on."""
    shift = params[offset]
    if kind == EXPONENTIAL:
        return shift + params[offset + 1] * exponential(states, i)
    if kind == DETERMINISTIC:
        return shift
    if kind == UNIFORM:
        return shift + params[offset + 1] * uniform(states, i)
    return shift + _draw_rest(kind, offset + 1, params, states, i)


@primitive
def _draw_rest(kind: int, at: int, params: Reals, states: States, i: int) -> float:
    """A draw of the families met less often; kept apart so that the others stay small."""
    if kind == GAMMA:
        return params[at + 1] * _unit_gamma(params[at], states, i)
    if kind == LOGNORMAL:
        return math.exp(params[at] + params[at + 1] * _normal(states, i))
    if kind == WEIBULL:
        return params[at] * exponential(states, i) ** params[at + 1]
    if kind == HYPEREXPONENTIAL:
        count = int(params[at])
        branch = _first_above(uniform(states, i), at + 1, count, params)
        return params[at + 1 + count + branch] * exponential(states, i)
    if kind == PHASE_TYPE:
        return _walk(at, params, states, i)
    return _quantile(at, params, uniform(states, i))


@primitive
def _normal(states: States, i: int) -> float:
    """A standard normal draw (Box and Muller), from two numbers of the stream."""
    radius = math.sqrt(2.0 * exponential(states, i))
    return radius * math.cos(2.0 * math.pi * uniform(states, i))


@primitive
def _unit_gamma(shape: float, states: States, i: int) -> float:
    """A gamma draw of scale 1 by rejection (Marsaglia and Tsang, 2000)."""
    boost = 1.0
    if shape < 1.0:  # a gamma of shape + 1 times U^(1/shape)
        boost = uniform_open(states, i) ** (1.0 / shape)
        shape += 1.0
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = _normal(states, i)
        v = (1.0 + c * x) ** 3
        if v <= 0.0:
            continue
        bound = 0.5 * x * x + d * (1.0 - v + math.log(v))
        if exponential(states, i) > -bound:
            return boost * d * v


@primitive
def _first_above(u: float, at: int, count: int, params: Reals) -> int:
    """The first of ``count`` increasing parameters that lies above u; ``count`` if none does."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if params[at + middle] > u:
            high = middle
        else:
            low = middle + 1
    return low


@primitive
def _walk(at: int, params: Reals, states: States, i: int) -> float:
    """The time a Markov chain takes to leave its phases."""
    count = int(params[at])
    start, stay, jumps = at + 1, at + 1 + count, at + 1 + 2 * count
    total = 0.0
    phase = _first_above(uniform(states, i), start, count, params)
    while phase < count:
        total += params[stay + phase] * exponential(states, i)
        phase = _first_above(uniform(states, i), jumps + phase * count, count, params)
    return total


@primitive
def _quantile(at: int, params: Reals, u: float) -> float:
    """Where a histogram's CDF passes u, for u in [0, 1)."""
    count = int(params[at])
    below, edges = at + 1, at + 2 + count
    after = _first_above(u, below, count + 1, params)
    low, high = params[below + after - 1], params[below + after]
    left, right = params[edges + after - 1], params[edges + after]
    return left + (right - left) * ((u - low) / (high - low))
