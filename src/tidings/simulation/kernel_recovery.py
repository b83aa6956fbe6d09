"""What is done about failures: buffers of brokers on failing links, subscriptions as soft state.

With buffering a broker keeps an event until the next broker has taken it over: has served it and
stored it in buffers of its own. What is lost before that by a failure is back in the buffer, from
where it is sent again when the link and both brokers are up and known to be. Only an event that
has not reached the publisher's home broker is lost, or one that was kept and has expired: it is
dropped when that is seen, in the buffer or before it is handed over.

Brokers forget subscriptions in a crash, homes send them again. What a broker knows of a bundle (all
subscriptions of one home for one tree) is an *entry*: when it last heard of it. A round of a home
reaches, at once, every broker that is joined to it by what is up: along the tree, or along any path
where events may bypass failures as well. Where subscriptions come and go, a round tells every
broker exactly who is there: also who has come or gone without its having heard of it. Between
rounds a broker hears of everybody one by one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import set_key
from tidings.kernels.compile import inlined, merged, primitive
from tidings.kernels.streams import uniform
from tidings.simulation.kernel_copies import (
    append,
    count_loss_here,
    has_waited,
    is_expired,
    lose,
    loses,
    pass_by,
    release,
    time_on_wire,
    travel,
)
from tidings.simulation.kernel_deliveries import deliver, is_wanted_at
from tidings.simulation.kernel_layout import (
    AT_MEMBER,
    BESIDE,
    BY_BROKER_DOWN,
    BY_EXPIRY_IN_BUFFER,
    BY_LINK,
    BY_PATH_DOWN,
    DELIVERED,
    FROM_ARC,
    FROM_HERE,
    KEPT,
    RESTORED,
    arrays,
    tables,
)
from tidings.simulation.kernel_spreading import expect
from tidings.simulation.kernel_walks import first_arc, is_open, link_of, walk_tree


@primitive
def tell_again(world: Any, bundle: int, step: Any, was_known: bool) -> None:
    """A broker is told by a round who of a bundle is there, as far as their home knows.

    A home that has forgotten its subscribers is told by those that are there.
    """
    first = tables.bundle_pieces_first(world, bundle).value
    for position in range(first, tables.bundle_pieces_first(world, bundle + 1).value):
        number = tables.bundle_pieces_of(world, position).value
        piece = tables.pieces(world, number)
        if step.broker != piece.home:
            bring(world, number, step)
        elif not was_known:
            is_there = 1
            if piece.churner >= 0:
                is_there = tables.switches(world, world.first_churner + piece.churner).is_on
            at = number * world.broker_count + piece.home
            tables.known(world, at).value = FROM_HERE if is_there else 0


@merged
def bring(world: Any, number: int, step: Any) -> None:
    """A broker is told over an arc whether a piece is there."""
    piece = tables.pieces(world, number)
    is_there = 1 if tables.known(world, number * world.broker_count + piece.home).value > 0 else 0
    known = tables.known(world, number * world.broker_count + step.broker)
    was_known = 1 if known.value > 0 else 0
    known.value = FROM_ARC + step.into if is_there else 0
    if was_known != is_there:
        expect(world, number, step.into ^ 1, is_there - was_known)
    sent = tables.sent(world, number * world.arc_count + step.into)
    at = step.into * world.subject_count + piece.subject
    tables.sent_subjects(world, at).value += is_there - sent.value
    sent.value = is_there


@primitive
def forget_pieces(world: Any, broker: int) -> None:
    """A broker loses who it knows, and what of it it has sent where."""
    first, last = tables.arcs_first(world, broker).value, tables.arcs_first(world, broker + 1).value
    for number in range(world.pieces_length):
        tables.known(world, number * world.broker_count + broker).value = 0
        for place in range(first, last):
            tables.sent(
                world, number * world.arc_count + tables.arcs_from(world, place).value
            ).value = 0
    for place in range(first, last):
        at = tables.arcs_from(world, place).value * world.subject_count
        for subject in range(world.subject_count):
            tables.sent_subjects(world, at + subject).value = 0


@primitive
def forget_bundle(world: Any, bundle: int, step: Any) -> None:
    """A broker has not heard of a home for too long, and forgets who is there.

    Also who came since the last round that reached it: when that was is known of the home only.
    """
    first = tables.bundle_pieces_first(world, bundle).value
    for position in range(first, tables.bundle_pieces_first(world, bundle + 1).value):
        number = tables.bundle_pieces_of(world, position).value
        known = tables.known(world, number * world.broker_count + step.broker)
        if known.value > 0 and step.into >= 0:
            expect(world, number, step.into ^ 1, -1)
        known.value = 0


@primitive
def is_forgotten_behind(world: Any, publication: Any, arc: int) -> bool:
    """Whether a broker may lack subscriptions behind an arc: some home has not told it again."""
    if not world.forgetting:
        return False
    broker = tables.channels(world, arc ^ 1).target
    start = world.broker_count  # the first half of the steps may be in use
    kind, tree = publication.content_class, publication.tree
    end = walk_tree(world, start, tree, tables.channels(world, arc).target, arc, kind)
    for position in range(start, end):
        home = tables.walk(world, position).broker
        if is_wanted_at(world, home, kind):
            bundle = tables.bundle_of(world, tree * world.broker_count + home).value
            if tables.entries(world, bundle * world.broker_count + broker).value == 0:
                return True
    return False


@inlined
def is_kept(world: Any, index: int) -> bool:
    """Whether the sender of a copy keeps the event until the copy is acknowledged."""
    return world.buffering and tables.labels(world, index).kind != BESIDE


@primitive
def keep(world: Any, at: int, index: int) -> None:
    """Put a copy into a buffer, behind all others; what has expired at its head is dropped."""
    buffer = tables.buffers(world, at)
    while buffer.head >= 0 and is_expired(world, buffer.head):
        expired = buffer.head
        buffer.head = tables.copies(world, expired).next
        give_up(world, at, expired)
    tables.labels(world, index).kind = KEPT
    append(world, buffer, index)


@primitive
def give_up(world: Any, at: int, index: int) -> None:
    """A copy that was taken out of a buffer is lost, since it has expired there."""
    if at < world.arc_count:
        lose(world, index, BY_EXPIRY_IN_BUFFER)
    else:
        copy = tables.copies(world, index)
        count_loss_here(world, copy.publication, copy.place, BY_EXPIRY_IN_BUFFER)
        release(world, index)


@primitive
def transmit(world: Any, index: int) -> None:
    """Send a copy over its channel, an arc; with buffering, again until nothing is lost by chance.

    A sender that waits for acknowledgements repeats at once what the link lost by chance.
    """
    copy = tables.copies(world, index)
    channel = tables.channels(world, copy.channel)
    measured = tables.publications(world, copy.publication).measured
    channel.sent += measured
    if tables.components(world, link_of(world, copy.channel)).down_by > 0:
        channel.lost += measured
        if is_kept(world, index):
            keep(world, copy.channel, index)
        else:
            lose(world, index, BY_PATH_DOWN)
        return
    while loses(world, channel):
        channel.lost += measured
        if channel.wire >= 0:
            time_on_wire(world, copy.publication, channel)
        if not is_kept(world, index) or channel.reliability <= 0.0:
            lose(world, index, BY_LINK)
            return
        channel.sent += measured
    delay = travel(world, index, channel)
    if measured:
        channel.delay_sum += delay


@primitive
def turn_away(world: Any, index: int) -> None:
    """A copy does not arrive: its link failed under it, or its broker is down."""
    copy = tables.copies(world, index)
    channel = tables.channels(world, copy.channel)
    channel.lost += tables.publications(world, copy.publication).measured
    if world.parcels_length > 0 and tables.places(world, copy.place).kind == AT_MEMBER:
        tables.parcels(world, index).cut_off = 1
        pass_by(world, index)  # its group sees to it
    elif copy.channel >= world.arc_count and channel.generation != copy.stamp:
        lose(world, index, BY_PATH_DOWN)  # nobody keeps what is on a client's link
    else:
        fail_copy(world, index)


@primitive
def fail_copy(world: Any, index: int) -> None:
    """A copy falls to a failure: it is sent again from its sender's buffer, or lost."""
    copy = tables.copies(world, index)
    if copy.channel >= world.arc_count:
        lose(world, index, BY_BROKER_DOWN)
    elif not is_kept(world, index):
        lose(world, index, BY_PATH_DOWN)
    elif is_open(world, copy.channel):
        tables.labels(world, index).kind = KEPT
        transmit(world, index)
    else:
        keep(world, copy.channel, index)


@primitive
def send_kept(world: Any, arc: int) -> None:
    """Send what is kept for an arc, if it is open, as far as subscriptions are known."""
    if not is_open(world, arc):
        return
    buffer = tables.buffers(world, arc)
    index = buffer.head
    buffer.head = -1
    while index >= 0:
        copy = tables.copies(world, index)
        following = copy.next
        publication = tables.publications(world, copy.publication)
        wanted = publication.content_class
        if is_expired(world, index):
            give_up(world, arc, index)
        elif tables.interest(world, arc * world.class_count + wanted).value > 0:
            transmit(world, index)
        elif world.churning and not is_forgotten_behind(world, publication, arc):
            release(world, index)  # those for whom it was kept have gone
        else:
            keep(world, arc, index)
        index = following


@merged
def hand_over_kept(world: Any, broker: int) -> None:
    """Deliver what is kept for the subscribers of a broker, whose subscriptions are back.

    It is put where the loop takes one after the other, as each may make many copies.
    """
    at = world.arc_count + broker
    buffer = tables.buffers(world, at)
    index = buffer.head
    buffer.head = -1
    while index >= 0:
        copy = tables.copies(world, index)
        following = copy.next
        if is_expired(world, index):
            give_up(world, at, index)
        else:
            tables.labels(world, index).kind = RESTORED
            pass_by(world, index)
        index = following


@primitive
def hand_over(world: Any, index: int) -> None:
    """Deliver an event to the subscribers of a broker, unless they have got it before.

    One that was kept in a buffer and has expired since is dropped here too.
    """
    copy = tables.copies(world, index)
    waited = has_waited(world, index)
    publication = tables.publications(world, copy.publication)
    if world.buffering and world.bypassing:
        mark = tables.marks(world, copy.publication * world.broker_count + copy.place)
        if mark.value == DELIVERED:
            world.duplicates += publication.measured
            return
        if not (waited and is_expired(world, index)):
            mark.value = DELIVERED
    if waited and is_expired(world, index):
        count_loss_here(world, copy.publication, copy.place, BY_EXPIRY_IN_BUFFER)
    elif publication.measured or world.queueing:
        deliver(world, copy, waited, True)


@merged
def schedule_rounds(world: Any) -> None:
    """Give every home its first round, at a random moment of its own; brokers know everybody."""
    for number in range(world.homes_length):
        home = tables.homes(world, number)
        home.phase = world.refresh * uniform(arrays.streams(world), home.stream)
        home.rounds = 1
        set_key(arrays.nodes(world), world.first_round + number, home.phase)
        if not np.isinf(world.timeout):
            set_key(arrays.nodes(world), world.first_end + number, end_of_round(world, home))


@primitive
def end_of_round(world: Any, home: Any) -> float:
    """When entries of a home's next round to time out are forgotten; the first was before 0."""
    return max(home.phase + (home.ended - 1) * world.refresh + world.timeout, 0.0)


@merged
def refresh(world: Any, number: int) -> None:
    """The subscribers of a home send their subscriptions again, if the home is up."""
    home = tables.homes(world, number)
    due = home.phase + home.rounds * world.refresh
    home.rounds += 1
    set_key(arrays.nodes(world), world.first_round + number, due)
    if tables.components(world, home.broker).down_by > 0:
        return
    for position in range(home.first_bundle, home.last_bundle):
        spread(world, position, home.rounds)
    if world.buffering:
        hand_over_kept(world, home.broker)


@merged
def spread(world: Any, bundle: int, stamp: int) -> None:
    """A bundle of subscriptions reaches all brokers that it can reach."""
    record = tables.bundles(world, bundle)
    count = walk_tree(world, 0, record.tree, record.home, -1, -1)
    counts = 1 if world.warmup <= world.now <= world.end else 0
    for position in range(count):
        step = tables.walk(world, position)
        step.covered = 1 if position == 0 else is_reached(world, record.home, step)
        if step.covered:
            world.refreshes += counts if position > 0 else 0
            entry = tables.entries(world, bundle * world.broker_count + step.broker)
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
    if tables.components(world, step.broker).down_by > 0:
        return 0
    if world.bypassing:
        return 1 if first_arc(world, home, step.broker) >= 0 else 0
    if tables.components(world, link_of(world, step.into)).down_by > 0:
        return 0
    return tables.walk(world, step.before).covered


@primitive
def change_interest(world: Any, bundle: int, arc: int, sign: int) -> None:
    """Add the subscriptions of a bundle to what is wanted behind an arc, or take them away."""
    record = tables.bundles(world, bundle)
    for position in range(record.first_class, record.last_class):
        wanted = tables.bundle_classes(world, position)
        at = arc * world.class_count + wanted.content_class
        tables.interest(world, at).value += sign * wanted.count


@merged
def time_out(world: Any, number: int) -> None:
    """Brokers forget the subscriptions of a home that they have not heard of for too long."""
    home = tables.homes(world, number)
    home.ended += 1
    set_key(arrays.nodes(world), world.first_end + number, end_of_round(world, home))
    for bundle in range(home.first_bundle, home.last_bundle):
        count = walk_tree(world, 0, tables.bundles(world, bundle).tree, home.broker, -1, -1)
        for position in range(count):
            step = tables.walk(world, position)
            entry = tables.entries(world, bundle * world.broker_count + step.broker)
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
        tables.entries(world, bundle * world.broker_count + broker).value = 0
    for place in range(
        tables.arcs_first(world, broker).value, tables.arcs_first(world, broker + 1).value
    ):
        first = tables.arcs_from(world, place).value * world.class_count
        for content_class in range(world.class_count):
            tables.interest(world, first + content_class).value = 0
    if world.churning:
        forget_pieces(world, broker)
