"""Legality, validity and liveness of a history, every violation with the rows that prove it.

With *s* and *u* the ends of a life of a subscription of process *i* that wants *x*:

* legality: a notification of *x* at *i* at *t* needs such a life with s < t < u;
* validity: it needs a publication of *x* before *t*, by anybody;
* liveness: a publication of *x* at *t* with s + T_sub ≤ t and t + T_diff ≤ u needs a notification
  of *x* at *i* at some time or, if asked for, by t + T_diff.

Everything about an event comes together once (one shuffle of publications and notifications by
event); who should have been told is looked up by what the event's content is wanted by and by
bucket of time, never by comparing all with all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidings.errors import InvalidInputError, InvalidTracesError
from tidings.histories.audiences import (
    END_OF_TIME,
    Buckets,
    audiences,
    choose_buckets,
    choose_shards,
    members,
    shard_of,
)
from tidings.histories.lives import lives
from tidings.histories.wanting import parse_filters, wanted_by
from tidings.traces.actions import bring_here

KINDS = ("legality", "validity", "liveness")
VIOLATIONS = (
    "kind string, event string, subscriber string, content string, published_ns bigint, "
    "notified_ns bigint, subscription string, subscribed_ns bigint, unsubscribed_ns bigint"
)
COUNTS = (
    "subscriber string, guaranteed bigint, notified bigint, lost bigint, notifications bigint, "
    "illegal bigint, invalid bigint"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long subscriptions and publications may take to reach everybody, in nanoseconds."""

    subscription_ns: int  # T_sub
    diffusion_ns: int  # T_diff
    in_time: bool = False  # a notification must also come within T_diff

    def __post_init__(self) -> None:
        for name in ("subscription_ns", "diffusion_ns"):
            if getattr(self, name) < 0:
                raise InvalidInputError(f"{name} is {getattr(self, name)}; wants 0 or more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A history judged, event by event; ``violations`` and ``counts`` are made from it."""

    judged: DataFrame

    @property
    def violations(self) -> DataFrame:
        """One row for every violation, with publication, notification and life that prove it."""
        return self.judged.select("event", "published", F.explode("violations").alias("v")).select(
            "v.kind",
            "event",
            "v.subscriber",
            "published.content",
            "published.published_ns",
            "v.notified_ns",
            "v.life.subscription",
            "v.life.subscribed_ns",
            F.nullif("v.life.unsubscribed_ns", F.lit(END_OF_TIME)).alias("unsubscribed_ns"),
        )

    @property
    def counts(self) -> DataFrame:
        """For every subscriber: what was guaranteed to it, what of that came, and what did not."""
        verdicts = self.judged.select(
            F.explode(
                F.concat(
                    _labelled("guaranteed", F.col("guaranteed")),
                    _labelled("notifications", F.col("notified")),
                    F.transform(
                        "violations",
                        lambda v: F.struct(v.kind.alias("label"), v.subscriber.alias("subscriber")),
                    ),
                )
            ).alias("v")
        )
        labels = {"guaranteed": "guaranteed", "notifications": "notifications"}
        labels |= {"lost": "liveness", "illegal": "legality", "invalid": "validity"}
        summed = verdicts.groupBy("v.subscriber").agg(
            *(F.count_if(F.col("v.label") == label).alias(name) for name, label in labels.items())
        )
        return summed.select(
            "subscriber",
            "guaranteed",
            (F.col("guaranteed") - F.col("lost")).alias("notified"),
            "lost",
            "notifications",
            "illegal",
            "invalid",
        )


def check_history(
    publications: DataFrame,
    subscriptions: DataFrame,
    deliveries: DataFrame,
    bounds: Bounds,
    progress: Callable[[str], None] = lambda _: None,
) -> Checked:
    """Judge a history of canonical tables without bad rows.

    Runs a few small jobs to see what filters, lives and audiences there are; the large one runs
    when the result is used. An event published twice counts from its first publication on.
    """
    progress("subscriptions")
    alive, filters = _numbered(lives(subscriptions))
    progress("publications")
    buckets = _buckets(publications, alive)
    contents = wanted_by(publications.select("content").distinct(), parse_filters(filters))
    progress("who wants what")
    everybody = members(contents.select("wanted").distinct(), alive, buckets)
    shards = choose_shards(everybody)
    events = _events(publications.join(contents, "content"), deliveries, shards)
    met = _meetings(events, buckets).join(
        audiences(everybody, shards), ["wanted", "bucket", "shard"], "left"
    )
    progress("judging")
    return Checked(judged=_judged(met, bounds, buckets))


def _numbered(alive: DataFrame) -> tuple[DataFrame, list[str]]:
    """The lives with a number for each distinct filter, and the filters in that order."""
    texts = bring_here(alive.select("filter").distinct(), "subscriptions")["filter"]
    filters = sorted(map(str, texts))
    numbers = alive.sparkSession.createDataFrame(
        [(text, number) for number, text in enumerate(filters)], "filter string, number int"
    )
    return alive.join(F.broadcast(numbers), "filter"), filters


def _buckets(publications: DataFrame, alive: DataFrame) -> Buckets:
    found = bring_here(
        publications.agg(F.min("published_ns").alias("first"), F.max("published_ns").alias("last")),
        "publications",
    )
    first, last = found.iloc[0]
    if first is None or first != first:
        raise InvalidTracesError("publications: there are none; wants at least one to check")
    return choose_buckets(alive, int(first), int(last))


def _events(publications: DataFrame, deliveries: DataFrame, shards: int) -> DataFrame:
    """Everything about an event in one row a shard: its first publication, its notifications."""
    published = publications.select(
        "event",
        F.explode(F.sequence(F.lit(0), F.lit(shards - 1))).alias("shard"),
        F.struct("published_ns", "content", "wanted").alias("published"),
        F.lit(None).cast("struct<subscriber:string,notified_ns:bigint>").alias("notice"),
    )
    notified = deliveries.select(
        "event",
        shard_of(F.col("subscriber"), shards).alias("shard"),
        F.lit(None).cast(published.schema["published"].dataType).alias("published"),
        F.struct("subscriber", F.col("received_ns").alias("notified_ns")).alias("notice"),
    )
    return (
        published.unionByName(notified)
        .groupBy("event", "shard")
        .agg(F.min("published").alias("published"), F.collect_list("notice").alias("notices"))
    )


def _meetings(events: DataFrame, buckets: Buckets) -> DataFrame:
    """A row for every bucket in which an event was published or notified of."""
    home = buckets.of(F.col("published.published_ns"))
    moments = F.transform("notices", lambda notice: buckets.of(notice.notified_ns))
    touched = F.array_distinct(F.array_compact(F.concat(F.array(home), moments)))
    return events.select(
        "event",
        "shard",
        "published",
        "notices",
        F.col("published.wanted").alias("wanted"),
        F.explode(touched).alias("bucket"),
        home.alias("home"),
    )


def _judged(met: DataFrame, bounds: Bounds, buckets: Buckets) -> DataFrame:
    """What was guaranteed and what was violated, in each meeting of an event and an audience."""
    here = F.filter("notices", lambda n: buckets.of(n.notified_ns) == F.col("bucket"))
    audience = F.coalesce("audience", F.array().cast(met.schema["audience"].dataType))
    owed = F.when(F.col("home") == F.col("bucket"), _owed(audience, bounds)).otherwise(F.array())
    step = met.select(
        "event", "published", "notices", here.alias("here"),
        audience.alias("audience"), owed.cast(met.schema["audience"].dataType).alias("owed"),
    )  # fmt: skip
    names = F.transform(_in_time("notices", bounds), lambda n: n.subscriber)
    missing = F.filter("owed", lambda life: ~F.array_contains(names, life.subscriber))
    found = F.concat(_illegal(), _invalid(), _lost(missing))
    return step.select(
        "event",
        "published",
        _names("owed").alias("guaranteed"),
        F.transform("here", lambda n: n.subscriber).alias("notified"),
        found.alias("violations"),
    )


def _owed(audience: Column, bounds: Bounds) -> Column:
    """The lives to which the event is guaranteed."""
    at = F.col("published.published_ns")
    return F.filter(
        audience,
        lambda life: (
            (life.subscribed_ns + F.lit(bounds.subscription_ns) <= at)
            & (at <= life.unsubscribed_ns - F.lit(bounds.diffusion_ns))
        ),
    )


def _in_time(notices: str, bounds: Bounds) -> Column:
    if not bounds.in_time:
        return F.col(notices)
    latest = F.col("published.published_ns") + F.lit(bounds.diffusion_ns)
    return F.filter(notices, lambda notice: notice.notified_ns <= latest)


def _illegal() -> Column:
    """Notifications of a known event to somebody who had no subscription for it just then."""

    def entitled(notice: Column) -> Column:
        return F.exists(
            "audience",
            lambda life: (
                (life.subscriber == notice.subscriber)
                & (life.subscribed_ns < notice.notified_ns)
                & (notice.notified_ns < life.unsubscribed_ns)
            ),
        )

    wrong = F.filter("here", lambda n: F.col("published").isNotNull() & ~entitled(n))
    return F.transform(wrong, lambda n: _violation("legality", n.subscriber, n.notified_ns))


def _invalid() -> Column:
    """Notifications of what had not been published before."""
    at = F.col("published.published_ns")
    wrong = F.filter("here", lambda n: at.isNull() | (n.notified_ns <= at))
    return F.transform(wrong, lambda n: _violation("validity", n.subscriber, n.notified_ns))


def _lost(missing: Column) -> Column:
    """One violation for each subscriber that was owed a notification, with the life behind it."""
    names = F.array_distinct(F.transform(missing, lambda life: life.subscriber))

    def proof(name: Column) -> Column:
        return F.filter(missing, lambda life: life.subscriber == name)[0]

    return F.transform(
        names,
        lambda name: _violation("liveness", name, F.lit(None).cast("bigint"), proof(name)),
    )


def _names(column: str) -> Column:
    return F.array_distinct(F.transform(column, lambda life: life.subscriber))


_LIFE = "struct<subscriber:string,subscription:string,subscribed_ns:bigint,unsubscribed_ns:bigint>"


def _violation(
    kind: str, subscriber: Column, notified_ns: Column, life: Column | None = None
) -> Column:
    return F.struct(
        F.lit(kind).alias("kind"),
        subscriber.alias("subscriber"),
        notified_ns.alias("notified_ns"),
        (F.lit(None) if life is None else life).cast(_LIFE).alias("life"),
    )


def _labelled(label: str, names: Column) -> Column:
    return F.transform(
        names, lambda name: F.struct(F.lit(label).alias("label"), name.alias("subscriber"))
    )
