"""Paths to one home broker, multiplied and inverted in one pass, as far as anything arrives."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.compile import apart
from tidings.kernels.memory import Layout
from tidings.model.arrays import Complexes, Floats, Ints

# Of a transform X at the first node β/t of a time t. P[delay ≤ t] ≤ exp(β) X, and no other node of
# that time has a larger transform: below this, less has arrived than rounding leaves.
NOBODY = 1e-15

_INTS, _FLOATS, _COMPLEXES = np.dtype(np.int64), np.dtype(np.float64), np.dtype(np.complex128)
_OUTWARDS = Layout(
    dict.fromkeys(("home", "begin", "end", "times", "nodes"), np.int64),
    {
        **dict.fromkeys(("begins", "outgoing", "target", "first", "waiting"), _INTS),
        **dict.fromkeys(("hops", "tails"), _COMPLEXES),
    },
)
_INVERTED = Layout(
    dict.fromkeys(("begin", "end", "times", "nodes"), np.int64),
    {
        **dict.fromkeys(("publishers", "starts", "first"), _INTS),
        **dict.fromkeys(("entries", "tails", "below_rule", "slope_rule"), _COMPLEXES),
        **dict.fromkeys(("below", "slope"), _FLOATS),
    },
)
_outwards_at, _outwards = _OUTWARDS.world(), _OUTWARDS.arrays()
_inverted_at, _inverted = _INVERTED.world(), _INVERTED.arrays()


@apart
def carry(address: Any, one: int, other: int) -> int:
    """Go from the home broker outwards, and multiply on the way what lies between."""
    world = _outwards_at(address)
    begins, outgoing, target = (
        _outwards.begins(world),
        _outwards.outgoing(world),
        _outwards.target(world),
    )
    hops, tails = _outwards.hops(world), _outwards.tails(world)
    first, waiting = _outwards.first(world), _outwards.waiting(world)
    nodes, size_of = world.nodes, world.times * world.nodes
    waiting[0], waiting[1] = world.home, -1  # brokers to go on from, and the arc home
    size = 1
    while size > 0:
        size -= 1
        broker, towards = waiting[2 * size], waiting[2 * size + 1]
        for place in range(begins[broker], begins[broker + 1]):
            arc = outgoing[place]
            if arc == towards:
                continue
            further, back = target[arc], arc ^ 1
            begin, near = first[broker], broker * size_of
            hop = back * size_of
            while (
                begin < world.end
                and (hops[hop + begin * nodes] * tails[near + begin * nodes]).real < NOBODY
            ):
                begin += 1
            first[further] = begin
            for at in range(begin * nodes, world.end * nodes):
                tails[further * size_of + at] = hops[hop + at] * tails[near + at]
            waiting[2 * size], waiting[2 * size + 1] = further, back
            size += 1
    return 0


@apart
def invert(address: Any, one: int, other: int) -> int:
    """Put publishers' entries before the tails, and invert: CDFs and slopes as real parts."""
    world = _inverted_at(address)
    publishers, starts = _inverted.publishers(world), _inverted.starts(world)
    entries, tails, first = _inverted.entries(world), _inverted.tails(world), _inverted.first(world)
    below_rule, slope_rule = _inverted.below_rule(world), _inverted.slope_rule(world)
    below, slope = _inverted.below(world), _inverted.slope(world)
    nodes, span = world.nodes, world.end - world.begin
    for path in range(world.starts_length):
        start = starts[path]
        entry, tail = (publishers[path] * world.times) * nodes, (start * world.times) * nodes
        for time in range(first[start], world.end):
            cdf, rise, rule = 0.0, 0.0, (time - world.begin) * nodes
            for node in range(nodes):
                value = entries[entry + time * nodes + node] * tails[tail + time * nodes + node]
                cdf += (below_rule[rule + node] * value).real
                rise += slope_rule[rule + node].real * value.real
            below[path * span + time - world.begin] = cdf
            slope[path * span + time - world.begin] = rise
    return 0


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
    first[home] = span[0]
    tails[home, span[0] : span[1]] = 1.0
    waiting = np.empty(2 * first.size, dtype=np.int64)
    numbers = {"home": home, "begin": span[0], "end": span[1]}
    tables = {
        "begins": begins,
        "outgoing": outgoing,
        "target": target,
        "first": first,
        "waiting": waiting,
        "hops": hops.reshape(-1),
        "tails": tails.reshape(-1),
    }
    sizes = {"times": tails.shape[1], "nodes": tails.shape[2]}
    _OUTWARDS.make(numbers | sizes, tables).run(carry)


def invert_paths(
    publishers: Ints,
    starts: Ints,
    entries: Complexes,
    tails: Complexes,
    first: Ints,
    span: tuple[int, int],
    rules: tuple[Complexes, Complexes],
    inverted: Floats,
) -> None:
    """Fill ``inverted`` with CDFs and slopes [which, path, time of the span], zeros as they are.

    A path is its publisher's of ``entries`` [publisher, time, node], and the tail from its start.
    ``rules`` [time of the span, node] give CDF and slope as real parts of sums.
    """
    numbers = {"begin": span[0], "end": span[1], "times": tails.shape[1], "nodes": tails.shape[2]}
    tables = {
        "publishers": publishers,
        "starts": starts,
        "first": first,
        "entries": entries.reshape(-1),
        "tails": tails.reshape(-1),
        "below_rule": rules[0].reshape(-1),
        "slope_rule": rules[1].reshape(-1),
        "below": inverted[0].reshape(-1),
        "slope": inverted[1].reshape(-1),
    }
    _INVERTED.make(numbers, tables).run(invert)
