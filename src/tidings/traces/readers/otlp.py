"""Spans of messaging clients, as OpenTelemetry, Tempo, Jaeger and Zipkin export them.

Spans that create or publish a message become ``publications``, those that receive or process it
``deliveries``, each client and destination a ``subscription``. Attribute names are those of the
messaging conventions, new and old. A delivery finds its publication by the links of its span (a
batch has one per message), else by its parent, else by the message id and destination. Spans of
brokers and of others may stand in between: their parents are followed up to the next producer, and
so is the link of a span that has but one.

A consumer's destination need not be called as the producer's is (RabbitMQ's has the queue in it): a
destination that nobody publishes to is read as the contents of what was delivered from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.traces.quarantine import REASON, UNREADABLE
from tidings.traces.readers import lines
from tidings.traces.readers.json_text import object_json, quoted, with_object
from tidings.traces.readers.lifetimes import ODD, Lifetimes, ruled_lifetime, told_lifetime
from tidings.traces.readers.reading import Keep, Reader, Reading, as_it_is, candidates
from tidings.traces.readers.span_files import REFUSED, read_span_lines

TABLES = ("publications", "deliveries", "subscriptions")
NO_EXPORT = "not an export of spans in JSON"
NOT_MESSAGING = "not a span of a message sent or received"
NO_PUBLICATION = "neither a link, nor its parent, nor a message id leads to a publication"

_PLAIN = "stringValue string, intValue string, doubleValue string, boolValue string"
_VALUE = f"struct<{_PLAIN}, arrayValue struct<values array<struct<{_PLAIN}>>>>"
_ATTRIBUTES = f"array<struct<key string, value {_VALUE}>>"
SPAN = (
    "struct<traceId string, spanId string, parentSpanId string, name string, kind string, "
    "startTimeUnixNano string, endTimeUnixNano string, "
    f"attributes {_ATTRIBUTES}, links array<struct<traceId string, spanId string>>>"
)
REQUEST = (
    f"resourceSpans array<struct<resource struct<attributes {_ATTRIBUTES}>, "
    f"scopeSpans array<struct<spans array<{SPAN}>>>, "
    f"instrumentationLibrarySpans array<struct<spans array<{SPAN}>>>>>"
)

# What an attribute is called, today's name first.
DESTINATION = (
    "messaging.destination.name",
    "messaging.destination",
    "message_bus.destination",  # OpenTracing
    "kafka.topic",  # Zipkin's own libraries
    "rabbit.exchange",
    "jms.topic",
    "jms.queue",
)
OPERATION = ("messaging.operation.type", "messaging.operation", "messaging.operation.name")
MESSAGE_ID = ("messaging.message.id", "messaging.message_id")
SYSTEM = ("messaging.system",)
ROUTING_KEY = (
    "messaging.rabbitmq.destination.routing_key",
    "messaging.rabbitmq.routing_key",
    "rabbit.routing_key",
)
BODY_SIZE = (
    "messaging.message.body.size",
    "messaging.message.payload_size_bytes",
    "messaging.message_payload_size_bytes",
    "messaging.message.envelope.size",
)
GROUP = (
    "messaging.consumer.group.name",
    "messaging.kafka.consumer.group",
    "messaging.kafka.consumer_group",
    "messaging.destination.subscription.name",
    "rabbit.queue",
)
CLIENT = (
    "messaging.client.id",
    "messaging.client_id",
    "messaging.consumer.id",
    "messaging.consumer_id",
    "messaging.kafka.client_id",
)
SERVICE = ("service.name",)
_OF_SPANS = (
    *DESTINATION,
    *OPERATION,
    *MESSAGE_ID,
    *BODY_SIZE,
    *GROUP,
    *CLIENT,
    *SYSTEM,
    *ROUTING_KEY,
)

PRODUCES = ("create", "publish", "send")
CONSUMES = ("receive", "process", "deliver", "consume", "poll")
_PRODUCER, _CONSUMER = ("4", "SPAN_KIND_PRODUCER"), ("5", "SPAN_KIND_CONSUMER")
_BY_LINK, _BY_PARENT, _BY_ID = 1, 2, 3
_MOST_BETWEEN = 4  # spans between a producer's and a consumer's


def read_otlp(
    spark: SparkSession,
    files: Sequence[str],
    keep: Keep = as_it_is,
    lifetimes: Lifetimes | None = None,
) -> Reading:
    """Read candidate rows from the spans in these files."""
    read, in_lines = read_span_lines(spark, files)
    spans = keep(messaging_spans(read, lifetimes or Lifetimes()), "spans")
    sent = spans.where(F.col("role") == "producer")
    received = spans.where(F.col("role") == "consumer")
    delivered = keep(deliveries_of(received, _leading(spans)), "delivered")
    tables = {
        "publications": _publications(sent),
        "deliveries": delivered,
        "subscriptions": _subscriptions(received, delivered, sent),
    }
    return Reading(
        tables={name: candidates(tables[name], name, files[0]) for name in TABLES},
        records=spans.select(REASON, *lines.ORIGIN),
        noun="spans",
        in_lines=in_lines,
        passed_over=(NOT_MESSAGING,),
    )


def messaging_spans(rows: DataFrame, lifetimes: Lifetimes) -> DataFrame:
    """Read every span with its messaging attributes and role.

    A line that is no export is one record.
    """
    named = _named_spans(rows, lifetimes)
    reason = F.coalesce(
        F.col(REFUSED),
        lines.not_utf8(),
        F.when(F.col("span").isNull(), F.lit(NO_EXPORT)),
        F.when(_role().isNull(), F.lit(NOT_MESSAGING)),
    )
    return named.select(
        lines.FILE,
        lines.BLOCK,
        lines.PLACE,
        F.coalesce(F.to_json("span"), F.col(lines.TEXT)).alias(lines.TEXT),
        _role().alias("role"),
        "operation",
        *_address(),
        "message",
        "size_bytes",
        F.coalesce("told_ns", ruled_lifetime(lifetimes, F.col("destination"))).alias("lifetime_ns"),
        "odd_lifetime",
        F.coalesce("group", _queue(), "service", "client").alias("consumer"),
        F.coalesce("service", "client").alias("producer"),
        _key(F.col("span.traceId"), F.col("span.spanId")).alias("span_key"),
        _key(F.col("span.traceId"), F.col("span.parentSpanId")).alias("parent_key"),
        F.transform("span.links", lambda link: _key(link["traceId"], link["spanId"])).alias(
            "link_keys"
        ),
        F.col("span.startTimeUnixNano").alias("start_ns"),
        F.col("span.endTimeUnixNano").alias("end_ns"),
        reason.alias(REASON),
    )


def _named_spans(rows: DataFrame, lifetimes: Lifetimes) -> DataFrame:
    """Read every span with the attributes that are asked for, each under one name.

    Old exporters write ``instrumentationLibrarySpans`` for ``scopeSpans``, some in between both.
    """
    good = F.col("object").isNotNull() & F.col(REFUSED).isNull()
    whole = F.when(good, F.col(lines.TEXT))
    parsed = with_object(rows, "object").withColumn("it", F.from_json(whole, REQUEST))
    origin = (*lines.ORIGIN, REFUSED)
    resources = parsed.select(*origin, F.explode_outer("it.resourceSpans").alias("resource"))
    scopes = _joined(F.array("resource.scopeSpans", "resource.instrumentationLibrarySpans"))
    spans = _joined(F.transform(scopes, lambda each: each["spans"]))
    flat = resources.select(
        *origin,
        _known("resource.resource.attributes", SERVICE).alias("of_resource"),
        F.explode_outer(spans).alias("span"),
    )
    known = flat.select(
        *origin,
        "span",
        _attribute("of_resource", SERVICE).alias("service"),
        _known("span.attributes", (*_OF_SPANS, *lifetimes.attributes)).alias("of_span"),
    )
    texts = {name: _attribute("of_span", (name,)) for name in lifetimes.attributes}
    told_ns, odd = told_lifetime(lifetimes, texts)
    return known.select(
        *origin,
        "span",
        "service",
        F.lower(_attribute("of_span", OPERATION)).alias("operation"),
        _attribute("of_span", DESTINATION).alias("destination"),
        _attribute("of_span", MESSAGE_ID).alias("message"),
        _attribute("of_span", BODY_SIZE).alias("size_bytes"),
        _attribute("of_span", GROUP).alias("group"),
        _attribute("of_span", CLIENT).alias("client"),
        _attribute("of_span", SYSTEM).alias("system"),
        _attribute("of_span", ROUTING_KEY).alias("routing_key"),
        told_ns.alias("told_ns"),
        odd.alias("odd_lifetime"),
    )


def _joined(lists: Column) -> Column:
    """Join the elements of all lists, some of which may be missing."""
    return F.flatten(F.filter(lists, lambda each: each.isNotNull()))


def _address() -> tuple[Column, Column]:
    """Give where a message goes: its destination and, with RabbitMQ, its routing key.

    RabbitMQ's destinations are ``exchange:key`` by today's conventions, ``exchange:key:queue``
    where a message is consumed, and the exchange alone by the earlier ones.
    """
    parts = F.split("destination", ":")
    exchange = F.when(_is_rabbitmq() & (F.size(parts) > 1), parts[0]).otherwise(
        F.col("destination")
    )
    of_name = F.when(_is_rabbitmq() & (F.size(parts) > 1), parts[1])
    return exchange.alias("destination"), F.coalesce("routing_key", of_name).alias("routing_key")


def _queue() -> Column:
    """Give the queue in the name of RabbitMQ's destination, null where there is none."""
    parts = F.split("destination", ":")
    consumes = F.coalesce(_role() == "consumer", F.lit(False))
    return F.when(_is_rabbitmq() & consumes & (F.size(parts) > 2), parts[2])


def _is_rabbitmq() -> Column:
    return F.coalesce(F.lower("system") == "rabbitmq", F.lit(False))


def _content() -> Column:
    """Write what a message is, as JSON: its destination, and its routing key if it has one."""
    return object_json({"key": quoted(F.col("routing_key")), "topic": quoted(F.col("destination"))})


def _leading(spans: DataFrame) -> DataFrame:
    """Find keys that lead to a publication (``event``).

    They are those of its span, of spans below it, of its message. An id that stands for several
    publications leads to none of them for sure.
    """
    sent = spans.where(F.col("role") == "producer")
    below = [sent.where("span_key != ''").select(F.col("span_key").alias("key"), "span_key")]
    others = spans.where((F.coalesce("role", F.lit("")) != "producer") & (F.col("span_key") != ""))
    links = F.array_distinct(F.coalesce("link_keys", F.array().cast("array<string>")))
    # Several links are a batch, which leads to no single publication.
    link = F.when(F.size(links) == 1, F.get(links, F.lit(0)))
    above = F.array_distinct(F.array_compact(F.array("parent_key", link)))
    steps = others.select(F.col("span_key").alias("below"), F.explode(above).alias("key"))
    for _ in range(_MOST_BETWEEN):
        last = below[-1].join(steps, "key").select(F.col("below").alias("key"), "span_key")
        below.append(last)
    by_id = sent.select(_message_key().alias("key"), "span_key").where("key != ''")
    known = reduce(DataFrame.unionByName, [*below, by_id])
    single = known.groupBy("key").agg(
        F.min("span_key").alias("event"), F.max("span_key").alias("last")
    )
    return single.where("event = last").drop("last")


def _role() -> Column:
    """Give what a span of a messaging client did: null where it is none, or tells nothing new."""
    operation, kind = F.col("operation"), F.col("span.kind")
    has_links = F.size("span.links") > 0
    role = (
        F.when(kind.isin(*_PRODUCER), F.lit("producer"))
        .when(kind.isin(*_CONSUMER), F.lit("consumer"))
        # A batch is sent by a client's span whose messages were created by spans of their own.
        .when(operation.isin(*PRODUCES) & ~F.coalesce(has_links, F.lit(False)), F.lit("producer"))
        .when(operation.isin(*CONSUMES), F.lit("consumer"))
    )
    return F.when(F.col("destination").isNotNull() | operation.isNotNull(), role)


def deliveries_of(received: DataFrame, leading: DataFrame) -> DataFrame:
    """Give each message received the event that it is: by link, by parent, by message id.

    Of the references that lead to publications, the first kind counts; of links that lead nowhere
    in a batch where others do, each is a row of its own that says so.
    """
    links = F.coalesce("link_keys", F.array().cast("array<string>"))
    references = F.concat(
        F.transform(links, lambda link: _reference(_BY_LINK, link)),
        F.array(_reference(_BY_PARENT, F.col("parent_key")), _reference(_BY_ID, _message_key())),
    )
    asked = received.select(
        *lines.ORIGIN,
        "span_key",
        "consumer",
        _received_ns().alias("received_ns"),
        F.inline(references),
    ).where((F.col("key") != "") | (F.col("kind") == _BY_ID))
    joined = asked.join(leading, "key", "left")
    best = F.min(F.when(F.col("event").isNotNull(), F.col("kind")))
    links = F.max((F.col("kind") == _BY_LINK).cast("int"))
    # Where nothing leads anywhere, one row per message says so: a link each, or the id.
    fallback = F.when(F.col("links") == 1, F.lit(_BY_LINK)).otherwise(F.lit(_BY_ID))
    of_span = Rows.partitionBy("span_key")
    chosen = joined.withColumns({"best": best.over(of_span), "links": links.over(of_span)})
    return chosen.where(F.col("kind") == F.coalesce("best", fallback)).select(
        F.coalesce("event", "key").alias("event"),
        F.col("consumer").alias("subscriber"),
        "received_ns",
        F.when(F.col("event").isNull(), F.lit(NO_PUBLICATION)).alias(UNREADABLE),
        *lines.ORIGIN,
    )


def _publications(sent: DataFrame) -> DataFrame:
    return sent.select(
        F.col("span_key").alias("event"),
        F.col("producer").alias("publisher"),
        F.col("start_ns").alias("published_ns"),
        _content().alias("content"),
        "lifetime_ns",
        "size_bytes",
        F.when(F.col("odd_lifetime"), F.lit(ODD)).alias(UNREADABLE),
        *lines.ORIGIN,
    )


def _subscriptions(received: DataFrame, delivered: DataFrame, sent: DataFrame) -> DataFrame:
    """Make one subscription per consumer and kind of content wanted, as from before the recording.

    What it wants are the destinations that its spans name, if anybody publishes to one so called;
    else the contents of what was delivered to it.
    """
    places = [F.min(name).alias(name) for name in (lines.FILE, lines.BLOCK, lines.PLACE)]
    named = received.groupBy("consumer", _content().alias("filter")).agg(*places)
    published = sent.select(F.col("span_key").alias("event"), _content().alias("filter"))
    kinds = published.select("filter").distinct()
    direct = named.join(kinds, "filter", "left_semi")
    vague = named.join(kinds, "filter", "left_anti")
    got = (
        delivered.join(published, "event")
        .groupBy(F.col("subscriber").alias("consumer"), "filter")
        .agg(F.count(F.lit(1)).alias("times"))
    )
    wants = got.join(vague.groupBy("consumer").agg(*places), "consumer").drop("times")
    nothing = vague.join(got, "consumer", "left_anti")
    per_client = reduce(DataFrame.unionByName, [direct, wants, nothing]).dropDuplicates(
        ["consumer", "filter"]
    )
    return per_client.select(
        F.concat_ws(" ", "consumer", "filter").alias("subscription"),
        F.col("consumer").alias("subscriber"),
        F.lit("").alias("broker"),
        F.lit("subscribe").alias("action"),
        F.lit(0).cast("bigint").alias("at_ns"),
        "filter",
        lines.FILE,
        lines.BLOCK,
        lines.PLACE,
        F.lit(None).cast("string").alias(lines.TEXT),
    )


def _received_ns() -> Column:
    """Give when a span has the message: at its start if it processes, at its end if it receives."""
    receives = F.col("operation").isin("receive", "poll", "deliver")
    return F.when(receives, F.col("end_ns")).otherwise(F.col("start_ns"))


def _known(attributes: str, names: Sequence[str]) -> Column:
    """Pick the attributes that are asked for, as texts; of lists (headers are) the first."""
    wanted = F.filter(attributes, lambda each: each["key"].isin(*names))
    return F.transform(
        wanted,
        lambda each: F.struct(
            each["key"].alias("key"),
            F.coalesce(
                _text(each["value"]), _text(F.get(each["value"]["arrayValue"]["values"], F.lit(0)))
            ).alias("text"),
        ),
    )


def _text(value: Column) -> Column:
    kinds = ("stringValue", "intValue", "doubleValue", "boolValue")
    return F.coalesce(*(value[kind] for kind in kinds))


def _attribute(known: str, names: Sequence[str]) -> Column:
    """Give the first of these attributes that a span has, as text."""
    texts = [F.get(F.filter(known, _is_named(name)), F.lit(0))["text"] for name in names]
    return F.nullif(F.coalesce(*texts, F.lit(None).cast("string")), F.lit(""))


def _is_named(name: str) -> Callable[[Column], Column]:
    return lambda each: each["key"] == name


def _key(trace: Column, span: Column) -> Column:
    """Give the key that tells a span from all others; empty where ids are missing."""
    both = F.concat_ws(":", F.lower(trace), F.lower(span))
    return F.when((trace != "") & (span != ""), both).otherwise(F.lit(""))


def _message_key() -> Column:
    both = F.concat_ws("|", F.coalesce("destination", F.lit("")), "message")
    return F.when(F.col("message").isNotNull(), both).otherwise(F.lit(""))


def _reference(kind: int, key: Column) -> Column:
    return F.struct(F.lit(kind).alias("kind"), F.coalesce(key, F.lit("")).alias("key"))


READER = Reader(
    about="spans of messaging clients: OpenTelemetry, Tempo, Jaeger, Zipkin",
    tables=TABLES,
    read=lambda spark, files, asked: read_otlp(spark, files, asked.keep, asked.lifetimes),
    wants=("lifetimes",),
    brokerless=True,
)
