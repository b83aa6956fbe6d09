"""Queues as their counters tell of them: rates, time in the queue, shares in time, with bounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tidings.characterisation.statistics import BATCHES, sums_at
from tidings.model import json_text
from tidings.model.arrays import Floats
from tidings.model.delay_grid import BINS
from tidings.model.standard_errors import batch_share_se, ratio_se


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelCounts:
    """What Spark counted of levels: its tables, as :mod:`count.levels` describes them."""

    levels: pd.DataFrame
    polls: pd.DataFrame
    curves: pd.DataFrame
    deadlines: pd.DataFrame
    drops: pd.DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class InTime:
    """A share of events that left within a time, between which it must lie, and of how many."""

    share: float
    standard_error: float
    low: float
    high: float
    events: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Queue:
    """What two counters tell of a queue; times are from entry to departure, in seconds.

    ``delays`` has a histogram on the delay grid of the times drawn, of the least and of the most
    that they can be. ``busy_per_s`` is how fast it is worked off, from ``busy_events`` departures.
    """

    name: str
    rate_per_s: float
    rate_se: float
    events: int
    mean_s: float
    mean_se_s: float
    least_mean_s: float
    most_mean_s: float
    in_time: Mapping[float, InTime]
    delays: Mapping[str, Floats]
    polls: int
    apart_s: float
    resets: int
    busy_per_s: float
    busy_events: int
    stalls: int
    stalled_s: float
    redelivered: float  # share of the events handed out again
    dropped: Mapping[str, float]  # share of the events, by cause

    @property
    def bound_s(self) -> float:
        """How far off the mean can be at most, for what happened between polls, in seconds."""
        return (self.most_mean_s - self.least_mean_s) / 2.0


def read_queues(counts: LevelCounts) -> dict[str, Queue]:
    """Read every queue of which two polls can be compared, by name."""
    return {
        str(name): _queue(str(name), rows, counts)
        for name, rows in counts.levels.groupby("queue")
        if rows["seconds"].sum() > 0
    }


def _queue(name: str, rows: pd.DataFrame, counts: LevelCounts) -> Queue:
    polls = counts.polls[counts.polls["queue"] == name]
    entered, done, waiting = (
        sums_at(rows, column, (BATCHES,), rows["batch"])
        for column in ("entered", "done", "waiting")
    )
    # Partitions are polled side by side: the queue was watched as long as each of them.
    watched_s = sums_at(rows, "seconds", (BATCHES,), rows["batch"]) / len(polls)
    events = float(entered.sum())
    flow = np.maximum(done, entered) if done.sum() > entered.sum() else entered
    through = max(events, 1.0)
    busy = polls[polls["busy_events"] > 0]
    return Queue(
        name=name,
        rate_per_s=events / float(watched_s.sum()),
        rate_se=float(ratio_se(entered, watched_s)),
        events=int(events),
        mean_s=float(waiting.sum()) / through,
        mean_se_s=float(ratio_se(waiting, flow)),
        least_mean_s=float(rows["least_waiting"].sum()) / through,
        most_mean_s=float(rows["most_waiting"].sum()) / through,
        in_time=_in_time(counts.deadlines[counts.deadlines["queue"] == name]),
        delays=_delays(counts.curves[counts.curves["queue"] == name]),
        polls=int(polls["polls"].sum()),
        apart_s=float(polls["apart_s"].max()),
        resets=int(polls["resets"].sum()),
        # Partitions are worked off side by side.
        busy_per_s=float(busy["busy_per_s"].mean()) * len(polls) if len(busy) else math.nan,
        busy_events=int(polls["busy_events"].sum()),
        stalls=int(polls["stalls"].sum()),
        stalled_s=float(polls["stalled_s"].sum()),
        redelivered=float(rows["redelivered"].fillna(0).sum()) / through,
        dropped={
            cause: min(number / through, 1.0)
            for cause, number in _dropped(counts.drops[counts.drops["queue"] == name]).items()
        },
    )


def _in_time(rows: pd.DataFrame) -> dict[float, InTime]:
    shares = {}
    for within_s, part in rows.groupby("within_s"):
        events, on_time = (
            sums_at(part, column, (BATCHES,), part["batch"]) for column in ("events", "on_time")
        )
        total = float(events.sum())
        if total > 0:
            shares[float(str(within_s))] = InTime(
                share=float(on_time.sum()) / total,
                standard_error=float(batch_share_se(on_time, events)),
                low=float(part["surely"].sum()) / total,
                high=min(float(part["maybe"].sum()) / total, 1.0),
                events=total,
            )
    return shares


def _delays(rows: pd.DataFrame) -> dict[str, Floats]:
    return {
        str(statistic): sums_at(part, "events", (BINS,), part["bin"])
        for statistic, part in rows.groupby("statistic")
    }


def _dropped(rows: pd.DataFrame) -> Counter[str]:
    """Count what was dropped by cause, over all times between resets."""
    dropped: Counter[str] = Counter()
    for first, last in zip(rows["first"], rows["last"], strict=True):
        before, after = _causes(first), _causes(last)
        for cause, number in after.items():
            dropped[cause] += max(number - before.get(cause, 0), 0)
    return +dropped


def _causes(text: object) -> dict[str, int]:
    """Read counts by cause in JSON; nothing where it is none.

    >>> _causes('{"expired":3,"odd":-1}'), _causes("[")
    ({'expired': 3}, {})
    """
    try:
        document = json_text.parse(str(text))
    except ValueError:
        return {}
    if not isinstance(document, dict):
        return {}
    return {str(k): v for k, v in document.items() if type(v) is int and v >= 0}
