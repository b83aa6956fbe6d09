"""How far counts of events vary over lengths of time from milliseconds to hours, by publisher."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tidings.characterisation.statistics import (
    BATCHES,
    INSTANTS,
    SCALE_SUMS,
    SCALES_NS,
    WHOLE_NS,
    ObservedWindow,
    sums_at,
)
from tidings.model.arrays import Bools, Floats

SCALES_S = np.array(SCALES_NS) / 1e9
LEAST_WINDOWS = 8  # of a length in a batch; longer ones are whole batches put together
LONG = 20.0  # mean intervals after which counts of a renewal stream vary by their c²
_SAMPLE = ("count", "total_s", "squares")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batches:
    """What was counted of one publisher in every batch of the window; a silent one has zeros."""

    publisher: str
    length_s: float  # of one batch
    columns: dict[str, Floats]
    squared_lengths: Floats  # of windows, in s²: [length, batch]

    @property
    def events(self) -> Floats:
        """Events in each batch."""
        return self.columns["events"]

    @property
    def total(self) -> float:
        """Events in all."""
        return float(self.events.sum())

    @property
    def rate_per_s(self) -> float:
        """Events per second over the whole window."""
        return self.total / (self.length_s * len(self.events))

    @property
    def felt_per_s(self) -> float:
        """Events per second at the time of an event: more than the mean rate, where it varies."""
        return float((self.events**2).sum()) / self.total / self.length_s

    @property
    def resolution_s(self) -> float:
        """The largest unit of which all times are whole multiples, in seconds; 0: none is."""
        whole = [name for name in WHOLE_NS if self.sum_of(name) == self.total]
        return WHOLE_NS[whole[-1]] / 1e9 if whole else 0.0

    def sum_of(self, column: str) -> float:
        """Sum a column over all batches."""
        return float(self.columns[column].sum())


def batches_of(intervals: pd.DataFrame, window: ObservedWindow) -> Iterator[Batches]:
    """Give the batches of every publisher, from the rows of the statistic of intervals."""
    ends, scales = (
        intervals[intervals["statistic"] == statistic] for statistic in ("ends", "scales")
    )
    if scales.empty:
        return
    count = BATCHES * (int(ends["batch"].max()) // BATCHES + 1)
    lengths = _squared_lengths(window, count)
    sums = dict(list(scales.groupby("publisher")))
    for publisher, rows in ends.groupby("publisher"):
        own = sums[publisher]
        columns = {
            name: sums_at(rows, name, (count,), rows["batch"]) for name in (*INSTANTS, *_SAMPLE)
        }
        columns |= {name: sums_at(own, name, (count,), own["batch"]) for name in SCALE_SUMS}
        yield Batches(
            publisher=str(publisher),
            length_s=window.seconds / count,
            columns=columns,
            squared_lengths=lengths,
        )


def _squared_lengths(window: ObservedWindow, count: int) -> Floats:
    """Sum the squared lengths, in s², of the windows of each length: [length, batch].

    Windows begin at whole multiples of their length since 1970 and are cut at the ends of batches.
    """
    span_ns = window.until_ns - window.from_ns
    width = -(-span_ns // count)
    begins = window.from_ns + width * np.arange(count)
    ends = np.minimum(begins + width, window.until_ns)
    rows = []
    for scale_ns in SCALES_NS:
        first, last = -(-begins // scale_ns) * scale_ns, ends // scale_ns * scale_ns
        pieces = (first - begins) ** 2.0 + (ends - last) ** 2.0 + (last - first) * float(scale_ns)
        rows.append(np.where(last < first, (ends - begins) ** 2.0, pieces) / 1e18)
    return np.array(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    r"""Index of dispersion of counts, Var N(t) / E N(t), over lengths t in seconds.

    ``expected`` is the most that independent intervals allow (of ``scv`` c², with a standard
    error); ``score`` is by how many standard errors the measured curve is above that.
    """

    scales_s: Floats
    dispersion: Floats
    standard_error: Floats
    expected: Floats
    score: Floats
    scv: float
    scv_se: float

    @property
    def lasting(self) -> float:
        """The index over the longest length that was measured."""
        return float(self.dispersion[-1])


def curve_of(batches: Batches, renewal: float | None = None) -> Curve:
    r"""Measure the index of dispersion of one publisher, with jackknifed standard errors.

    With n events in windows of lengths l that are together as long as all the time T, and N events
    in all, it is :math:`I = \sum n^2/N - N \sum l^2/T^2`: of whole windows of length t,
    :math:`\sum l^2 = tT`. Windows of whole batches are put together from neighbours.
    ``renewal`` is what it tends to if intervals are independent; their c² if left out.
    """
    fine = [k for k, s in enumerate(SCALES_S) if LEAST_WINDOWS * s <= batches.length_s]
    squares = np.array([batches.columns[SCALE_SUMS[k]] for k in fine]).reshape(len(fine), -1)
    lengths, events, scales_s = batches.squared_lengths[fine], batches.events, SCALES_S[fine]
    time_s = np.full(len(events), batches.length_s)
    all_at_once = _indices(squares.sum(axis=1), events.sum(), lengths.sum(axis=1), time_s.sum())
    without_each = _indices(
        squares.sum(axis=1, keepdims=True) - squares,
        events.sum() - events,
        lengths.sum(axis=1, keepdims=True) - lengths,
        time_s.sum() - time_s,
    )
    scv, without = _scv(batches)
    scv_se = float(_jackknifed(without))
    long_s, coarse, coarse_se = coarse_indices(events, batches.length_s)
    dispersion = np.append(all_at_once, coarse)
    errors = np.append(_jackknifed(without_each), coarse_se)
    scales_s = np.append(scales_s, long_s)
    is_long = scales_s * batches.rate_per_s >= LONG
    expected = _expected(batches, scales_s, is_long, scv if renewal is None else renewal)
    # If nothing but chance is above, an index over m windows varies by √(2/m) of itself.
    windows = time_s.sum() / scales_s
    chance = expected * np.sqrt(2.0 / np.maximum(windows - 1.0, 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        score = (dispersion - expected) / np.hypot(chance, np.where(is_long, scv_se, 0.0))
    return Curve(
        scales_s=scales_s,
        dispersion=dispersion,
        standard_error=errors,
        expected=expected,
        score=np.nan_to_num(score),
        scv=scv,
        scv_se=scv_se,
    )


def _expected(batches: Batches, scales_s: Floats, is_long: Bools, limit: float) -> Floats:
    """Compute the most that independent intervals allow; it tends to a limit over long times."""
    # Counts are whole: even those of a clock differ by one.
    least = 1.0 / (scales_s * batches.rate_per_s)
    expected = np.where(is_long, np.maximum(limit, least), max(limit, 1.0))
    # Events of one unit of the clock fall together, whatever they do.
    unit_s = batches.resolution_s
    together: Floats = np.where(scales_s < unit_s, unit_s * batches.felt_per_s, 0.0)
    return expected + together


def _indices(squares: Floats, events: Floats, lengths: Floats, time_s: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        indices: Floats = squares / events - events * lengths / time_s**2
    return indices


def _scv(batches: Batches) -> tuple[float, Floats]:
    """Compute the squared coefficient of variation of intervals; and without each batch in turn."""
    count, total, squares = (batches.columns[name] for name in _SAMPLE)
    with np.errstate(divide="ignore", invalid="ignore"):
        whole = count.sum() * squares.sum() / total.sum() ** 2 - 1.0
        less = (count.sum() - count) * (squares.sum() - squares) / (total.sum() - total) ** 2 - 1.0
    return float(whole), less


def _jackknifed(without: Floats) -> Floats:
    """Compute standard errors from values without each batch in turn, along the last axis."""
    count = without.shape[-1]
    with np.errstate(invalid="ignore"):  # where all events are in one batch
        spread = without - without.mean(axis=-1, keepdims=True)
    error: Floats = np.sqrt((count - 1) / count * (spread**2).sum(axis=-1))
    return error


def coarse_indices(events: Floats, batch_s: float) -> tuple[Floats, Floats, Floats]:
    """Compute the index over one, two and four batches put together, and its standard error."""
    rows = []
    for size in (1, 2, 4):
        counts = events[: len(events) // size * size].reshape(-1, size).sum(axis=1)
        index = counts.var(ddof=1) / counts.mean()
        rows.append((size * batch_s, index, index * np.sqrt(2.0 / (len(counts) - 1))))
    lengths, indices, errors = np.array(rows).T
    return lengths, indices, errors
