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
from typing import Any

from tidings.kernels.compile import inlined, primitive
from tidings.kernels.streams import States, exponential, uniform, uniform_open
from tidings.model.arrays import Floats

DETERMINISTIC, EXPONENTIAL, UNIFORM, GAMMA, HYPEREXPONENTIAL = 0, 1, 2, 3, 4
LOGNORMAL, WEIBULL, PHASE_TYPE, EMPIRICAL = 5, 6, 7, 8


@inlined
def draw(kind: int, offset: int, params: Floats, states: States, i: int) -> float:
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
def _draw_rest(kind: int, at: int, params: Floats, states: States, i: int) -> float:
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
def _first_above(u: float, at: int, count: int, params: Floats) -> int:
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
def _walk(at: int, params: Floats, states: States, i: int) -> float:
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
def _quantile(at: int, params: Floats, u: float) -> float:
    """Where a histogram's CDF passes u, for u in [0, 1)."""
    count = int(params[at])
    below, edges = at + 1, at + 2 + count
    after = _first_above(u, below, count + 1, params)
    low, high = params[below + after - 1], params[below + after]
    left, right = params[edges + after - 1], params[edges + after]
    return left + (right - left) * ((u - low) / (high - low))


@inlined
def choose(records: Any, first: int, last: int, states: States, i: int) -> int:
    """Draw one of the records [first, last) by their cumulative shares ``below``; of one, none."""
    low, high = first, last - 1
    if low < high:
        share = uniform(states, i)
        while low < high:
            middle = (low + high) // 2
            if records[middle].below > share:
                high = middle
            else:
                low = middle + 1
    return low
