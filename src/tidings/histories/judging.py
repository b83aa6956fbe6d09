"""One event and those who may be notified of it: what was guaranteed, what was violated.

All of this is column expressions over a row with ``published`` (a struct, null if it never was),
``notices`` (all notifications of the event in this shard), ``here`` (those in this bucket of time),
``audience`` (lives that want it and touch the bucket) and ``at_home`` (whether it was published in
this bucket). Work grows with audience plus notices, not with their product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidings.errors import InvalidInputError
from tidings.histories.audiences import LIFE

VIOLATIONS = ("legality", "validity", "liveness")
_VERDICTS = f"array<struct<kind:string,subscriber:string,notified_ns:bigint,life:{LIFE}>>"
GUARANTEED, NOTIFICATION = "guaranteed", "notification"  # what is merely counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How long subscriptions and publications may take to reach everybody, in nanoseconds."""

    subscription_ns: int  # T_sub
    diffusion_ns: int  # T_diff
    in_time: bool = False  # a notification must also come within T_diff
    recorded_until_ns: int | None = None  # what was due later nobody can miss; None: for ever

    def __post_init__(self) -> None:
        for name in ("subscription_ns", "diffusion_ns"):
            if getattr(self, name) < 0:
                raise InvalidInputError(f"{name} is {getattr(self, name)}; wants 0 or more")


def owed(bounds: Bounds) -> Column:
    """Select the lives to which the event is guaranteed: s + T_sub ≤ t and t + T_diff ≤ u."""
    at = F.col("published.published_ns")
    due = F.col("at_home")
    if bounds.recorded_until_ns is not None:
        due = due & (F.lit(bounds.recorded_until_ns) - at >= F.lit(bounds.diffusion_ns))
    lives = F.filter(
        "audience",
        lambda life: (
            (at - life.subscribed_ns >= F.lit(bounds.subscription_ns))
            & (life.unsubscribed_ns - at >= F.lit(bounds.diffusion_ns))
        ),
    )
    return F.when(due, lives).otherwise(F.array().cast(f"array<{LIFE}>"))


def verdicts(bounds: Bounds) -> Column:
    """List all verdicts on the event, where ``owed`` is a column too."""
    guaranteed = F.array_distinct(F.transform("owed", lambda life: life.subscriber))
    return F.concat(
        F.transform(guaranteed, lambda name: _verdict(GUARANTEED, name)),
        F.transform("here", lambda notice: _verdict(NOTIFICATION, notice.subscriber)),
        _illegal(),
        _invalid(),
        _lost(guaranteed, bounds),
    )


def _illegal() -> Column:
    """List notifications to somebody who had no subscription for it just then: no s < t < u.

    Nobody can tell for an event whose content is unknown.
    """

    def entitled(notice: Column) -> Column:
        return F.exists(
            "audience",
            lambda life: (
                (life.subscriber == notice.subscriber)
                & (life.subscribed_ns < notice.notified_ns)
                & (notice.notified_ns < life.unsubscribed_ns)
            ),
        )

    def wrong(doubtful: Column) -> Column:
        known = F.col("published.wanted").isNotNull()
        unentitled = F.filter(
            "here",
            lambda n: known & F.array_contains(doubtful, n.subscriber) & ~entitled(n),
        )
        said = F.transform(unentitled, lambda n: _verdict("legality", n.subscriber, n.notified_ns))
        return F.when(F.size(doubtful) > 0, said).otherwise(F.array().cast(_VERDICTS))

    # Nearly all are settled by the lives that were there throughout; few are looked at closely.
    notified = F.transform("here", lambda notice: notice.subscriber)
    return _once(F.array_except(notified, _there_throughout()), wrong)


def _there_throughout() -> Column:
    """List who had one life from before the first notification of this bucket to after the last."""
    moments = F.transform("here", lambda notice: notice.notified_ns)
    ends = F.struct(F.array_min(moments).alias("first"), F.array_max(moments).alias("last"))
    lives = _once(
        ends,
        lambda ends: F.filter(
            "audience",
            lambda life: (life.subscribed_ns < ends.first) & (ends.last < life.unsubscribed_ns),
        ),
    )
    return F.transform(lives, lambda life: life.subscriber)


def _once(value: Column, use: Callable[[Column], Column]) -> Column:
    """Use a value that is computed once: named in a lambda, it would be computed for each item.

    Spark lifts nothing out of its loops.
    """
    return F.transform(F.array(value), use)[0]


def _invalid() -> Column:
    """List notifications of what had not been published before."""
    at = F.col("published.published_ns")
    wrong = F.filter("here", lambda n: at.isNull() | (n.notified_ns <= at))
    return F.transform(wrong, lambda n: _verdict("validity", n.subscriber, n.notified_ns))


def _lost(guaranteed: Column, bounds: Bounds) -> Column:
    """List everybody who was owed a notification and got none, with the life that proves it.

    Where it had to be in time and came too late, when it came first.
    """
    notified = F.transform(_in_time(bounds), lambda notice: notice.subscriber)

    def proof(name: Column) -> Column:
        # The least of several, as they come in no order: every run gives the same proof.
        return F.array_min(F.filter("owed", lambda life: life.subscriber == name))

    def came(name: Column) -> Column:
        mine = F.filter("notices", lambda notice: notice.subscriber == name)
        return F.array_min(F.transform(mine, lambda notice: notice.notified_ns))

    return F.transform(
        F.array_except(guaranteed, notified),
        lambda name: _verdict("liveness", name, came(name), proof(name)),
    )


def _in_time(bounds: Bounds) -> Column:
    if not bounds.in_time:
        return F.col("notices")
    at = F.col("published.published_ns")
    return F.filter("notices", lambda n: n.notified_ns - at <= F.lit(bounds.diffusion_ns))


def _verdict(
    kind: str, subscriber: Column, notified_ns: Column | None = None, life: Column | None = None
) -> Column:
    return F.struct(
        F.lit(kind).alias("kind"),
        subscriber.alias("subscriber"),
        (F.lit(None) if notified_ns is None else notified_ns).cast("bigint").alias("notified_ns"),
        (F.lit(None) if life is None else life).cast(LIFE).alias("life"),
    )
