"""How long subscriptions last, and how long their subscribers are away between two of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.characterisation.cells import seconds
from tidings.characterisation.connectivity import FittedPeer, fit_connectivity
from tidings.characterisation.parameters import Parameter
from tidings.characterisation.sessions import period_cells
from tidings.model.system import Subscriber
from tidings.model.trace_tables import SUBSCRIPTIONS
from tidings.traces.lives import END_OF_TIME, end_of_life, lives
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

STAYS = "subscriber string, begun_ns bigint, ended_ns bigint, next_ns bigint"
_AT_ONCE_S = 1e-9  # as short as traces tell; back at once


def stays(subscriptions: DataFrame) -> DataFrame:
    """From when to when anybody had any subscription, and when it came again (null: never seen).

    Subscriptions of one subscriber that overlap are one stay. Those that only touch are two: who
    leaves and is back at once has missed what was on its way.
    """
    mine = Rows.partitionBy("subscriber").orderBy("subscribed_ns", "ends_ns")
    before = F.max("ends_ns").over(mine.rowsBetween(Rows.unboundedPreceding, -1))
    begins = F.coalesce(F.col("subscribed_ns") >= before, F.lit(True))
    number = F.sum(begins.cast("int")).over(mine.rowsBetween(Rows.unboundedPreceding, 0))
    found = (
        lives(subscriptions)
        .withColumn("ends_ns", end_of_life())
        .withColumn("stay", number)
        .groupBy("subscriber", "stay")
        .agg(F.min("subscribed_ns").alias("begun_ns"), F.max("ends_ns").alias("ended_ns"))
    )
    again = F.lead("begun_ns").over(Rows.partitionBy("subscriber").orderBy("stay"))
    return found.select("subscriber", "begun_ns", "ended_ns", again.alias("next_ns"))


def stay_periods(subscriptions: DataFrame, window: TraceWindow) -> DataFrame:
    """Times subscribed (``connected``) and away, by subscriber and length; ``PERIOD_CELLS``.

    Those whose beginning was seen; what the end of the window cuts off counts as at least as long.
    """
    good = with_reasons(subscriptions, SUBSCRIPTIONS).where(F.col(REASON).isNull())
    until_ns = F.lit(window.until_ns)

    def period(connected: bool, begin: str, end: str) -> Column:
        return F.struct(
            F.lit(connected).alias("connected"),
            F.col(begin).alias("begin_ns"),
            F.coalesce(F.col(end), F.lit(END_OF_TIME)).alias("end_ns"),
        )

    both = F.array(period(True, "begun_ns", "ended_ns"), period(False, "ended_ns", "next_ns"))
    rows = stays(good).select(F.col("subscriber").alias("path"), F.inline(both))
    seen = (F.col("begin_ns") > F.lit(window.from_ns)) & (F.col("begin_ns") < until_ns)
    length_ns = F.least(F.col("end_ns"), until_ns) - F.col("begin_ns")
    return period_cells(
        rows.where(seen).select(
            "path",
            "connected",
            seconds(length_ns).alias("length_s"),
            (F.col("end_ns") <= until_ns).alias("ended"),
        )
    )


def fit_stays(cells: pd.DataFrame) -> tuple[dict[str, FittedPeer], list[str]]:
    """How long each subscriber is subscribed and away, and a note of those who came too rarely."""
    least_s = cells["count"] * _AT_ONCE_S
    return fit_connectivity(
        cells.assign(total_s=cells["total_s"].clip(lower=least_s)), there="subscribed"
    )


def with_stays(
    subscribers: Sequence[Subscriber], found: Mapping[str, FittedPeer]
) -> tuple[tuple[Subscriber, ...], list[Parameter]]:
    """The subscribers as they subscribe and leave, and the parameters of that.

    Of whoever is mobile as well only that is told: no engine handles both at once.
    """
    changed, parameters = [], []
    for each in subscribers:
        fitted = found.get(each.name)
        if fitted is None or each.connectivity is not None:
            changed.append(each)
            continue
        parameters.append(fitted.on.parameter(f"subscribers.{each.name}.stays"))
        away = None if fitted.off.law.mean_s <= _AT_ONCE_S else fitted.off.law
        if away is not None:
            parameters.append(fitted.off.parameter(f"subscribers.{each.name}.away"))
        changed.append(replace(each, stays=fitted.on.law, away=away))
    return tuple(changed), parameters
