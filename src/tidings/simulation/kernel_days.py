"""Publishers by the clock: rates by time of day, and schedules made before the run."""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.kernels.compile import primitive
from tidings.kernels.ziggurat import exponential
from tidings.simulation.kernel_tables import (
    day_at,
    day_rates_of,
    schedule_at,
    schedule_times_of,
    streams_of,
)


@primitive
def next_of_day(world: Any, index: int, stream: int) -> float:
    """When the next event of a day of rates comes, after now, in seconds; +inf: never again.

    The number of events expected until then is exponential of mean 1: it is used up slot by slot.
    """
    day, rates = day_at(world, index), day_rates_of(world)
    count = day.last - day.first
    left = exponential(streams_of(world), stream)
    time = world.now
    if day.repeats and left > day.total:
        days = int(left / day.total)
        left -= days * day.total
        time += days * count * day.slot
        day.position += days * count
    while day.repeats or day.position < count:
        rate = 0.0
        if day.repeats or day.position >= 0:
            rate = rates[day.first + day.position % count]
        end = world.day_start + (day.position + 1) * day.slot
        expected = rate * (end - time)
        if rate > 0.0 and expected >= left:
            return time + left / rate
        left -= max(expected, 0.0)
        time = max(time, end)
        day.position += 1
    return np.inf


@primitive
def next_by_clock(world: Any, publisher: Any) -> float:
    """When the next event of a day of rates or of a schedule comes, in seconds; +inf: never."""
    if publisher.day >= 0:
        return next_of_day(world, publisher.day, publisher.interval_stream)
    schedule = schedule_at(world, -2 - publisher.day)
    if schedule.position >= schedule.last:
        return np.inf
    due = schedule_times_of(world)[schedule.position]
    schedule.position += 1
    return due
