"""A small sample of every format, each read to the last record."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from tidings.errors import InvalidTracesError
from tidings.traces.importing import import_traces, with_black_box
from tidings.traces.quarantine import UNREADABLE
from tidings.traces.readers import nats, otlp, periods
from tidings.traces.readers.lines import expand
from tidings.traces.readers.nats import read_nats
from tidings.traces.readers.otlp import read_otlp
from tidings.traces.readers.periods import CONNECTIVITY, UP_AND_DOWN, read_periods
from tidings.traces.readers.probes import read_probes
from tidings.traces.reading import read_traces
from tidings.traces.window import TraceWindow

SAMPLES = Path(__file__).parent / "samples"
S = 10**9
EPOCH = 1_700_000_000 * S


@pytest.fixture(scope="module", autouse=True)
def _quick(few_rows):
    """All rows of this module are a handful."""


def account_of(imported):
    rows = imported.account.itertuples(index=False, name=None)
    return {(table, fate, reason): number for table, fate, reason, number in rows}


def kept(frame, name):
    """Parse once, as an import does, without files."""
    return frame.localCheckpoint()


def rows_of(frame, *columns):
    return {tuple(row) for row in frame.select(*columns).collect()}


def test_nats_events_become_all_four_tables(spark, tmp_path):
    files = expand([str(SAMPLES / "nats.jsonl")])
    found = import_traces(spark, lambda keep: read_nats(spark, files, keep), files, tmp_path)
    assert account_of(found) == {
        ("lines", "used", ""): 6,
        ("lines", "set aside", nats.NO_ID): 1,
        ("lines", "set aside", nats.NO_INGRESS): 1,
        ("lines", "set aside", nats.NO_EVENT): 1,
        ("publications", "used", ""): 3,
        ("publications", "duplicate", "the same in every column as another row"): 1,
        ("hops", "used", ""): 5,
        ("hops", "duplicate", "the same in every column as another row"): 1,
        ("deliveries", "used", ""): 3,
        ("deliveries", "duplicate", "the same in every column as another row"): 1,
        ("deliveries", "set aside", "the server did not send it: slow consumer"): 1,
        ("subscriptions", "used", ""): 2,
    }
    tables = read_traces(spark, tmp_path).tables
    published = tables["publications"]
    assert rows_of(published, "event", "publisher", "broker", "published_ns", "lifetime_ns") == {
        ("m1", "sensor", "west", EPOCH - 500_000, 5 * S),  # as its header says
        ("m2", "sensor", "west", EPOCH + S, 5 * S),
        ("m3", "client-6@west", "west", EPOCH + 2 * S, None),
    }
    contents = {row.event: json.loads(row.content) for row in published.collect()}
    assert contents["m1"] == {"level1": "ev", "level2": "temp", "levels": 2, "subject": "ev.temp"}
    hops = {(row.event, row.broker): row for row in tables["hops"].collect()}
    first = hops["m1", "west"]
    assert (first.came_from, first.arrived_ns, first.left_ns) == ("sensor", EPOCH, EPOCH + 30_000)
    assert (first.started_ns, first.sent_to) == (None, ["east"])
    assert hops["m1", "east"].came_from == "west"
    assert rows_of(tables["deliveries"], "event", "subscriber", "broker", "received_ns") == {
        ("m1", "log", "west", EPOCH + 30_000),
        ("m2", "log", "west", EPOCH + S + 30_000),
        ("m1", "alice", "east", EPOCH + 1_025_000),
    }
    filters = {row.subscriber: json.loads(row.filter) for row in tables["subscriptions"].collect()}
    assert filters == {
        "log": {"level1": "ev", "levels": {"at_least": 2}},
        "alice": {"level1": "ev", "levels": 2},
    }
    (place,) = (tmp_path / "quarantine").glob("lines-*")
    kept = pd.read_parquet(place).set_index("line")["reason"]
    assert kept.to_dict() == {6: nats.NO_ID, 7: nats.NO_INGRESS, 8: nats.NO_EVENT}


def test_spans_are_joined_by_links_then_parents_then_ids(spark):
    files = expand([str(SAMPLES / "otlp.jsonl")])
    reading = with_black_box(read_otlp(spark, files, kept), "cluster")
    reasons = Counter(row.reason for row in reading.records.collect())
    assert reasons == {None: 9, otlp.NOT_MESSAGING: 2, otlp.NO_EXPORT: 6}
    assert reading.passed_over == (otlp.NOT_MESSAGING,)
    deliveries = reading.tables["deliveries"].collect()
    unread = Counter(row.unreadable for row in deliveries)
    assert unread == {None: 5, otlp.NO_PUBLICATION: 2}
    assert {
        (row.event, row.subscriber, row.received_ns, row.broker)
        for row in deliveries
        if row.unreadable is None
    } == {
        (f"{'a' * 32}:{'1' * 16}", "billing", EPOCH + 5000, "cluster"),  # a link
        (f"{'b' * 32}:{'2' * 16}", "billing", EPOCH + 6500, "cluster"),  # a batch of two
        (f"{'c' * 32}:{'3' * 16}", "billing", EPOCH + 6500, "cluster"),
        (f"{'6' * 32}:{'6' * 16}", "ledger", EPOCH + 11_000, "cluster"),  # its parent
        (f"{'6' * 32}:{'6' * 16}", "audit", EPOCH + 12_000, "cluster"),  # the message id
    }
    published = {row.event[0]: row for row in reading.tables["publications"].collect()}
    assert set(published) == {"a", "b", "c", "6"}
    assert json.loads(published["a"].content) == {"topic": "orders"}
    assert (published["a"].publisher, published["a"].size_bytes) == ("shop", 120)
    assert (published["6"].publisher, published["6"].size_bytes) == ("till", 64)
    steps = reading.tables["subscriptions"].collect()
    assert {row.subscriber: json.loads(row.filter) for row in steps} == {
        "billing": {"topic": "orders"},
        "ledger": {"topic": "bills"},
        "audit": {"topic": "bills"},
    }
    (hop,) = reading.tables["hops"].where("came_from = 'till'").collect()
    assert hop.arrived_ns == hop.left_ns == EPOCH + 10_000


def test_up_and_down_events_become_changes(spark, tmp_path):
    files = expand([str(SAMPLES / "event_trace.tab")])
    found = import_traces(spark, lambda _: read_periods(spark, files, UP_AND_DOWN), files, tmp_path)
    states = read_traces(spark, tmp_path).tables["states"]
    assert rows_of(states, "component", "state", "at_ns") == {
        ("n1", "down", 100 * S),
        ("n1", "up", 160 * S),
        ("n1", "down", 400 * S),
        ("n1", "up", 430 * S),  # nothing follows, and the list goes on
        ("n2", "up", 100 * S),  # and was so when the list ended
        ("n3", "up", 300 * S),
        ("n3", "down", 500 * S),
    }
    assert found.window == TraceWindow(from_ns=100 * S, until_ns=1000 * S)
    assert account_of(found) == {
        ("periods", "used", ""): 5,
        ("periods", "set aside", periods.EMPTY): 1,
        ("periods", "set aside", periods.BACKWARDS): 1,
        ("periods", "set aside", periods.OVERLAPPING): 1,
        ("periods", "set aside", "its state is not up (1) or down (0)"): 1,
        ("states", "used", ""): 7,
    }


def test_a_window_that_is_there_stays_unless_publications_come(spark, tmp_path):
    def brought(name, read):
        files = expand([str(SAMPLES / name)])
        return import_traces(spark, lambda keep: read(files, keep), files, tmp_path)

    first = brought("nats.jsonl", lambda files, keep: read_nats(spark, files, keep)).window
    for name, kind in (("event_trace.tab", UP_AND_DOWN), ("connectivity.csv", CONNECTIVITY)):
        found = brought(name, lambda files, keep, kind=kind: read_periods(spark, files, kind))
        assert found.window == first == read_traces(spark, tmp_path).window
        assert any("kept as it is in traces.json" in note for note in found.notes)


def test_connectivity_tuples_become_sessions(spark):
    files = expand([str(SAMPLES / "connectivity.csv")])
    reading = read_periods(spark, files, CONNECTIVITY)
    assert rows_of(reading.tables["sessions"], "peer", "state", "at_ns", UNREADABLE) == {
        ("alice", "connected", EPOCH, None),
        ("alice", "disconnected", EPOCH + 180 * S, None),  # two tuples without a gap are one
        ("alice", "connected", EPOCH + 400 * S, None),
        ("bob", "connected", EPOCH, None),
    }
    reasons = [row.reason for row in reading.records.collect() if row.reason]
    assert reasons == ["connected is not a time in s or ISO 8601"]


def test_half_of_a_round_trip_is_the_way_there(spark, tmp_path):
    files = expand([str(SAMPLES / "probes.csv")])
    reading = read_probes(spark, files)
    rows = {(row.source, row.sent_ns): row for row in reading.tables["probes"].collect()}
    assert rows["hub", EPOCH + S // 4].received_ns == EPOCH + S // 4 + 6_250_000
    assert rows["hub", EPOCH + S + S // 4].received_ns is None
    assert rows["east", EPOCH + S // 2][UNREADABLE].startswith("rtt_ms is not a time")
    assert "half" in reading.notes[0]


def test_a_column_that_nobody_can_find_is_named(spark, tmp_path):
    (tmp_path / "x.csv").write_text("source,target,when,rtt\n")
    with pytest.raises(
        InvalidTracesError, match=r"none of the columns sent, time.*its columns: source"
    ):
        read_probes(spark, [str(tmp_path / "x.csv")])
