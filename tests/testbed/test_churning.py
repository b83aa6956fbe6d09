"""Subscriptions that come and go on real servers: who learns of them when, and what is missed."""

from __future__ import annotations

import numpy as np
import pytest

from real_servers import skip_if_later
from tidings.model.reading import loads
from tidings.testbed.calibrating import steady
from tidings.testbed.running import run_testbed
from tidings.testbed.runs import TestbedOptions
from tidings.testbed.spreading import event_spread, subscription_spread
from tidings.testbed.tables import trace_tables

pytestmark = pytest.mark.slow

CHURN = """
tidings: 1
brokers: {a: {service: 2ms}, b: {service: 2ms}, c: {service: 2ms}}
links: [{between: [a, b], delay: 150ms}, {between: [b, c], delay: 100ms}]
publishers: {p: {at: a, every: {rate: 40/s}, content: [{p: 1, event: {topic: x}}]}}
subscribers:
  near: {at: b, wants: {topic: z}}
  far:
    {at: c, wants: {topic: x}, link: {delay: 50ms},
     stays: {uniform: [1400ms, 1800ms]}, away: {uniform: [600ms, 800ms]}}
"""
UP_S = {"c": 0.050, "b": 0.150, "a": 0.300}  # how long a subscription takes to each broker
LATE_S = 0.05  # of each of at most six timers on a way
DOWN_S = 0.006 + 0.300  # services and links of an event


@pytest.fixture(scope="module")
def run():
    found = run_testbed(loads(CHURN), TestbedOptions(duration_s=6.5, warmup_s=0.0, seed=7))
    skip_if_later(found, LATE_S)
    return found


def test_brokers_learn_of_a_subscription_one_after_the_other(run):
    steps = trace_tables(run)["subscriptions"].to_pandas()
    far = steps[steps["subscriber"] == "far"]
    assert far["filter"].notna().sum() == (far["action"] == "subscribe").sum() == len(run.stays)
    for begin, spread in (("subscribe", "learnt"), ("unsubscribe", "forgotten")):
        began = far[far["action"] == begin].set_index("subscription")["at_ns"]
        known = far[far["action"] == spread]
        whole = known.groupby("subscription").filter(lambda rows: len(rows) == 3)
        assert len(whole)
        took_s = (whole["at_ns"] - whole["subscription"].map(began)) / 1e9
        least_s = whole["broker"].map(UP_S)
        assert (took_s >= least_s - 1e-4).all()  # links delay it as they delay events
        assert (took_s < least_s + 4 * LATE_S).all()
        order = whole.sort_values("at_ns").groupby("subscription")["broker"].agg(list)
        assert all(each == ["c", "b", "a"] for each in order)


def test_what_is_published_before_a_subscription_has_spread_is_missed(run):
    got = {each.event for each in run.deliveries}
    published_s = {each.event: run.start_s + each.at_s for each in run.publications}
    margin_s = 6 * LATE_S
    missed, notified = 0, 0
    for stay in run.stays:
        if stay.end_s is None or stay.begin_s < run.start_s + 0.5:
            continue
        for event, at_s in published_s.items():
            if stay.begin_s < at_s < stay.begin_s + UP_S["a"] - LATE_S:
                missed += 1
                assert event not in got  # its broker had not heard of it
            if stay.end_s - DOWN_S < at_s < stay.end_s:
                assert event not in got  # still on its way
            if stay.begin_s + UP_S["a"] + margin_s < at_s < stay.end_s - DOWN_S - margin_s:
                notified += 1
                assert event in got
    assert missed > 5
    assert notified > 20


def test_nobody_gets_what_it_does_not_want_any_more(run):
    stays = [(each.begin_s, each.end_s or np.inf) for each in run.stays]
    for each in run.deliveries:
        assert any(begin <= each.received_s <= end + 1e-3 for begin, end in stays)


def test_how_things_spread_is_set_beside_the_delays_of_links(run):
    told = subscription_spread(run, run.system).set_index("broker")
    for broker, delay_s in UP_S.items():
        assert told["predicted_s"][broker] == pytest.approx(delay_s)
    assert (told["measured_s"] >= told["predicted_s"] - 1e-4).all()
    assert (told["measured_s"] < told["predicted_s"] + 4 * LATE_S).all()
    came = event_spread(run, steady(run.system)).set_index("broker")
    assert set(came.index) == {"a", "b", "c"}
    # Operational analysis: waits of Poisson arrivals at exponential servers are longer than here.
    alone_s = {"a": 0.0, "b": 0.152, "c": 0.254}
    for broker, least_s in alone_s.items():
        assert came["measured_s"][broker] >= least_s - 1e-4
        assert least_s <= came["predicted_s"][broker] < least_s + 0.002
