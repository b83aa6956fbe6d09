"""Moments that somebody waits for: a group for the end of a pause, or that its members lingered.

And a publisher that its batch has lingered.
"""

from __future__ import annotations

from typing import Any

from tidings.kernels.compile import primitive
from tidings.simulation.kernel_groups import hand_out
from tidings.simulation.kernel_members import end_pause
from tidings.simulation.kernel_senders import end_linger
from tidings.simulation.kernel_tables import group_at


@primitive
def ring(world: Any, number: int) -> None:
    """A moment has come."""
    groups = world.groups_length
    if number < groups:
        end_pause(world, number)
    elif number < 2 * groups:
        group_at(world, number - groups).is_timed = 0
        hand_out(world, number - groups)
    else:
        end_linger(world, number - 2 * groups)
