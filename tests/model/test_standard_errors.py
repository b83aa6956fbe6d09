from __future__ import annotations

import math

import numpy as np
import pytest

from tidings.model.standard_errors import batch_share_se, ratio_se, share_se


def test_a_share_that_was_never_missed_is_not_certain():
    assert share_se(0, 100) == pytest.approx(share_se(100, 100), rel=1e-12)
    assert share_se(0, 100) > 0
    assert share_se(1000, 1000) < 2 / 1000
    assert math.isnan(share_se(0, 0))


def test_with_many_hits_and_misses_it_is_the_plain_formula():
    assert share_se(4e9, 1e10) == pytest.approx(math.sqrt(0.4 * 0.6 / 1e10), rel=1e-8)


@pytest.mark.statistical
@pytest.mark.parametrize("losses", [0.5, 2.0, 8.0, 200.0])
def test_rare_losses_stay_within_five_standard_errors(losses):
    """The plain formula is beyond five for one link in forty at two losses expected."""
    trials = 10_000
    lost = np.random.default_rng(3).poisson(losses, 20_000)
    z = [(k - losses) / trials / share_se(k, trials) for k in range(int(lost.max()) + 1)]
    assert np.mean(np.abs(np.take(z, lost)) > 5) < 1e-3


def test_ratio_se_of_equal_batches_is_that_of_their_mean():
    rng = np.random.default_rng(2)
    parts, wholes = rng.uniform(0, 5, (4, 32)), np.full((4, 32), 7.0)
    plain = (parts / wholes).std(axis=1, ddof=1) / math.sqrt(32)
    assert ratio_se(parts, wholes) == pytest.approx(plain, rel=1e-12)


def test_ratio_se_needs_two_batches():
    assert np.isnan(ratio_se([1.0, 0.0], [2.0, 0.0]))
    assert np.isnan(ratio_se([0.0], [0.0]))


@pytest.mark.statistical
def test_batches_see_the_dependence_that_single_events_hide():
    """Shares that come in runs of fifty: the naive error is too small by the root of fifty."""
    rng = np.random.default_rng(8)
    estimates, errors = [], []
    for _ in range(200):
        runs = rng.random(640) < 0.8
        hits = np.repeat(runs, 50).reshape(32, -1).sum(axis=1)
        trials = np.full(32, 1000)
        estimates.append(hits.sum() / trials.sum())
        errors.append(batch_share_se(hits, trials))
    spread = np.std(estimates, ddof=1)
    # the spread of 200 estimates is known to 5 %
    assert np.mean(errors) == pytest.approx(spread, rel=0.2)
    assert np.mean(errors) > 5 * share_se(0.8 * 32000, 32000)


def test_certain_batches_fall_back_to_the_plain_error():
    found = batch_share_se([[10.0, 10.0], [0.0, 0.0]], [[10.0, 10.0], [0.0, 0.0]])
    assert found[0] == share_se(20, 20)
    assert np.isnan(found[1])
