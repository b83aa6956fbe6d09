"""What subscribers would get at other home brokers, to first order, without a prediction of each.

One network answers for all of them: everybody who may move is looked at at every broker, while
events flow as they do for those who are where they are, and so faintly over all other links that
they load nothing. What a move then changes of flows is known from rates alone. What that does to
shares follows from how these answer to the speed of each broker: of a queue with load ρ, more
arrivals do ρ times what slower services do (exactly so for the mean time in an M/M/1 queue).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from tidings.model.arrays import Floats, Ints
from tidings.model.progress import Progress
from tidings.model.routes import Routes, behind_arcs, route
from tidings.model.system import Subscriber, System
from tidings.theory.answer import network_of
from tidings.theory.network.arriving import on_time_and_mean
from tidings.theory.network.network import Network
from tidings.theory.queues.flows import Flows, flows
from tidings.theory.repairs.components import acknowledged

FAINT = 1e-9  # share of time in which events go where nobody wants them
_SLOWER = 0.02  # relative: by how much a broker is made slower to see what that does
_NEARLY_FULL = 0.98  # load from which on a broker is taken as if it had this one


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """A system with homes as they are, some of whose subscribers may move."""

    system: System
    movers: Sequence[int]  # subscribers by position
    progress: Progress = lambda _: None
    _known: dict[bytes, Floats] = field(default_factory=dict)  # arrivals, by what flows where

    @cached_property
    def network(self) -> Network:
        """The system as theory sees it, with everybody at home; refuses what theory has not."""
        return network_of(self.system)

    def shares_at(self, homes: Sequence[str]) -> Floats:
        """Compute on-time shares [subscriber] by theory, with the movers at these homes.

        Streams are as bursty as they are now; all else is theory's whole answer.
        """
        everyone = list(self.network.system.subscribers)
        for place, home in zip(self.movers, homes, strict=True):
            everyone[place] = replace(everyone[place], at=home)
        system = replace(self.network.system, subscribers=tuple(everyone))
        routes = self._moved_routes(homes)
        moved = Network(system=system, routes=routes, base=self.network, solved=self.network.solved)
        return on_time_and_mean(moved)[0]

    # ---- to first order --------------------------------------------------------------------------

    @cached_property
    def everywhere(self) -> Network:
        """The network that also has every mover at every broker, who brings no events there."""
        system, brokers = self.network.system, self.network.system.brokers
        copies: Iterable[Subscriber] = (
            replace(each, name=f"{each.name} at {broker.name}", at=broker.name, count=1)
            for each in (system.subscribers[place] for place in self.movers)
            for broker in brokers
        )
        full = replace(system, subscribers=(*system.subscribers, *copies))
        routes = acknowledged(full, route(full))
        opened = np.maximum(self.network.rates.open_to, FAINT)
        return Network(
            system=full,
            routes=routes,
            base=self.network,
            solved=self.network.solved,
            carried=flows(system, routes, opened),
        )

    @cached_property
    def shares(self) -> tuple[Floats, Floats]:
        """Shares as they are, [subscriber], and those of movers elsewhere, [mover, broker]."""
        return self._parted(on_time_and_mean(self.everywhere)[0])

    @cached_property
    def by_arrivals(self) -> tuple[Floats, Floats]:
        """The same of what shares gain by an event per second more at each broker, [broker, …]."""
        rates, now = self.everywhere.rates, np.concatenate([each.ravel() for each in self.shares])
        gains = np.zeros((len(rates.services), now.size))
        for broker, laws in enumerate(rates.services):
            self.progress("what more events would do")
            busiest_s = max((law.mean_s for law in laws), default=0.0)
            if busiest_s > 0.0:
                slow = self._slower(rates, broker)
                later = on_time_and_mean(replace(self.everywhere, carried=slow))[0]
                gains[broker] = busiest_s * np.nan_to_num(later - now) / _SLOWER
        parts = [self._parted(each) for each in gains]
        return np.array([each[0] for each in parts]), np.array([each[1] for each in parts])

    def _slower(self, rates: Flows, broker: int) -> Flows:
        slower = tuple(law.scaled(1.0 + _SLOWER) for law in rates.services[broker])
        services = (*rates.services[:broker], slower, *rates.services[broker + 1 :])
        return replace(rates, services=services)

    def _parted(self, numbers: Floats) -> tuple[Floats, Floats]:
        count = len(self.system.subscribers)
        return numbers[:count], numbers[count:].reshape(len(self.movers), -1)

    def shares_near(self, homes: Sequence[str]) -> Floats:
        """Estimate on-time shares [subscriber] to first order, with the movers at these homes."""
        more, (now, elsewhere) = self._more_arrivals(homes), self.shares
        of_all, of_movers = self.by_arrivals
        index = self.network.system.broker_index
        movers, places = np.arange(len(self.movers)), [index[home] for home in homes]
        shares: Floats = now + more @ of_all
        shares[list(self.movers)] = elsewhere[movers, places] + more @ of_movers[:, movers, places]
        return np.clip(shares, 0.0, 1.0)

    def _more_arrivals(self, homes: Sequence[str]) -> Floats:
        """Compute the additional events per second with the movers at these homes, [broker].

        Where waits grow faster than load, so many as would do as much if they did not.
        """
        rates, routes = self.network.rates, self._moved_routes(homes)
        key = np.packbits(routes.interest > 0).tobytes()
        if key not in self._known:
            then = flows(self.network.system, routes).arrivals
            busy_s = [max((law.mean_s for law in laws), default=0.0) for laws in rates.services]
            spare, spare_then = (
                1.0 - np.minimum(np.array(busy_s) * arrivals, _NEARLY_FULL)
                for arrivals in (rates.arrivals, then)
            )
            self._known[key] = (then - rates.arrivals) * spare / spare_then
        return self._known[key]

    def _moved_routes(self, homes: Sequence[str]) -> Routes:
        """Make the routes with the movers at these homes: other interests, the same contents."""
        routes, index = self.network.routes, self.network.system.broker_index
        home_of: Ints = routes.home_of_subscriber.copy()
        home_of[list(self.movers)] = [index[home] for home in homes]
        local = np.zeros((len(index), routes.class_count), dtype=np.int64)
        np.add.at(local, home_of, self._heads)
        interest = behind_arcs(routes.trees, routes.arcs, routes.tree_of_class, local)
        return replace(routes, home_of_subscriber=home_of, interest=interest)

    @cached_property
    def _heads(self) -> Ints:
        """[subscriber, class]: how many it stands for, where it wants the class."""
        routes = self.network.routes
        count = np.array([each.count for each in self.network.system.subscribers], dtype=np.int64)
        return count[:, None] * routes.wants[:, routes.filter_of_subscriber].T
