"""Count how long components are up, peers connected and subscribers subscribed."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.characterisation.count.cells import (
    ROW_COUNTS,
    delay_bin,
    good_rows,
    row_counts,
    seconds,
    with_reason,
)
from tidings.characterisation.statistics import CHANGED_LATER, CHANGED_OUTSIDE, STATISTICS
from tidings.model.delay_grid import BINS
from tidings.model.trace_tables import SESSIONS, STATES, SUBSCRIPTIONS
from tidings.traces.lives import END_OF_TIME, end_of_life, lives
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.window import TraceWindow

SESSION_PERIODS = (
    "peer string, path string, connected boolean, length_s double, begun boolean, ended boolean"
)
_BINS = 2 * BINS  # the grid of delays, further on: periods may last for years
_LENGTHS = "count bigint, total_s double, lowest_s double, highest_s double"
# Per (path, connected or not, beginning seen or not, end seen or not, bin of the delay grid).
PERIOD_CELLS = f"path string, connected boolean, begun boolean, ended boolean, bin int, {_LENGTHS}"
# Periods of peers, and per reason all rows, which stand for no period.
PEER_PERIODS = f"{PERIOD_CELLS}, {ROW_COUNTS}"
# Per reason, or per (component, up or down, beginning and end seen or not, bin of the delay grid).
STATE_PERIODS = (
    "reason string, component string, up boolean, begun boolean, ended boolean, bin int, "
    f"rows bigint, duplicates bigint, {_LENGTHS}"
)
STAYS = "subscriber string, begun_ns bigint, ended_ns bigint, next_ns bigint"


def session_periods(sessions: DataFrame, observed: DataFrame) -> DataFrame:
    """Find the periods ON and OFF of every peer, from changes in the time in which it was observed.

    Rows that repeat a state, as copies do, change nothing. A row at the very beginning of the
    observation, or before it, says what the state was, not that it changed: that period is as long
    as it was observed, and counts where its end was.
    """
    in_order = Rows.partitionBy("peer").orderBy("at_ns", "state")
    good = good_rows(sessions, SESSIONS)
    states = good.withColumn("before", F.lag("state").over(in_order))
    changes = states.where(F.col("before").isNull() | (F.col("before") != F.col("state")))
    rows = changes.withColumn("next_ns", F.lead("at_ns").over(in_order)).join(observed, "peer")
    ended = F.coalesce(F.col("next_ns") <= F.col("until_ns"), F.lit(False))
    end_ns = F.when(ended, F.col("next_ns")).otherwise(F.col("until_ns"))
    begun, begin_ns = F.col("at_ns") > F.col("from_ns"), F.greatest("at_ns", "from_ns")
    return rows.where((begun | ended) & (end_ns > begin_ns)).select(
        "peer",
        "path",
        (F.col("state") == "connected").alias("connected"),
        seconds(end_ns - begin_ns).alias("length_s"),
        begun.alias("begun"),
        ended.alias("ended"),
    )


def period_cells(periods: DataFrame) -> DataFrame:
    """Count periods by length and path: all that distributions are fitted to."""
    return (
        periods.withColumn("bin", delay_bin(F.col("length_s"), _BINS))
        .groupBy("path", "connected", "begun", "ended", "bin")
        .agg(*_lengths())
    )


def _lengths() -> list[Column]:
    """Make the aggregates of a cell: how many lengths, their sum and extremes, in seconds."""
    length_s = F.col("length_s")
    return [
        F.count(length_s).alias("count"),
        F.sum(length_s).alias("total_s"),
        F.min(length_s).alias("lowest_s"),
        F.max(length_s).alias("highest_s"),
    ]


def checked_sessions(sessions: DataFrame, window: TraceWindow) -> DataFrame:
    """Give every change the reason why it cannot be used, null where it can."""
    later = F.col("at_ns") > window.until_ns
    return with_reason(with_reasons(sessions, SESSIONS), later, CHANGED_LATER)


def peer_periods(sessions: DataFrame, window: TraceWindow) -> DataFrame:
    """Count periods of every peer that was ever seen to change, by length; and all rows, by reason.

    A row before the window says what the state was when it began; one after its end says nothing.
    """
    observed = sessions.groupBy("peer").agg(
        F.first("peer").alias("path"),
        F.lit(window.from_ns).alias("from_ns"),
        F.lit(window.until_ns).alias("until_ns"),
    )
    periods = period_cells(session_periods(sessions, observed))
    counted = row_counts(checked_sessions(sessions, window), SESSIONS)
    return periods.unionByName(counted, allowMissingColumns=True)


def checked_states(states: DataFrame, window: TraceWindow) -> DataFrame:
    """Give every change the reason why it cannot be used, null where it can."""
    outside = ~window.holds(F.col("at_ns"))
    return with_reason(with_reasons(states, STATES), outside, CHANGED_OUTSIDE)


def state_periods(states: DataFrame, window: TraceWindow) -> DataFrame:
    """Count periods up and down by component and length; a change is the row of the one it begins.

    A period ends with the next change, or is cut off by the end of the window. A row at the very
    beginning says what the state was, not that it changed: that period is older than anybody knows,
    and counts with the time observed where its end was. A row that repeats the state begins none.
    Changes of one component are put in order together: they are few.
    """
    tagged = checked_states(states, window)
    good = F.col(REASON).isNull()
    ordered = Rows.partitionBy("component", good).orderBy("at_ns", "state")
    states_before = tagged.withColumns(
        {
            "before": F.lag("state").over(ordered),
            "is_copy": good
            & (F.lag("at_ns").over(ordered) == F.col("at_ns"))
            & (F.lag("state").over(ordered) == F.col("state")),
        }
    )
    begins = good & (F.col("before").isNull() | (F.col("before") != F.col("state")))
    chain = Rows.partitionBy("component", begins).orderBy("at_ns")
    next_ns = F.when(begins, F.lead("at_ns").over(chain))
    rows = states_before.withColumns({"begins": begins, "next_ns": next_ns})
    end_ns = F.coalesce("next_ns", F.lit(window.until_ns))
    begun, ended = F.col("at_ns") > window.from_ns, F.col("next_ns").isNotNull()
    seen = F.col("begins") & (begun | ended)
    length_s = F.when(seen, seconds(end_ns - F.col("at_ns")))
    return (
        rows.select(
            REASON,
            F.when(good, F.col("component")).alias("component"),
            F.when(good, F.col("state") == "up").alias("up"),
            F.when(seen, begun).alias("begun"),
            F.when(seen, ended).alias("ended"),
            length_s.alias("length_s"),
            "is_copy",
        )
        .withColumn("bin", delay_bin(F.col("length_s"), _BINS))
        .groupBy(REASON, "component", "up", "begun", "ended", "bin")
        .agg(
            F.count(F.lit(1)).alias("rows"), F.count_if("is_copy").alias("duplicates"), *_lengths()
        )
    )


def lives_by_stay(subscriptions: DataFrame) -> DataFrame:
    """Find lives of subscriptions, when they end (``ends_ns``) and the number of their ``stay``."""
    mine = Rows.partitionBy("subscriber").orderBy("subscribed_ns", "ends_ns")
    before = F.max("ends_ns").over(mine.rowsBetween(Rows.unboundedPreceding, -1))
    begins = F.coalesce(F.col("subscribed_ns") >= before, F.lit(True))
    number = F.sum(begins.cast("int")).over(mine.rowsBetween(Rows.unboundedPreceding, 0))
    return lives(subscriptions).withColumn("ends_ns", end_of_life()).withColumn("stay", number)


def stays(subscriptions: DataFrame) -> DataFrame:
    """Find from when to when anybody had a subscription, and when it came again (null: never seen).

    Subscriptions of one subscriber that overlap are one stay. Those that only touch are two: who
    leaves and is back at once has missed what was on its way.
    """
    united = (
        lives_by_stay(subscriptions)
        .groupBy("subscriber", "stay")
        .agg(F.min("subscribed_ns").alias("begun_ns"), F.max("ends_ns").alias("ended_ns"))
    )
    again = F.lead("begun_ns").over(Rows.partitionBy("subscriber").orderBy("stay"))
    return united.select("subscriber", "begun_ns", "ended_ns", again.alias("next_ns"))


def stay_periods(subscriptions: DataFrame, window: TraceWindow) -> DataFrame:
    """Count times subscribed (``connected``) and away, by subscriber and length; ``PERIOD_CELLS``.

    Those of which a beginning or an end was seen; what the window cuts off is as long as the rest.
    """
    good = good_rows(subscriptions, SUBSCRIPTIONS)
    until_ns = F.lit(window.until_ns)

    def period(connected: bool, begin: str, end: str) -> Column:
        return F.struct(
            F.lit(connected).alias("connected"),
            F.col(begin).alias("begin_ns"),
            F.coalesce(F.col(end), F.lit(END_OF_TIME)).alias("end_ns"),
        )

    both = F.array(period(True, "begun_ns", "ended_ns"), period(False, "ended_ns", "next_ns"))
    rows = stays(good).select(F.col("subscriber").alias("path"), F.inline(both))
    from_ns = F.lit(window.from_ns)
    begun, ended = F.col("begin_ns") > from_ns, F.col("end_ns") <= until_ns
    watched = (F.col("begin_ns") < until_ns) & (F.col("end_ns") > from_ns)
    length_ns = F.least("end_ns", until_ns) - F.greatest("begin_ns", from_ns)
    return period_cells(
        rows.where(watched & (begun | ended)).select(
            "path",
            "connected",
            seconds(length_ns).alias("length_s"),
            begun.alias("begun"),
            ended.alias("ended"),
        )
    )


# Statistics of periods, each of the changes of one table.
PERIODS = {"states": state_periods, "sessions": peer_periods, "stays": stay_periods}


def table_of(statistic: str) -> str:
    """Name the table whose changes a statistic of periods is counted from."""
    return STATISTICS[statistic].of or statistic
