"""Times in which publishers keep their rates, where they do not throughout: stretches, or hours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd

from tidings.characterisation.count.publications import hourly_counts
from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.fit.stationarity import (
    CANNOT_TELL,
    DRIFTS,
    LEAST_PER_BATCH,
    LEAST_SCV,
    STEADY,
    counts_of,
    drift_test,
    parted,
    parted_ring,
    worst_drift,
)
from tidings.characterisation.job import characterise
from tidings.characterisation.statistics import BATCHES
from tidings.model.arrays import Floats
from tidings.model.progress import Progress
from tidings.model.system import System
from tidings.traces.actions import bring_here
from tidings.traces.reading import Traces
from tidings.traces.window import DAY_NS, HOUR_NS, DailyHours, TraceWindow

HOURS, LEAST_DAYS = 24, 2  # of a day; below two of them, a time of day is a stretch of time
BY_STRETCH, BY_HOUR = "stretches", "hours of day"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """A stretch of time or some hours of every day, and what is fitted to it alone."""

    window: TraceWindow
    fitted: Characterisation

    def when(self, begin_ns: int) -> str:
        """Write which time it is, in words; that of periods in hours since ``begin_ns``."""
        if not isinstance(self.window, DailyHours):
            ends = (self.window.from_ns, self.window.until_ns)
            from_h, until_h = ((at_ns - begin_ns) / HOUR_NS for at_ns in ends)
            return f"{from_h:.3g} h to {until_h:.3g} h"
        hours = hours_of(self.window)
        return f"{hours[0]} to {hours[1]} of every day, {self.window.seconds / 3600:.3g} h in all"


def hours_of(window: DailyHours) -> tuple[str, str]:
    """Write at which time of day it begins and ends.

    >>> hours_of(DailyHours(from_ns=0, until_ns=DAY_NS, begin_ns=18 * HOUR_NS,
    ...                     length_ns=14 * HOUR_NS))
    ('18:00', '08:00')
    """
    begin = window.begin_ns // HOUR_NS
    end = (window.begin_ns + window.length_ns) // HOUR_NS % HOURS
    return f"{begin:02}:00", f"{end:02}:00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regimes:
    """All of them, in order; ``verdict`` says what they are, or why there are none."""

    regimes: tuple[Regime, ...] = ()
    verdict: str = STEADY


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """The windows of regimes, none where there are no two; and what they are, or why none."""

    windows: tuple[TraceWindow, ...]
    verdict: str


def characterise_regimes(
    traces: Traces,
    whole: Characterisation,
    *,
    base: System | None = None,
    settle_s: float = 0.0,
    progress: Progress | None = None,
) -> Regimes:
    """Fit a system for every time in which rates stay: periods of the window, or hours of the day.

    ``whole`` is what all of the traces tell. Nothing need settle but at the end of the traces.
    """
    tell = progress or (lambda stage: None)
    tell("rates by hour of day")
    parting = find_regimes(whole, traces.window, _count_hours(traces))
    fitted_regimes = []
    for number, window in enumerate(parting.windows, start=1):
        tell(f"regime {number} of {len(parting.windows)}")
        at_end = window.until_ns == traces.window.until_ns
        part = replace(traces, window=window)
        known = characterise(part, base=base, settle_s=settle_s if at_end else 0.0)
        fitted_regimes.append(Regime(window=window, fitted=known))
    return Regimes(regimes=tuple(fitted_regimes), verdict=parting.verdict)


def _count_hours(traces: Traces) -> pd.DataFrame | None:
    """Count publications by hour of day; None where the traces are of too few days to tell."""
    if traces.window.until_ns - traces.window.from_ns < LEAST_DAYS * DAY_NS:
        return None
    counts = hourly_counts(traces.tables["publications"], traces.window)
    return bring_here(counts, f"{traces.source}: the table publications")


def find_regimes(
    whole: Characterisation, window: TraceWindow, hourly: pd.DataFrame | None = None
) -> Parting:
    """Find the windows into which publishers whose rates drift part the observed time.

    They are stretches of it or, where ``hourly`` counts are given and make what was counted
    likelier, hours of the day. Both likelihoods are those of Poisson processes whose rates change
    where the windows do, so that they can be held against each other.
    """
    scvs = _scvs(whole)
    drifting = whole.stationarity[whole.stationarity["verdict"] == DRIFTS]
    rates = whole.rates[whole.rates["publisher"].isin(drifting["publisher"])]
    cuts = parted(counts_of(rates, scvs))
    width_ns = -(-(window.until_ns - window.from_ns) // BATCHES)
    edges = [window.from_ns + start * width_ns for start in cuts.starts] + [window.until_ns]
    stretches = tuple(TraceWindow(from_ns=begin, until_ns=end) for begin, end in pairwise(edges))
    watched_s = np.array([_hours_from(hour, 1, window).seconds for hour in range(HOURS)])
    by_hour = _drifting_by_hour(hourly, watched_s, scvs)
    daily = parted_ring(by_hour, watched_s)
    if len(daily.starts) > 1 and daily.worth > cuts.worth:
        return Parting(windows=_hours(daily.starts, window), verdict=BY_HOUR)
    if len(stretches) > 1:
        return Parting(windows=stretches, verdict=BY_STRETCH)
    verdicts = {*whole.stationarity["verdict"], *([DRIFTS] if len(by_hour) else [])}
    verdict = next((each for each in (DRIFTS, STEADY) if each in verdicts), CANNOT_TELL)
    return Parting(windows=(), verdict=verdict)


def _drifting_by_hour(
    hourly: pd.DataFrame | None, watched_s: Floats, scvs: Mapping[str, float]
) -> Floats:
    """Count independent events by hour of day, of those whose rates change: [publisher, hour]."""
    rows: list[Floats] = []
    if hourly is None:
        return np.zeros((0, HOURS))
    for publisher, part in hourly.groupby("publisher"):
        counts = np.zeros(HOURS)
        counts[part["hour"].to_numpy(np.int64)] = part["rows"].to_numpy(np.float64)
        scv = scvs.get(str(publisher), 1.0)
        enough = counts.mean() >= LEAST_PER_BATCH
        if enough and drift_test(counts, watched_s, scv).drifts:
            rows.append(counts / max(scv, LEAST_SCV))
    return np.array(rows).reshape(len(rows), HOURS)


def _hours(starts: Sequence[int], window: TraceWindow) -> tuple[DailyHours, ...]:
    ends = (*starts[1:], starts[0] + HOURS)
    return tuple(
        _hours_from(begin, end - begin, window) for begin, end in zip(starts, ends, strict=True)
    )


def _hours_from(hour: int, hours: int, window: TraceWindow) -> DailyHours:
    return DailyHours(
        from_ns=window.from_ns,
        until_ns=window.until_ns,
        begin_ns=hour * HOUR_NS,
        length_ns=hours * HOUR_NS,
    )


def _scvs(whole: Characterisation) -> dict[str, float]:
    names = {f"publishers.{name}.rate": str(name) for name in whole.stationarity["publisher"]}
    return {names[path]: law.sample.scv for path, law in whole.laws.items() if path in names}


# ---- what is said of them ------------------------------------------------------------------------


def said_of_regimes(parts: Regimes, whole: Characterisation, folder: object) -> str:
    """Say what a person must know of regimes, or of why there are none and what to do then."""
    if not parts.regimes:
        return f"{_why_none(parts.verdict, whole.stationarity)} No regimes were written."
    by_hour = " by hour of day (UTC)" if parts.verdict == BY_HOUR else ""
    lines = [f"{len(parts.regimes)} regimes{by_hour}, with a system each in {folder}:"]
    begin_ns = parts.regimes[0].window.from_ns
    for number, regime in enumerate(parts.regimes, start=1):
        rate = sum(each.rate_per_s for each in regime.fitted.system.publishers)
        lines.append(f"  {number}: {regime.when(begin_ns)}, {rate:.4g} events/s")
    return "\n".join(lines)


def _why_none(verdict: str, tested: pd.DataFrame) -> str:
    if verdict == CANNOT_TELL:
        return (
            "Too few events to decide whether rates are steady: no publisher has at least "
            f"{LEAST_PER_BATCH:g} events in each of {BATCHES} equal parts of the recording. "
            "Record for longer."
        )
    if verdict == STEADY:
        unknown = int((tested["verdict"] == CANNOT_TELL).sum())
        but = f" (unknown for {unknown} publishers with few events)" if unknown else ""
        return f"Rates are steady throughout{but}: one system is enough."
    worst = worst_drift(tested)
    how = "with the hour of day" if worst is None else f"that of {worst.who} {worst.how_far}"
    return (
        f"Rates change, {how}, but there are no periods (nor, for two days or more, hours "
        "of the day) in which they are steady. The one fitted system is too optimistic "
        "about busy times: look at the rates over time (--report FILE), and characterise "
        "the time that matters separately, by setting its window in traces.json."
    )
