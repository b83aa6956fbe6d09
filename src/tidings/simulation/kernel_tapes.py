"""What is put on the tape while a run is recorded; the loop has made sure that there is room."""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import primitive
from tidings.simulation.kernel_layout import tables


@primitive
def tape_send(world: Any, arc: int) -> None:
    """Record that a copy of the event at hand is sent over an arc; its hop is recorded next."""
    tables.tape_sends(world, world.taped_sends).value = arc
    world.taped_sends += 1


@primitive
def tape_hop(world: Any, copy: Any, channel: int, first_send: int) -> None:
    """Record that a broker is done with a copy, which came over a channel."""
    hop = tables.tape_hops(world, world.taped_hops)
    world.taped_hops += 1
    hop.number = tables.publications(world, copy.publication).number
    hop.broker = copy.place
    hop.channel = channel
    hop.sent = world.taped_sends - first_send
    hop.entered = copy.entered
    hop.started = copy.started
    hop.left = world.now


@primitive
def tape_delivery(world: Any, publication: Any, place: int, received: float) -> None:
    """Record a delivery to all plain subscribers of a broker, or to one receiver."""
    delivery = tables.tape_deliveries(world, world.taped_deliveries)
    world.taped_deliveries += 1
    delivery.number = publication.number
    delivery.content_class = publication.content_class
    delivery.place = place
    delivery.received = received
    delivery.started = -1.0
    delivery.member = -1
    delivery.queue = -1


@primitive
def tape_handling(world: Any, taped: int, started: float, member: int, queue: int) -> None:
    """Record since when, by whom and from where the last delivery was handled, if it is new.

    It is, if fewer were ``taped`` before.
    """
    if world.taped_deliveries > taped:
        delivery = tables.tape_deliveries(world, world.taped_deliveries - 1)
        delivery.started = started
        delivery.member = member
        delivery.queue = queue


@primitive
def tape_turn(world: Any, what: int, is_on: int) -> None:
    """Record how a component or a peer is from now on."""
    turn = tables.tape_turns(world, world.taped_turns)
    world.taped_turns += 1
    turn.what = what
    turn.is_on = is_on
    turn.turned = world.now


@primitive
def tape_learnt(world: Any, piece: int, broker: int, since: float) -> None:
    """Record that a broker has heard of a piece."""
    row = tables.tape_learnt(world, world.taped_learnt)
    world.taped_learnt += 1
    row.piece = piece
    row.broker = broker
    row.since = since
    row.learnt = world.now
