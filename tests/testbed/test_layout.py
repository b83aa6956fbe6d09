"""Which servers and relays a system becomes; nothing is started here."""

from __future__ import annotations

import asyncio

import pytest

from real_servers import LINE
from tidings.model.reading import loads
from tidings.model.routes import route
from tidings.testbed.breaking import plain_change
from tidings.testbed.layout import layout


@pytest.fixture(scope="module")
def parts():
    system = loads(LINE)
    return layout(system, route(system), seed=3)


def lanes_to(parts, broker):
    lanes = (lane for relay in parts.relays for lane in relay.lanes)
    return {lane.source: lane for lane in lanes if lane.broker == broker}


def test_what_comes_over_one_link_waits_for_what_came_over_another(parts):
    lanes = lanes_to(parts, "hub")
    assert set(lanes) == {"left", "right"}
    assert lanes["left"].station.serve(10.0) == pytest.approx((10.0, 10.003))
    assert lanes["right"].station.serve(10.001) == pytest.approx((10.003, 10.006))
    assert lanes["left"].station.serve(10.002) == pytest.approx((10.006, 10.009))
    assert parts.stations["hub"].free_s == pytest.approx(10.009)  # what a crash empties


def test_publishers_and_brokers_share_the_station_of_a_home(parts):
    lanes = lanes_to(parts, "left")
    assert set(lanes) == {"p", "hub"}
    assert lanes["p"].station.serve(20.0) == pytest.approx((20.0, 20.004))
    assert lanes["hub"].station.serve(20.0) == pytest.approx((20.004, 20.008))


def test_every_broker_has_a_station_of_its_own(parts):
    busy = parts.stations["right"].serve(30.0)
    assert busy == pytest.approx((30.0, 30.005))
    assert len({id(station) for station in parts.stations.values()}) == 3


def test_what_a_client_handed_over_outlasts_it_and_nothing_else_does(parts):
    lanes = [lane for relay in parts.relays for lane in relay.lanes]
    assert [lane.source for lane in lanes if lane.outlasts_sender] == ["p"]


def test_servers_and_files_are_called_by_plain_words(parts):
    assert [plan.label for plan in parts.servers.values()] == ["b0", "b1", "b2"]
    assert [*parts.servers] == ["left", "hub", "right"]


def test_a_broker_that_is_killed_loses_its_queue_and_no_other_does(parts):
    """Its server has no part in it: all that must be done about it is remembered."""
    told = []
    for station in (parts.stations["hub"], parts.stations["left"]):
        station.serve(1_000.0)

    class Servers:
        kill, start = told.append, told.append

    change = plain_change(parts, Servers)
    asyncio.run(change("hub", False))
    assert parts.stations["hub"].serve(30.0) == pytest.approx((30.0, 30.003))
    assert parts.stations["left"].free_s > 1_000.0
    asyncio.run(change("hub", True))
    assert told == ["hub", "hub"]
