"""Partitions of consumer groups that are offered more than their members can handle.

Their queues grow without end, so that in the long run none of their events is in time; those of
the other members are neither the better nor the worse for it. So what comes to such a partition is
given up at once, and all else has a steady state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tidings.model.causes import MEMBER_OF
from tidings.model.loads import FULL_LOAD
from tidings.model.remarks import Remark
from tidings.model.system import System
from tidings.simulation.groups import Group
from tidings.simulation.network import CompiledSystem, compile_system


def compile_steady(system: System) -> CompiledSystem:
    """Turn a system into arrays in which such partitions are given up.

    Not where events may be dropped, or publishers are blocked: the load is not known then.
    """
    compiled = compile_system(system)
    if compiled.drops_events or compiled.senders.pausing:
        return compiled
    queues = compiled.tables["group_queues"].copy()
    for number, group in enumerate(compiled.groups):
        if group.consumers.partitions is None:
            continue
        hot = group.hot_members(float(compiled.group_arrivals[number]))
        queues["given_up"][_queues(compiled, number)] = np.isin(group.owners, hot)
    return replace(compiled, tables={**compiled.tables, "group_queues": queues})


def given_up(compiled: CompiledSystem, number: int) -> bool:
    """Whether some partitions of a group are given up."""
    queues = compiled.tables["group_queues"][_queues(compiled, number)]
    return bool(queues["given_up"].any())


def may_take_over(compiled: CompiledSystem, number: int) -> bool:
    """Whether members of a group handle given-up partitions while others are away.

    One that takes over what has waited for long, or that has such a partition itself, is late with
    all it has.
    """
    return given_up(compiled, number) and any(
        each.failure is not None for each in compiled.groups[number].members
    )


def _queues(compiled: CompiledSystem, number: int) -> slice:
    group = compiled.tables["groups"][number]
    return slice(int(group["first_queue"]), int(group["last_queue"]))


def hot_partitions(compiled: CompiledSystem) -> Iterator[Remark]:
    """Say of each member whose partitions are given up how much it is offered, and what helps."""
    for number, group in enumerate(compiled.groups):
        if given_up(compiled, number):
            rate = float(compiled.group_arrivals[number])
            loads = group.loads(rate)
            for member in group.hot_members(rate):
                yield _remark(group, member, float(loads[member]))


def _remark(group: Group, member: int, load: float) -> Remark:
    partitions = group.consumers.partitions
    assert partitions is not None
    share = float(group.offered_shares[member])
    own = [s for s, o in zip(partitions.used_shares, group.owners, strict=True) if o == member]
    do = "give some of its partitions to other members"
    if max(own) * load >= FULL_LOAD * share:  # one alone is too much
        do = "spread the keys over more partitions"
    name = group.members[member].name
    return Remark(
        kind="overload",
        what="the partitions of this member are offered more than it can handle, so none of their "
        "events is in time in the long run, and the other members do not help",
        where=(f"{name}{MEMBER_OF}{group.subscriber.name}",),
        size=load,
        unit=f"times what it can handle, which costs {100 * share:.3g} % of the group's events",
        do=f"{do}, or make the member faster",
    )
