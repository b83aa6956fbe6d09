from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tidings.model.behaviour import Channel, Service, Station
from tidings.model.filters import as_filter
from tidings.model.laws import Deterministic, Exponential, Gamma, HyperExponential, Law, Uniform
from tidings.model.routes import route
from tidings.model.system import Broker, Link, Publisher, Routing, Subscriber, System
from tidings.reproduction.content_timeliness import where_it_holds
from tidings.reproduction.content_timeliness.where_it_holds import SCENARIOS
from tidings.simulation.run import simulate
from tidings.theory import queues
from tidings.theory.dispersion import waits
from tidings.theory.flows import flows

CONSTANT = Deterministic(value_s=1.0)
UNIFORM = Uniform(low_s=0.0, high_s=2.0)
EXPONENTIAL = Exponential(mean_s=1.0)


def found(system):
    routes = route(system)
    return waits(system, routes, flows(system, routes))


def feeding(make, every: Law, service: Law, count: int, **of_publisher):
    """So many publishers at one broker."""
    return System(
        version=1,
        lifetime=Deterministic(value_s=1.0),
        brokers=(Broker(name="b", service=Service(law=service)),),
        publishers=tuple(
            Publisher(
                name=f"p{i}",
                at="b",
                every=every,
                content=make.content({"x": 1.0}),
                **of_publisher,
            )
            for i in range(count)
        ),
        subscribers=(Subscriber(name="s", at="b", wants=as_filter({})),),
    )


def test_with_exponential_everything_each_broker_is_mm1(make):
    system = make.line([Exponential(mean_s=0.1), Exponential(mean_s=0.05)], rate_per_s=6.0)
    each = found(system)
    assert each.means_s == ((pytest.approx(0.15),), (pytest.approx(0.3 / 14.0),))
    assert each.known_by == (("poisson",), ("poisson",))


def test_the_first_broker_of_poisson_publishers_is_mg1_and_those_after_it_are_not(make):
    service = Uniform(low_s=0.0, high_s=0.2)
    each = found(make.line([service, service], rate_per_s=7.0))
    assert each.known_by == (("poisson",), ("curves",))
    assert each.means_s[0][0] == queues.mean_wait_s(7.0, service)
    assert each.means_s[1][0] < 0.95 * each.means_s[0][0]  # smoother than Poisson


def test_bursts_that_a_regular_broker_lets_through_still_wait_longer_than_poisson(make):
    """Its departures are known to be skewed only where no bursts arrive."""
    service = Uniform(low_s=0.0, high_s=0.2)
    system = make.line([service, service], rate_per_s=7.0)
    bursty = HyperExponential(weights=(0.9, 0.1), means_s=(0.5 / 6.3, 0.5 / 0.7))
    publisher = replace(system.publishers[0], every=bursty)
    each = found(replace(system, publishers=(publisher,)))
    assert bursty.scv > 3.0
    assert each.means_s[0][0] > each.means_s[1][0] > queues.mean_wait_s(7.0, service)


def test_every_merged_publisher_counts_alike_however_they_are_written(make):
    """The same streams as one kind of publisher or another: rates and services unequal."""
    service = Exponential(mean_s=0.1)
    ten = found(feeding(make, Deterministic(value_s=1.4), service, 10)).means_s[0][0]
    assert ten < queues.mean_wait_s(10 / 1.4, service)
    lossy = feeding(make, CONSTANT, service, 10, link=Channel(reliability=1 / 1.4))
    assert ten < found(lossy).means_s[0][0] < queues.mean_wait_s(10 / 1.4, service)


def test_jitter_makes_a_periodic_stream_poisson(make):
    """Delays far longer than the period leave nothing of it, short ones leave it as it is."""
    service = Exponential(mean_s=0.7)

    def wait_s(delay):
        system = feeding(make, CONSTANT, service, 1, link=Channel(delay=delay))
        return found(system).means_s[0][0]

    plain = wait_s(Deterministic(value_s=5.0))
    poisson = queues.mean_wait_s(1.0, service)
    assert wait_s(Exponential(mean_s=1e-3)) == pytest.approx(plain, rel=0.01)
    assert plain < wait_s(Exponential(mean_s=1.0)) < poisson
    assert wait_s(Exponential(mean_s=1e4)) == pytest.approx(poisson, rel=0.01)


@pytest.mark.parametrize("factor", [1e-6, 3600.0])
def test_the_unit_of_time_does_not_matter(make, factor):
    system = feeding(make, UNIFORM, Uniform(low_s=0.0, high_s=0.2), 7)
    one, other = found(system), found(make.scaled(system, factor))
    assert other.means_s[0][0] == pytest.approx(factor * one.means_s[0][0], rel=1e-6)


def test_stations_in_series_and_stations_that_take_no_time(make):
    service = Uniform(low_s=0.0, high_s=0.2)
    system = make.line([service], rate_per_s=7.0)
    broker = replace(
        system.brokers[0],
        disk=Station(service=Service(law=Deterministic(value_s=0.0))),
        out=Station(service=Service(law=service)),
    )
    both = found(replace(system, brokers=(broker,)))
    line = found(make.line([service, service], rate_per_s=7.0))
    assert both.means_s[0][1] == 0.0
    assert both.means_s[0][2] == pytest.approx(line.means_s[1][0], rel=1e-3)
    assert both.known_by == (("poisson", "curves", "curves"),)


def test_behind_an_overloaded_broker_comes_what_it_serves(make):
    system = make.line([Gamma(mean_s=0.2, shape=2.0), Exponential(mean_s=0.1)], rate_per_s=8.0)
    each = found(system)
    assert each.means_s[0][0] == math.inf
    alone = feeding(make, Gamma(mean_s=0.2, shape=2.0), Exponential(mean_s=0.1), 1)
    assert each.means_s[1][0] == pytest.approx(found(alone).means_s[0][0], rel=1e-12)


def test_trees_that_feed_each_other_in_a_circle_settle(make):
    names = ("a", "b", "c")
    system = System(
        version=1,
        lifetime=Deterministic(value_s=1.0),
        routing=Routing(root="a", by="topic", roots=(("x", "a"), ("y", "b"), ("z", "c"))),
        brokers=tuple(
            Broker(name=n, service=Service(law=Uniform(low_s=0.0, high_s=0.1))) for n in names
        ),
        links=tuple(Link(between=pair) for pair in (("a", "b"), ("b", "c"), ("c", "a"))),
        publishers=tuple(
            Publisher(
                name=f"p{n}",
                at=n,
                every=Deterministic(value_s=0.25),
                content=make.content({"x": 0.4, "y": 0.3, "z": 0.3}),
            )
            for n in names
        ),
        subscribers=tuple(Subscriber(name=f"s{n}", at=n, wants=as_filter({})) for n in names),
    )
    each = found(system)
    arrivals = flows(system, route(system)).arrivals
    for (wait_s,), rate in zip(each.means_s, arrivals, strict=True):
        poisson = queues.mean_wait_s(float(rate), Uniform(low_s=0.0, high_s=0.1))
        assert 0.3 * poisson < wait_s < poisson


# ---- against simulation ------------------------------------------------------------------------


SIX_SETTINGS = tuple(
    f"{every} / {service}"
    for every in ("exponential", "periodic", "uniform")
    for service in ("exponential", "uniform")
)
BUSY = {each.name: each for each in SCENARIOS if each.load == 0.75}


@pytest.mark.slow
@pytest.mark.statistical
def test_under_little_load_waits_are_those_simulated():
    """What heavy traffic says of three events together must not outlast it."""
    system = where_it_holds.tree(101, replace(BUSY["exponential / uniform"], load=0.3))
    length = {"replications": 8, "duration_s": 3_000.0, "warmup_s": 100.0}
    simulated = simulate(system, seed=1, **length).brokers
    predicted = np.concatenate(found(system).means_s)
    allowed = 4.0 * math.sqrt((simulated["wait_mean_se_s"] ** 2).sum()) / predicted.sum()
    assert allowed < 0.02
    assert predicted.sum() == pytest.approx(simulated["wait_mean_s"].sum(), rel=0.03 + allowed)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("setting", SIX_SETTINGS)
@pytest.mark.parametrize(("seed", "unequal"), [(101, False), (102, True)])
def test_six_settings_on_random_systems(setting, seed, unequal):
    """Mean absolute error of the on-time share; periodic publishers averaged over phases."""
    points = where_it_holds.run(replace(BUSY[setting], unequal=unequal), seed)
    errors = where_it_holds.table(points).set_index("model")["mean_absolute"]
    assert errors["law"] < 0.5 * errors["gg1"]
    if setting == "exponential / exponential":
        assert errors["gg1"] == pytest.approx(errors["mm1"], abs=1e-12)
    else:
        assert errors["gg1"] < errors["mm1"]
    assert errors["law"] <= 0.02
