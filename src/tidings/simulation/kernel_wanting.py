"""What subscribers that come and go want, and why they miss what they miss.

An event is wanted by whoever is subscribed when it is published, and is missed if it has not
arrived when that stay ends. Where each event is, or was last, is noted broker by broker: once no
copy of it is left, that tells why those who still wait for it will wait in vain.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.calendar import key_of
from tidings.kernels.compile import inlined, merged, primitive
from tidings.simulation.kernel_layout import (
    BY_BROKER_DOWN,
    BY_DEAD_LETTER,
    BY_EXPIRY,
    BY_EXPIRY_IN_BUFFER,
    BY_LINK,
    BY_NOT_KNOWN,
    BY_NOT_RESTORED,
    BY_OVERFLOW,
    BY_OVERLOAD,
    BY_PATH_DOWN,
    BY_UNSUBSCRIBED,
    LOST_THERE,
    NOT_THERE,
    arrays,
    tables,
)


@merged
def note_wanted(world: Any, index: int) -> None:
    """Note who is there and wants a measured event that is published now, and until when."""
    publication = tables.publications(world, index)
    publication.noted |= 1
    for broker in range(world.broker_count):
        tables.passages(world, index * world.broker_count + broker).value = NOT_THERE
    at = publication.content_class
    publisher = tables.rows(world, publication.row).publisher
    for position in range(
        tables.churners_first(world, at).value, tables.churners_first(world, at + 1).value
    ):
        churner = tables.churners_of(world, position).value
        switch = world.first_churner + churner
        until = 0.0
        if tables.switches(world, switch).is_on:
            until = key_of(arrays.nodes(world), world.first_switch + switch)
            receipt = tables.churners(world, churner).receiver * world.publisher_count + publisher
            tables.receipts(world, receipt).wanted += 1
        tables.wanted(world, index * world.watched_count + churner).value = until


@primitive
def note_passage(world: Any, index: int) -> None:
    """Note that a broker is done with a copy, and matches it now."""
    copy = tables.copies(world, index)
    if tables.publications(world, copy.publication).measured:
        at = copy.publication * world.broker_count + copy.place
        tables.passages(world, at).value = world.now


@primitive
def stop_wanting(world: Any, index: int, churner: int) -> float:
    """What becomes of an event for a churner is decided: the end of its stay, 0 if not wanted."""
    if not tables.publications(world, index).measured:
        return 0.0
    wanted = tables.wanted(world, index * world.watched_count + churner)
    until = wanted.value
    wanted.value = 0.0
    return until


@merged
def count_missed(world: Any, index: int) -> None:
    """Count, with its cause, what churners miss of an event of which no copy is left."""
    publication = tables.publications(world, index)
    at = publication.content_class
    publisher = tables.rows(world, publication.row).publisher
    for position in range(
        tables.churners_first(world, at).value, tables.churners_first(world, at + 1).value
    ):
        churner = tables.churners_of(world, position).value
        until = tables.wanted(world, index * world.watched_count + churner).value
        if until > 0.0:
            record = tables.churners(world, churner)
            cause = why_missed(world, index, record.home, until)
            at_receipt = record.receiver * world.publisher_count + publisher
            count_cause(tables.receipts(world, at_receipt), cause)


@inlined
def count_cause(receipt: Any, cause: int) -> None:
    """Count one event that a receiver missed, by its cause."""
    if cause == BY_LINK:
        receipt.lost += 1
    elif cause == BY_OVERFLOW:
        receipt.dropped += 1
    elif cause == BY_EXPIRY:
        receipt.expired += 1
    elif cause == BY_BROKER_DOWN:
        receipt.broker_down += 1
    elif cause == BY_PATH_DOWN:
        receipt.path_down += 1
    elif cause == BY_EXPIRY_IN_BUFFER:
        receipt.expired_in_buffer += 1
    elif cause == BY_NOT_RESTORED:
        receipt.not_restored += 1
    elif cause == BY_NOT_KNOWN:
        receipt.not_known += 1
    elif cause == BY_DEAD_LETTER:
        receipt.dead_letter += 1
    elif cause == BY_OVERLOAD:
        receipt.overloaded += 1
    else:
        receipt.unsubscribed += 1


@merged
def why_missed(world: Any, index: int, home: int, until: float) -> int:
    """Why an event did not come to a home: from there back to where it was last."""
    row = tables.publications(world, index).row
    broker = home
    while broker >= 0:
        passage = tables.passages(world, index * world.broker_count + broker).value
        if passage <= LOST_THERE:
            return int(LOST_THERE - passage)
        if passage >= 0.0:
            return BY_NOT_KNOWN if passage < until else BY_UNSUBSCRIBED
        cell = tables.cell_of(world, row * world.broker_count + broker).value
        broker = tables.came_from(world, cell).value
    return BY_UNSUBSCRIBED
