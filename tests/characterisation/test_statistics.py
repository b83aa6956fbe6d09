"""Each statistic on a few rows whose answer is plain, and what its plan costs."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from pyspark.testing import assertDataFrameEqual

from naive_traffic import interval_rows
from tidings.characterisation.count.deliveries import (
    DELIVERY_STATISTICS,
    SUBSCRIPTION_STATISTICS,
    delivery_statistics,
    subscription_statistics,
)
from tidings.characterisation.count.handlings import handling_statistics, pickup_statistics
from tidings.characterisation.count.hops import (
    HOP_STATISTICS,
    hop_statistics,
    with_reconstructed_starts,
)
from tidings.characterisation.count.journeys import (
    SIGHTING_STATISTICS,
    VantagePoints,
    sighting_statistics,
)
from tidings.characterisation.count.link_hours import split_hours
from tidings.characterisation.count.links import (
    PROBE_STATISTICS,
    arrived_at_brokers,
    crossing_statistics,
    probe_statistics,
    sent_by_brokers,
    split_probes,
)
from tidings.characterisation.count.periods import stay_periods
from tidings.characterisation.count.publications import (
    INTERVAL_STATISTICS,
    PUBLICATION_STATISTICS,
    each_once,
    exact_lifetimes,
    interval_statistics,
    publication_statistics,
)
from tidings.characterisation.fit.clocks import apparent_delays, of_crossings
from tidings.characterisation.statistics import ARRIVED_OUTSIDE as LATE_HOP
from tidings.characterisation.statistics import (
    CONFLICT,
    CROSSING_STATISTICS,
    INSTANTS,
    LINK_STATISTICS,
    PUBLISHED_OUTSIDE,
    SCALE_SUMS,
    SETTLING,
    TOO_EARLY,
    UNFORESEEN,
    UNPUBLISHED,
    merge_rows,
)
from tidings.model.delay_grid import bin_of
from tidings.model.trace_tables import TRACE_TABLES
from tidings.traces.actions import bring_here
from tidings.traces.window import TraceWindow

S = 1_000_000_000
WINDOW = TraceWindow(from_ns=0, until_ns=32 * S)  # a batch a second


def nullable(name):
    return TRACE_TABLES[name].ddl.replace(" NOT NULL", "")


@pytest.fixture(scope="module")
def table(frame, few_rows):
    return lambda name, rows: frame(rows, nullable(name))


@cache
def collected(frame):
    """All rows of a frame, worked out once however many of its statistics are looked at."""
    return frame.collect()


def of(frame, statistic, *columns):
    """Rows of one statistic as a set of tuples."""
    rows = [row for row in collected(frame) if row["statistic"] == statistic]
    found = [tuple(row[name] for name in columns) for row in rows]
    assert len(found) == len(set(found))
    return set(found)


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


def test_publications_are_counted_by_publisher_content_lifetime_and_batch(table):
    measured = WINDOW.shortened(2.0)
    found = publication_statistics(table("publications", PUBLISHED), WINDOW, measured)
    assert found_schema(found) == schema(PUBLICATION_STATISTICS)
    assert of(found, "quality", "reason", "rows") == {
        (None, 4),
        (PUBLISHED_OUTSIDE, 1),
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


def test_lifetimes_that_share_a_bin_are_told_apart_up_to_a_number(table, frame):
    rows = [
        *[(f"a{i}", "p", None, i, "{}", life, 7) for i, life in enumerate([10, 11, 10, None])],
        *[(f"b{i}", "q", None, i, "{}", i, None) for i in range(5)],
        ("c", "r", None, 0, "{}", 4, None),
    ]
    pairs = frame([("p", "{}"), ("q", "{}")], "publisher string, content string")
    found = exact_lifetimes(table("publications", rows), pairs, 2)
    columns = ("publisher", "rows", "least_lifetime_ns", "most_lifetime_ns", "sizes")
    assert {tuple(row) for row in found.select(*columns).collect()} == {
        ("p", 2, 10, 10, 2),
        ("p", 1, 11, 11, 1),
        ("p", 1, None, None, 1),
        *[("q", 1, i, i, 0) for i in range(3)],  # one more than asked for: it has too many
    }
    assert set(found.columns) < {part.split()[0] for part in PUBLICATION_STATISTICS.split(", ")}


def test_intervals_within_batches_and_the_ends_to_bridge_them(table):
    found = interval_statistics(table("publications", PUBLISHED), WINDOW)
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


def test_windows_of_every_length_are_counted_as_a_twin_counts_them(spark, few_rows, tmp_path):
    rng = np.random.default_rng(8)
    times_ns = {
        "p": rng.integers(0, 32 * S, 400),
        "q": np.repeat(rng.integers(0, 32_000, 60) * 10**6, 3),
        "r": np.arange(32) * S,
    }
    rows = [(f"{p} {n}", p, int(t)) for p, every in times_ns.items() for n, t in enumerate(every)]
    columns = pd.DataFrame(rows, columns=["event", "publisher", "published_ns"])
    columns = columns.assign(broker="b", content="{}", lifetime_ns=None, size_bytes=None)
    types = {"lifetime_ns": "Int64", "size_bytes": "Int64"}
    columns.astype(types).to_parquet(tmp_path / "rows.parquet")
    publications = spark.read.parquet(str(tmp_path / "rows.parquet"))
    found = interval_statistics(publications, WINDOW).toPandas()
    twin = interval_rows(times_ns, WINDOW.from_ns, WINDOW.until_ns)
    for statistic, key, columns in (
        ("ends", "batch", ("count", "first_ns", "last_ns", *INSTANTS)),
        ("scales", "batch", ("first_ns", "last_ns", "events", *SCALE_SUMS)),
        ("hours", "bin", ("events",)),
    ):
        tables = [
            each[each["statistic"] == statistic].set_index(["publisher", key]).sort_index()
            for each in (found, twin)
        ]
        for column in columns:
            counted, expected = (list(each[column].astype(np.int64)) for each in tables)
            assert counted == expected, (statistic, column)


HOPS = [
    ("e1", "hub", "p", 0, 0, 2 * S, ["east"]),
    ("e2", "hub", "p", 1 * S, 2 * S, 3 * S, ["east"]),
    ("e3", "hub", "q", 5 * S, None, 6 * S, None),
    ("e1", "east", "hub", 3 * S, 3 * S, 4 * S, []),
    ("e9", "east", "hub", 9 * S, 8 * S, 10 * S, []),
    ("e8", "east", "hub", 32 * S, 33 * S, 34 * S, []),  # the window has ended
]


def test_hops_give_arrivals_waits_and_service(table):
    found = hop_statistics(table("hops", HOPS), WINDOW)
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
    waited = {
        (broker, batch): waited
        for broker, batch, waited in of(found, "batches", "broker", "batch", "waited")
    }
    assert sum(waited.values()) == 1
    assert of(found, "waiting", "broker", "bin", "rows", "count", "total_s") == {
        ("hub", bin_s(1.0), 1, 1, 1.0)
    }
    assert of(found, "batches", "broker", "batch", "rows", "count") == {
        ("hub", 0, 1, 1),
        ("hub", 1, 1, 1),
        ("hub", 5, 1, 0),
        ("east", 3, 1, 1),
        (None, None, 2, 0),
    }


def test_starts_are_reconstructed_as_one_server_must_have_made_them(table):
    tenth = S // 100
    rows = [
        ("e1", "hub", "p", 0, None, 2 * tenth, None),
        ("e2", "hub", "p", 1 * tenth, None, 3 * tenth, None),  # waited for e1
        ("e3", "hub", "p", 5 * tenth, None, 6 * tenth, None),  # found the server idle
        ("e4", "hub", "p", 7 * tenth, 8 * tenth, 9 * tenth, None),  # says so itself
    ]
    found = with_reconstructed_starts(table("hops", rows))
    starts = {row.event: row.started_ns for row in found.collect()}
    assert starts == {"e1": None, "e2": 2 * tenth, "e3": 5 * tenth, "e4": 8 * tenth}


def test_probes_give_delay_and_loss_by_direction(table, frame):
    rows = [
        ("a", "b", 0, S),
        ("a", "b", 0, None),
        ("b", "a", 0, 4 * S),
        ("b", "a", 5, 4),
        ("", "a", 0, None),
    ]
    counts = probe_statistics(table("probes", rows))
    assert found_schema(counts) == schema(PROBE_STATISTICS)
    found = split_probes(bring_here(counts, "probes"))["probes"]
    ln4 = math.log(4.0)
    expected = [
        (None, "a", "b", bin_s(1.0), 1, 0, 1, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0),
        (None, "a", "b", None, 1, 1, 0, None, None, None, None, None, None),
        (None, "b", "a", bin_s(4.0), 1, 0, 1, 4.0, 16.0, ln4, ln4**2, 4.0, 4.0),
        ("it was received before it was sent", None, None, None, 1, 0, 0) + (None,) * 6,
        ("no source", None, None, None, 1, 0, 0) + (None,) * 6,
    ]
    wanted = frame(expected, LINK_STATISTICS).toPandas()
    keys = ["reason", "source", "target", "bin"]
    both = [
        each.astype(object).where(each.notna(), None).sort_values(keys, ignore_index=True)
        for each in (found, wanted)
    ]
    pd.testing.assert_frame_equal(*both, check_dtype=False, rtol=1e-12)


def test_delays_are_counted_by_hour_of_the_week_beside_their_lengths(table, frame):
    """The first hour of 1970 is the one that all are counted from; what is lost has none."""
    hour = 3600 * S
    rows = [
        ("a", "b", 0, S),
        ("a", "b", 5, 3 * S + 5),
        ("a", "b", hour - 1, hour + S - 1),  # an hour is that of sending
        ("a", "b", hour, 2 * S + hour),
        ("a", "b", 168 * hour, S + 168 * hour),
        ("a", "b", 169 * hour, None),
        ("b", "a", 170 * hour, S + 170 * hour),
        ("", "a", 0, S),
        ("b", "a", 5, 4),
    ]
    counts = bring_here(probe_statistics(table("probes", rows), hours=True), "probes")
    delays, hours = split_hours(counts)
    plain = bring_here(probe_statistics(table("probes", rows)), "probes")
    keys = ["reason", "source", "target", "bin"]
    both = [each[list(plain)].sort_values(keys, ignore_index=True) for each in (delays, plain)]
    pd.testing.assert_frame_equal(*both, check_dtype=False)
    found = {
        (row.source, row.target, row.hour): (row.count_, row.total_s, row.highest_s)
        for row in hours.rename(columns={"count": "count_"}).itertuples()
    }
    assert found == {
        ("a", "b", 0): (4, 6.0, 3.0),
        ("a", "b", 1): (1, 2.0, 2.0),
        ("b", "a", 2): (1, 1.0, 1.0),
    }


def test_links_without_probes_are_told_from_both_of_their_ends(table):
    hops = table(
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
    assert found_schema(found) == schema(CROSSING_STATISTICS)
    rows = {
        (row.source, row.target, row.bin): (row.rows, row.lost, row["count"], row.total_s)
        for row in found.collect()
    }
    apparent = of_crossings(bring_here(found, "hops"))
    (east,) = apparent_delays(apparent).values()
    told = (east.count, east.early, east.least_s, east.total_s, east.squares)
    assert told == (3, 1, -1.0, 2.0, 6.0)
    assert rows == {
        ("hub", "east", bin_s(2.0)): (1, 0, 1, 2.0),
        ("hub", "east", bin_s(1.0)): (1, None, 1, 1.0),
        ("hub", "east", None): (1, 0, 0, None),
        ("hub", "west", None): (1, 1, 0, None),
    }


def test_deliveries_are_counted_once_and_judged_by_the_lifetime(table):
    publications = table(
        "publications",
        [
            ("e1", "p", None, 0, "{}", 2 * S, None),
            ("e2", "p", None, S, "{}", 2 * S, None),
            ("e3", "q", None, 3 * S, "{}", None, None),
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
    found = delivery_statistics(table("deliveries", rows), publications, measured)
    assert found_schema(found) == schema(DELIVERY_STATISTICS)
    assert of(found, "quality", "reason", "rows", "duplicates", "delivered") == {
        (None, 5, 1, 4),
        (SETTLING, 1, None, 0),
        (UNPUBLISHED, 1, None, 0),
        (TOO_EARLY, 1, None, 0),
        ("no event", 1, None, 0),
    }
    keys = ("subscriber", "publisher", "batch", "delivered", "on_time", "delay_total_s")
    assert of(found, "pairs", *keys) == {
        ("s", "p", 0, 1, 1, 2.0),
        ("s", "p", 1, 1, 1, 1.0),
        ("s", "q", 3, 1, 1, 1.0),
        ("t", "p", 0, 1, 0, 3.0),
        (None, None, None, 0, 0, None),
    }
    assert of(found, "delays", "subscriber", "bin", "delivered") == {
        ("s", bin_s(2.0), 1),
        ("s", bin_s(1.0), 2),
        ("t", bin_s(3.0), 1),
        (None, None, 0),
    }


def test_subscriptions_are_grouped_by_whose_and_what(table, frame):
    rows = [
        ("s1", "alice", "hub", "subscribe", 5, "{}"),
        ("s1", "alice", "hub", "subscribe", 9, "{}"),
        ("s1", "alice", "hub", "subscribe", 9, "{}"),  # a copy
        ("s1", "alice", "hub", "learnt", 6, None),
        ("s2", "bob", "hub", "subscribe", 6, None),
        ("s2", "bob", "hub", "subscribe", 6, None),  # a copy of what is set aside
    ]
    expected = [
        (None, "alice", "hub", "subscribe", "{}", 3, 1, 5, 9),
        (None, "alice", "hub", "learnt", None, 1, 0, 6, 6),
        ("it subscribes without a filter", None, None, None, None, 2, 0, 6, 6),
    ]
    found = subscription_statistics(table("subscriptions", rows))
    assertDataFrameEqual(found, frame(expected, SUBSCRIPTION_STATISTICS))


def test_moments_stay_whole_nanoseconds_beside_a_row_that_tells_none(table):
    """A double knows moments of this century to a quarter of a microsecond only."""
    at_ns = 1_700_000_000_000_000_001
    rows = [
        ("s1", "alice", "hub", "subscribe", at_ns, "{}"),
        ("s2", "bob", "b", "learnt", None, None),
    ]
    day = bring_here(subscription_statistics(table("subscriptions", rows)), "subscriptions")
    both = merge_rows("subscriptions", [day, day.assign(last_ns=day["last_ns"] + 2)])
    for found, last_ns in ((day, at_ns), (both, at_ns + 2)):
        alice = found[found["subscriber"] == "alice"].iloc[0]
        assert (int(alice["first_ns"]), int(alice["last_ns"])) == (at_ns, last_ns)
        assert found["first_ns"].isna().sum() == 1  # told by none


COPIED = [
    ("e1", "p", "hub", 0, "{}", None, 5),
    ("e1", "p", "hub", 0, "{}", None, 5),  # the same in all
    ("e2", "p", "hub", S, "{}", S, None),
    ("e2", "p", "hub", S, "{}", None, S),  # the same numbers, in another place
    ("e3", "p", "hub", 2 * S, "{}", S, 5),
    ("e3", "p", "hub", 2 * S, '{"a":1}', S, 5),
    ("e4", "q", "hub", 31 * S, "{}", S, 5),
    ("e5", "q", None, 3 * S, "{}", S, 5),
]


def test_every_event_stands_there_once_and_none_that_differs_from_itself(table):
    found = each_once(table("publications", COPIED)).orderBy("event").collect()
    assert [tuple(row) for row in found] == [COPIED[0], COPIED[6], COPIED[7]]


EVERY_LINK = (("hub", "east"), ("hub", "west"), ("east", "hub"))


@pytest.mark.parametrize("links", [None, EVERY_LINK], ids=["as lists", "as bits"])
def test_events_are_followed_to_where_they_were_last_seen(table, links):
    hops = table(
        "hops",
        [
            ("e1", "hub", "p", 0, 0, S, ["east", "west", None, "alice"]),
            ("e1", "east", "hub", 9, 5, 0, None),  # impossible times, but it was there
            ("e1", "east", "hub", 9, 9, 9, []),
            ("e2", "hub", "p", 0, 0, S, ["east"]),
            ("e3", "hub", "p", 0, 0, S, ["east"]),
            ("e4", "hub", "p", 0, 0, S, ["east"]),  # published while the window settles
            ("", "hub", "p", 0, 0, S, ["east"]),
        ],
    )
    measured = WINDOW.shortened(2.0)
    places = VantagePoints(brokers=("hub", "east", "west"), links=links, publishers=("p", "q"))
    found = sighting_statistics(hops, table("publications", COPIED), measured, places)
    assert places.are_few == (links is not None)
    assert found_schema(found) == schema(SIGHTING_STATISTICS)
    assert of(found, "published", "reason", "publisher", "content_key", "events", "rows") == {
        (None, None, 0, 3, 4),
        (CONFLICT, None, 0, 2, 4),
    }
    counts = publication_statistics(table("publications", COPIED), WINDOW, WINDOW)
    ((key,),) = of(counts.where("content = '{}' and publisher = 'q'"), "contents", "content_key")
    columns = ("publisher", "content_key", "source", "target", "events")
    assert of(found, "reached", *columns) == {
        ("p", key, None, "hub", 1),
        ("p", key, None, "east", 1),
    }
    assert of(found, "lost", *columns) == {
        ("p", key, "hub", "west", 1),
        ("q", key, "q", None, 1),  # no broker has seen it
    }
    assert of(found, UNFORESEEN, "events") == set()


def test_events_sent_where_none_was_known_to_go_are_noticed(table):
    """Whether to a broker that they reached on another way, or to one that they did not."""
    published = [("e1", "p", "hub", 0, "{}", None, 5), ("e2", "p", "hub", 0, "{}", None, 5)]
    for target, unforeseen in (("east", set()), ("alice", set()), ("west", {(2,)})):
        hops = [(event, "hub", "p", 0, 0, S, ["east", target]) for event in ("e1", "e2")]
        places = VantagePoints(
            brokers=("hub", "east", "west"), links=(("hub", "east"),), publishers=("p",)
        )
        rows = table("hops", hops), table("publications", published)
        assert of(sighting_statistics(*rows, WINDOW, places), UNFORESEEN, "events") == unforeseen


def test_journeys_are_lists_where_bits_do_not_suffice():
    names = [f"b{n}" for n in range(64)]
    few = VantagePoints(brokers=tuple(names[:62]), links=tuple(pairwise(names[:63])))
    assert few.are_few
    assert not replace(few, brokers=tuple(names[:63])).are_few
    assert not replace(few, links=tuple(pairwise(names))).are_few
    assert not replace(few, brokers=("a", "a\0b")).are_few


# Every statistic over its tables, and how often it may move rows between machines.
STATISTICS = {
    "publications": (lambda t: publication_statistics(t["publications"], WINDOW, WINDOW), 2),
    # rows once, for intervals and for windows of time alike, and their cells
    "intervals": (lambda t: interval_statistics(t["publications"], WINDOW), 2),
    # cells of services and of waits together, twice
    "hops": (lambda t: hop_statistics(t["hops"], WINDOW), 2),
    "starts": (lambda t: with_reconstructed_starts(t["hops"]), 1),
    "probes": (lambda t: probe_statistics(t["probes"]), 1),
    # the cells once more where delays are counted by length and by hour
    "probes by hour": (lambda t: probe_statistics(t["probes"], hours=True), 2),
    "crossings by hour": (
        lambda t: crossing_statistics(
            sent_by_brokers(t["hops"]), arrived_at_brokers(t["hops"]), hours=True
        ),
        4,
    ),
    "crossings": (
        lambda t: crossing_statistics(sent_by_brokers(t["hops"]), arrived_at_brokers(t["hops"])),
        3,
    ),
    # hops and publications together by event, which finds the copies too, then journeys and cells
    # once each; the names of publishers are sent to everybody
    "sightings": (
        lambda t: sighting_statistics(
            t["hops"],
            t["publications"],
            WINDOW,
            VantagePoints(brokers=("b",), links=(), publishers=("p",)),
        ),
        4,
    ),
    # hops and publications once each by event, then the cells once
    "sightings as lists": (
        lambda t: sighting_statistics(
            t["hops"], t["publications"], WINDOW, VantagePoints(brokers=("b",))
        ),
        3,
    ),
    # deliveries and publications once each by event, then the cells twice
    "deliveries": (lambda t: delivery_statistics(t["deliveries"], t["publications"], WINDOW), 4),
    # no more where copies were found: to unite them puts them where the deliveries meet them
    "deliveries of copies": (
        lambda t: delivery_statistics(t["deliveries"], each_once(t["publications"]), WINDOW),
        4,
    ),
    # what was handled comes together by event, then the cells twice
    "handlings": (lambda t: handling_statistics(t["deliveries"], WINDOW), 3),
    # rows once, by group and slot of time, and their cells
    "pickups": (lambda t: pickup_statistics(t["deliveries"], WINDOW), 2),
    # equal rows come together first, then the cells
    "subscriptions": (lambda t: subscription_statistics(t["subscriptions"]), 2),
    # lives are told by subscription, stays by subscriber
    "stays": (lambda t: stay_periods(t["subscriptions"], WINDOW), 2),
}


@pytest.fixture(scope="module")
def empty(spark, few_rows):
    return {name: spark.createDataFrame([], nullable(name)) for name in TRACE_TABLES}


def plan_of(spark, frame, capsys):
    # small tables would be sent to everybody; large ones cannot be
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        frame.explain()
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    return capsys.readouterr().out


@pytest.mark.parametrize("name", STATISTICS)
def test_plans_run_no_python_and_move_rows_no_more_than_needed(spark, empty, capsys, name):
    statistic, exchanges = STATISTICS[name]
    plan = plan_of(spark, statistic(empty), capsys)
    assert plan.count("Exchange ") == exchanges, plan
    assert "Python" not in plan
    assert "UDF" not in plan


def test_copies_of_an_event_are_united_before_they_are_moved(spark, empty, capsys):
    plan = plan_of(spark, each_once(empty["publications"]), capsys)
    moved = plan.index("Exchange hashpartitioning(event")
    assert plan.count("Aggregate") == 2, plan
    assert "partial_min" in plan[moved:], plan  # plans are printed from the result downwards


def test_statistics_of_empty_tables_are_empty(empty):
    for name, (statistic, _) in STATISTICS.items():
        rows = statistic(empty).collect()
        assert all(row["rows"] in (0, None) for row in rows if "rows" in row), name
