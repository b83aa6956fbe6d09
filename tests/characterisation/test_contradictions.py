"""One bad row costs one row: the rest is fitted as if it were not there."""

from __future__ import annotations

import pandas as pd
import pytest

from tidings.characterisation.fit.contradictions import (
    CLOSES_A_CYCLE,
    NOT_A_CLIENT,
    UNREACHED,
)
from tidings.characterisation.job import characterise
from tidings.model.reading import dumps, loads
from tidings.model.trace_tables import TRACE_TABLES
from tidings.prediction.predict import predict
from tidings.simulation.recording import record
from tidings.traces.reading import Traces, read_rows
from tidings.traces.window import TraceWindow

# Somebody who publishes and subscribes under one name, as stream processors do.
SYSTEM = """
tidings: 1
lifetime: 1s
brokers:
  a: {service: {exponential: 4ms}}
  b: {service: {exponential: 3ms}}
  c: {service: {exponential: 5ms}}
links:
  - {between: [a, b], delay: {exponential: 10ms}}
  - {between: [b, c], delay: {exponential: 10ms}}
publishers:
  room--1: {at: a, every: {exponential: 100ms}, content: {event: {x: 1}}}
  average: {at: c, every: {exponential: 200ms}, content: {event: {x: 2}}}
subscribers:
  average: {at: c, wants: {x: 1}}
  screen: {at: b, wants: {x: 2}}
"""
S = 10**9


def spoilt(tables, from_ns):
    """The tables as rows, with one more for every way to contradict the others."""
    rows = {name: each.to_pylist() for name, each in tables.items()}
    known = {name: each[len(each) // 2] for name, each in rows.items() if each}
    at = from_ns + S
    event = {**known["publications"], "published_ns": at}
    rows["publications"] += [
        {**event, "event": "x1", "publisher": "b"},
        {**event, "event": "x2", "publisher": " "},
        {**event, "event": "x3", "broker": "a--b"},
        {**event, "event": "x5", "broker": "elsewhere"},
    ]
    rows["subscriptions"] += [
        {**known["subscriptions"], "subscriber": "screen", "broker": "nowhere", "at_ns": at},
        {**known["subscriptions"], "subscriber": "late", "broker": "nowhere", "at_ns": at},
    ]
    arrival = {"arrived_ns": at, "started_ns": at, "left_ns": at + 10, "sent_to": []}
    rows["hops"] += [{**known["hops"], **arrival, "event": "x4", "broker": "a", "came_from": "c"}]
    rows["states"] = [{"component": "ghost", "state": "down", "at_ns": at}]
    rows["sessions"] = [{"peer": "stranger", "state": "connected", "at_ns": at}]
    return rows


@pytest.fixture(scope="module")
def fits(frame, few_rows):
    """What clean traces tell, and those with the bad rows."""
    recorded = record(loads(SYSTEM), seed=3, duration_s=200.0)
    window = TraceWindow(from_ns=recorded.from_ns, until_ns=recorded.until_ns)
    clean = {name: each.to_pylist() for name, each in recorded.tables.items()}
    both = []
    for rows in (clean, spoilt(recorded.tables, recorded.from_ns)):
        tables = {
            name: read_rows(
                frame(
                    [tuple(row[c.name] for c in TRACE_TABLES[name].columns) for row in each],
                    TRACE_TABLES[name].ddl.replace(" NOT NULL", ""),
                ),
                TRACE_TABLES[name],
            )
            for name, each in rows.items()
            if each
        }
        both.append(characterise(Traces(tables=tables, window=window)))
    return both


@pytest.mark.slow
def test_the_rest_is_fitted_as_without_bad_rows(fits):
    clean, dirty = (each.parameters.set_index("path") for each in fits)
    assert set(clean.index) == set(dirty.index)
    shares = dirty["unit"] == "share"
    # A row set aside widens errors of rates and losses; estimates are as they were.
    pd.testing.assert_series_equal(
        dirty.loc[~shares, "estimate"], clean.loc[~shares, "estimate"], check_like=True, rtol=2e-3
    )
    assert [link.between for link in fits[1].system.links] == [("a", "b"), ("b", "c")]
    assert {each.name: each.at for each in fits[1].system.subscribers} == {
        "average": "c",
        "screen": "b",
    }


@pytest.mark.slow
def test_rows_that_others_contradict_are_counted_and_shown(fits):
    quality = fits[1].quality
    aside = quality[quality["fate"] == "set aside"]
    rows = {(row.table, row.reason): row.rows for row in aside.itertuples()}
    assert (
        rows.items()
        >= {
            ("publications", NOT_A_CLIENT): 1,
            ("publications", "no publisher"): 1,
            ("publications", "-- in the name of its broker"): 1,
            ("subscriptions", UNREACHED): 2,
            ("hops", CLOSES_A_CYCLE): 1,
        }.items()
    )
    clean = fits[0].quality.groupby("table")["rows"].sum()
    read = quality.groupby("table")["rows"].sum()
    assert (read - clean).loc[["publications", "subscriptions", "hops"]].tolist() == [4, 2, 1]
    said = "\n".join(fits[1].notes)
    assert f"2 rows contradict most others and were set aside, of nowhere: {UNREACHED}" in said
    assert said.count("1 publications name elsewhere as their broker") == 1
    assert said.count("ghost") == 1
    assert "1 peers of the table sessions neither publish nor subscribe" in said


def test_a_client_may_publish_and_subscribe_under_one_name():
    system = loads(SYSTEM)
    assert loads(dumps(system)) == system
    outcome = predict(system).subscribers.set_index("subscriber")["on_time"]
    assert (outcome > 0.99).all()
