"""Whether a publisher follows the time of day or the day of the week, and how."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from tidings.characterisation.statistics import WEEK_HOURS, ObservedWindow, sums_at
from tidings.model.arrays import Floats
from tidings.model.behaviour import DailyRates

HOUR_S, DAY_HOURS, WEEK_DAYS = 3600.0, 24, 7
LEAST_DAYS = 2.0  # below which a time of day is a stretch of time
LEAST_WEEKS = 2.0  # from which days of the week are told apart
SURPRISE = 1e-4  # chance of hours that are alike to seem to differ
FULL = 0.9  # share of an hour that must have been watched to count


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """Events per second by hour, UTC: of the day or, from its Thursday on, of the week."""

    per_s: Floats

    @property
    def rates(self) -> DailyRates:
        """The rates as a system file has them."""
        return DailyRates(slot_s=HOUR_S, per_s=tuple(map(float, self.per_s)))

    @property
    def by_hour(self) -> Floats:
        """Events per second by hour of the day, over all days of the week."""
        by_hour: Floats = self.per_s.reshape(-1, DAY_HOURS).mean(axis=0)
        return by_hour

    @property
    def busiest(self) -> int:
        """The hour of day in which most is published."""
        return int(self.by_hour.argmax())

    @property
    def peak(self) -> float:
        """How many times its mean rate a publisher has in its busiest hour of the day."""
        return float(self.by_hour.max() / self.by_hour.mean())

    @property
    def rise(self) -> float:
        """How many times the rate of the hour before the busiest hour of the day has."""
        before = float(self.by_hour[self.busiest - 1])
        return float(self.by_hour.max()) / before if before else float("inf")

    def share_within(self, hours: int) -> float:
        """Find the largest share of events that falls into so many hours of the day in a row."""
        twice = np.concatenate([self.by_hour, self.by_hour])
        sums = np.convolve(twice, np.ones(hours), mode="valid")
        return float(sums.max() / self.by_hour.sum())

    def expected(self, window: ObservedWindow, parts: int) -> Floats:
        """Compute the events expected in each of so many equal parts of a window without gaps."""
        hour_ns = int(HOUR_S * 1e9)
        first, last = window.from_ns // hour_ns, -(-window.until_ns // hour_ns)
        hours = np.arange(first, last)
        upto = np.append(0.0, np.cumsum(self.per_s[hours % len(self.per_s)] * HOUR_S))
        edges = np.linspace(window.from_ns, window.until_ns, parts + 1) / hour_ns - first
        within: Floats = np.diff(np.interp(edges, np.arange(len(upto)), upto))
        return within

    @property
    def variance(self) -> float:
        """Variance of the rate over the hours, in (events/s)²."""
        return float(self.per_s.var())


def watched_s(window: ObservedWindow) -> Floats:
    """Compute the seconds of each hour of the week in a window, from the first hour of 1970 on."""
    hour_ns = int(HOUR_S * 1e9)
    first, last = window.from_ns // hour_ns, -(-window.until_ns // hour_ns)
    edges = np.arange(first, last + 1) * hour_ns
    edges[0], edges[-1] = window.from_ns, window.until_ns
    watched = np.zeros(WEEK_HOURS)
    np.add.at(watched, np.arange(first, last) % WEEK_HOURS, np.diff(edges) / 1e9)
    return watched


def find_day(rows: pd.DataFrame, window: ObservedWindow) -> Day | None:
    """Find the hours that a publisher follows; None where none, or nobody could tell.

    ``rows`` are those of one publisher by hour of the week. Rates of one hour over the days of a
    week are held against those of other hours by an analysis of variance.
    """
    days = (window.until_ns - window.from_ns) / 1e9 / HOUR_S / DAY_HOURS
    if days < LEAST_DAYS or window.seconds < 0.5 * days * DAY_HOURS * HOUR_S:
        return None
    seconds = watched_s(window)
    counts = sums_at(rows, "events", (WEEK_HOURS,), rows["bin"])
    full = (seconds >= FULL * HOUR_S).reshape(WEEK_DAYS, DAY_HOURS)
    rate = np.where(seconds > 0, counts / np.maximum(seconds, 1.0), 0.0)
    table = rate.reshape(WEEK_DAYS, DAY_HOURS)
    hours = [table[full[:, hour], hour] for hour in range(DAY_HOURS)]
    if min(len(each) for each in hours) < 1 or full.sum() < DAY_HOURS + 2:
        return None
    if not differ(hours) and not differ(list(table[full.all(axis=1)])):
        return None
    if days >= LEAST_WEEKS * WEEK_DAYS and full.all():
        return Day(per_s=rate)
    return Day(per_s=np.array([each.mean() for each in hours]))


def differ(groups: list[Floats]) -> bool:
    """Test whether the means of some groups of rates differ by more than chance."""
    several = [each for each in groups if len(each) > 1]
    if len(several) < 2:
        return False
    if all(np.ptp(each) == 0.0 for each in several):
        return len({float(each[0]) for each in several}) > 1
    return bool(stats.f_oneway(*several).pvalue < SURPRISE)
