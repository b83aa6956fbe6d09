"""Over which lanes which subjects are asked for, once subscriptions have spread everywhere."""

from __future__ import annotations

from tidings.model import topology
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.testbed.consuming import takes_time
from tidings.testbed.layout import lane_name
from tidings.testbed.subjects import Subjects


def interest_by_lane(system: System, routes: Routes, names: Subjects) -> dict[str, set[str]]:
    """By lane, from homes towards publishers and from subscribers to homes: what is asked for."""
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
