"""Whether the delays of a link follow the hour of the day, and how."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tidings.characterisation.fit.days import DAY_HOURS, HOUR_S, LEAST_DAYS, WEEK_DAYS, differ
from tidings.characterisation.fit.parameters import Parameter
from tidings.characterisation.fit.samples import Sample
from tidings.characterisation.statistics import WEEK_HOURS, Direction, ObservedWindow, sums_at
from tidings.model.arrays import Floats, Ints
from tidings.model.daily_delays import DailyDelays
from tidings.model.delay_grid import BINS_PER_DECADE

LEAST_CROSSINGS = 20  # of an hour of a day, for its mean to count
# Hours that are so much apart (standard deviation, of the mean) and less change no on-time share by
# more than half of its square, which is next to nothing.
_LEAST_SPREAD = 0.05
_STEPS = 30  # of the deconvolution; with more it follows noise
_SUMS = ("count", "total_s", "squares", "logs", "squared_logs")


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayDay:
    """How many times as long as their mean the delays of a link are, by hour of the day (UTC).

    Hours in which nothing crossed are as the mean, with a standard error of NaN. ``hours`` are the
    sums of the delays of each.
    """

    times: Floats
    standard_error: Floats
    hours: dict[str, Floats]

    @property
    def delays(self) -> DailyDelays:
        """The hours as a system file has them."""
        return DailyDelays(slot_s=HOUR_S, times=tuple(map(float, self.times)))

    @property
    def shares(self) -> Floats:
        """Which share of what crossed did so in each hour of the day."""
        shares: Floats = self.hours["count"] / self.hours["count"].sum()
        return shares

    def __str__(self) -> str:
        """Say when they are longest and shortest."""
        longest, shortest = int(self.times.argmax()), int(self.times.argmin())
        return (
            f"{self.times[longest]:.3g} times their mean at {longest:02}:00 UTC, "
            f"{self.times[shortest]:.3g} times at {shortest:02}:00"
        )

    def parameters(self, path: str) -> list[Parameter]:
        """List how many times as long they are, hour by hour, under a path."""
        return [
            Parameter(
                path=f"{path}.{hour}",
                estimate=float(self.times[hour]),
                standard_error=float(self.standard_error[hour]),
                count=int(self.hours["count"][hour]),
                unit="",
            )
            for hour in range(DAY_HOURS)
            if self.hours["count"][hour] > 0
        ]

    def at_one_time(self, sample: Sample) -> Sample:
        """Give the delays as they would be if those of all hours were as long: with the same mean.

        Sums are those of the hours, each divided by how many times as long they are. Bins are
        sought whose mixture, over the hours, is nearest to the bins that were counted.
        """
        seen = self.hours["count"] > 0
        times, sums = self.times[seen], {name: self.hours[name][seen] for name in _SUMS}
        logs = np.log(times)
        positive = sums["count"] if sample.lowest_s > 0 else 0.0 * sums["count"]
        return replace(
            sample,
            total_s=float((sums["total_s"] / times).sum()),
            squares=float((sums["squares"] / times**2).sum()),
            logs=float((sums["logs"] - positive * logs).sum()),
            squared_logs=float(
                (sums["squared_logs"] - 2.0 * logs * sums["logs"] + positive * logs**2).sum()
            ),
            lowest_s=float((self.hours["lowest_s"][seen] / times).min()),
            highest_s=float((self.hours["highest_s"][seen] / times).max()),
            bins=_unmixed(sample.bins, times, self.shares[seen]),
        )


def find_delay_days(rows: pd.DataFrame, window: ObservedWindow) -> dict[Direction, DelayDay]:
    """Find the links whose delays surely follow the hour of the day, from samples by hour.

    Nobody can tell of less than two days.
    """
    if (window.until_ns - window.from_ns) / 1e9 < LEAST_DAYS * DAY_HOURS * HOUR_S:
        return {}
    known = rows[rows["count"] > 0]
    days = {
        (str(source), str(target)): find_delay_day(part)
        for (source, target), part in known.groupby(["source", "target"])
    }
    return {arc: day for arc, day in days.items() if day is not None}


def find_delay_day(rows: pd.DataFrame) -> DelayDay | None:
    """Find the hours that the delays of a link follow; None where none, or nobody could tell.

    Mean delays of one hour on the days of a week are held against those of other hours by an
    analysis of variance, as rates are: a bad hour of a single day is none that comes every day.
    """
    counts = sums_at(rows, "count", (WEEK_HOURS,), rows["hour"]).reshape(WEEK_DAYS, DAY_HOURS)
    totals = sums_at(rows, "total_s", (WEEK_HOURS,), rows["hour"]).reshape(WEEK_DAYS, DAY_HOURS)
    if not totals.sum() > 0.0:
        return None
    means_s = totals / np.maximum(counts, 1.0)
    enough = counts >= LEAST_CROSSINGS
    groups = [means_s[enough[:, hour], hour] for hour in range(DAY_HOURS)]
    mean_s = totals.sum() / counts.sum()
    if not differ(groups) or _spread(groups) < _LEAST_SPREAD * mean_s:
        return None
    hours = _by_hour_of_day(rows)
    seen = hours["count"] > 0
    used = np.where(seen, hours["count"], 1.0)
    times = np.where(hours["total_s"] > 0.0, hours["total_s"] / used / mean_s, 1.0)
    return DelayDay(times=times, standard_error=_errors(groups, hours) / mean_s, hours=hours)


def _spread(groups: list[Floats]) -> float:
    """Estimate the standard deviation of hours about their mean, without that of chance."""
    several = [each for each in groups if len(each) > 1]
    within = np.mean([each.var(ddof=1) / len(each) for each in several])
    return math.sqrt(max(float(np.var([each.mean() for each in several], ddof=1) - within), 0.0))


def _by_hour_of_day(rows: pd.DataFrame) -> dict[str, Floats]:
    """Sum samples up over the days of the week."""
    of_day = rows["hour"] % DAY_HOURS
    hours = {name: sums_at(rows, name, (DAY_HOURS,), of_day) for name in _SUMS}
    cells = rows.groupby(of_day)
    every = np.arange(DAY_HOURS)
    hours["lowest_s"] = cells["lowest_s"].min().reindex(every).to_numpy(np.float64)
    hours["highest_s"] = cells["highest_s"].max().reindex(every).to_numpy(np.float64)
    return hours


def _errors(groups: list[Floats], hours: dict[str, Floats]) -> Floats:
    """Compute the standard error of the mean of each hour, in seconds.

    That of independent times, or that of the days if these differ by more; these differ by as
    large a part of the mean in all hours.
    """
    count = np.maximum(hours["count"], 1.0)
    variance = hours["squares"] / count - (hours["total_s"] / count) ** 2
    alone = np.sqrt(np.maximum(variance, 0.0) / np.maximum(count - 1.0, 1.0))
    several = [each / each.mean() for each in groups if len(each) > 1]
    freedom = sum(len(each) - 1 for each in several)
    within = sum(float(((each - 1.0) ** 2).sum()) for each in several) / freedom
    used = np.array([max(len(each), 1) for each in groups])
    days = hours["total_s"] / count * np.sqrt(within / used)
    errors: Floats = np.where(hours["count"] > 0, np.maximum(alone, days), np.nan)
    return errors


def _unmixed(bins: Ints, times: Floats, shares: Floats) -> Ints:
    """Find a histogram that becomes this one where each share of it is so many times as long.

    On a logarithmic grid longer times are places further on, so that this is a deconvolution: by
    Richardson (1972) and Lucy (1974), whose histograms stay positive and keep their sum.
    """
    shifts = np.log10(times) * BINS_PER_DECADE
    low = np.floor(shifts).astype(np.int64)
    reach = int(max(abs(int(low.min())), abs(int(low.max()) + 1), 1))
    kernel = np.zeros(2 * reach + 1)
    np.add.at(kernel, low + reach, shares * (1.0 - (shifts - low)))
    np.add.at(kernel, low + 1 + reach, shares * (shifts - low))
    counted = bins / bins.sum()
    sought = np.convolve(counted, kernel[::-1], mode="same")
    for _ in range(_STEPS):
        mixed = np.convolve(sought, kernel, mode="same")
        ratio = np.divide(counted, mixed, out=np.zeros_like(mixed), where=mixed > 0.0)
        sought = sought * np.convolve(ratio, kernel[::-1], mode="same")
    upto = np.rint(np.cumsum(sought / sought.sum()) * int(bins.sum()))
    found: Ints = np.diff(upto, prepend=0.0).astype(np.int64)
    return found
