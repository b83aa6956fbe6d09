"""Spreading over brokers: by hand, planted parameters, and the plan."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.count.spreading import (
    COUPLE_SHARES,
    REACHED_BY,
    SPREAD_STATISTICS,
    SPREADS,
    couple_shares,
    publication_spreads,
    reached_by,
    spread_statistics,
    subscription_spreads,
)
from tidings.characterisation.fit.rapidity import (
    fit_rapidity,
    rapidity_by_area,
    read_couples,
    read_reached,
    read_spreading,
)
from tidings.errors import InvalidTracesError
from tidings.theory.peers.notification_loss import exact_share
from tidings.traces.window import TraceWindow

S = 1_000_000_000
STEPS = "subscription string, subscriber string, broker string, action string, at_ns bigint"


def schema(frame):
    return [(field.name, field.dataType.simpleString()) for field in frame.schema]


def ddl(text):
    return [tuple(part.split()) for part in text.split(", ")]


def until(end_s):
    return TraceWindow(from_ns=0, until_ns=round(end_s * S))


def test_a_broker_learns_after_the_last_subscribe(frame):
    rows = [
        ("s", "ann", "hub", "subscribe", 10 * S),
        ("s", "ann", "hub", "learnt", 10 * S),
        ("s", "ann", "east", "learnt", 12 * S),
        ("s", "ann", "east", "learnt", 13 * S),  # again: the first counts
        ("s", "ann", "hub", "unsubscribe", 20 * S),
        ("s", "ann", "west", "subscribe", 30 * S),
        ("s", "ann", "east", "learnt", 31 * S),
        ("c", "cas", "hub", "subscribe", 40 * S),
        ("c", "cas", "hub", "learnt", 41 * S),  # covered: no other broker hears of it
        ("t", "bob", "east", "learnt", 5 * S),  # of nothing that anybody saw begin
    ]
    found = subscription_spreads(frame(rows, STEPS))
    assert schema(found) == ddl(SPREADS)
    seen = {(row.origin, row.broker, row.delay_s) for row in found.collect()}
    assert seen == {
        ("hub", "hub", 0.0), ("hub", "hub", 1.0), ("hub", "east", 2.0), ("west", "east", 1.0)
    }  # fmt: skip
    statistics = spread_statistics(found, until(50))
    assert schema(statistics) == ddl(SPREAD_STATISTICS)
    rows = {row.origin: row for row in statistics.collect() if row.statistic == "origins"}
    hub = rows["hub"]
    assert (hub.spreads, hub.reached, hub.partial, hub.nowhere) == (1, 1, 0, 1)
    assert (hub.mean_total_s, hub.most_longest_s) == (2.0, 2.0)
    plan = statistics._jdf.queryExecution().executedPlan().toString()
    assert "Python" not in plan
    assert "CartesianProduct" not in plan


@pytest.mark.statistical
def test_planted_times_come_back(frame):
    """Nine brokers, delays uniform up to 8 s: mean 4 s, the longest 8 · 9/10 on average."""
    random = np.random.default_rng(3)
    events, brokers = 400, 9
    delays_s = random.uniform(0.0, 8.0, (events, brokers))
    names = [f"e{n}" for n in range(events)]
    published = [(name, "home", n * S) for n, name in enumerate(names)]
    hops = [
        (name, f"b{b}", n * S + round(delays_s[n, b] * S))
        for n, name in enumerate(names)
        for b in range(brokers)
    ]
    spreads = publication_spreads(
        frame(hops, "event string, broker string, arrived_ns bigint"),
        frame(published, "event string, broker string, published_ns bigint"),
    )
    rows = spread_statistics(spreads, until(events + 8)).toPandas()
    found = read_spreading(rows, "publication")
    assert (found.spreads, found.brokers, found.cut_off) == (events, brokers, 0)
    assert found.mean_s == pytest.approx(delays_s.mean(), rel=1e-9)
    assert found.mean_se_s == pytest.approx(8 / math.sqrt(12 * events * brokers), rel=0.15)
    assert found.mean_s == pytest.approx(4.0, abs=5 * found.mean_se_s)
    assert found.typical_s == pytest.approx(7.2, abs=5 * found.typical_se_s)
    assert found.typical_se_s < 0.05
    assert found.worst_s == pytest.approx(delays_s.max(), abs=1e-9)
    reached = [(delays_s <= t + 1e-9).mean() for t in found.times_s]
    assert found.reached == pytest.approx(reached, abs=1e-12)
    asked = found.times_to_s([0.25, 0.9])
    points = reached_by(spreads, until(events + 8), asked)
    assert schema(points) == ddl(REACHED_BY)
    for t, (share, error) in zip(asked, read_reached(points.toPandas(), rows), strict=True):
        assert share == pytest.approx((delays_s <= t + 1e-9).mean(), abs=1e-12)
        assert share == pytest.approx(t / 8, abs=5 * error)
        exact = math.sqrt(t / 8 * (1 - t / 8) / (events * brokers))
        assert error == pytest.approx(exact, rel=0.15)
    # B(t) = t/8 is the power law with r = 1, within the worst time
    r = fit_rapidity(found, found, worst=True)
    assert r.value == pytest.approx(1.0, abs=5 * r.error + (8 - found.worst_s) / 4)
    assert r.error < 0.05
    typical = fit_rapidity(found, found, worst=False)
    assert typical.value == pytest.approx(7.2 / 4 - 1, abs=5 * typical.error)


def test_what_recording_may_have_cut_off_does_not_make_the_rest_faster(frame):
    """The slowest takes 8 s: of what began in the last 8 s only the fast would be seen to the end.

    Without that the mean would be that of the fast, and much of the rest partial.
    """
    delays_s = [(1.0, 8.0), (2.0, 4.0), (1.0, 2.0), (1.0, 6.0)]
    begun_s, end_s = [0.0, 10.0, 18.0, 18.5], 22.0
    published = [(f"e{n}", "home", round(begun * S)) for n, begun in enumerate(begun_s)]
    hops = [
        (f"e{n}", f"b{b}", round((begun + delay) * S))
        for n, (begun, both) in enumerate(zip(begun_s, delays_s, strict=True))
        for b, delay in enumerate(both)
        if begun + delay <= end_s
    ]
    spreads = publication_spreads(
        frame(hops, "event string, broker string, arrived_ns bigint"),
        frame(published, "event string, broker string, published_ns bigint"),
    )
    found = read_spreading(spread_statistics(spreads, until(end_s)).toPandas(), "publication")
    assert (found.spreads, found.partial, found.cut_off) == (2, 0, 2)
    assert (found.mean_s, found.typical_s) == (3.75, 6.0)


def test_a_line_by_hand_has_one_rapidity(frame):
    """a –1 s– b –2 s– c, subscribers at c, a publisher at a: r = 6/(2.5 + 2) − 1 = 1/3.

    The origin is not reached, and what nobody wanted, was covered or ended on the way is no spread.
    """
    steps = [("s", "ann", "c", "subscribe", 0), ("s", "ann", "c", "learnt", 0)]
    steps += [("s", "ann", "b", "learnt", 2 * S), ("s", "ann", "a", "learnt", 3 * S)]
    steps += [("t", "bob", "c", "subscribe", 5 * S), ("t", "bob", "c", "learnt", 5 * S)]
    steps += [("u", "cas", "c", "subscribe", 9 * S), ("u", "cas", "c", "learnt", 9 * S)]
    steps += [("u", "cas", "b", "learnt", 11 * S)]  # a wider one came there first
    reached_s = {"e": {"a": 0, "b": 1, "c": 3}, "unwanted": {"a": 0}, "given up": {"a": 0, "b": 1}}
    published = [(name, "a", 20 * S) for name in reached_s]
    hops = [
        (name, at, (20 + t) * S) for name, times in reached_s.items() for at, t in times.items()
    ]
    subscribing, publishing = (
        read_spreading(spread_statistics(spreads, until(99)).toPandas(), "spread")
        for spreads in (
            subscription_spreads(frame(steps, STEPS)),
            publication_spreads(
                frame(hops, "event string, broker string, arrived_ns bigint"),
                frame(published, "event string, broker string, published_ns bigint"),
            ),
        )
    )
    for found, mean_s in ((subscribing, 2.5), (publishing, 2.0)):
        assert (found.spreads, found.partial, found.nowhere, found.brokers) == (1, 1, 1, 2.0)
        assert (found.mean_s, found.typical_s, found.worst_s) == (mean_s, 3.0, 3.0)
        assert found.reached == pytest.approx([0.5, 1.0], abs=1e-15)
    for worst in (True, False):
        r = fit_rapidity(subscribing, publishing, worst=worst)
        assert r.value == pytest.approx(1 / 3, abs=1e-12)


def test_every_pair_of_brokers_counts_alike_however_often_it_was_seen():
    """As in the experiments of the paper: the mean over origins, not over events."""
    names = [part.split()[0] for part in SPREAD_STATISTICS.split(", ")]
    often, seldom = 100, 2
    rows = [
        ("origins", "x", None, often, 3 * often, 0, 0, 0, 4.0 * often, 16.0 * often, 6.0 * often,
         36.0 * often, 6.0),
        ("origins", "y", None, seldom, seldom, 0, 5, 0, 2.0, 4.0, 2.0, 4.0, 2.0),
        ("reach", "x", 60, None, 3 * often, *[None] * 8),
        ("reach", "y", 40, None, seldom, *[None] * 8),
    ]  # fmt: skip
    found = read_spreading(pd.DataFrame(rows, columns=names), "publication")
    assert found.mean_s == pytest.approx((3 * 4.0 + 1.0) / 4)  # three pairs of x, one of y
    assert found.typical_s == pytest.approx((6.0 + 1.0) / 2)
    assert found.reached == pytest.approx([0.25, 1.0])
    # y's two spreads took 0 and 2 s: the only ones that vary, in 99 + 1 degrees of freedom.
    variance = 2.0 / 100
    assert found.mean_se_s == pytest.approx(
        math.sqrt(variance * (0.75**2 / often + 0.25**2 / seldom))
    )
    assert (found.spreads, found.nowhere) == (102, 5)


def rows_of(longest_s, mean_s):
    """The rows of spreads from one origin to ten brokers, in their order, ten to each part."""
    names = [part.split()[0] for part in SPREAD_STATISTICS.split(", ")]
    sums = [f(each) for each in (mean_s, longest_s) for f in (np.sum, lambda t: np.sum(t**2))]
    count = len(mean_s)
    rows = [("origins", "x", None, count, 10 * count, 0, 0, 0, *sums, longest_s.max())]
    rows += [("reach", "x", 60, None, 10 * count, *[None] * 8)]
    parts = longest_s.reshape(-1, 10).max(axis=1)
    rows += [("parts", None, part, *[None] * 9, most) for part, most in enumerate(parts)]
    return pd.DataFrame(rows, columns=names)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("draw", "least", "most"),
    [
        (lambda random, shape: random.exponential(1.0, shape), 0.75, 1.25),
        (lambda random, shape: random.gamma(3.0, 1.0 / 3.0, shape), 0.75, 1.25),
        (lambda random, shape: random.uniform(0.0, 2.0, shape), 1.0, 12.0),  # tails that end
    ],
    ids=["exponential", "gamma", "uniform"],
)
def test_errors_of_the_worst_and_of_r_are_what_recordings_scatter(draw, least, most):
    """Over 300 recordings: the root of the mean squared error beside the deviation of the worst."""
    random, found = np.random.default_rng(5), []
    for _ in range(300):
        both = []
        for _ in range(2):
            delays_s = draw(random, (1_000, 10))
            both.append(read_spreading(rows_of(delays_s.max(axis=1), delays_s.mean(axis=1)), "it"))
        area_s = sum(each.worst_s - 1.0 for each in both)  # the mean delay known for certain
        r = fit_rapidity(*both, worst=True)
        by_area = rapidity_by_area((area_s, 0.0), (r.within_s, r.within_se_s))
        worst = (both[0].worst_s, both[0].worst_se_s)
        found.append((worst, (r.value, r.error), (by_area.value, by_area.error)))
    for values, errors in np.moveaxis(np.array(found), 0, -1):
        said = math.sqrt(np.mean(errors**2))
        assert least < said / values.std(ddof=1) < most


def test_the_slowest_of_every_part_of_a_recording_are_kept(frame):
    """Two hundred parts of a second each; what began before or at the end counts to the nearest."""
    rows = [(f"e{n}", "a", begun, "b", delay) for n, (begun, delay) in enumerate([
        (0, 1.0), (S // 2, 3.0), (S, 2.0), (199 * S, 0.5)
    ])]  # fmt: skip
    statistics = spread_statistics(frame(rows, SPREADS), until(200)).toPandas()
    parts = statistics[statistics["statistic"] == "parts"].set_index("bin")["most_longest_s"]
    assert parts.to_dict() == {0: 3.0, 1: 2.0}  # the last is cut off
    found = read_spreading(statistics, "publication")
    assert found.worst_se_s == pytest.approx(math.pi / math.sqrt(6.0) * 1.0, rel=1e-12)


def test_exact_d_from_measured_delays_of_couples(frame):
    """Two homes and a publisher's broker: their d are averaged, however often each was seen.

    From x subscriptions take 1 or 3 s, events back 2 s; from y both take 5 s. A broker where
    nothing was published makes no couple.
    """
    there = [("s1", "x", 0, "p", 1.0), ("s2", "x", 0, "p", 3.0), ("s3", "y", 0, "p", 5.0)]
    there += [("s1", "x", 0, "q", 9.0), ("s2", "x", 0, "q", 9.0), ("s1", "x", 0, "x", 0.1)]
    back = [("e1", "p", 0, "x", 2.0), ("e1", "p", 0, "y", 5.0), ("e1", "p", 0, "p", 0.0)]
    back += [("e2", "p", 0, "x", 2.0)]  # partial: it does not count
    stays_s = [4.0, 20.0]
    found = couple_shares(frame(there, SPREADS), frame(back, SPREADS), until(99), stays_s)
    assert schema(found) == ddl(COUPLE_SHARES)
    couples, notified = read_couples(found.toPandas())
    assert couples == 2
    delays_s = [3.0, 5.0, 10.0, 10.0]  # x twice and y, as often
    assert notified == pytest.approx(exact_share(stays_s, delays_s).tolist(), abs=1e-12)
    alone = couple_shares(frame(there, SPREADS), frame(back[:0], SPREADS), until(99), stays_s)
    assert read_couples(alone.toPandas()) == (0, [None, None])


def test_an_event_published_twice_counts_from_the_first_time(frame):
    published = [("e", "b", 3 * S), ("e", "a", 1 * S), ("e", "c", 2 * S)]
    spreads = publication_spreads(
        frame([("e", "b", 5 * S)], "event string, broker string, arrived_ns bigint"),
        frame(published, "event string, broker string, published_ns bigint"),
    )
    assert [(row.origin, row.delay_s) for row in spreads.collect()] == [("a", 4.0)]


def test_nothing_seen_is_an_error():
    nothing = pd.DataFrame(columns=[part.split()[0] for part in SPREAD_STATISTICS.split(", ")])
    with pytest.raises(InvalidTracesError, match="no subscription reached a second broker"):
        read_spreading(nothing, "subscription")
