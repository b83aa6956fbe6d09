"""The published method link by link, against the product over paths."""

from __future__ import annotations

import math
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.behaviour import Channel, Service
from tidings.model.content import ContentRow, ContentTable
from tidings.model.filters import as_filter, matches
from tidings.model.laws import Deterministic, Exponential, Gamma
from tidings.model.system import Broker, Link, Publisher, Subscriber, System
from tidings.theory.answer import answer_by_theory

INVERTED = 2e-5  # what inverting a transform may be off by, where the delay is smooth


def neighbours(system, broker):
    """The brokers next to one, each with the channel *from* it."""
    for link in system.links:
        for (here, there), channel in (
            (link.between, link.there),
            (link.between[::-1], link.back),
        ):
            if here == broker:
                yield there, channel


def service_s(system, broker):
    return system.brokers[system.broker_index[broker]].service.law.value_s


def wanted_behind(system, source, target, topic):
    here = any(s.at == target and matches(s.wants, {"topic": topic}) for s in system.subscribers)
    return here or any(
        wanted_behind(system, target, other, topic)
        for other, _ in neighbours(system, target)
        if other != source
    )


def at_broker(system, broker, except_from, waits_s):
    """Rate by (topic, remaining lifetime) of what arrives, but for what comes over one link."""
    found = defaultdict(float)
    for p in system.publishers:
        if p.at == broker:
            for row in p.content.rows():
                left_s = row.lifetime.value_s - p.link.delay.value_s
                rate = p.rate_per_s * row.probability * p.link.reliability
                found[row.event["topic"], left_s] += rate
    for other, _ in neighbours(system, broker):
        if other != except_from:
            channel = dict(neighbours(system, other))[broker]
            spent_s = channel.delay.value_s + service_s(system, other) + waits_s.get(other, 0.0)
            for (topic, left_s), rate in at_broker(system, other, broker, waits_s).items():
                if wanted_behind(system, other, broker, topic):
                    found[topic, left_s - spent_s] += channel.reliability * rate
    return found


def recursion(system):
    """Steps 2 to 5 of the method: the joint law of content and remaining lifetime on each link.

    For constant services and delays, but for those of a subscriber's own link.
    """
    waits_s = {}
    for b in system.brokers:
        rate, mean_s = sum(at_broker(system, b.name, None, {}).values()), service_s(system, b.name)
        load = rate * mean_s
        waits_s[b.name] = load * mean_s / (1.0 - load)
    result = {}
    for s in system.subscribers:
        good, asked = 0.0, 0.0
        for p in system.publishers:
            rows = [row for row in p.content.rows() if matches(s.wants, row.event)]
            asked += p.rate_per_s * sum(row.probability for row in rows)
        for (topic, left_s), rate in at_broker(system, s.at, None, waits_s).items():
            if matches(s.wants, {"topic": topic}):
                left_s -= service_s(system, s.at) + waits_s[s.at]
                good += s.link.reliability * rate * float(s.link.delay.cdf(left_s))
        result[s.name] = good / asked if asked else math.nan
    return result


@pytest.mark.slow
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_the_recursion_over_links_equals_the_product_over_paths(data):
    draw = data.draw
    count = draw(st.integers(1, 6))
    names = [f"b{i}" for i in range(count)]
    # Times are odd multiples of some grid so that no deadline is met exactly.
    delay = st.integers(0, 40).map(lambda n: Deterministic(value_s=n * 0.01 * math.sqrt(2)))
    share = st.floats(0.2, 1.0)
    topics = "abc"
    intervals = (Exponential(mean_s=1.0), Deterministic(value_s=1.0), Gamma(mean_s=1.0, shape=0.2))

    def channel():
        return Channel(delay=draw(delay), reliability=draw(share))

    def rows():
        chosen = draw(st.lists(st.sampled_from(topics), min_size=1, unique=True))
        return ContentTable(
            table=tuple(
                ContentRow(
                    probability=1 / len(chosen),
                    event={"topic": topic},
                    lifetime=Deterministic(value_s=draw(st.sampled_from([0.3, 0.7, 2.0]))),
                )
                for topic in chosen
            )
        )

    # With constant delays shares are steps, and a slightly wrong wait would go unnoticed.
    def smooth():
        return Channel(delay=Exponential(mean_s=0.3), reliability=draw(share))

    system = System(
        version=1,
        brokers=tuple(
            Broker(name=n, service=Service(law=Deterministic(value_s=draw(st.floats(0.001, 0.02)))))
            for n in names
        ),
        links=tuple(
            Link(
                between=(names[draw(st.integers(0, i - 1))], names[i]),
                there=channel(),
                back=channel(),
            )
            for i in range(1, count)
        ),
        publishers=tuple(
            Publisher(
                name=f"p{i}",
                at=draw(st.sampled_from(names)),
                every=draw(st.sampled_from(intervals)).scaled(draw(st.floats(0.5, 5.0))),
                content=rows(),
                link=channel(),
            )
            for i in range(draw(st.integers(1, 3)))
        ),
        subscribers=tuple(
            Subscriber(
                name=f"s{i}",
                at=draw(st.sampled_from(names)),
                wants=as_filter({"topic": draw(st.lists(st.sampled_from(topics), min_size=1))}),
                link=smooth() if i == 0 or draw(st.booleans()) else channel(),
            )
            for i in range(draw(st.integers(1, 4)))
        ),
    )
    outcome = answer_by_theory(system, model="mm1", delays=False).outcome
    shares = outcome.subscribers.set_index("subscriber")["on_time"]
    for name, truth in recursion(system).items():
        assert shares[name] == pytest.approx(truth, abs=INVERTED, nan_ok=True)
