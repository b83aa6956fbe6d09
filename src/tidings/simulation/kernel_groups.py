"""Consumer groups: events wait for members that share them, are acknowledged or delivered again.

An event at a group is a *message*: a copy that stays at the broker until nobody knows of it any
more. Every delivery of it is a copy of its own, which crosses the link, is handled by its member
and comes back as an acknowledgement. Its clock, another copy, comes due when that takes too long.
Deliveries that are fetched at a time are *mates*: they cross the link as one, and where they are
handled together they stay with the first of them until they are acknowledged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.compile import inlined, merged, primitive
from tidings.kernels.sampling import choose
from tidings.kernels.streams import uniform
from tidings.simulation.kernel_copies import (
    append,
    has_waited,
    is_expired,
    launch,
    loses,
    new_copy,
    pass_by,
    release,
    time_on_wire,
    travel,
    vacate,
)
from tidings.simulation.kernel_deliveries import receipt_of, take_in
from tidings.simulation.kernel_layout import (
    ACKNOWLEDGED,
    AT_MEMBER,
    AT_RANDOM,
    BY_DEAD_LETTER,
    BY_EXPIRY,
    BY_LINK,
    BY_OVERFLOW,
    BY_OVERLOAD,
    BY_PATH_DOWN,
    BY_REQUEST,
    FIRST_MOMENT,
    HANDLED,
    LEAST_BUSY,
    RECEIVED,
    TO_GROUP,
    UNDER_WAY,
    WAITS_AGAIN,
    arrays,
    tables,
)
from tidings.simulation.kernel_tapes import tape_delivery, tape_handling
from tidings.simulation.kernel_wanting import count_cause

AT_MOST_ONCE, ONCE = 0, 2  # qualities of service
ROOM = 4  # copies that must be free before one more event is handed out


@primitive
def visit_group(world: Any, index: int) -> bool:
    """Whether a copy has come to some place of a group, and was seen to there."""
    place = tables.places(world, tables.copies(world, index).place)
    delivery = tables.parcels(world, index)
    if (
        place.kind == AT_MEMBER
        and not delivery.cut_off
        and tables.members(world, delivery.member).is_on
    ):
        if is_needed(world, index):
            part_with_mates(world, index)
            return False  # it is there, and queues
        end_delivery(world, tables.receivers(world, place.owner).group, index)
    elif place.kind == TO_GROUP:
        offer(world, index, place.owner)
    elif place.kind == AT_MEMBER and delivery.cut_off:
        lose_delivery(world, index, BY_PATH_DOWN)
    elif place.kind == AT_MEMBER:
        drop_delivery(world, index)
    elif place.kind == HANDLED:
        be_handled(world, index)
    elif place.kind == ACKNOWLEDGED:
        acknowledge(world, index)
    else:
        be_overdue(world, index, place.owner)
    hand_out(world, tables.receivers(world, place.owner).group)
    return True


@inlined
def is_needed(world: Any, index: int) -> bool:
    """Whether a delivery that has come to its member is to be handled: once, if so agreed on."""
    delivery = tables.parcels(world, index)
    if tables.groups(world, tables.members(world, delivery.member).group).qos < ONCE:
        return True
    message = tables.parcels(world, delivery.message)
    if message.whereabouts == RECEIVED or message.settled:
        return False
    message.whereabouts = RECEIVED
    delivery.whereabouts = RECEIVED
    return True


# ---- a message, from its arrival to the moment that nobody knows of it --------------------------


@merged
def offer(world: Any, index: int, receiver: int) -> None:
    """An event comes to a group's queue: it is handed out, waits, or finds the queue full."""
    number = tables.receivers(world, receiver).group
    group = tables.groups(world, number)
    message = tables.parcels(world, index)
    message.tries = 0
    message.handled = 0
    message.settled = 0
    message.known_by = 1
    message.whereabouts = UNDER_WAY
    queues, streams = arrays.group_queues(world), arrays.streams(world)
    message.queue = choose(queues, group.first_queue, group.last_queue, streams, group.stream)
    queue = tables.group_queues(world, message.queue)
    if queue.given_up:
        settle(world, number, index, BY_OVERLOAD)
        return
    if group.waiting >= group.buffer:
        if not group.drops_old or queue.head < 0:
            settle(world, number, index, BY_OVERFLOW)
            return
        settle(world, number, take_first(world, group, queue), BY_OVERFLOW)
    tables.copies(world, index).arrived = world.now
    append(world, queue, index)
    queue.waiting += 1
    group.waiting += 1
    world.backlog += group.urgency


@inlined
def take_first(world: Any, group: Any, queue: Any) -> int:
    """Take the first message out of those that wait for their first delivery."""
    index = queue.head
    queue.head = tables.copies(world, index).next
    queue.waiting -= 1
    group.waiting -= 1
    world.backlog -= group.urgency
    if group.limit > 0:
        vacate(world, tables.copies(world, index).publication, group.limit - 1)
    return index


@primitive
def settle(world: Any, number: int, index: int, cause: int) -> None:
    """A message is done with: acknowledged (cause −1), or given up."""
    message = tables.parcels(world, index)
    message.settled = 1
    message.cause = cause
    if message.tries > 0:
        tables.groups(world, number).in_flight -= 1
    know_less(world, number, index)


@primitive
def know_less(world: Any, number: int, index: int) -> None:
    """One place fewer knows of a message; with the last it is forgotten, and counted if lost."""
    message = tables.parcels(world, index)
    message.known_by -= 1
    if message.known_by > 0:
        return
    publication = tables.publications(world, tables.copies(world, index).publication)
    if publication.measured and message.handled == 0:
        counts = receipt_of(world, publication, tables.groups(world, number).receiver)
        count_cause(counts, message.cause)
    release(world, index)


# ---- deliveries ----------------------------------------------------------------------------------


@primitive
def hand_out(world: Any, number: int) -> None:
    """Hand out what waits at a group, as long as there is a member with room for it."""
    group = tables.groups(world, number)
    if world.now < group.paused_until or group.stopped:
        return
    while world.free_copies > ROOM:
        chosen = -1
        to = -1
        oldest = np.inf
        for at in range(group.first_queue, group.last_queue):
            index = first_due(world, number, at)
            if index < 0 or tables.copies(world, index).arrived >= oldest:
                continue
            if group.linger > 0.0 and lingers(world, group, at):
                continue
            owner = tables.group_queues(world, at).owner
            if owner < 0:
                owner = choose_member(world, group)
            elif not has_room(world, group, owner):
                owner = -1
            if owner >= 0:
                chosen = at
                to = owner
                oldest = tables.copies(world, index).arrived
        if chosen < 0:
            break
        fetch(world, number, chosen, to)
    if group.linger > 0.0 and not group.is_timed:
        await_lingerers(world, number)


@merged
def fetch(world: Any, number: int, at: int, to: int) -> None:
    """Send a member the next message of a queue, and others as its mates if it fetches several."""
    group = tables.groups(world, number)
    first = deliver_to(world, number, take_due(world, group, at), to)
    last = first
    for _ in range(1, group.fetch):
        if first_due(world, number, at) < 0:
            break
        following = deliver_to(world, number, take_due(world, group, at), to)
        tables.parcels(world, last).mate = following
        last = following
    send(world, number, first)


@inlined
def due_at(world: Any, group: Any, queue: Any) -> float:
    """When the first message of a queue, which is not empty, has waited for others long enough."""
    return tables.copies(world, queue.head).arrived + group.linger


@inlined
def lingers(world: Any, group: Any, at: int) -> bool:
    """Whether the messages of a queue wait for others to be fetched with them."""
    queue = tables.group_queues(world, at)
    if queue.again_head >= 0 or queue.waiting >= group.fetch:
        return False
    return world.now < due_at(world, group, queue)


@inlined
def await_lingerers(world: Any, number: int) -> None:
    """Come back to a group when the next of its queues has lingered; it has one moment at most."""
    group = tables.groups(world, number)
    due = np.inf
    for at in range(group.first_queue, group.last_queue):
        queue = tables.group_queues(world, at)
        if queue.head >= 0 and due_at(world, group, queue) > world.now:
            due = min(due, due_at(world, group, queue))
    if due < np.inf:
        group.is_timed = 1
        cargo: Any = -1 - (FIRST_MOMENT + world.groups_length + number)
        launch(world, due, cargo)


@primitive
def first_due(world: Any, number: int, at: int) -> int:
    """Find the message that a queue would hand out next; −1: there is none.

    What was delivered before goes first, and needs no room among those in flight. What nobody waits
    for any more is taken out on the way.
    """
    group = tables.groups(world, number)
    queue = tables.group_queues(world, at)
    while queue.again_head >= 0:
        index = queue.again_head
        if not tables.parcels(world, index).settled and not (
            world.expiry == 2 and is_expired(world, index)
        ):
            return index
        queue.again_head = tables.copies(world, index).next
        world.backlog -= group.urgency
        if not tables.parcels(world, index).settled:
            settle(world, number, index, BY_EXPIRY)
        know_less(world, number, index)
    if group.in_flight >= group.most_in_flight:
        return -1
    while queue.head >= 0:
        index = queue.head
        if not (world.expiry == 2 and is_expired(world, index)):
            return index
        settle(world, number, take_first(world, group, queue), BY_EXPIRY)
    return -1


@inlined
def take_due(world: Any, group: Any, at: int) -> int:
    """Take the message out of a queue that :func:`first_due` found."""
    queue = tables.group_queues(world, at)
    if queue.again_head < 0:
        return take_first(world, group, queue)
    index = queue.again_head
    queue.again_head = tables.copies(world, index).next
    world.backlog -= group.urgency
    tables.parcels(world, index).known_by -= 1
    return index


@inlined
def has_room(world: Any, group: Any, index: int) -> bool:
    """Whether a member is there and may hold one event more; to fetch, it must hold none."""
    member = tables.members(world, index)
    return member.is_on and member.held < (1 if group.fetch > 0 else group.prefetch)


@merged
def choose_member(world: Any, group: Any) -> int:
    """Choose the member with room that gets the next event; −1: there is none."""
    count = group.last_member - group.first_member
    if group.choice == BY_REQUEST:
        return serve_request(world, group)
    if group.choice == AT_RANDOM:
        having = 0
        for index in range(group.first_member, group.last_member):
            having += has_room(world, group, index)
        if having == 0:
            return -1
        skip = int(having * uniform(arrays.streams(world), group.stream))
        for index in range(group.first_member, group.last_member):
            if has_room(world, group, index):
                if skip == 0:
                    return index
                skip -= 1
    chosen = -1
    for step in range(count):
        index = group.first_member + (group.turn + step) % count
        if not has_room(world, group, index):
            continue
        if group.choice != LEAST_BUSY:
            chosen = index
            break
        if chosen < 0 or tables.members(world, index).held < tables.members(world, chosen).held:
            chosen = index
    if chosen >= 0:
        group.turn = (chosen - group.first_member + 1) % count
    return chosen


@merged
def serve_request(world: Any, group: Any) -> int:
    """Give the next event to the request that waits longest: its member; −1: nobody asks."""
    if group.requests == 0:
        return -1
    request = take_request(world, group)
    index = request.member
    tables.members(world, index).asked -= 1
    if request.left > 1:
        put_request(world, group, index, request.left - 1)
    return index


@inlined
def take_request(world: Any, group: Any) -> Any:
    """Take the request that waits longest out of the ring."""
    at = group.first_request + group.request_head
    group.request_head = (group.request_head + 1) % group.request_room
    group.requests -= 1
    return tables.requests(world, at)


@inlined
def put_request(world: Any, group: Any, index: int, count: int) -> None:
    """Let a request of a member for so many events wait behind all others."""
    at = group.first_request + (group.request_head + group.requests) % group.request_room
    group.requests += 1
    request = tables.requests(world, at)
    request.member = index
    request.left = count


@primitive
def ask_for_more(world: Any, index: int) -> None:
    """Let a member ask for as many events as it may hold, if few are left of what it asked for."""
    member = tables.members(world, index)
    group = tables.groups(world, member.group)
    left = member.held + member.asked
    if group.choice == BY_REQUEST and member.is_on and left < group.refill:
        put_request(world, group, index, group.prefetch - left)
        member.asked += group.prefetch - left


@primitive
def drop_requests(world: Any, index: int) -> None:
    """Forget what a member has asked for that is no longer there."""
    member = tables.members(world, index)
    group = tables.groups(world, member.group)
    member.asked = 0
    for _ in range(group.requests):
        request = take_request(world, group)
        if request.member != index:
            put_request(world, group, request.member, request.left)


@primitive
def deliver_to(world: Any, number: int, index: int, to: int) -> int:
    """Make a delivery of a message to a member, and set its clock."""
    group = tables.groups(world, number)
    message = tables.parcels(world, index)
    if message.tries == 0:
        group.in_flight += 1
    message.tries += 1
    message.known_by += 1
    message.whereabouts = UNDER_WAY
    tables.members(world, to).held += 1
    publication = tables.copies(world, index).publication
    channel_number = tables.receivers(world, group.receiver).channel
    delivery = new_copy(world, publication, tables.members(world, to).place, channel_number)
    tables.parcels(world, delivery).message = index
    tables.parcels(world, delivery).member = to
    tables.parcels(world, delivery).cut_off = 0
    tables.parcels(world, delivery).mate = -1
    tables.parcels(world, delivery).whereabouts = UNDER_WAY
    if group.last_backoff > group.first_backoff:
        set_clock(world, group, index)
    return delivery


@merged
def send(world: Any, number: int, index: int) -> None:
    """Send a delivery and its mates to their member over the group's link, as one."""
    channel = tables.channels(
        world, tables.receivers(world, tables.groups(world, number).receiver).channel
    )
    lost = channel.is_down > 0 or loses(world, channel)
    each = tables.parcels(world, index).mate if not lost else index
    measured = 0
    while each >= 0:  # the first uses the wire when it travels, behind its mates
        publication = tables.copies(world, each).publication
        measured += tables.publications(world, publication).measured
        if channel.wire >= 0 and not channel.is_down:
            time_on_wire(world, publication, channel)
        each = tables.parcels(world, each).mate
    if lost:
        channel.sent += measured
        channel.lost += measured
        lose_delivery(world, index, BY_PATH_DOWN if channel.is_down else BY_LINK)
        return
    measured += tables.publications(world, tables.copies(world, index).publication).measured
    channel.sent += measured
    channel.delay_sum += measured * travel(world, index, channel)


@inlined
def part_with_mates(world: Any, index: int) -> None:
    """Let the mates of a delivery that has come to its member queue there too, one by one."""
    member = tables.members(world, tables.parcels(world, index).member)
    if tables.groups(world, member.group).together:
        return
    while tables.parcels(world, index).mate >= 0:
        following = tables.parcels(world, index).mate
        tables.parcels(world, index).mate = -1
        index = following
        pass_by(world, index)


@primitive
def lose_delivery(world: Any, index: int, cause: int) -> None:
    """A delivery and its mates do not reach their member: clocks tell, or the events are lost."""
    number = tables.members(world, tables.parcels(world, index).member).group
    group = tables.groups(world, number)
    silent = group.last_backoff == group.first_backoff
    while index >= 0:
        delivery = tables.parcels(world, index)
        following = delivery.mate
        if silent and not tables.parcels(world, delivery.message).settled:
            settle(world, number, delivery.message, cause)
        end_delivery(world, number, index)
        index = following


@inlined
def set_clock(world: Any, group: Any, index: int) -> None:
    """Set the moment at which a delivery is overdue that was not acknowledged."""
    message = tables.parcels(world, index)
    message.known_by += 1
    clock = new_copy(
        world, tables.copies(world, index).publication, group.overdue_at, group.ack_channel
    )
    tables.parcels(world, clock).message = index
    tables.parcels(world, clock).tries = message.tries
    tables.copies(world, clock).stamp = tables.channels(world, group.ack_channel).generation
    which = min(group.first_backoff + message.tries - 1, group.last_backoff - 1)
    due = world.now + tables.backoffs(world, which).value
    launch(world, due, clock)


@inlined
def end_delivery(world: Any, number: int, index: int) -> None:
    """A delivery is over, and its member may hold one event more."""
    delivery = tables.parcels(world, index)
    tables.members(world, delivery.member).held -= 1
    ask_for_more(world, delivery.member)
    message = delivery.message
    release(world, index)
    know_less(world, number, message)


@merged
def be_handled(world: Any, index: int) -> None:
    """A member has handled events, for the first time or again, and acknowledges them."""
    group = tables.groups(world, tables.members(world, tables.parcels(world, index).member).group)
    started = tables.copies(world, index).started
    each = index
    while each >= 0:
        delivery = tables.parcels(world, each)
        message = tables.parcels(world, delivery.message)
        message.handled += 1
        publication = tables.publications(world, tables.copies(world, each).publication)
        taped = world.taped_deliveries
        if publication.measured and message.handled == 1:
            waited = has_waited(world, delivery.message)
            take_in(world, publication, group.receiver, world.now, waited)
        elif publication.measured:
            handle_again(world, publication, group, message.handled)
        tape_handling(world, taped, started, delivery.member, message.queue)
        each = delivery.mate
    copy = tables.copies(world, index)
    copy.place = group.acknowledged_at
    copy.channel = group.ack_channel
    travel(world, index, tables.channels(world, group.ack_channel))


@inlined
def handle_again(world: Any, publication: Any, group: Any, times: int) -> None:
    """A measured event was handled more than once, which counts once."""
    if times == 2:
        receipt_of(world, publication, group.receiver).handled_again += 1
    if world.recording:
        tape_delivery(world, publication, -1 - group.receiver, world.now)


@merged
def acknowledge(world: Any, index: int) -> None:
    """An acknowledgement reaches the broker: what was handled is done with, the member is free."""
    number = tables.members(world, tables.parcels(world, index).member).group
    while index >= 0:
        delivery = tables.parcels(world, index)
        following = delivery.mate
        if not tables.parcels(world, delivery.message).settled:
            settle(world, number, delivery.message, -1)
        end_delivery(world, number, index)
        index = following


@merged
def be_overdue(world: Any, index: int, receiver: int) -> None:
    """A clock comes due: if its message was not acknowledged, it is delivered again or given up."""
    number = tables.receivers(world, receiver).group
    group = tables.groups(world, number)
    at = tables.parcels(world, index).message
    tries = tables.parcels(world, index).tries
    release(world, index)
    message = tables.parcels(world, at)
    is_known = message.whereabouts != UNDER_WAY or tries < message.tries  # where it is, or was
    if not message.settled and not (group.qos == ONCE and is_known):
        if message.tries < group.deliveries:
            wait_again(world, group, at)
        else:
            publication = tables.publications(world, tables.copies(world, at).publication)
            if publication.measured:
                receipt_of(world, publication, group.receiver).dead_letters += 1
            settle(world, number, at, BY_DEAD_LETTER)
    know_less(world, number, at)


@inlined
def wait_again(world: Any, group: Any, index: int) -> None:
    """Let a message wait for another delivery, before all that wait for their first."""
    message = tables.parcels(world, index)
    message.known_by += 1
    message.whereabouts = WAITS_AGAIN
    world.backlog += group.urgency
    queue = tables.group_queues(world, message.queue)
    tables.copies(world, index).next = -1
    if queue.again_head < 0:
        queue.again_head = index
    else:
        tables.copies(world, queue.again_tail).next = index
    queue.again_tail = index


@primitive
def drop_delivery(world: Any, index: int) -> None:
    """A member has crashed over deliveries: their clocks tell, or the broker sees at once.

    What is to be handled at most once is lost with it. What is to be handled once and was received
    has no clock any more, and is handed out again at once.
    """
    number = tables.members(world, tables.parcels(world, index).member).group
    group = tables.groups(world, number)
    while index >= 0:
        delivery = tables.parcels(world, index)
        following, at = delivery.mate, delivery.message
        silent = group.last_backoff == group.first_backoff
        if tables.parcels(world, at).settled:
            pass
        elif group.qos == AT_MOST_ONCE:
            settle(world, number, at, BY_PATH_DOWN)
        elif silent if group.qos < ONCE else delivery.whereabouts == RECEIVED:
            wait_again(world, group, at)
        end_delivery(world, number, index)
        index = following
