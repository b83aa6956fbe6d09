"""Outages as they are drawn, and systems whose failures are compressed or take longer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tidings.errors import InvalidInputError
from tidings.model.reading import loads
from tidings.testbed.outages import (
    compressed,
    draw_outages,
    failing,
    merged,
    with_reconnection,
    without_failures,
)

SYSTEM = """
tidings: 1
recovery: {scheme: periodic, refresh: 0s}
brokers:
  a: {service: 2ms}
  b: {service: 2ms, failure: {up: {uniform: [4s, 8s]}, down: 2s}}
links: [{between: [a, b], failure: {mtbf: 30s, mttr: 10s}}]
publishers: {p: {at: a, every: {rate: 1/s}, content: [{p: 1, event: {topic: a}}]}}
subscribers: {s: {at: b, wants: {}}}
failure_groups: {both: {members: [a, a--b], failure: {mtbf: 100s, mttr: 5s}}}
"""


def down_s(outages, component, length_s):
    times = [(each.begin_s, each.end_s) for each in outages if each.component == component]
    return sum(min(end, length_s) - begin for begin, end in times)


@pytest.mark.statistical
def test_parts_are_down_as_long_as_their_laws_say_from_the_first_moment_on():
    system, runs, length_s = loads(SYSTEM), 2_000, 3.0  # short: a start with all up would show
    drawn = [draw_outages(system, length_s, seed) for seed in range(runs)]
    group = 5.0 / 105.0
    expected = {"a": group, "b": 2.0 / 8.0, "a--b": 1.0 - (1.0 - 10.0 / 40.0) * (1.0 - group)}
    for component, share in expected.items():
        shares = np.array([down_s(each, component, length_s) / length_s for each in drawn])
        error = float(shares.std(ddof=1)) / math.sqrt(runs)
        assert error < 0.01
        assert abs(float(shares.mean()) - share) < 4.0 * error


def test_outages_of_one_part_never_overlap_and_are_the_same_again():
    system = loads(SYSTEM)
    drawn = draw_outages(system, 500.0, 3)
    assert drawn == draw_outages(system, 500.0, 3)
    assert [each.begin_s for each in drawn] == sorted(each.begin_s for each in drawn)
    for component in failing(system):
        mine = [(each.begin_s, each.end_s) for each in drawn if each.component == component]
        assert mine == merged(mine)
    together = {each.begin_s for each in drawn if each.component == "a"}
    assert together
    links = [each for each in drawn if each.component == "a--b"]
    assert all(any(one.begin_s <= at < one.end_s for one in links) for at in together)


def test_time_is_compressed_for_failures_alone():
    system = loads(SYSTEM)
    faster = compressed(system, 10.0)
    assert faster.brokers[1].failure.down.mean_s == pytest.approx(0.2)
    assert faster.brokers[1].failure.availability == pytest.approx(0.75)
    assert faster.links[0].back.failure.up.mean_s == pytest.approx(3.0)
    assert faster.failure_groups[0].failure.up.mean_s == pytest.approx(10.0)
    assert faster.publishers == system.publishers
    assert compressed(system, 1.0) == system
    with pytest.raises(InvalidInputError, match=r"--compress is 0\.5"):
        compressed(system, 0.5)


def test_joining_again_lengthens_times_down_at_the_cost_of_times_up():
    system = loads(SYSTEM)
    real = with_reconnection(system, 1.0, 0.5)
    assert real.brokers[1].failure.availability == pytest.approx(5.0 / 8.0)
    assert real.links[0].there.failure.down.mean_s == pytest.approx(10.5)
    assert real.links[0].there.failure.up.mean_s == pytest.approx(29.5)
    with pytest.raises(InvalidInputError, match="smaller --compress"):
        with_reconnection(system, 7.0, 0.0)


def test_a_system_without_failures_has_none_left():
    assert failing(loads(SYSTEM)) == ["b", "a--b", "a"]
    sound = without_failures(loads(SYSTEM))
    assert failing(sound) == []
    assert sound.recovery == loads(SYSTEM).recovery  # servers that store do so all the same
