"""Subscriptions on their way: brokers hear of them hop by hop, and pass on what is not covered.

A broker sends a subscription over a link unless it has sent one there whose filter contains it.
When one that it has sent ends, it first sends what that one alone had covered, the widest first,
and then takes it back. Messages of one way keep their order and never queue. What meets a broker or
link that is down waits until that is up; where brokers forget what they knew in a crash, it is lost
instead, and made up for by the next round. A subscriber tells its broker while it is connected. An
event is matched against what a broker knows at that moment: the interest behind each arc.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.calendar import pop
from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_copies import at_this_time, draw_time, launch
from tidings.simulation.kernel_layout import FROM_ARC, FROM_HERE, arrays, tables
from tidings.simulation.kernel_tapes import tape_learnt
from tidings.simulation.kernel_walks import first_arc, link_of

# Of a message that does not tell how fast a new subscription spreads: since when it is there.
UNCOVERED = -1.0


@merged
def fill_tables(world: Any) -> None:
    """Let brokers know of everybody who is there when the run begins, one after the other."""
    world.starting = 1
    for number in range(world.pieces_length):
        churner = tables.pieces(world, number).churner
        if churner < 0 or tables.switches(world, world.first_churner + churner).is_on:
            post(world, number, -1, 1, world.now)
            while world.in_flight > 0:
                index = -1 - tables.flight(world, 0).cargo
                pop(arrays.flight(world), world.in_flight)
                world.in_flight -= 1
                hear(world, index)
    world.starting = 0


@merged
def announce(world: Any, number: int, is_on: int) -> None:
    """A churner tells its home broker that it has come, or that it goes."""
    churner = tables.churners(world, number)
    for piece in range(churner.first_piece, churner.last_piece):
        post(world, piece, -1, is_on, world.now)


@primitive
def post(world: Any, piece: int, arc: int, is_on: int, since: float) -> None:
    """Send a message on its way; the loop has made sure that there is room."""
    index = world.free_message
    message = tables.messages(world, index)
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
    launch(world, due, -1 - index)


@merged
def arrival(world: Any, piece: int, arc: int) -> float:
    """When a message that is sent now is heard: not before those sent before it."""
    if arc >= 0:
        channel = tables.channels(world, arc)
        drawn = draw_time(world, channel.delay, tables.message_streams(world, arc).value)
        delay = at_this_time(world, channel, drawn)
        before = tables.latest(world, arc).value
    else:
        churner = tables.churners(world, tables.pieces(world, piece).churner)
        delay = draw_time(world, churner.delay, churner.stream)
        before = churner.latest
    due = max(world.now + delay, before)
    if arc >= 0:
        tables.latest(world, arc).value = due
    else:
        tables.churners(world, tables.pieces(world, piece).churner).latest = due
    return due


@primitive
def hear(world: Any, index: int) -> None:
    """A message arrives at a broker."""
    message = tables.messages(world, index)
    piece, arc, is_on, since = message.piece, message.arc, message.is_on, message.since
    lost = False
    if not world.starting:
        if arc < 0 and is_offline(world, piece):
            hold(world, index)
            return
        lost = world.failing > 0 and not gets_through(world, piece, arc)
        if lost and not world.forgetting:
            hold(world, index)
            return
    message.next = world.free_message
    world.free_message = index
    world.free_messages += 1
    if lost:
        return
    broker = tables.channels(world, arc).target if arc >= 0 else tables.pieces(world, piece).home
    known = tables.known(world, piece * world.broker_count + broker)
    was_known = known.value > 0
    known.value = 0
    if is_on:
        known.value = FROM_ARC + arc if arc >= 0 else FROM_HERE
        if world.recording and not world.starting and since >= 0.0:
            tape_learnt(world, piece, broker, since)
    if arc >= 0 and was_known != (is_on > 0):  # a round may have told it before
        expect(world, piece, arc ^ 1, 1 if is_on else -1)
    at = tables.pieces(world, piece).tree * world.broker_count + broker
    for position in range(tables.out_first(world, at).value, tables.out_first(world, at + 1).value):
        onwards = tables.out_arcs(world, position).value
        if arc >= 0 and onwards == arc ^ 1:
            continue
        if is_on:
            if not is_covered(world, onwards, tables.pieces(world, piece).subject):
                pass_on(world, piece, onwards, since)
            elif is_repeated(world, piece, onwards):
                post(world, piece, onwards, 1, since)
        else:
            take_back(world, piece, onwards, broker)


@inlined
def is_repeated(world: Any, piece: int, arc: int) -> bool:
    """Whether a subscription made anew goes where it went before: what is there may be forgotten.

    Only where no rounds do that.
    """
    if not world.forgetting or world.refresh > 0.0:
        return False
    return tables.sent(world, piece * world.arc_count + arc).value > 0


@inlined
def is_offline(world: Any, piece: int) -> bool:
    """Whether the subscriber of a piece has to wait until it is connected again."""
    receiver = tables.churners(world, tables.pieces(world, piece).churner).receiver
    if receiver < 0:
        return False
    if tables.channels(world, tables.receivers(world, receiver).channel).is_down:
        return True
    if tables.receivers(world, receiver).waits_at < 0:
        return False
    place = tables.places(world, tables.receivers(world, receiver).waits_at)
    return tables.stations(world, place.first_station).is_open == 0


@primitive
def gets_through(world: Any, piece: int, arc: int) -> bool:
    """Whether a message gets over an arc, or from its subscriber home, as things are now."""
    if arc < 0:
        return tables.components(world, tables.pieces(world, piece).home).down_by == 0
    target = tables.channels(world, arc).target
    if tables.components(world, target).down_by > 0:
        return False
    if world.bypassing:
        return first_arc(world, tables.channels(world, arc ^ 1).target, target) >= 0
    return tables.components(world, link_of(world, arc)).down_by == 0


@inlined
def hold(world: Any, index: int) -> None:
    """Let a message wait, behind all others."""
    tables.messages(world, index).next = -1
    if world.held_head < 0:
        world.held_head = index
    else:
        tables.messages(world, world.held_tail).next = index
    world.held_tail = index


@primitive
def let_go(world: Any) -> None:
    """Something is up or connected again: all messages that wait try once more, in their order."""
    index = world.held_head
    world.held_head = -1
    while index >= 0:
        launch(world, world.now, -1 - index)
        index = tables.messages(world, index).next


@primitive
def expect(world: Any, number: int, arc: int, change: int) -> None:
    """What is wanted behind an arc, as far as its broker knows, grows or shrinks by a piece."""
    piece = tables.pieces(world, number)
    for position in range(piece.first_class, piece.last_class):
        content_class = tables.piece_classes(world, position).value
        tables.interest(world, arc * world.class_count + content_class).value += change


@primitive
def is_covered(world: Any, arc: int, subject: int) -> bool:
    """Whether something was sent over an arc that contains all of a subject."""
    first, last = (
        tables.wider_first(world, subject).value,
        tables.wider_first(world, subject + 1).value,
    )
    for position in range(first, last):
        wider = tables.wider_of(world, position).value
        if tables.sent_subjects(world, arc * world.subject_count + wider).value > 0:
            return True
    return False


@primitive
def pass_on(world: Any, number: int, arc: int, since: float) -> None:
    """Send a piece over an arc."""
    tables.sent(world, number * world.arc_count + arc).value = 1
    at = arc * world.subject_count + tables.pieces(world, number).subject
    tables.sent_subjects(world, at).value += 1
    post(world, number, arc, 1, since)


@merged
def take_back(world: Any, number: int, arc: int, broker: int) -> None:
    """A piece has ended: where it was sent, first send what it alone had covered there."""
    sent = tables.sent(world, number * world.arc_count + arc)
    if not sent.value:
        return
    sent.value = 0
    subject = tables.pieces(world, number).subject
    tables.sent_subjects(world, arc * world.subject_count + subject).value -= 1
    first = tables.narrower_first(world, subject).value
    for position in range(first, tables.narrower_first(world, subject + 1).value):
        narrower = tables.narrower_of(world, position).value
        if not is_covered(world, arc, narrower):
            uncovered = find_known(world, narrower, arc, broker)
            if uncovered >= 0:
                pass_on(world, uncovered, arc, UNCOVERED)
    post(world, number, arc, 0, UNCOVERED)


@merged
def find_known(world: Any, subject: int, arc: int, broker: int) -> int:
    """A piece of a subject that a broker knows, and not from the other end of an arc; or −1."""
    first = tables.pieces_first(world, subject).value
    for position in range(first, tables.pieces_first(world, subject + 1).value):
        piece = tables.pieces_of(world, position).value
        known = tables.known(world, piece * world.broker_count + broker).value
        if known == FROM_HERE or (known >= FROM_ARC and known - FROM_ARC != arc ^ 1):
            return piece
    return -1


@primitive
def is_known_at_home(world: Any, publication: int, number: int) -> bool:
    """Whether a churner's home broker knows what it wants of the tree of an event."""
    churner = tables.churners(world, number)
    tree = tables.publications(world, publication).tree
    for piece in range(churner.first_piece, churner.last_piece):
        if tables.pieces(world, piece).tree == tree:
            return tables.known(world, piece * world.broker_count + churner.home).value > 0
    return False
