from __future__ import annotations

import math

import numpy as np
import pytest

from tidings.kernels.ratios import Ratio


def test_a_ratio_has_the_standard_error_of_its_definition():
    rng = np.random.default_rng(1)
    w = rng.integers(50, 150, size=(12, 3)).astype(float)
    x = np.floor(w * rng.uniform(0.4, 0.6, size=w.shape))
    ratio = Ratio(3)
    for top, bottom in zip(x, w, strict=True):
        ratio.add(top, bottom)
    r = x.sum(axis=0) / w.sum(axis=0)
    squares = ((x - r * w) ** 2).sum(axis=0)
    assert ratio.value == pytest.approx(r, rel=1e-14)
    expected = np.sqrt(12 / 11 * squares) / w.sum(axis=0)
    assert ratio.standard_error == pytest.approx(expected, rel=1e-9)


def test_equal_weights_give_the_standard_error_of_a_mean():
    values = np.array([0.2, 0.5, 0.3, 0.9])
    ratio = Ratio(1)
    for value in values:
        ratio.add([1e6 * value], [1e6])  # so many trials that their own noise does not count
    expected = np.std(values, ddof=1) / 2.0
    assert ratio.standard_error[0] == pytest.approx(expected, rel=1e-12)
    # Student's t with three degrees of freedom.
    assert ratio.half_widths().max() == pytest.approx(3.182446305284263 * expected, rel=1e-9)


def test_one_replication_has_no_standard_error_and_nothing_wanted_has_no_share():
    ratio = Ratio(2)
    ratio.add([1.0, 0.0], [2.0, 0.0])
    assert ratio.value[0] == 0.5
    assert math.isnan(ratio.value[1])
    assert np.isnan(ratio.standard_error).all()
    assert np.isnan(ratio.half_widths()).all()
