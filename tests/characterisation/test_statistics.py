"""Each statistic on a few rows whose answer is plain, and what its plan costs."""

from __future__ import annotations

import math

import pytest
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from tidings.characterisation.deliveries import (
    DELIVERY_STATISTICS,
    SETTLING,
    TOO_EARLY,
    UNPUBLISHED,
    delivery_statistics,
)
from tidings.characterisation.hops import (
    HOP_STATISTICS,
    hop_statistics,
    with_reconstructed_starts,
)
from tidings.characterisation.hops import OUTSIDE as LATE_HOP
from tidings.characterisation.links import (
    LINK_STATISTICS,
    arrived_at_brokers,
    crossing_statistics,
    probe_statistics,
    sent_by_brokers,
)
from tidings.characterisation.publications import (
    INTERVAL_STATISTICS,
    OUTSIDE,
    PUBLICATION_STATISTICS,
    exact_lifetimes,
    interval_statistics,
    publication_statistics,
)
from tidings.characterisation.subscriptions import (
    SUBSCRIPTION_STATISTICS,
    subscription_statistics,
)
from tidings.model.delay_grid import bin_of
from tidings.model.trace_tables import TRACE_TABLES
from tidings.traces.window import Window

S = 1_000_000_000
WINDOW = Window(from_ns=0, until_ns=32 * S)  # a batch a second


def table(spark, name, rows):
    return spark.createDataFrame(rows, TRACE_TABLES[name].ddl.replace(" NOT NULL", ""))


def of(frame, statistic, *columns):
    """Rows of one statistic as a set of tuples."""
    rows = frame.where(F.col("statistic") == statistic).select(*columns).collect()
    assert len(rows) == len(set(rows))
    return {tuple(row) for row in rows}


def bin_s(seconds):
    return int(bin_of([seconds])[0])


def schema(ddl):
    return [tuple(part.split()) for part in ddl.split(", ")]


def found_schema(frame):
    return [(field.name, field.dataType.simpleString()) for field in frame.schema]


PUBLISHED = [
    ("e1", "p", "hub", 0, "{}", S, 10),
    ("e2", "p", "hub", S // 2, "{}", S, None),
    ("e3", "p", "hub", 3 * S, '{"a":1}', None, 30),
    ("e4", "q", None, 31 * S, "{}", 2 * S, 5),
    ("e5", "q", None, 32 * S, "{}", S, 5),
    ("e6", None, None, 5, "{}", S, 5),
]


def test_publications_are_counted_by_publisher_content_lifetime_and_batch(spark):
    measured = WINDOW.shortened(2.0)
    found = publication_statistics(table(spark, "publications", PUBLISHED), WINDOW, measured)
    assert found_schema(found) == schema(PUBLICATION_STATISTICS)
    assert of(found, "quality", "reason", "rows") == {
        (None, 4),
        (OUTSIDE, 1),
        ("no publisher", 1),
    }
    assert of(found, "publishers", "publisher", "broker", "rows") == {
        ("p", "hub", 3),
        ("q", None, 1),
        (None, None, 2),
    }
    one, two = bin_s(1.0), bin_s(2.0)
    assert of(
        found, "contents", "publisher", "content", "lifetime_bin", "rows", "least_lifetime_ns",
        "most_lifetime_ns", "sizes", "size_total_bytes",
    ) == {
        ("p", "{}", one, 2, S, S, 1, 10.0),
        ("p", '{"a":1}', None, 1, None, None, 1, 30.0),
        ("q", "{}", two, 1, 2 * S, 2 * S, 1, 5.0),
        (None, None, None, 2, S, S, 2, 10.0),
    }  # fmt: skip
    # thirty measured seconds in 32 batches; what settles is in none
    assert of(found, "batches", "publisher", "content", "batch", "rows") == {
        ("p", "{}", 0, 2),
        ("p", '{"a":1}', 3, 1),
        ("q", "{}", None, 1),
        (None, None, None, 2),
    }


def test_lifetimes_that_share_a_bin_are_told_apart_up_to_a_number(spark):
    rows = [
        *[(f"a{i}", "p", None, i, "{}", life, 7) for i, life in enumerate([10, 11, 10, None])],
        *[(f"b{i}", "q", None, i, "{}", i, None) for i in range(5)],
        ("c", "r", None, 0, "{}", 4, None),
    ]
    pairs = spark.createDataFrame([("p", "{}"), ("q", "{}")], "publisher string, content string")
    found = exact_lifetimes(table(spark, "publications", rows), pairs, 2)
    columns = ("publisher", "rows", "least_lifetime_ns", "most_lifetime_ns", "sizes")
    assert {tuple(row) for row in found.select(*columns).collect()} == {
        ("p", 2, 10, 10, 2),
        ("p", 1, 11, 11, 1),
        ("p", 1, None, None, 1),
        *[("q", 1, i, i, 0) for i in range(3)],  # one more than asked for: it has too many
    }
    assert set(found.columns) < {part.split()[0] for part in PUBLICATION_STATISTICS.split(", ")}


def test_intervals_within_batches_and_the_ends_to_bridge_them(spark):
    found = interval_statistics(table(spark, "publications", PUBLISHED), WINDOW)
    assert found_schema(found) == schema(INTERVAL_STATISTICS)
    assert of(found, "intervals", "publisher", "bin", "count", "total_s", "squares") == {
        ("p", bin_s(0.5), 1, 0.5, 0.25),
        ("p", None, 0, None, None),
        ("q", None, 0, None, None),
    }
    assert of(found, "ends", "publisher", "batch", "first_ns", "last_ns") == {
        ("p", 0, 0, S // 2),
        ("p", 3, 3 * S, 3 * S),
        ("q", 31, 31 * S, 31 * S),
    }


HOPS = [
    ("e1", "hub", "p", 0, 0, 2 * S, ["east"]),
    ("e2", "hub", "p", 1 * S, 2 * S, 3 * S, ["east"]),
    ("e3", "hub", "q", 5 * S, None, 6 * S, None),
    ("e1", "east", "hub", 3 * S, 3 * S, 4 * S, []),
    ("e9", "east", "hub", 9 * S, 8 * S, 10 * S, []),
    ("e8", "east", "hub", 32 * S, 33 * S, 34 * S, []),  # the window has ended
]


def test_hops_give_arrivals_waits_and_service(spark):
    found = hop_statistics(table(spark, "hops", HOPS), WINDOW)
    assert found_schema(found) == schema(HOP_STATISTICS)
    assert of(found, "quality", "reason", "rows") == {
        (None, 4),
        ("it started before it arrived", 1),
        (LATE_HOP, 1),
    }
    assert of(found, "arrivals", "broker", "came_from", "rows") == {
        ("hub", "p", 2),
        ("hub", "q", 1),
        ("east", "hub", 1),
        (None, None, 2),
    }
    assert of(found, "service", "broker", "bin", "rows", "count", "total_s", "wait_total_s") == {
        ("hub", bin_s(2.0), 1, 1, 2.0, 0.0),
        ("hub", bin_s(1.0), 1, 1, 1.0, 1.0),
        ("hub", None, 1, 0, None, None),
        ("east", bin_s(1.0), 1, 1, 1.0, 0.0),
        (None, None, 2, 0, None, None),
    }
    assert of(found, "batches", "broker", "batch", "rows", "count") == {
        ("hub", 0, 1, 1),
        ("hub", 1, 1, 1),
        ("hub", 5, 1, 0),
        ("east", 3, 1, 1),
        (None, None, 2, 0),
    }


def test_starts_are_reconstructed_as_one_server_must_have_made_them(spark):
    tenth = S // 100
    rows = [
        ("e1", "hub", "p", 0, None, 2 * tenth, None),
        ("e2", "hub", "p", 1 * tenth, None, 3 * tenth, None),  # waited for e1
        ("e3", "hub", "p", 5 * tenth, None, 6 * tenth, None),  # found the server idle
        ("e4", "hub", "p", 7 * tenth, 8 * tenth, 9 * tenth, None),  # says so itself
    ]
    found = with_reconstructed_starts(table(spark, "hops", rows), WINDOW)
    starts = {row.event: row.started_ns for row in found.collect()}
    assert starts == {"e1": None, "e2": 2 * tenth, "e3": 5 * tenth, "e4": 8 * tenth}


def test_probes_give_delay_and_loss_by_direction(spark):
    rows = [
        ("a", "b", 0, S),
        ("a", "b", 0, None),
        ("b", "a", 0, 4 * S),
        ("b", "a", 5, 4),
        ("", "a", 0, None),
    ]
    found = probe_statistics(table(spark, "probes", rows))
    ln4 = math.log(4.0)
    expected = [
        (None, "a", "b", bin_s(1.0), 1, 0, 1, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0),
        (None, "a", "b", None, 1, 1, 0, None, None, None, None, None, None),
        (None, "b", "a", bin_s(4.0), 1, 0, 1, 4.0, 16.0, ln4, ln4**2, 4.0, 4.0),
        ("it was received before it was sent", None, None, None, 1, 0, 0) + (None,) * 6,
        ("no source", None, None, None, 1, 0, 0) + (None,) * 6,
    ]
    assertDataFrameEqual(found, spark.createDataFrame(expected, LINK_STATISTICS), rtol=1e-12)


def test_links_without_probes_are_told_from_both_of_their_ends(spark):
    hops = table(
        spark,
        "hops",
        [
            ("e1", "hub", "p", 0, 0, 1 * S, ["east", "west"]),
            ("e1", "east", "hub", 3 * S, 3 * S, 4 * S, []),  # west never got it
            ("e2", "hub", "p", 2 * S, 2 * S, 3 * S, None),  # does not say to whom
            ("e2", "east", "hub", 4 * S, 4 * S, 5 * S, None),
            ("e3", "hub", "p", 8 * S, 8 * S, 9 * S, ["east"]),
            ("e3", "east", "hub", 8 * S, 8 * S, 9 * S, []),  # clocks disagree
        ],
    )
    found = crossing_statistics(sent_by_brokers(hops), arrived_at_brokers(hops))
    rows = {
        (row.source, row.target, row.bin): (row.rows, row.lost, row["count"], row.total_s)
        for row in found.collect()
    }
    assert rows == {
        ("hub", "east", bin_s(2.0)): (1, 0, 1, 2.0),
        ("hub", "east", bin_s(1.0)): (1, None, 1, 1.0),
        ("hub", "east", None): (1, 0, 0, None),
        ("hub", "west", None): (1, 1, 0, None),
    }


def test_deliveries_are_counted_once_and_judged_by_the_lifetime(spark):
    publications = table(
        spark,
        "publications",
        [
            ("e1", "p", None, 0, "{}", 2 * S, None),
            ("e2", "p", None, S, "{}", 2 * S, None),
            ("e3", "q", None, 3 * S, "{}", None, None),
            ("e3", "q", None, 3 * S, "{}", None, None),  # stands there twice
            ("e4", "q", None, 31 * S, "{}", None, None),
        ],
    )
    rows = [
        ("e1", "s", None, 2 * S),  # exactly at the end of its life: on time
        ("e1", "s", None, 5 * S),  # and once more
        ("e1", "t", None, 3 * S),  # late
        ("e2", "s", None, 2 * S),
        ("e3", "s", None, 4 * S),
        ("e4", "s", None, 31 * S),
        ("e5", "s", None, 9 * S),
        ("e2", "t", None, 0),
        ("", "t", None, 0),
    ]
    measured = WINDOW.shortened(2.0)
    found = delivery_statistics(table(spark, "deliveries", rows), publications, measured)
    assert found_schema(found) == schema(DELIVERY_STATISTICS)
    assert of(found, "quality", "reason", "rows", "duplicates", "delivered") == {
        (None, 5, 1, 5),
        (SETTLING, 1, None, None),
        (UNPUBLISHED, 1, None, None),
        (TOO_EARLY, 1, None, None),
        ("no event", 1, None, None),
    }
    keys = ("subscriber", "publisher", "batch", "delivered", "on_time", "delay_total_s", "doubled")
    assert of(found, "pairs", *keys) == {
        ("s", "p", 0, 1, 1, 2.0, 0),
        ("s", "p", 1, 1, 1, 1.0, 0),
        ("s", "q", 3, 2, 2, 2.0, 1),
        ("t", "p", 0, 1, None, 3.0, 0),
        (None, None, None, None, None, None, None),
    }
    assert of(found, "delays", "subscriber", "bin", "delivered") == {
        ("s", bin_s(2.0), 1),
        ("s", bin_s(1.0), 3),
        ("t", bin_s(3.0), 1),
        (None, None, None),
    }


def test_subscriptions_are_grouped_by_whose_and_what(spark):
    rows = [
        ("s1", "alice", "hub", "subscribe", 5, "{}"),
        ("s1", "alice", "hub", "subscribe", 9, "{}"),
        ("s1", "alice", "hub", "learnt", 6, None),
        ("s2", "bob", "hub", "subscribe", 6, None),
    ]
    expected = [
        (None, "alice", "hub", "subscribe", "{}", 2, 5, 9),
        (None, "alice", "hub", "learnt", None, 1, 6, 6),
        ("it subscribes without a filter", None, None, None, None, 1, 6, 6),
    ]
    found = subscription_statistics(table(spark, "subscriptions", rows))
    assertDataFrameEqual(found, spark.createDataFrame(expected, SUBSCRIPTION_STATISTICS))


def frames(spark):
    """Every statistic over empty tables, and how often it may move rows between machines."""
    empty = {name: table(spark, name, []) for name in TRACE_TABLES}
    hops = empty["hops"]
    return {
        "publications": (publication_statistics(empty["publications"], WINDOW, WINDOW), 2),
        "intervals": (interval_statistics(empty["publications"], WINDOW), 2),
        "hops": (hop_statistics(hops, WINDOW), 2),
        "starts": (with_reconstructed_starts(hops, WINDOW), 1),
        "probes": (probe_statistics(empty["probes"]), 1),
        "crossings": (crossing_statistics(sent_by_brokers(hops), arrived_at_brokers(hops)), 3),
        # deliveries and publications once each by event, then the cells twice
        "deliveries": (
            delivery_statistics(empty["deliveries"], empty["publications"], WINDOW),
            4,
        ),
        "subscriptions": (subscription_statistics(empty["subscriptions"]), 1),
    }


@pytest.mark.parametrize(
    "name",
    [
        "publications", "intervals", "hops", "starts", "probes", "crossings", "deliveries",
        "subscriptions",
    ],
)  # fmt: skip
def test_plans_run_no_python_and_move_rows_no_more_than_needed(spark, capsys, name):
    # small tables would be sent to everybody; large ones cannot be
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        frame, exchanges = frames(spark)[name]
        frame.explain()
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    plan = capsys.readouterr().out
    assert plan.count("Exchange ") == exchanges, plan
    assert "Python" not in plan
    assert "UDF" not in plan


def test_statistics_of_empty_tables_are_empty(spark):
    for name, (frame, _) in frames(spark).items():
        rows = frame.collect()
        assert all(row["rows"] in (0, None) for row in rows if "rows" in row), name
