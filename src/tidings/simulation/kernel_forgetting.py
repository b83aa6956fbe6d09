"""Subscriptions that come and go at brokers that forget: what a crash takes, what a round brings.

A round of a home tells every broker that it reaches exactly who is there: also who has come or gone
without its having heard of it. Between rounds a broker hears of everybody one by one.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import merged, primitive
from tidings.simulation.kernel_deliveries import is_wanted_at
from tidings.simulation.kernel_layout import FROM_ARC, FROM_HERE
from tidings.simulation.kernel_spreading import expect
from tidings.simulation.kernel_tables import (
    arc_from_at,
    arcs_first_at,
    bundle_of_at,
    bundle_piece_of_at,
    bundle_pieces_first_at,
    channel_at,
    entry_at,
    known_at,
    piece_at,
    sent_at,
    sent_subject_at,
    step_at,
    switch_at,
)
from tidings.simulation.kernel_walks import walk_tree


@primitive
def tell_again(world: Any, bundle: int, step: Any, was_known: bool) -> None:
    """A broker is told by a round who of a bundle is there, as far as their home knows.

    A home that has forgotten its subscribers is told by those that are there.
    """
    first = bundle_pieces_first_at(world, bundle).value
    for position in range(first, bundle_pieces_first_at(world, bundle + 1).value):
        number = bundle_piece_of_at(world, position).value
        piece = piece_at(world, number)
        if step.broker != piece.home:
            bring(world, number, step)
        elif not was_known:
            is_there = 1
            if piece.churner >= 0:
                is_there = switch_at(world, world.first_churner + piece.churner).is_on
            at = number * world.broker_count + piece.home
            known_at(world, at).value = FROM_HERE if is_there else 0


@merged
def bring(world: Any, number: int, step: Any) -> None:
    """A broker is told over an arc whether a piece is there."""
    piece = piece_at(world, number)
    is_there = 1 if known_at(world, number * world.broker_count + piece.home).value > 0 else 0
    known = known_at(world, number * world.broker_count + step.broker)
    was_known = 1 if known.value > 0 else 0
    known.value = FROM_ARC + step.into if is_there else 0
    if was_known != is_there:
        expect(world, number, step.into ^ 1, is_there - was_known)
    sent = sent_at(world, number * world.arc_count + step.into)
    at = step.into * world.subject_count + piece.subject
    sent_subject_at(world, at).value += is_there - sent.value
    sent.value = is_there


@primitive
def forget_pieces(world: Any, broker: int) -> None:
    """A broker loses who it knows, and what of it it has sent where."""
    first, last = arcs_first_at(world, broker).value, arcs_first_at(world, broker + 1).value
    for number in range(world.pieces_length):
        known_at(world, number * world.broker_count + broker).value = 0
        for place in range(first, last):
            sent_at(world, number * world.arc_count + arc_from_at(world, place).value).value = 0
    for place in range(first, last):
        at = arc_from_at(world, place).value * world.subject_count
        for subject in range(world.subject_count):
            sent_subject_at(world, at + subject).value = 0


@primitive
def forget_bundle(world: Any, bundle: int, step: Any) -> None:
    """A broker has not heard of a home for too long, and forgets who is there.

    Also who came since the last round that reached it: when that was is known of the home only.
    """
    first = bundle_pieces_first_at(world, bundle).value
    for position in range(first, bundle_pieces_first_at(world, bundle + 1).value):
        number = bundle_piece_of_at(world, position).value
        known = known_at(world, number * world.broker_count + step.broker)
        if known.value > 0 and step.into >= 0:
            expect(world, number, step.into ^ 1, -1)
        known.value = 0


@primitive
def is_forgotten_behind(world: Any, publication: Any, arc: int) -> bool:
    """Whether a broker may lack subscriptions behind an arc: some home has not told it again."""
    if not world.forgetting:
        return False
    broker = channel_at(world, arc ^ 1).target
    start = world.broker_count  # the first half of the steps may be in use
    kind, tree = publication.content_class, publication.tree
    end = walk_tree(world, start, tree, channel_at(world, arc).target, arc, kind)
    for position in range(start, end):
        home = step_at(world, position).broker
        if is_wanted_at(world, home, kind):
            bundle = bundle_of_at(world, tree * world.broker_count + home).value
            if entry_at(world, bundle * world.broker_count + broker).value == 0:
                return True
    return False
