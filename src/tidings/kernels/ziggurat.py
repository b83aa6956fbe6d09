"""Exponential random numbers without a logarithm: the ziggurat of Marsaglia and Tsang (2000).

The area under e^(−x) is covered by 256 layers of equal area: one for the tail beyond ``TAIL`` and
255 rectangles. A point of a layer that also lies under the layer above it is certainly under the
curve, and 99 of 100 points do; only the others cost an exponential. About three times as fast as
−ln U, which is what most of a simulator's random numbers are.
"""

from __future__ import annotations

import math

import numpy as np

from tidings.kernels.compile import inlined, primitive
from tidings.kernels.streams import States, next_bits, uniform
from tidings.model.laws import Reals

LAYERS = 256
TAIL = 7.69711747013104972  # where the lowest layer's tail begins
_AREA = 0.0039496598225815571993  # of each layer, which makes the top one end at height 1
_LAYER_BITS, _DROP_11 = np.uint64(LAYERS - 1), np.uint64(11)


def _widths() -> Reals:
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
