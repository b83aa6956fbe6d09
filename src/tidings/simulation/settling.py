r"""How long queues that are nearly fully loaded take to reach their steady state.

Runs start empty. Near full load the work that waits is a Brownian motion that is kept above zero:
with the load :math:`\rho`, events that keep a server busy for :math:`m` seconds on average and
squared coefficients of variation :math:`c_a^2` of what comes (its index of dispersion in the long
run) and :math:`c_s^2` of services, it forgets its start as :math:`e^{-t/\tau}`,
with the relaxation time

.. math:: \tau = \frac{2 \rho m (c_a^2 + c_s^2)}{(1 - \rho)^2}.

From empty, the mean of what waits is 0.28 % below its steady state after :math:`3\tau`. Pilot runs
do not see that: they look settled long before.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tidings.model.arrays import Floats, Ints
from tidings.model.behaviour import Failure
from tidings.model.laws import Law
from tidings.model.publishing import Publishing
from tidings.model.remarks import Remark
from tidings.model.system import Publisher
from tidings.simulation import kernel_layout as layout

if TYPE_CHECKING:
    from tidings.simulation.network import CompiledSystem
    from tidings.simulation.tally import Units
    from tidings.simulation.world import Window

ENOUGH = 3.0  # relaxation times to leave out
# Of a Brownian queue that starts empty: what is missing in all is worth so many relaxation times
# of its mean, and fades at least so fast (Abate and Whitt's first-moment function).
RELAXATIONS_MISSED, FADING = 0.25, 1.5
SHARE_OF_MISSING = 0.4  # a share moves by at most 1/e of a small change of an exponential's mean
LEAST_MISSING = 0.002  # less is far below any error that is asked for
MOST_UNEVEN = 1e3  # squared coefficient of variation; heavy tails have none


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowQueue:
    """A queue, and in what time it forgets that it started empty."""

    name: str  # what it is, and its name
    relaxation_s: float
    broker: int = -1  # whose it is; −1: a receiver's
    receiver: int = -2  # −2: nobody's alone
    is_wire: bool = False

    def missing(self, window: Window) -> float:
        """Estimate which part of the mean of what waits a run misses by its empty start."""
        if self.relaxation_s <= 0.0:  # nothing waits, or next to nothing
            return 0.0
        left_s = (
            RELAXATIONS_MISSED
            * self.relaxation_s
            * math.exp(-FADING * window.warmup_s / self.relaxation_s)
        )
        return min(left_s / window.length_s, 1.0)

    def remark(self) -> Remark:
        """Say that runs are too short for it."""
        return Remark(
            kind="slow to settle",
            what="nearly fully loaded, so slow to reach steady state: simulated runs start empty "
            "and end too early to show all that waits in the long run; errors are larger for it",
            where=(self.name,),
            size=self.relaxation_s,
            unit="s relaxation time",
            do="give it more capacity, or simulate for longer (more seconds)",
        )


def find_slow_queues(compiled: CompiledSystem) -> list[SlowQueue]:
    """Find in what time each queue forgets its start; none where full ones drop events."""
    if compiled.drops_events or compiled.senders.pausing:
        return []
    found = [*_of_brokers(compiled), *_of_groups(compiled), *_of_peers(compiled)]
    return [*found, *_of_wires(compiled)]


def _relaxation_of(load: float, work_s: float, uneven: float, more_s: float = 0.0) -> float:
    """Compute the time in which a queue forgets its start by a factor of e, in seconds.

    ``uneven`` are both squared coefficients of variation, ``more_s`` the further variance of the
    work per second.
    """
    if load >= 1.0:
        return 0.0  # others say that it is offered too much
    return float(2.0 * (load * work_s * uneven + more_s) / (1.0 - load) ** 2)


def _of_brokers(compiled: CompiledSystem) -> Iterator[SlowQueue]:
    stations, cells = compiled.stations, compiled.cells
    brokers, types = len(compiled.system.brokers), len(stations.types)
    if not len(stations.all):
        return
    kind = cells.broker * types + stations.type_of_row[cells.row]
    by_type = np.bincount(kind, weights=cells.flow_per_s, minlength=brokers * types)
    by_type = by_type.reshape(-1, types)
    coming = _mean_dispersion(compiled, np.arange(cells.row.size), cells.broker, brokers)
    for number, station in enumerate(stations.all):
        broker = int(stations.owner[number])
        rate, load = float(by_type[broker].sum()), float(compiled.carried.loads[number])
        if not (0.0 < load < 1.0):
            continue
        shares = by_type[broker] / rate
        mean_s, scv = _mixed(stations.laws[number], shares)
        failure = compiled.system.brokers[broker].failure
        there, more_s = _absences(failure)
        yield SlowQueue(
            name=f"broker '{compiled.system.brokers[broker].name}'",
            relaxation_s=_relaxation_of(
                load / there, mean_s / station.servers, coming[broker] + scv, more_s
            ),
            broker=broker,
        )


def _of_groups(compiled: CompiledSystem) -> Iterator[SlowQueue]:
    for number, group in enumerate(compiled.groups):
        rate = float(compiled.group_arrivals[number])
        able, shares = group.each_per_s, group.offered_shares
        failures = [each.failure for each in group.members]
        parts = [
            (share * rate / each, 1.0 / each, failure)
            for share, each, failure in zip(shares, able, failures, strict=True)
            if share > 0.0
        ]
        if not parts:
            parts = [(rate / group.capacity_per_s, 1.0 / group.capacity_per_s, failures[0])]
        scv = max(min(group.processing(each).scv, MOST_UNEVEN) for each in group.members)
        coming = _of_receiver(compiled, group.receiver)
        relaxation_s = max(
            _relaxation_of(load, work_s, coming + scv, _absences(failure)[1])
            for load, work_s, failure in parts
        )
        name = f"consumer group '{group.subscriber.name}'"
        yield SlowQueue(name=name, relaxation_s=relaxation_s, receiver=group.receiver)


def _of_peers(compiled: CompiledSystem) -> Iterator[SlowQueue]:
    for queue, rate in zip(compiled.peer_queues, compiled.peer_arrivals.tolist(), strict=True):
        at_publisher = queue.kind == layout.FROM_PUBLISHER
        if at_publisher:
            coming = dispersion(compiled.system.publishers[queue.owner])
            broker = int(compiled.routes.home_of_publisher[queue.owner])
        else:
            coming, broker = _of_receiver(compiled, queue.owner), -1
        more_s = 0.0
        if queue.periods is not None:
            more_s = _absences(Failure(up=queue.periods.on, down=queue.periods.off))[1]
        uneven = coming + min(queue.service.scv, MOST_UNEVEN)
        yield SlowQueue(
            name=queue.peer,
            relaxation_s=_relaxation_of(rate * queue.demand_s, queue.demand_s, uneven, more_s),
            broker=broker,
            receiver=-2 if at_publisher else queue.owner,
        )


def _of_wires(compiled: CompiledSystem) -> Iterator[SlowQueue]:
    if not compiled.wires.keys:
        return
    sizes, rates = compiled.wires.sizes_bytes, compiled.publisher_rates
    spread = float((sizes**2).mean() / sizes.mean() ** 2) - 1.0
    coming = [dispersion(each) for each in compiled.system.publishers]
    uneven = float(rates @ coming / rates.sum()) + spread
    for (what, name, _), load, rate in zip(compiled.wires.keys, *compiled.wire_loads, strict=True):
        if rate > 0.0:
            yield SlowQueue(
                name=f"{what} '{name}'",
                relaxation_s=_relaxation_of(load, load / rate, uneven),
                is_wire=True,
            )


def _mixed(laws: tuple[Law, ...], shares: Floats) -> tuple[float, float]:
    """Give the mean, in seconds, and the squared coefficient of variation of a mixture."""
    means = np.array([law.mean_s for law in laws])
    scvs = np.array([min(law.scv, MOST_UNEVEN) for law in laws])
    mean = float(shares @ means)
    return mean, float(shares @ (means**2 * (1.0 + scvs))) / mean**2 - 1.0


def _absences(failure: Failure | None) -> tuple[float, float]:
    r"""Give the share of time that a server is there, and what its absences add to the variance.

    Of alternating times up and down, with means u and d, the time up in a long time t has the
    variance :math:`(d^2 \sigma_u^2 + u^2 \sigma_d^2) t/(u + d)^3`; in units of what a server that
    is there on average does.
    """
    if failure is None:
        return 1.0, 0.0
    up_s, down_s = failure.up.mean_s, failure.down.mean_s
    both = min(failure.up.scv, MOST_UNEVEN) + min(failure.down.scv, MOST_UNEVEN)
    there = failure.availability
    return there, (up_s * down_s) ** 2 * both / (up_s + down_s) ** 3 / there**2


def dispersion(publisher: Publisher) -> float:
    """Compute a publisher's index of dispersion for counts in the long run.

    That of records, and of rates by time of day within a day, is not known here and taken as 1: of
    them whole days are left out before what is measured.
    """
    if publisher.every is not None:
        return min(publisher.every.scv, MOST_UNEVEN)
    return 1.0 if publisher.publishes is None else _of_publishing(publisher.publishes)


def _of_publishing(publishing: Publishing) -> float:
    if publishing.period_s is not None:
        return 0.0
    if publishing.bursts:
        per_s = publishing.rate_per_s
        extra = 0.0
        for each in publishing.bursts:
            mean_per_s = each.rate_per_s * each.share_on
            per_s += mean_per_s
            away = each.off_s / each.cycle_s
            extra += mean_per_s * 2.0 * each.rate_per_s * each.on_s * away**2
        return 1.0 + extra / per_s
    if publishing.every is None:
        return 1.0
    sizes = np.array([float(size) for size, _ in publishing.batch])
    shares = np.array([share for _, share in publishing.batch])
    mean = float(shares @ sizes)
    spread = float(shares @ sizes**2) / mean - mean
    return mean * min(publishing.every.scv, MOST_UNEVEN) + spread


def _mean_dispersion(compiled: CompiledSystem, cells: Ints, of_cell: Ints, count: int) -> Floats:
    """Average the dispersion of what comes in some cells, by events, for each of their numbers."""
    publishers = compiled.system.publishers
    streams, part = np.unique(
        of_cell * len(publishers) + compiled.publisher_of_cell[cells], return_inverse=True
    )
    flow = np.bincount(part, weights=compiled.cells.flow_per_s[cells])
    where, publisher = np.divmod(streams, len(publishers))
    # What is left of a stream of which each event comes with a chance of its own.
    kept = flow / compiled.publisher_rates[publisher]
    own = np.array([dispersion(publishers[each]) for each in publisher.tolist()])
    total = np.bincount(where, weights=flow * (1.0 + kept * (own - 1.0)), minlength=count)
    flows = np.bincount(where, weights=flow, minlength=count)
    return np.divide(total, flows, out=np.ones(count), where=flows > 0.0)


def _of_receiver(compiled: CompiledSystem, receiver: int) -> float:
    """Average the dispersion of what comes to a receiver, by events."""
    index = int(np.flatnonzero(compiled.receiver_of == receiver)[0])
    cells = compiled.wanted_cells(index)
    return float(_mean_dispersion(compiled, cells, np.zeros_like(cells), 1)[0])


def relaxation_s(compiled: CompiledSystem) -> float:
    """Compute in what time the slowest queue forgets its start by a factor of e, in seconds."""
    return max((each.relaxation_s for each in compiled.slow_queues), default=0.0)


def start_errors(
    compiled: CompiledSystem, units: Units, window: Window
) -> tuple[Floats, list[Remark]]:
    """Bound by how much the empty start moves the share of each unit; say where it matters."""
    slow = [each for each in compiled.slow_queues if each.missing(window) > LEAST_MISSING]
    errors = np.zeros(units.count)
    at_broker = np.zeros(len(compiled.system.brokers))
    for queue in slow:
        missing = queue.missing(window)
        if queue.broker >= 0:
            at_broker[queue.broker] = max(at_broker[queue.broker], missing)
        errors[(units.receiver == queue.receiver) | queue.is_wire] += missing
    on_path = compiled.cells.summed_along_paths(at_broker[compiled.cells.broker])
    of_broker = np.zeros(units.count)
    np.maximum.at(of_broker, units.pair_unit[units.entry_pair], on_path[units.entry_cell])
    errors = np.minimum(SHARE_OF_MISSING * (errors + of_broker), 1.0)
    return errors, [each.remark() for each in slow]
