"""Subscriptions on their way: brokers hear of them hop by hop, and pass on what is not covered.

A broker sends a subscription over a link unless it has sent one there whose filter contains it.
When one that it has sent ends, it first sends what that one alone had covered, the widest first,
and then takes it back. Messages of one way keep their order, are never lost and never queue. An
event is matched against what a broker knows at that moment: the interest behind each arc.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.calendar import pop, push
from tidings.kernels.compile import merged, primitive
from tidings.kernels.sampling import draw
from tidings.simulation.kernel_layout import FROM_ARC, FROM_HERE
from tidings.simulation.kernel_tables import (
    channel_at,
    flight_of,
    guest_at,
    interest_at,
    known_at,
    landing_at,
    latest_at,
    law_at,
    law_params_of,
    message_at,
    message_stream_at,
    narrower_first_at,
    narrower_of_at,
    out_arc_at,
    out_first_at,
    piece_at,
    piece_class_at,
    piece_of_at,
    pieces_first_at,
    publication_at,
    sent_at,
    sent_subject_at,
    streams_of,
    switch_at,
    wider_first_at,
    wider_of_at,
)
from tidings.simulation.kernel_tapes import tape_learnt

# Of a message that does not tell how fast a new subscription spreads: since when it is there.
UNCOVERED = -1.0


@merged
def fill_tables(world: Any) -> None:
    """Let brokers know of everybody who is there when the run begins, one after the other."""
    world.starting = 1
    for number in range(world.pieces_length):
        guest = piece_at(world, number).guest
        if guest < 0 or switch_at(world, world.first_guest + guest).is_on:
            post(world, number, -1, 1, world.now)
            while world.in_flight > 0:
                index = -1 - landing_at(world, 0).cargo
                pop(flight_of(world), world.in_flight)
                world.in_flight -= 1
                hear(world, index)
    world.starting = 0


@merged
def announce(world: Any, number: int, is_on: int) -> None:
    """A guest tells its home broker that it has come, or that it goes."""
    guest = guest_at(world, number)
    for piece in range(guest.first_piece, guest.last_piece):
        post(world, piece, -1, is_on, world.now)


@primitive
def post(world: Any, piece: int, arc: int, is_on: int, since: float) -> None:
    """Send a message on its way; the loop has made sure that there is room."""
    index = world.free_message
    message = message_at(world, index)
    world.free_message = message.next
    world.free_messages -= 1
    message.piece = piece
    message.arc = arc
    message.is_on = is_on
    message.since = since
    due = world.now
    if not world.starting:
        due = arrival(world, piece, arc)
        if arc >= 0 and world.warmup <= world.now <= world.end:
            world.subscribes += is_on
            world.unsubscribes += 1 - is_on
    world.order += 1
    push(flight_of(world), world.in_flight, due, world.order, -1 - index)
    world.in_flight += 1


@merged
def arrival(world: Any, piece: int, arc: int) -> float:
    """When a message that is sent now is heard: not before those sent before it."""
    if arc >= 0:
        law = law_at(world, channel_at(world, arc).delay)
        stream = message_stream_at(world, arc).value
        before = latest_at(world, arc).value
    else:
        guest = guest_at(world, piece_at(world, piece).guest)
        law = law_at(world, guest.delay)
        stream = guest.stream
        before = guest.latest
    delay = draw(law.kind, law.offset, law_params_of(world), streams_of(world), stream)
    due = max(world.now + delay, before)
    if arc >= 0:
        latest_at(world, arc).value = due
    else:
        guest_at(world, piece_at(world, piece).guest).latest = due
    return due


@primitive
def hear(world: Any, index: int) -> None:
    """A message arrives at a broker."""
    message = message_at(world, index)
    piece, arc, is_on, since = message.piece, message.arc, message.is_on, message.since
    message.next = world.free_message
    world.free_message = index
    world.free_messages += 1
    broker = channel_at(world, arc).target if arc >= 0 else piece_at(world, piece).home
    known = known_at(world, piece * world.broker_count + broker)
    known.value = 0
    if is_on:
        known.value = FROM_ARC + arc if arc >= 0 else FROM_HERE
        if world.recording and not world.starting and since >= 0.0:
            tape_learnt(world, piece, broker, since)
    if arc >= 0:
        expect(world, piece, arc ^ 1, 1 if is_on else -1)
    at = piece_at(world, piece).tree * world.broker_count + broker
    for position in range(out_first_at(world, at).value, out_first_at(world, at + 1).value):
        onwards = out_arc_at(world, position).value
        if arc >= 0 and onwards == arc ^ 1:
            continue
        if is_on:
            if not is_covered(world, onwards, piece_at(world, piece).subject):
                pass_on(world, piece, onwards, since)
        else:
            take_back(world, piece, onwards, broker)


@merged
def expect(world: Any, number: int, arc: int, change: int) -> None:
    """What is wanted behind an arc, as far as its broker knows, grows or shrinks by a piece."""
    piece = piece_at(world, number)
    for position in range(piece.first_class, piece.last_class):
        content_class = piece_class_at(world, position).value
        interest_at(world, arc * world.class_count + content_class).value += change


@primitive
def is_covered(world: Any, arc: int, subject: int) -> bool:
    """Whether something was sent over an arc that contains all of a subject."""
    first, last = wider_first_at(world, subject).value, wider_first_at(world, subject + 1).value
    for position in range(first, last):
        wider = wider_of_at(world, position).value
        if sent_subject_at(world, arc * world.subject_count + wider).value > 0:
            return True
    return False


@primitive
def pass_on(world: Any, number: int, arc: int, since: float) -> None:
    """Send a piece over an arc."""
    sent_at(world, number * world.arc_count + arc).value = 1
    at = arc * world.subject_count + piece_at(world, number).subject
    sent_subject_at(world, at).value += 1
    post(world, number, arc, 1, since)


@merged
def take_back(world: Any, number: int, arc: int, broker: int) -> None:
    """A piece has ended: where it was sent, first send what it alone had covered there."""
    sent = sent_at(world, number * world.arc_count + arc)
    if not sent.value:
        return
    sent.value = 0
    subject = piece_at(world, number).subject
    sent_subject_at(world, arc * world.subject_count + subject).value -= 1
    first = narrower_first_at(world, subject).value
    for position in range(first, narrower_first_at(world, subject + 1).value):
        narrower = narrower_of_at(world, position).value
        if not is_covered(world, arc, narrower):
            uncovered = find_known(world, narrower, arc, broker)
            if uncovered >= 0:
                pass_on(world, uncovered, arc, UNCOVERED)
    post(world, number, arc, 0, UNCOVERED)


@merged
def find_known(world: Any, subject: int, arc: int, broker: int) -> int:
    """A piece of a subject that a broker knows, and not from the other end of an arc; or −1."""
    first = pieces_first_at(world, subject).value
    for position in range(first, pieces_first_at(world, subject + 1).value):
        piece = piece_of_at(world, position).value
        known = known_at(world, piece * world.broker_count + broker).value
        if known == FROM_HERE or (known >= FROM_ARC and known - FROM_ARC != arc ^ 1):
            return piece
    return -1


@primitive
def is_known_at_home(world: Any, publication: int, number: int) -> bool:
    """Whether a guest's home broker knows what it wants of the tree of an event."""
    guest = guest_at(world, number)
    tree = publication_at(world, publication).tree
    for piece in range(guest.first_piece, guest.last_piece):
        if piece_at(world, piece).tree == tree:
            return known_at(world, piece * world.broker_count + guest.home).value > 0
    return False
