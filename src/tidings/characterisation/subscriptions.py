"""Who wants what, from where."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.cells import keys_of_good_rows
from tidings.characterisation.copies import surplus
from tidings.model.trace_tables import SUBSCRIPTIONS
from tidings.traces.quarantine import REASON, with_reasons

SUBSCRIPTION_STATISTICS = (
    "reason string, subscriber string, broker string, action string, filter string, "
    "rows bigint, duplicates bigint, first_ns bigint, last_ns bigint"
)


def subscription_statistics(subscriptions: DataFrame) -> DataFrame:
    """Every filter that anybody subscribed with, and when first and last; steps are counted.

    Copies of a step change nothing else, and are counted.
    """
    keys = ("subscriber", "broker", "action", "filter")
    columns = [column.name for column in SUBSCRIPTIONS.columns]
    tagged = with_reasons(subscriptions, SUBSCRIPTIONS)
    alike = tagged.groupBy(REASON, *columns).agg(F.count(F.lit(1)).alias("rows"))
    return (
        keys_of_good_rows(alike, *keys)
        .groupBy(REASON, *keys)
        .agg(
            F.sum("rows").alias("rows"),
            surplus().alias("duplicates"),
            F.min("at_ns").alias("first_ns"),
            F.max("at_ns").alias("last_ns"),
        )
    )
