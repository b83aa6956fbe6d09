"""Queues of one name that belong to several accounts, virtual hosts or clusters, kept apart."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.model.naming import few
from tidings.traces.actions import bring_here


def kept_apart(rows: DataFrame, owners: str) -> tuple[DataFrame, tuple[str, ...]]:
    """Name a queue with its ``owner`` where several have one so named, and tell which these are.

    ``owners`` is what they are, in words; the column ``owner`` is gone afterwards.
    """
    by_name = rows.where(F.col("queue").isNotNull() & F.col("owner").isNotNull())
    by_name = by_name.groupBy("queue").agg(F.min("owner").alias("one"), F.max("owner").alias("two"))
    shared = bring_here(by_name.where("one < two").orderBy("queue"), f"queues of several {owners}")
    names = [str(name) for name in shared["queue"]]
    if not names:
        return rows.drop("owner"), ()
    with_owner = F.concat_ws("/", "owner", "queue")
    named = F.when(F.col("queue").isin(names), with_owner).otherwise(F.col("queue"))
    note = f"several {owners} have a queue of one name, which are named with theirs: {few(names)}"
    return rows.withColumn("queue", named).drop("owner"), (note,)
