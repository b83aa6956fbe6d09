"""Slices of generated traces: the same rows wherever they run, with queues, refused by name."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tidings.errors import EngineError, InvalidInputError, UnstableError, UnsupportedError
from tidings.model.reading import loads
from tidings.simulation.network import compile_system
from tidings.sweeps import generating
from tidings.sweeps.dirt import Dirt
from tidings.sweeps.generating import (
    Generated,
    Planting,
    check_planting,
    generate_traces,
    slice_s,
    write_generated,
)
from tidings.traces.window import TraceWindow

TEXT = """
tidings: 1
lifetime: 100ms
brokers:
  hub: {service: {exponential: 8ms} HUB}
  east: {service: {gamma: {mean: 1ms, shape: 2}}}
links: [{between: [hub, east], delay: 2ms, reliability: 0.9}]
publishers:
  ticker: {at: hub, RATES, content: [{p: 0.5, event: {k: 1}}, {p: 0.5, event: {k: 2}}]}
subscribers:
  alice: {at: hub, wants: {k: 1} ALICE}
  bob: {at: east, wants: {}}
"""
POISSON = "every: {exponential: 10ms}"


def system(hub="", alice="", rates=POISSON):
    text = TEXT.replace(" HUB", hub).replace(" ALICE", alice).replace("RATES", rates)
    return loads(text)


SYSTEM = system()


@pytest.mark.slow
def test_tasks_make_the_rows_that_are_recorded_here(spark, few_rows, monkeypatch):
    monkeypatch.setattr(generating, "EVENTS_OF_A_SLICE", 100)
    planting = Planting(seed=3, probes=25)
    plan = generating.planned(compile_system(SYSTEM), 5.5, planting)
    slices = len(plan.edges_ns) - 1
    assert slices == 6
    assert sum(plan.run(number).probes for number in range(slices)) == 25
    made = generate_traces(spark, SYSTEM, 5.5, planting).tables
    for name in ("publications", "hops", "deliveries", "probes"):
        here = [
            row
            for number in range(slices)
            for _, rows in plan.run(number).rows([name])
            for row in rows.to_pylist()
        ]
        there = [row.asDict() for row in made[name].collect()]
        assert sorted(map(str, there)) == sorted(map(str, here))
        assert len(there) > 100
        assert made[name].coalesce(1).count() == len(here)
    events = made["publications"].toPandas()
    assert events["event"].is_unique
    begun_ns = plan.edges_ns[:-1]
    number = np.searchsorted(begun_ns, events["published_ns"] - generating.EPOCH_NS, "right") - 1
    told = [int(event[1:].split("-")[0]) if "-" in event else 0 for event in events["event"]]
    assert number.tolist() == told
    assert made["subscriptions"].count() == 2


@pytest.mark.statistical
def test_sojourns_at_an_mm1_broker_are_those_of_theory(monkeypatch):
    """At load ρ = 0.8 they are exponential, of mean 1/(μ − λ) = 40 ms, in every slice.

    Slices are independent, so that the error is that of their means. They last a second, no longer
    than a queue that begins empty takes to fill: without a warm-up sojourns are a sixth too short.
    Run here: that tasks of Spark make the same rows is the test above.
    """
    monkeypatch.setattr(generating, "EVENTS_OF_A_SLICE", 100)
    plan = generating.planned(compile_system(SYSTEM), 500.0, Planting(seed=2))
    slices = pd.DataFrame([sojourns_at_hub(plan, number) for number in range(1, 500)])
    assert len(plan.edges_ns) == 501
    for name, theory in (("sojourn_s", 0.04), ("long", math.exp(-1)), ("waiting", 0.8)):
        estimate = slices[name].sum() / slices["rows"].sum()
        off = slices[name] - estimate * slices["rows"]
        error = math.sqrt((off**2).sum()) / slices["rows"].sum()
        assert error < 0.06 * theory
        assert estimate == pytest.approx(theory, abs=5 * error), name


def sojourns_at_hub(plan, number):
    """Sums over the events of a slice: times at the hub, how many of them are long, and wait."""
    hops = pa.concat_tables(rows for _, rows in plan.run(number).rows(["hops"])).to_pandas()
    hub = hops[hops["broker"] == "hub"]
    sojourn_s = (hub["left_ns"] - hub["arrived_ns"]) / 1e9
    return {
        "rows": len(hub),
        "sojourn_s": sojourn_s.sum(),
        "long": (sojourn_s > 0.04).sum(),
        "waiting": (hub["started_ns"] > hub["arrived_ns"]).sum(),
    }


def test_what_stops_a_run_on_a_worker_is_said_in_a_line(spark, tmp_path):
    def overflows(batches):
        raise UnstableError("the limit of 9 copies")

    frame = spark.range(1).mapInArrow(overflows, "id bigint")
    made = Generated(tables={"hops": frame}, window=TraceWindow(from_ns=0, until_ns=1))
    with pytest.raises(EngineError, match=r"the table hops: the limit of 9 copies$"):
        write_generated(made, tmp_path / "traces")
    assert not (tmp_path / "traces").exists()


@pytest.mark.statistical
def test_sojourns_at_a_broker_of_two_servers_are_those_of_theory(monkeypatch):
    """M/M/2 at load ρ = 0.4: S/(1 − ρ²), with the service time S = 8 ms."""
    monkeypatch.setattr(generating, "EVENTS_OF_A_SLICE", 1_000)
    plan = generating.planned(compile_system(system(hub=", servers: 2")), 400.0, Planting(seed=5))
    means_s = []
    for number in range(len(plan.edges_ns) - 1):
        hops = pa.concat_tables(rows for _, rows in plan.run(number).rows(["hops"])).to_pandas()
        hub = hops[hops["broker"] == "hub"]
        means_s.append((hub["left_ns"] - hub["arrived_ns"]).mean() / 1e9)
    error_s = np.std(means_s, ddof=1) / math.sqrt(len(means_s))
    assert 5 * error_s < 0.05 * 0.008  # served by one they would take five times as long
    assert np.mean(means_s) == pytest.approx(0.008 / (1 - 0.4**2), abs=5 * error_s)


@pytest.mark.parametrize(
    ("changed", "wanted_s"),
    [
        ({}, 10_000.0),
        ({"hub": ", failure: {mtbf: 1h, mttr: 1min}"}, math.inf),
        ({"alice": ", stays: {exponential: 1h}, away: {exponential: 1h}"}, math.inf),
        ({"alice": ", connectivity: {on: {exponential: 1h}, off: {exponential: 1h}}"}, math.inf),
        ({"rates": "rates: {slot: 1h, per_s: [99, 101]}"}, 14_400.0),
        ({"rates": "rates: {slot: 1h, per_s: [99, 101], repeat: false}"}, math.inf),
    ],
)
def test_nothing_is_cut_that_would_show_it(changed, wanted_s):
    assert slice_s(compile_system(system(**changed))) == pytest.approx(wanted_s)


def test_what_is_not_planted_is_refused_by_name_before_spark_starts():
    with pytest.raises(UnsupportedError, match=r"several stations.*: brokers\.hub\.cpu"):
        check_planting(system(hub=", cpu: {service: 1ms}"), 60.0, Planting())
    with pytest.raises(UnstableError, match="broker 'hub'"):
        check_planting(system(rates="every: {exponential: 7ms}"), 60.0, Planting())
    with pytest.raises(InvalidInputError, match="names 'nobody'"):
        check_planting(SYSTEM, 60.0, Planting(ahead_s={"nobody": 1.0}))
    with pytest.raises(InvalidInputError, match="less than one event would be published"):
        check_planting(SYSTEM, 1e-3, Planting())
    with pytest.raises(InvalidInputError, match="at most 1 together"):
        Dirt(twice=0.5, nameless=0.6)
