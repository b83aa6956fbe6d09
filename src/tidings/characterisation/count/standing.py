"""What still stands at a moment: the few changes without which later ones cannot be told of.

Of every component and peer it is the change that its present state began with, of every subscriber
the subscriptions that it has. What is counted of these rows and of later ones is what is counted of
all rows, but for what had ended before.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import good_rows
from tidings.characterisation.count.periods import checked_states, lives_by_stay
from tidings.model.trace_tables import SESSIONS, SUBSCRIPTIONS
from tidings.traces.lives import END_OF_TIME, end_of_life, lives
from tidings.traces.quarantine import REASON
from tidings.traces.window import TraceWindow

_MANY = "\N{SYMBOL FOR END OF TRANSMISSION} ended"  # stands for subscriptions that have ended


def standing_states(states: DataFrame, window: TraceWindow) -> DataFrame:
    """Find the change of every component with which its state at the end of the window began."""
    good = checked_states(states, window).where(F.col(REASON).isNull())
    return _last_changes(good, "component")


def standing_sessions(sessions: DataFrame, window: TraceWindow) -> DataFrame:
    """Find the change of every peer with which its state at the end of the window began."""
    return _last_changes(good_rows(sessions, SESSIONS), "peer")


def _last_changes(good: DataFrame, of: str) -> DataFrame:
    before = F.lag("state").over(Rows.partitionBy(of).orderBy("at_ns", "state"))
    begins = F.col("before").isNull() | (F.col("before") != F.col("state"))
    last = F.max(F.struct("at_ns", "state")).alias("last")
    changes = good.withColumn("before", before).where(begins).groupBy(of).agg(last)
    return changes.select(of, "last.state", "last.at_ns")


def standing_stays(subscriptions: DataFrame, window: TraceWindow) -> DataFrame:
    """Make the steps of the last stay of every subscriber, whether or not it has ended.

    Of subscriptions that have ended one stands for all: together with those that have not, they are
    the same stay.
    """
    by_stay = lives_by_stay(good_rows(subscriptions, SUBSCRIPTIONS))
    latest = F.max("stay").over(Rows.partitionBy("subscriber"))
    last = by_stay.withColumn("latest", latest).where(F.col("stay") == F.col("latest"))
    over = F.col("ends_ns") < F.lit(END_OF_TIME)
    name = F.when(over, F.lit(_MANY)).otherwise(F.col("subscription"))
    united = last.groupBy("subscriber", name.alias("subscription")).agg(
        F.first("filter").alias("filter"),
        F.min("subscribed_ns").alias("subscribed_ns"),
        F.max("unsubscribed_ns").alias("unsubscribed_ns"),
    )
    return _steps(united)


def standing_steps(subscriptions: DataFrame, from_ns: int) -> DataFrame:
    """Make the steps of subscriptions that last beyond a moment: events after it may want them.

    A subscription that is begun again while it lasts stands once.
    """
    alive = lives(good_rows(subscriptions, SUBSCRIPTIONS)).where(end_of_life() > F.lit(from_ns))
    keys = ("subscriber", "subscription", "filter", "unsubscribed_ns")
    return _steps(alive.groupBy(*keys).agg(F.min("subscribed_ns").alias("subscribed_ns")))


def _steps(alive: DataFrame) -> DataFrame:
    """Make the steps that begin and end some lives of subscriptions, as rows of a trace."""

    def step(action: str, at: str) -> Column:
        return F.struct(F.lit(action).alias("action"), F.col(at).alias("at_ns"))

    both = F.array(step("subscribe", "subscribed_ns"), step("unsubscribe", "unsubscribed_ns"))
    rows = alive.withColumn("step", F.explode(both)).where(F.col("step.at_ns").isNotNull())
    return rows.select(
        "subscription",
        "subscriber",
        F.lit("-").alias("broker"),  # which is not asked for where there are subscriptions
        "step.action",
        "step.at_ns",
        "filter",
    )


# Rows that stand at the end of a window, by the statistic of periods that later ones continue.
STANDING = {
    "states": standing_states,
    "sessions": standing_sessions,
    "stays": standing_stays,
}
