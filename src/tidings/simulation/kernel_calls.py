"""Calls of parts of the kernel that are compiled on their own, and only where they are needed.

What every system does is compiled as one. What only some do (failures, peers, groups, lines) is
called by address: plain systems then need not wait for it to be compiled. Each of these is called
with (world, one, other), two whole numbers that mean what :mod:`kernel_parts` says.
"""

from __future__ import annotations

from tidings.simulation.kernel_layout import LAYOUT

call_start = LAYOUT.part("start")
call_queue_up = LAYOUT.part("queue_up")
call_note_wanted = LAYOUT.part("note_wanted")
call_let_in = LAYOUT.part("let_in")
call_visit = LAYOUT.part("visit")
call_join_otherwise = LAYOUT.part("join_otherwise")
call_finish_in_line = LAYOUT.part("finish_in_line")
call_leave_otherwise = LAYOUT.part("leave_otherwise")
call_leave_among_failures = LAYOUT.part("leave_among_failures")
call_approach = LAYOUT.part("approach")
call_land_otherwise = LAYOUT.part("land_otherwise")
call_hear = LAYOUT.part("hear")
call_ring = LAYOUT.part("ring")
call_change = LAYOUT.part("change")
call_turn_member = LAYOUT.part("turn_member")
call_settle = LAYOUT.part("settle")
