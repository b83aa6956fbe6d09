"""The calendar against the obvious: a dictionary searched through, and Python's own heap."""

from __future__ import annotations

import heapq
import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.kernels.calendar import LANDING, key_of, merge, pop, push, set_key, tournament
from tidings.kernels.memory import record

# Few different times, so that ties are met all the time.
TIMES = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 2.0, math.inf]), st.floats(0.0, 3.0))


@given(
    slots=st.integers(1, 40),
    moves=st.lists(st.tuples(st.integers(0, 39), TIMES), max_size=60),
)
@settings(deadline=None, max_examples=200)
def test_the_tournament_knows_the_earliest_slot_and_the_lowest_of_equals(slots, moves):
    nodes = tournament(slots)
    keys = dict.fromkeys(range(slots), math.inf)
    for slot, key in moves:
        slot %= slots
        set_key(nodes, slot, key)
        keys[slot] = key
        assert key_of(nodes, slot) == key
        first = min(keys.values())
        assert nodes[1].key == first
        if first < math.inf:
            assert nodes[1].slot == min(s for s, k in keys.items() if k == first)


@given(steps=st.lists(st.one_of(st.none(), st.floats(0.0, 2.0), st.sampled_from([0.0, 1.0]))))
@settings(deadline=None, max_examples=200)
def test_the_heap_gives_landings_by_time_and_then_in_the_order_they_were_sent(steps):
    heap = np.zeros(len(steps) + 1, dtype=LANDING).view(np.recarray)
    expected: list[tuple[float, int, int]] = []
    for order, time in enumerate(steps):
        if time is None:
            if expected:
                assert (heap[0].time, heap[0].order, heap[0].cargo) == heapq.heappop(expected)
                pop(heap, len(expected) + 1)
        else:
            push(heap, len(expected), time, order, 7 * order)
            heapq.heappush(expected, (time, order, 7 * order))
    while expected:
        assert (heap[0].time, heap[0].order, heap[0].cargo) == heapq.heappop(expected)
        pop(heap, len(expected) + 1)


def test_a_cancelled_slot_never_comes_up_and_can_be_set_again():
    nodes = tournament(3)
    set_key(nodes, 1, 1.0)
    set_key(nodes, 2, 2.0)
    set_key(nodes, 1, math.inf)
    assert (nodes[1].key, nodes[1].slot) == (2.0, 2)
    set_key(nodes, 1, 1.5)
    assert (nodes[1].key, nodes[1].slot) == (1.5, 1)


def test_a_skew_heap_gives_the_least_key_and_of_equals_the_first():
    kind = record(left=np.int64, right=np.int64, key=np.float64, order=np.int64)
    records = np.zeros(200, dtype=kind).view(np.recarray)
    records.left = records.right = -1
    records.key = np.random.default_rng(1).integers(0, 20, 200)
    records.order = np.arange(200)
    root = -1
    for index in range(200):
        root = merge(records, root, index)
    taken = []
    while root >= 0:
        taken.append(int(root))
        root = merge(records, records[root].left, records[root].right)
    assert taken == np.lexsort((records.order, records.key)).tolist()
