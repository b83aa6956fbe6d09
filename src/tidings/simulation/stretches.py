"""Stretches of recorded publishing times, played once and in order: what would become of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidings.errors import UnstableError
from tidings.model.arrays import Floats, Ints
from tidings.model.recorded_times import recorded_times
from tidings.model.system import Publisher
from tidings.simulation.network import CompiledSystem
from tidings.simulation.schedules import Replay, as_tables, publishing_times
from tidings.simulation.tally import count_world, find_units
from tidings.simulation.world import Window, make_world, run_world

PARTS = 8  # of a record that are held against each other


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordStretch:
    """From where to where a record is played, as shares of its length, and how fast."""

    begin: float = 0.0
    end: float = 1.0
    speed: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What became of a stretch: events wanted and in time, by subscriber."""

    wanted: Floats
    on_time: Floats


def equal_parts(replay: Replay) -> list[RecordStretch]:
    """Give eighths of a record; fewer where only so few of whole cycles, such as weeks, fit.

    >>> weeks = Replay(length_s=26.0, block_s=1.0, cycle_s=1.0)
    >>> [round(26.0 * each.begin) for each in equal_parts(weeks)]
    [0, 4, 8, 12, 16, 20]
    """
    share = 1.0 / PARTS
    if replay.cycle_s:
        share = math.ceil(replay.length_s / PARTS / replay.cycle_s) * replay.cycle_s
        share /= replay.length_s
    count = math.floor(1.0 / share + 1e-9)
    return [RecordStretch(begin=n * share, end=(n + 1) * share) for n in range(count)]


def events_in(compiled: CompiledSystem, stretches: Sequence[RecordStretch]) -> Floats:
    """Count the recorded events of all publishers in each stretch of their records."""
    known = [each for each in compiled.system.publishers if _is_recorded(each)]
    return np.array([sum(_times_s(each, one).size for each in known) for one in stretches], float)


def play(
    compiled: CompiledSystem, stretch: RecordStretch, *, length_s: float, most_s: float, seed: int
) -> Played | None:
    """Play a stretch of a record of ``length_s``, for ``most_s`` at most; None: it overflows.

    Queues are empty when it begins. What is not recorded is drawn as in any replication.
    """
    until_s = min((stretch.end - stretch.begin) * length_s / stretch.speed, most_s)
    schedules = as_tables(
        _times_s(each, stretch, until_s)
        if _is_recorded(each)
        else publishing_times(each, until_s, seed, 0)
        for each in compiled.system.publishers
        if each.publishes is not None
    )
    window = Window(warmup_s=0.0, end_s=until_s)
    world = make_world(compiled, window, seed, 0, schedules=schedules)
    try:
        run_world(world, compiled, window)
    except UnstableError:
        return None
    units = find_units(compiled)
    counts = count_world(world, compiled, units)

    def of_subscribers(by_pair: Ints | Floats) -> Floats:
        by_unit = np.bincount(units.pair_unit, weights=by_pair, minlength=units.count)
        return by_unit.astype(np.float64)[units.of_subscriber]

    return Played(wanted=of_subscribers(counts.wanted), on_time=of_subscribers(counts.on_time))


def _is_recorded(publisher: Publisher) -> bool:
    return publisher.publishes is not None and publisher.publishes.recorded is not None


def _times_s(publisher: Publisher, stretch: RecordStretch, until_s: float = math.inf) -> Floats:
    """Compute when a publisher publishes in a period of its record, in simulated seconds."""
    publishing = publisher.publishes
    assert publishing is not None
    assert publishing.recorded is not None
    record = recorded_times(publishing.recorded, publisher.name, publishing.length_s)
    begin_s, end_s = stretch.begin * record.length_s, stretch.end * record.length_s
    first, last = np.searchsorted(record.times_s, [begin_s, end_s])
    times_s = (record.times_s[first:last] - begin_s) / (publishing.speed * stretch.speed)
    return times_s[times_s <= until_s]
