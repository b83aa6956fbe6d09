"""How far two clocks may differ, from messages that went both ways between them."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.cells import seconds

CLOCK_STATISTICS = "source string, target string, count bigint, least_s double"


def clock_statistics(crossings: DataFrame) -> DataFrame:
    """The least apparent delay of every direction, in seconds; below 0 where clocks disagree.

    Reads ``source``, ``target``, ``sent_ns`` and ``received_ns``, by the clocks of either end; bad
    rows too, for it is the impossible ones that tell of clocks.
    """
    apparent_s = seconds(F.col("received_ns") - F.col("sent_ns"))
    named = (F.col("source") != "") & (F.col("target") != "") & (F.col("sent_ns") >= 0)
    return (
        crossings.where(named & (F.col("received_ns") >= 0))
        .groupBy("source", "target")
        .agg(F.count(F.lit(1)).alias("count"), F.min(apparent_s).alias("least_s"))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockOffset:
    """By how much the clock of ``target`` is ahead of that of ``source``: between these seconds."""

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


def clock_offsets(rows: pd.DataFrame) -> list[ClockOffset]:
    """What both ways together tell of every pair of clocks.

    A delay is never below 0. If target is θ ahead, what is seen of the way there is delay + θ, of
    the way back delay − θ: so θ is at most the least seen there, at least minus that seen back.

    >>> rows = pd.DataFrame({"source": ["a", "b"], "target": ["b", "a"], "least_s": [3.0, -1.0]})
    >>> clock_offsets(rows)
    [ClockOffset(source='a', target='b', low_s=1.0, high_s=3.0)]
    """
    columns = (rows[name] for name in ("source", "target", "least_s"))
    least = {(str(a), str(b)): float(value) for a, b, value in zip(*columns, strict=True)}
    return [
        ClockOffset(source=a, target=b, low_s=-least[b, a], high_s=high_s)
        for (a, b), high_s in sorted(least.items())
        if a < b and (b, a) in least
    ]


def clock_notes(offsets: list[ClockOffset]) -> list[str]:
    """What must be said of clocks: nothing where all may be equal."""
    notes = []
    for each in offsets:
        if not each.is_possible:
            notes.append(
                f"no offset between the clocks of {each.source} and {each.target} explains their "
                "probes: one was set, or drifted, while we watched"
            )
        elif each.differs:
            notes.append(
                f"the clock of {each.target} is {each.low_s:+.6g} to {each.high_s:+.6g} s ahead of "
                f"that of {each.source}; delays between them are wrong by as much"
            )
    return notes
