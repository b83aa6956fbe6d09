"""Where rates change: planted changes are found, and none where there are none."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.regimes import LEAST_BATCHES, MOST_REGIMES, counts_of, parted


def steps(rng, *regimes):
    """Poisson counts of two publishers; a regime is how many parts, and the rates of both."""
    return np.concatenate([rng.poisson(rates, (parts, 2)).T for parts, *rates in regimes], axis=1)


@pytest.mark.statistical
def test_planted_changes_are_found_where_they_are():
    rng = np.random.default_rng(7)
    for _ in range(20):
        found = parted(steps(rng, (9, 100, 900), (13, 300, 900), (10, 100, 500)).astype(float))
        assert found == [0, 9, 22]


@pytest.mark.statistical
def test_what_stays_is_not_parted():
    rng = np.random.default_rng(1)
    found = [len(parted(steps(rng, (32, 40, 1000)).astype(float))) for _ in range(300)]
    assert sum(n > 1 for n in found) == 0  # one in 10⁴ by design; a tenth of the cost gives many


def test_regimes_are_few_and_none_is_too_short():
    saw = np.where(np.arange(32) % 2, 1000.0, 10.0)[None, :]
    found = parted(saw)
    assert len(found) <= MOST_REGIMES
    assert all(b - a >= LEAST_BATCHES for a, b in zip(found, [*found[1:], 32], strict=True))
    assert parted(np.zeros((0, 32))) == [0]
    assert parted(np.zeros((1, 32))) == [0]


def test_counts_that_vary_less_tell_more():
    part_s = 5.0
    at_s = (np.arange(32) + 0.5) * part_s
    rates = pd.DataFrame({"publisher": "p", "at_s": at_s, "per_s": 8.0})
    assert counts_of(rates, {"p": 0.25})[0].tolist() == [160.0] * 32
