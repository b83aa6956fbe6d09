"""Forwarding where brokers and links fail: by the tree, round what is down, or into a buffer.

A *detour* takes the place of the end of a tree arc: a copy goes, hop by hop over the shortest path
that is known to be up at each moment, to the nearest broker behind a failure that can be reached,
and goes on from there along the tree. Subscribers at brokers in between get no copy by it.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_copies import count_loss_here, lose, new_copy, release
from tidings.simulation.kernel_deliveries import deliver, is_wanted_at
from tidings.simulation.kernel_layout import BESIDE, BY_NOT_RESTORED, BY_PATH_DOWN, KEPT, tables
from tidings.simulation.kernel_recovery import (
    hand_over,
    is_forgotten_behind,
    is_kept,
    keep,
    transmit,
)
from tidings.simulation.kernel_tapes import tape_hop, tape_send
from tidings.simulation.kernel_walks import first_arc, looks_open, walk_tree
from tidings.simulation.kernel_wanting import note_passage


@primitive
def leave_among_failures(world: Any, index: int) -> None:
    """A broker is done with a copy: it goes to the subscribers here and to the neighbours."""
    copy = tables.copies(world, index)
    label = tables.labels(world, index)
    into, first_send = copy.channel, world.taped_sends
    if copy.channel < world.arc_count and is_kept(world, index):
        world.acknowledgements += tables.publications(world, copy.publication).measured
    if label.via >= 0:
        if tables.channels(world, label.via).target != copy.place:
            pass_on(world, index)
            return
        copy.channel = label.via  # from here on it is as if it had come along the tree
        label.via = -1
    if world.churning:
        note_passage(world, index)
    publication = tables.publications(world, copy.publication)
    if is_wanted_at(world, copy.place, publication.content_class):
        serve_subscribers(world, index)
    at = publication.tree * world.broker_count + copy.place
    back = copy.channel ^ 1
    for position in range(tables.out_first(world, at).value, tables.out_first(world, at + 1).value):
        arc = tables.out_arcs(world, position).value
        wanted = arc * world.class_count + publication.content_class
        if arc != back and tables.full_interest(world, wanted).value > 0:
            forward(world, index, arc)
    if world.recording and publication.measured:
        tape_hop(world, copy, into, first_send)
    release(world, index)


@primitive
def knows(world: Any, broker: int, tree: int, home: int) -> bool:
    """Whether a broker knows the subscriptions of a home for a tree."""
    if not world.forgetting:
        return True
    bundle = tables.bundle_of(world, tree * world.broker_count + home).value
    return bundle >= 0 and tables.entries(world, bundle * world.broker_count + broker).value > 0


@merged
def serve_subscribers(world: Any, index: int) -> None:
    """Deliver an event at a broker, or keep it there until the subscriptions are back."""
    copy = tables.copies(world, index)
    tree = tables.publications(world, copy.publication).tree
    if knows(world, copy.place, tree, copy.place):
        hand_over(world, index)
    elif is_kept(world, index):
        kept = new_copy(world, copy.publication, copy.place, copy.channel)
        keep(world, world.arc_count + copy.place, kept)
    elif tables.labels(world, index).kind != BESIDE:
        measured = tables.publications(world, copy.publication).measured
        if world.churning and world.refresh == 0.0 and (measured or world.queueing):
            # No round brings subscriptions back, only whoever subscribes anew.
            deliver(world, copy, False, False)
        count_loss_here(world, copy.publication, copy.place, BY_NOT_RESTORED)


@merged
def forward(world: Any, index: int, arc: int) -> None:
    """Send an event on along an arc of its tree, or do about it what the scheme does."""
    copy = tables.copies(world, index)
    publication = tables.publications(world, copy.publication)
    wanted = tables.interest(world, arc * world.class_count + publication.content_class).value > 0
    if world.churning and not wanted and not is_forgotten_behind(world, publication, arc):
        return  # nobody is there now
    child = new_copy(world, copy.publication, tables.channels(world, arc).target, arc)
    kind = tables.labels(world, index).kind
    tables.labels(world, child).kind = kind
    if not wanted:
        if is_kept(world, index):
            note_send(world, copy, arc)
            keep(world, arc, child)
        else:
            lose(world, child, BY_NOT_RESTORED)
    elif (world.buffering or world.bypassing) and not looks_open(world, arc):
        if world.bypassing and kind != KEPT:
            bypass(world, index, arc)
        if is_kept(world, index):
            note_send(world, copy, arc)
            keep(world, arc, child)
        else:
            release(world, child)
    else:
        note_send(world, copy, arc)
        transmit(world, child)


@inlined
def note_send(world: Any, copy: Any, arc: int) -> None:
    """Record that an event is sent over an arc, now or when what is down is up again."""
    if world.recording and tables.publications(world, copy.publication).measured:
        tape_send(world, arc)


@merged
def bypass(world: Any, index: int, arc: int) -> None:
    """Send an event to the nearest brokers behind a failure that can be reached.

    All of them: a table says that an event is wanted behind an arc, not by whom. Where no copy is
    kept, those that cannot be reached lose it.
    """
    copy = tables.copies(world, index)
    publication = tables.publications(world, copy.publication)
    beyond = tables.channels(world, arc).target
    end = walk_tree(world, 0, publication.tree, beyond, arc, publication.content_class)
    for position in range(end):
        step = tables.walk(world, position)
        if step.before >= 0 and tables.walk(world, step.before).covered:
            step.covered = 1
            continue
        first_hop = first_arc(world, copy.place, step.broker)
        if first_hop >= 0:
            step.covered = 1
            child = new_copy(
                world, copy.publication, tables.channels(world, first_hop).target, first_hop
            )
            tables.labels(world, child).via = step.into
            if world.buffering:
                tables.labels(world, child).kind = BESIDE
            note_send(world, copy, first_hop)
            transmit(world, child)
        elif not world.buffering:
            count_loss_here(world, copy.publication, step.broker, BY_PATH_DOWN)


@merged
def pass_on(world: Any, index: int) -> None:
    """A copy on a detour goes one hop further, by the path that looks shortest now."""
    copy = tables.copies(world, index)
    goal = tables.channels(world, tables.labels(world, index).via).target
    arc = first_arc(world, copy.place, goal)
    if arc < 0:
        lose(world, index, BY_PATH_DOWN)
        return
    if world.recording and tables.publications(world, copy.publication).measured:
        first_send = world.taped_sends
        tape_send(world, arc)
        tape_hop(world, copy, copy.channel, first_send)
    copy.place = tables.channels(world, arc).target
    copy.channel = arc
    transmit(world, index)
