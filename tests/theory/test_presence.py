"""What goes where while subscriptions come and go: shares of time, rates, and what events find."""

from __future__ import annotations

import dataclasses

import pytest

from tidings.model.reading import from_document
from tidings.model.routes import route
from tidings.simulation.run import simulate
from tidings.theory.flows import flows, met_flows
from tidings.theory.predicting import predict
from tidings.theory.presence import open_shares

STATED = 0.01  # what docs/combined.md says that shares may be off by, those of lasting ones apart
OUT, BACK = 0, 1  # the arcs of the link


def guests(count, *, rate_per_s=2.0, service_s=0.043, wants=None, lasting=True):
    """Guests at b1, there for a quarter of the time, each with a topic of its own, or ``wants``."""
    guest = {"at": "b1", "stays": {"exponential": 60.0}, "away": {"exponential": 180.0}}
    publishers = {
        f"p{index}": {
            "at": "b0",
            "every": {"exponential": 1.0 / rate_per_s},
            "content": {"event": {"topic": f"t{index}"}},
        }
        for index in range(count)
    }
    publishers["q"] = {
        "at": "b0",
        "every": {"exponential": 1.0},
        "content": {"event": {"topic": "z"}},
    }
    subscribers = {
        f"g{index}": {**guest, "wants": {"topic": wants or f"t{index}"}} for index in range(count)
    }
    if lasting:
        subscribers["lasts"] = {"at": "b1", "wants": {"topic": "z"}}
    return from_document(
        {
            "tidings": 1,
            "lifetime": 0.3,
            "brokers": {"b0": {}, "b1": {"service": {"exponential": service_s}}},
            "links": [{"between": ["b0", "b1"], "delay": 0.05, "reliability": 0.9}],
            "publishers": publishers,
            "subscribers": subscribers,
        },
        "guests",
    )


def test_an_arc_is_open_while_anybody_behind_it_is_subscribed():
    system = guests(3, wants="t0")
    routes = route(system)
    found = open_shares(system, routes)
    assert set(found[BACK]) == {0.0}
    shares = sorted(found[OUT])
    assert shares[0] == 0.0  # t1 and t2 are nobody's
    assert shares[-2:] == pytest.approx([1.0 - 0.75**3, 1.0], rel=1e-12)
    twins = dataclasses.replace(system.subscribers[0], count=3)
    counted = dataclasses.replace(system, subscribers=(twins, system.subscribers[-1]))
    assert sorted(open_shares(counted, route(counted))[OUT]) == pytest.approx(shares, rel=1e-12)


def test_rates_are_means_over_who_is_there():
    """Ten guests at 2 events a second each, a quarter of the time, and one that lasts."""
    system = guests(10)
    found = flows(system, route(system))
    assert found.offered.sum(axis=1).tolist() == pytest.approx([6.0, 0.0], rel=1e-12)
    assert found.arrivals.tolist() == pytest.approx([21.0, 0.9 * 6.0], rel=1e-12)


@pytest.mark.parametrize("count", [1, 3, 10])
def test_guests_find_themselves_there_and_others_for_their_share(count):
    """Each of n alike finds its own 2 events a second, and a quarter of those of the others."""
    system = guests(count)
    routes = route(system)
    mean = flows(system, routes)
    met = met_flows(system, routes, mean, by_guests=True)
    whole = 1.0 + 2.0 + 0.25 * 2.0 * (count - 1)
    assert met.arrivals[1] == pytest.approx(0.9 * whole, rel=1e-12)
    # An event at random is a guest's with this probability, and a lasting one finds the mean.
    guest, plain = 0.5 * count / (0.5 * count + 1.0), 1.0 + 0.5 * count
    average = met_flows(system, routes, mean).arrivals[1]
    assert average == pytest.approx(0.9 * (guest * whole + (1.0 - guest) * plain), rel=1e-12)


def test_nothing_changes_where_everybody_stays():
    system = guests(2)
    staying = tuple(dataclasses.replace(s, stays=None, away=None) for s in system.subscribers)
    lasting = dataclasses.replace(system, subscribers=staying)
    routes = route(lasting)
    mean = flows(lasting, routes)
    assert met_flows(lasting, routes, mean) is mean
    assert mean.offered.sum(axis=1).tolist() == pytest.approx([5.0, 0.0], rel=1e-12)


def test_what_events_find_overloads_no_broker():
    """A single guest that is too much for its broker while it is there, but not on average."""
    system = guests(1, rate_per_s=40.0)
    routes = route(system)
    mean = flows(system, routes)
    assert mean.loads[1] < 0.5
    assert met_flows(system, routes, mean, by_guests=True).loads[1] == pytest.approx(0.98)


def test_brokers_that_lasting_subscribers_find_less_busy_are_warned_of():
    def warned(system):
        told = predict(system, delays=False).provenance["warnings"]
        return [each for each in told if "busy on average" in each]

    (busier,) = warned(guests(1, rate_per_s=16.0))
    # 16 events a second for a quarter of the time: .8 of all events, which find 17 of .9 × .043 s.
    mean, found = 0.9 * 0.043 * 5.0, 0.9 * 0.043 * (0.8 * 17.0 + 0.2 * 5.0)
    assert f"broker 'b1' is {mean:.2f} busy on average and {found:.2f} as most" in busier
    assert warned(guests(1, rate_per_s=16.0, lasting=False)) == []
    assert warned(guests(10)) == []


@pytest.mark.slow
@pytest.mark.statistical
def test_predicted_shares_on_time_are_simulated_ones():
    system = guests(10)
    seen = simulate(system, seed=5, events=120_000)
    measured = seen.subscribers.set_index("subscriber")
    found = predict(system, delays=False)
    predicted = found.subscribers.set_index("subscriber")["on_time"]
    allowed = STATED + 4.5 * measured["on_time_se"]
    assert allowed.max() < 0.03
    assert ((predicted - measured["on_time"]).abs() < allowed).all()
    load, simulated = (each.brokers["utilisation"][1] for each in (found, seen))
    assert load == pytest.approx(simulated, abs=0.02)
    # Sharp enough to notice brokers as busy as if all were always there.
    staying = tuple(dataclasses.replace(s, stays=None, away=None) for s in system.subscribers)
    lasting = predict(dataclasses.replace(system, subscribers=staying), delays=False)
    ignoring = lasting.subscribers.set_index("subscriber")["on_time"]["lasts"]
    assert measured["on_time"]["lasts"] - ignoring > 5 * allowed["lasts"]
