"""What the simulator's kernel works on: tables of records, all hung on one *world*.

The kernel knows only integers: brokers, arcs, classes, rows and the rest are positions. Tables of
the network never change during a run (interest excepted: subscriptions may come and go), tables of
the state change from event to event, tables of the tally only grow in value.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.calendar import LANDING, NODE
from tidings.simulation.kernel_memory import Layout

_I, _F = np.int64, np.float64


def _record(**fields: type) -> np.dtype[Any]:
    return np.dtype(list(fields.items()), align=True)


WHOLE, SMALL = _record(value=_I), _record(value=np.int32)
# A bin of a histogram of delays: how many, and between which the delays in it lie.
BIN = _record(value=_I, lowest=_F, highest=_F)

# ---- the network -------------------------------------------------------------------------------

LAW = _record(kind=_I, offset=_I)
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
ROW = _record(below=_F, publisher=_I, content_class=_I, tree=_I, lifetime=_I, published=_I)
# A broker: its stations [first, last), in the order an event passes them.
BROKER = _record(first_station=_I, last_station=_I)
# A channel: one direction of a link, or a client's link. ``instant``: no delay at all. A failure
# begins a new generation of the channel, and what was sent in an older one never arrives.
CHANNEL = _record(
    reliability=_F,
    instant=_I,
    delay=_I,
    loss_stream=_I,
    delay_stream=_I,
    target=_I,
    generation=_I,
    sent=_I,
    lost=_I,
    delay_sum=_F,
)
# A receiver: a subscriber that is followed on its own, because its link loses or delays events or
# because it has a lifetime of its own (a law, or −1).
RECEIVER = _record(channel=_I, lifetime=_I, lifetime_stream=_I)

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
    arrivals=_I,
    served=_I,
    busy=_F,
    wait=_F,
    wait_square=_F,
)
SERVER = _record(station=_I, serves=_I, next_idle=_I, left=_F)
# A copy: at (or on its way to) a broker, over a channel. ``stamp`` is the generation in which it
# was sent.
COPY = _record(
    next=_I, publication=_I, broker=_I, channel=_I, stamp=_I, entered=_F, arrived=_F, started=_F
)
# A publication: an event, kept as long as there are copies of it.
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

# ---- what is counted: of measured events only, those born in the window ------------------------

# A cell: a row of contents at a broker. What its plain subscribers got, and what was lost on the
# way to this broker or there, by cause.
CELL = _record(
    delivered=_I, on_time=_I, delay_sum=_F, lost_link=_I, lost_overflow=_I, lost_expired=_I
)
KERNEL_CAUSES = ("link", "overflow", "expired")
BY_LINK, BY_OVERFLOW, BY_EXPIRY = 0, 1, 2
# What one receiver got of one publisher's events.
RECEIPT = _record(lost=_I, delivered=_I, on_time=_I, delay_sum=_F)

# ---- what is recorded --------------------------------------------------------------------------

TAPED_PUBLICATION = _record(number=_I, row=_I, born=_F, lifetime=_F)
TAPED_HOP = _record(number=_I, broker=_I, channel=_I, sent=_I, entered=_F, started=_F, left=_F)
# ``place``: a broker (all plain subscribers there), or −1 − receiver.
TAPED_DELIVERY = _record(number=_I, content_class=_I, place=_I, received=_F)

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
    "broker_count": _I,
    "class_count": _I,
    "bin_count": _I,
    "receiver_count": _I,
    "fan_out": _I,  # most copies that one step can make
    "deliveries_at_once": _I,  # most deliveries that one step can make
    "order": _I,  # copies put on their way so far
    "in_flight": _I,
    "passing_head": _I,  # copies that enter a broker at this very moment, a linked list
    "passing_tail": _I,
    "free_copy": _I,
    "free_copies": _I,
    "free_publication": _I,
    "published": _I,
    "measured_alive": _I,
    "taped_publications": _I,
    "taped_hops": _I,
    "taped_sends": _I,
    "taped_deliveries": _I,
}
TABLES: dict[str, np.dtype[Any]] = {
    # the network
    "laws": LAW,
    "law_params": np.dtype(_F),
    "publishers": PUBLISHER,
    "rows": ROW,
    "brokers": BROKER,
    "channels": CHANNEL,  # of arcs, publishers, receivers, in this order
    "receivers": RECEIVER,
    "out_first": WHOLE,  # [tree × brokers + broker (+ 1)]: where its arcs begin in ...
    "out_arcs": WHOLE,  # ... this
    "interest": WHOLE,  # [arc × classes + class]: forwarded if above 0
    "cell_of": SMALL,  # [row × brokers + broker]; −1: it never comes there
    "curve_of": WHOLE,  # [broker × classes + class]: histogram of plain deliveries; −1: nobody
    "receivers_first": WHOLE,  # [broker × classes + class (+ 1)]: where its receivers begin in ...
    "receivers_of": WHOLE,  # ... this
    "bin_guess": np.dtype(_I),
    "bin_edges": np.dtype(_F),
    # the state
    "stations": STATION,
    "servers": SERVER,
    "copies": COPY,
    "publications": PUBLICATION,
    "nodes": NODE,  # the tournament: publishers first, then servers
    "flight": LANDING,
    "streams": np.dtype(np.uint64),  # four words each
    # the tally
    "cells": CELL,
    "curves": BIN,  # [curve × bins + bin]: delays of plain deliveries
    "receipts": RECEIPT,  # [receiver × publishers + publisher]
    "receiver_curves": BIN,  # [receiver × bins + bin]
    "samples": WHOLE,  # copies in the system at regular moments
    # the tape
    "tape_publications": TAPED_PUBLICATION,
    "tape_hops": TAPED_HOP,
    "tape_sends": WHOLE,  # the arcs of each hop's copies, hop after hop
    "tape_deliveries": TAPED_DELIVERY,
}
LAYOUT = Layout(NUMBERS, TABLES)

# How a run comes back.
DONE, NEEDS_ROOM, TAPE_FULL = 0, 1, 2
