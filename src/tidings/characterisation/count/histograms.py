"""How much histograms grew that brokers and clients keep, by bound."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import each_row_once, good_rows
from tidings.model.trace_tables import HISTOGRAMS

# Per series and set of bounds: how many events took at most so long.
HISTOGRAM_STATISTICS = (
    "name string, what string, series string, bounds bigint, up_to_s double, events bigint"
)
_SERIES = ("name", "what", "series", "bounds")


def histogram_statistics(histograms: DataFrame) -> DataFrame:
    """Sum up by how much each bound of each series grew; one that was read once counts whole.

    A series in which any bound goes down was reset and begins again from 0. Bounds that were
    changed begin a series of their own.
    """
    read = each_row_once(good_rows(histograms, HISTOGRAMS)).withColumn(
        "series", F.coalesce("series", F.lit(""))
    )
    at_once = Rows.partitionBy("name", "what", "series", "at_ns")
    known = read.withColumn(
        "bounds", F.xxhash64(F.sort_array(F.collect_set("up_to_s").over(at_once)))
    )
    in_order = Rows.partitionBy(*_SERIES, "up_to_s").orderBy("at_ns", "events")
    grown = known.withColumns(
        {"before": F.lag("events").over(in_order), "reads": F.row_number().over(in_order)}
    )
    together = Rows.partitionBy(*_SERIES, "at_ns")
    less = (F.col("events") < F.col("before")).cast("int")
    reset = F.coalesce(F.max(less).over(together), F.lit(0)) == 1
    more = F.when(reset, F.col("events")).otherwise(F.col("events") - F.col("before"))
    sums = grown.withColumn("more", more).groupBy(*_SERIES, "up_to_s")
    grew = F.when(F.max("reads") > 1, F.coalesce(F.sum("more"), F.lit(0)))
    return sums.agg(F.coalesce(grew, F.max("events")).alias("events"))
