"""Publishing times that are made before a run: recorded ones, by clocks, in batches, in bursts.

Whatever is not drawn interval by interval is laid out for the whole of a replication, in NumPy; the
kernel only reads what comes next. Who shares a record or a clock shares its random stream, so that
their times to each other stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidings.errors import InvalidInputError
from tidings.kernels.records import make_records
from tidings.kernels.streams import stream_states
from tidings.model.arrays import Floats, Ints
from tidings.model.laws import Law, residual
from tidings.model.publishing import BLOCKS, Burst, Publishing
from tidings.model.recorded_times import Record, recorded_times
from tidings.model.system import Publisher, System
from tidings.simulation import kernel_layout as layout

MOST_TIMES = 100_000_000  # of one publisher in one replication: eight bytes each
CLOCK_SPAN_S = 1e8  # over which the beat of a clock is random: far longer than any period
LATEST = 1.0 - 1e-9  # share of jitters that are looked back for


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """How a record comes again, in seconds of the simulation: its length, its blocks, its days."""

    length_s: float
    block_s: float
    cycle_s: float  # 0: it has none


def find_replays(system: System) -> tuple[Replay, ...]:
    """Find the records that publishers replay, each once."""
    replays = {}
    for publisher in system.publishers:
        publishing = publisher.publishes
        if publishing is not None and publishing.recorded is not None:
            record = recorded_times(publishing.recorded, publisher.name, publishing.length_s)
            block_s = block_length_s(publishing, record.length_s)
            replays[publishing] = Replay(
                length_s=record.length_s / publishing.speed,
                block_s=block_s / publishing.speed,
                cycle_s=(publishing.cycle_s or 0.0) / publishing.speed,
            )
    return tuple(replays.values())


def schedule_tables(system: System, until_s: float, seed: int, replication: int) -> dict[str, Any]:
    """Make the schedules of publishers that have one, in their order, with times in seconds."""
    return as_tables(
        publishing_times(each, until_s, seed, replication)
        for each in system.publishers
        if each.publishes is not None
    )


def as_tables(schedules: Iterable[Floats]) -> dict[str, Any]:
    """Lay out the times of publishers that have a schedule, in their order, for the kernel."""
    times = list(schedules)
    lasts = np.cumsum([len(each) for each in times])
    firsts = np.append(0, lasts)[: len(times)]
    return {
        "schedules": make_records(layout.SCHEDULE, list(zip(firsts, lasts, strict=True))),
        "schedule_times": np.concatenate([np.zeros(0), *times]),
    }


def publishing_times(publisher: Publisher, until_s: float, seed: int, replication: int) -> Floats:
    """Draw the publishing times of one replication, from 0 to ``until_s``, in seconds."""
    publishing = publisher.publishes
    assert publishing is not None
    expected = until_s * publisher.rate_per_s
    if expected > MOST_TIMES:
        raise InvalidInputError(
            f"publisher '{publisher.name}' would publish {expected:.3g} events in each "
            f"replication; wants at most {MOST_TIMES:.0e} of one with 'publishes': give a "
            "shorter duration, or fewer events"
        )

    def stream(entity: str, purpose: str) -> np.random.Generator:
        words = stream_states(seed, replication, [(entity, purpose)])[0]
        return np.random.default_rng([int(each) for each in words])

    own = f"publisher {publisher.name}"
    if publishing.recorded is not None:
        record = recorded_times(publishing.recorded, publisher.name, publishing.length_s)
        blocks = stream(f"recorded {publishing.recorded}", "blocks")
        slow_s = replayed(record, publishing, until_s * publishing.speed, blocks)
        return slow_s / publishing.speed
    if publishing.period_s is not None:
        clock = stream(f"clock {publishing.clock}" if publishing.clock else own, "phase")
        return _by_clock(publishing, until_s, clock, stream(own, "jitter"))
    rng = stream(own, "schedule")
    if publishing.bursts:
        parts = [_burst(each, until_s, rng) for each in publishing.bursts]
        count = rng.poisson(publishing.rate_per_s * until_s)
        return np.sort(np.concatenate([*parts, rng.uniform(0.0, until_s, count)]))
    assert publishing.every is not None
    sizes = np.array([int(size) for size, _ in publishing.batch])
    shares = np.array([share for _, share in publishing.batch])
    moments_s = _renewals(publishing.every, until_s, rng)
    drawn = rng.choice(sizes, len(moments_s), p=shares / shares.sum())
    return np.repeat(moments_s, drawn)


def replayed(
    record: Record, publishing: Publishing, until_s: float, rng: np.random.Generator
) -> Floats:
    """Replay recorded times, in seconds: from a random moment on, or in blocks drawn anew.

    Blocks begin anywhere and go on from the record's end with its beginning. With a ``cycle`` they
    begin at the moment of it that it is then.
    """
    length_s, twice = record.length_s, np.append(record.times_s, record.times_s + record.length_s)
    if publishing.replay == "loop":
        block_s = length_s
        starts_s = np.full(int(until_s / block_s) + 1, rng.uniform(0.0, length_s))
    else:
        block_s = block_length_s(publishing, length_s)
        starts_s = rng.uniform(0.0, 1.0, int(until_s / block_s) + 1)
        starts_s = _starts(starts_s, block_s, length_s, publishing.cycle_s)
    first = np.searchsorted(twice, starts_s)
    counts = np.searchsorted(twice, starts_s + block_s) - first
    places = _ranges(first, counts)
    begins_s = np.arange(len(starts_s)) * block_s
    times_s = twice[places] + np.repeat(begins_s - starts_s, counts)
    return times_s[times_s <= until_s]


def block_length_s(publishing: Publishing, length_s: float) -> float:
    """Compute how long the blocks are in which a record of this length comes again, in seconds."""
    if publishing.replay == "loop":
        return length_s
    return min(publishing.block_s or length_s / BLOCKS, length_s)


def _starts(shares: Floats, block_s: float, length_s: float, cycle_s: float | None) -> Floats:
    """Choose where in the record blocks begin, in seconds, from random numbers of [0, 1)."""
    if cycle_s is None:
        return shares * length_s
    phases_s = np.arange(len(shares)) * block_s % cycle_s
    choices = np.maximum(np.floor((length_s - block_s - phases_s) / cycle_s) + 1.0, 1.0)
    starts_s: Floats = (phases_s + np.floor(shares * choices) * cycle_s) % length_s
    return starts_s


def _ranges(first: Ints, counts: Ints) -> Ints:
    """List the indices first, first + 1, ... of every range, one after the other.

    >>> _ranges(np.array([5, 1]), np.array([2, 3])).tolist()
    [5, 6, 1, 2, 3]
    """
    before = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) + np.repeat(first - before, counts)


def _by_clock(
    publishing: Publishing, until_s: float, clock: np.random.Generator, jitter: np.random.Generator
) -> Floats:
    """Draw the times of events, in seconds: one with every beat of a clock, later by the jitter."""
    period_s = publishing.period_s
    assert period_s is not None
    # One shift for all periods of a clock, so that beats that fall together still do.
    first_s = (publishing.offset_s - clock.random() * CLOCK_SPAN_S) % period_s
    if publishing.jitter is None:
        return np.arange(first_s, until_s, period_s)
    latest_s = float(publishing.jitter.quantile(LATEST))
    beats_s = np.arange(first_s - np.ceil(latest_s / period_s) * period_s, until_s, period_s)
    late_s = np.sort(beats_s + publishing.jitter.sample(jitter, len(beats_s)))
    return late_s[(late_s >= 0.0) & (late_s <= until_s)]


def _burst(burst: Burst, until_s: float, rng: np.random.Generator) -> Floats:
    """Draw the times of events of a source that is on and off by turns, in seconds.

    They begin at a stationary moment.
    """
    begins_on = rng.random() < burst.share_on
    means_s = (burst.on_s, burst.off_s) if begins_on else (burst.off_s, burst.on_s)
    lengths_s = _filling(
        lambda count: rng.exponential(means_s, (count, 2)).ravel(), sum(means_s) / 2.0, until_s
    )
    begins_s = np.cumsum(lengths_s) - lengths_s
    on = slice(0 if begins_on else 1, None, 2)
    on_s = lengths_s[on]
    upto_s = np.cumsum(on_s)
    placed_s = np.sort(rng.uniform(0.0, upto_s[-1], rng.poisson(burst.rate_per_s * upto_s[-1])))
    which = np.minimum(np.searchsorted(upto_s, placed_s, side="right"), len(upto_s) - 1)
    times_s = begins_s[on][which] + placed_s - (upto_s - on_s)[which]
    return times_s[times_s <= until_s]


def _renewals(every: Law, until_s: float, rng: np.random.Generator) -> Floats:
    """Draw the moments of a renewal stream, from a stationary moment on, in seconds."""
    first_s = residual(every).sample(rng, 1)
    intervals_s = _filling(lambda count: every.sample(rng, count), every.mean_s, until_s)
    moments_s = np.cumsum(np.append(first_s, intervals_s))
    return moments_s[moments_s <= until_s]


def _filling(draw: Callable[[int], Floats], mean_s: float, until_s: float) -> Floats:
    """Draw random times, in seconds, as many as it takes to fill so many seconds."""
    count = int(1.1 * until_s / mean_s) + 16
    lengths_s = draw(count)
    while lengths_s.sum() < until_s:
        lengths_s = np.append(lengths_s, draw(count))
    return lengths_s
