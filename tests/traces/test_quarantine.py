from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.trace_tables import TRACE_TABLES
from tidings.traces.quarantine import REASON, with_reasons

# table: good rows, and bad rows with the reason
CASES = {
    "publications": (
        [("e", "p", None, 0, '{"a":1}', None, None), ("e", "p", "b", 5, "{", 0, 0)],
        [
            (("", "p", "b", 5, "{}", 1, 1), "no event"),
            (("e", None, "b", 5, "{}", 1, 1), "no publisher"),
            (("e", "p", "b", None, "{}", 1, 1), "no published_ns"),
            (("e", "p", "b", -5, "{}", 1, 1), "published_ns is negative"),
            (("e", "p", "b", 5, None, 1, 1), "no content"),
            (("e", "p", "b", 5, "{}", -1, 1), "lifetime_ns is negative"),
            (("e", "p", "b", 5, "{}", 1, -(2**63)), "size_bytes is negative"),
        ],
    ),
    "hops": (
        [("e", "b", "p", 1, 1, 1, None), ("e", "b", "p", 1, None, 1, ["c"])],
        [
            (("e", "b", "", 1, 2, 3, None), "no came_from"),
            (("e", "b", "p", 3, 2, 4, None), "it started before it arrived"),
            (("e", "b", "p", 1, 4, 3, None), "it left before it started"),
            (("e", "b", "p", 5, None, 3, None), "it left before it arrived"),
            (("e", "b", "p", -5, None, 3, None), "arrived_ns is negative"),
        ],
    ),
    "deliveries": ([("e", "s", None, 0)], [(("e", "s", "b", None), "no received_ns")]),
    "probes": (
        [("a", "b", 1, 1), ("a", "b", 1, None)],
        [(("a", "b", 2, 1), "it was received before it was sent")],
    ),
    "states": ([("a--b", "up", 0)], [(("a", "broken", 1), "state is not up or down")]),
    "sessions": (
        [("p", "connected", 0)],
        [(("p", "up", 1), "state is not connected or disconnected")],
    ),
    "subscriptions": (
        [("s1", "s", "b", "subscribe", 0, "{}"), ("s1", "s", "b", "learnt", 0, None)],
        [
            (("s1", "s", "b", "subscribe", 0, None), "it subscribes without a filter"),
            (("s1", "s", "b", "nonsense", 0, None), "action is unknown"),
        ],
    ),
    "levels": (
        [("q", None, 0, 5, 5, None, None, None), ("q", "0", 0, 5, 3, 1, 0, '{"expired":"1"}')],
        [
            (("q", None, 0, 5, 6, None, None, None), "more are done than have entered"),
            (("q", None, 0, 5, 5, None, None, "[]"), "dropped is not an object in JSON"),
            (("q", None, 0, 5, -1, None, None, None), "done is negative"),
        ],
    ),
    "histograms": (
        [("s", "delay", None, 0, 0.5, 3), ("b", "service", "x", 0, float("inf"), 3)],
        [
            (("s", "other", None, 0, 0.5, 3), "what is not delay or service"),
            (("s", "delay", None, 0, -0.5, 3), "up_to_s is negative"),
        ],
    ),
    "utilisation": ([("b", "cpu", 9, 5, 1.0)], [(("b", "cpu", 9, 5, 1.1), "busy is not a share")]),
}


def nullable(table: str) -> str:
    return TRACE_TABLES[table].ddl.replace(" NOT NULL", "")


@pytest.mark.parametrize("table", TRACE_TABLES)
def test_every_kind_of_bad_row_is_set_aside_with_its_reason(frame, table):
    good, bad = CASES[table]
    given = frame(good + [row for row, _ in bad], nullable(table))
    reasons = [row[REASON] for row in with_reasons(given, TRACE_TABLES[table]).collect()]
    assert reasons == [None] * len(good) + [text for _, text in bad]


def test_nothing_of_it_runs_python(spark, capsys):
    frame = spark.createDataFrame([], nullable("publications"))
    with_reasons(frame, TRACE_TABLES["publications"]).explain()
    plan = capsys.readouterr().out
    assert "Exchange" not in plan
    assert "Python" not in plan


times = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(0, 10))
names = st.one_of(st.none(), st.sampled_from(["", "a", "b"]))


@given(rows=st.lists(st.tuples(names, names, names, times, times, times, st.none()), max_size=8))
@settings(deadline=None, max_examples=15)
def test_whatever_rows_hold_those_without_a_reason_can_be_true(frame, rows):
    found = with_reasons(frame(rows, nullable("hops")), TRACE_TABLES["hops"]).collect()
    assert len(found) == len(rows)
    for row in found:
        if row[REASON] is None:
            assert row.event
            assert row.broker
            assert row.came_from
            assert 0 <= row.arrived_ns <= row.left_ns
            assert row.started_ns is None or row.arrived_ns <= row.started_ns <= row.left_ns
        else:
            assert row[REASON].startswith(("no ", "it ")) or row[REASON].endswith("negative")
