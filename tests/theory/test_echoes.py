"""Traffic that goes both ways between brokers, and copies of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tidings.model.behaviour import Channel, Service
from tidings.model.filters import as_filter
from tidings.model.laws import Deterministic, Exponential, Uniform
from tidings.model.routes import route
from tidings.model.system import Broker, Link, Publisher, Subscriber, System
from tidings.simulation.run import simulate
from tidings.theory import dependence
from tidings.theory.echoes import Beyond, Passage, both_ways, echo, held_back
from tidings.theory.flows import flows
from tidings.theory.predicting import predict
from tidings.theory.splitting import splits

T_S = np.geomspace(0.01, 1e3, 40)
NEAR = Passage(lags_s=np.array([0.5, 4.0, 12.0]), stays_s=np.array([0.5, 1.0, 3.0]))
FAR = Passage(lags_s=np.array([1.0, 5.0, 15.0]), stays_s=np.array([1.0, 2.0, 3.0]))


def exchange(make, every, service):
    """Four publishers at each of two brokers; each broker's subscribers want the other's events."""
    names = ("a", "b")
    return System(
        version=1,
        lifetime=Deterministic(value_s=1.0),
        brokers=tuple(Broker(name=name, service=Service(law=service)) for name in names),
        links=(Link(between=names),),
        publishers=tuple(
            Publisher(name=f"{name}{i}", at=name, every=every, content=make.content({name: 1.0}))
            for name in names
            for i in range(4)
        ),
        subscribers=tuple(
            Subscriber(name=f"at {name}", at=name, wants=as_filter({"topic": other}))
            for name, other in zip(names, reversed(names), strict=True)
        ),
    )


def test_what_is_held_back_by_hand():
    one = Passage(lags_s=np.array([2.0, 6.0]), stays_s=np.array([1.0, 1.0]))
    t_s = np.array([0.5, 2.0, 4.0, 100.0])
    # E[(t − D)⁺] − E[(t − a)⁺] at t, one second later than at the far station itself
    expected = np.array([0.0, 0.0, 2.0 - 0.5, 98.0 - 0.5 * (97.0 + 93.0)]) / t_s
    assert held_back(np.array([1.0]), one, t_s) == pytest.approx(expected, abs=1e-12)


def test_equally_uneven_arrivals_and_services_make_no_echo():
    """As in a network of Poisson publishers and exponential services, where all is 0."""
    curve = -T_S / (1.0 + T_S)
    same = Beyond(arriving=curve, sent=curve, serving=curve)
    assert np.array_equal(echo(both_ways(NEAR, FAR, 0.1, T_S), same), np.zeros_like(T_S))


def test_regular_services_make_waits_shorter_and_regular_arrivals_longer():
    zero, regular = np.zeros_like(T_S), np.full_like(T_S, -0.5)
    soon, late = both_ways(NEAR, FAR, 0.1, T_S), both_ways(NEAR, FAR, 5.0, T_S)
    services = echo(soon, Beyond(arriving=zero, sent=zero, serving=regular))
    arrivals = echo(soon, Beyond(arriving=regular, sent=regular, serving=zero))
    assert services.min() < -0.05
    assert np.all(services <= 0.0)
    assert arrivals == pytest.approx(-services, abs=1e-15)
    later = echo(late, Beyond(arriving=zero, sent=zero, serving=regular))
    assert later.min() > services.min()  # long links let it fade


def mean_wait_s(system):
    return float(predict(system, delays=False).brokers["wait_mean_s"].mean())


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(
    ("every", "service"),
    [
        (Uniform(low_s=0.0, high_s=2.0), Exponential(mean_s=0.75 / 8.0)),
        (Exponential(mean_s=1.0), Uniform(low_s=0.0, high_s=1.5 / 8.0)),
    ],
)
def test_with_the_echo_waits_are_nearer_to_simulated_ones(make, monkeypatch, every, service):
    system = exchange(make, every, service)
    simulated = simulate(
        system, seed=3, replications=30, duration_s=20_000.0, warmup_s=200.0
    ).brokers
    truth_s = float(simulated["wait_mean_s"].mean())
    error_s = float(simulated["wait_mean_se_s"].mean())
    heard = abs(mean_wait_s(system) - truth_s)
    monkeypatch.setattr(dependence, "echo", lambda *_: np.zeros(1))
    unheard = abs(mean_wait_s(replace(system)) - truth_s)
    assert unheard > 6.0 * error_s  # sharp enough to tell
    assert heard < 0.6 * unheard


def star(make, service):
    """Four brokers around a hub, a publisher and a subscriber at each; everybody wants all."""
    leaves = ("a", "b", "c", "d")
    link = Channel(delay=Deterministic(value_s=0.02))
    return System(
        version=1,
        lifetime=Deterministic(value_s=1.0),
        brokers=tuple(Broker(name=name, service=Service(law=service)) for name in ("hub", *leaves)),
        links=tuple(Link(between=("hub", leaf), there=link, back=link) for leaf in leaves),
        publishers=tuple(
            Publisher(
                name=f"p{leaf}",
                at=leaf,
                every=Exponential(mean_s=0.8),
                content=make.content({"x": 1.0}),
            )
            for leaf in leaves
        ),
        subscribers=tuple(
            Subscriber(name=f"s{leaf}", at=leaf, wants=as_filter({})) for leaf in leaves
        ),
    )


def test_the_strength_of_copies_by_hand(make):
    """Of 5 events a second at a leaf 1.25 go on to the hub; any two leaves share 2.5 copies."""
    system = star(make, Exponential(mean_s=0.15))
    routes = route(system)
    split = splits(system, routes, flows(system, routes))
    to_leaf = [arc for arc, there in enumerate(routes.arcs) if there.source == 0]
    copied, strength = split.copied.toarray(), split.fed_back().toarray()
    for arc in to_leaf:
        others = [other for other in to_leaf if other != arc]
        assert copied[arc, others] == pytest.approx(2.5, abs=1e-12)
        assert strength[arc, others] == pytest.approx(2.0 * 2.5 * (1.25 / 5.0) / 3.75, abs=1e-12)
    assert strength.sum() == pytest.approx(12 * strength[to_leaf[0], to_leaf[1]], abs=1e-12)


def test_where_nothing_is_copied_exponential_brokers_stay_exact(make):
    system = exchange(make, Exponential(mean_s=1.0), Exponential(mean_s=0.75 / 8.0))
    waits_s = predict(system, delays=False).brokers["wait_mean_s"].to_numpy()
    assert waits_s == pytest.approx(0.75 / 0.25 * 0.75 / 8.0, rel=1e-12)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("service", [Exponential(mean_s=0.15), Uniform(low_s=0.0, high_s=0.3)])
def test_copies_make_waits_shorter_and_that_is_predicted(make, monkeypatch, service):
    system = star(make, service)
    simulated = simulate(system, seed=3, replications=20, duration_s=8_000.0, warmup_s=200.0)
    truth_s = float(simulated.brokers["wait_mean_s"][1:].mean())  # at the leaves
    error_s = float(simulated.brokers["wait_mean_se_s"][1:].mean()) / 2.0

    def leaves_s():
        return float(predict(replace(system), delays=False).brokers["wait_mean_s"][1:].mean())

    heard = abs(leaves_s() - truth_s)
    monkeypatch.setattr(dependence, "_FAINT", 1e9)
    unheard = abs(leaves_s() - truth_s)
    assert unheard > 6.0 * error_s  # sharp enough to tell
    assert heard < 0.5 * unheard
