from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.behaviour import Channel, Service, Station
from tidings.model.filters import as_filter
from tidings.model.laws import Deterministic, Exponential, Gamma, HyperExponential, Uniform
from tidings.model.routes import route
from tidings.model.system import Broker, Link, Publisher, Subscriber, System
from tidings.theory import predict
from tidings.theory.burstiness import (
    arriving_scvs,
    departing_scv,
    mean_wait_gg1_s,
    merged_scv,
    thinned_scv,
)
from tidings.theory.flows import flows
from tidings.theory.queues import mean_wait_s

LAWS = (
    Deterministic(value_s=1.0),
    Uniform(low_s=0.0, high_s=2.0),
    Exponential(mean_s=1.0),
    HyperExponential(weights=(0.9, 0.1), means_s=(0.5, 5.5)),
)


# ---- the pieces, by hand -----------------------------------------------------------------------


def test_thinning_by_hand():
    assert thinned_scv(1 / 3, 0.3) == pytest.approx(0.1 + 0.7, abs=1e-15)
    assert thinned_scv(4.0, 1.0) == 4.0
    assert thinned_scv(4.0, 0.0) == 1.0


def test_merging_by_hand():
    # shares .6 and .4: v = 1/.52; at load .8 w = 1/(1 + .16 (1/.52 − 1)) = 1/(1 + .16·.48/.52)
    weight = 1.0 / (1.0 + 0.16 * 0.48 / 0.52)
    assert merged_scv(np.array([0.0, 2.0]), np.array([0.6, 0.4]), 0.8) == pytest.approx(
        0.8 * weight + 1.0 - weight, abs=1e-15
    )
    # alone a stream stays what it is, under full load so does any mean of streams
    assert merged_scv(np.array([0.3]), np.array([1.0]), 0.1) == pytest.approx(0.3, abs=1e-15)
    assert merged_scv(np.array([0.0, 0.5]), np.array([0.5, 0.5]), 1.0) == pytest.approx(0.25)


def test_departing_by_hand():
    assert departing_scv(0.0, 1.0, 0.6) == pytest.approx(0.36, abs=1e-15)
    assert departing_scv(1.0, 1 / 3, 0.5) == pytest.approx(1.0 - 0.25 * 2 / 3, abs=1e-15)
    assert departing_scv(1.0, 0.0, 0.5) == pytest.approx(1.0 - 0.25 * 0.8, abs=1e-15)  # at least .2
    assert departing_scv(7.0, 0.5, 1.4) == pytest.approx(0.5, abs=1e-15)  # always busy


def test_waiting_by_hand():
    service = Uniform(low_s=0.0, high_s=0.2)  # mean .1, c² 1/3
    plain = 0.7 * 0.1 * (0.25 + 1 / 3) / (2 * 0.3)
    factor = math.exp(-2 * 0.3 * 0.75**2 / (3 * 0.7 * (0.25 + 1 / 3)))
    assert mean_wait_gg1_s(7.0, service, 0.25) == pytest.approx(plain * factor, rel=1e-14)
    assert mean_wait_gg1_s(7.0, service, 3.0) == pytest.approx(
        0.7 * 0.1 * (3 + 1 / 3) / 0.6, rel=1e-14
    )
    assert mean_wait_gg1_s(7.0, service, 1.0) == pytest.approx(mean_wait_s(7.0, service), rel=1e-14)
    assert mean_wait_gg1_s(7.0, Deterministic(value_s=0.1), 0.0) == 0.0
    assert mean_wait_gg1_s(10.0, service, 0.5) == math.inf


# ---- over a network ----------------------------------------------------------------------------


@st.composite
def systems(draw, laws=LAWS):
    count = draw(st.integers(1, 6))
    names = [f"b{i}" for i in range(count)]
    share = st.floats(0.3, 1.0)
    topics = "abc"

    def channel():
        return Channel(reliability=draw(share))

    def content():
        chosen = draw(st.lists(st.sampled_from(topics), min_size=1, unique=True))
        return {topic: 1 / len(chosen) for topic in chosen}

    return count, names, channel, content, draw, topics, laws


def build(make, parts):
    _, names, channel, content, draw, topics, laws = parts
    return System(
        version=1,
        lifetime=Deterministic(value_s=0.5),
        brokers=tuple(
            Broker(
                name=n,
                service=Service(
                    law=draw(st.sampled_from(laws)).scaled(draw(st.floats(0.001, 0.1)))
                ),
            )
            for n in names
        ),
        links=tuple(
            Link(
                between=(names[draw(st.integers(0, i - 1))], names[i]),
                there=channel(),
                back=channel(),
            )
            for i in range(1, len(names))
        ),
        publishers=tuple(
            Publisher(
                name=f"p{i}",
                at=draw(st.sampled_from(names)),
                every=draw(st.sampled_from(laws)).scaled(draw(st.floats(0.5, 3.0))),
                content=make.content(content()),
                link=channel(),
            )
            for i in range(draw(st.integers(1, 4)))
        ),
        subscribers=tuple(
            Subscriber(
                name=f"s{i}",
                at=draw(st.sampled_from(names)),
                wants=as_filter({"topic": draw(st.lists(st.sampled_from(topics), min_size=1))}),
            )
            for i in range(draw(st.integers(1, 4)))
        ),
    )


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(parts=systems())
def test_the_solved_equations_are_those_iterated_arc_by_arc(make, parts):
    system = build(make, parts)
    routes = route(system)
    found = arriving_scvs(system, routes, flows(system, routes))
    for broker, value in make.qna_by_iteration(system).items():
        assert found[broker][0] == pytest.approx(value, abs=1e-10)
        assert value >= 0.0


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(parts=systems(laws=(Exponential(mean_s=1.0),)))
def test_gg1_is_mm1_where_everything_is_exponential(make, parts):
    system = build(make, parts)
    one, other = predict(system, model="gg1"), predict(system, model="mm1")
    for column in ("on_time", "delivered", "delay_mean_s"):
        assert one.subscribers[column].to_numpy() == pytest.approx(
            other.subscribers[column].to_numpy(), abs=1e-12, nan_ok=True
        )
    assert one.brokers["wait_mean_s"].to_numpy() == pytest.approx(
        other.brokers["wait_mean_s"].to_numpy(), rel=1e-12, abs=1e-15
    )


def test_stations_hand_on_what_departs(make):
    system = make.line([Gamma(mean_s=0.1, shape=2.0)], rate_per_s=6.0)
    disk = Station(service=Service(law=Deterministic(value_s=0.05)))
    system = replace(system, brokers=(replace(system.brokers[0], disk=disk),))
    routes = route(system)
    ((first, second),) = arriving_scvs(system, routes, flows(system, routes))
    assert first == pytest.approx(1.0, abs=1e-14)
    assert second == pytest.approx(1.0 + 0.36 * (0.5 - 1.0), abs=1e-14)


def test_a_broker_that_nothing_reaches_and_one_that_is_overloaded(make):
    system = make.line([Exponential(mean_s=0.2), Gamma(mean_s=0.05, shape=4.0)], rate_per_s=10.0)
    routes = route(system)
    found = arriving_scvs(system, routes, flows(system, routes))
    assert found[1][0] == pytest.approx(1.0, abs=1e-12)  # it serves exponentially, always busy
    quiet = replace(system, subscribers=system.subscribers[:1])
    routes = route(quiet)
    assert arriving_scvs(quiet, routes, flows(quiet, routes))[1][0] == 1.0
