"""One key with more than 30 % of the rows: no task has it all to itself, and numbers stay right."""

from __future__ import annotations

import numpy as np
import pytest
from pyspark.sql import functions as F

from tidings.characterisation.count.deliveries import delivery_statistics
from tidings.characterisation.count.hops import used_hops, with_reconstructed_starts
from tidings.characterisation.count.journeys import VantagePoints, sighting_statistics
from tidings.characterisation.count.links import loss_run_statistics
from tidings.characterisation.count.publications import exact_lifetimes, interval_statistics
from tidings.characterisation.fit.channels import loss_runs
from tidings.characterisation.fit.publishers import interval_samples
from tidings.model.trace_tables import TRACE_TABLES
from tidings.traces.actions import bring_here
from tidings.traces.reading import read_rows
from tidings.traces.window import NANOSECONDS, TraceWindow

EVENTS, HOT = 12_000, 0.4
PARTITIONS = 16
SPAN_S = 69 * 60  # as many slots in which starts are reconstructed as minutes
WINDOW = TraceWindow(from_ns=0, until_ns=SPAN_S * NANOSECONDS)


@pytest.fixture(scope="module")
def tables(spark):
    """One publisher, topic, broker, link and subscriber with two fifths of all rows each."""
    at = F.col("id") * F.lit(WINDOW.until_ns // EVENTS) + F.pmod(F.xxhash64("id"), F.lit(10**8))
    hot = F.pmod(F.xxhash64("id"), F.lit(100)) < round(100 * HOT)
    other = F.pmod(F.col("id"), F.lit(50)).cast("string")
    rows = spark.range(EVENTS).select("id", at.alias("at"), hot.alias("hot"), other.alias("other"))

    def named(prefix):
        return F.when(F.col("hot"), F.lit(f"hot {prefix}")).otherwise(
            F.concat(F.lit(prefix), "other")
        )

    event = F.col("id").cast("string").alias("event")
    lifetime = (F.pmod(F.xxhash64("at"), F.lit(10**9)) + 1).alias("lifetime_ns")
    found = {
        "publications": rows.select(
            event, named("p").alias("publisher"), named("b").alias("broker"),
            F.col("at").alias("published_ns"), F.lit('{"topic":"t"}').alias("content"), lifetime,
            F.lit(1).cast("bigint").alias("size_bytes"),
        ),
        "hops": rows.select(
            event, named("b").alias("broker"), named("p").alias("came_from"),
            (F.col("at") + 1000).alias("arrived_ns"),
            F.lit(None).cast("bigint").alias("started_ns"), (F.col("at") + 9000).alias("left_ns"),
            F.array().cast("array<string>").alias("sent_to"),
        ),
        # Two fifths of the deliveries have lost the id of their event.
        "deliveries": rows.select(
            F.when(~F.col("hot"), event).alias("event"), named("s").alias("subscriber"),
            named("b").alias("broker"), (F.col("at") + 10_000).alias("received_ns"),
        ),
        "probes": rows.select(
            named("b").alias("source"), named("c").alias("target"), F.col("at").alias("sent_ns"),
            F.when(F.pmod(F.col("id"), F.lit(3)) > 0, F.col("at") + 5).alias("received_ns"),
        ),
    }  # fmt: skip
    frames = {name: read_rows(frame, TRACE_TABLES[name]).cache() for name, frame in found.items()}
    yield frames
    for frame in frames.values():
        frame.unpersist()


@pytest.fixture
def most_read(spark):
    """Runs a query on as many tasks as there are partitions; gives rows, and the most any read."""
    options = {
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        "spark.sql.autoBroadcastJoinThreshold": "-1",
    }
    before = {name: spark.conf.get(name) for name in options}
    for name, value in options.items():
        spark.conf.set(name, value)
    context = spark.sparkContext
    java, tracker = context._jsc.sc(), context.statusTracker()

    def run(frame, name):
        context.setJobGroup(name, name)
        found = bring_here(frame, name)
        java.listenerBus().waitUntilEmpty()
        stages = {
            stage
            for job in tracker.getJobIdsForGroup(name)
            for stage in tracker.getJobInfo(job).stageIds
        }
        read = []
        for stage in stages:
            tasks = java.statusStore().taskList(stage, 0, 1000)
            metrics = [tasks.apply(i).taskMetrics() for i in range(tasks.size())]
            read += [each.get().shuffleReadMetrics().recordsRead() for each in metrics]
        return found, max(read)

    yield run
    for name, value in before.items():
        spark.conf.set(name, value)
    context._jsc.clearJobGroup()


@pytest.fixture(scope="module")
def hot_rows(tables):
    return tables["publications"].where(F.col("publisher") == "hot p").count()


def test_the_measure_notices_a_key_that_one_task_has_to_itself(tables, most_read, hot_rows):
    assert 0.3 * EVENTS < hot_rows < 0.5 * EVENTS
    by_key = tables["publications"].repartition("publisher").groupBy("broker").count()
    assert most_read(by_key, "by key")[1] >= hot_rows


def test_intervals_of_a_publisher_with_most_events_are_shared_out(tables, most_read, hot_rows):
    found, most = most_read(interval_statistics(tables["publications"], WINDOW), "intervals")
    assert most < hot_rows / 2
    times = tables["publications"].where(F.col("publisher") == "hot p").select("published_ns")
    intervals = np.diff(np.sort(times.toPandas()["published_ns"].to_numpy())) / 1e9
    sample = interval_samples(found)["hot p"]
    assert sample.count == intervals.size == hot_rows - 1
    assert sample.total_s == pytest.approx(intervals.sum(), rel=1e-12)
    assert sample.squares == pytest.approx((intervals**2).sum(), rel=1e-12)
    assert sample.highest_s == intervals.max()


def test_starts_at_a_broker_with_most_hops_are_reconstructed_side_by_side(
    tables, most_read, hot_rows
):
    started = with_reconstructed_starts(used_hops(tables["hops"], WINDOW))
    counts = started.groupBy("broker").agg(F.count("started_ns").alias("known"))
    found, most = most_read(counts, "starts")
    assert most < hot_rows / 2
    known = found.set_index("broker")["known"]["hot b"]
    assert hot_rows - known == -(-SPAN_S * NANOSECONDS // 2**36)  # the first of every slot


def test_losses_on_a_link_with_most_probes_are_followed_side_by_side(tables, most_read, hot_rows):
    found, most = most_read(loss_run_statistics(tables["probes"], WINDOW), "losses")
    assert most < hot_rows / 2
    rows = tables["probes"].where(F.col("source") == "hot b").orderBy("sent_ns").toPandas()
    lost = rows["received_ns"].isna().to_numpy()
    runs = loss_runs(found)["hot b", "hot c"]
    assert (runs.following, runs.lost) == (lost.size - 1, lost[1:].sum())
    assert (runs.after_loss, runs.lost_after_loss) == (
        lost[:-1].sum(),
        (lost[:-1] & lost[1:]).sum(),
    )


def test_lifetimes_of_a_content_with_most_events_are_cut_short_before_they_meet(
    spark, tables, most_read, hot_rows
):
    pair = tables["publications"].where(F.col("publisher") == "hot p").limit(1)
    pairs = pair.select("publisher", "content")
    found, most = most_read(exact_lifetimes(tables["publications"], pairs, 20), "lifetimes")
    assert len(found) == 21  # one more than is asked for: there are thousands
    rows = tables["publications"].where(F.col("publisher") == "hot p").toPandas()
    assert sorted(found["least_lifetime_ns"]) == np.sort(rows["lifetime_ns"])[:21].tolist()
    assert most < hot_rows / 2


def test_deliveries_without_an_id_are_not_all_one_task_s(tables, most_read, hot_rows):
    statistic = delivery_statistics(tables["deliveries"], tables["publications"], WINDOW)
    found, most = most_read(statistic, "deliveries")
    assert most < hot_rows / 2
    quality = found[found["statistic"] == "quality"].set_index("reason")["rows"]
    assert quality[quality.index.notna()].tolist() == [hot_rows]
    assert quality[quality.index.isna()].tolist() == [EVENTS - hot_rows]


def test_how_far_events_came_asks_for_events_not_for_keys(tables, most_read, hot_rows):
    brokers = ("hot b", *(f"b{n}" for n in range(50)))
    places = VantagePoints(
        brokers=brokers, links=(), publishers=("hot p", *(f"p{n}" for n in range(50)))
    )
    statistic = sighting_statistics(tables["hops"], tables["publications"], WINDOW, places)
    found, most = most_read(statistic, "sightings")
    assert most < hot_rows / 2
    reached = found[(found["statistic"] == "reached") & (found["target"] == "hot b")]
    assert reached["events"].sum() == hot_rows
