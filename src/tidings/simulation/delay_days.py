"""Delays that follow the time of day, as the kernel's tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tidings.kernels.records import make_records
from tidings.model.daily_delays import DailyDelays
from tidings.simulation import kernel_layout as layout


def delay_day_tables(days: Iterable[DailyDelays | None]) -> dict[str, Any]:
    """Lay out the days of delays, one after another; None, which stands first, has no row."""
    rows: list[tuple[float, int, int]] = []
    times: list[float] = []
    for day in days:
        if day is not None:
            rows.append((day.slot_s, len(times), len(times) + len(day.times)))
            times += day.times
    return {
        "delay_days": make_records(layout.DELAY_DAY, rows),
        "delay_times": np.array(times, dtype=np.float64),
    }
