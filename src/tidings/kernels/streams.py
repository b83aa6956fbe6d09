"""Random streams: each entity of a simulation draws its numbers from a stream of its own.

A stream is a row of four 64-bit words, the state of the generator xoshiro256++ (Blackman and Vigna,
2019). Its start depends on (seed, replication, name of the entity, purpose) and nothing else, so
adding a broker shifts nobody else's numbers and any replication can be repeated alone.

Exponential numbers come without a logarithm, by the ziggurat of Marsaglia and Tsang (2000). The
area under e^(−x) is covered by 256 layers of equal area: one for the tail beyond ``TAIL`` and 255
rectangles. A point of a layer that also lies under the layer above it is certainly under the curve,
and 99 of 100 points do; only the others cost an exponential. About three times as fast as −ln U,
which is what most of a simulator's random numbers are.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.kernels.compile import IS_COMPILING, inlined, primitive
from tidings.model.arrays import Floats

States = npt.NDArray[np.uint64]

_LEFT_17, _LEFT_23, _LEFT_45 = np.uint64(17), np.uint64(23), np.uint64(45)
_RIGHT_41, _RIGHT_19 = np.uint64(41), np.uint64(19)
_DROP_11, _DROP_12 = np.uint64(11), np.uint64(12)


def stream_states(seed: int, replication: int, keys: Sequence[tuple[str, str]]) -> States:
    """The first states of the streams of (entity, purpose) pairs, a row of four words each.

    Rows of different seeds, replications or keys are independent for all practical purposes: they
    are BLAKE2b digests.

    >>> one = stream_states(7, 0, [("hub", "service")])
    >>> two = stream_states(7, 0, [("east", "service"), ("hub", "service")])
    >>> bool((one[0] == two[1]).all())
    True
    """
    run = hashlib.blake2b(digest_size=32, person=b"tidings streams")
    run.update(_framed(str(int(seed))) + _framed(str(int(replication))))
    digests = []
    for entity, purpose in keys:
        stream = run.copy()
        stream.update(_framed(entity) + _framed(purpose))
        digests.append(stream.digest())
    words = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
    states: States = words.reshape(len(digests), 4)
    states[~states.any(axis=1), 0] = 1  # the generator would stay at all zeros for ever
    return states


def _framed(text: str) -> bytes:
    """The text with its length before it, so that no two keys run into the same bytes."""
    data = text.encode("utf-8", "surrogatepass")
    return len(data).to_bytes(8, "little") + data


def _wrapping(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile arithmetic that is meant to wrap around; NumPy scalars must not warn of it."""
    if not IS_COMPILING:
        return np.errstate(over="ignore")(function)
    return inlined(function)


@_wrapping
def next_bits(states: States, i: int) -> np.uint64:
    """The next 64 random bits of stream i, which moves on."""
    s0, s1, s2, s3 = states[i, 0], states[i, 1], states[i, 2], states[i, 3]
    total = s0 + s3
    bits = ((total << _LEFT_23) | (total >> _RIGHT_41)) + s0
    shifted = s1 << _LEFT_17
    s2 ^= s0
    s3 ^= s1
    states[i, 1] = s1 ^ s2
    states[i, 0] = s0 ^ s3
    states[i, 2] = s2 ^ shifted
    states[i, 3] = (s3 << _LEFT_45) | (s3 >> _RIGHT_19)
    return bits


@inlined
def uniform(states: States, i: int) -> float:
    """The next number of stream i, uniform on the 2⁵³ multiples of 2⁻⁵³ in [0, 1)."""
    return (next_bits(states, i) >> _DROP_11) * 1.1102230246251565e-16


@inlined
def uniform_open(states: States, i: int) -> float:
    """The next number of stream i, uniform in (0, 1): never 0 or 1, so its logarithm is safe."""
    return ((next_bits(states, i) >> _DROP_12) + 0.5) * 2.220446049250313e-16


LAYERS = 256
TAIL = 7.69711747013104972  # where the lowest layer's tail begins
_AREA = 0.0039496598225815571993  # of each layer, which makes the top one end at height 1
_LAYER_BITS = np.uint64(LAYERS - 1)


def _widths() -> Floats:
    """The right ends of the layers from the lowest up, and 0 for the top of the curve."""
    widths = np.zeros(LAYERS + 1)
    widths[0] = _AREA * math.exp(TAIL)  # as if the tail's area lay in the rectangle beside it
    widths[1] = TAIL
    for layer in range(1, LAYERS - 1):
        widths[layer + 1] = -math.log(_AREA / widths[layer] + math.exp(-widths[layer]))
    return widths


_WIDTHS = _widths()
_HEIGHTS = np.exp(-_WIDTHS)


@inlined
def exponential(states: States, i: int) -> float:
    """The next exponential number of mean 1 of stream i."""
    bits = next_bits(states, i)
    layer = int(bits & _LAYER_BITS)  # eight bits the 53 of the number below do not use
    x = (bits >> _DROP_11) * 1.1102230246251565e-16 * _WIDTHS[layer]
    if x < _WIDTHS[layer + 1]:
        return x
    return _at_the_edge(layer, x, states, i)


@primitive
def _at_the_edge(layer: int, x: float, states: States, i: int) -> float:
    """What to do with a point that may lie above the curve, or in the tail."""
    base = 0.0
    while True:
        if layer == 0:
            base += TAIL  # the tail is an exponential again, begun later
        else:
            low, high = _HEIGHTS[layer], _HEIGHTS[layer + 1]
            if low + uniform(states, i) * (high - low) < math.exp(-x):
                return base + x
        bits = next_bits(states, i)
        layer = int(bits & _LAYER_BITS)
        x = (bits >> _DROP_11) * 1.1102230246251565e-16 * _WIDTHS[layer]
        if x < _WIDTHS[layer + 1]:
            return base + x
