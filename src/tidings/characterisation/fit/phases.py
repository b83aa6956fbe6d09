"""Publishers that keep the beat of a clock, and who shares one with whom."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tidings.model.arrays import Complexes, Floats

LEAST_EVENTS, LEAST_BATCHES = 100, 8
STEADY = 0.9  # length of the mean of phases on the unit circle: 1 where all are the same
NEAR = 0.02  # part of the mean interval within which the period is sought
TRIES = 200_000  # periods that are tried at most
SAME = 0.1  # part of a period by which beats of one clock may drift apart in the whole time


@dataclass(frozen=True, kw_only=True, eq=False)
class Beat:
    """The beat that a publisher keeps: its period, and moments at which it published, in seconds.

    Moments are the first and last ones of batches, since the first of anybody.
    """

    publisher: str
    period_s: float
    moments_s: Floats

    @property
    def beats(self) -> float:
        """How often it beats in the whole time."""
        return float(np.ptp(self.moments_s)) / self.period_s

    def phase(self, period_s: float) -> tuple[float, float]:
        """Compute the offset to the beat of a clock and standard deviation about it, in seconds.

        The deviation is infinite where the moments keep no such beat.
        """
        mean = complex(_mean_turn(self.moments_s, np.array([period_s]))[0])
        offset_s = float(np.angle(mean)) / (2.0 * math.pi) * period_s % period_s
        if abs(mean) < STEADY:
            return offset_s, math.inf
        spread = math.sqrt(max(-2.0 * math.log(min(abs(mean), 1.0)), 0.0))
        return offset_s, spread / (2.0 * math.pi) * period_s


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedClock:
    """A clock that several publishers keep: its period, and who comes how long after its beat."""

    period_s: float
    offsets_s: Mapping[str, float]
    jitters_s: Mapping[str, float]  # standard deviations about the beat

    @property
    def widest_s(self) -> float:
        """The shortest time in which all of them publish, in seconds."""
        at_s = np.sort(list(self.offsets_s.values()))
        gaps_s = np.diff(np.append(at_s, at_s[0] + self.period_s))
        return float(self.period_s - gaps_s.max())


def find_beats(ends: pd.DataFrame, mean_interval_s: Mapping[str, float]) -> list[Beat]:
    """Find who keeps a beat, from the first and last moments of every batch.

    Phases of moments that independent intervals lead to wander off; those of a clock stay.
    """
    beats = []
    origin_ns = int(ends["first_ns"].min()) if len(ends) else 0
    for publisher, rows in ends.groupby("publisher"):
        interval_s = mean_interval_s.get(str(publisher))
        enough = rows["events"].sum() >= LEAST_EVENTS and len(rows) >= LEAST_BATCHES
        if interval_s and enough:
            moments = np.concatenate([rows["first_ns"], rows["last_ns"]]).astype(np.int64)
            moments_s = (moments - origin_ns) / 1e9
            period_s = _period(moments_s, interval_s)
            beat = Beat(publisher=str(publisher), period_s=period_s, moments_s=moments_s)
            beats += [beat] if math.isfinite(beat.phase(period_s)[1]) else []
    return beats


def _period(moments_s: Floats, interval_s: float) -> float:
    """Seek the period near the mean interval at which moments agree best in phase, in seconds."""
    span_s = float(np.ptp(moments_s))
    # Phases at both ends of the time move by an eighth of a turn from one try to the next.
    count = min(int(16 * NEAR * span_s / interval_s) + 3, TRIES) | 1
    tried_s = interval_s * np.linspace(1.0 - NEAR, 1.0 + NEAR, count)
    some = np.array_split(tried_s, count // 4096 + 1)
    best_s = tried_s[np.concatenate([np.abs(_mean_turn(moments_s, s)) for s in some]).argmax()]
    finer_s = best_s * (1.0 + np.linspace(-1.0, 1.0, 401) * interval_s / (4.0 * span_s))
    return float(finer_s[np.abs(_mean_turn(moments_s, finer_s)).argmax()])


def _mean_turn(moments_s: Floats, periods_s: Floats) -> Complexes:
    """Compute the mean of moments on the circle of each period."""
    turns: Complexes = np.exp(2j * np.pi * (moments_s[None, :] / periods_s[:, None])).mean(axis=1)
    return turns


def shared_clocks(beats: Iterable[Beat]) -> list[SharedClock]:
    """Find the clocks that two or more publishers keep together over the whole time."""
    groups: list[list[Beat]] = []
    for beat in sorted(beats, key=lambda each: each.period_s):
        if groups and _same(groups[-1][0], beat):
            groups[-1].append(beat)
        else:
            groups.append([beat])
    clocks = []
    for group in groups:
        period_s = float(np.mean([each.period_s for each in group]))
        phases = {each.publisher: each.phase(period_s) for each in group}
        kept = {name: phase for name, phase in phases.items() if math.isfinite(phase[1])}
        if len(kept) > 1:
            offsets_s = {name: phase[0] for name, phase in kept.items()}
            jitters_s = {name: phase[1] for name, phase in kept.items()}
            clocks.append(SharedClock(period_s=period_s, offsets_s=offsets_s, jitters_s=jitters_s))
    return clocks


def _same(one: Beat, other: Beat) -> bool:
    apart_s = abs(one.period_s - other.period_s) * max(one.beats, other.beats)
    return apart_s < SAME * one.period_s
