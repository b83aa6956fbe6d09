"""The kinds of brokers that a testbed can be of, and all in which a run on them differs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidings.model import topology
from tidings.model.consumers import Consumers
from tidings.model.routes import Routes
from tidings.model.system import Subscriber, System
from tidings.testbed.conducting import Conductor
from tidings.testbed.consuming import nats_refusal, takes_time
from tidings.testbed.layout import lane_name
from tidings.testbed.mosquitto import Mosquitto
from tidings.testbed.mqtt_conducting import MqttConductor, crossing, topics_by_arc, with_homes
from tidings.testbed.mqtt_consuming import shared_refusal
from tidings.testbed.runs import Run
from tidings.testbed.servers import Nats, ServerKind
from tidings.testbed.storing import StoringConductor
from tidings.testbed.workload import Subjects

_BY_ALL = frozenset(
    {
        "random lifetimes",
        "failures",
        "recovery",
        "subscriber's own queue",
        "consumer groups",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Brokers:
    """What a run must know of the brokers that it is on."""

    called: str
    handled: frozenset[str]  # features of systems
    refusal: Callable[[Subscriber, Consumers], str]  # why a group cannot be had; "" if it can
    stops: bool  # whether consumer groups can be made to stand still
    carries: bool  # whether brokers that store events also carry them on; else the testbed does
    servers: Callable[
        [System, Routes, Subjects, bool], tuple[Subjects, ServerKind]
    ]  # True: that store
    asked: Callable[[Run], dict[str, set[str]]]  # by lane, which subscriptions cross it
    conductor: Callable[..., Any]
    carrying: Callable[..., Any]  # the conductor where the testbed carries events on


def interest_by_lane(run: Run) -> dict[str, set[str]]:
    """List subjects asked for by lane: from homes towards publishers, from subscribers to homes."""
    system, routes, names = run.system, run.routes, run.subjects
    subjects: dict[str, set[str]] = {}
    brokers = [broker.name for broker in system.brokers]
    wanted: dict[int, set[str]] = {}
    homes = routes.home_of_subscriber.tolist()
    for one, home, mine in zip(system.subscribers, homes, names.of_subscriber, strict=True):
        if one.stays is None:  # else it asks, and no longer asks, in the course of the run
            wanted.setdefault(home, set()).update(mine)
    for home, asked in wanted.items():
        for _, into in topology.walk(routes.trees[0], routes.arcs, home):
            if into >= 0:
                arc = routes.arcs[into]
                lane = lane_name(brokers[arc.source], brokers[arc.target])
                subjects.setdefault(lane, set()).update(asked)
    for one, mine in zip(system.subscribers, names.of_subscriber, strict=True):
        stays = one.connectivity is None and one.stays is None
        if stays and not takes_time(one):  # else its broker asks for it, or it asks later
            subjects[lane_name(one.name, one.at)] = set(mine)
    return subjects


def _nats(
    system: System, routes: Routes, names: Subjects, stores: bool
) -> tuple[Subjects, ServerKind]:
    return names, Nats()


def _mosquitto(
    system: System, routes: Routes, names: Subjects, stores: bool
) -> tuple[Subjects, ServerKind]:
    topics = with_homes(system, names)
    return topics, Mosquitto(topics_by_arc(system, routes, topics), qos=int(stores))


BROKERS = {
    "nats": Brokers(
        called="NATS",
        handled=_BY_ALL | {"connectivity", "bounded buffers of peers", "subscription churn"},
        refusal=nats_refusal,
        stops=True,
        carries=False,
        servers=_nats,
        asked=interest_by_lane,
        conductor=Conductor,
        carrying=StoringConductor,
    ),
    "mosquitto": Brokers(
        called="Mosquitto",
        handled=_BY_ALL,
        refusal=shared_refusal,
        stops=False,
        carries=True,  # over bridges
        servers=_mosquitto,
        asked=crossing,
        conductor=MqttConductor,
        carrying=MqttConductor,
    ),
}
