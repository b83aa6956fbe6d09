from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.behaviour import Channel, Service
from tidings.model.content import ContentRow, ContentTable
from tidings.model.filters import as_filter, matches
from tidings.model.laws import Exponential
from tidings.model.routes import route
from tidings.model.system import Broker, Link, Publisher, Routing, Subscriber, System
from tidings.theory.queues import flows as flows_module
from tidings.theory.queues.flows import flows

TOPICS = "abcd"


@st.composite
def systems(draw, *, loops=False):
    count = draw(st.integers(1, 7))
    names = [f"b{i}" for i in range(count)]
    share = st.floats(0.1, 1.0)
    pairs = [(names[draw(st.integers(0, i - 1))], names[i]) for i in range(1, count)]
    routing = None
    if loops and count > 2:
        missing = [(a, b) for a in names for b in names if a < b and (a, b) not in pairs]
        extra = draw(st.lists(st.sampled_from(missing), max_size=3, unique=True)) if missing else []
        pairs += extra
        roots = draw(st.lists(st.sampled_from(TOPICS), min_size=1, max_size=3, unique=True))
        routing = Routing(
            root=names[0],
            by="topic",
            roots=tuple((topic, draw(st.sampled_from(names))) for topic in roots),
        )
    links = tuple(
        Link(
            between=p, there=Channel(reliability=draw(share)), back=Channel(reliability=draw(share))
        )
        for p in pairs
    )

    def publisher(index):
        topics = draw(st.lists(st.sampled_from(TOPICS), min_size=1, unique=True))
        table = tuple(
            ContentRow(probability=1.0 / len(topics), event={"topic": topic}) for topic in topics
        )
        return Publisher(
            name=f"p{index}",
            at=draw(st.sampled_from(names)),
            every=Exponential(mean_s=draw(st.floats(0.1, 10.0))),
            content=ContentTable(table=table),
            link=Channel(reliability=draw(share)),
        )

    def subscriber(index):
        wanted = draw(st.lists(st.sampled_from(TOPICS), min_size=1, unique=True))
        return Subscriber(
            name=f"s{index}",
            at=draw(st.sampled_from(names)),
            wants=as_filter({"topic": wanted}),
        )

    return System(
        version=1,
        brokers=tuple(Broker(name=name) for name in names),
        links=links,
        routing=routing,
        publishers=tuple(publisher(i) for i in range(draw(st.integers(1, 4)))),
        subscribers=tuple(subscriber(i) for i in range(draw(st.integers(1, 5)))),
    )


def naive_rates(system):
    """Every publisher, every content, every path: which arcs and brokers it crosses, how often."""
    routes = route(system)
    arrivals, sent = defaultdict(float), defaultdict(float)
    index = system.broker_index
    trees = {tree.name: tree for tree in routes.trees}
    for publisher in system.publishers:
        for row in publisher.content.rows():
            rate = publisher.rate_per_s * row.probability * publisher.link.reliability
            tree = trees.get(row.event["topic"], trees.get("", routes.trees[0]))
            fans = {index[s.at] for s in system.subscribers if matches(s.wants, row.event)}

            def visit(broker, came_by, rate, tree=tree, fans=fans):
                """Send one copy on; say whether anybody was found behind."""
                arrivals[broker] += rate
                for arc in tree.outgoing[broker]:
                    if arc == came_by ^ 1 and came_by >= 0:
                        continue
                    target = routes.arcs[arc].target
                    if fans & behind(tree, target, arc):
                        sent[arc] += rate
                        visit(target, arc, rate * routes.arcs[arc].channel.reliability)

            def behind(tree, broker, came_by):
                found = {broker}
                for arc in tree.outgoing[broker]:
                    if arc != came_by ^ 1:
                        found |= behind(tree, routes.arcs[arc].target, arc)
                return found

            visit(index[publisher.at], -1, rate)
    return arrivals, sent


@settings(deadline=None, max_examples=80)
@given(system=systems())
def test_rates_are_those_of_every_path_counted_one_by_one(system):
    check_rates(system)


@settings(deadline=None, max_examples=60)
@given(system=systems(loops=True))
def test_rates_with_one_tree_per_topic(system):
    check_rates(system)


def check_rates(system):
    routes = route(system)
    found = flows(system, routes)
    arrivals, sent = naive_rates(system)
    for broker in range(len(system.brokers)):
        assert found.arrivals[broker] == pytest.approx(arrivals[broker], rel=1e-12, abs=1e-300)
    for arc in range(len(routes.arcs)):
        assert found.offered[arc].sum() == pytest.approx(sent[arc], rel=1e-12, abs=1e-300)
    assert np.all(found.passes == 1.0)


def test_an_overloaded_broker_passes_on_what_it_can(make):
    system = make.line(
        [Exponential(mean_s=0.01), Exponential(mean_s=0.2), Exponential(mean_s=0.1)], rate_per_s=8.0
    )
    found = flows(system, route(system))
    assert found.arrivals == pytest.approx([8.0, 8.0, 5.0], rel=1e-12)  # b1 can do 5 a second
    assert found.loads == pytest.approx([0.08, 1.6, 0.5], rel=1e-12)
    assert found.overloaded.tolist() == [False, True, False]
    assert found.passes == pytest.approx([1.0, 5.0 / 8.0, 1.0], rel=1e-12)


def test_overloaded_brokers_that_feed_each_other_settle(make):
    def publisher(name, at):
        return Publisher(
            name=name, at=at, every=Exponential(mean_s=1 / 6), content=make.content({"x": 1.0})
        )

    service = Service(law=Exponential(mean_s=0.2))  # five a second
    system = System(
        version=1,
        brokers=(Broker(name="a", service=service), Broker(name="b", service=service)),
        links=(Link(between=("a", "b")),),
        publishers=(publisher("p", "a"), publisher("q", "b")),
        subscribers=(
            Subscriber(name="s", at="a", wants=as_filter({})),
            Subscriber(name="t", at="b", wants=as_filter({})),
        ),
    )
    found = flows(system, route(system))
    # by symmetry a broker gets 6 of its own and the share x of the other's 6, x (6 + 6x) = 5
    share = (-6.0 + np.sqrt(36.0 + 4 * 6 * 5.0)) / 12.0
    assert found.passes == pytest.approx([share, share], rel=1e-9)
    assert found.arrivals * found.passes == pytest.approx([5.0, 5.0], rel=1e-9)


def test_a_service_per_subscription_grows_with_all_of_them(make):
    law = Exponential(mean_s=0.001)
    system = System(
        version=1,
        brokers=(Broker(name="a", service=Service(law=law, per_subscription=True)),),
        publishers=(
            Publisher(
                name="p", at="a", every=Exponential(mean_s=1.0), content=make.content({"x": 1.0})
            ),
        ),
        subscribers=(
            Subscriber(name="s", at="a", wants=as_filter({}), count=30),
            Subscriber(name="t", at="a", wants=as_filter({})),
        ),
    )
    assert system.stored_subscriptions == 31
    assert flows(system, route(system)).loads == pytest.approx([0.031], rel=1e-12)


def test_rates_that_do_not_settle_say_so(make, monkeypatch):
    system = make.line([Exponential(mean_s=0.5), Exponential(mean_s=0.6)], rate_per_s=8.0)
    assert flows(system, route(system)).settled
    monkeypatch.setattr(flows_module, "_MOST_ROUNDS", 1)
    assert not flows(system, route(system)).settled
