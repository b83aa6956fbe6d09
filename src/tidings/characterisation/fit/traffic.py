"""Which kind of traffic a publisher is: the simplest description that its counts do not reject.

Independent intervals first; then a clock that several share, batches, rates by time of day, bursts
whose dispersion is that of the counts. Where none of them holds, only the recorded times do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tidings.characterisation.fit.blocks import block_batches
from tidings.characterisation.fit.bursts import fit_bursts
from tidings.characterisation.fit.days import HOUR_S, Day, find_day
from tidings.characterisation.fit.dispersion import Batches, Curve, batches_of, curve_of
from tidings.characterisation.fit.laws import fit_law
from tidings.characterisation.fit.phases import SharedClock, find_beats, shared_clocks
from tidings.characterisation.fit.samples import EMPTY, Sample
from tidings.characterisation.statistics import SCALE_SUMS, ObservedWindow
from tidings.model.arrays import Floats
from tidings.model.behaviour import DailyRates
from tidings.model.laws import Deterministic, Law, Uniform
from tidings.model.publishing import Publishing

TOO_FEW, POISSON, RENEWAL = "too few events", "Poisson", "independent intervals"
IN_PHASE, BATCHED, DAILY = "in phase with others", "batches", "by time of day"
NIGHTLY, OPENING = "a batch every day", "an opening every day"
BURSTY, MOVING, REGULAR = "bursts", "a rate that keeps moving", "more regular than its intervals"
COMMON = (TOO_FEW, POISSON, RENEWAL)  # that a law of intervals describes
BY_DAY = (DAILY, NIGHTLY, OPENING)
LEAST_EVENTS = 200
SURE, CLEARLY = 4.0, 1.25  # standard errors above what is expected, and times as much
NEGLIGIBLE = 0.25  # index of dispersion below which counts are as good as a clock's
REGULAR_FROM = 1000.0  # mean intervals after which a renewal stream has shown all its dispersion
LEAST_SIZE = 1.1  # events at an instant, times what chance gives, from which they are batches
PEAK = 1.5  # times the mean rate that the busiest hour has at least, to speak of a time of day
NIGHT_HOURS, NIGHT_SHARE = 2, 0.8  # a batch every day: so much of it in so few hours
OPENS = 4.0  # times the rate of the hour before that the busiest has, where something opens
TRAFFIC_COLUMNS = (
    "publisher", "kind", "events", "scale_s", "dispersion", "dispersion_se", "expected", "why",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What one publisher's traffic is, why, and how a system file says it.

    Nothing but ``kind`` and ``why`` is given where intervals say it all. ``is_kept``: whether the
    description has all that was measured; else only recorded times have.
    """

    publisher: str
    kind: str
    why: str
    curve: Curve
    counts: Floats  # of events by part of the time, ...
    usual: Floats  # ... and as many as its hours of the day make expected
    publishes: Publishing | None = None
    rates: DailyRates | None = None
    is_kept: bool = True

    @property
    def events(self) -> int:
        """How many events there were."""
        return int(self.counts.sum())

    @property
    def is_renewal(self) -> bool:
        """Whether a system file says it by a law of intervals."""
        return self.publishes is None and self.rates is None

    def rate_se(self, renewal_se: float) -> float:
        """Compute the standard error of the rate.

        It is as counts vary, not as intervals do, where these differ.
        """
        if (self.is_renewal and self.is_kept) or not self.curve.scv > 0.0:
            return renewal_se
        return renewal_se * math.sqrt(max(self.curve.lasting / self.curve.scv, 0.0))

    @property
    def worst(self) -> int:
        """The length of time at which counts vary most beyond what independent intervals allow."""
        return int(self.curve.score.argmax())

    def row(self) -> tuple[object, ...]:
        """Give the row of this publisher in the table of traffic."""
        curve, at = self.curve, self.worst
        numbers = (curve.scales_s[at], curve.dispersion[at], curve.standard_error[at])
        return (
            self.publisher, self.kind, self.events, *map(float, numbers),
            float(curve.expected[at]), self.why,
        )  # fmt: skip


def find_traffic(
    intervals: pd.DataFrame, samples: Mapping[str, Sample], window: ObservedWindow
) -> dict[str, Traffic]:
    """Find the kind of every publisher's traffic, from what was counted of its intervals."""
    counted = list(batches_of(intervals, window))
    hours = dict(list(intervals[intervals["statistic"] == "hours"].groupby("publisher")))
    ends = intervals[intervals["statistic"] == "ends"]
    regular = {name: each.mean_s for name, each in samples.items() if each.scv < 0.1}
    clocks = shared_clocks(find_beats(ends[ends["publisher"].isin(regular)], regular))
    clock_of = {
        name: (f"clock {number}", clock)
        for number, clock in enumerate(clocks, start=1)
        for name in clock.offsets_s
    }
    traffic = {}
    for batches in counted:
        name = batches.publisher
        day = find_day(hours[name], window) if name in hours else None
        sample = samples.get(name, EMPTY)
        found = _kind(batches, sample, day, clock_of.get(name))
        if day is not None and found.kind in BY_DAY:
            found = replace(found, usual=day.expected(window, len(found.counts)))
        traffic[name] = found
    return traffic


def _kind(
    batches: Batches, sample: Sample, day: Day | None, clock: tuple[str, SharedClock] | None
) -> Traffic:
    """Go from the simplest description to the next until one is not rejected."""
    curve = curve_of(batches)
    plain = Traffic(
        publisher=batches.publisher,
        kind=RENEWAL,
        why="",
        curve=curve,
        counts=batches.events,
        usual=np.full(len(batches.events), batches.events.mean()),
    )
    if batches.total < LEAST_EVENTS:
        return replace(
            plain,
            kind=TOO_FEW,
            why=f"fewer than {LEAST_EVENTS} events: intervals are taken as they are",
        )
    if clock is not None:
        return _in_phase(plain, *clock)
    batched = _batched(plain, batches, sample)
    if batched is not None:
        return batched
    at, regular = _rejecting(curve), _too_regular(curve, batches.rate_per_s)
    if day is not None and day.peak >= PEAK:
        return _daily(plain, day, batches.resolution_s)
    if regular:
        words = "over long times counts vary less than independent intervals make them"
        return replace(plain, kind=REGULAR, why=words, is_kept=False)
    if at is None:
        alike = abs(curve.scv - 1.0) < SURE * curve.scv_se
        words = "counts vary as independent intervals make them"
        return replace(plain, kind=POISSON if alike else RENEWAL, why=words)
    return _bursty(plain, batches, at)


def _rejecting(curve: Curve) -> int | None:
    """Find at which length of time counts most surely vary more than expected; None: none.

    It is given by its index.
    """
    limit = np.maximum(CLEARLY * curve.expected, NEGLIGIBLE)
    beyond = np.where(curve.dispersion > limit, curve.score, 0.0)
    at = int(beyond.argmax())
    return at if beyond[at] > SURE else None


def _too_regular(curve: Curve, rate_per_s: float) -> bool:
    """Test whether counts over long times surely vary less than independent intervals make them."""
    is_less = CLEARLY * curve.dispersion < curve.expected
    long = (curve.scales_s * rate_per_s > REGULAR_FROM) & (curve.expected > NEGLIGIBLE)
    return bool((is_less & long & (curve.score < -SURE)).any())


def _in_phase(plain: Traffic, name: str, clock: SharedClock) -> Traffic:
    """Describe a publisher that keeps the beat of a clock with others."""
    wide_s = math.sqrt(12.0) * clock.jitters_s[plain.publisher]
    offset_s = (clock.offsets_s[plain.publisher] - wide_s / 2.0) % clock.period_s
    publishes = Publishing(
        period_s=clock.period_s,
        offset_s=offset_s,
        clock=name,
        jitter=Uniform(low_s=0.0, high_s=wide_s) if wide_s > 0.0 else None,
    )
    why = (
        f"{len(clock.offsets_s)} publishers keep one beat of {clock.period_s:.6g} s, all within "
        f"{clock.widest_s:.3g} s of it"
    )
    return replace(plain, kind=IN_PHASE, why=why, publishes=publishes)


def _batched(plain: Traffic, batches: Batches, sample: Sample) -> Traffic | None:
    """Describe several events at one instant; None where there are not.

    They must be more than the clock's resolution makes of single ones.
    """
    instants, events = batches.sum_of("instants"), batches.total
    size, squared = events / instants, batches.sum_of(SCALE_SUMS[0]) / instants
    chance = _by_resolution(batches)
    if size < LEAST_SIZE * chance or instants < LEAST_EVENTS / 2:
        return None
    most = max(2, round((squared - 1.0) / (size - 1.0) - 1.0), math.ceil(size))
    share = (size - 1.0) / (most - 1.0)
    shares = {"1": 1.0 - share, str(most): share}
    zeros = int(events - instants)
    apart = _without_zeros(sample, zeros)
    between: Law = Deterministic(value_s=size / batches.rate_per_s)
    if apart.count > 1 and apart.scv > 1e-12:
        between = fit_law(apart).law.scaled(between.mean_s / fit_law(apart).law.mean_s)
    publishes = Publishing(every=between, batch=tuple((n, p) for n, p in shares.items() if p > 0.0))
    renewal = size * apart.scv + squared / size - size if apart.count > 1 else None
    at = _rejecting(curve_of(batches, renewal))
    why = f"on average {size:.3g} events at the same instant, {most} in large batches"
    if at is not None:
        why += "; batches come in bursts, which is not described"
    return replace(plain, kind=BATCHED, why=why, publishes=publishes, is_kept=at is None)


def _by_resolution(batches: Batches) -> float:
    """Compute the mean of events at one instant, where times of single ones are cut to whole units.

    Of batches of unlike rates, those of the busiest count most.
    """
    busy = batches.events / batches.length_s * batches.resolution_s
    if not busy.any():
        return 1.0
    return float(busy.sum() / -np.expm1(-busy).sum())


def _without_zeros(sample: Sample, zeros: int) -> Sample:
    bins = sample.bins.copy()
    bins[0] = max(bins[0] - zeros, 0)
    lowest = sample.lowest_s if sample.lowest_s > 0.0 else sample.mean_s * 1e-6
    return replace(sample, count=max(sample.count - zeros, 0), bins=bins, lowest_s=lowest)


def _daily(plain: Traffic, day: Day, resolution_s: float) -> Traffic:
    """Describe a rate that follows the hours; look for what else there is within hours."""
    curve = plain.curve
    mean = float(day.per_s.mean())
    expected = 1.0 + curve.scales_s * day.variance / mean
    rounded = curve.scales_s < resolution_s  # events of one unit of the clock fall together
    expected += np.where(rounded, resolution_s * float((day.per_s**2).mean()) / mean, 0.0)
    short = curve.scales_s < HOUR_S / 2.0
    above = (curve.dispersion - expected) / np.maximum(curve.standard_error, 1e-300)
    rest = short & (curve.dispersion > CLEARLY * expected) & (above > SURE)
    night = day.share_within(NIGHT_HOURS) >= NIGHT_SHARE
    kind, what = DAILY, f"{day.peak:.2g} times its mean rate in the hour from"
    if night:
        share = day.share_within(NIGHT_HOURS)
        kind, what = NIGHTLY, f"{share:.0%} of its events fall into {NIGHT_HOURS} hours about"
    elif day.rise >= OPENS:
        kind, what = OPENING, f"{day.rise:.2g} times the rate of the hour before from"
    why = f"{what} {day.busiest:02}:00 UTC, day after day"
    if rest.any():
        why += "; within hours it comes in bursts, which is not described"
    return replace(plain, kind=kind, why=why, rates=day.rates, is_kept=not rest.any())


def _bursty(plain: Traffic, batches: Batches, at: int) -> Traffic:
    """Describe sources that are on and off, by which counts vary as they were measured to."""
    curve = plain.curve
    often = curve.dispersion[at] / curve.expected[at]
    why = (
        f"counts over {curve.scales_s[at]:.3g} s vary {often:.2g} times as much as independent "
        "intervals allow"
    )
    moves = 4 * block_batches(batches.events) >= len(batches.events)
    publishes = fit_bursts(curve, batches.rate_per_s)
    if moves:
        why += "; this holds over the whole recording, so later rates cannot be predicted from it"
    return replace(
        plain, kind=MOVING if moves else BURSTY, why=why, publishes=publishes, is_kept=False
    )
