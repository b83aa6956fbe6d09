"""Fit links as channels: delay law, reliability, and whether losses come in a row."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tidings.characterisation.fit.clocks import Apparent, ClockOffset
from tidings.characterisation.fit.delay_days import DelayDay
from tidings.characterisation.fit.laws import FitLaw, FittedLaw, fit_law, law_of_moments
from tidings.characterisation.fit.parameters import Parameter, law_parameter
from tidings.characterisation.fit.samples import EMPTY, samples_by
from tidings.characterisation.statistics import (
    CROSSING_STATISTICS,
    HOUR_STATISTICS,
    LOST,
    Direction,
    adjoining,
)
from tidings.model.behaviour import Channel
from tidings.model.daily_delays import DailyDelays
from tidings.model.standard_errors import share_se
from tidings.model.units import format_seconds

_ENDS = ["source", "target"]  # of a directed link
LEAST_AFTER_LOSS = 100  # probes that follow a loss; from fewer nobody can tell
_SURE = 5.0  # standard errors by which losses in a row must exceed chance
ENOUGH = 2_000  # probes of a link, which tell its loss to a percentage point


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRuns:
    """How losses of one directed link follow each other.

    >>> LossRuns(following=1000, lost=100, after_loss=100, lost_after_loss=50).burst
    2.0
    """

    following: int
    lost: int
    after_loss: int
    lost_after_loss: int

    @property
    def burst(self) -> float:
        """The mean number of losses in a row, 1/(1 − p) where p of the losses are followed by one.

        Of losses that know nothing of each other it is 1/reliability.
        """
        others = self.after_loss - self.lost_after_loss
        return self.after_loss / others if others else math.inf

    @property
    def shown_burst(self) -> float:
        """The mean number of losses in a row where that is surely not chance, else 1."""
        return self.burst if self.is_bursty else 1.0

    @property
    def burst_se(self) -> float:
        """Its standard error, that of p times 1/(1 − p)²."""
        return float(share_se(self.lost_after_loss, self.after_loss)) * self.burst**2

    @property
    def widening(self) -> float:
        """By how much the standard error of the share lost exceeds that of independent losses.

        Where a loss is ρ likelier after a loss than after none, neighbours at a distance of k are
        correlated by ρᵏ, which makes the variance of their mean (1 + ρ)/(1 − ρ) times as large.

        >>> LossRuns(following=1000, lost=100, after_loss=100, lost_after_loss=10).widening
        1.0
        """
        after_none = self.following - self.after_loss
        if not self.after_loss or not after_none:
            return 1.0
        others = self.lost - self.lost_after_loss
        likelier = self.lost_after_loss / self.after_loss - others / after_none
        likelier = min(max(likelier, 0.0), 1.0 - 1.0 / self.following)
        return math.sqrt((1.0 + likelier) / (1.0 - likelier))

    @property
    def by_chance(self) -> float:
        """The burst of losses as frequent as these that know nothing of each other."""
        return 1.0 / (1.0 - self.lost / self.following)

    @property
    def is_bursty(self) -> bool:
        """Whether losses follow losses surely more often than by chance."""
        share = self.lost / self.following
        error = math.sqrt(share * (1.0 - share) / self.after_loss)
        return self.lost_after_loss / self.after_loss > share + _SURE * error


def loss_runs(rows: pd.DataFrame) -> dict[Direction, LossRuns]:
    """Count the runs of losses of every link with enough losses seen, batches put together."""
    ordered = rows.dropna(subset=_ENDS).sort_values([*_ENDS, "batch"], kind="stable")
    follows = np.zeros(len(ordered), dtype=np.bool_)  # the batch before, of the same link
    follows[1:] = ordered.duplicated(_ENDS).to_numpy()[1:] & adjoining(ordered)
    last_lost = ordered["last_lost"].to_numpy(dtype=np.bool_)
    before = np.zeros(len(ordered), dtype=np.bool_)
    before[1:] = last_lost[:-1]
    before &= follows
    after = ordered["first_lost"].to_numpy(dtype=np.bool_) & follows
    seams = ordered[_ENDS].assign(
        following=ordered["following"] + follows,
        lost=ordered["lost"] + after,
        after_loss=ordered["after_loss"] + before,
        lost_after_loss=ordered["lost_after_loss"] + (before & after),
    )
    sums = seams.groupby(_ENDS).sum()
    telling = (sums["after_loss"] >= LEAST_AFTER_LOSS) & (
        sums["lost_after_loss"] < sums["after_loss"]
    )
    return {
        (str(arc[0]), str(arc[1])): LossRuns(
            following=int(following),
            lost=int(lost),
            after_loss=int(after_loss),
            lost_after_loss=int(lost_after_loss),
        )
        for arc, following, lost, after_loss, lost_after_loss in sums[telling].itertuples(name=None)
    }


def well_probed(hops: pd.DataFrame, probes: pd.DataFrame) -> set[tuple[str, str]]:
    """Find the links that were probed often enough to need nothing of what crossed them."""
    crossed, tried = crossed_links(hops), _counts(probes, "source", "target")
    return {arc for arc, count in tried.items() if count >= min(ENOUGH, crossed.get(arc, ENOUGH))}


def crossed_links(hops: pd.DataFrame) -> dict[tuple[str, str], int]:
    """Count the events that crossed every link to a broker."""
    return _counts(hops[hops["statistic"] == "arrivals"], "came_from", "broker")


def _counts(rows: pd.DataFrame, source: str, target: str) -> dict[tuple[str, str], int]:
    """Count the rows of a statistic by directed link."""
    named = rows[rows[source].notna() & rows[target].notna()]
    sums = named.groupby([source, target])["rows"].sum()
    return {(str(arc[0]), str(arc[1])): int(count) for arc, count in sums.items()}


def nothing_of_links() -> pd.DataFrame:
    """Make a statistic of crossings without rows."""
    return _without_rows(CROSSING_STATISTICS)


def nothing_by_hour() -> pd.DataFrame:
    """Make a statistic of delays by hour without rows."""
    return _without_rows(HOUR_STATISTICS)


def _without_rows(columns: str) -> pd.DataFrame:
    names = [column.strip().split(" ")[0] for column in columns.split(",")]
    return pd.DataFrame({name: pd.Series(dtype=object) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedChannel:
    """One direction of a link: how often it was tried, how often it lost (None: cannot tell).

    ``spoilt`` is the share of rows that would tell of arrivals and could not be used: how many of
    what seems lost has arrived is known no better.
    """

    tried: int
    lost: int | None
    delay: FittedLaw | None
    runs: LossRuns | None = None
    early: Apparent | None = None  # of times of which some were below 0
    spoilt: float = 0.0
    day: DelayDay | None = None  # where delays follow the hour: ``delay`` is then without it

    @property
    def reliability(self) -> float | None:
        """The share that was not lost."""
        return None if self.lost is None or not self.tried else 1.0 - self.lost / self.tried

    @property
    def lost_se(self) -> float:
        """The standard error of the share that was lost; NaN where nobody can tell.

        Wider where losses come in a row, by as much as their runs say.
        """
        if self.lost is None:
            return math.nan
        widening = 1.0 if self.runs is None else self.runs.widening
        return math.hypot(float(share_se(self.lost, self.tried)) * widening, self.spoilt)

    def with_spoilt(self, spoilt: float) -> FittedChannel:
        """Correct for a share of arrivals whose rows could not be used: these were not lost.

        Of a arrivals a(1 − spoilt) are seen, if rows of all links are spoilt alike.

        >>> FittedChannel(tried=1000, lost=118, delay=None).with_spoilt(0.02).lost
        100
        """
        if self.lost is None or not spoilt:
            return self
        arrived = min((self.tried - self.lost) / (1.0 - spoilt), self.tried)
        return replace(self, lost=round(self.tried - arrived), spoilt=spoilt)

    def with_lost_rows(self, spoilt: float) -> FittedChannel:
        """Count as lost what arrived and whose row, a share of all, could not be used.

        >>> FittedChannel(tried=1000, lost=100, delay=None).with_lost_rows(0.02).lost
        118
        """
        if self.lost is None or not spoilt:
            return self
        arrived = (self.tried - self.lost) * (1.0 - spoilt)
        return replace(self, lost=round(self.tried - arrived), spoilt=spoilt)

    def channel(self, base: Channel) -> Channel:
        """Give the channel as measured; what was not seen is that of ``base``."""
        known = self.reliability
        return Channel(
            delay=base.delay if self.delay is None else self.delay.law,
            reliability=base.reliability if known is None else known,
            delay_by_time=self._delay_by_time(base),
            loss_burst=base.loss_burst if self.runs is None else self.runs.shown_burst,
            bandwidth_bytes_per_s=base.bandwidth_bytes_per_s,
            network=base.network,
            failure=base.failure,
        )

    def _delay_by_time(self, base: Channel) -> DailyDelays | None:
        if self.delay is None:
            return base.delay_by_time
        return None if self.day is None else self.day.delays

    def parameters(self, path: str) -> list[Parameter]:
        """List mean delay, reliability and bursts of losses, under the path of the link."""
        fitted = [] if self.delay is None else [law_parameter(f"{path}.delay", self.delay)]
        if self.day is not None:
            fitted += self.day.parameters(f"{path}.delay_by_time")
        if self.reliability is not None:
            fitted.append(
                Parameter(
                    path=f"{path}.reliability",
                    estimate=self.reliability,
                    standard_error=self.lost_se,
                    count=self.tried,
                    unit="share",
                )
            )
        if self.runs is not None:
            fitted.append(
                Parameter(
                    path=f"{path}.loss_burst",
                    estimate=self.runs.burst,
                    standard_error=self.runs.burst_se,
                    count=self.runs.after_loss,
                    unit="",
                    verdict="in bursts" if self.runs.is_bursty else "as if by chance",
                )
            )
        return fitted


def fit_channels(
    rows: pd.DataFrame,
    runs: Mapping[Direction, LossRuns] | None = None,
    days: Mapping[Direction, DelayDay] | None = None,
    *,
    fit_delay: FitLaw = fit_law,
) -> dict[Direction, FittedChannel]:
    """Fit the channel of every directed link in a link statistic, its delays by ``fit_delay``.

    With runs of losses, and by time of day, where these are known.
    """
    samples = samples_by(rows, _ENDS)
    good = rows.dropna(subset=_ENDS)
    counts = good.assign(untold=good["lost"].isna()).groupby(_ENDS)[["rows", "lost", "untold"]]
    channels = {}
    for ends, tried, lost, untold in counts.sum().itertuples(name=None):
        arc = str(ends[0]), str(ends[1])
        sample = samples.get(ends, EMPTY)
        day = (days or {}).get(arc)
        if day is not None:
            sample = day.at_one_time(sample)
        channels[arc] = FittedChannel(
            tried=int(tried),
            lost=None if untold else int(lost),
            delay=fit_delay(sample) if sample.count else None,
            runs=(runs or {}).get(arc),
            day=day,
        )
    return channels


def sighted_channels(
    sightings: pd.DataFrame, hops: pd.DataFrame, failed: Collection[str], share: float = 1.0
) -> dict[Direction, FittedChannel]:
    """Count what links lost of the events sent over them, where some were seen to be lost.

    ``share`` is that of the arrivals that are of the time in which events were followed.
    Not of links on which something was ever down: there an outage may have taken them. A publisher
    with several home brokers does not say which of them an event was sent to.
    """
    crossed = crossed_links(hops)
    homes: dict[str, list[str]] = {}
    for source, target in crossed:
        homes.setdefault(source, []).append(target)
    lost: dict[Direction, int] = {}
    rows = sightings[(sightings["statistic"] == LOST) & sightings["source"].notna()]
    for (source, target), events in (
        rows.groupby(["source", "target"], dropna=False)["events"].sum().items()
    ):
        targets = homes.get(source, []) if pd.isna(target) else [target]
        if len(targets) == 1:
            lost[source, targets[0]] = int(events)
    return {
        arc: FittedChannel(tried=round(share * crossed[arc]) + number, lost=number, delay=None)
        for arc, number in lost.items()
        if arc in crossed and not {*arc, "--".join(arc), "--".join(arc[::-1])}.intersection(failed)
    }


def by_clocks(
    channels: Mapping[Direction, FittedChannel],
    seen: Mapping[Direction, Apparent],
    offsets: Iterable[ClockOffset],
) -> dict[Direction, FittedChannel]:
    """Correct the delays of channels by what the clocks allow to say of them.

    Where the clocks of both ends surely differ, by an interval that is known, delays are fitted
    by mean and variance, less the middle of it, with its width as an error. Where it is unknown and
    times below 0 matter, a law of the others would be of the late ones alone: there is none.
    """
    known = {(each.source, each.target): each for each in offsets}
    known |= {(each.target, each.source): each.reversed for each in known.values()}
    corrected = {}
    for arc, channel in channels.items():
        apparent, offset = seen.get(arc), known.get(arc)
        if apparent is not None and apparent.early:
            channel = replace(channel, early=apparent)
        if apparent is not None and offset is not None and offset.differs and offset.is_bounded:
            channel = replace(channel, delay=_less(apparent, offset), day=None)
        elif apparent is not None and apparent.early_matter:
            channel = replace(channel, delay=None, day=None)
        corrected[arc] = channel
    return corrected


def _less(apparent: Apparent, offset: ClockOffset) -> FittedLaw:
    """Fit delays to times that are too long by an offset, by their first two moments."""
    mean_s = max(apparent.mean_s - offset.middle_s, 0.0)
    spread_s2 = (apparent.count - 1) * apparent.variance_s2 if apparent.count > 1 else 0.0
    sample = replace(
        EMPTY,
        count=apparent.count,
        total_s=apparent.count * mean_s,
        squares=spread_s2 + apparent.count * mean_s**2,
    )
    family, law = law_of_moments(sample)
    return FittedLaw(
        law=law,
        family=family,
        sample=sample,
        distance=math.nan,
        verdict=f"by mean and variance: {offset}",
        systematic_s=offset.spread_s,
    )


def early_notes(channels: Mapping[Direction, FittedChannel]) -> list[str]:
    """Note every link over which messages seemed to arrive before they left."""
    notes = []
    for (source, target), channel in sorted(channels.items()):
        if (early := channel.early) is None:
            continue
        said = (
            f"from {source} to {target} {early.early} of {early.count} arrived before "
            "they left according to the two clocks, by up to "
            f"{format_seconds(-early.least_s)}"
        )
        if channel.delay is None:
            taken = "it is taken from the base system, or assumed to be 0"
            notes.append(
                f"the delay of a link cannot be measured: {said}; {taken}. Synchronise the "
                "clocks, or probe the link"
            )
        elif early.count > channel.delay.count:
            notes.append(
                f"{said}; they are left out, which changes the mean by less than its standard error"
            )
    return notes


def surest(
    *sources: Mapping[Direction, FittedChannel],
) -> dict[Direction, FittedChannel]:
    """Choose, of what several means tell of a link, losses of the surest and delays of the most.

    How sure each is of losses is judged at one share for all of them: else the one that happened to
    lose least would be taken.
    """
    arcs = dict.fromkeys(arc for each in sources for arc in each)
    return {arc: _surest([each[arc] for each in sources if arc in each]) for arc in arcs}


def _surest(candidates: list[FittedChannel]) -> FittedChannel:
    tried = sum(each.tried for each in candidates if each.lost is not None)
    share = (sum(each.lost or 0 for each in candidates) + 1) / (tried + 2)

    def blur(each: FittedChannel) -> float:
        return share * (1.0 - share) / max(each.tried, 1) + each.spoilt**2

    of_losses = min(candidates, key=lambda each: (each.lost is None, blur(each)))
    of_delays = max(candidates, key=lambda each: -1 if each.delay is None else each.delay.count)
    runs = next((each.runs for each in candidates if each.runs is not None), None)
    return FittedChannel(
        tried=of_losses.tried,
        lost=of_losses.lost,
        delay=of_delays.delay,
        runs=runs,
        early=of_delays.early,
        spoilt=of_losses.spoilt,
        day=of_delays.day,
    )


def day_notes(channels: Mapping[Direction, FittedChannel]) -> list[str]:
    """Note the links whose delays follow the hour of the day, and how well that describes them."""
    return [
        f"delays from {source} to {target} follow the hour of the day: {channel.day}; they are "
        "fitted as such, and predicted by simulation"
        for (source, target), channel in sorted(channels.items())
        if channel.day is not None
    ]


def burst_notes(channels: Mapping[Direction, FittedChannel]) -> list[str]:
    """Note the links that lose events in a row more often than chance would."""
    return [
        f"losses from {source} to {target} come {runs.burst:.3g} in a row on average, "
        f"instead of {runs.by_chance:.3g} for independent losses; they are fitted as such, "
        "and predicted by simulation"
        for (source, target), channel in sorted(channels.items())
        if (runs := channel.runs) is not None and runs.is_bursty
    ]
