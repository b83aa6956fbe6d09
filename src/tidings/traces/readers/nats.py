"""Message-trace events of NATS servers, as JSON Lines: one event per server that saw a message.

A publisher asks for them with the header ``Nats-Trace-Dest``. An event tells when the server took a
message in, from whom, and when it put it out, to whom:

- ``hops``: taken in, put out for the last time; when work began is not told;
- ``publications``: where it was taken in from a client. Servers do not know when the client sent
  it: the header ``Tidings-Published-Ns`` says so where given, else it is when the server took it;
- ``deliveries``: put out to a client, which is a little before the client has it. A server writes
  down the time of each copy; all count from the last one, when the hop ends, as copies leave a
  broker together in the model (else some would arrive before the hop that sent them ended);
- ``subscriptions``: the subjects, with wildcards, for which clients were sent messages.

A queue group is one subscriber, by its name, whichever of its members was sent a message.

Messages are told apart by the header ``Nats-Msg-Id``, or by their ``traceparent``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.traces.quarantine import REASON, UNREADABLE
from tidings.traces.readers import lines
from tidings.traces.readers.json_text import with_object
from tidings.traces.readers.reading import Keep, Reader, Reading, as_it_is, candidates
from tidings.traces.readers.subjects import NATS, subject_content, subject_filter
from tidings.traces.readers.times import ISO, nanoseconds

TABLES = ("publications", "hops", "deliveries", "subscriptions")
NO_EVENT = "not a trace event in JSON"
NO_INGRESS = "it does not show where the message entered"
NO_ID = "it has neither Nats-Msg-Id nor traceparent, so the message is unknown"
TRACE_EVENT = (
    "server struct<name string>, "
    "request struct<header map<string, array<string>>, msgsize bigint>, "
    "events array<struct<type string, ts string, kind int, cid bigint, name string, subj string, "
    "sub string, queue string, error string>>"
)
_CLIENT = 0  # the servers' number for a connection of a client; others are those of servers


def read_nats(spark: SparkSession, files: Sequence[str], keep: Keep = as_it_is) -> Reading:
    """Read candidate rows from the message-trace events in these files."""
    events = keep(trace_events(lines.read_lines(spark, files)), "events")
    good = events.where(F.col(REASON).isNull())
    tables = {
        "publications": _publications(good),
        "hops": _hops(good),
        "deliveries": _deliveries(good),
        "subscriptions": _subscriptions(good),
    }
    return Reading(
        tables={name: candidates(tables[name], name, files[0]) for name in TABLES},
        records=events.select(REASON, *lines.ORIGIN),
        noun="lines",
        notes=(
            "NATS traces do not contain the time at which a server starts to work on a "
            "message; deliveries are timed when the server sends the message to its "
            "client",
        ),
    )


def trace_events(rows: DataFrame) -> DataFrame:
    """Read every line as a trace event: who, which message, in and out; and why it is of no use."""
    whole = F.when(F.col("object").isNotNull(), F.col(lines.TEXT))
    parsed = with_object(rows, "object").withColumn("it", F.from_json(whole, TRACE_EVENT))
    came_in = F.get(F.filter("it.events", lambda each: each["type"] == "in"), F.lit(0))
    went_out = F.filter("it.events", lambda each: each["type"] == "eg")
    header = "it.request.header"
    event = F.coalesce(_first(header, "Nats-Msg-Id"), _first(header, "traceparent"))
    reason = F.coalesce(
        lines.not_utf8(),
        F.when(~F.col("told"), F.lit(NO_EVENT)),
        F.when(F.col("came_in").isNull(), F.lit(NO_INGRESS)),
        F.when(F.col("event").isNull(), F.lit(NO_ID)),
    )
    return parsed.select(
        F.col("it.server.name").alias("server"),
        event.alias("event"),
        _first(header, "Tidings-Published-Ns").alias("sent_ns"),
        _first(header, "Nats-TTL").alias("ttl"),
        F.col("it.request.msgsize").alias("size_bytes"),
        came_in.alias("came_in"),
        went_out.alias("went_out"),
        (F.col("it.server").isNotNull() | F.col("it.events").isNotNull()).alias("told"),
        *lines.ORIGIN,
    ).withColumn(REASON, reason)


def _publications(events: DataFrame) -> DataFrame:
    taken_ns = nanoseconds(F.col("came_in.ts"), ISO)
    own = F.nullif(F.trim("sent_ns"), F.lit(""))
    return events.where(F.col("came_in.kind") == _CLIENT).select(
        "event",
        _peer("came_in").alias("publisher"),
        F.col("server").alias("broker"),
        F.coalesce(own.try_cast("bigint"), taken_ns).alias("published_ns"),
        subject_content(F.col("came_in.subj"), NATS).alias("content"),
        _lifetime_ns().alias("lifetime_ns"),
        "size_bytes",
        F.when(
            own.isNotNull() & own.try_cast("bigint").isNull(),
            F.lit("Tidings-Published-Ns is not a whole number"),
        ).alias(UNREADABLE),
        *lines.ORIGIN,
    )


def _hops(events: DataFrame) -> DataFrame:
    taken_ns = nanoseconds(F.col("came_in.ts"), ISO)
    to_servers = F.filter("went_out", lambda each: (each["kind"] != _CLIENT) & _sent(each))
    return events.select(
        "event",
        F.col("server").alias("broker"),
        _peer("came_in").alias("came_from"),
        taken_ns.alias("arrived_ns"),
        F.coalesce(_last_out_ns(), taken_ns).alias("left_ns"),
        F.transform(to_servers, lambda each: each["name"]).alias("sent_to"),
        *lines.ORIGIN,
    )


def _deliveries(events: DataFrame) -> DataFrame:
    out = events.withColumn("out", F.explode("went_out")).where(F.col("out.kind") == _CLIENT)
    return out.select(
        "event",
        _receiver().alias("subscriber"),
        F.col("server").alias("broker"),
        F.coalesce(_last_out_ns(), nanoseconds(F.col("out.ts"), ISO)).alias("received_ns"),
        F.when(
            ~_sent(F.col("out")), F.concat(F.lit("the server did not send it: "), "out.error")
        ).alias(UNREADABLE),
        *lines.ORIGIN,
    )


def _subscriptions(events: DataFrame) -> DataFrame:
    """Make one subscription per client and subject, as from before the recording.

    Nobody recorded when it began.
    """
    out = events.withColumn("out", F.explode("went_out")).where(F.col("out.kind") == _CLIENT)
    known = out.where(F.col("out.sub").isNotNull())
    per_client = known.groupBy(
        _receiver().alias("subscriber"),
        F.col("server").alias("broker"),
        F.col("out.sub").alias("sub"),
    ).agg(*(F.min(name).alias(name) for name in (lines.FILE, lines.BLOCK, lines.PLACE)))
    return per_client.select(
        F.concat_ws(" ", "subscriber", "sub").alias("subscription"),
        "subscriber",
        "broker",
        F.lit("subscribe").alias("action"),
        F.lit(0).cast("bigint").alias("at_ns"),
        subject_filter(F.col("sub"), NATS).alias("filter"),
        lines.FILE,
        lines.BLOCK,
        lines.PLACE,
        F.lit(None).cast("string").alias(lines.TEXT),
    )


def _first(headers: str, name: str) -> Column:
    """Give the first value of a header, whatever the case of its name."""
    wanted = F.map_filter(headers, lambda key, _: F.lower(key) == name.lower())
    return F.get(F.get(F.map_values(wanted), F.lit(0)), F.lit(0))


def _peer(entry: str) -> Column:
    """Name who is at the other end: the name of the connection, or the server's number for it."""
    number = F.concat(F.lit("client-"), F.col(f"{entry}.cid"), F.lit("@"), F.col("server"))
    return F.coalesce(F.nullif(F.col(f"{entry}.name"), F.lit("")), number)


def _last_out_ns() -> Column:
    """Give when the last copy was put out, in nanoseconds."""
    return F.array_max(F.transform("went_out", lambda each: nanoseconds(each["ts"], ISO)))


def _receiver() -> Column:
    """Name who wanted what was put out: a queue group as a whole, whichever member was chosen."""
    return F.coalesce(F.nullif(F.col("out.queue"), F.lit("")), _peer("out"))


def _sent(entry: Column) -> Column:
    return F.coalesce(entry["error"], F.lit("")) == ""


def _lifetime_ns() -> Column:
    """Read ``Nats-TTL``, in nanoseconds: seconds, or a number with its unit; null for all else."""
    number = F.regexp_extract("ttl", r"^(\d+)(ms|s|m|h)?$", 1)
    unit = F.regexp_extract("ttl", r"^(\d+)(ms|s|m|h)?$", 2)
    scale = (
        F.when(unit == "ms", 10**6).when(unit == "m", 60 * 10**9).when(unit == "h", 3600 * 10**9)
    )
    return F.try_multiply(number.try_cast("bigint"), scale.otherwise(10**9))


READER = Reader(
    about="message-trace events of NATS servers",
    tables=TABLES,
    read=lambda spark, files, asked: read_nats(spark, files, asked.keep),
)
