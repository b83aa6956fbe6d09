"""Loads of brokers while something is down and events go round it.

Theory takes the loads of brokers as if nothing failed. Detours bring more to those that they cross:
what it knows of a broker that is overloaded meanwhile is worth nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tidings.model.arrays import Floats
from tidings.model.loads import FULL_LOAD
from tidings.theory.queues.flows import Flows
from tidings.theory.repairs.detours import Detouring, Down

_RARELY = 5e-4  # share of time up to which overload does not count


@dataclass(frozen=True, kw_only=True)
class Crowding:
    """Detours as loads: which brokers are how busy while one process is down."""

    rates: Flows
    detouring: Detouring

    def loads_at_worst(self) -> Floats:
        """Compute the highest load of each broker while any one process is down, [broker].

        Below full load where it is overloaded so rarely that nobody would see it, the time until
        its backlog is gone included.
        """
        usual = self.rates.loads
        spare = np.maximum(1.0 - usual, 0.01)
        highest, overloaded = usual.copy(), np.zeros(usual.size)
        for number, process in enumerate(self.detouring.components.processes):
            loads = self._loads(frozenset([number]))
            over = np.where(loads >= FULL_LOAD, 1.0 + np.maximum(loads - 1.0, 0.0) / spare, 0.0)
            overloaded += (1.0 - process.availability) * over
            highest = np.maximum(highest, loads)
        rarely = (overloaded <= _RARELY) & (usual < FULL_LOAD)
        return np.where(rarely, np.minimum(highest, np.nextafter(FULL_LOAD, 0.0)), highest)

    def _loads(self, down: Down) -> Floats:
        """Compute loads while these processes are down, in seconds of work per second, [broker]."""
        arrivals = self.rates.arrivals.copy()
        for arc, rate in enumerate(self.rates.source_rates[len(self.rates.entering) :]):
            source = self.rates.routes.arcs[arc].source
            if rate > 0.0 and self.detouring.is_up(source, down):
                for broker, more in self._round(source, arc, rate, down):
                    arrivals[broker] += more
        means_s = [max((law.mean_s for law in laws), default=0.0) for laws in self.rates.services]
        up = [self.detouring.is_up(broker, down) for broker in range(arrivals.size)]
        loads: Floats = arrivals * np.array(means_s) * np.array(up)
        return loads

    def _round(self, source: int, arc: int, rate: float, down: Down) -> Iterator[tuple[int, float]]:
        """Yield brokers that events cross on their way round an arc, and how many a second do."""
        target = self.rates.routes.arcs[arc].target
        if self.detouring.is_open(arc, target, down):
            return
        detour = self.detouring.shortest(source, target, down)
        if detour is not None:
            yield from ((broker, rate) for broker in detour.brokers[1:-1])
            return
        column = self.rates.handed[:, [len(self.rates.entering) + arc]].tocoo()
        for following, share in zip(column.coords[0], column.data, strict=True):
            beyond = self.rates.routes.arcs[following].target
            other = self.detouring.shortest(source, beyond, down)
            if other is None:
                yield from self._round(source, int(following), float(share), down)
            else:
                yield from ((broker, float(share)) for broker in other.brokers[1:-1])
