"""Queues as their counters tell of them: rates, time in the queue, shares in time, with bounds."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tidings.characterisation.statistics import BATCHES, sums_at
from tidings.model import json_text
from tidings.model.arrays import Floats
from tidings.model.delay_grid import BINS
from tidings.model.standard_errors import batch_share_se, ratio_se, share_se

# What shares of a queue's events are called: the last word of their paths.
REDELIVERED, DROPPED = "redelivered", "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelCounts:
    """What Spark counted of levels: its tables, as :mod:`count.levels` describes them."""

    levels: pd.DataFrame
    polls: pd.DataFrame
    curves: pd.DataFrame
    deadlines: pd.DataFrame
    ends: pd.DataFrame


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counters:
    """How far a queue's counters went in each of some batches of equal length.

    ``again`` are events handed out again, None where nobody counted them; ``dropped`` are those
    dropped, by cause.
    """

    polls: int
    from_ns: int
    until_ns: int
    entered: Floats
    again: Floats | None
    dropped: Mapping[str, Floats]

    @property
    def events(self) -> int:
        """How many entered."""
        return int(self.entered.sum())

    @property
    def freedom(self) -> int:
        """How many degrees of freedom standard errors of shares have."""
        return int((self.entered > 0).sum()) - 1

    def shares(self) -> Iterator[tuple[str, float, float, float]]:
        """Yield shares of events: of what, the share, its standard error, its spread by batches."""
        counts = {} if self.again is None else {REDELIVERED: self.again}
        counts |= {f"{cause}.{DROPPED}": each for cause, each in self.dropped.items()}
        for what, each in counts.items():
            share = float(each.sum()) / max(self.events, 1)
            error = float(np.fmax(ratio_se(each, self.entered), _share_se(each, self.entered)))
            filled = self.entered > 0
            spread = float(np.std(each[filled] / self.entered[filled])) if filled.any() else 0.0
            yield what, share, error, spread


@dataclass(frozen=True, slots=True, kw_only=True)
class InTime:
    """A share of events that left within a time, between which it must lie, and of how many."""

    share: float
    standard_error: float
    low: float
    high: float
    events: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountedQueue:
    """What two counters tell of a queue; times are from entry to departure, in seconds.

    ``delays`` has a histogram on the delay grid of the times drawn, of the least and of the most
    that they can be. ``busy_per_s`` is how fast it is worked off, from ``busy_events`` departures,
    between two polls no slower and no faster than ``slowest_per_s`` and ``fastest_per_s``.
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
    slowest_per_s: float
    fastest_per_s: float
    busy_events: int
    stalls: int
    stalled_s: float
    counters: Counters
    redelivered: float | None  # share of the events handed out again; None: not counted
    dropped: Mapping[str, float]  # share of the events, by cause

    @property
    def bound_s(self) -> float:
        """How far off the mean can be at most, for what happened between polls, in seconds."""
        return (self.most_mean_s - self.least_mean_s) / 2.0


def read_queues(counts: LevelCounts) -> dict[str, CountedQueue]:
    """Read every queue of which two polls can be compared, by name."""
    return {
        str(name): _queue(str(name), rows, counts)
        for name, rows in counts.levels.groupby("queue")
        if rows["seconds"].sum() > 0
    }


def _queue(name: str, rows: pd.DataFrame, counts: LevelCounts) -> CountedQueue:
    polls = counts.polls[counts.polls["queue"] == name]
    counters = read_counters(counts.ends[counts.ends["queue"] == name])[name]
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
    return CountedQueue(
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
        **{
            name: float(busy[name].mean()) * len(polls) if len(busy) else math.nan
            for name in ("busy_per_s", "slowest_per_s", "fastest_per_s")
        },
        busy_events=int(polls["busy_events"].sum()),
        stalls=int(polls["stalls"].sum()),
        stalled_s=float(polls["stalled_s"].sum()),
        counters=counters,
        redelivered=None if counters.again is None else float(counters.again.sum()) / through,
        dropped={
            cause: min(float(number.sum()) / through, 1.0)
            for cause, number in counters.dropped.items()
            if number.sum() > 0
        },
    )


def read_counters(ends: pd.DataFrame) -> dict[str, Counters]:
    """Read how far the counters of each queue went, by its name, in batches of equal length.

    What lies between the last poll of one batch and the first of the next belongs to the later one,
    unless a counter went down or nobody watched in between.
    """
    if ends.empty:
        return {}
    rows = ends.sort_values(["queue", "part", "first_ns"], ignore_index=True)
    goes_on = _goes_on(rows, ["queue", "part", *({"stretch"} & set(rows.columns))])
    run = (~goes_on).cumsum()
    last = [name for name in rows if name.startswith("last_")]
    # A poll may not tell all of it: what was told last is what it was.
    before = rows[last].groupby(run).ffill().groupby(run).shift()
    grown = pd.DataFrame({"queue": rows["queue"]})
    for name in ("entered", "redelivered"):
        within = rows[f"last_{name}"] - rows[f"first_{name}"]
        between = rows[f"first_{name}"] - before[f"last_{name}"]
        grown[name] = (within.fillna(0).clip(0) + between.fillna(0).clip(0)).astype(float)
    first_ns, last_ns = rows["first_ns"].min(), rows["last_ns"].max()
    width_ns = max(-(-(last_ns - first_ns + 1) // BATCHES), 1)
    grown["batch"] = (rows["last_ns"] - first_ns) // width_ns
    drops = _drops(rows, before["last_dropped"])
    queues = {}
    for name, own in grown.groupby("queue"):
        entered, again = (
            sums_at(own, column, (BATCHES,), own["batch"]) for column in ("entered", "redelivered")
        )
        dropped: dict[str, Floats] = {}
        for row in own.index.intersection(list(drops)):
            for cause, number in drops[row].items():
                counts = dropped.setdefault(cause, np.zeros(BATCHES))
                counts[int(own["batch"][row])] += number
        queues[str(name)] = Counters(
            polls=int(rows["polls"][own.index].sum()),
            from_ns=int(first_ns),
            until_ns=int(last_ns),
            entered=entered,
            again=again if rows["last_redelivered"][own.index].notna().any() else None,
            dropped=dropped,
        )
    return queues


def coarser_ends(ends: pd.DataFrame) -> pd.DataFrame:
    """Reduce ends to one row for each run of a batch: what went on without a reset is one run."""
    rows = ends.sort_values(["queue", "part", "first_ns"], ignore_index=True)
    owner = ["queue", "part", "batch"]
    rows["run"] = (~_goes_on(rows, owner)).groupby([rows[each] for each in owner]).cumsum()
    how = {
        name: "sum" if name == "polls" else name.partition("_")[0]
        for name in rows.columns
        if name not in (*owner, "run")
    }
    return rows.groupby([*owner, "run"], as_index=False).agg(how)[list(ends.columns)]


def _goes_on(rows: pd.DataFrame, owner: list[str]) -> pd.Series:
    """Test whether each of some rows in order goes on where the one before it ended.

    It does not where that is of another owner, and where a counter went down: then it was reset.
    """
    before = rows.groupby(owner, sort=False)[["last_entered", "last_done"]].shift()
    return (rows["first_entered"] >= before["last_entered"]) & (
        rows["first_done"] >= before["last_done"]
    )


def _share_se(hits: Floats, trials: Floats) -> float:
    """Compute the standard error of single trials; an event may be handed out many times."""
    return float(share_se(min(hits.sum(), trials.sum()), trials.sum()))


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


def _drops(rows: pd.DataFrame, before: pd.Series) -> dict[int, Counter[str]]:
    """Count what was dropped by cause, by row, since what it was before and in the row itself."""
    drops = {}
    for row in np.flatnonzero(rows["last_dropped"].notna()):
        start = before[row] if isinstance(before[row], str) else rows["first_dropped"][row]
        known, counts = _causes(start), Counter[str]()
        for cause, number in _causes(rows["last_dropped"][row]).items():
            counts[cause] += max(number - known.get(cause, 0), 0)
        drops[int(row)] = counts
    return drops


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
