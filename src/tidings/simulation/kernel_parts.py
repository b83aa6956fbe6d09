"""Parts of the kernel that are compiled on their own: what only some systems do.

Each is a function of the address of the world and of two whole numbers, of which the second is
often not used. They are called as ``calls`` in :mod:`kernel_layout`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidings.kernels.compile import Part, apart
from tidings.simulation.kernel_brokers import finish_in_line, is_let_in, leaves_otherwise
from tidings.simulation.kernel_copies import settle
from tidings.simulation.kernel_forwarding import leave_among_failures
from tidings.simulation.kernel_groups import visit_group
from tidings.simulation.kernel_layout import FIRST_MOMENT, TO_SENDER, calls, tables, world_at
from tidings.simulation.kernel_members import ring, turn_member
from tidings.simulation.kernel_peers import approach, queue_up
from tidings.simulation.kernel_recovery import turn_away
from tidings.simulation.kernel_senders import visit_sender
from tidings.simulation.kernel_spreading import fill_tables, hear
from tidings.simulation.kernel_stations import joins_otherwise
from tidings.simulation.kernel_switches import change, start_failing, start_switches
from tidings.simulation.kernel_wanting import note_wanted


@apart
def start_part(address: Any, one: int, other: int) -> int:
    """Begin with all that is on and off by turns."""
    world = world_at(address)
    if world.switches_length > 0:
        start_switches(world)
    if world.churning:
        fill_tables(world)
    if world.failing:
        start_failing(world)
    return 0


@apart
def queue_up_part(address: Any, index: int, other: int) -> int:
    """A copy comes to a peer's queue."""
    queue_up(world_at(address), index)
    return 0


@apart
def note_wanted_part(address: Any, index: int, other: int) -> int:
    """Note who wants a publication."""
    note_wanted(world_at(address), index)
    return 0


@apart
def let_in_part(address: Any, index: int, other: int) -> int:
    """Whether a copy enters a broker."""
    return int(is_let_in(world_at(address), index))


@apart
def visit_part(address: Any, index: int, other: int) -> int:
    """Whether a copy was seen to at a place of a consumer group or of a sender."""
    world = world_at(address)
    if tables.places(world, tables.copies(world, index).place).kind >= TO_SENDER:
        visit_sender(world, index)
        return 1
    return int(visit_group(world, index))


@apart
def join_otherwise_part(address: Any, at: int, index: int) -> int:
    """Whether a copy joins a line of a station."""
    return int(joins_otherwise(world_at(address), at, index))


@apart
def finish_in_line_part(address: Any, number: int, other: int) -> int:
    """A line is done with a copy."""
    finish_in_line(world_at(address), number)
    return 0


@apart
def leave_otherwise_part(address: Any, index: int, other: int) -> int:
    """Whether a copy leaves no broker, or one among failures."""
    return int(leaves_otherwise(world_at(address), index))


@apart
def leave_among_failures_part(address: Any, index: int, other: int) -> int:
    """A broker is done with a copy, where things fail."""
    leave_among_failures(world_at(address), index)
    return 0


@apart
def approach_part(address: Any, publication: int, which: int) -> int:
    """An event sets out to a receiver: twice its number, and one more if the event has waited."""
    approach(world_at(address), publication, which // 2, which % 2 == 1)
    return 0


@apart
def land_otherwise_part(address: Any, cargo: int, other: int) -> int:
    """What lands is no copy, or its channel has failed meanwhile."""
    world = world_at(address)
    if cargo >= 0:
        turn_away(world, cargo)
    elif -1 - cargo >= FIRST_MOMENT:
        calls.ring(world, -1 - cargo - int(FIRST_MOMENT), 0)
    else:
        calls.hear(world, -1 - cargo, 0)
    return 0


@apart
def hear_part(address: Any, message: int, other: int) -> int:
    """A broker hears a message about a subscription."""
    hear(world_at(address), message)
    return 0


@apart
def ring_part(address: Any, number: int, other: int) -> int:
    """A moment has come that a group or a publisher waits for."""
    ring(world_at(address), number)
    return 0


@apart
def change_part(address: Any, slot: int, other: int) -> int:
    """A switch is due, a notice, a round of subscriptions or its end."""
    change(world_at(address), slot)
    return 0


@apart
def turn_member_part(address: Any, index: int, is_on: int) -> int:
    """A member of a group comes back, or crashes."""
    turn_member(world_at(address), index, is_on)
    return 0


@apart
def settle_part(address: Any, index: int, other: int) -> int:
    """Count what was noted of a publication."""
    settle(world_at(address), index)
    return 0


_BEYOND_BARE = {
    "start": start_part,
    "queue_up": queue_up_part,
    "let_in": let_in_part,
    "leave_otherwise": leave_otherwise_part,
    "approach": approach_part,
    "land_otherwise": land_otherwise_part,
    "change": change_part,
    "settle": settle_part,
}
_OF_GROUPS = {"visit": visit_part, "ring": ring_part, "turn_member": turn_member_part}
_OF_CHURN = {"hear": hear_part, "note_wanted": note_wanted_part}


def parts_of(numbers: Mapping[str, float], tables: Mapping[str, Any]) -> dict[str, Part]:
    """The parts that a world with these numbers and tables can come to call."""
    parts: dict[str, Part] = {}
    if not numbers["bare"]:
        parts |= _BEYOND_BARE
    if len(tables["groups"]) or len(tables["senders"]):
        parts |= _OF_GROUPS
    if numbers["churning"]:
        parts |= _OF_CHURN
    if numbers["failing"]:
        parts["leave_among_failures"] = leave_among_failures_part
    if numbers["sorting"]:
        parts["join_otherwise"] = join_otherwise_part
    if len(tables["lines"]):
        parts["finish_in_line"] = finish_in_line_part
    return parts
