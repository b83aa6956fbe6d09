from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.characterisation.fit.samples import EMPTY, sample_of

times = st.lists(st.floats(0.0, 1e6), min_size=2, max_size=30)


@given(times)
@settings(deadline=None)
def test_moments_are_numpys(values):
    sample = sample_of(values)
    assert sample.mean_s == pytest.approx(np.mean(values), rel=1e-12, abs=1e-300)
    scale = max(values) ** 2
    # Below 1e-300 numbers have fewer digits.
    error = 1e-12 * scale + 1e-300
    assert sample.variance_s2 == pytest.approx(np.var(values, ddof=1), rel=1e-9, abs=error)


@given(times, times)
@settings(deadline=None)
def test_merged_is_the_whole(first, second):
    merged, whole = sample_of(first).merged(sample_of(second)), sample_of(first + second)
    assert merged.count == whole.count
    assert (merged.bins == whole.bins).all()
    assert (merged.lowest_s, merged.highest_s) == (whole.lowest_s, whole.highest_s)
    assert merged.total_s == pytest.approx(whole.total_s, rel=1e-12)
    assert merged.squares == pytest.approx(whole.squares, rel=1e-12)


def test_nothing_merges_with_anything_and_has_no_mean():
    sample = sample_of([1.0, 3.0])
    assert EMPTY.merged(sample).mean_s == 2.0
    assert sample_of([]) is EMPTY
    assert math.isnan(EMPTY.mean_s)
    assert math.isnan(sample_of([1.0]).mean_se_s)
