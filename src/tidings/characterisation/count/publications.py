"""What is published: how often, at which intervals, with which contents, lifetimes and sizes."""

from __future__ import annotations

from collections.abc import Collection

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import (
    count_cells,
    delay_bin,
    hour_of_week,
    sample_sums,
    seconds,
    summed_up,
    whole_row,
    with_reason,
)
from tidings.characterisation.statistics import (
    BATCHES,
    INSTANTS,
    PUBLISHED_OUTSIDE,
    SAMPLE,
    SCALE_SUMS,
    SCALES_NS,
    WHOLE_NS,
)
from tidings.model.trace_tables import PUBLICATIONS
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import DAY_NS, HOUR_NS, TraceWindow

# Per reason, per (publisher, broker), per (publisher, content, lifetime bin) and per (publisher,
# content, batch); a batch is null after the end of the measured window, a lifetime for ever. The
# key of a content stands for its text where events are looked at one by one.
PUBLICATION_STATISTICS = (
    "statistic string, reason string, publisher string, broker string, content string, "
    "lifetime_bin int, batch int, rows bigint, lifetime_total_s double, "
    "least_lifetime_ns bigint, most_lifetime_ns bigint, sizes bigint, size_total_bytes double, "
    "least_size_bytes bigint, most_size_bytes bigint, content_key bigint"
)
_SETS = {
    "quality": (REASON,),
    "publishers": ("publisher", "broker"),
    "contents": ("publisher", "content", "lifetime_bin"),
    "batches": ("publisher", "content", "batch"),
}
# Per (publisher, bin): intervals between events; per (publisher, batch): first and last moment, and
# apart, as ``scales``, how events fall into windows of several lengths; per (publisher, hour of the
# week, as its bin): events.
INTERVAL_STATISTICS = (
    "statistic string, publisher string, bin int, batch int, "
    f"{SAMPLE}, first_ns bigint, last_ns bigint, "
    f"{', '.join(f'{name} bigint' for name in (*INSTANTS, *SCALE_SUMS))}"
)
_INTERVAL_SETS = {
    "intervals": ("publisher", "bin"),
    "ends": ("publisher", "batch"),
    "hours": ("publisher", "hour"),
}
# Per (publisher, hour of day): publications, whatever the date.
HOURLY_COUNTS = "publisher string, hour int, rows bigint"


def checked_publications(publications: DataFrame, window: TraceWindow) -> DataFrame:
    """Give every publication the reason why it cannot be used, null where it can."""
    outside = ~window.holds(F.col("published_ns"))
    return with_reason(with_reasons(publications, PUBLICATIONS), outside, PUBLISHED_OUTSIDE)


def publication_statistics(
    publications: DataFrame, window: TraceWindow, measured: TraceWindow
) -> DataFrame:
    """Count publications by publisher, content, lifetime and batch, in one reading.

    Contents are grouped as texts, before anything looks into them; lifetimes by the bins of the
    delay grid, with the exact value where a bin holds only one (:func:`exact_lifetimes` tells apart
    the few that share a bin). Batches are those of ``measured``.
    """
    lifetime_s = seconds(F.col("lifetime_ns"))
    in_time = measured.holds(F.col("published_ns"))
    rows = checked_publications(publications, window).select(
        REASON,
        "publisher",
        "broker",
        "content",
        "lifetime_ns",
        "size_bytes",
        delay_bin(lifetime_s).alias("lifetime_bin"),
        F.when(in_time, measured.batch(F.col("published_ns"), BATCHES)).alias("batch"),
    )
    keys = ("publisher", "broker", "content", "lifetime_bin", "batch")
    return count_cells(rows, keys, _sums(), _SETS).withColumn("content_key", content_key())


def content_key() -> Column:
    """Hash a content into eight bytes, narrower than the text where rows are moved; 0: none.

    Never null: pandas would keep numbers with gaps as doubles, which cannot hold eight bytes.
    """
    return F.when(F.col("content").isNotNull(), F.xxhash64("content")).otherwise(F.lit(0))


def said_of_event() -> Column:
    """Hash all that a publication says of its event into a number of eight bytes."""
    return whole_row(*(column.name for column in PUBLICATIONS.columns if column.name != "event"))


def by_event(publications: DataFrame, *columns: str) -> DataFrame:
    """Make one row per event: ``columns``, in how many ``copies`` it occurs, whether they differ.

    Rows of one event are united before they are moved, so that an id with many of them keeps no
    machine busy on its own. Of copies that differ in anything, the least values are given.
    """
    return (
        publications.withColumn("whole", said_of_event())
        .groupBy("event")
        .agg(
            *(F.min(name).alias(name) for name in columns),
            F.count(F.lit(1)).alias("copies"),
            (F.min("whole") != F.max("whole")).alias("differ"),
        )
    )


def each_once(publications: DataFrame) -> DataFrame:
    """Keep every event once, however many copies there are; drop those whose copies differ."""
    names = [column.name for column in PUBLICATIONS.columns]
    united = by_event(publications, *(name for name in names if name != "event"))
    return united.where(~F.col("differ")).select(*names)


def exact_lifetimes(publications: DataFrame, pairs: DataFrame, most: int) -> DataFrame:
    """Count good publications by exact lifetime, for some pairs of publisher and content.

    ``pairs`` (publisher, content) is small. Of a pair with more than ``most`` distinct lifetimes
    come ``most`` + 1 rows: enough to see that it has more.
    """
    keys = ("publisher", "content", "lifetime_ns")
    counts = (
        publications.join(F.broadcast(pairs), ["publisher", "content"], "left_semi")
        .groupBy(*keys)
        .agg(*_sums())
    )
    ordered = Rows.partitionBy("publisher", "content").orderBy("lifetime_ns")
    # A plain limit on the place, which Spark then keeps to before it moves any rows: a content with
    # most of the events may have as many lifetimes. Those for ever come first, and count apart.
    first = counts.withColumn("place", F.row_number().over(ordered)).where(
        F.col("place") <= most + 2
    )
    endless = F.max(F.col("lifetime_ns").isNull().cast("int")).over(
        Rows.partitionBy("publisher", "content")
    )
    return (
        first.withColumn("place", F.col("place") - endless)
        .where(F.col("place") <= most + 1)
        .withColumn("lifetime_bin", delay_bin(seconds(F.col("lifetime_ns"))))
        .drop("place", "lifetime_ns")
    )


def hourly_counts(publications: DataFrame, window: TraceWindow) -> DataFrame:
    """Count good publications by publisher and hour of day (UTC), whatever the date.

    Copies count too.
    """
    into_day_ns = F.pmod(F.col("published_ns"), F.lit(DAY_NS))
    hour = F.call_function("div", into_day_ns, F.lit(HOUR_NS)).cast("int")
    good = checked_publications(publications, window).where(F.col(REASON).isNull())
    return good.groupBy("publisher", hour.alias("hour")).agg(F.count(F.lit(1)).alias("rows"))


def _sums() -> list[Column]:
    """Make the aggregates of a cell of publications: rows, lifetimes and sizes."""
    return [
        F.count(F.lit(1)).alias("rows"),
        F.sum(seconds(F.col("lifetime_ns"))).alias("lifetime_total_s"),
        F.min("lifetime_ns").alias("least_lifetime_ns"),
        F.max("lifetime_ns").alias("most_lifetime_ns"),
        F.count("size_bytes").alias("sizes"),
        F.sum(F.col("size_bytes").cast("double")).alias("size_total_bytes"),
        F.min("size_bytes").alias("least_size_bytes"),
        F.max("size_bytes").alias("most_size_bytes"),
    ]


def interval_statistics(publications: DataFrame, window: TraceWindow) -> DataFrame:
    """Count times between a publisher's successive events, in seconds; find every batch's ends.

    Events are put in order within a publisher *and* a batch, so that a publisher with most of the
    events does not serialise the job. The intervals that bridge two batches are missing here:
    whoever reads this adds them from the batches' first and last moments.
    """
    batch = window.piece(F.col("published_ns"), BATCHES)
    good = checked_publications(publications, window).where(F.col(REASON).isNull())
    ordered = Rows.partitionBy("publisher", "batch").orderBy("published_ns")
    # Both what is put in order and what is grouped goes by these keys: rows are moved once.
    rows = good.select("publisher", batch.alias("batch"), "published_ns")
    rows = rows.repartition("publisher", "batch")
    intervals = rows.withColumns(
        {
            "before_ns": F.lag("published_ns").over(ordered),
            "place": F.row_number().over(ordered),
            "hour": hour_of_week(F.col("published_ns")),
        }
    )
    interval_s = seconds(F.col("published_ns") - F.col("before_ns"))
    intervals = intervals.withColumns({"interval_s": interval_s, **_first_places()})
    keys = ("publisher", "batch", "hour", delay_bin(F.col("interval_s")).alias("bin"))
    cells = intervals.groupBy(*keys).agg(
        *sample_sums(F.col("interval_s")),
        F.min("published_ns").alias("first_ns"),
        F.max("published_ns").alias("last_ns"),
        *_instants(F.col("interval_s")),
        *_squares(),
    )
    summed = summed_up(cells, _INTERVAL_SETS)
    bins = F.when(F.col("statistic") == "hours", F.col("hour")).otherwise(F.col("bin"))
    return _with_scales(summed.withColumn("bin", bins).drop("hour"))


def _instants(interval_s: Column) -> list[Column]:
    """Count events, the instants at which they are, and those at whole units of the clock."""
    at_ns = F.col("published_ns")
    return [
        F.count(F.lit(1)).alias("events"),
        F.count_if(interval_s.isNull() | (interval_s > 0)).alias("instants"),
        *(
            F.count_if(F.pmod(at_ns, F.lit(unit_ns)) == 0).alias(name)
            for name, unit_ns in WHOLE_NS.items()
        ),
    ]


def _first_places() -> dict[str, Column]:
    """Find the number, in order, of the first event in the same window of time, by length."""
    so_far = (
        "over (partition by publisher, batch order by published_ns "
        "rows between unbounded preceding and current row)"
    )

    def first(length_ns: int) -> Column:
        begins = f"before_ns is null or published_ns div {length_ns} <> before_ns div {length_ns}"
        return F.expr(f"max(case when {begins} then place end) {so_far}")

    pairs = zip(SCALE_SUMS, SCALES_NS, strict=True)
    return {f"first_{name}": first(length_ns) for name, length_ns in pairs}


def _squares() -> list[Column]:
    """Sum squares of how many events fall into windows of time: Σ n² for every length.

    The n-th event of a window adds n² − (n − 1)² = 2n − 1, whatever group of rows it is counted in.
    """
    return [
        F.expr(f"sum(bigint(2 * (place - first_{name}) + 1))").alias(name) for name in SCALE_SUMS
    ]


def _with_scales(rows: DataFrame) -> DataFrame:
    """Give rows of batches twice: as ``ends``, and as ``scales``.

    These say how events fall into windows.
    """
    twice = F.when(F.col("statistic") == "ends", F.array(F.lit("ends"), F.lit("scales")))
    once = rows.withColumn("statistic", F.explode(F.coalesce(twice, F.array("statistic"))))
    is_scales = F.col("statistic") == "scales"
    both = ("statistic", "publisher", "batch", "first_ns", "last_ns", "events")
    return once.withColumns(
        {
            name: F.when(is_scales if name in SCALE_SUMS else ~is_scales, F.col(name))
            for name in once.columns
            if name not in both
        }
    )


def folded_contents(publications: DataFrame, attributes: Collection[str]) -> DataFrame:
    """Keep only these attributes of contents; what is no object stays as it is.

    Every content is parsed for it, row by row, which costs more than all other statistics.
    """
    parts = F.try_parse_json("content").try_cast("map<string, variant>")
    kept = F.map_filter(parts, lambda name, _: name.isin(*attributes))
    return publications.withColumn("content", F.coalesce(F.to_json(kept), F.col("content")))


def folding_statistics(publications: DataFrame, attributes: Collection[str]) -> DataFrame:
    """Count publications, how many lose an attribute by folding, and how many contents there are.

    Contents are counted to about 2 %: their number may grow with the traces.
    """
    whole = publications.select(F.col("content").alias("whole"), "content")
    folded = folded_contents(whole, attributes)
    return folded.agg(
        F.count(F.lit(1)).alias("rows"),
        F.count_if(_attributes("whole") > _attributes("content")).alias("folded"),
        F.approx_count_distinct("whole", 0.02).alias("contents"),
    )


def _attributes(content: str) -> Column:
    return F.coalesce(F.size(F.json_object_keys(content)), F.lit(0))
