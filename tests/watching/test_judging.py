"""Judging on numbers made by hand: shares, burn rates, changes in standard errors, queues."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from tidings.watching.counts import Counts, Stretch
from tidings.watching.judging import (
    DAY_S,
    EVERYBODY,
    MOST_BURN,
    Queue,
    Value,
    bound,
    breaks_promise,
    burn_rate,
    burn_rates,
    certain,
    counts_of,
    differs_from_predicted,
    find_cut_off,
    find_gone,
    find_moved,
    find_silent,
    is_behind,
    measured_share,
    unusual_wait_s,
    wilson,
)
from tidings.watching.state import Share

MINUTE_NS = 60_000_000_000
LOOKS = DAY_S / 60.0


def counts(wanted, on_time, delivered=None):
    return Counts(
        wanted=wanted, on_time=on_time, delivered=wanted if delivered is None else delivered
    )


def minutes(*shares, wanted=1000, name="ann"):
    """A stretch a minute, with these on-time shares."""
    return [
        Stretch(
            from_ns=n * MINUTE_NS,
            until_ns=(n + 1) * MINUTE_NS,
            counts={name: counts(wanted, round(wanted * share))},
        )
        for n, share in enumerate(shares)
    ]


def test_wilson_is_the_interval_that_inverts_the_score_test():
    """At either end of it the share seen lies exactly so many standard errors away."""
    z = 2.5
    found = wilson(37, 50, z)
    for end in (found.low, found.high):
        assert abs(37 / 50 - end) / math.sqrt(end * (1 - end) / 50) == pytest.approx(z)
    assert (wilson(0, 40).low, wilson(40, 40).high) == (0.0, 1.0)


def test_stretches_that_differ_widen_the_interval():
    alike = [counts(1000, 900)] * 10
    apart = [counts(1000, 1000), counts(1000, 800)] * 5
    narrow, wide = measured_share(alike), measured_share(apart)
    assert narrow == wilson(9000, 10000)
    # Batch means by hand: ten shares of spread 0.1, a mean of ten, Student's t of nine. Two of them
    # together are all alike, and so are four.
    half = stats.t.ppf(stats.norm.cdf(1.96), 9) * np.std([1.0, 0.8] * 5, ddof=1) / math.sqrt(10)
    assert wide.share == narrow.share
    assert (wide.low, wide.high) == (pytest.approx(0.9 - half), pytest.approx(0.9 + half))


def test_stretches_that_follow_each_other_may_be_alike():
    """Queues outlast a stretch: four good ones and four bad ones tell as much as one of each."""
    runs = [counts(1000, 1000)] * 4 + [counts(1000, 800)] * 4
    mixed = [counts(1000, 1000), counts(1000, 800)] * 4
    apart = measured_share(runs * 4)
    half = stats.t.ppf(stats.norm.cdf(1.96), 7) * np.std([1.0, 0.8] * 4, ddof=1) / math.sqrt(8)
    assert apart.low == pytest.approx(0.9 - half)
    assert measured_share(mixed * 4).low > apart.low + 0.03


def test_everybody_is_all_subscribers_together():
    stretch = Stretch(from_ns=0, until_ns=1, counts={"a": counts(10, 9), "b": counts(30, 20, 25)})
    assert counts_of([stretch], EVERYBODY) == [counts(40, 29, 35)]
    assert counts_of([stretch], "nobody") == [counts(0, 0, 0)]


def test_burn_rates_are_of_their_windows():
    past = minutes(*[1.0] * 55, *[0.9] * 5)
    rates = burn_rates(past, "ann", 0.99, 60 * MINUTE_NS)
    assert rates["5m"] == pytest.approx(10.0)
    assert rates["30m"] == pytest.approx(10.0 * 5 / 30)
    assert rates["1h"] == rates["6h"] == pytest.approx(10.0 * 5 / 60)
    assert burn_rate(1.0, 1.0) == 0.0
    assert burn_rate(0.5, 1.0) == MOST_BURN


def broken(past, promised):
    sure, rates = (burn_rates(past, "ann", promised, past[-1].until_ns, z=z) for z in (5.0, 0.0))
    return breaks_promise(sure, rates, promised)


def test_a_promise_is_broken_when_it_is_for_long_and_still_is():
    assert broken(minutes(*[0.9] * 60), 0.999)
    assert not broken(minutes(*[0.9] * 60, *[1.0] * 60), 0.999)  # it was, an hour ago
    assert not broken(minutes(*[0.9] * 300, *[1.0] * 31), 0.999)  # it was for hours, and is over
    assert not broken(minutes(*[0.9995] * 60), 0.999)


def test_a_promise_is_not_broken_by_chance_nor_by_few_events():
    assert not broken(minutes(*[0.94] * 5, wanted=20), 0.95)
    assert not broken(minutes(0.0, wanted=3), 0.9)
    assert not broken(minutes(0.2), 0.9)  # one queue may have made all of them late
    assert broken(minutes(*[0.25, 0.35] * 4), 0.9)
    assert broken(minutes(*[0.8] * 60), 0.95)
    # Where the budget is a tenth no burn rate is above ten.
    assert broken(minutes(*[0.2] * 10), 0.9)


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


def test_a_share_outside_the_predicted_interval_is_told():
    predicted = Share(share=0.95, low=0.94, high=0.96)

    def differs(*on_time, wanted=1000):
        past = [counts(wanted, each) for each in on_time]
        return differs_from_predicted(past, predicted, 3, LOOKS)

    assert differs(*[790, 810] * 20) == pytest.approx(-0.15)
    assert differs(*[1000, 998] * 20) == pytest.approx(0.049)
    assert differs(*[925, 935] * 20) is None
    assert differs(*[0] * 20, wanted=1) is None
    # Minutes in which next to nothing is on time are how such a queue is, if others make up for it.
    assert differs(*[400, 1000, 1000, 1000, 1000] * 8) is None
    assert differs(800) is None  # of one stretch nobody knows


def test_a_queue_is_behind_when_it_is_unusual_and_takes_long():
    slow = Queue(name="hub", rate_per_s=90.0, service_s=0.01, wait_s=20.0)
    assert slow.waiting == pytest.approx(1800.0)
    assert slow.catch_up_s == pytest.approx(180.0)
    assert is_behind(slow, 0.3, 60.0)
    assert not is_behind(slow, 30.0, 60.0)  # it may wait so long by chance
    assert not is_behind(slow, 0.3, 200.0)
    stuck = Queue(name="hub", rate_per_s=100.0, service_s=0.01, wait_s=1.0)
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
