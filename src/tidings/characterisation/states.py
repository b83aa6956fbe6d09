"""How long components are up and down, from their changes; what observation cuts off counts too."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.characterisation.cells import delay_bin, seconds
from tidings.characterisation.parameters import Parameter
from tidings.model.behaviour import Failure
from tidings.model.laws import Exponential
from tidings.model.trace_tables import STATES
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

# Per reason, or per (component, up or down, end seen or not, bin of the delay grid).
STATE_PERIODS = (
    "reason string, component string, up boolean, ended boolean, bin int, rows bigint, "
    "count bigint, total_s double"
)
LEAST_PERIODS = 5  # whole ones of each kind, to tell how a component fails
OUTSIDE = "changed outside the observed window"


def state_periods(states: DataFrame, window: TraceWindow) -> DataFrame:
    """Periods up and down by component and length; every change is the row of the one it begins.

    A period ends with the next change, or is cut off by the end of the window. What was under way
    when the window began is older than anybody knows and no period; a row at the very beginning
    says what the state was, not that it changed. A row that repeats the state begins none. Changes
    of one component are put in order together: they are few.
    """
    tagged = with_reasons(states, STATES)
    inside = F.when(~window.holds(F.col("at_ns")), F.lit(OUTSIDE))
    tagged = tagged.withColumn(REASON, F.coalesce(F.col(REASON), inside))
    good = F.col(REASON).isNull()
    ordered = Rows.partitionBy("component", good).orderBy("at_ns")
    told = tagged.withColumn("before", F.lag("state").over(ordered))
    begins = good & (F.col("before").isNull() | (F.col("before") != F.col("state")))
    chain = Rows.partitionBy("component", begins).orderBy("at_ns")
    next_ns = F.when(begins, F.lead("at_ns").over(chain))
    rows = told.withColumns({"begins": begins, "next_ns": next_ns})
    end_ns = F.coalesce("next_ns", F.lit(window.until_ns))
    seen = F.col("begins") & (F.col("at_ns") > window.from_ns)
    length_s = F.when(seen, seconds(end_ns - F.col("at_ns")))
    return (
        rows.select(
            REASON,
            F.when(good, F.col("component")).alias("component"),
            F.when(good, F.col("state") == "up").alias("up"),
            F.when(seen, F.col("next_ns").isNotNull()).alias("ended"),
            length_s.alias("length_s"),
        )
        .withColumn("bin", delay_bin(F.col("length_s")))
        .groupBy(REASON, "component", "up", "ended", "bin")
        .agg(
            F.count(F.lit(1)).alias("rows"),
            F.count("length_s").alias("count"),
            F.sum("length_s").alias("total_s"),
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedFailure:
    """Mean times up and down of a component, each with how many whole periods tell it."""

    up_s: float
    up_count: int
    down_s: float
    down_count: int

    @property
    def failure(self) -> Failure:
        """As exponential laws."""
        return Failure(up=Exponential(mean_s=self.up_s), down=Exponential(mean_s=self.down_s))

    def parameters(self, path: str) -> list[Parameter]:
        """Both means, under the path of the component."""
        means = {"mtbf": (self.up_s, self.up_count), "mttr": (self.down_s, self.down_count)}
        return [
            Parameter(
                path=f"{path}.failure.{name}",
                estimate=mean_s,
                standard_error=mean_s / math.sqrt(count),
                count=count,
                unit="s",
                family="exponential",
                verdict="taken as exponential; periods cut off count as at least as long",
            )
            for name, (mean_s, count) in means.items()
        ]


def fit_failures(rows: pd.DataFrame) -> tuple[dict[str, FittedFailure], list[str]]:
    """How every component fails, and a note of those of which too little was seen to tell.

    The likeliest mean of an exponential law is all time seen, cut off or not, by the ends seen.
    """
    found: dict[str, FittedFailure] = {}
    thin = []
    periods = rows[rows["component"].notna() & (rows["count"] > 0)]
    for name, part in periods.groupby("component"):
        means = {}
        for up in (True, False):
            of_state = part[part["up"].astype(bool) == up]
            ends = int(of_state.loc[of_state["ended"].astype(bool), "count"].sum())
            means[up] = (math.fsum(of_state["total_s"]) / ends if ends else math.inf, ends)
        if min(means[True][1], means[False][1]) < LEAST_PERIODS:
            thin.append(str(name))
            continue
        found[str(name)] = FittedFailure(
            up_s=means[True][0],
            up_count=means[True][1],
            down_s=means[False][0],
            down_count=means[False][1],
        )
    if not thin:
        return found, []
    shown = ", ".join(thin[:5]) + (f" and {len(thin) - 5} more" if thin[5:] else "")
    return found, [
        f"{shown} changed too rarely to tell how long it is up and down (fewer than "
        f"{LEAST_PERIODS} whole periods of each); taken as in the base system, or as never failing"
    ]
