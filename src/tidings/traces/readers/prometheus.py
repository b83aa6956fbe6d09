"""Scrapes in Prometheus's text format or OpenMetrics, and answers of its query API in JSON.

A line is a sample: a metric, labels, a value and perhaps a time. Which metrics are counters of a
queue is known of the exporters below; metrics in ``_bucket`` with a label that names a queue or a
consumer are histograms. Scrapes without times are of the time of their file.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.traces.quarantine import REASON
from tidings.traces.readers import lines
from tidings.traces.readers.derived import without_steps_back
from tidings.traces.readers.owners import kept_apart
from tidings.traces.readers.pages import COUNT, SEPARATOR, read_pages
from tidings.traces.readers.reading import Keep, Reader, Reading, candidates

TABLES = ("levels", "histograms")
NOT_A_SAMPLE = 'not a sample: name{label="value"} number, and perhaps a time'
A_COMMENT, ANOTHER = "a comment", "a metric of something else"
A_COPY = "of a server that follows the consumer's leader"
NO_RESULT = "not a result of the query API"
_DATED = "scrapes without times are taken to be of when their file was written"

# Of every metric: what it counts, and which labels name the queue and its part.
_NATS, _RABBITMQ = ("stream_name", "consumer_name"), ("queue",)
_KAFKA, _PARTITION = ("consumergroup",), ("topic", "partition")
_COUNTERS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "jetstream_consumer_delivered_consumer_seq": ("handed", _NATS, ()),
    "jetstream_consumer_num_pending": ("to_come", _NATS, ()),
    "jetstream_consumer_num_ack_pending": ("in_flight", _NATS, ()),
    "nats_consumer_delivered_consumer_seq": ("handed", _NATS, ()),
    "nats_consumer_num_pending": ("to_come", _NATS, ()),
    "nats_consumer_num_ack_pending": ("in_flight", _NATS, ()),
    "rabbitmq_queue_messages_published_total": ("entered", _RABBITMQ, ()),
    "rabbitmq_detailed_queue_messages_published_total": ("entered", _RABBITMQ, ()),
    "rabbitmq_queue_messages": ("there", _RABBITMQ, ()),
    "rabbitmq_detailed_queue_messages": ("there", _RABBITMQ, ()),
    "rabbitmq_queue_messages_unacked": ("in_flight", _RABBITMQ, ()),
    "rabbitmq_detailed_queue_messages_unacked": ("in_flight", _RABBITMQ, ()),
    "kafka_consumergroup_current_offset": ("done", _KAFKA, _PARTITION),
    "kafka_consumergroup_lag": ("there", _KAFKA, _PARTITION),
    "queue_entered_total": ("entered", ("queue",), ()),
    "queue_done_total": ("done", ("queue",), ()),
    "queue_in_flight": ("in_flight", ("queue",), ()),
    "queue_redelivered_total": ("redelivered", ("queue",), ()),
}
_OWNERS = ("account", "account_name", "vhost")
_ROLES = ("entered", "done", "handed", "to_come", "there", "in_flight", "redelivered")
# Labels that say whom a histogram is about, the surest first.
_NAMED_BY = (
    "subscriber", "messaging_consumer_group_name", "messaging_destination_subscription_name",
    "consumergroup", "consumer_group", "queue", "messaging_destination_name", "subscription",
    "broker",
)  # fmt: skip
_UNITS = {"_milliseconds": 1e-3, "_ms": 1e-3, "_microseconds": 1e-6, "_us": 1e-6}
_SERVES = "process|handl|service"
# Groups that repeat are possessive: Java's others take a stack frame each time they do.
_NAME, _TEXT = "[a-zA-Z_][a-zA-Z0-9_]*", r'[^"\\]*+(?:\\.[^"\\]*+)*+'
_LABEL = rf'({_NAME})\s*=\s*"({_TEXT})"'
_LABELS = rf'(?:\s*{_NAME}\s*=\s*"{_TEXT}"\s*,?)*+'
_EXEMPLAR = r"(?:\s+# \{.*)?"
_SAMPLE = (
    rf"^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{({_LABELS})\s*\}})?\s+(\S+)(?:\s+(-?[0-9.eE+]+))?"
    rf"{_EXEMPLAR}\s*$"
)
RESULT = (
    "status string, data struct<resultType: string, result: array<struct<"
    "metric: map<string, string>, values: array<array<string>>, value: array<string>>>>"
)


def read_prometheus(spark: SparkSession, files: Sequence[str], keep: Keep) -> Reading:
    """Read candidate levels and histograms, from JSON where files are called so, else from text."""
    answers = [file for file in files if ".json" in file.rsplit("/", 1)[-1]]
    if answers and len(answers) == len(files):
        samples, records, noun = _answers(spark, files)
        separator: str | None = SEPARATOR
    else:
        samples, records, noun = _scrapes(spark, files)
        separator = None
    samples = keep(samples.where((_is_counter() | _is_bucket()) & ~_is_copy()), "samples")
    levels, apart = _levels(samples)
    return Reading(
        tables={
            "levels": candidates(levels, "levels", files[0]),
            "histograms": candidates(_histograms(samples), "histograms", files[0]),
        },
        records=records,
        noun=noun,
        separator=separator,
        passed_over=(A_COMMENT, A_COPY, ANOTHER),
        notes=(*(() if separator else (_DATED,)), *apart),
    )


def _scrapes(spark: SparkSession, files: Sequence[str]) -> tuple[DataFrame, DataFrame, str]:
    """Read samples and records of scrapes, line by line."""
    text = F.trim(F.col(lines.TEXT))
    parts = [F.regexp_extract(text, _SAMPLE, group) for group in (1, 2, 3, 4)]
    metric, labels, value, time = parts
    samples = F.arrays_zip(
        F.regexp_extract_all(labels, F.lit(_LABEL), F.lit(1)).alias("key"),
        F.transform(F.regexp_extract_all(labels, F.lit(_LABEL), F.lit(2)), _unescaped).alias(
            "text"
        ),
    )
    named = lines.read_dated_lines(spark, files).select(
        *lines.ORIGIN,
        metric.alias("metric"),
        samples.alias("labels"),
        value.try_cast("double").alias("value"),
        F.coalesce(_moment(time), F.col("written_ns")).alias("at_ns"),
        lines.not_utf8().alias("no_text"),
    )
    comment = F.trim(F.col(lines.TEXT)).startswith("#")
    no_sample = (F.col("metric") == "") | F.col("value").isNull()
    reason = F.coalesce(
        F.col("no_text"),
        F.when(comment, F.lit(A_COMMENT)),
        F.when(no_sample, F.lit(NOT_A_SAMPLE)),
        F.when(_is_copy(), F.lit(A_COPY)),
        F.when(~(_is_counter() | _is_bucket()), F.lit(ANOTHER)),
    )
    records = named.withColumn(REASON, reason)
    good = records.where(F.col(REASON).isNull())
    return good, records.select(REASON, *lines.ORIGIN), "lines"


def _answers(spark: SparkSession, files: Sequence[str]) -> tuple[DataFrame, DataFrame, str]:
    """Read samples and records of answers to queries: matrices and vectors."""
    pages = read_pages(spark, files, RESULT)
    none = F.coalesce(F.size("page.data.result"), F.lit(-1)) < 0
    records = pages.withColumn(REASON, F.coalesce(F.col(REASON), F.when(none, F.lit(NO_RESULT))))
    series = records.where(F.col(REASON).isNull()).select(
        *lines.ORIGIN, F.explode("page.data.result").alias("each")
    )
    pairs = F.coalesce("each.values", F.array("each.value"))
    samples = series.select(
        *lines.ORIGIN,
        F.element_at("each.metric", "__name__").alias("metric"),
        F.transform(
            F.map_entries("each.metric"),
            lambda entry: F.struct(entry["key"].alias("key"), entry["value"].alias("text")),
        ).alias("labels"),
        F.explode(pairs).alias("pair"),
    ).select(
        *lines.ORIGIN,
        "metric",
        "labels",
        F.get("pair", F.lit(1)).try_cast("double").alias("value"),
        _moment(F.get("pair", F.lit(0))).alias("at_ns"),
    )
    return samples, records.select(REASON, *lines.ORIGIN), "pages"


def _unescaped(text: Column) -> Column:
    r"""Read a label's text as samples write it: \\ stands for \, \" for " and \n for a new line."""
    bare = F.replace(text, F.lit("\\\\"), F.lit("\0"))  # no sample has a zero byte
    for written, meant in ((r"\"", '"'), (r"\n", "\n"), ("\0", "\\")):
        bare = F.replace(bare, F.lit(written), F.lit(meant))
    return bare


def _moment(text: Column) -> Column:
    """Read a time in nanoseconds: milliseconds in scrapes, seconds in OpenMetrics and answers."""
    number = F.nullif(text, F.lit("")).try_cast("decimal(28,9)")
    unit = F.when(F.abs(number) >= 10**11, F.lit(10**6)).otherwise(F.lit(10**9))
    return F.round(F.try_multiply(number, unit), 0).try_cast("bigint")


def _label(*names: str) -> Column:
    """Give the first of these labels that a sample has."""

    def one(name: str) -> Column:
        there = F.filter("labels", lambda each: each["key"] == name)
        return F.nullif(F.get(there, F.lit(0))["text"], F.lit(""))

    return F.coalesce(*(one(name) for name in names))


def _is_counter() -> Column:
    return F.col("metric").isin(*_COUNTERS)


def _is_copy() -> Column:
    """Test whether another server leads the consumer.

    Every replica exports it, the leader rightly.
    """
    return F.coalesce(_label("is_consumer_leader") == "false", F.lit(False))


def _is_bucket() -> Column:
    bucket = F.col("metric").endswith("_bucket") & _label("le").isNotNull()
    return bucket & _label(*_NAMED_BY).isNotNull()


def _levels(samples: DataFrame) -> tuple[DataFrame, tuple[str, ...]]:
    """Put together the counters of one queue and moment; several series of a role add up."""
    role: Column = F.lit(None).cast("string")
    queue: Column = F.lit(None).cast("string")
    part: Column = F.lit(None).cast("string")
    for metric, (what, names, parts) in _COUNTERS.items():
        this = F.col("metric") == metric
        role = F.when(this, F.lit(what)).otherwise(role)
        queue = F.when(this, F.concat_ws("-", *(_label(name) for name in names))).otherwise(queue)
        if parts:
            joined = F.concat_ws("/", *(_label(name) for name in parts))
            part = F.when(this, joined).otherwise(part)
    whole = F.when(~F.isnan("value"), F.col("value")).try_cast("bigint").cast(COUNT)
    counters = samples.where(_is_counter()).select(
        role.alias("role"),
        queue.alias("queue"),
        part.alias("part"),
        _label(*_OWNERS).alias("owner"),
        "at_ns",
        whole.alias("count"),
        F.struct(*lines.ORIGIN).alias("origin"),
    )
    counters, apart = kept_apart(counters, "accounts or virtual hosts")
    together = counters.groupBy("queue", "part", "at_ns").agg(
        *(F.sum(F.when(F.col("role") == name, F.col("count"))).alias(name) for name in _ROLES),
        F.min("origin").alias("origin"),
    )
    entered = F.coalesce(
        F.col("entered"), F.col("handed") + F.col("to_come"), F.col("done") + F.col("there")
    )
    counted = F.coalesce(F.col("done"), F.col("handed") - F.coalesce("in_flight", F.lit(0)))
    left = F.col("entered") - F.col("there")
    together = without_steps_back(together.withColumn("left", left), "left", "entered")
    levels = together.select(
        "queue",
        "part",
        "at_ns",
        entered.alias("entered"),
        F.coalesce(counted, F.col("left")).alias("done"),
        "in_flight",
        "redelivered",
        "origin.*",
    )
    return levels, apart


def _histograms(samples: DataFrame) -> DataFrame:
    base = F.regexp_replace("metric", "_bucket$", "")
    scale: Column = F.lit(1.0)
    for ending, unit in _UNITS.items():
        scale = F.when(base.endswith(ending), F.lit(unit)).otherwise(scale)
    others = F.filter("labels", lambda each: each["key"] != "le")
    series = F.concat_ws(
        ",",
        F.array_sort(F.transform(others, lambda each: F.concat_ws("=", each["key"], each["text"]))),
    )
    serves = F.lower(base).rlike(_SERVES)
    return samples.where(_is_bucket()).select(
        _label(*_NAMED_BY).alias("name"),
        F.when(serves, F.lit("service")).otherwise(F.lit("delay")).alias("what"),
        F.concat_ws(" ", base, series).alias("series"),
        "at_ns",
        (_label("le").try_cast("double") * scale).alias("up_to_s"),
        F.when(~F.isnan("value"), F.col("value")).try_cast("bigint").alias("events"),
        *lines.ORIGIN,
    )


READER = Reader(
    about="scrapes, and answers of the query API",
    tables=TABLES,
    read=lambda spark, files, asked: read_prometheus(spark, files, asked.keep),
)
