"""What is taken down on purpose, and for how long: at every phase of the reconnect timer."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from tidings.model.reading import loads
from tidings.testbed.calibrating import drill_outages
from tidings.testbed.runs import RECONNECT_S as BY_BROKER

RECONNECT_S = BY_BROKER["nats"]
FAILS = "failure: {up: {exponential: 5s}, down: 1s}"
STAR = f"""
tidings: 1
recovery: {{scheme: periodic, refresh: 0s}}
brokers: {{a: {{{FAILS}}}, b: {{}}, c: {{{FAILS}}}}}
links: [{{between: [a, b], {FAILS}}}, {{between: [b, c]}}]
publishers: {{p: {{at: a, every: 1s, content: [{{p: 1, event: {{topic: x}}}}]}}}}
subscribers: {{s: {{at: c, wants: {{}}}}}}
"""


def phases(outages, parts):
    """Where within a period of the timer repairs come, as shares of it, in order."""
    down_s = np.array([each.end_s - each.begin_s for each in outages if each.component in parts])
    return np.sort(down_s / RECONNECT_S % 1.0)


@pytest.mark.parametrize("seed", range(5))
def test_repairs_come_at_every_phase_of_the_reconnect_timer(seed):
    outages = drill_outages(loads(STAR), seed, RECONNECT_S)
    for parts in ({"a", "c"}, {"a--b"}, {"a"}, {"c"}):
        found = phases(outages, parts)
        assert len(found) == 8 * len(parts)
        # Of n repairs no phase is further than two slices of 1/n from the next, round the period.
        gaps = np.diff([*found, found[0] + 1.0])
        assert gaps.max() <= 2.0 / len(found) + 1e-9
    # One in each slice: a wait that falls with the phase has its mean within half a slice of 1/2.
    assert abs(phases(outages, {"a", "c"}).mean() - 0.5) <= 0.5 / 16 + 1e-9


def test_one_part_is_down_at_a_time_and_seeds_differ():
    one, other = (drill_outages(loads(STAR), seed, RECONNECT_S) for seed in (1, 2))
    assert all(a.end_s + 1.0 < b.begin_s for a, b in pairwise(one))
    assert one == drill_outages(loads(STAR), 1, RECONNECT_S)
    assert one != other


def test_short_outages_wait_as_long_for_the_next_try_as_real_ones_do():
    """Of exponential times down d of mean 1, p⌈d/p⌉ − d has the mean p/(1 − e⁻ᵖ) − 1."""
    system = loads(STAR.replace("down: 1s", "down: {exponential: 1s}"))
    period_s = 2.0
    means_s = []
    for seed in range(40):
        outages = drill_outages(system, seed, period_s)
        down_s = np.array([each.end_s - each.begin_s for each in outages])
        means_s.append((np.ceil(down_s / period_s) * period_s - down_s).mean())
    expected_s = period_s / (1.0 - np.exp(-period_s)) - 1.0
    assert abs(np.mean(means_s) - expected_s) < 4.0 * np.std(means_s) / np.sqrt(len(means_s))
    # Even lengths over a period, as of long outages, would say 1 s instead of 1.31 s.
    assert np.mean(means_s) > 1.25
