"""All ways to one broker at once: what they have in common is worked out once.

The ways from every broker to a home are a tree with the home at its root. Whatever multiplies or
adds up along a way (masses, moments, transforms) is carried outwards from the home, one distance
after the other, so that a broker costs one step and not a path.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tidings.model import topology
from tidings.theory.stage_columns import (
    StageColumns,
    columns_in_series,
    joined_columns,
    stage_columns,
)
from tidings.theory.stages import Complexes, Delay, Stage
from tidings.theory.ways import Ways

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Brokers at one distance from home, the next broker of each, and the arc that leads there."""

    brokers: Ints
    onwards: Ints
    arcs: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """Where some ways begin: a broker, and the link of a peer to it."""

    brokers: Ints
    links: list[Stage]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """The ways to one home broker in one tree."""

    home: int
    steps: tuple[Step, ...]
    ways: StageColumns  # by broker, from its own queue to that of the home, both included

    def products(self, chosen: Ints, at_broker: Complexes, over_arc: Complexes) -> Complexes:
        """Products along the ways of some brokers, [broker, node], from the factors of all.

        What no chosen way passes is not looked at.
        """
        needed = np.zeros(len(at_broker), dtype=np.bool_)
        needed[chosen] = True
        for step in reversed(self.steps):
            needed[step.onwards[needed[step.brokers]]] = True
        found: Complexes = np.empty(at_broker.shape, dtype=np.complex128)
        found[self.home] = at_broker[self.home]
        for step in self.steps:
            mine = np.flatnonzero(needed[step.brokers])
            brokers = step.brokers[mine]
            values = at_broker[brokers]
            values *= over_arc[step.arcs[mine]]
            values *= found[step.onwards[mine]]
            found[brokers] = values
        return found[chosen]


@dataclass(frozen=True, kw_only=True)
class Bundles:
    """The bundles of a system, and its stages in columns."""

    ways: Ways
    _known: dict[tuple[int, int], Bundle] = field(default_factory=dict)

    @cached_property
    def at_broker(self) -> StageColumns:
        """The stages of brokers."""
        return stage_columns(self.ways.at_broker)

    @cached_property
    def over_arc(self) -> StageColumns:
        """The stages of arcs."""
        return stage_columns(self.ways.over_arc)

    def bundle(self, home: int, tree: int) -> Bundle:
        """All ways to a broker."""
        key = (home, tree)
        if key not in self._known:
            steps = _steps(self.ways, home, tree)
            self._known[key] = Bundle(home=home, steps=steps, ways=self._ways(home, steps))
        return self._known[key]

    def _ways(self, home: int, steps: tuple[Step, ...]) -> StageColumns:
        """Columns by broker; made distance by distance, then put in the order of brokers."""
        inner = self.at_broker.take(np.array([home]))
        parts, position = [inner], np.zeros(len(self.ways.at_broker), dtype=np.int64)
        places = [np.array([home])]
        for step in steps:
            onwards = inner.take(position[step.onwards])
            over = columns_in_series(self.over_arc.take(step.arcs), onwards)
            inner = columns_in_series(self.at_broker.take(step.brokers), over)
            position[step.brokers] = np.arange(step.brokers.size)
            parts.append(inner)
            places.append(step.brokers)
        return joined_columns(parts).take(np.argsort(np.concatenate(places)))


def _steps(ways: Ways, home: int, tree: int) -> tuple[Step, ...]:
    arcs = ways.routes.arcs
    distance = {home: 0}
    found: list[list[tuple[int, int, int]]] = []
    for broker, into in topology.walk(ways.routes.trees[tree], arcs, home):
        if into < 0:
            continue
        onwards = arcs[into].source
        distance[broker] = distance[onwards] + 1
        if distance[broker] > len(found):
            found.append([])
        # The walk leads away from home, the event comes the other way.
        found[-1].append((broker, onwards, into ^ 1))
    tables = [np.array(each, dtype=np.int64).T for each in found]
    return tuple(Step(brokers=one[0], onwards=one[1], arcs=one[2]) for one in tables)


@dataclass(frozen=True, kw_only=True)
class NodeTransforms:
    """The transforms of ways at some nodes, of which every stage is evaluated once."""

    bundles: Bundles
    z: Complexes
    _over_channel: dict[Stage, Complexes] = field(default_factory=dict)

    @cached_property
    def _at_broker(self) -> Complexes:
        return _transforms(self.bundles.ways.at_broker, self.z)

    @cached_property
    def _over_arc(self) -> Complexes:
        return _transforms(self.bundles.ways.over_arc, self.z)

    def of_ways(self, bundle: Bundle, entries: Entries, exit_: Stage) -> Complexes:
        """[way, node]: the link of the publisher, brokers and arcs, that of the subscriber."""
        brokers, position = np.unique(entries.brokers, return_inverse=True)
        products = bundle.products(brokers, self._at_broker, self._over_arc)
        found: Complexes = products[position]
        if exit_.delays:
            found *= self._channel(exit_)
        for index, stage in enumerate(entries.links):
            if stage.delays:
                found[index] *= self._channel(stage)
        return found

    def _channel(self, stage: Stage) -> Complexes:
        if stage not in self._over_channel:
            self._over_channel[stage] = _transforms((stage,), self.z)[0]
        return self._over_channel[stage]


def _transforms(stages: tuple[Stage, ...], z: Complexes) -> Complexes:
    """The transform of the random part of each stage, [stage, node]; equal stages once."""
    known: dict[Delay, Complexes] = {}
    found: Complexes = np.ones((len(stages), z.size), dtype=np.complex128)
    for index, stage in enumerate(stages):
        for delay in stage.delays:
            if delay not in known:
                known[delay] = delay.transform(z)
            found[index] *= known[delay]
    return found
