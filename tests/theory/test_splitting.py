from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.behaviour import Channel, Service
from tidings.model.filters import as_filter
from tidings.model.laws import Exponential
from tidings.model.routes import route
from tidings.model.system import Broker, Link, Publisher, Routing, Subscriber, System
from tidings.theory.flows import flows
from tidings.theory.splitting import splits


def crossing(make, *, services_s=(0.01, 0.01, 0.01), reliability=1.0):
    """Three brokers in a row; one publisher at either end; everybody wants everything."""
    names = ("a", "b", "c")
    channel = Channel(reliability=reliability)
    return System(
        version=1,
        brokers=tuple(
            Broker(name=n, service=Service(law=Exponential(mean_s=s)))
            for n, s in zip(names, services_s, strict=True)
        ),
        links=tuple(
            Link(between=pair, there=channel, back=channel) for pair in (("a", "b"), ("b", "c"))
        ),
        publishers=(
            Publisher(
                name="p", at="a", every=Exponential(mean_s=0.5), content=make.content({"x": 1.0})
            ),
            Publisher(
                name="q",
                at="c",
                every=Exponential(mean_s=0.2),
                content=make.content({"x": 0.25, "y": 0.75}),
            ),
        ),
        subscribers=(
            Subscriber(name="s", at="a", wants=as_filter({"topic": "x"})),
            Subscriber(name="t", at="c", wants=as_filter({})),
        ),
    )


def found(system):
    routes = route(system)
    rates = flows(system, routes)
    return splits(system, routes, rates), rates


def test_traffic_in_two_directions_is_told_apart(make):
    split, _ = found(crossing(make))
    # sources: p, q, then arcs a→b, b→a, b→c, c→b
    assert split.rates == pytest.approx([2.0, 5.0, 2.0, 1.25, 2.0, 1.25])
    handed = split.handed.toarray()
    assert handed[0] == pytest.approx([2.0, 0, 0, 0, 0, 0])  # a→b carries p
    assert handed[2] == pytest.approx([0, 0, 2.0, 0, 0, 0])  # b→c what came over a→b, no other
    assert handed[1] == pytest.approx([0, 0, 0, 0, 0, 1.25])
    assert handed[3] == pytest.approx([0, 1.25, 0, 0, 0, 0])  # c→b a quarter of q
    memory = split.memory().toarray()
    assert memory[3, 1] == pytest.approx(0.25)  # thinned like a coin by the filter
    assert memory[2, 2] == pytest.approx(1.0)  # but not by sharing the broker
    assert split.arc_shares == pytest.approx([2.0 / 3.25, 1.25 / 3.25, 2.0 / 3.25, 1.25 / 7.0])


def test_losses_thin_too(make):
    split, _ = found(crossing(make, reliability=0.5))
    memory = split.memory().toarray()
    assert memory[0, 0] == pytest.approx(0.5)
    assert split.rates == pytest.approx([2.0, 5.0, 1.0, 0.3125, 0.5, 0.625])


def test_an_overloaded_broker_hands_on_what_it_can(make):
    split, rates = found(crossing(make, services_s=(0.01, 0.5, 0.01)))
    assert rates.passes[1] == pytest.approx(2.0 / 3.25)
    assert split.leaving[1] == pytest.approx(2.0)
    assert split.arc_shares[[1, 2]].sum() == pytest.approx(1.0)


@st.composite
def shapes(draw):
    count = draw(st.integers(2, 7))
    tree = [(draw(st.integers(0, i - 1)), i) for i in range(1, count)]
    reliabilities = draw(st.lists(st.floats(0.2, 1.0), min_size=16, max_size=16))
    homes = draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=5))
    wants = draw(st.lists(st.integers(0, count - 1), min_size=1, max_size=5))
    several = draw(st.booleans())
    return count, tree, reliabilities, homes, wants, several


@settings(deadline=None, max_examples=60)
@given(shape=shapes())
def test_what_is_split_adds_up(make, shape):
    count, tree, reliabilities, homes, wants, several = shape
    names = [f"b{i}" for i in range(count)]
    ring = [(0, count - 1)] if several and count > 2 and (0, count - 1) not in tree else []
    routing = Routing(root="b0", by="topic", roots=(("y", names[-1]),)) if ring else None
    system = System(
        version=1,
        brokers=tuple(Broker(name=n) for n in names),
        routing=routing,
        links=tuple(
            Link(
                between=(names[a], names[b]),
                there=Channel(reliability=reliabilities[2 * i]),
                back=Channel(reliability=reliabilities[2 * i + 1]),
            )
            for i, (a, b) in enumerate(tree + ring)
        ),
        publishers=tuple(
            Publisher(
                name=f"p{i}",
                at=names[home],
                every=Exponential(mean_s=1.0 + i),
                content=make.content({"x": 0.5, "y": 0.3, "z": 0.2}),
                link=Channel(reliability=reliabilities[i]),
            )
            for i, home in enumerate(homes)
        ),
        subscribers=tuple(
            Subscriber(name=f"s{i}", at=names[at], wants=as_filter({"topic": "xyz"[i % 3]}))
            for i, at in enumerate(wants)
        ),
    )
    split, rates = found(system)
    # what an arc delivers is the sum of what its sources gave it
    given_to = np.asarray(split.handed.sum(axis=1)).ravel()
    assert given_to == pytest.approx(split.arc_rates, rel=1e-12, abs=1e-15)
    # what arrives at a broker is the sum of its sources
    total = np.zeros(count)
    np.add.at(total, split.into, split.rates)
    assert total == pytest.approx(rates.arrivals, rel=1e-12)
    shares = np.asarray(split.arriving_shares(count).sum(axis=1)).ravel()
    assert shares == pytest.approx((total > 0).astype(float), abs=1e-12)
    # nobody inherits more than everything
    kept = np.asarray(split.memory().sum(axis=1)).ravel()
    assert np.all(kept <= 1.0 + 1e-12)
