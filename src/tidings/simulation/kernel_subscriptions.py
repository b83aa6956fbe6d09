"""Subscriptions as soft state: brokers forget them in a crash, homes send them again.

What a broker knows of a bundle (all subscriptions of one home for one tree) is an *entry*: when
it last heard of it. A round of a home reaches, at once, every broker that is joined to it by what
is up: along the tree, or along any path where events may bypass failures as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import set_key
from tidings.kernels.compile import merged, primitive
from tidings.kernels.streams import uniform
from tidings.simulation.kernel_buffers import hand_over_kept, send_kept
from tidings.simulation.kernel_forgetting import forget_bundle, forget_pieces, tell_again
from tidings.simulation.kernel_tables import (
    arc_from_at,
    arcs_first_at,
    bundle_at,
    bundle_class_at,
    component_at,
    entry_at,
    home_at,
    interest_at,
    nodes_of,
    step_at,
    streams_of,
)
from tidings.simulation.kernel_walks import first_arc, link_of, walk_tree


@merged
def schedule_rounds(world: Any) -> None:
    """Give every home its first round, at a random moment of its own; brokers know everybody."""
    for number in range(world.homes_length):
        home = home_at(world, number)
        home.phase = world.refresh * uniform(streams_of(world), home.stream)
        home.rounds = 1
        set_key(nodes_of(world), world.first_round + number, home.phase)
        if not np.isinf(world.timeout):
            set_key(nodes_of(world), world.first_end + number, end_of_round(world, home))


@primitive
def end_of_round(world: Any, home: Any) -> float:
    """When entries of a home's next round to time out are forgotten; the first was before 0."""
    return max(home.phase + (home.ended - 1) * world.refresh + world.timeout, 0.0)


@merged
def refresh(world: Any, number: int) -> None:
    """The subscribers of a home send their subscriptions again, if the home is up."""
    home = home_at(world, number)
    due = home.phase + home.rounds * world.refresh
    home.rounds += 1
    set_key(nodes_of(world), world.first_round + number, due)
    if component_at(world, home.broker).down_by > 0:
        return
    for position in range(home.first_bundle, home.last_bundle):
        spread(world, position, home.rounds)
    if world.buffering:
        hand_over_kept(world, home.broker)


@merged
def spread(world: Any, bundle: int, stamp: int) -> None:
    """A bundle of subscriptions reaches all brokers that it can reach."""
    record = bundle_at(world, bundle)
    count = walk_tree(world, 0, record.tree, record.home, -1, -1)
    counts = 1 if world.warmup <= world.now <= world.end else 0
    for position in range(count):
        step = step_at(world, position)
        step.covered = 1 if position == 0 else is_reached(world, record.home, step)
        if step.covered:
            world.refreshes += counts if position > 0 else 0
            entry = entry_at(world, bundle * world.broker_count + step.broker)
            known = entry.value > 0
            entry.value = stamp
            if world.churning:
                tell_again(world, bundle, step, known)
            elif not known and position > 0:
                change_interest(world, bundle, step.into ^ 1, 1)
            if not known and position > 0 and world.buffering:
                send_kept(world, step.into ^ 1)


@merged
def is_reached(world: Any, home: int, step: Any) -> int:
    """Whether subscriptions get from a home to a broker: by the tree, or by any path."""
    if component_at(world, step.broker).down_by > 0:
        return 0
    if world.bypassing:
        return 1 if first_arc(world, home, step.broker) >= 0 else 0
    if component_at(world, link_of(world, step.into)).down_by > 0:
        return 0
    return step_at(world, step.before).covered


@primitive
def change_interest(world: Any, bundle: int, arc: int, sign: int) -> None:
    """Add the subscriptions of a bundle to what is wanted behind an arc, or take them away."""
    record = bundle_at(world, bundle)
    for position in range(record.first_class, record.last_class):
        wanted = bundle_class_at(world, position)
        at = arc * world.class_count + wanted.content_class
        interest_at(world, at).value += sign * wanted.count


@merged
def time_out(world: Any, number: int) -> None:
    """Brokers forget the subscriptions of a home that they have not heard of for too long."""
    home = home_at(world, number)
    home.ended += 1
    set_key(nodes_of(world), world.first_end + number, end_of_round(world, home))
    for bundle in range(home.first_bundle, home.last_bundle):
        count = walk_tree(world, 0, bundle_at(world, bundle).tree, home.broker, -1, -1)
        for position in range(count):
            step = step_at(world, position)
            entry = entry_at(world, bundle * world.broker_count + step.broker)
            if 0 < entry.value <= home.ended:
                entry.value = 0
                if world.churning:
                    forget_bundle(world, bundle, step)
                elif position > 0:
                    change_interest(world, bundle, step.into ^ 1, -1)


@primitive
def forget_subscriptions(world: Any, broker: int) -> None:
    """A broker loses its routing table."""
    for bundle in range(world.bundles_length):
        entry_at(world, bundle * world.broker_count + broker).value = 0
    for place in range(arcs_first_at(world, broker).value, arcs_first_at(world, broker + 1).value):
        first = arc_from_at(world, place).value * world.class_count
        for content_class in range(world.class_count):
            interest_at(world, first + content_class).value = 0
    if world.churning:
        forget_pieces(world, broker)
