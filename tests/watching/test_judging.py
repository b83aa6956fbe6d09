"""Judging on numbers made by hand: changes in standard errors, queues."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tidings.watching.certainty import DAY_S, bound, certain
from tidings.watching.counts import EventCounts
from tidings.watching.judging import (
    Moved,
    Value,
    WaitingEvents,
    find_cut_off,
    find_gone,
    find_moved,
    find_silent,
    is_behind,
    unusual_wait_s,
)

LOOKS = DAY_S / 60.0


def counts(wanted, on_time, delivered=None):
    return EventCounts(
        wanted=wanted, on_time=on_time, delivered=wanted if delivered is None else delivered
    )


REFERENCE = {
    "publishers.ann.rate": Value(value=10.0),
    "brokers.hub.service": Value(value=0.02),
    "links.hub--east.delay": Value(value=0.04),
    "links.hub--east.back.reliability": Value(value=0.98),
}


def found(**moved):
    """What a minute of traffic tells, moved in standard errors of the reference."""
    rows = {}
    for path, each in REFERENCE.items():
        n, kind = 600, path.rpartition(".")[2]
        value = each.value + 0.0
        error = {"rate": value / math.sqrt(n), "reliability": 0.0057}.get(
            kind, value / math.sqrt(n)
        )
        rows[path] = Value(value=value + moved.get(kind, 0.0) * error, error=error, count=n)
    return rows


@pytest.mark.parametrize(
    ("kind", "words", "name"),
    [
        ("rate", "publisher ann publishes more often", "ann"),
        ("service", "broker hub is slower", "hub"),
        ("delay", "link hub--east is slower", "hub--east"),
    ],
)
def test_what_has_moved_is_named(kind, words, name):
    (moved,) = find_moved(found(**{kind: 12.0}), REFERENCE, LOOKS)
    assert (moved.words, moved.name) == (words, name)
    assert moved.size == pytest.approx(1 + 12 / math.sqrt(600))


def test_a_link_that_loses_more_is_named_in_its_direction():
    (moved,) = find_moved(found(reliability=-14.0), REFERENCE, LOOKS)
    assert (moved.words, moved.name) == ("link east--hub loses more", "east--hub")
    assert moved.size == pytest.approx((0.02 + 14 * 0.0057) / 0.02)


def test_chance_and_trifles_move_nothing():
    assert find_moved(found(rate=4.0, service=-4.0, delay=4.0), REFERENCE, LOOKS) == []
    many = {"publishers.ann.rate": Value(value=10.5, error=0.001, count=10**8)}
    assert find_moved(many, REFERENCE, LOOKS) == []  # certain, and a twentieth
    few = {"brokers.hub.service": Value(value=0.2, error=1e-6, count=5)}
    assert find_moved(few, REFERENCE, LOOKS) == []
    never = {"brokers.hub.service": Value(value=0.0, count=600)}  # as of spans, which tell none
    assert find_moved(never, never, LOOKS) == []


def test_the_errors_of_the_reference_count():
    unsure = {"brokers.hub.service": Value(value=0.02, error=0.01)}
    assert find_moved(found(service=12.0), unsure, LOOKS) == []


def test_an_alarm_lasts_until_it_is_well_within_its_bound():
    path, limit = "brokers.hub.service", bound(4, LOOKS)
    now = found(service=0.75 * limit)
    assert find_moved(now, REFERENCE, LOOKS) == []
    assert [each.path for each in find_moved(now, REFERENCE, LOOKS, [path])] == [path]
    assert find_moved(found(service=0.4 * limit), REFERENCE, LOOKS, [path]) == []


@pytest.mark.statistical
def test_a_day_on_which_nothing_changes_raises_no_alarm_with_99_percent():
    """Estimates as 32 batches give them, of twenty parameters at every minute of 100 days."""
    rng = np.random.default_rng(5)
    limit = bound(20, LOOKS)
    days = 0
    for _ in range(100):
        tests = rng.standard_t(31, size=int(20 * LOOKS))
        days += bool(np.abs(tests).max() > limit)
    # Parameters have a sixth of the level; more than this has a chance of one in ten thousand.
    assert days <= stats.binom.ppf(0.9999, 100, 0.01 / 6)
    assert bound(20, LOOKS) == pytest.approx(stats.t.isf(0.01 / 6 / 2 / 20 / LOOKS, 31))
    assert certain(20, LOOKS) == pytest.approx(stats.norm.isf(0.01 / 6 / 2 / 20 / LOOKS))


@pytest.mark.parametrize("rate", [0.05, 1.0])
def test_rates_that_few_events_tell_of_are_held_against_the_reference(rate):
    """By their own errors, small counts would seem surer than they are."""
    reference = {"publishers.ann.rate": Value(value=rate)}
    quantile = int(stats.poisson.ppf(1e-6, rate * 600))
    seen = max(quantile, 31)
    now = Value(value=seen / 600, error=math.sqrt(seen) / 600, count=seen)
    assert find_moved({"publishers.ann.rate": now}, reference, LOOKS) == []


def test_who_publishes_or_receives_nothing_is_missed_when_that_cannot_be_chance():
    rates = {"publishers.ann.rate": Value(value=1.0), "publishers.bob.rate": Value(value=0.01)}
    assert find_silent(rates, [], 60.0, LOOKS) == ["ann"]
    assert find_silent(rates, ["ann"], 60.0, LOOKS) == []
    got = {"x": counts(100, 0, 0), "y": counts(2, 0, 0), "z": counts(100, 1, 1)}
    assert find_gone(got, {"x": 0.9, "y": 0.9, "z": 0.9}, LOOKS) == ["x"]
    assert find_gone(got, {"x": 0.01}, LOOKS) == []


def test_a_link_that_carries_next_to_nothing_cuts_its_subscriber_off():
    path = "subscribers.ann.link.reliability"
    known = {path: Value(value=0.99)}
    assert find_cut_off({path: Value(value=0.0, count=200)}, known) == ["ann"]
    assert find_cut_off({path: Value(value=0.0, count=200)}, {}) == ["ann"]
    assert find_cut_off({path: Value(value=0.12, count=200)}, known) == []
    assert find_cut_off({path: Value(value=0.0, count=20)}, known) == []
    assert find_cut_off({path: Value(value=0.0, count=200)}, {path: Value(value=0.1)}) == []
    link = "links.a--b.reliability"
    assert find_cut_off({link: Value(value=0.0, count=200)}, {link: Value(value=1.0)}) == []


def test_a_queue_is_behind_when_it_is_unusual_and_takes_long():
    slow = WaitingEvents(name="hub", rate_per_s=90.0, service_s=0.01, wait_s=20.0)
    assert slow.waiting == pytest.approx(1800.0)
    assert slow.catch_up_s == pytest.approx(180.0)
    assert is_behind(slow, 0.3, 60.0)
    assert not is_behind(slow, 30.0, 60.0)  # it may wait so long by chance
    assert not is_behind(slow, 0.3, 200.0)
    stuck = WaitingEvents(name="hub", rate_per_s=100.0, service_s=0.01, wait_s=1.0)
    assert math.isinf(stuck.catch_up_s)
    assert is_behind(stuck, 0.3, 1e9)


def test_waits_that_come_by_chance_are_those_of_a_queue_in_its_stationary_state():
    """In M/M/1 a wait exceeds x with probability ρ exp(-(μ - λ) x)."""
    served, came = 10.0, 9.0
    mean_s, busy = came / served / (served - came), came / served
    unusual_s = unusual_wait_s(mean_s, busy, 5, LOOKS)
    exceeded = math.exp(-(served - came) * unusual_s)
    assert exceeded * 5 * LOOKS == pytest.approx(0.01 / 6)
    assert unusual_wait_s(0.0, 0.0, 5, LOOKS) == 0.0


def test_names_with_dots_are_whole():
    """As most are on NATS: one of two that begin alike is missed, and cut off."""
    rates = {f"publishers.wire.{name}.rate": Value(value=1.0) for name in ("eu", "us")}
    assert find_silent(rates, ["wire.eu"], 60.0, LOOKS) == ["wire.us"]
    path = "subscribers.arch.ive.link.reliability"
    now = {path: Value(value=0.0, count=100)}
    assert find_cut_off(now, {path: Value(value=0.99)}) == ["arch.ive"]
    assert find_cut_off(now, {path: Value(value=0.2)}) == []
    for path, name in (
        ("links.a.1--b.2.back.delay", "b.2--a.1"),
        ("subscribers.arch.ive.link.delay", "arch.ive"),
        ("queues.arch.ive.redelivered", "arch.ive"),
        ("queues.arch.ive.expired.dropped", "arch.ive"),
    ):
        assert Moved(path=path, was=0.1, now=0.2, distance=9.0).name == name
