"""What the simulator's kernel works on: arrays of records, held by four named tuples.

The kernel knows only integers: brokers, arcs, classes, rows and the rest are positions. ``Network``
is the system as it stands (interest excepted, nothing in it ever changes), ``State`` what changes
from event to event, ``Tally`` what is counted, ``Tape`` what is recorded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

_I, _F = np.int64, np.float64


def _record(**fields: type) -> np.dtype[Any]:
    return np.dtype(list(fields.items()), align=True)


# ---- the network -------------------------------------------------------------------------------

# A publisher: home broker, its rows [first, last) of contents, laws of its intervals, its channel
# and its streams.
PUBLISHER = _record(
    home=_I,
    first_row=_I,
    last_row=_I,
    interval=_I,
    residual=_I,
    channel=_I,
    phase_stream=_I,
    interval_stream=_I,
    content_stream=_I,
    lifetime_stream=_I,
)
# A row: events of one publisher alike in class and lifetime. ``below`` is the cumulative share of
# the publisher's events up to and including this row.
ROW = _record(below=_F, publisher=_I, content_class=_I, tree=_I, lifetime=_I)
# A broker: its stations [first, last), in the order an event passes them.
BROKER = _record(first_station=_I, last_station=_I)
# A channel: a direction of a link, or a client's link. ``instant`` = no delay at all.
CHANNEL = _record(reliability=_F, instant=_I, delay=_I, loss_stream=_I, delay_stream=_I)
# A receiver: a subscriber that is followed on its own, because its link loses or delays events or
# because it has a lifetime of its own (law, or −1).
RECEIVER = _record(channel=_I, lifetime=_I, lifetime_stream=_I)


class Network(NamedTuple):
    """A system as arrays."""

    publishers: Any  # PUBLISHER
    rows: Any  # ROW
    brokers: Any  # BROKER
    arc_target: Any  # the broker each arc leads to
    channels: Any  # CHANNEL: of arcs, publishers, receivers, in this order
    receivers: Any  # RECEIVER
    out_first: Any  # [tree × brokers + broker (+ 1)]: where its arcs begin in ...
    out_arcs: Any  # ... this
    interest: Any  # [arc, class]: forwarded if above 0
    cell_of: Any  # [row, broker]: where its counts are kept; −1: it never comes there
    curve_of: Any  # [broker, class]: histogram of the plain local deliveries; −1: nobody there
    receivers_first: Any  # [broker × classes + class (+ 1)]: where its receivers begin in ...
    receivers_of: Any  # ... this
    law_kinds: Any
    law_offsets: Any
    law_params: Any
    bin_guess: Any  # see kernel_bins
    bin_edges: Any


# ---- the state ---------------------------------------------------------------------------------

# A station: one queue of a broker. Its waiting copies are a linked list, its idle servers another.
# A closed gate stops its servers, which keep what is left of their work.
STATION = _record(
    broker=_I,
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
)
SERVER = _record(station=_I, serves=_I, next_idle=_I, left=_F)
# A copy: at (or on its way to) a broker, by an arc (−1: from its publisher). ``stamp`` is the arc's
# generation when it was sent: should the arc fail meanwhile, the copy is forgotten when it lands.
COPY = _record(
    next=_I, publication=_I, broker=_I, arc=_I, stamp=_I, entered=_F, arrived=_F, started=_F
)
# A publication: an event, kept while there are copies of it.
PUBLICATION = _record(
    next=_I,
    number=_I,
    row=_I,
    content_class=_I,
    tree=_I,
    copies=_I,
    measured=_I,
    born=_F,
    lifetime=_F,
)
# Everything there is only one of. ``expiry``: 0 at subscriber, 1 at hop, 2 in queue.
CLOCK = _record(
    now=_F,
    warmup=_F,
    end=_F,
    next_sample=_F,
    sample_every=_F,
    samples=_I,
    expiry=_I,
    recording=_I,
    fan_out=_I,  # most copies that one step can make
    order=_I,  # copies put on their way so far
    in_flight=_I,
    passing_head=_I,  # copies that enter a broker at this very moment
    passing_tail=_I,
    free_copy=_I,
    free_copies=_I,
    copies=_I,
    most_copies=_I,
    free_publication=_I,
    published=_I,
    measured_alive=_I,
    taped_publications=_I,
    taped_hops=_I,
    taped_sends=_I,
    taped_deliveries=_I,
)


class State(NamedTuple):
    """What changes from event to event."""

    clock: Any  # one CLOCK
    stations: Any
    servers: Any
    copies: Any
    publications: Any
    arc_generation: Any
    keys: Any  # the tournament: publishers first, then servers
    winners: Any
    flight: Any  # LANDING
    streams: Any


# ---- what is counted ---------------------------------------------------------------------------

LOST_LINK, LOST_OVERFLOW, LOST_EXPIRED = 0, 1, 2
KERNEL_CAUSES = ("link", "overflow", "expired")

CELL = _record(delivered=_I, on_time=_I, delay=_F)
RECEIPT = _record(lost=_I, delivered=_I, on_time=_I, delay=_F)
STATION_COUNT = _record(arrivals=_I, served=_I, busy=_F, wait=_F, wait_square=_F)
ARC_COUNT = _record(sent=_I, lost=_I, delay=_F)


class Tally(NamedTuple):
    """Counts of measured events only, those born in the window; sums are in seconds."""

    published: Any  # [row]
    cells: Any  # CELL [cell]: handed to the plain subscribers of its broker
    losses: Any  # [cell, cause]: lost on the way to this broker, or there
    curves: Any  # [curve, bin]: delays of the plain deliveries
    receipts: Any  # RECEIPT [receiver × publishers + publisher]
    receiver_curves: Any  # [receiver, bin]
    stations: Any  # STATION_COUNT
    arcs: Any  # ARC_COUNT
    samples: Any  # copies in the system at regular moments


# ---- what is recorded --------------------------------------------------------------------------

TAPED_PUBLICATION = _record(number=_I, row=_I, born=_F, lifetime=_F)
TAPED_HOP = _record(number=_I, broker=_I, arc=_I, sent=_I, entered=_F, started=_F, left=_F)
TAPED_DELIVERY = _record(number=_I, content_class=_I, place=_I, received=_F)


class Tape(NamedTuple):
    """Buffers of what happened to measured events; empty when nothing is recorded."""

    publications: Any
    hops: Any
    sends: Any  # the arcs of each hop's copies, hop after hop
    deliveries: Any  # place: a broker (all plain subscribers there), or −1 − receiver


# ---- how a run comes back ----------------------------------------------------------------------

DONE, NEEDS_ROOM, TAPE_FULL = 0, 1, 2
