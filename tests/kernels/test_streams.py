"""Random streams against the published generator, and what makes streams independent."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.kernels.streams import next_bits, stream_states, uniform, uniform_open

WORD = 2**64 - 1


def twin(state):
    """The xoshiro256++ of the paper in whole numbers of Python: yields its outputs."""
    s = [int(word) for word in state]

    def turned(x, k):
        return ((x << k) | (x >> (64 - k))) & WORD

    while True:
        yield (turned((s[0] + s[3]) & WORD, 23) + s[0]) & WORD
        t = (s[1] << 17) & WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = turned(s[3], 45)


def test_outputs_are_those_of_the_reference_implementation():
    states = np.array([[1, 2, 3, 4]], dtype=np.uint64)
    published = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]
    assert [int(next_bits(states, 0)) for _ in published] == published


@given(st.lists(st.integers(0, WORD), min_size=4, max_size=4).filter(any))
@settings(deadline=None, max_examples=30)
def test_outputs_equal_the_twin_from_any_state(words):
    states = np.array([[9, 9, 9, 9], words], dtype=np.uint64)
    expected = twin(words)
    assert all(int(next_bits(states, 1)) == next(expected) for _ in range(50))
    assert states[0].tolist() == [9, 9, 9, 9]  # the other stream did not move


def test_uniform_takes_the_upper_53_bits():
    start = stream_states(1, 2, [("hub", "service")])
    expected, states, opened = twin(start[0]), start.copy(), start.copy()
    for _ in range(200):
        bits = next(expected)
        assert uniform(states, 0) == (bits >> 11) / 2**53
        assert uniform_open(opened, 0) == ((bits >> 12) + 0.5) / 2**52


def outputs_of(first, second):
    """A state of which the next output has all bits ``first``, alternating with ``second``."""
    # With s0 = 0 and s3 = x the output is x turned by 23: choose x so that it is what we want.
    turned_back = ((first >> 23) | (first << 41)) & WORD
    return np.array([[0, second, 1, turned_back]], dtype=np.uint64)


def test_uniform_numbers_stay_within_their_ends():
    assert uniform(outputs_of(0, 1), 0) == 0.0
    assert uniform(outputs_of(WORD, 1), 0) == 1.0 - 2.0**-53
    assert uniform_open(outputs_of(0, 1), 0) == 2.0**-53
    assert uniform_open(outputs_of(WORD, 1), 0) == 1.0 - 2.0**-53


def test_an_entity_keeps_its_stream_whoever_else_is_there():
    few = stream_states(7, 3, [("hub", "service"), ("east", "service")])
    many = stream_states(7, 3, [("new", "up"), ("east", "service"), ("x", "y"), ("hub", "service")])
    np.testing.assert_array_equal(few, many[[3, 1]])
    assert few.dtype == np.uint64
    assert few.flags.c_contiguous
    assert stream_states(7, 3, []).shape == (0, 4)


def test_every_part_of_the_key_matters():
    keys = [("a", "b"), ("b", "a"), ("ab", ""), ("", "ab"), ("a\0b", ""), ("a", "\0b"), ("ä", "b")]
    runs = [(0, 0), (0, 1), (1, 0), (11, 1), (1, 11), (-1, 0), (2**70, 0)]
    rows = np.concatenate([stream_states(seed, run, keys) for seed, run in runs])
    assert len(np.unique(rows, axis=0)) == len(keys) * len(runs)
    assert len(np.unique(rows)) == rows.size


def test_seed_may_be_a_number_of_numpy():
    key = [("hub", "service")]
    np.testing.assert_array_equal(
        stream_states(np.int64(5), np.int32(1), key), stream_states(5, 1, key)
    )


@pytest.mark.statistical
def test_first_numbers_of_neighbouring_streams_are_uniform_and_uncorrelated():
    states = stream_states(1, 0, [(f"peer{i}", "on") for i in range(20_000)])
    first = np.array([uniform(states, i) for i in range(len(states))])
    counts = np.bincount((first * 100).astype(int), minlength=100)
    chi2 = ((counts - 200) ** 2 / 200).sum()
    assert abs(chi2 - 99) < 4.5 * np.sqrt(2 * 99)
    correlation = np.corrcoef(first[:-1], first[1:])[0, 1]
    assert abs(correlation) < 4.5 / np.sqrt(len(first))


@pytest.mark.statistical
def test_every_bit_is_fair():
    states = stream_states(1, 0, [("hub", "service")])
    bits = np.array([next_bits(states, 0) for _ in range(20_000)], dtype=np.uint64)
    ones = np.unpackbits(bits.view(np.uint8)).reshape(-1, 64).sum(axis=0, dtype=np.int64)
    assert np.all(np.abs(ones - 10_000) < 4.5 * np.sqrt(5_000))


@pytest.mark.slow
def test_plain_python_gives_the_same_numbers_without_a_warning():
    program = (
        "from tidings.kernels.streams import *\n"
        "states = stream_states(3, 1, [('hub', 'service')])\n"
        "print([int(next_bits(states, 0)) for _ in range(20)], uniform(states, 0))\n"
    )
    runs = [
        subprocess.run(
            [sys.executable, "-W", "error", "-c", program],
            env={**os.environ, "NUMBA_DISABLE_JIT": disabled},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for disabled in "01"
    ]
    assert runs[0] == runs[1]
