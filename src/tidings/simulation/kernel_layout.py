"""What the simulator's kernel works on: tables of records, all hung on one *world*.

The kernel knows only integers: brokers, arcs, classes, rows and the rest are positions. Tables of
the network never change during a run (interest excepted: subscriptions may come and go), tables of
the state change from event to event, tables of the tally only grow in value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import LANDING, NODE
from tidings.kernels.memory import Layout, constants, record

_I, _F = np.int64, np.float64


WHOLE, SMALL, TINY = record(value=_I), record(value=np.int32), record(value=np.int8)
MOMENT = record(value=_F)
# A bin of a histogram of delays: how many, and between which the delays in it lie.
BIN = record(value=_I, lowest=_F, highest=_F)
# How much there is in the system at a moment.
SAMPLE = record(copies=_I, backlog=_I)

# ---- the network -------------------------------------------------------------------------------

LAW = record(kind=_I, offset=_I)
# A publisher: home broker, its rows [first, last) of contents, laws of its intervals (or its day of
# rates, or its schedule, as −2, −3, ...; −1: neither), the place where its events wait for it to
# connect (−1: it is always there), its channel and its streams.
PUBLISHER = record(
    home=_I,
    first_row=_I,
    last_row=_I,
    interval=_I,
    residual=_I,
    day=_I,
    waits_at=_I,
    channel=_I,
    phase_stream=_I,
    interval_stream=_I,
    content_stream=_I,
    lifetime_stream=_I,
)
# A row: events of one publisher alike in class and lifetime. ``below`` is the cumulative share of
# the publisher's events up to and including this row.
ROW = record(below=_F, publisher=_I, content_class=_I, tree=_I, lifetime=_I, published=_I)
# A day: rates [first, last) of events, one a slot of so many seconds; ``total`` events are expected
# of it. ``position`` is the slot, of all since the first day began, in which the last event fell.
DAY = record(slot=_F, total=_F, first=_I, last=_I, repeats=_I, position=_I)
# A day of delays: how many times as long they are in each of its slots, at [first, last).
DELAY_DAY = record(slot=_F, first=_I, last=_I)
# A schedule: the next of its times, and where they end.
SCHEDULE = record(position=_I, last=_I)
# A place with its stations [first, last), in the order an event passes them: a broker, or a queue
# of a publisher or receiver, its owner.
PLACE = record(first_station=_I, last_station=_I, kind=_I, owner=_I)
# Kinds of places: a broker; where events wait for their publisher to connect; where they wait for
# their subscriber to connect; where a subscriber takes them in. Of a consumer group: where events
# come to its queue; where a member handles them, and is done with them; where it is heard that one
# was; where it is seen that none was in time.
AT_BROKER, FROM_PUBLISHER, TO_SUBSCRIBER, AT_SUBSCRIBER = constants(0, 4)
TO_GROUP, AT_MEMBER, HANDLED, ACKNOWLEDGED, OVERDUE = constants(4, 5)
# Of publishers that are blocked or send in batches: where events come to be sent; where it is seen
# who is blocked no more.
TO_SENDER, TO_BLOCKED = constants(9, 2)
# A channel: one direction of a link, or a client's link. ``instant``: no delay at all. A failure
# begins a new generation of the channel, and what was sent in an older one never arrives; of a
# client's link that fails it is also known whether it ``is_down``. Each
# event meets the fate of the one before (``fate``: lost or not; −1 at first), unless it is decided
# anew, which happens with probability ``anew``: 1 where losses do not come in bursts. What is sent
# over a channel with a wire (−1: there is none) keeps it busy for so many seconds per byte. ``day``
# is 1 + that of its delays; 0: they are alike at all times.
CHANNEL = record(
    reliability=_F,
    instant=_I,
    delay=_I,
    loss_stream=_I,
    delay_stream=_I,
    target=_I,
    anew=_F,
    fate=_I,
    day=_I,
    wire=_I,
    seconds_per_byte=_F,
    is_down=_I,
    generation=_I,
    sent=_I,
    lost=_I,
    delay_sum=_F,
)
# A wire: when all that was sent over it will be through; whether several links share it.
WIRE = record(free=_F, shared=_I)
# A receiver: a subscriber that is followed on its own, because its link loses or delays events or
# because it has a lifetime of its own (a law, or −1), or because it has queues of its own: events
# wait for it to connect at one place and are taken in at another (−1: there is none), or because
# its subscription comes and goes (its churner; −1: it is always there), or because it is a group of
# consumers (−1: it is not).
RECEIVER = record(
    channel=_I, lifetime=_I, lifetime_stream=_I, waits_at=_I, taken_in_at=_I, churner=_I, group=_I
)

# ---- the state ---------------------------------------------------------------------------------

# A station: one queue of a broker. Its waiting copies are a linked list, its idle servers another.
# A closed gate stops its servers, which keep what is left of their work. ``urgency`` is what a
# waiting copy adds to the backlog of the system.
STATION = record(
    place=_I,
    law=_I,
    stream=_I,
    first_server=_I,
    servers=_I,
    buffer=_I,
    is_open=_I,
    idle=_I,
    head=_I,
    tail=_I,
    waiting=_I,
    arrivals=_I,
    served=_I,
    busy=_F,
    wait=_F,
    urgency=_I,
    keeps_expired=_I,  # whether what expires in it is served all the same
    limit=_I,  # 1 + that of its buffer; 0: nobody is blocked by it
)
SERVER = record(station=_I, serves=_I, next_idle=_I, left=_F)
# A line: what makes a station of a broker other than plain; its idle servers, here alone, and the
# root of its heap: of those that wait in turn, or of those in service, so many ``active``. Of
# shared servers also the work that each copy there since the last idle moment has had so far, as
# of when it ``changed``. Its laws and priorities by event type begin at ``first_demand``.
LINE = record(kind=_I, first_demand=_I, idle=_I, root=_I, active=_I, work=_F, changed=_F)
# Kinds of lines: none at all; served in turn, by priority; by shared servers; all at once.
PLAIN, IN_TURN, SHARING, UNLIMITED = constants(0, 4)
DEMAND = record(law=_I, priority=_I)
# The place of a copy in the heap of a line, and the work it needs, in seconds.
RANK = record(left=_I, right=_I, order=_I, key=_F, need=_F)
# A copy: at (or on its way to) a place, a broker mostly, over a channel. ``stamp`` is the
# generation in which it was sent.
COPY = record(
    next=_I, publication=_I, place=_I, channel=_I, stamp=_I, entered=_F, arrived=_F, started=_F
)
# A publication: an event, kept as long as there are copies of it.
PUBLICATION = record(
    next=_I,
    number=_I,
    row=_I,
    content_class=_I,
    tree=_I,
    copies=_I,
    measured=_I,
    noted=_I,  # 1: marks may say that some broker lost it; + HAS_PLACES
    born=_F,
    lifetime=_F,
)

# ---- what fails, and what is done about it -----------------------------------------------------

# What else there is to know of a copy where things fail: its kind, and, on a detour, the arc of the
# tree whose end it is bound for instead (−1 on the tree).
LABEL = record(kind=_I, via=_I)
# Kinds of copies: first-hand; released from a buffer; sent on a detour beside a buffered one; kept
# for the subscribers of its broker and about to be handed to them.
FIRST_HAND, KEPT, BESIDE, RESTORED = constants(0, 4)
# A switch: on and off by turns, and with it its members [first, last), which are components, or the
# gate of a station (−1: none), for a time by a law each, or for the periods [first, last) in turn.
SWITCH = record(
    availability=_F,
    on=_I,
    off=_I,
    residual_on=_I,
    residual_off=_I,
    stream=_I,
    first_member=_I,
    last_member=_I,
    gate=_I,
    first_period=_I,
    last_period=_I,
    next_period=_I,
    is_on=_I,
    consumer=_I,  # 1 + the member of a group that it is; 0: none
)
# A component: the brokers, then the links, then clients' links that fail. It is down while any
# switch is off that it hangs on; ``seen`` is what other brokers believe: whether it was up when
# they last noticed.
COMPONENT = record(down_by=_I, seen=_I)
# A home: a broker with subscribers, who send their subscriptions again at regular moments from
# ``phase`` on. ``rounds`` so far, and how many of them have timed out.
HOME = record(broker=_I, first_bundle=_I, last_bundle=_I, stream=_I, phase=_F, rounds=_I, ended=_I)
# A bundle: all subscriptions of one home for one tree, by class [first, last).
BUNDLE = record(home=_I, tree=_I, first_class=_I, last_class=_I)
WANTED = record(content_class=_I, count=_I)
# A buffer: copies kept for an arc, or (after those of the arcs) for the subscribers of a broker.
BUFFER = record(head=_I, tail=_I)
# A step of a walk over a tree: the broker, the arc into it, the step before, how many brokers at
# and behind it want the event as far as is known, and whether a detour leads to it or before it.
STEP = record(broker=_I, into=_I, before=_I, covered=_I)

# ---- consumer groups -----------------------------------------------------------------------------

# A group: the receiver that it is, its members and queues [first, last), how one is chosen, and its
# limits: events that wait, that one member or all of them hold, deliveries of one event. Its
# back-off is times [first, last), the last of which is that of all further deliveries; none: an
# event is delivered once. Members that ``fetch`` so many at a time (0: they do not) wait for more
# as long as they ``linger``. ``paused_until``: nobody is handed anything before; ``stopped``: nor
# until it goes on again. ``urgency`` is what a waiting event adds to the backlog of the system.
GROUP = record(
    receiver=_I,
    first_member=_I,
    last_member=_I,
    first_queue=_I,
    last_queue=_I,
    choice=_I,
    buffer=_I,
    drops_old=_I,
    prefetch=_I,
    most_in_flight=_I,
    deliveries=_I,
    first_backoff=_I,
    last_backoff=_I,
    rebalance=_F,
    ack_channel=_I,
    handled_at=_I,
    acknowledged_at=_I,
    overdue_at=_I,
    stream=_I,
    refill=_I,  # a member asks for more when fewer are left of those it asked for
    first_request=_I,  # of a ring of so many ...
    request_room=_I,
    requests=_I,  # ... that wait, the first of them at ...
    request_head=_I,
    fetch=_I,
    linger=_F,
    together=_I,  # whether what was fetched is handled in the time of one
    qos=_I,  # 0: what a member holds that crashes is lost; 2: nothing is handled twice
    limit=_I,  # 1 + that of its buffer; 0: nobody is blocked by it
    is_timed=_I,  # whether it will be come back to when somebody has lingered
    turn=_I,
    waiting=_I,
    in_flight=_I,
    paused_until=_F,
    pausing=_I,
    stopped=_I,
    urgency=_I,
)
BY_TURNS, LEAST_BUSY, AT_RANDOM, BY_REQUEST = constants(0, 4)
# A member: its group, its place, whether it is there, how many events it holds, and how many it has
# asked for beside these.
MEMBER = record(group=_I, place=_I, is_on=_I, held=_I, asked=_I)
# A request of a member for so many events. Each event goes to the request that waits longest, which
# then waits behind all others for the rest of what it asks for.
REQUEST = record(member=_I, left=_I)
# A queue of a group, one a partition: the cumulative share of the events up to and including it,
# the member that has it as a rule and the one that has it now (−1: any), what waits for its first
# delivery and what for another one, each a linked list.
GROUP_QUEUE = record(
    below=_F,
    usual_owner=_I,
    owner=_I,
    head=_I,
    tail=_I,
    again_head=_I,
    again_tail=_I,
    waiting=_I,  # for their first delivery
    given_up=_I,  # its member is offered more than it can handle: its turn never comes
)
# What else there is to know of a copy where there are groups. Of an event at a group (its
# *message*): its queue, how often it was delivered, handled, whether that is over (acknowledged or
# given up, by which cause), and how many copies and lists know of it. Of a delivery, of its
# acknowledgement and of its clock: the message; of a delivery also the member, whether it was cut
# off on its way, and the next one of those that were fetched with it and go where it goes (−1).
PARCEL = record(
    message=_I,
    member=_I,
    cut_off=_I,
    queue=_I,
    tries=_I,
    handled=_I,
    settled=_I,
    cause=_I,
    known_by=_I,
    mate=_I,
    whereabouts=_I,  # of what is handled once: UNDER_WAY, RECEIVED, or WAITS_AGAIN
)
UNDER_WAY, RECEIVED, WAITS_AGAIN = constants(0, 3)
# Cargo from which on it is a moment: that the pause of a group ends, that it has lingered long
# enough, that a publisher's batch has.
FIRST_MOMENT = np.int64(2**40)

# ---- publishers that are blocked, or send in batches ---------------------------------------------

# A limit: a buffer that blocks publishers. Its places, those taken by events in it or on their way
# to it; how many measured events waited for one, and how long in all.
LIMIT = record(capacity=_I, taken=_I, blocked=_I, blocked_sum=_F)
HAS_PLACES = np.int64(2)
# A sender: how a publisher sends. Its place; the station whose gate must be open (−1: it is always
# connected); batches by size and time; whether it makes no events while it is blocked. What waits
# for places, a linked list; whether it is among the blocked, and who is after it there; since when
# its first event waits, for which limit (−1: it does not); what is left of its interval, if it is
# paused. What is gathered for a batch, a linked list, and when that is due.
SENDER = record(
    place=_I,
    gate=_I,
    batch=_I,
    linger=_F,
    pauses=_I,
    head=_I,
    tail=_I,
    waits_for=_I,
    next=_I,
    batch_head=_I,
    batch_tail=_I,
    is_blocked=_I,
    since=_F,
    is_paused=_I,
    rest=_F,
    gathered=_I,
    due=_F,
    is_timed=_I,
)

# ---- subscriptions that come and go, and how brokers hear of them -------------------------------

# A churner: a subscriber that comes and goes, its pieces [first, last), the law of the way of its
# messages to its home broker (those of one way keep their order: none lands before ``latest``), and
# its receiver (−1: it is not watched, another one stands for it). Its switch has the same position
# among those of churners.
CHURNER = record(
    home=_I, first_piece=_I, last_piece=_I, delay=_I, stream=_I, receiver=_I, latest=_F
)
# A piece: a subscription as far as one tree is concerned. Its *subject* is tree and filter, its
# classes [first, last) those of the tree that the filter wants. Churner −1: it is there for ever.
PIECE = record(home=_I, tree=_I, subject=_I, first_class=_I, last_class=_I, churner=_I)
# A message over an arc (−1: from the subscriber): that a piece is there from now on, or no more.
MESSAGE = record(next=_I, piece=_I, arc=_I, is_on=_I, since=_F)
# What a broker knows of a piece: 0 nothing, or where it heard of it: ...
FROM_HERE = np.int64(1)  # ... from the subscriber itself, or ...
FROM_ARC = np.int64(2)  # ... from this on, over which arc.
# Where an event is, or was when a broker was done with it: a moment from 0 on, or ...
NOT_THERE = -1.0
LOST_THERE = -2.0  # ... from here down, lost there by which cause

# ---- what is counted: of measured events only, those born in the window ------------------------

# Misses, late or lost, count by the weight of the trial they happen in (1 without splitting), all
# else counts in the first trial alone.

# A cell: a row of contents at a broker. What its plain subscribers got.
CELL = record(delivered=_I, late=_F, delay_sum=_F)
KERNEL_CAUSES = (
    "link",
    "overflow",
    "expired",
    "broker_down",
    "path_down",
    "expired_in_buffer",
    "not_restored",
    "not_known",
    "unsubscribed",
    "dead_letter",
    "overload",
)
BY_LINK, BY_OVERFLOW, BY_EXPIRY = constants(0, 3)
PLAIN_CAUSES = 3  # the causes that there are where nothing fails
BY_BROKER_DOWN, BY_PATH_DOWN, BY_EXPIRY_IN_BUFFER, BY_NOT_RESTORED = constants(PLAIN_CAUSES, 4)
FAILING_CAUSES = PLAIN_CAUSES + 4
# By receipt only: of churners, of consumer groups.
BY_NOT_KNOWN, BY_UNSUBSCRIBED, BY_DEAD_LETTER, BY_OVERLOAD = constants(FAILING_CAUSES, 4)
# What is known of an event at a broker, where copies may come twice: 0, or ...
DELIVERED, LOST = constants(1, 2)  # ... from LOST on, the first cause
# What one receiver got of one publisher's events; losses on its link and in its queues, by cause;
# of a churner all losses there are, and how many events were published while it was there; of a
# group what was handled more than once, and what was given up, handled or not.
RECEIPT = record(
    lost=_F,
    dropped=_I,
    expired=_I,
    broker_down=_I,
    path_down=_I,
    expired_in_buffer=_F,
    not_restored=_I,
    not_known=_I,
    unsubscribed=_I,
    dead_letter=_I,
    overloaded=_I,
    wanted=_I,
    delivered=_I,
    late=_F,
    delay_sum=_F,
    handled_again=_I,
    dead_letters=_I,
)

# ---- retrials of what leads to misses -----------------------------------------------------------

# A level: its trials begin where the backlog reaches ``upper``, as many as ``trials``, of which
# ``left`` are to come, and end where it falls below ``lower``.
LEVEL = record(upper=_I, lower=_I, trials=_I, left=_I)
# A stretch of memory that retrials begin with as it was, and where it is kept for the first level.
SPAN = record(address=_I, length=_I, kept=_I)
NEVER = 2**62  # a backlog that is never reached
NO_LIMIT = np.iinfo(np.int64).max  # of a buffer, or of what is held at once

# ---- what is recorded --------------------------------------------------------------------------

TAPED_PUBLICATION = record(number=_I, row=_I, born=_F, lifetime=_F)
TAPED_HOP = record(number=_I, broker=_I, channel=_I, sent=_I, entered=_F, started=_F, left=_F)
# ``place``: a broker (all plain subscribers there), or −1 − receiver. When it began to be handled,
# by which member, from which queue of its group; −1 where nobody handles it.
TAPED_DELIVERY = record(
    number=_I, content_class=_I, place=_I, received=_F, started=_F, member=_I, queue=_I
)
# ``what``: a component, or −1 − switch for a peer. Also how each is in the beginning.
TAPED_TURN = record(what=_I, is_on=_I, turned=_F)
# When a broker heard of a piece whose churner had come at ``since``.
TAPED_LEARNT = record(piece=_I, broker=_I, since=_F, learnt=_F)

NUMBERS: dict[str, type] = {
    "now": _F,
    "warmup": _F,
    "end": _F,
    "next_sample": _F,
    "sample_every": _F,
    "samples_taken": _I,
    "expiry": _I,  # 0 at subscriber, 1 at hop, 2 in queue
    "recording": _I,
    "publisher_count": _I,
    "broker_count": _I,  # of the places; those of peers follow
    "class_count": _I,
    "bin_count": _I,
    "receiver_count": _I,
    "queueing": _I,  # whether receivers have queues: then events that are not measured matter too
    "day_start": _F,  # when the first day of rates begins
    "arc_count": _I,
    "cause_count": _I,  # causes told apart: PLAIN_CAUSES, or all
    "sorting": _I,  # whether a queue may be joined elsewhere than at its end: lines, expiry 2
    "bare": _I,  # nothing fails, no peer has a queue, nothing is dropped for its age
    "first_client": _I,  # of the components: clients' links
    "failing": _I,  # whether anything can fail or be forgotten; if not, nothing below matters
    "buffering": _I,
    "bypassing": _I,
    "forgetting": _I,  # whether subscriptions can be lost at all
    "detection": _F,
    "refresh": _F,  # 0: never
    "timeout": _F,  # +inf: never
    "first_line": _I,  # slots of the calendar: servers of lines, ...
    "first_switch": _I,  # ... switches, then ...
    "first_notice": _I,  # ... components whose change will be noticed, ...
    "first_round": _I,  # ... homes that refresh their subscriptions, ...
    "first_end": _I,  # ... and homes whose subscriptions time out
    "churning": _I,  # whether subscriptions come and go; if not, the next do not matter
    "first_churner": _I,  # of the switches
    "watched_count": _I,  # churners with a receiver; they come first
    "subject_count": _I,
    "starting": _I,  # tables are being filled before the run: messages take no time
    "messages_at_once": _I,  # most that one step can send
    "held_head": _I,  # messages that wait for what is down or away, a linked list
    "held_tail": _I,
    "subscribes": _I,  # messages between brokers that somebody has come, in the window, ...
    "unsubscribes": _I,  # ... and gone
    "epoch": _I,  # changes of components noticed so far
    "duplicates": _I,  # second copies of measured events at a broker with subscribers for it
    "acknowledgements": _I,  # of measured events that a broker has taken over from the one before
    "refreshes": _I,  # subscriptions of a home sent over a link, in the window
    "fan_out": _I,  # most copies that one step can make
    "deliveries_at_once": _I,  # most deliveries that one step can make
    "turns_at_once": _I,  # most components and peers that one step can change
    "order": _I,  # copies put on their way so far
    "in_flight": _I,
    "passing_head": _I,  # copies that enter a broker at this very moment, a linked list
    "passing_tail": _I,
    "waker": _I,  # the copy that goes to see who is blocked no more, ...
    "is_waking": _I,  # ... and whether it is on its way
    "blocked_head": _I,  # senders that are blocked, a linked list
    "blocked_tail": _I,
    "blocked_count": _I,
    "free_copy": _I,
    "free_copies": _I,
    "free_publication": _I,
    "free_message": _I,
    "free_messages": _I,
    "published": _I,
    "measured_alive": _I,
    "may_stay": _I,  # measured events that may still be under way when a run comes back
    "watching": _I,  # whether a run comes back where the backlog reaches ``upper`` or ``lower``
    "watched_group": _I,  # the queue that is stopped: its group (−1: none) and its stations, ...
    "first_watched": _I,  # ... from this one ...
    "last_watched": _I,  # ... to before that one
    "backlog": _I,  # urgencies of all copies that wait
    "level": _I,  # of the trial; what follows is its own
    "upper": _I,  # backlog from which trials of the next level begin
    "lower": _I,  # backlog below which this trial ends
    "is_retrial": _I,  # whether another trial goes on to the end
    "weight": _F,
    "kept_stride": _I,  # bytes that are kept for each level
    "taped_publications": _I,
    "taped_hops": _I,
    "taped_sends": _I,
    "taped_deliveries": _I,
    "taped_turns": _I,
    "taped_learnt": _I,
}
TABLES: dict[str, np.dtype[Any]] = {
    # the network
    "laws": LAW,
    "law_params": np.dtype(_F),
    "publishers": PUBLISHER,
    "rows": ROW,
    "days": DAY,
    "day_rates": np.dtype(_F),
    "delay_days": DELAY_DAY,
    "delay_times": np.dtype(_F),
    "schedules": SCHEDULE,
    "schedule_times": np.dtype(_F),
    "sizes": MOMENT,  # [row]: of its events in bytes, where there are wires
    "kinds_of_rows": SMALL,  # [row]: the type of its events, where there are lines
    "demands": DEMAND,  # [first of a line + type]
    "places": PLACE,  # the brokers, then the queues of peers
    "channels": CHANNEL,  # of arcs, publishers, receivers, acknowledgements, in this order
    "receivers": RECEIVER,
    "groups": GROUP,
    "members": MEMBER,
    "group_queues": GROUP_QUEUE,
    "requests": REQUEST,
    "backoffs": MOMENT,
    "limits_first": WHOLE,  # [row (+ 1)]: where its limits begin in ...
    "limits_of": WHOLE,  # ... this
    "out_first": WHOLE,  # [tree × brokers + broker (+ 1)]: where its arcs begin in ...
    "out_arcs": WHOLE,  # ... this
    "interest": WHOLE,  # [arc × classes + class]: forwarded if above 0
    "cell_of": SMALL,  # [row × brokers + broker]; −1: it never comes there
    "curve_of": WHOLE,  # [broker × classes + class]: histogram of plain deliveries; −1: nobody
    "receivers_first": WHOLE,  # [broker × classes + class (+ 1)]: where its receivers begin in ...
    "receivers_of": WHOLE,  # ... this
    "switches": SWITCH,
    "switch_members": WHOLE,  # components
    "client_channels": WHOLE,  # [component − first_client]
    "periods": np.dtype(_F),  # of switches, on and off by turns
    "arcs_first": WHOLE,  # [broker (+ 1)]: where all arcs that leave it begin in ...
    "arcs_from": WHOLE,  # ... this, by the name of the neighbour
    "full_interest": WHOLE,  # what interest is when no subscription is lost
    "homes": HOME,
    "bundles": BUNDLE,
    "bundle_classes": WANTED,
    "bundle_of": SMALL,  # [tree × brokers + broker]; −1: nobody there wants anything
    "churners": CHURNER,  # those watched first
    "churners_first": WHOLE,  # [class (+ 1)]: where the watched ones that want it begin in ...
    "churners_of": WHOLE,  # ... this
    "pieces": PIECE,
    "piece_classes": WHOLE,
    "wider_first": WHOLE,  # [subject (+ 1)]: where the subjects that cover it begin in ...
    "wider_of": WHOLE,  # ... this; every one covers itself
    "narrower_first": WHOLE,  # [subject (+ 1)]: where those that it covers begin in ...
    "narrower_of": WHOLE,  # ... this, the widest first
    "pieces_first": WHOLE,  # [subject (+ 1)]: where its pieces begin in ...
    "pieces_of": WHOLE,  # ... this
    "bundle_pieces_first": WHOLE,  # [bundle (+ 1)]: where its pieces begin in ...
    "bundle_pieces_of": WHOLE,  # ... this
    "message_streams": WHOLE,  # [arc]: of the delays of messages
    "came_from": SMALL,  # [cell]: the broker that events come from; −1 at their first
    "bin_guess": np.dtype(_I),
    "bin_edges": np.dtype(_F),
    # the state
    "stations": STATION,
    "soonest": MOMENT,  # [station]: nothing that waits there expires before
    "servers": SERVER,
    "wires": WIRE,
    "lines": LINE,  # of brokers' stations; none where all of them are plain
    "ranks": RANK,  # of copies, where there are lines
    "copies": COPY,
    "labels": LABEL,  # of copies
    "parcels": PARCEL,  # of copies
    "publications": PUBLICATION,
    "senders": SENDER,  # [publisher], if any is blocked at times or sends in batches
    "limits": LIMIT,
    "holds": TINY,  # [publication × limits + limit]: whether it has a place
    "components": COMPONENT,
    "entries": SMALL,  # [bundle × brokers + broker]: round in which it was last heard of; 0: never
    "known": SMALL,  # [piece × brokers + broker]: what the broker knows of it
    "sent": TINY,  # [piece × arcs + arc]: whether it was sent there and not taken back
    "sent_subjects": SMALL,  # [arc × subjects + subject]: pieces that were
    "latest": MOMENT,  # [arc]: no message lands before
    "messages": MESSAGE,
    "wanted": MOMENT,  # [publication × watched + churner]: until when that would stay; 0: not
    "passages": MOMENT,  # [publication × brokers + broker]: where it is, see NOT_THERE
    "buffers": BUFFER,
    "marks": TINY,  # [publication × brokers + broker], where events may come twice
    "first_arcs": SMALL,  # [broker × brokers + goal]: of the shortest path; −1: there is none
    "paths_epoch": WHOLE,  # [broker]: when these were found
    "onwards": WHOLE,  # the arcs by which a copy is about to leave its broker
    "walk": STEP,
    "search": WHOLE,
    "nodes": NODE,  # the tournament: publishers, then servers (of lines last), switches, timers
    "flight": LANDING,
    "streams": np.dtype(np.uint64),  # four words each
    # the tally
    "cells": CELL,
    "losses": MOMENT,  # [cell × causes + cause]: lost on the way to this broker or there
    "losses_here": MOMENT,  # likewise, but lost for those at this broker only
    "curves": BIN,  # [curve × bins + bin]: delays of plain deliveries
    "receipts": RECEIPT,  # [receiver × publishers + publisher]
    "receiver_curves": BIN,  # [receiver × bins + bin]
    "samples": SAMPLE,  # at regular moments
    # retrials
    "levels": LEVEL,
    "spans": SPAN,
    "kept": np.dtype(np.uint8),
    # the tape
    "tape_publications": TAPED_PUBLICATION,
    "tape_hops": TAPED_HOP,
    "tape_sends": WHOLE,  # the arcs of each hop's copies, hop after hop
    "tape_deliveries": TAPED_DELIVERY,
    "tape_turns": TAPED_TURN,
    "tape_learnt": TAPED_LEARNT,
}
# What only some systems do (failures, peers, groups, lines) is compiled on its own and called by
# address: plain systems then need not wait for it to be compiled. Each of these is called with
# (world, one, other), two whole numbers that mean what kernel_parts says.
PARTS = (
    "start",
    "queue_up",
    "note_wanted",
    "let_in",
    "visit",
    "join_otherwise",
    "finish_in_line",
    "leave_otherwise",
    "leave_among_failures",
    "approach",
    "land_otherwise",
    "hear",
    "ring",
    "change",
    "turn_member",
    "settle",
)
LAYOUT = Layout(NUMBERS, TABLES, PARTS)
# By the names above: tables.copies(world, position) is a record, arrays.nodes(world) a whole table,
# calls.start(world, one, other) a call of a part.
world_at = LAYOUT.world()
tables, arrays, calls = LAYOUT.records(), LAYOUT.arrays(streams=4), LAYOUT.calls()

# How a run comes back.
DONE, NEEDS_ROOM, TAPE_FULL, BACKLOG_REACHED = 0, 1, 2, 3
