from __future__ import annotations

import numpy as np
import pytest

from tidings.kernels.replications import BATCH, mser


def _slow_rule(series):
    """The rule as it is written: a standard error for every cut, the least wins."""
    batches = np.array(series)[: len(series) // BATCH * BATCH].reshape(-1, BATCH).mean(axis=1)
    count = len(batches)
    scores = [
        np.sum((batches[d:] - batches[d:].mean()) ** 2) / (count - d) ** 2
        for d in range(count - max(2, count // 10))
    ]
    return int(np.argmin(scores)) * BATCH


@pytest.mark.parametrize("seed", range(8))
def test_mser_is_the_least_standard_error_of_what_is_left(seed):
    rng = np.random.default_rng(seed)
    series = rng.normal(size=400) + 8.0 * np.exp(-np.arange(400) / rng.uniform(2, 60))
    assert mser(series) == _slow_rule(series)


def test_mser_cuts_a_ramp_and_spares_noise():
    rng = np.random.default_rng(3)
    noise = rng.normal(size=1000)
    ramp = np.where(np.arange(1000) < 200, np.arange(1000) / 10.0 - 20.0, 0.0)
    assert 150 <= mser(noise + ramp) <= 300
    assert mser(np.zeros(1000)) == 0
    assert mser([1.0, 2.0]) == 0
