"""When events are published in generated traces: Poisson, by time of day, or after any interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Window as Rows
from pyspark.sql import functions as F

from tidings.model.behaviour import DailyRates
from tidings.model.laws import Exponential
from tidings.model.routes import Routes
from tidings.model.system import Publisher, System
from tidings.traces.drawing import drawn_s, law_column, numbered, uniform
from tidings.traces.window import NANOSECONDS

_CHUNK = 2**16  # intervals that are added up by one task


def expected_events(publisher: Publisher, span_s: float) -> float:
    """How many events a publisher publishes in so many seconds from midnight on, on average."""
    if publisher.rates is None:
        return publisher.rate_per_s * span_s
    return sum(per_s * length_s for per_s, length_s in _slots(publisher.rates, span_s))


def _slots(rates: DailyRates, span_s: float) -> list[tuple[float, float]]:
    """The rate and the length of every slot of a time, the last perhaps cut off.

    >>> _slots(DailyRates(slot_s=2.0, per_s=(1.0, 3.0)), 5.0)
    [(1.0, 2.0), (3.0, 2.0), (1.0, 1.0)]
    """
    count = math.ceil(span_s / rates.slot_s)
    if not rates.repeat:
        count = min(count, len(rates.per_s))
    return [
        (rates.per_s[n % len(rates.per_s)], min(rates.slot_s, span_s - n * rates.slot_s))
        for n in range(count)
    ]


def moments(
    spark: SparkSession, system: System, routes: Routes, span_s: float, seed: int
) -> DataFrame:
    """A number, a kind and a moment (ns since the beginning) for every event.

    Those of Poisson publishers are as many as are expected, at moments that know nothing of each
    other: given their number, that is the Poisson process.
    """
    renewal = [n for n, each in enumerate(system.publishers) if _is_renewal(each)]
    poisson = [n for n in range(len(system.publishers)) if n not in renewal]
    parts = [_renewals(spark, system, routes, (number, span_s, seed)) for number in renewal]
    if poisson:
        parts.append(_poisson(spark, system, routes, (poisson, span_s, seed)))
    together = parts[0]
    for part in parts[1:]:
        together = together.unionByName(part)
    return together


def _is_renewal(publisher: Publisher) -> bool:
    return publisher.every is not None and not isinstance(publisher.every, Exponential)


def _poisson(
    spark: SparkSession, system: System, routes: Routes, what: tuple[Sequence[int], float, int]
) -> DataFrame:
    publishers, span_s, seed = what
    expected = {n: expected_events(system.publishers[n], span_s) for n in publishers}
    kinds = [n for n, row in enumerate(routes.rows) if row.publisher in expected]
    rows = [routes.rows[n] for n in kinds]
    weights = [expected[row.publisher] * row.probability for row in rows]
    events = numbered(spark, round(sum(expected.values()))).withColumns(
        {"place": uniform(seed, "kind", F.col("id")), "share": uniform(seed, "moment", F.col("id"))}
    )
    rated = {system.publishers[n].rates for n in publishers}
    at: Column = F.col("share") * float(span_s * NANOSECONDS)
    for rates in sorted((each for each in rated if each is not None), key=repr):
        theirs = [n for n in kinds if system.publishers[routes.rows[n].publisher].rates == rates]
        at = F.when(F.col("kind").isin(theirs), _by_slot(rates, span_s)).otherwise(at)
    return events.withColumn("kind", _chosen(kinds, weights)).select(
        "id", "kind", F.floor(at).cast("bigint").alias("at_ns")
    )


def _by_slot(rates: DailyRates, span_s: float) -> Column:
    """The moment up to which the share of the events of rates by time of day is published."""
    slots = _slots(rates, span_s)
    events = [per_s * length_s for per_s, length_s in slots]
    whole = sum(events)
    until = [each / whole for each in accumulate(events)]
    ends = F.array(*(F.lit(each) for each in until))
    slot = F.least(F.size(F.filter(ends, lambda end: end <= F.col("share"))), F.lit(len(slots) - 1))
    width = F.get(F.array(*(F.lit(each / whole) for each in events)), slot)
    length_s = F.get(F.array(*(F.lit(float(length)) for _, length in slots)), slot)
    into = 1.0 - (F.get(ends, slot) - F.col("share")) / width
    return (slot * float(rates.slot_s) + into * length_s) * float(NANOSECONDS)


def _renewals(
    spark: SparkSession, system: System, routes: Routes, what: tuple[int, float, int]
) -> DataFrame:
    """The events of a publisher whose intervals have any law, added up piece by piece."""
    number, span_s, seed = what
    publisher = system.publishers[number]
    assert publisher.every is not None
    mean = publisher.rate_per_s * span_s
    most = math.ceil(mean + 8.0 * math.sqrt(mean * publisher.every.scv + 1.0) + 8.0)
    name = F.lit(publisher.name)
    interval_s = drawn_s(law_column(publisher.every), seed, "interval", F.col("n"), name)
    drawn = numbered(spark, most).select(
        F.col("id").alias("n"),
        F.call_function("div", F.col("id"), F.lit(_CHUNK)).alias("chunk"),
    )
    drawn = drawn.withColumn("ns", F.round(interval_s * float(NANOSECONDS)).cast("bigint"))
    before = Rows.partitionBy(name).orderBy("chunk").rowsBetween(Rows.unboundedPreceding, -1)
    chunks = drawn.groupBy("chunk").agg(F.sum("ns").alias("whole_ns"))
    starts = chunks.select("chunk", F.sum("whole_ns").over(before).alias("before_ns"))
    so_far = Rows.partitionBy("chunk").orderBy("n")
    at = F.coalesce("before_ns", F.lit(0)) + F.sum("ns").over(so_far)
    kinds = [n for n, row in enumerate(routes.rows) if row.publisher == number]
    weights = [routes.rows[n].probability for n in kinds]
    return (
        drawn.join(F.broadcast(starts), "chunk")
        .withColumns({"at_ns": at, "place": uniform(seed, "kind", F.col("n"), name)})
        .where(F.col("at_ns") < round(span_s * NANOSECONDS))
        .select(
            # Ids of different publishers must differ: numbers beyond all that are counted.
            (F.col("n") + F.lit((number + 1) << 42)).alias("id"),
            _chosen(kinds, weights).alias("kind"),
            "at_ns",
        )
    )


def _chosen(kinds: Sequence[int], weights: Sequence[float]) -> Column:
    """One of some kinds by the column ``place``, each as often as its weight says."""
    bounds = [each / sum(weights) for each in accumulate(weights)]
    kind: Column = F.lit(kinds[-1])
    for number in range(len(kinds) - 2, -1, -1):
        kind = F.when(F.col("place") < F.lit(bounds[number]), F.lit(kinds[number])).otherwise(kind)
    return kind.cast("int")
