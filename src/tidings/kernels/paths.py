"""Paths to one home broker, multiplied and inverted in one pass, as far as anything arrives."""

from __future__ import annotations

import numpy as np

from tidings.kernels.compile import compiled
from tidings.model.arrays import Complexes, Floats, Ints

# Of a transform X at the first node β/t of a time t. P[delay ≤ t] ≤ exp(β) X, and no other node of
# that time has a larger transform: below this, less has arrived than rounding leaves.
NOBODY = 1e-15


@compiled
def carry_outwards(
    home: int,
    arcs: tuple[Ints, Ints, Ints],
    hops: Complexes,
    span: tuple[int, int],
    tails: Complexes,
    first: Ints,
) -> None:
    """Fill ``tails`` [broker, time, node] with transforms from behind brokers to behind home.

    ``arcs`` are those of a tree: where each broker's begin, all of them, and the target of each; an
    arc and that back differ in their last bit. ``hops`` [arc, time, node] are over an arc and at
    the broker behind it. ``first`` [broker] is the first time of the span at which anything
    arrives; what is before that is not filled in.
    """
    begins, outgoing, target = arcs
    nodes = hops.shape[2]
    waiting = np.empty((first.size, 2), dtype=np.int64)  # brokers to go on from, and the arc home
    waiting[0, 0], waiting[0, 1] = home, -1
    first[home] = span[0]
    tails[home, span[0] : span[1]] = 1.0
    size = 1
    while size > 0:
        size -= 1
        broker, towards = waiting[size, 0], waiting[size, 1]
        for place in range(begins[broker], begins[broker + 1]):
            arc = outgoing[place]
            if arc == towards:
                continue
            further, back = target[arc], arc ^ 1
            begin = first[broker]
            while (
                begin < span[1] and (hops[back, begin, 0] * tails[broker, begin, 0]).real < NOBODY
            ):
                begin += 1
            first[further] = begin
            for time in range(begin, span[1]):
                for node in range(nodes):
                    tails[further, time, node] = hops[back, time, node] * tails[broker, time, node]
            waiting[size, 0], waiting[size, 1] = further, back
            size += 1


@compiled
def invert_paths(
    publishers: Ints,
    starts: Ints,
    entries: Complexes,
    tails: Complexes,
    first: Ints,
    span: tuple[int, int],
    rules: tuple[Complexes, Complexes],
    inverted: tuple[Floats, Floats],
) -> None:
    """Fill ``inverted`` with CDFs and slopes [path, time of the span], zeros as they are.

    A path is its publisher's of ``entries`` [publisher, time, node], and the tail from its start.
    ``rules`` [time of the span, node] give CDF and slope as real parts of sums.
    """
    below_rule, slope_rule = rules
    below, slope = inverted
    for path in range(starts.size):
        entry, start = entries[publishers[path]], starts[path]
        for time in range(first[start], span[1]):
            cdf, rise = 0.0, 0.0
            for node in range(tails.shape[2]):
                value = entry[time, node] * tails[start, time, node]
                cdf += (below_rule[time - span[0], node] * value).real
                rise += slope_rule[time - span[0], node].real * value.real
            below[path, time - span[0]] = cdf
            slope[path, time - span[0]] = rise
