"""Legality, validity and liveness of a history, every violation with the rows that prove it.

With *s* and *u* the ends of a life of a subscription of process *i* that wants *x*:

* legality: a notification of *x* at *i* at *t* needs such a life with s < t < u;
* validity: it needs a publication of *x* before *t*, by anybody;
* liveness: a publication of *x* at *t* with s + T_sub ≤ t and t + T_diff ≤ u needs a notification
  of *x* at *i* at some time or, if asked for, by t + T_diff.

Everything about an event comes together once (one shuffle of publications and notifications by
event); who should have been notified is looked up by what the event's content is wanted by and by
bucket of time, never by comparing all with all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidings.errors import InvalidTracesError
from tidings.histories.audiences import (
    BUCKETS,
    audiences,
    members,
    shard_of,
    shards_of_groups,
)
from tidings.histories.judging import GUARANTEED, NOTIFICATION, VIOLATIONS, Bounds, owed, verdicts
from tidings.histories.stays import pairs_of
from tidings.histories.wanting import parse_filters, wanted_by
from tidings.model.progress import Progress
from tidings.model.trace_tables import TRACE_TABLES
from tidings.traces.actions import bring_here, run_action
from tidings.traces.lives import END_OF_TIME, TimeBuckets, choose_buckets, lives
from tidings.traces.quarantine import REASON, with_reasons

NEEDED = ("publications", "subscriptions", "deliveries")
LEDGER = (
    "kind string, event string, subscriber string, content string, published_ns bigint, "
    "notified_ns bigint, subscription string, subscribed_ns bigint, unsubscribed_ns bigint, "
    "rows bigint"
)
COUNTS = (
    "subscriber string, guaranteed bigint, notified bigint, lost bigint, notifications bigint, "
    "illegal bigint, invalid bigint"
)
MOST_LIVES = 300_000  # (life, bucket) rows of audiences that are sent to every machine
MOST_CONTENTS = 100_000  # the same of contents; beyond, Spark splits up what is hot


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A history judged: a ledger of what was violated and, counted, of what was not.

    ``bad_rows`` counts what was set aside, by table and reason.
    """

    ledger: DataFrame
    bad_rows: pd.DataFrame

    @property
    def violations(self) -> DataFrame:
        """A row for every violation: the publication, notification and life that prove it.

        ``rows`` is above 1 where the same notification was recorded more than once.
        """
        return self.ledger.where(F.col("kind").isin(*VIOLATIONS))

    @property
    def counts(self) -> DataFrame:
        """For every subscriber: what was guaranteed to it, what of that came, and what did not."""
        labels = {"guaranteed": GUARANTEED, "lost": "liveness", "notifications": NOTIFICATION}
        labels |= {"illegal": "legality", "invalid": "validity"}
        kind, rows = F.col("kind"), F.col("rows")
        summed = self.ledger.groupBy("subscriber").agg(
            *(
                F.coalesce(F.sum(F.when(kind == label, rows)), F.lit(0)).alias(name)
                for name, label in labels.items()
            )
        )
        came = (F.col("guaranteed") - F.col("lost")).alias("notified")
        return summed.select(
            "subscriber", "guaranteed", came, "lost", "notifications", "illegal", "invalid"
        )


@contextmanager
def checked_history(
    tables: Mapping[str, DataFrame], bounds: Bounds, progress: Progress = lambda _: None
) -> Iterator[Checked]:
    """Judge a recorded history, as long as the context lasts; impossible rows are set aside.

    ``tables`` are canonical ones. An event published twice counts from its first publication on.
    Small jobs look first at filters, lives and audiences; then one job judges everything.
    """
    tagged = {name: with_reasons(tables[name], TRACE_TABLES[name]) for name in NEEDED}
    progress("rows that cannot be true")
    bad_rows = bring_here(_bad_rows(tagged), "the history")
    with ExitStack() as kept:
        met = _events_and_audiences(tagged, kept, progress)
        progress("judging")
        ledger = _keep(_ledger(met, bounds), kept)
        run_action(ledger.count, "the history")
        yield Checked(ledger=ledger, bad_rows=bad_rows)


@contextmanager
def notification_pairs(
    tables: Mapping[str, DataFrame], progress: Progress = lambda _: None, *, after_ns: int = -1
) -> Iterator[DataFrame]:
    """List what was published during lives that ended, and whether it was notified meanwhile.

    The pairs of :mod:`tidings.histories.stays` of lives that began after a moment, kept as long as
    the context lasts.
    """
    tagged = {name: with_reasons(tables[name], TRACE_TABLES[name]) for name in NEEDED}
    with ExitStack() as kept:
        yield _keep(pairs_of(_events_and_audiences(tagged, kept, progress), after_ns), kept)


def _keep(frame: DataFrame, kept: ExitStack) -> DataFrame:
    kept.callback(frame.persist().unpersist)
    return frame


def _events_and_audiences(
    tagged: Mapping[str, DataFrame], kept: ExitStack, progress: Progress
) -> DataFrame:
    """Pair every event with everybody who may be notified of it, by bucket of time and by shard."""
    good = {name: frame.where(F.col(REASON).isNull()) for name, frame in tagged.items()}
    progress("subscriptions")
    alive, filters = _numbered(_keep(lives(good["subscriptions"]), kept))
    first_ns, last_ns = _ends(good["publications"])
    progress("who wants what")
    distinct = good["publications"].select("content").distinct()
    contents = _keep(wanted_by(distinct, parse_filters(filters)), kept)
    groups = contents.select("wanted").where(F.col("wanted").isNotNull()).distinct()
    for least in (1, BUCKETS):  # many buckets only where audiences are too many to be sent around
        buckets = choose_buckets(alive, first_ns, last_ns, least)
        everybody = members(groups, alive, buckets)
        shards = _keep(shards_of_groups(everybody), kept)
        gathered = audiences(everybody, shards)
        lives_in_all, most_shards = _sizes(shards)
        if lives_in_all <= MOST_LIVES:
            gathered = F.broadcast(gathered)
            break
    published = _with_groups(good["publications"], contents, shards)
    events = _events(published, good["deliveries"])
    met = _meetings(events if most_shards == 1 else _in_shards(events), buckets)
    met = met.join(gathered, ["wanted", "bucket", "shard"], "left")
    nobody = F.array().cast(met.schema["audience"].dataType)
    return met.withColumn("audience", F.coalesce("audience", nobody))


def _bad_rows(tagged: Mapping[str, DataFrame]) -> DataFrame:
    """Count the rows of each table that were set aside, by reason."""
    parts = [
        frame.where(F.col(REASON).isNotNull()).select(F.lit(name).alias("table"), REASON)
        for name, frame in tagged.items()
    ]
    together = parts[0].unionAll(parts[1]).unionAll(parts[2])
    return together.groupBy("table", REASON).agg(F.count(F.lit(1)).alias("rows"))


def _numbered(alive: DataFrame) -> tuple[DataFrame, list[str]]:
    """Enumerate distinct filters; give the lives with these numbers, and filters in that order."""
    texts = bring_here(alive.select("filter").distinct(), "subscriptions")["filter"]
    filters = sorted(map(str, texts))
    numbers = pa.table(
        {
            "filter": pa.array(filters, pa.string()),
            "number": pa.array(range(len(filters)), pa.int32()),
        }
    )
    known = alive.sparkSession.createDataFrame(numbers)  # Arrow: no Python is run for it
    return alive.join(F.broadcast(known), "filter"), filters


def _ends(publications: DataFrame) -> tuple[int, int]:
    """Find the first and the last moment of publication, in nanoseconds."""
    ends = (F.min("published_ns").alias("first"), F.max("published_ns").alias("last"))
    first, last = bring_here(publications.agg(*ends), "publications").iloc[0]
    if first is None or first != first:
        raise InvalidTracesError(
            "publications: the table is empty; wants at least one publication to check"
        )
    return int(first), int(last)


def _sizes(shards: DataFrame) -> tuple[int, int]:
    """Count the lives in all audiences, and the most shards that one audience is cut into."""
    sizes = (F.sum("lives").alias("lives"), F.max("shards").alias("shards"))
    sums = bring_here(shards.agg(*sizes), "subscriptions").fillna({"lives": 0, "shards": 1})
    lives_in_all, most = sums.iloc[0]
    return int(lives_in_all), int(most)


def _with_groups(publications: DataFrame, contents: DataFrame, shards: DataFrame) -> DataFrame:
    """Join publications with who wants them, and in how many shards that audience is cut."""
    known = contents.join(shards.drop("lives"), "wanted", "left")
    if run_action(contents.count, "publications") <= MOST_CONTENTS:
        known = F.broadcast(known)
    return publications.select("event", "published_ns", "content").join(known, "content")


def _events(publications: DataFrame, deliveries: DataFrame) -> DataFrame:
    """Gather everything about an event in one row: its first publication, its notifications."""
    published = publications.select(
        "event",
        F.struct("published_ns", "content", "wanted", "shards").alias("published"),
        F.lit(None).cast("struct<subscriber:string,notified_ns:bigint>").alias("notice"),
    )
    notified = deliveries.select(
        "event",
        F.lit(None).cast(published.schema["published"].dataType).alias("published"),
        F.struct("subscriber", F.col("received_ns").alias("notified_ns")).alias("notice"),
    )
    return (
        published.unionByName(notified)
        .groupBy("event")
        .agg(F.min("published").alias("published"), F.collect_list("notice").alias("notices"))
        .withColumn("shard", F.lit(0))
    )


def _in_shards(events: DataFrame) -> DataFrame:
    """Make a row per event, or per shard where its audience is cut, with its notifications.

    Each notification is looked at once, not once for every shard: they are more where these are.
    """
    shards = F.coalesce("published.shards", F.lit(1))
    notice = "struct<shard:int,notice:struct<subscriber:string,notified_ns:bigint>>"
    empty = F.transform(
        F.sequence(F.lit(0), shards - 1), lambda shard: F.struct(shard, F.lit(None)).cast(notice)
    )
    notified = F.transform(
        "notices", lambda n: F.struct(shard_of(n.subscriber, shards), n).cast(notice)
    )
    each = events.where(shards > 1).select(
        "event", "published", F.explode(F.concat(empty, notified)).alias("one")
    )
    published = F.when(F.col("one.notice").isNull(), F.col("published"))  # once is enough
    cut = each.groupBy("event", F.col("one.shard").alias("shard")).agg(
        F.max(published).alias("published"), F.collect_list("one.notice").alias("notices")
    )
    return events.where(shards == 1).unionByName(cut)


def _meetings(events: DataFrame, buckets: TimeBuckets) -> DataFrame:
    """Make a row for every bucket in which an event was published or notified of, by shard."""
    home = buckets.of(F.col("published.published_ns"))
    moments = F.transform("notices", lambda notice: buckets.of(notice.notified_ns))
    touched = F.array_distinct(F.array_compact(F.concat(F.array(home), moments)))
    met = events.withColumn("bucket", F.explode(touched))
    here = F.filter("notices", lambda n: buckets.of(n.notified_ns) == F.col("bucket"))
    return met.select(
        "event", "shard", "bucket", "published", "notices",
        F.col("published.wanted").alias("wanted"),
        F.coalesce(home == F.col("bucket"), F.lit(False)).alias("at_home"),
        here.alias("here"),
    )  # fmt: skip


def _ledger(met: DataFrame, bounds: Bounds) -> DataFrame:
    """List all verdicts; those that are merely counted are one row for each subscriber."""
    judged = met.withColumn("owed", owed(bounds))
    said = judged.select("event", "published", F.explode(verdicts(bounds)).alias("said"))
    proof = F.col("said.kind").isin(*VIOLATIONS)
    rows = said.select(
        "said.kind",
        F.when(proof, F.col("event")).alias("event"),
        "said.subscriber",
        F.when(proof, F.col("published.content")).alias("content"),
        F.when(proof, F.col("published.published_ns")).alias("published_ns"),
        "said.notified_ns",
        "said.life.subscription",
        "said.life.subscribed_ns",
        F.nullif("said.life.unsubscribed_ns", F.lit(END_OF_TIME)).alias("unsubscribed_ns"),
    )
    return rows.groupBy(*rows.columns).agg(F.count(F.lit(1)).alias("rows"))
