"""What is in flight tells how long handlers take, whether or not it waits at the members."""

from __future__ import annotations

import math

import pytest

from tidings.running.handling import handling_s


@pytest.mark.parametrize("load", [0.05, 0.5, 0.9])
def test_one_member_holds_what_an_mm1_queue_does(load):
    assert handling_s(load / (1 - load), 20.0, 1) == pytest.approx(load / 20.0)


def test_no_more_is_in_flight_than_is_handed_out():
    # M/M/1 at load .8 with at most three handed out: .8 + .8² + .8³.
    assert handling_s(0.8 + 0.64 + 0.512, 20.0, 1, most=3) == pytest.approx(0.8 / 20.0)


def test_a_member_that_is_busy_all_the_time_takes_what_its_acks_say():
    assert handling_s(30.0, 20.0, 3, most=30) == pytest.approx(3 / 20.0, rel=1e-3)
    assert handling_s(5.0, 20.0, 4, most=4) == pytest.approx(4 / 20.0)


@pytest.mark.parametrize("members", [1, 2, 7])
def test_a_group_that_keeps_up_is_never_made_one_that_does_not(members):
    for in_flight in (1e-9, 0.3, 2.0, 40.0, 1e6):
        taken = handling_s(in_flight, 20.0, members, most=math.inf)
        assert 0.0 < taken <= members / 20.0
