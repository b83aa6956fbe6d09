"""Routing, usage and whole workloads from traces: a few rows by hand, and a recorded system."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.routing import (
    ROUTING_STATISTICS,
    SOURCE_STATISTICS,
    routing_statistics,
    source_statistics,
)
from tidings.characterisation.usage import USAGE_STATISTICS, usage_statistics
from tidings.characterisation.workloads import (
    dissemination,
    measure_workload,
    workload_from_cells,
)
from tidings.errors import InvalidTracesError
from tidings.model.reading import loads
from tidings.model.system_workload import workload_of
from tidings.model.trace_tables import TRACE_TABLES
from tidings.prediction.operational.analysing import analyse
from tidings.simulation.recording import record, write_traces
from tidings.traces.reading import read_traces
from tidings.traces.window import TraceWindow

S = 1_000_000_000
WINDOW = TraceWindow(from_ns=0, until_ns=100 * S)
PUBLISHED = [
    ("e1", "p", "a", 1 * S, '{"kind":"x"}', None, 100),
    ("e2", "p", "a", 2 * S, '{"kind":"x"}', None, 300),
    ("e3", "p", "a", 3 * S, '{"kind":7}', None, None),
    ("e4", "p", "a", 4 * S, "{}", None, 10),
    ("e5", "p", "a", 200 * S, '{"kind":"x"}', None, 100),  # after the window
]
HOPS = [
    ("e1", "a", "p", 1 * S, 1 * S, 2 * S, ["c", "b"]),
    ("e1", "b", "a", 3 * S, 4 * S, 5 * S, []),
    ("e1", "c", "a", 3 * S, 3 * S, 6 * S, []),
    ("e2", "a", "p", 2 * S, 2 * S, 4 * S, ["b"]),
    ("e2", "b", "a", 5 * S, 5 * S, 6 * S, []),
    ("e3", "a", "p", 3 * S, 4 * S, 5 * S, ["b", "c"]),  # lost on its way to c
    ("e3", "b", "a", 12 * S, 12 * S, 13 * S, []),
    ("e4", "a", "p", 4 * S, 5 * S, 6 * S, []),
    ("e9", "a", "p", 4 * S, 5 * S, 6 * S, []),  # nobody published it
]
SAMPLES = [
    ("a", "cpu", 5 * S, 5 * S, 0.8),
    ("a", "cpu", 25 * S, 20 * S, 0.05),
    ("b", "cpu", 30 * S, 30 * S, 0.1),
]


def nullable(name):
    return TRACE_TABLES[name].ddl.replace(" NOT NULL", "")


@pytest.fixture(scope="module")
def tables(frame):
    rows = {"publications": PUBLISHED, "hops": HOPS, "utilisation": SAMPLES}
    return {name: frame(each, nullable(name)) for name, each in rows.items()}


def schema(ddl):
    return [tuple(part.split()) for part in ddl.split(", ")]


def found_schema(table):
    return [(field.name, field.dataType.simpleString()) for field in table.schema]


def test_routing_cells_are_counted_by_type_publisher_and_set(tables):
    cells = routing_statistics(tables["hops"], tables["publications"], WINDOW, "kind")
    assert found_schema(cells) == schema(ROUTING_STATISTICS)
    found = {
        (row["type"], row["broker"], row["came_from"], tuple(row["sent_to"])): row["rows"]
        for row in cells.groupBy("type", "broker", "came_from", "sent_to").sum("rows")
        .withColumnRenamed("sum(rows)", "rows").collect()
    }  # fmt: skip
    assert found == {
        ("x", "a", "p", ("b", "c")): 1,
        ("x", "a", "p", ("b",)): 1,
        ("x", "b", "a", ()): 2,
        ("x", "c", "a", ()): 1,
        ("7", "a", "p", ("b", "c")): 1,
        ("7", "b", "a", ()): 1,
        ("", "a", "p", ()): 1,
    }
    sources = source_statistics(tables["publications"], WINDOW, "kind")
    assert found_schema(sources) == schema(SOURCE_STATISTICS)
    assert sorted(map(tuple, sources.collect())) == [
        ("", "p", "a", 1, 1, 10.0),
        ("7", "p", "a", 1, 0, None),
        ("x", "p", "a", 2, 2, 400.0),
    ]


def test_a_workload_of_a_few_rows(tables):
    cells = routing_statistics(tables["hops"], tables["publications"], WINDOW, "kind").toPandas()
    sources = source_statistics(tables["publications"], WINDOW, "kind").toPandas()
    found = workload_from_cells(cells, sources, WINDOW.seconds)
    load = found.workload
    assert [node.name for node in load.nodes] == ["a", "b", "c"]
    x = next(flow for flow in load.flows if flow.event_type == "x")
    assert x.share == pytest.approx(0.5)
    arcs = {load.connection_name(at): share for at, share in x.forwarding}
    assert arcs == {"a--b": 1.0, "a--c": 0.5}
    lost = {load.connection_name(at): each.reliability for at, each in enumerate(load.connections)}
    assert lost == {"a--b": 1.0, "a--c": 0.5}  # of two sent, one came
    (joint,) = x.joint
    sets = {tuple(load.connection_name(at) for at in arcs): share for arcs, share in joint.sets}
    assert sets == {("a--b", "a--c"): 0.5, ("a--b",): 0.5}
    service = dict(x.services)
    assert service[0].mean_s == pytest.approx(1.5)
    assert load.sources[0].every.mean_s == pytest.approx(25.0)
    ways = {(row.type, row.broker): row.path for row in found.paths.itertuples()}
    assert ways["x", "c"] == ("a", "c")
    assert ways["", "a"] == ("a",)
    row = found.routing.set_index(["type", "broker", "next_broker"]).loc["x", "a", "c"]
    assert (row["visits"], row["forwarded"]) == (2, 1)
    assert row["probability_se"] == pytest.approx(np.sqrt(0.25 / 2))


def test_completions_fall_into_the_sample_they_end_in(tables):
    usage = usage_statistics(
        tables["utilisation"], tables["hops"], tables["publications"], WINDOW, "kind"
    )
    assert found_schema(usage) == schema(USAGE_STATISTICS)
    found = {
        (row["broker"], row["until_ns"] // S, row["type"]): row["completed"]
        for row in usage.collect()
        if row["completed"]
    }
    assert found == {
        ("a", 5, "x"): 2,  # left at 2 and 4
        ("a", 5, "7"): 1,  # left at 5, the very end
        ("a", 25, ""): 1,
        ("b", 30, "x"): 2,
        ("b", 30, "7"): 1,
    }


@pytest.mark.parametrize(("name", "exchanges"), [("routing", 3), ("sources", 1), ("usage", 5)])
def test_plans_run_no_python(spark, tables, capsys, name, exchanges):
    statistics = {
        "routing": lambda: routing_statistics(tables["hops"], tables["publications"], WINDOW),
        "sources": lambda: source_statistics(tables["publications"], WINDOW),
        "usage": lambda: usage_statistics(
            tables["utilisation"], tables["hops"], tables["publications"], WINDOW
        ),
    }
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        statistics[name]().explain()
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    plan = capsys.readouterr().out
    assert plan.count("Exchange ") == exchanges, plan
    assert "Python" not in plan


def test_what_traces_do_not_say_is_refused(tables):
    cells = routing_statistics(tables["hops"], tables["publications"], WINDOW).toPandas()
    sources = source_statistics(tables["publications"], WINDOW).toPandas()
    with pytest.raises(InvalidTracesError, match="record 'sent_to'"):
        workload_from_cells(cells.assign(sent_to=None), sources, 1.0)
    with pytest.raises(InvalidTracesError, match="no hop belongs"):
        workload_from_cells(cells.iloc[:0], sources, 1.0)
    with pytest.raises(InvalidTracesError, match="'started_ns'"):
        workload_from_cells(cells.assign(count=0), sources, 1.0)
    with pytest.raises(InvalidTracesError, match="straight from it"):
        workload_from_cells(cells.assign(came_from="b"), sources, 1.0)


def test_ways_that_meet_again_are_told_apart():
    edges = [("p", "a"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "a")]
    rows = [
        {"type": "", "publisher": "p", "came_from": s, "broker": t, "rows": 1} for s, t in edges
    ]
    found = dissemination(pd.DataFrame(rows))
    assert {row.path for row in found.itertuples() if row.broker == "d"} == {
        ("a", "b", "d"),
        ("a", "c", "d"),
    }


SYSTEM = """
tidings: 1
event_type: kind
brokers:
  hub: {service: {exponential: 2ms}}
  east: {service: {exponential: 4ms}}
  west: {service: {uniform: [0ms, 6ms]}}
links: [{between: [hub, east], reliability: 0.9}, {between: [hub, west]}]
publishers:
  p:
    at: hub
    every: {exponential: 10ms}
    content:
      - {p: 0.4, event: {kind: a, x: 1}}
      - {p: 0.3, event: {kind: a, x: 2}}
      - {p: 0.3, event: {kind: b, x: 1}}
  q: {at: west, every: {exponential: 20ms}, content: {event: {kind: a, x: 1}}}
subscribers:
  s: {at: east, wants: {x: {at_most: 2}}}
  t: {at: west, wants: {x: 2}}
"""


@pytest.mark.slow
@pytest.mark.statistical
def test_the_workload_of_a_recorded_system_is_that_of_the_system(spark, tmp_path):
    system = loads(SYSTEM)
    write_traces(record(system, seed=3, duration_s=200.0), tmp_path / "traces")
    found = measure_workload(read_traces(spark, tmp_path / "traces"), event_type="kind")
    truth = workload_of(system)
    exact = {
        (truth.name_of(flow), truth.connection_name(at)): share
        for flow in truth.flows
        for at, share in flow.forwarding
    }
    load = found.workload
    for row in found.routing.itertuples():
        share = exact[f"{row.type} of {row.publisher}", f"{row.broker}--{row.next_broker}"]
        assert abs(row.probability - share) <= 5 * row.probability_se + 1e-12
    assert len(found.routing) == len(exact)
    one, two = analyse(load), analyse(truth)
    busy, wanted = (each.centres.set_index("centre")["utilisation"] for each in (one, two))
    published = 150 * 200.0
    for name in ("hub", "east", "west"):  # counts and services: a few thousandths each
        assert busy[name] == pytest.approx(wanted[name], rel=5 * 2 / np.sqrt(published * 0.5))
    names = {load.nodes[joint.node].name for flow in load.flows for joint in flow.joint}
    assert names == {"hub"}
