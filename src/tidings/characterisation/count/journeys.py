"""Which brokers saw an event and over which links it was sent, of every event, or of all alike.

Where brokers and links are few, a journey is two numbers with a bit for each: numbers of rows of
one event are united before anything is moved, and events on the same journey are counted before
anything looks into it. Where they are many, a journey is two lists.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import small_frame
from tidings.characterisation.count.publications import by_event, content_key, said_of_event
from tidings.characterisation.statistics import (
    CONFLICT,
    LOST,
    PUBLISHED,
    REACHED,
    REPEATED,
    UNFORESEEN,
)
from tidings.traces.quarantine import REASON
from tidings.traces.window import TraceWindow

# ``followed``: whether the row is about what became of events: whether they were published while
# that was measured, by one publication. ``brokers`` is null of events that none has seen.
# ``unforeseen``: some were sent over links that were not. ``repeated``: some broker has more than
# one row of them, which is all that is said of events that were not published.
JOURNEYS = (
    "publisher string, content_key bigint, differ boolean, followed boolean, "
    "brokers array<string>, sent array<struct<source: string, target: string>>, "
    "unforeseen boolean, repeated boolean, events bigint, rows bigint"
)
MOST_BITS = 62  # of a number that stays positive, but for one that tells of unforeseen links
_OTHER_LINK = 1 << MOST_BITS
_BETWEEN = "\0"  # the names of two brokers
# In SQL, as lambdas of Python have another name each time: Spark would compile them anew. The bits
# of all links that a hop was sent over; a broker that records no hops has none: nobody can tell.
_LINKS_TAKEN = rf"""aggregate(sent_to, 0L, (bits, name) -> bits | coalesce(
    element_at(links, concat(broker, '\0', name)),
    if(element_at(numbers, name) is null, 0L, {_OTHER_LINK}L)))"""
_NUMBERS = "map<string, bigint>"
_BITS_OF_LINKS = "array<struct<source string, target string, bit bigint>>"
_BROKERS = "if(at is null, null, map_keys(map_filter(numbers, (name, bit) -> at & bit <> 0)))"
_SENT = """transform(filter(links, link -> sent & link.bit <> 0),
    link -> named_struct('source', link.source, 'target', link.target))"""
# How many events and rows of publications there are (per reason); how many events of a content each
# broker (``target``) has seen; how many were sent from a source to a target and not seen there. One
# that no broker has seen was sent by its publisher to null. How many events have more than one row
# at some broker: copies, or that came there again.
SIGHTING_STATISTICS = (
    "statistic string, reason string, publisher string, content_key bigint, source string, "
    "target string, events bigint, rows bigint"
)
_KEYS = ("statistic", REASON, "publisher", "content_key", "source", "target")


@dataclass(frozen=True, slots=True, kw_only=True)
class VantagePoints:
    """Where events can be seen: brokers that record hops, and links between brokers.

    ``links`` are those that events are known to have used, ``publishers`` all there are; without
    links, and where they or brokers are too many, journeys are lists.
    """

    brokers: tuple[str, ...]
    links: tuple[tuple[str, str], ...] | None = None
    publishers: tuple[str, ...] = ()

    @property
    def are_few(self) -> bool:
        """Whether a number has a bit for each broker, and another one for each link."""
        if self.links is None or any(_BETWEEN in name for name in self.brokers):
            return False
        return max(len(self.brokers), len(self.links)) <= MOST_BITS


def journeys(
    hops: DataFrame, publications: DataFrame, measured: TraceWindow, places: VantagePoints
) -> DataFrame:
    """Collect the journeys of all events that were published or repeated, as :data:`JOURNEYS`.

    For this a hop need only name event and broker; its times may be wrong.
    """
    named = hops.where((F.col("event") != "") & (F.col("broker") != ""))
    make = _as_numbers if places.are_few else _as_lists
    return make(named, publications, measured, places)


def _as_lists(
    hops: DataFrame, publications: DataFrame, measured: TraceWindow, places: VantagePoints
) -> DataFrame:
    """Collect journeys, a row for every event; brokers and links are sets, so as to be bounded."""
    keyed = publications.withColumn("content_key", content_key())
    published = by_event(keyed, "publisher", "content_key", "published_ns")
    known = F.filter("sent_to", lambda name: name.isNotNull())
    sent = F.transform(known, lambda name: _link(F.col("broker"), name))
    seen = (
        hops.select("event", "broker", "came_from", sent.alias("sent"))
        .repartition("event")
        .groupBy("event")
        .agg(
            F.collect_set("broker").alias("brokers"),
            F.collect_set("came_from").alias("came_from"),
            F.array_distinct(F.flatten(F.collect_set("sent"))).alias("sent"),
            F.count(F.lit(1)).alias("visits"),
        )
        .withColumn("repeated", F.col("visits") > F.size("brokers"))
        .withColumn("brokers", F.array_union("brokers", _among(F.col("came_from"), places.brokers)))
    )
    return (
        published.join(seen, "event", "full")
        .where(_of_use())
        .select(
            "publisher",
            "content_key",
            "differ",
            _followed(measured).alias("followed"),
            "brokers",
            "sent",
            F.lit(False).alias("unforeseen"),
            "repeated",
            F.lit(1).cast("bigint").alias("events"),
            F.col("copies").alias("rows"),
        )
    )


def _as_numbers(
    hops: DataFrame, publications: DataFrame, measured: TraceWindow, places: VantagePoints
) -> DataFrame:
    """Collect journeys, a row for all events of a publisher and content over the same links."""
    alike = ("publisher_key", "content_key", "differ", "followed", "at", "sent", "repeated")
    counted = (
        _numbered(hops, publications, places)
        .withColumn("followed", _followed(measured))
        .groupBy(*alike)
        .agg(F.count(F.lit(1)).alias("events"), F.sum("copies").alias("rows"))
    )
    names = small_frame(hops.sparkSession, pd.DataFrame({"publisher": list(places.publishers)}))
    known = names.withColumn("publisher_key", F.xxhash64("publisher"))
    links = [
        {"source": source, "target": target, "bit": 1 << bit}
        for bit, (source, target) in enumerate(places.links or ())
    ]
    named = counted.withColumns(
        {
            "numbers": _known(_bits(places.brokers), _NUMBERS),
            "links": _known(links, _BITS_OF_LINKS),
        }
    )
    return named.join(F.broadcast(known), "publisher_key", "left").select(
        "publisher",
        "content_key",
        "differ",
        "followed",
        F.expr(_BROKERS).alias("brokers"),
        F.expr(_SENT).alias("sent"),
        (F.col("sent").bitwiseAND(F.lit(_OTHER_LINK)) != 0).alias("unforeseen"),
        "repeated",
        "events",
        "rows",
    )


def _numbered(hops: DataFrame, publications: DataFrame, places: VantagePoints) -> DataFrame:
    """Make one row per event: its publication, and its journey as the numbers ``at`` and ``sent``.

    Publications and hops are united as rows of one shape, so that they meet without being joined;
    all of it is numbers, which need no sorting.
    """
    of_publication = {
        "publisher_key": F.xxhash64("publisher"),
        "content_key": content_key(),
        "published_ns": F.col("published_ns"),
        "whole": said_of_event(),
        "copies": F.lit(1).cast("bigint"),
    }
    of_hop = {
        "at": F.expr("element_at(numbers, broker)"),
        "came_from": F.expr("element_at(numbers, came_from)"),
        "sent": F.expr(_LINKS_TAKEN),
    }
    of_link = _bits(_BETWEEN.join(link) for link in places.links or ())
    hops = hops.withColumns(
        {
            "numbers": _known(_bits(places.brokers), _NUMBERS),
            "links": _known(of_link, _NUMBERS),
        }
    )
    unknown = F.lit(None).cast("bigint")
    published = publications.select(
        "event",
        *(value.alias(name) for name, value in of_publication.items()),
        *(unknown.alias(name) for name in of_hop),
    )
    seen = hops.select(
        "event",
        *(unknown.alias(name) for name in of_publication),
        *(F.coalesce(value, F.lit(0)).alias(name) for name, value in of_hop.items()),
    )
    return (
        published.unionByName(seen)
        .groupBy("event")
        .agg(
            *(F.min(name).alias(name) for name in ("publisher_key", "content_key", "published_ns")),
            F.sum("copies").alias("copies"),
            (F.min("whole") != F.max("whole")).alias("differ"),
            F.bit_or("at").alias("at"),
            F.bit_or("came_from").alias("came_from"),
            F.bit_or("sent").alias("sent"),
            F.count(F.nullif(F.col("at"), F.lit(0))).alias("visits"),
        )
        .withColumn("repeated", F.col("visits") > F.bit_count("at"))
        .withColumn("at", F.col("at").bitwiseOR(F.col("came_from")))
        .where(_of_use())
    )


def _among(names: Column, known: Iterable[str]) -> Column:
    """Select those of some names that are known."""
    return F.array_intersect(names, F.array(*map(F.lit, known)).cast("array<string>"))


def _of_use() -> Column:
    return F.col("copies").isNotNull() | F.col("repeated")


def _followed(measured: TraceWindow) -> Column:
    return measured.holds(F.col("published_ns")) & ~F.col("differ")


def _link(source: Column, target: Column) -> Column:
    return F.struct(source.alias("source"), target.alias("target"))


def _bits(names: Iterable[str]) -> dict[str, int]:
    """Give every name a bit of its own."""
    return {name: 1 << bit for bit, name in enumerate(names)}


def _known(what: object, kind: str) -> Column:
    """Make a constant of what is known before anything is read, however long it is."""
    return F.from_json(F.lit(json.dumps(what)), kind)


def sighting_statistics(
    hops: DataFrame, publications: DataFrame, measured: TraceWindow, places: VantagePoints
) -> DataFrame:
    """Count how far events came, by publisher and content: broker by broker and link by link.

    ``publications`` are the good ones, ``places`` says which brokers record hops: nobody can tell
    whether anything reached the others. A copy that a broker says it has sent to another one is
    lost between them if that one has never seen the event, nor anybody who had it from there. How
    far events came is counted of those published in ``measured``. Where events were sent over links
    that ``places`` does not foresee, rows of the statistic :data:`UNFORESEEN` say so: they have to
    be followed again, without any.
    """
    rows = journeys(hops, publications, measured, places).select(
        F.when(F.col("differ"), F.lit(CONFLICT)).alias(REASON),
        "publisher",
        "content_key",
        "events",
        "rows",
        F.inline(_cells()),
    )
    of_content = F.col("statistic").isin(REACHED, LOST)
    return (
        rows.where(F.col("target").isNull() | F.col("target").isin(*places.brokers))
        .withColumn("publisher", F.when(of_content, F.col("publisher")))
        .withColumn("content_key", F.when(of_content, F.col("content_key")).otherwise(F.lit(0)))
        .groupBy(*_KEYS)
        .agg(F.sum("events").alias("events"), F.sum("rows").alias("rows"))
    )


def _cells() -> Column:
    """List what a journey shows: that it was published, what it reached, where it got lost."""
    journey = F.expr(
        f"if(brokers is null, array({_cell(LOST, source='publisher')}), "
        f"concat(transform(brokers, broker -> {_cell(REACHED, target='broker')}), "
        "transform(filter(sent, link -> not array_contains(brokers, link.target)), "
        f"link -> {_cell(LOST, 'link.source', 'link.target')})))"
    )
    published, unforeseen, repeated = (
        F.expr(f"array({_cell(statistic)})") for statistic in (PUBLISHED, UNFORESEEN, REPEATED)
    )
    nothing = F.slice(published, 1, 0)
    return F.concat(
        F.when(F.col("rows").isNotNull(), published).otherwise(nothing),
        F.when(F.col("followed"), journey).otherwise(nothing),
        F.when(F.col("unforeseen"), unforeseen).otherwise(nothing),
        F.when(F.col("repeated"), repeated).otherwise(nothing),
    )


def _cell(statistic: str, source: str = "null", target: str = "null") -> str:
    """Write a cell in SQL: a statistic, and the names that it is about."""
    ends = f"'source', string({source}), 'target', string({target})"
    return f"named_struct('statistic', '{statistic}', {ends})"
