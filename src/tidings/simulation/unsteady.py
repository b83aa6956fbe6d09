"""Consumer groups of which runs cannot tell what they get in the long run, and why.

A group that never leaves a backlog again (it is *metastable*) does well in a run until there is
one, so that runs of another length, or with other numbers, say something else. What is certain is
that it gets no more than they show. How much it handles then is simulated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tidings.errors import UnstableError
from tidings.model.content import ContentRow, ContentTable
from tidings.model.filters import EVERYTHING
from tidings.model.laws import Exponential
from tidings.model.loads import FULL_LOAD
from tidings.model.remarks import UNSTEADY, Remark
from tidings.model.system import Broker, Publisher, Subscriber, System
from tidings.simulation.groups import Group
from tidings.simulation.hot_partitions import may_take_over
from tidings.simulation.network import CompiledSystem, compile_system
from tidings.simulation.world import Window, make_world, run_world

if TYPE_CHECKING:
    from tidings.simulation.totals import Totals

_OFFERED = 3.0  # times what the members can handle: there is always work
_EVENTS, _EVENTS_OF_MEMBER = 20_000, 100  # at least ...
_MOST_EVENTS = 200_000  # ... and at most
_COPIES = 10  # of each event at once, on average; of more, there are ever more


def unsteady_units(totals: Totals) -> dict[int, Remark]:
    """Find the units whose shares may be anything below those that were seen, and say so of each.

    A metastable group in which nothing was handled twice has shown no sign of it: what is said of
    it holds until something else brings about a backlog.
    """
    compiled, found = totals.compiled, {}
    metastable = dict(metastable_groups(compiled))
    for number, group in enumerate(compiled.groups):
        name = group.subscriber.name
        for unit in np.flatnonzero(totals.units.receiver == group.receiver).tolist():
            if number in metastable and totals.redelivered[unit, 0] > 0:
                found[unit] = _of_redelivery(name, metastable[number])
            elif may_take_over(compiled, number):
                found[unit] = _of_crashes(name)
    return found


def _of_redelivery(name: str, handled_per_s: float) -> Remark:
    return Remark(
        kind=UNSTEADY,
        what="redeliveries use up the spare capacity of this consumer group whenever it has a "
        "backlog, which then never goes away: sooner or later nothing is in time",
        where=(name,),
        size=handled_per_s,
        unit="events/s is all it can handle then, fewer than come",
        do="use a longer 'ack_wait' or a smaller 'prefetch'",
    )


def _of_crashes(name: str) -> Remark:
    return Remark(
        kind=UNSTEADY,
        what="members of this consumer group that take over an overloaded partition from one that "
        "has crashed may be late with all they have, which is not simulated",
        where=(name,),
        do="see to the overloaded partition first",
    )


def metastable_groups(compiled: CompiledSystem) -> Iterator[tuple[int, float]]:
    """Give the groups that a backlog never leaves again, and what they handle then, per second.

    They could handle all that they are offered, but not while they always have work. What comes to
    full buffers or expires ends a backlog, and those that are offered too much anyway never had
    another state.
    """
    if compiled.drops_events or compiled.senders.pausing:
        return
    for number, group in enumerate(compiled.groups):
        rate = float(compiled.group_arrivals[number])
        if group.consumers.acknowledges and rate < FULL_LOAD * group.capacity_per_s:
            handled_per_s = saturated_rate(group)
            if rate >= handled_per_s:
                yield number, handled_per_s


def saturated_rate(group: Group, seed: int = 0) -> float:
    """Simulate how many events per second a group is done with that always has work.

    Where members hold whatever there is, all of that is handed out again and again: as often as is
    allowed, so that this part of the capacity is left; none where there is no limit.
    """
    compiled = compile_system(_alone(group))
    events = min(max(_EVENTS, _EVENTS_OF_MEMBER * len(group.members)), _MOST_EVENTS)

    def until_s(events: int) -> float:
        """Give the seconds after which nothing is to be done any more."""
        end_s = events / float(compiled.publisher_rates.sum())
        window = Window(warmup_s=0.0, end_s=end_s, max_copies=_COPIES * events)
        world = make_world(compiled, window, seed, 0)
        run_world(world, compiled, window)
        return float(world.record[0].now)

    # What comes after the last event, such as the end of its ack wait, both runs have.
    try:
        return events / (until_s(2 * events) - until_s(events))
    except UnstableError:
        deliveries = group.consumers.deliveries
        return group.capacity_per_s / deliveries if deliveries else 0.0


def _alone(group: Group) -> System:
    """Make the group alone at a broker that takes no time, offered more than it can handle."""
    members = tuple(replace(each, failure=None) for each in group.consumers.members)
    subscriber = Subscriber(
        name=group.subscriber.name,
        at="hub",
        wants=EVERYTHING,
        processing=group.subscriber.processing,
        consumers=replace(group.consumers, members=members),
    )
    publisher = Publisher(
        name="p",
        at="hub",
        every=Exponential(mean_s=1.0 / (_OFFERED * group.capacity_per_s)),
        content=ContentTable(table=(ContentRow(probability=1.0, event={}),)),
    )
    return System(
        version=1,
        brokers=(Broker(name="hub"),),
        publishers=(publisher,),
        subscribers=(subscriber,),
    )
