"""Walks over a tree, and shortest paths through what is up."""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_tables import (
    arc_from_at,
    arcs_first_at,
    channel_at,
    component_at,
    first_arc_at,
    full_interest_at,
    out_arc_at,
    out_first_at,
    paths_epoch_at,
    search_at,
    step_at,
)


@primitive
def walk_tree(world: Any, start: int, tree: int, broker: int, into: int, content_class: int) -> int:
    """Note, from ``start`` on, the steps of a walk from a broker away from an arc; their end.

    Only to brokers that want the class or have others behind them that do; −1 is any class.
    """
    note_step(world, start, broker, into, -1)
    count = start + 1
    position = start
    while position < count:
        step = step_at(world, position)
        at = tree * world.broker_count + step.broker
        for place in range(out_first_at(world, at).value, out_first_at(world, at + 1).value):
            arc = out_arc_at(world, place).value
            if arc == step.into ^ 1:
                continue
            if (
                content_class < 0
                or full_interest_at(world, arc * world.class_count + content_class).value > 0
            ):
                note_step(world, count, channel_at(world, arc).target, arc, position)
                count += 1
        position += 1
    return count


@inlined
def note_step(world: Any, position: int, broker: int, into: int, before: int) -> None:
    """Write down a step of a walk."""
    step = step_at(world, position)
    step.broker = broker
    step.into = into
    step.before = before
    step.covered = 0


@inlined
def link_of(world: Any, arc: int) -> int:
    """The component that the link of an arc is."""
    return world.broker_count + arc // 2


@inlined
def looks_open(world: Any, arc: int) -> bool:
    """Whether a link and the broker at its end are up, as far as has been noticed."""
    if component_at(world, link_of(world, arc)).seen == 0:
        return False
    return component_at(world, channel_at(world, arc).target).seen != 0


@inlined
def is_open(world: Any, arc: int) -> bool:
    """Whether a link and both its ends are up and known to be."""
    if component_at(world, link_of(world, arc)).down_by > 0 or not looks_open(world, arc):
        return False
    if component_at(world, channel_at(world, arc).target).down_by > 0:
        return False
    return component_at(world, channel_at(world, arc ^ 1).target).down_by == 0


@primitive
def first_arc(world: Any, broker: int, goal: int) -> int:
    """The first arc of the path of fewest hops through what looks up; −1: there is none.

    Ties are broken by the names of the neighbours. All paths from a broker are found at once, and
    again when a change has been noticed.
    """
    if paths_epoch_at(world, broker).value != world.epoch:
        find_paths(world, broker)
    return first_arc_at(world, broker * world.broker_count + goal).value


@merged
def find_paths(world: Any, broker: int) -> None:
    """Find the shortest paths from a broker to all others, breadth first."""
    paths_epoch_at(world, broker).value = world.epoch
    first = broker * world.broker_count
    for goal in range(world.broker_count):
        first_arc_at(world, first + goal).value = -1
    search_at(world, 0).value = broker
    count = 1
    position = 0
    while position < count:
        here = search_at(world, position).value
        for place in range(arcs_first_at(world, here).value, arcs_first_at(world, here + 1).value):
            arc = arc_from_at(world, place).value
            target = channel_at(world, arc).target
            onward = first_arc_at(world, first + target)
            if target != broker and onward.value < 0 and looks_open(world, arc):
                onward.value = arc if here == broker else first_arc_at(world, first + here).value
                search_at(world, count).value = target
                count += 1
        position += 1
