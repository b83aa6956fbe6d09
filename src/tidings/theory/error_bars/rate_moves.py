"""What moving parameters by their standard errors makes of rates and loads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tidings.model import topology
from tidings.model.arrays import Floats, Ints
from tidings.model.loads import FULL_LOAD
from tidings.model.record_tables import names
from tidings.model.system import System
from tidings.model.uncertainty import Uncertain, changed, with_values
from tidings.theory.peers.churn import present_share
from tidings.theory.queues.flows import offered_to_arcs
from tidings.theory.repairs.components import acknowledged

if TYPE_CHECKING:
    from tidings.theory.network.network import Network


@dataclass(frozen=True, kw_only=True)
class RateMoves:
    """One move for each parameter, by a standard error."""

    network: Network
    parameters: Sequence[Uncertain]

    @cached_property
    def systems(self) -> list[System]:
        """[parameter]: the system with that parameter moved, unless it is one of subscribers."""
        system = self.network.system
        return [
            system if one.section == "subscribers" else with_values(system, {one: one.moved})
            for one in self.parameters
        ]

    @cached_property
    def arcs(self) -> list[tuple[topology.Arc, ...]]:
        """[parameter]: the arcs of its system, as routes have them."""
        routes = self.network.routes
        return [
            acknowledged(system, replace(routes, arcs=topology.arcs(system))).arcs
            for system in self.systems
        ]

    @cached_property
    def of_sources(self) -> Floats:
        """[source, parameter]: by how much what it brings changes, in events per second."""
        network = self.network
        publisher_of, brought = self._brought
        entering = network.rates.entering.sum(axis=1)
        by_publisher = np.zeros((len(network.routes.arcs), entering.size))
        np.add.at(by_publisher.T, publisher_of, brought.T)
        sent = self.of_published + self._of_entries
        over_arcs = by_publisher @ sent + self._behind_arcs(publisher_of, brought)
        over_arcs += self._of_presence
        return np.vstack([entering[:, None] * sent, over_arcs])

    @cached_property
    def _brought(self) -> tuple[Ints, Floats]:
        """[column]: a publisher, and [arc, column] what it brings of one class of content."""
        rates, routes = self.network.rates, self.network.routes
        publishers, classes = np.nonzero(rates.entering)
        apart = replace(
            routes,
            tree_of_class=routes.tree_of_class[classes],
            interest=routes.interest[:, classes],
            wants=routes.wants[classes],
        )
        at_broker = np.zeros((len(rates.services), classes.size))
        homes = routes.home_of_publisher[publishers]
        at_broker[homes, np.arange(classes.size)] = rates.entering[publishers, classes]
        open_to = self._reliability[:, None] * rates.open_to[:, classes]
        return publishers, offered_to_arcs(apart, at_broker, rates.passes) * open_to

    @cached_property
    def _reliability(self) -> Floats:
        """[arc]: the share of events that it does not lose by chance."""
        return np.array([arc.channel.reliability for arc in self.network.routes.arcs])

    @cached_property
    def _of_presence(self) -> Floats:
        """[arc, parameter]: what subscribers draw over arcs who are there more often, events/s."""
        network, rates = self.network, self.network.rates
        changes = np.zeros((len(network.routes.arcs), len(self.parameters)))
        of_subscribers = [
            (column, one)
            for column, one in enumerate(self.parameters)
            if one.section == "subscribers"
        ]
        if not of_subscribers:
            return changes
        at_broker = np.zeros((len(rates.services), rates.entering.shape[1]))
        np.add.at(at_broker, network.routes.home_of_publisher, rates.entering)
        offered = offered_to_arcs(network.routes, at_broker, rates.passes)
        offered *= self._reliability[:, None]
        place_of = {name: at for at, name in enumerate(names(network.system.subscribers))}
        for column, one in of_subscribers:
            place = place_of[one.owner]
            subscriber = network.system.subscribers[place]
            moved = changed(subscriber, one.field, one.moved)
            shares = [present_share(each.stays, each.away) for each in (subscriber, moved)]
            if max(shares) < 1.0:
                more = subscriber.count * (math.log1p(-shares[0]) - math.log1p(-shares[1]))
                routes = network.routes
                home, wanted = routes.home_of_subscriber[place], routes.filter_of_subscriber[place]
                opened = network.churn.opened_by(int(home), int(wanted))
                changes[:, column] = more * (offered * opened).sum(axis=1)
        return changes

    def _behind_arcs(self, publisher_of: Ints, brought: Floats) -> Floats:
        """Compute what less reliable arcs take from those behind them, [arc, parameter]."""
        routes = self.network.routes
        changes = np.zeros((len(routes.arcs), len(self.parameters)))
        if not np.any(self._of_arcs):
            return changes
        _, classes = np.nonzero(self.network.rates.entering)
        starts = np.stack([routes.home_of_publisher[publisher_of], routes.tree_of_class[classes]])
        for start, tree in np.unique(starts, axis=1).T.tolist():
            columns = (starts[0] == start) & (starts[1] == tree)
            lost = np.zeros((len(self.network.rates.services), len(self.parameters)))
            for broker, into in topology.walk(routes.trees[tree], routes.arcs, start):
                if into >= 0:
                    lost[broker] = lost[routes.arcs[into].source] + self._of_arcs[into]
                    changes[into] += brought[into, columns].sum() * lost[broker]
        return changes

    @cached_property
    def _of_arcs(self) -> Floats:
        """[arc, parameter]: relative changes of reliability."""
        before = self._reliability
        changes = np.zeros((before.size, len(self.parameters)))
        for column, one in enumerate(self.parameters):
            if one.section == "links" and one.field.endswith("reliability"):
                after = [arc.channel.reliability for arc in self.arcs[column]]
                changes[:, column] = np.array(after) / before - 1.0
        return changes

    @cached_property
    def loads(self) -> Floats:
        """[broker, parameter]."""
        rates = self.network.rates
        arrivals = np.repeat(rates.arrivals[:, None], len(self.parameters), axis=1)
        np.add.at(arrivals, rates.into, self.of_sources)
        busy_s = np.zeros_like(arrivals)
        for broker, laws in enumerate(rates.services):
            means_s = [law.mean_s for law in laws[1:]]
            first_s = laws[0].mean_s * (1.0 + self.of_services[broker]) if laws else 0.0
            busy_s[broker] = np.maximum(first_s, max(means_s, default=0.0))
        return arrivals * busy_s

    @cached_property
    def overloading(self) -> list[tuple[int, int]]:
        """Pairs of a broker and a parameter that decides whether it is overloaded, up or down."""
        before = self.network.rates.loads[:, None]
        apart = np.abs(self.loads - before)
        pairs = np.argwhere(np.abs(before - FULL_LOAD) <= np.where(apart > 0.0, apart, -1.0))
        return [(int(broker), int(parameter)) for broker, parameter in pairs]

    @cached_property
    def of_published(self) -> Floats:
        """[publisher, parameter]: relative changes of what is published."""
        return self._relative("publishers", "rate")

    @cached_property
    def _of_entries(self) -> Floats:
        """[publisher, parameter]: relative changes of the reliability of publishers' links."""
        return self._relative("publishers", "link.reliability")

    @cached_property
    def of_services(self) -> Floats:
        """[broker, parameter]: relative changes of service times."""
        return self._relative("brokers", "service")

    def _relative(self, section: str, field: str) -> Floats:
        """Compute relative changes of one field of brokers or publishers, [owner, parameter]."""
        owners = names(getattr(self.network.system, section))
        changes = np.zeros((len(owners), len(self.parameters)))
        place_of = {name: place for place, name in enumerate(owners)}
        for column, one in enumerate(self.parameters):
            if (one.section, one.field) == (section, field):
                changes[place_of[one.owner], column] = one.moved / one.value - 1.0
        return changes

    @cached_property
    def of_arrivals(self) -> Floats:
        """[broker, parameter]: relative changes of arrivals, bursty streams counting for more.

        By what these do beyond their load where waits go like ρ/(1 − ρ) · (c² + c_s²).
        """
        rates, stages = self.network.rates, self.network.stages
        changes = np.zeros_like(self.of_services)
        for broker, arriving in enumerate(rates.arrivals):
            sources = np.flatnonzero((rates.into == broker) & (rates.source_rates > 0.0))
            if not sources.size:
                continue
            own = stages.own[sources]
            mean = float(own @ rates.source_rates[sources]) / float(arriving)
            served = max((law.scv for law in rates.services[broker]), default=0.0)
            spare = max(1.0 - float(rates.loads[broker]), 0.0)
            counts = 1.0 + spare * (own - mean) / max(mean + served, 0.1)
            changes[broker] = counts @ self.of_sources[sources] / arriving
        return changes
