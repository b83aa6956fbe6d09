from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.kernels.bins import bin_of, bin_tables
from tidings.model import delay_grid

GUESS, EDGES = bin_tables()


@given(st.floats(0.0, 1e12, allow_subnormal=True))
@settings(deadline=None, max_examples=1000)
def test_the_fast_bin_is_the_bin_of_the_grid(delay):
    assert bin_of(delay, GUESS, EDGES) == delay_grid.bin_of(np.array([delay]))[0]


def test_the_fast_bin_is_right_on_both_sides_of_every_edge():
    for around in (delay_grid.EDGES_S, EDGES[:-1]):
        for delays in (np.nextafter(around, 0.0), around, np.nextafter(around, np.inf)):
            found = [bin_of(delay, GUESS, EDGES) for delay in delays]
            assert found == delay_grid.bin_of(delays).tolist()
