"""Why events were not delivered, from where they were last seen on their way."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.characterisation.fit.contents import Contents
from tidings.characterisation.fit.measured import Tally
from tidings.characterisation.statistics import LOST, REACHED, sums_at
from tidings.model import topology
from tidings.model.events import canonical_event
from tidings.model.routes import Routes, route
from tidings.model.system import Broker, System

Reals = NDArray[np.float64]
# A table of what else may have happened: where it is there, absence has more than one explanation.
_OF_CLIENTS = "sessions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far the events that each subscriber wants came: counts by subscriber."""

    lost_before_home: Reals  # on the publisher's link or between brokers
    reached_home: Reals  # its home broker has seen them
    not_at_home: Reals  # lost before they came there, whatever took them
    at_home: Reals  # that came there, seen or not; NaN where a home broker records no hops


def lost_on_links(reach: Reach, delivered: Reals, wanted: Reals, certain: Sequence[bool]) -> Reals:
    """Count the events that each subscriber wanted and a link lost.

    What reached the home broker and not the subscriber was lost on the subscriber's own link, where
    that is ``certain``. Never more than are missing: deliveries of which no hop is recorded make
    less of the rest explained, not more.

    >>> lost, reached = np.array([2.0]), np.array([7.0])
    >>> reach = Reach(
    ...     lost_before_home=lost, reached_home=reached, not_at_home=lost, at_home=reached
    ... )
    >>> lost_on_links(reach, np.array([4.0]), np.array([10.0]), [True])
    array([5.])
    """
    on_own_link = np.where(certain, np.maximum(reach.reached_home - delivered, 0.0), 0.0)
    return np.minimum(reach.lost_before_home + on_own_link, wanted - delivered)


def reach_by_publisher(
    sightings: pd.DataFrame,
    contents: Contents,
    system: System,
    failed: frozenset[str],
    nameless: float = 0.0,
) -> dict[str, Reach]:
    """Count how far each publisher's events came, from sightings and the paths that events follow.

    What did not come over a link, or to a broker, among those that ``failed`` at some time may have
    been lost by that and not by the link. A share of ``nameless`` hops do not say of which event
    they are: as many events were at a broker and are not known to have been.
    """
    routes = route(system)
    cells = _cells(sightings, contents, routes)
    recording = frozenset(map(str, cells.loc[cells["statistic"] == REACHED, "target"]))
    return {
        str(publisher): _reach(part, system, routes, recording, failed, nameless)
        for publisher, part in cells.groupby("publisher")
    }


def _reach(
    cells: pd.DataFrame,
    system: System,
    routes: Routes,
    recording: frozenset[str],
    failed: frozenset[str],
    nameless: float,
) -> Reach:
    filters = routes.wants.astype(np.float64)  # [class, filter]
    home, chosen = routes.home_of_subscriber, routes.filter_of_subscriber
    number = system.broker_index
    reached = cells[(cells["statistic"] == REACHED) & cells["target"].isin(list(number))]
    shape = (len(system.brokers), routes.class_count)
    at = sums_at(reached, "events", shape, reached["target"].map(number), reached["kind"])
    lost = cells[cells["statistic"] == LOST]
    missing = _missing(lost, system, routes, failed)
    seen = {each.name for each in system.publishers if each.at in set(reached["target"])}
    locatable = lost[lost["target"].notna() | lost["publisher"].isin(seen)]
    every = _missing(locatable, _unfailing(system), routes, frozenset())
    hidden = np.zeros_like(at)
    if nameless:
        homes = {each.name: number[each.at] for each in system.publishers}
        home_of = homes.get(str(cells["publisher"].iloc[0]), 0)
        hidden = _unrecognised(at, routes, home_of, nameless)
        every = np.maximum(every - hidden, 0.0)
    records = np.array([each.name in recording for each in system.brokers])
    there = np.where(records[:, None], at + hidden, np.nan)
    return Reach(
        lost_before_home=(missing @ filters)[home, chosen],
        reached_home=(at @ filters)[home, chosen],
        not_at_home=(every @ filters)[home, chosen],
        at_home=(there @ filters)[home, chosen],
    )


def _unrecognised(at: Reals, routes: Routes, home: int, nameless: float) -> Reals:
    """Estimate the events that were at a broker and are not known to have been, [broker, class].

    Those with a nameless hop there, unless a broker behind it has seen them: with n nameless and a
    share f seen behind, r of all a(1 − n(1 − f)) are recognised.
    """
    behind = np.zeros_like(at)  # of what is at a broker: the most that one behind it has seen
    for index, tree in enumerate(routes.trees):
        mine = routes.tree_of_class == index
        for broker, into in topology.walk(tree, routes.arcs, home):
            if into >= 0:
                before = routes.arcs[into].source
                behind[before, mine] = np.maximum(behind[before, mine], at[broker, mine])
    hidden = nameless * (1.0 - np.minimum(behind / np.maximum(at, 1.0), 1.0))
    return at * hidden / (1.0 - hidden)


def _unfailing(system: System) -> System:
    """Replace brokers by ones of which nothing is known but their names: none is excused."""
    brokers = tuple(Broker(name=each.name) for each in system.brokers)
    return replace(system, brokers=brokers, expired="at subscriber")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLosses:
    """How many events each subscriber's own link should have carried, and how many it has."""

    tried: Reals
    arrived: Reals
    is_known: NDArray[np.bool_]

    @property
    def lost(self) -> Reals:
        """How many it has lost."""
        return self.tried - self.arrived


def own_losses(
    system: System,
    tallies: Mapping[str, Tally],
    reach: Mapping[str, Reach],
    is_churner: NDArray[np.bool_],
) -> OwnLosses:
    """Count what is missing at subscribers of what came to their home brokers.

    A broker that forgot who is behind a neighbour that is down sends nothing there, so that what
    did not come to a home broker was not always lost on a link. Where a home broker records no
    hops, all has come there that was not lost before.
    Nobody can tell of those who subscribe and leave, which loses what is on its way, of those with
    a limited buffer, of groups, whose queues may drop events, nor where brokers drop what has
    expired.
    """
    size = len(system.subscribers)
    tried, arrived = np.zeros(size), np.zeros(size)
    for name, tally in tallies.items():
        wanted = tally.wanted.sum(axis=1)
        if name in reach:
            mine = reach[name]
            came = np.where(np.isnan(mine.at_home), wanted - mine.not_at_home, mine.at_home)
            tried += np.clip(came, 0.0, wanted)
        else:
            tried += wanted
        arrived += tally.delivered.sum(axis=1)
    unlimited = [
        each.consumers is None and (each.connectivity is None or each.connectivity.buffer is None)
        for each in system.subscribers
    ]
    known = np.array(unlimited, dtype=np.bool_) & ~is_churner & (arrived > 0)
    known &= system.expired == "at subscriber"
    return OwnLosses(tried=np.maximum(tried, arrived), arrived=arrived, is_known=known)


def certain_clients(system: System, tables: Collection[str], failed: frozenset[str]) -> list[bool]:
    """Test whose own link is the only way to lose what its home broker has.

    Not of groups, of those who come and go, or whose home failed.
    """
    away = _OF_CLIENTS in tables
    return [
        not away and each.connectivity is None and each.consumers is None and each.at not in failed
        for each in system.subscribers
    ]


def _cells(sightings: pd.DataFrame, contents: Contents, routes: Routes) -> pd.DataFrame:
    """Select the cells of contents that the system knows, with the class of each as ``kind``."""
    position = {canonical_event(event): i for i, event in enumerate(routes.events)}
    place = [position.get(canonical_event(event), -1) for event in contents.events]
    known = sightings[sightings["content"].isin(list(contents.number_of))]
    numbers = known["content"].map(dict(contents.number_of))
    at = np.array(place, dtype=np.int64)[numbers.to_numpy(dtype=np.int64)]
    return known[at >= 0].assign(kind=routes.class_of_event[at[at >= 0]])


def _missing(lost: pd.DataFrame, system: System, routes: Routes, failed: frozenset[str]) -> Reals:
    """Count events of each class that were lost on their way to each broker, [broker, class].

    In a tree, what is lost on an arc is lost to everything behind it. Seen from any root, that is a
    subtree where the arc leads away from the root, and all but a subtree where it leads towards it:
    so one walk from the root adds up all arcs.
    """
    missing = np.zeros((len(system.brokers), routes.class_count))
    missing += _lost_by_publishers(lost, system, routes, failed)
    between = {(arc.source, arc.target): i for i, arc in enumerate(routes.arcs)}
    number = system.broker_index
    on_arc = np.zeros((len(routes.arcs), routes.class_count))
    for row in lost[lost["target"].notna()].itertuples():
        direction = str(row.source), str(row.target)
        arc = between.get((number.get(direction[0], -1), number.get(direction[1], -1)))
        if arc is None or not failed.isdisjoint({"--".join(direction), "--".join(direction[::-1])}):
            continue
        if not _may_drop(system.brokers[routes.arcs[arc].target], system, failed):
            on_arc[arc, int(row.kind)] += row.events
    for index, tree in enumerate(routes.trees):
        here = on_arc * (routes.tree_of_class == index)
        everywhere, behind = np.zeros(routes.class_count), np.zeros_like(missing)
        for broker, into in topology.walk(tree, routes.arcs, 0):
            if into >= 0:
                everywhere += here[into ^ 1]
                behind[broker] = behind[routes.arcs[into].source] + here[into] - here[into ^ 1]
        missing += everywhere + behind
    return missing


def _lost_by_publishers(
    lost: pd.DataFrame, system: System, routes: Routes, failed: frozenset[str]
) -> Reals:
    """Count events of each class that no broker has seen: their publishers' links lost them."""
    brokers = {broker.name: broker for broker in system.brokers}
    certain = [p.name for p in system.publishers if not _may_drop(brokers[p.at], system, failed)]
    nowhere = lost[lost["target"].isna() & lost["publisher"].isin(certain)]
    return sums_at(nowhere, "events", (routes.class_count,), nowhere["kind"])


def _may_drop(broker: Broker, system: System, failed: frozenset[str]) -> bool:
    """Test whether a broker may have dropped what was sent to it and was not seen there."""
    limited = any(station.buffer is not None for station in broker.stations)
    fails = broker.failure is not None or broker.name in failed
    return limited or fails or system.expired != "at subscriber"
