from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import InvalidInputError
from tidings.model import reading
from tidings.model.skewness import powers, skewed

TABLE = """
tidings: 1
lifetime: 1s
brokers: {hub: {service: {exponential: 3ms}}}
publishers:
  p:
    at: hub
    every: 1s
    content:
      - {p: 0.5, event: {x: 1}}
      - {p: 0.3, event: {x: 2}, lifetime: 2s}
      - {p: 0.2, event: {x: 2}, size: 10B}
  q: {at: hub, every: 1s, content: {independent: {x: {a: 0.8, b: 0.2}, y: {c: 0.6, d: 0.4}}}}
subscribers: {s: {at: hub, wants: {}}}
"""


def test_the_truth_is_left_as_it_is():
    system = reading.loads(TABLE)
    assert skewed(system, 1.0) is system


@pytest.mark.parametrize("alpha", [0.0, 0.5, 2.0])
def test_every_row_is_taken_to_the_power_and_normalised(alpha):
    system = reading.loads(TABLE)
    believed = skewed(system, alpha)
    for before, after in zip(system.publishers, believed.publishers, strict=True):
        old, new = before.content.rows(), after.content.rows()
        total = math.fsum(row.probability**alpha for row in old)
        assert len(new) == len(old)
        for one, other in zip(old, new, strict=True):
            assert other.probability == pytest.approx(one.probability**alpha / total, rel=1e-12)
            assert (other.text, other.lifetime, other.size_bytes) == (
                one.text,
                one.lifetime,
                one.size_bytes,
            )
    assert (believed.brokers, believed.subscribers) == (system.brokers, system.subscribers)


def test_what_is_too_unlikely_for_a_number_is_left_out():
    rows = skewed(reading.loads(TABLE), 5000.0).publishers[0].content.rows()
    assert [(row.event["x"], row.probability) for row in rows] == [(1, 1.0)]


def test_a_power_below_zero_is_refused():
    with pytest.raises(InvalidInputError, match="0 or more"):
        skewed(reading.loads(TABLE), -1.0)


@settings(deadline=None)
@given(st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=20), st.floats(0.1, 5.0))
def test_powers_keep_the_order_and_sum_to_one(weights, alpha):
    shares = np.sort(np.array(weights) / sum(weights))
    found = powers(shares, alpha)
    assert found.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(np.diff(found) >= 0)
    back = powers(found, 1.0 / alpha)
    assert back == pytest.approx(shares, rel=1e-9)
