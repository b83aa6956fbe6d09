"""Estimate how far two clocks differ, from messages that went both ways between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from tidings.characterisation.statistics import CLOCK_STATISTICS, Direction
from tidings.model.units import format_seconds

CLOCK_COLUMNS = (
    "source", "target", "low_s", "high_s", "there", "early_there", "back", "early_back", "verdict",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Apparent:
    """Times over one direction of a link by the clocks of its ends, those below 0 among them."""

    count: int
    early: int  # below 0
    least_s: float
    total_s: float
    squares: float

    @property
    def mean_s(self) -> float:
        """Their mean, in seconds: that of the delays, and by how much the target is ahead."""
        return self.total_s / self.count

    @property
    def variance_s2(self) -> float:
        """Their sample variance, in seconds squared: that of the delays, whatever the clocks.

        From sums, so that of clocks that are hours apart rounding leaves nothing.
        """
        if self.count < 2:
            return math.nan
        return max(self.squares - self.total_s * self.mean_s, 0.0) / (self.count - 1)

    @property
    def early_matter(self) -> bool:
        """Whether to leave out those below 0 may move the mean by more than its standard error.

        Left out, a share p of them moves it by at most p (mean − least).
        """
        if not self.early or self.count < 2:
            return bool(self.early)
        moved_s = self.early / self.count * (self.mean_s - self.least_s)
        return moved_s > math.sqrt(self.variance_s2 / self.count)


def apparent_delays(clocks: pd.DataFrame) -> dict[Direction, Apparent]:
    """Sum up times by the clocks of both ends of every direction, from a clock statistic."""
    sums = (
        clocks[clocks["count"] > 0]
        .groupby(["source", "target"])
        .agg(
            {
                "count": "sum",
                "early": "sum",
                "least_s": "min",
                "apparent_total_s": "sum",
                "apparent_squares": "sum",
            }
        )
    )
    return {
        (str(arc[0]), str(arc[1])): Apparent(
            count=int(count),
            early=int(early),
            least_s=float(least_s),
            total_s=float(total_s),
            squares=float(squares),
        )
        for arc, count, early, least_s, total_s, squares in sums.itertuples(name=None)
    }


def of_crossings(crossings: pd.DataFrame) -> pd.DataFrame:
    """Make a clock statistic from one of crossings, whose samples are of delays from 0 on."""
    named = crossings[crossings["source"].notna() & crossings["target"].notna()]
    columns = [part.split()[0] for part in CLOCK_STATISTICS.split(", ")]
    return named.assign(count=named["count"] + named["early"])[columns]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffset:
    """By how much the clock of ``target`` is ahead of that of ``source``: between these seconds.

    One of them is infinite where messages were seen to go one way only.
    """

    source: str
    target: str
    low_s: float
    high_s: float

    @property
    def differs(self) -> bool:
        """Whether the clocks cannot be equal."""
        return self.low_s > 0.0 or self.high_s < 0.0

    @property
    def is_possible(self) -> bool:
        """Whether any one offset explains both ways; not where a clock was set meanwhile."""
        return self.low_s <= self.high_s

    @property
    def is_bounded(self) -> bool:
        """Whether it is known from both sides, and possible."""
        return self.is_possible and math.isfinite(self.low_s) and math.isfinite(self.high_s)

    @property
    def middle_s(self) -> float:
        """The middle of the interval, in seconds."""
        return (self.low_s + self.high_s) / 2.0

    @property
    def spread_s(self) -> float:
        """The standard deviation of what lies anywhere in the interval alike, in seconds."""
        return (self.high_s - self.low_s) / math.sqrt(12.0)

    @property
    def reversed(self) -> ClockOffset:
        """The same as seen from the other end."""
        return ClockOffset(
            source=self.target, target=self.source, low_s=-self.high_s, high_s=-self.low_s
        )

    def __str__(self) -> str:
        """Say it in words, of the clock that is ahead, if any surely is."""
        if self.high_s < 0.0:
            return str(self.reversed)
        if math.isinf(self.high_s):
            return (
                f"the clock of {self.target} is at least {format_seconds(self.low_s)} ahead of "
                f"that of {self.source}"
            )
        bounds = dict.fromkeys(format_seconds(at) for at in (self.low_s, self.high_s))
        return f"the clock of {self.target} is {' to '.join(bounds)} ahead of that of {self.source}"


def clock_offsets(seen: Mapping[Direction, Apparent]) -> list[ClockOffset]:
    """Bound the offset of every pair of clocks, in seconds; one way alone, only where they differ.

    A delay is never below 0. If target is θ ahead, what is seen of the way there is delay + θ, of
    the way back delay − θ: so θ is at most the least seen there, at least minus that seen back.

    >>> there = Apparent(count=1, early=0, least_s=3.0, total_s=3.0, squares=9.0)
    >>> back = Apparent(count=1, early=1, least_s=-1.0, total_s=-1.0, squares=1.0)
    >>> print(*clock_offsets({("a", "b"): there, ("b", "a"): back}))
    the clock of b is 1 s to 3 s ahead of that of a
    """
    offsets = []
    for a, b in sorted({(min(arc), max(arc)) for arc in seen}):
        there, back = seen.get((a, b)), seen.get((b, a))
        offset = ClockOffset(
            source=a,
            target=b,
            low_s=-math.inf if back is None else -back.least_s,
            high_s=math.inf if there is None else there.least_s,
        )
        if (there is not None and back is not None) or offset.differs:
            offsets.append(offset)
    return offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Times by the clocks of two ends, of probes and of events, and what both say of the clocks."""

    probed: Mapping[Direction, Apparent]
    crossed: Mapping[Direction, Apparent]
    offsets: tuple[ClockOffset, ...]
    table: pd.DataFrame  # CLOCK_COLUMNS


def read_clocks(probes: pd.DataFrame | None, crossings: pd.DataFrame) -> Clocks:
    """Estimate clock offsets from the statistics of probes, if any, and of crossings."""
    parts = [of_crossings(crossings), *([] if probes is None else [probes])]
    both = apparent_delays(pd.concat([each for each in parts if len(each)] or parts[:1]))
    offsets = clock_offsets(both)
    return Clocks(
        probed={} if probes is None else apparent_delays(probes),
        crossed=apparent_delays(parts[0]),
        offsets=tuple(offsets),
        table=clock_table(offsets, both),
    )


def clock_table(offsets: Iterable[ClockOffset], seen: Mapping[Direction, Apparent]) -> pd.DataFrame:
    """List every interval, in seconds, from how many messages, and what it means; NaN: no bound."""
    rows = []
    for each in offsets:
        bounds = [at if math.isfinite(at) else math.nan for at in (each.low_s, each.high_s)]
        directions = (
            seen.get(arc) for arc in ((each.source, each.target), (each.target, each.source))
        )
        counts = [(0, 0) if arc is None else (arc.count, arc.early) for arc in directions]
        verdict = "they differ" if each.differs else "they may be equal"
        said = verdict if each.is_possible else "one was set, or drifted"
        rows.append((each.source, each.target, *bounds, *counts[0], *counts[1], said))
    return pd.DataFrame(rows, columns=list(CLOCK_COLUMNS))


def clock_notes(offsets: Iterable[ClockOffset]) -> list[str]:
    """Say what must be said of clocks: nothing where all may be equal."""
    notes = []
    for each in offsets:
        if not each.is_possible:
            notes.append(
                f"no offset between the clocks of {each.source} and {each.target} "
                "explains the delays in both directions: a clock was set, or drifted, "
                "during the recording"
            )
        elif each.differs and each.is_bounded:
            notes.append(
                f"{each}; link delays between them are corrected by the middle of that "
                "range, fitted by mean and variance only, and their standard errors "
                "include the width of the range. Delays of events across these clocks "
                "are not corrected"
            )
        elif each.differs:
            notes.append(f"{each}, and nothing was sent in the other direction to show by how much")
    return notes
