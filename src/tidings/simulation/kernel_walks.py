"""Walks over a tree, and shortest paths through what is up."""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_layout import tables


@primitive
def walk_tree(world: Any, start: int, tree: int, broker: int, into: int, content_class: int) -> int:
    """Note, from ``start`` on, the steps of a walk from a broker away from an arc; their end.

    Only to brokers that want the class or have others behind them that do; −1 is any class.
    """
    note_step(world, start, broker, into, -1)
    count = start + 1
    position = start
    while position < count:
        step = tables.walk(world, position)
        at = tree * world.broker_count + step.broker
        for place in range(
            tables.out_first(world, at).value, tables.out_first(world, at + 1).value
        ):
            arc = tables.out_arcs(world, place).value
            if arc == step.into ^ 1:
                continue
            if (
                content_class < 0
                or tables.full_interest(world, arc * world.class_count + content_class).value > 0
            ):
                note_step(world, count, tables.channels(world, arc).target, arc, position)
                count += 1
        position += 1
    return count


@inlined
def note_step(world: Any, position: int, broker: int, into: int, before: int) -> None:
    """Write down a step of a walk."""
    step = tables.walk(world, position)
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
    if tables.components(world, link_of(world, arc)).seen == 0:
        return False
    return tables.components(world, tables.channels(world, arc).target).seen != 0


@inlined
def is_open(world: Any, arc: int) -> bool:
    """Whether a link and both its ends are up and known to be."""
    if tables.components(world, link_of(world, arc)).down_by > 0 or not looks_open(world, arc):
        return False
    if tables.components(world, tables.channels(world, arc).target).down_by > 0:
        return False
    return tables.components(world, tables.channels(world, arc ^ 1).target).down_by == 0


@primitive
def first_arc(world: Any, broker: int, goal: int) -> int:
    """The first arc of the path of fewest hops through what looks up; −1: there is none.

    Ties are broken by the names of the neighbours. All paths from a broker are found at once, and
    again when a change has been noticed.
    """
    if tables.paths_epoch(world, broker).value != world.epoch:
        find_paths(world, broker)
    return tables.first_arcs(world, broker * world.broker_count + goal).value


@merged
def find_paths(world: Any, broker: int) -> None:
    """Find the shortest paths from a broker to all others, breadth first."""
    tables.paths_epoch(world, broker).value = world.epoch
    first = broker * world.broker_count
    for goal in range(world.broker_count):
        tables.first_arcs(world, first + goal).value = -1
    tables.search(world, 0).value = broker
    count = 1
    position = 0
    while position < count:
        here = tables.search(world, position).value
        for place in range(
            tables.arcs_first(world, here).value, tables.arcs_first(world, here + 1).value
        ):
            arc = tables.arcs_from(world, place).value
            target = tables.channels(world, arc).target
            onward = tables.first_arcs(world, first + target)
            if target != broker and onward.value < 0 and looks_open(world, arc):
                onward.value = (
                    arc if here == broker else tables.first_arcs(world, first + here).value
                )
                tables.search(world, count).value = target
                count += 1
        position += 1
