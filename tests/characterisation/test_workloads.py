"""Routing, usage and whole workloads from traces: a few rows by hand, and a recorded system."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.count.routing import (
    ROUTING_STATISTICS,
    SOURCE_STATISTICS,
    USAGE_STATISTICS,
    client_statistics,
    link_statistics,
    routing_statistics,
    source_statistics,
    usage_statistics,
)
from tidings.characterisation.fit.resources import Bandwidths
from tidings.characterisation.fit.workloads import (
    Measuring,
    dissemination,
    workload_from_statistics,
)
from tidings.characterisation.job import collect_workload, measure_workload
from tidings.errors import InvalidInputError, InvalidTracesError
from tidings.model.laws import Exponential
from tidings.model.reading import loads
from tidings.model.system_workload import workload_of
from tidings.model.trace_tables import TRACE_TABLES
from tidings.model.workload import NO_TIME
from tidings.operational.analysing import analyse
from tidings.petri.cells import NetCells, flatten
from tidings.petri.generating import generate_net
from tidings.petri.reading import checked
from tidings.petri.traffic import solve_traffic
from tidings.simulation.recording import record, write_traces
from tidings.traces.reading import Traces, read_traces
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

DELIVERED = [("e1", "s", "b", 5 * S + S // 2), ("e1", "t", "c", 8 * S), ("e9", "t", "b", 9 * S)]


def nullable(name):
    return TRACE_TABLES[name].ddl.replace(" NOT NULL", "")


@pytest.fixture(scope="module")
def tables(frame):
    rows = {
        "publications": PUBLISHED,
        "hops": HOPS,
        "utilisation": SAMPLES,
        "deliveries": DELIVERED,
    }
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
    found = sources.groupBy("type").sum("rows", "total_s").collect()
    assert {row["type"]: tuple(row)[1:] for row in found} == {  # rows and megabytes
        "": pytest.approx((1, 10e-6)),
        "7": (1, None),
        "x": pytest.approx((2, 400e-6)),
    }


@pytest.fixture(scope="module")
def statistics(tables):
    """Everything that a workload is made from, collected once."""
    found = Traces(source="here", tables=tables, window=WINDOW)
    return collect_workload(found, Measuring(event_type="kind", services="utilisation"))


def test_copies_of_rows_change_nothing_and_are_told(tables, statistics):
    copied = {name: rows.union(rows).union(rows.limit(1)) for name, rows in tables.items()}
    found = collect_workload(
        Traces(source="here", tables=copied, window=WINDOW),
        Measuring(event_type="kind", services="utilisation"),
    )
    for name in ("cells", "sources", "links", "intervals", "clients", "usage"):
        both = (getattr(each, name).astype(str) for each in (found, statistics))
        once, again = (sorted(map(tuple, each.to_numpy())) for each in both)
        assert once == again, name
    assert (found.copies, statistics.copies) == (len(HOPS) + 1, 0)
    workload = workload_from_statistics(without_samples(found), Measuring(event_type="kind"))
    assert f"{len(HOPS) + 1} duplicate hops are left out" in workload.notes


def without_samples(statistics, **changed):
    return replace(statistics, usage=None, **changed)


def test_a_workload_of_a_few_rows(statistics):
    found = workload_from_statistics(without_samples(statistics), Measuring(event_type="kind"))
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
    delays = {load.connection_name(at): c.delay.mean_s for at, c in enumerate(load.connections)}
    assert delays == {"a--b": pytest.approx((1 + 1 + 7) / 3), "a--c": pytest.approx(1.0)}
    ways = {(row.type, row.broker): row.path for row in found.paths.itertuples()}
    assert ways["x", "c"] == ("a", "c")
    assert ways["", "a"] == ("a",)
    row = found.routing.set_index(["type", "broker", "next_broker"]).loc["x", "a", "c"]
    assert (row["visits"], row["forwarded"]) == (2, 1)
    assert row["probability_se"] == pytest.approx(np.sqrt(0.25 / 2))
    assert found.client_links_s == {"b": pytest.approx(0.5), "c": pytest.approx(2.0)}


def test_wires_are_busy_for_size_over_bandwidth(statistics):
    seen = without_samples(statistics, sources=statistics.sources.query("type != '7'"))
    seen = replace(seen, cells=seen.cells.query("type != '7'"))
    how = Measuring(bandwidths=Bandwidths(bytes_per_s={"all": 1000.0, "c--a": 100.0}))
    found = workload_from_statistics(seen, how)
    load = found.workload
    x = next(flow for flow in load.flows if flow.event_type == "x")
    times = {load.connection_name(at): law.mean_s for at, law in x.transfers}
    assert times == {"a--b": pytest.approx(0.2), "a--c": pytest.approx(2.0)}  # 100 and 300 bytes
    assert dict(x.transfers)[0].scv > 0.0
    queues = {load.centres[each.centre].name for each in load.connections}
    assert queues == {"a--b", "a--c"}
    assert all(each.delay.mean_s == 0.0 for each in load.connections)
    assert (
        sum("is ignored, because the link is modelled as a queue" in note for note in found.notes)
        == 2
    )
    shared = Measuring(bandwidths=Bandwidths(shared_bytes_per_s=1000.0))
    load = workload_from_statistics(seen, shared).workload
    assert len({each.centre for each in load.connections}) == 1
    nowhere = Measuring(bandwidths=Bandwidths(bytes_per_s={"a--d": 1.0}))
    with pytest.raises(
        InvalidInputError, match="no events crossed a link 'a--d'; wants one of a--b"
    ):
        workload_from_statistics(seen, nowhere)
    with pytest.raises(InvalidTracesError, match="messages of 7 of p have no size"):
        workload_from_statistics(without_samples(statistics), how)


def planted(rows, per_type):
    """Usage in which every resource had its service times in each of twelve intervals."""
    found = []
    for (broker, resource), services in per_type.items():
        for at in range(1, 13):
            done = {"x": 10 + 3 * at % 7, "7": 5 + at % 4, "": 2 + at % 3}
            busy = sum(done[kind] * s / 10 for kind, s in services.items())
            for kind in services:
                row = (broker, resource, 10 * S * at, 10 * S, busy, kind, done[kind])
                found.append(dict(zip(rows.columns, row, strict=True)))
    return pd.DataFrame(found)


def test_resources_are_told_by_the_utilisation_law(statistics):
    alike = {"x": 0.02, "7": 0.03, "": 0.01}
    usage = planted(
        statistics.usage,
        {
            ("a", "disk"): alike | {"x": 0.0},
            ("a", "cpu"): alike,
            ("b", "cpu"): {"x": 0.05, "7": 0.04},
        },
    )
    how = Measuring(event_type="kind", services="utilisation")
    found = workload_from_statistics(replace(statistics, usage=usage), how)
    load = found.workload
    assert [each.name for each in load.centres] == ["a cpu", "a disk", "b cpu"]
    assert [node.centres for node in load.nodes] == [(0, 1), (2,), ()]
    x = dict(next(flow for flow in load.flows if flow.event_type == "x").services)
    assert isinstance(x[0], Exponential)
    assert x[0].mean_s == pytest.approx(0.02, rel=1e-9)
    assert x[1] == NO_TIME
    assert any("no resource of c was sampled" in note for note in found.notes)
    assert len(found.services) == 8
    # What does not use the disk does not wait there either.
    at_disk = analyse(load).flows.query("centre == 'a disk'")
    assert sorted(at_disk["type"]) == ["", "7"]
    net = checked(generate_net(load))
    rates = solve_traffic(NetCells(net=flatten(net))).loads
    busy = analyse(load).centres.set_index("centre")["utilisation"]
    assert rates["a/disk"] == pytest.approx(busy["a disk"], rel=1e-12)
    assert rates["a/cpu"] == pytest.approx(busy["a cpu"], rel=1e-12)


def test_what_utilisation_cannot_tell_is_refused_all_at_once(statistics):
    together = planted(statistics.usage, {("a", "cpu"): {"x": 0.02}, ("b", "cpu"): {"x": 0.02}})
    doubled = together.assign(type="7", completed=2 * together["completed"])
    usage = pd.concat([together, doubled])
    how = Measuring(event_type="kind", services="utilisation")
    with pytest.raises(InvalidTracesError) as told:
        workload_from_statistics(replace(statistics, usage=usage), how)
    assert str(told.value).count("change together") == 2
    missing = planted(statistics.usage, {("b", "cpu"): {"x": 0.02}})
    with pytest.raises(InvalidTracesError, match="'b cpu' covers a time when 7 of p arrived at b"):
        workload_from_statistics(replace(statistics, usage=missing), how)


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


@pytest.mark.parametrize(
    ("name", "exchanges"),
    [("routing", 3), ("sources", 2), ("usage", 6), ("links", 4), ("clients", 4)],
)
def test_plans_run_no_python(spark, tables, capsys, name, exchanges):
    statistics = {
        "routing": lambda: routing_statistics(tables["hops"], tables["publications"], WINDOW),
        "sources": lambda: source_statistics(tables["publications"], WINDOW),
        "usage": lambda: usage_statistics(
            tables["utilisation"], tables["hops"], tables["publications"], WINDOW
        ),
        "links": lambda: link_statistics(tables["hops"], tables["publications"], WINDOW),
        "clients": lambda: client_statistics(tables["hops"], tables["deliveries"], WINDOW),
    }
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    try:
        statistics[name]().explain()
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    plan = capsys.readouterr().out
    assert plan.count("Exchange ") == exchanges, plan
    assert "Python" not in plan


def test_what_traces_do_not_say_is_refused(statistics):
    def refused(told, **changed):
        cells = statistics.cells.assign(**changed) if changed else statistics.cells.iloc[:0]
        with pytest.raises(InvalidTracesError, match=told):
            workload_from_statistics(without_samples(statistics, cells=cells), Measuring())

    refused("record 'sent_to'", sent_to=None)
    refused("no hop matches")
    refused("'started_ns'", count=0)
    refused("directly from it", came_from="b")
    with pytest.raises(InvalidInputError, match="services from 'guesses'"):
        Measuring(services="guesses")


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
    how = Measuring(event_type="kind")
    found = measure_workload(read_traces(spark, tmp_path / "traces"), how)
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
