"""Shares of events on time on numbers made by hand: intervals, burn rates, predictions."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tidings.watching.certainty import DAY_S, certain
from tidings.watching.counts import EventCounts, Stretch
from tidings.watching.shares import (
    MOST_BURN,
    breaks_promise,
    burn_rate,
    burn_rates,
    find_unforeseen,
    measured_shares,
    tally,
    wilson,
)
from tidings.watching.state import EVERYBODY, Share

MINUTE_NS = 60_000_000_000
LOOKS = DAY_S / 60.0


def counts(wanted, on_time, delivered=None):
    return EventCounts(
        wanted=wanted, on_time=on_time, delivered=wanted if delivered is None else delivered
    )


def measured(past):
    """The share of one subscriber over such counts, a stretch each."""
    stretches = [
        Stretch(from_ns=n, until_ns=n + 1, counts={"a": each}) for n, each in enumerate(past)
    ]
    found = measured_shares(tally(stretches, ["a"]))
    return Share(share=found.share[0], low=found.low[0], high=found.high[0])


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
    for end in (float(found.low), float(found.high)):
        assert abs(37 / 50 - end) / math.sqrt(end * (1 - end) / 50) == pytest.approx(z)
    assert (wilson(0, 40).low, wilson(40, 40).high) == (0.0, 1.0)


def test_stretches_that_differ_widen_the_interval():
    alike = [counts(1000, 900)] * 10
    apart = [counts(1000, 1000), counts(1000, 800)] * 5
    narrow, wide = measured(alike), measured(apart)
    plain = wilson(9000, 10000)
    assert (narrow.low, narrow.high) == (float(plain.low), float(plain.high))
    # Batch means by hand: ten shares of spread 0.1, a mean of ten, Student's t of nine. Two of them
    # together are all alike, and so are four.
    half = stats.t.ppf(stats.norm.cdf(1.96), 9) * np.std([1.0, 0.8] * 5, ddof=1) / math.sqrt(10)
    assert wide.share == narrow.share
    assert (wide.low, wide.high) == (pytest.approx(0.9 - half), pytest.approx(0.9 + half))


def test_stretches_that_follow_each_other_may_be_alike():
    """Queues outlast a stretch: four good ones and four bad ones tell as much as one of each."""
    runs = [counts(1000, 1000)] * 4 + [counts(1000, 800)] * 4
    mixed = [counts(1000, 1000), counts(1000, 800)] * 4
    apart = measured(runs * 4)
    half = stats.t.ppf(stats.norm.cdf(1.96), 7) * np.std([1.0, 0.8] * 4, ddof=1) / math.sqrt(8)
    assert apart.low == pytest.approx(0.9 - half)
    assert measured(mixed * 4).low > apart.low + 0.03


def test_everybody_is_all_subscribers_together():
    stretch = Stretch(from_ns=0, until_ns=1, counts={"a": counts(10, 9), "b": counts(30, 20, 25)})
    found = tally([stretch], [EVERYBODY, "b", "nobody"])
    assert found.wanted.tolist() == [[40], [30], [0]]
    assert found.on_time.tolist() == [[29], [20], [0]]


def test_each_row_of_many_is_what_it_is_alone():
    """Some have no events in some stretches."""
    rng = np.random.default_rng(2)
    past = []
    for n in range(45):
        wanted = {name: int(rng.integers(0, 40)) for name in "abc" if rng.random() < 0.8}
        each = {
            name: counts(number, int(rng.binomial(number, 0.9))) for name, number in wanted.items()
        }
        past.append(Stretch(from_ns=n * MINUTE_NS, until_ns=(n + 1) * MINUTE_NS, counts=each))
    names = ("a", "b", "c", "nobody")
    together, now_ns = tally(past, names), past[-1].until_ns
    for z in (0.0, 4.0):
        at_once = burn_rates(together, [0.95] * 4, now_ns, z)
        for n, name in enumerate(names):
            alone = burn_rates(tally(past, [name]), [0.95], now_ns, z)
            assert {w: r[n] for w, r in at_once.items()} == {w: r[0] for w, r in alone.items()}
    shares = measured_shares(together)
    assert [shares.low[3], shares.high[3]] == [0.0, 1.0]
    assert np.isnan(shares.share[3])
    assert (shares.low[:3] < shares.share[:3]).all()


def test_burn_rates_are_of_their_windows():
    past = minutes(*[1.0] * 55, *[0.9] * 5)
    rates = burn_rates(tally(past, ["ann"]), 0.99, 60 * MINUTE_NS)
    assert rates["5m"] == pytest.approx(10.0)
    assert rates["30m"] == pytest.approx(10.0 * 5 / 30)
    assert rates["1h"] == rates["6h"] == pytest.approx(10.0 * 5 / 60)
    assert burn_rate(1.0, 1.0) == 0.0
    assert burn_rate(0.5, 1.0) == MOST_BURN


def broken(past, promised):
    counted = tally(past, ["ann"])
    sure, rates = (burn_rates(counted, promised, past[-1].until_ns, z=z) for z in (5.0, 0.0))
    return breaks_promise(sure, rates, promised)


def test_a_promise_is_broken_when_it_is_for_long_and_still_is():
    assert broken(minutes(*[0.9] * 60), 0.999)
    assert not broken(minutes(*[0.9] * 60, *[1.0] * 60), 0.999)  # it was, an hour ago
    assert not broken(minutes(*[0.9] * 300, *[1.0] * 31), 0.999)  # it was for hours, and is over
    assert not broken(minutes(*[0.9995] * 60), 0.999)


def test_what_begins_suddenly_is_sure_within_minutes():
    """An hour of good minutes differs from the bad ones, which makes nothing less sure."""
    assert broken(minutes(*[1.0] * 60, *[0.0] * 5), 0.999)
    assert broken(minutes(*[1.0] * 60, *[0.2, 0.21, 0.19, 0.2, 0.2]), 0.999)
    assert broken(minutes(*[1.0] * 60, *[0.49, 0.51] * 15), 0.95)
    # Not by a bad minute, nor by some that differ as much as those before.
    assert not broken(minutes(*[1.0] * 60, 0.0), 0.999)
    assert not broken(minutes(*[1.0] * 60, 0.9, 0.2, 0.99, 0.4, 0.97), 0.999)


def test_a_promise_is_not_broken_by_chance_nor_by_few_events():
    assert not broken(minutes(*[0.94] * 5, wanted=20), 0.95)
    assert not broken(minutes(0.0, wanted=3), 0.9)
    assert not broken(minutes(0.2), 0.9)  # one queue may have made all of them late
    assert broken(minutes(*[0.25, 0.35] * 4), 0.9)
    assert broken(minutes(*[0.8] * 60), 0.95)
    # Where the budget is a tenth no burn rate is above ten.
    assert broken(minutes(*[0.2] * 10), 0.9)


def test_a_share_outside_the_predicted_interval_is_told():
    predicted = Share(share=0.95, low=0.94, high=0.96)

    def differs(*on_time, wanted=1000):
        past = minutes(*(each / wanted for each in on_time), wanted=wanted)
        return find_unforeseen(tally(past, ["ann"]), {"ann": predicted}, LOOKS).get("ann")

    assert differs(*[790, 810] * 20) == pytest.approx(-0.15)
    assert differs(*[1000, 998] * 20) == pytest.approx(0.049)
    assert differs(*[925, 935] * 20) is None
    assert differs(*[0] * 20, wanted=1) is None
    # Minutes in which next to nothing is on time are how such a queue is, if others make up for it.
    assert differs(*[400, 1000, 1000, 1000, 1000] * 8) is None
    assert differs(800) is None  # of one stretch nobody knows


def test_an_hour_without_long_queues_differs_less_by_itself():
    """Recorded at a broker that is 90 % busy: .66 are on time, and in this hour .81."""
    share = [
        824, 922, 979, 875, 799, 747, 757, 723, 722, 827, 977, 698, 510, 740, 872, 964, 946, 873,
        915, 996, 882, 925, 997, 697, 846, 862, 723, 891, 991, 616, 841, 946, 962, 658, 636, 729,
        704, 854, 719, 903, 701, 996, 889, 719, 862, 755, 631, 989, 993, 704, 335, 921, 907, 871,
        792, 711, 638, 971, 679, 707,
    ]  # fmt: skip
    past = tally(minutes(*(each / 1000 for each in share)), ["ann"])
    usual = Share(share=0.662, low=0.657, high=0.667)
    assert measured_shares(past, certain(2, LOOKS)).low[0] > usual.high + 0.01
    assert find_unforeseen(past, {"ann": usual}, LOOKS) == {}
    far = Share(share=0.5, low=0.49, high=0.51)
    assert find_unforeseen(past, {"ann": far}, LOOKS) == {"ann": pytest.approx(0.315, abs=0.01)}


def test_a_stretch_of_hours_in_which_nobody_watched_says_nothing_of_five_minutes():
    """What was counted at once after eight hours does not make each of the next minutes bad."""
    hours = Stretch(from_ns=0, until_ns=480 * MINUTE_NS, counts={"a": counts(480_000, 400_000)})
    minutes = [
        Stretch(
            from_ns=(480 + n) * MINUTE_NS, until_ns=(481 + n) * MINUTE_NS,
            counts={"a": counts(1000, 1000)},
        )
        for n in range(3)
    ]  # fmt: skip
    rates = burn_rates(tally([hours, *minutes], ["a"]), [0.95], 483 * MINUTE_NS)
    assert rates["5m"] == rates["1h"] == 0.0
    every = burn_rates(
        tally([replace(hours, from_ns=479 * MINUTE_NS), *minutes], ["a"]), [0.95], 483 * MINUTE_NS
    )
    assert every["5m"] > 1.0  # as many events in a minute: of those it tells
