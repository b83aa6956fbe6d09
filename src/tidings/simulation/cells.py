"""Where events of each kind come by: a *cell* is a row of contents at a broker it can reach.

For one row (a publisher's events of one class) every broker is reached by one path only, so what is
lost on the way to a broker, or there, is lost for exactly the subscribers at and behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tidings.model.arrays import Floats, Ints
from tidings.model.routes import Routes
from tidings.model.system import System

if TYPE_CHECKING:
    from tidings.simulation.stations import Stations

_MOST_ROUNDS, _SETTLED = 10_000, 1e-13


@dataclass(frozen=True, slots=True, kw_only=True)
class RouteCells:
    """All cells: a row's lie together, every broker after the one it is reached from."""

    row: Ints
    broker: Ints
    parent: Ints  # the cell the events come from; −1 at the home broker
    depth: Ints  # brokers passed before this one
    flow_per_s: Floats  # arrivals in the long run, unless brokers drop events

    def table(self, rows: int, brokers: int) -> NDArray[np.int32]:
        """Enumerate the cell of each [row, broker], −1 where there is none."""
        numbers = np.full((rows, brokers), -1, dtype=np.int32)
        numbers[self.row, self.broker] = np.arange(self.row.size)
        return numbers

    def summed_along_paths(self, values: Floats) -> Floats:
        """Add to each cell what all cells on the path to it have, [cell, …]."""
        total = values.copy()
        for depth in range(1, int(self.depth.max(initial=0)) + 1):
            here = np.flatnonzero(self.depth == depth)
            total[here] += total[self.parent[here]]
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """Long-run flows when a broker that is offered too much passes on what it can."""

    arrivals: Floats  # events per second, by broker
    loads: Floats  # work offered to each station, in units of what it can do


def carried(cells: RouteCells, brokers: int, stations: Stations) -> Carried:
    """Compute what arrives where, in events per second, and how loaded that makes each station.

    An overloaded broker passes on the same share of everything, as its busiest station
    allows; what is behind it gets less. Where overloaded brokers feed each other this is settled by
    iteration.
    """
    passes, owner, types = np.ones(brokers), stations.owner, len(stations.types)
    kind = cells.broker * types + stations.type_of_row[cells.row]
    for _ in range(_MOST_ROUNDS):
        flow = _flow(cells, passes)
        by_type = np.bincount(kind, weights=flow, minlength=brokers * types).reshape(-1, types)
        loads = (by_type[owner] * stations.work_s).sum(axis=1)
        wanted = np.ones(brokers)
        np.minimum.at(wanted, owner, 1.0 / np.maximum(loads, 1.0))
        if np.all(np.abs(wanted - passes) <= _SETTLED * passes):
            break
        # Brokers that feed each other would swing to and fro: go half of the way.
        passes = wanted if np.all(passes == 1.0) else np.sqrt(wanted * passes)
    return Carried(arrivals=by_type.sum(axis=1), loads=loads)


def _flow(cells: RouteCells, passes: Floats) -> Floats:
    """Compute events per second in each cell, where each broker passes on a share of what comes."""
    flow = cells.flow_per_s.copy()
    for depth in range(1, int(cells.depth.max(initial=0)) + 1):
        here = np.flatnonzero(cells.depth == depth)
        before = cells.parent[here]
        unhindered = cells.flow_per_s[before]
        kept = np.divide(flow[before], unhindered, out=np.zeros(here.size), where=unhindered > 0)
        flow[here] = cells.flow_per_s[here] * kept * passes[cells.broker[before]]
    return flow


def find_cells(routes: Routes, rates_per_s: Sequence[float], system: System) -> RouteCells:
    """Find the cells of a system, with their long-run flows, in events per second."""
    paths: dict[tuple[int, int], tuple[Ints, Ints, Ints, Floats]] = {}
    rows, brokers, parents, depths, flows = [], [], [], [], []
    count = 0
    for index, row in enumerate(routes.rows):
        home = int(routes.home_of_publisher[row.publisher])
        key = (home, row.content_class)
        if key not in paths:
            paths[key] = _reached_from(routes, *key)
        reached, before, depth, share = paths[key]
        entering = rates_per_s[row.publisher] * row.probability
        entering *= system.publishers[row.publisher].link.reliability
        rows.append(np.full(reached.size, index, dtype=np.int64))
        brokers.append(reached)
        parents.append(np.where(before >= 0, before + count, -1))
        depths.append(depth)
        flows.append(entering * share)
        count += reached.size
    return RouteCells(
        row=np.concatenate(rows),
        broker=np.concatenate(brokers),
        parent=np.concatenate(parents),
        depth=np.concatenate(depths),
        flow_per_s=np.concatenate(flows),
    )


def _reached_from(routes: Routes, home: int, content_class: int) -> tuple[Ints, Ints, Ints, Floats]:
    """List the brokers a class reaches from a home.

    Of each: which, from where, how deep, which share arrives.
    """
    outgoing = routes.trees[routes.tree_of_class[content_class]].outgoing
    interest = routes.interest[:, content_class]
    reached, parents, depths, shares, into = [home], [-1], [0], [1.0], [-1]
    position = 0
    while position < len(reached):
        for arc in outgoing[reached[position]]:
            if arc != into[position] ^ 1 and interest[arc] > 0:
                reached.append(routes.arcs[arc].target)
                parents.append(position)
                depths.append(depths[position] + 1)
                shares.append(shares[position] * routes.arcs[arc].channel.reliability)
                into.append(arc)
        position += 1
    whole = (np.array(each, dtype=np.int64) for each in (reached, parents, depths))
    reached_at, parent, depth = whole
    return reached_at, parent, depth, np.array(shares)
