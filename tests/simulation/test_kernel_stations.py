"""The gate of a station: its servers stop and go on with what was left of their work."""

from __future__ import annotations

import math

import numpy as np

from tidings.kernels.calendar import key_of
from tidings.kernels.compile import apart
from tidings.model.reading import loads
from tidings.simulation.kernel_layout import DONE, world_at
from tidings.simulation.kernel_run import run
from tidings.simulation.kernel_stations import close_gate, open_gate
from tidings.simulation.network import compile_system
from tidings.simulation.world import Window, make_world

SYSTEM = """
tidings: 1
brokers: {hub: {service: 3s, servers: 2}}
publishers: {p: {at: hub, every: 1s, content: {event: {k: 1}}}}
subscribers: {s: {at: hub, wants: {}}}
"""


@apart
def _close(address, one, other):
    close_gate(world_at(address), 0)
    return 0


@apart
def _open(address, one, other):
    open_gate(world_at(address), 0)
    return 0


def _run_until(world, time):
    """Let the world run until a moment, by a measured window that ends there with nothing in it."""
    world.record[0].warmup = time
    world.record[0].end = time
    assert world.run(run) == DONE
    world.record[0].now = time


def test_a_closed_gate_keeps_what_is_left_of_the_work():
    compiled_system = compile_system(loads(SYSTEM))
    window = Window(warmup_s=0.0, end_s=1.0)
    world = make_world(compiled_system, window, 1, 0)
    first = key_of(world.tables["nodes"], 0)
    _run_until(world, first + 1.5)  # two copies in service: since 1.5 s and since 0.5 s
    due = [key_of(world.tables["nodes"], slot) for slot in (1, 2)]
    assert np.allclose(sorted(due), [first + 3.0, first + 4.0])
    world.run(_close)
    assert [key_of(world.tables["nodes"], slot) for slot in (1, 2)] == [math.inf] * 2
    _run_until(world, first + 10.5)  # nine more have come, all wait
    assert int(world.tables["stations"].waiting[0]) == 9
    world.run(_open)
    later = [key_of(world.tables["nodes"], slot) for slot in (1, 2)]
    assert np.allclose(np.array(later) - np.array(due), 9.0)


def test_an_idle_station_behind_a_closed_gate_begins_when_it_opens():
    compiled_system = compile_system(loads(SYSTEM))
    world = make_world(compiled_system, Window(warmup_s=0.0, end_s=1.0), 1, 0)
    world.run(_close)
    first = key_of(world.tables["nodes"], 0)
    _run_until(world, first + 4.5)
    assert int(world.tables["stations"].waiting[0]) == 5
    world.run(_open)
    assert int(world.tables["stations"].waiting[0]) == 3
    due = [key_of(world.tables["nodes"], slot) for slot in (1, 2)]
    assert np.allclose(due, first + 7.5)
