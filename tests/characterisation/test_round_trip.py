"""Every loss is learnt once, where it happened: a fitted system predicts what was measured."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from pyarrow.parquet import write_table

from tidings.characterisation.count.outages import outages
from tidings.characterisation.job import characterise
from tidings.model.behaviour import PERFECT
from tidings.model.reading import loads
from tidings.model.system import Link
from tidings.model.trace_tables import STATES, TRACE_TABLES
from tidings.prediction.predict import predict
from tidings.simulation.recording import record
from tidings.sweeps.dirt import Dirt, spoil
from tidings.traces.reading import Traces, read_rows
from tidings.traces.window import TraceWindow

S = 10**9
# Lossy links of clients of every kind, a lossy link between brokers, and one that fails.
SYSTEM = """
tidings: 1
lifetime: 2s
brokers:
  a: {service: {exponential: 4ms}}
  b: {service: {exponential: 3ms}}
  c: {service: {exponential: 5ms}}
links:
  - {between: [a, b], delay: {exponential: 10ms}, failure: {mtbf: 60s, mttr: 5s}}
  - {between: [b, c], delay: {exponential: 10ms}, reliability: 0.95}
recovery: {scheme: periodic}
publishers:
  p:
    at: a
    every: {exponential: 80ms}
    link: {reliability: 0.97, delay: 1ms}
    content: [{p: 0.6, event: {x: 1}}, {p: 0.4, event: {x: 2}}]
  q: {at: c, every: {exponential: 100ms}, content: {event: {x: 2}}}
subscribers:
  near: {at: a, wants: {}, link: {reliability: 0.9, delay: {exponential: 5ms}}}
  far: {at: c, wants: {x: 1}, link: {reliability: 0.8}}
  sound: {at: b, wants: {x: 2}}
  mobile:
    at: b
    wants: {}
    link: {reliability: 0.93}
    connectivity: {on: {exponential: 20s}, off: {exponential: 2s}}
"""
TRUTH = {
    "links.a--b.reliability": 1.0,
    "links.b--c.reliability": 0.95,
    "links.b--c.back.reliability": 0.95,
    "links.a--b.failure.mtbf": 60.0,
    "links.a--b.failure.mttr": 5.0,
    "publishers.p.link.reliability": 0.97,
    "publishers.q.link.reliability": 1.0,
    "subscribers.near.link.reliability": 0.9,
    "subscribers.far.link.reliability": 0.8,
    "subscribers.sound.link.reliability": 1.0,
    "subscribers.mobile.link.reliability": 0.93,
    "subscribers.mobile.connectivity.on": 20.0,
    "subscribers.mobile.connectivity.off": 2.0,
}


@pytest.fixture(scope="module")
def traces(spark, tmp_path_factory):
    recorded = record(loads(SYSTEM), seed=11, duration_s=4000.0, warmup_s=10.0, probes_per_s=1.0)
    folder = tmp_path_factory.mktemp("recorded")
    tables = {}
    for name, table in recorded.tables.items():
        # Read from files, as traces are: rows handed to Spark would stay in its memory.
        write_table(table, folder / f"{name}.parquet")
        rows = spark.read.parquet(str(folder / f"{name}.parquet"))
        tables[name] = read_rows(rows, TRACE_TABLES[name])
    window = TraceWindow(from_ns=recorded.from_ns, until_ns=recorded.until_ns)
    return Traces(tables=tables, window=window)


def without(traces, *names):
    tables = {name: each for name, each in traces.tables.items() if name not in names}
    return replace(traces, tables=tables)


def sound():
    """The system as a base that knows of no loss and no failure."""
    system = loads(SYSTEM)
    links = tuple(Link(between=each.between) for each in system.links)
    peers = {
        section: tuple(replace(each, link=PERFECT, connectivity=None) for each in members)
        for section, members in (
            ("publishers", system.publishers),
            ("subscribers", system.subscribers),
        )
    }
    return replace(system, links=links, **peers)


@pytest.fixture(scope="module", params=["probes", "hops"])
def learnt(request, traces):
    """From probes as well, and from what brokers and clients recorded alone."""
    chosen = traces if request.param == "probes" else without(traces, "probes")
    return characterise(chosen, base=sound())


@pytest.mark.slow
@pytest.mark.statistical
def test_every_planted_loss_is_learnt_where_it_happened(learnt):
    found = learnt.parameters.set_index("path")
    off = {}
    for path, truth in TRUTH.items():
        assert path in found.index
        off[path] = (found.loc[path, "estimate"] - truth) / found.loc[path, "standard_error"]
    assert max(map(abs, off.values())) < 5.0, off
    losses = found.loc[[path for path in TRUTH if path.endswith("reliability")]]
    assert losses["standard_error"].max() < 0.012


@pytest.mark.slow
@pytest.mark.statistical
def test_the_fitted_system_predicts_what_was_measured(learnt):
    measured, predicted = (
        each.subscribers.set_index("subscriber")
        for each in (learnt.measured, predict(learnt.system, seed=5))
    )
    predicted = predicted.loc[measured.index]
    assert (predicted["on_time"] - measured["on_time"]).abs().max() < 0.008
    assert (measured["delivered"] - 1.0).abs().min() > 0.01  # something to be learnt of everybody


@pytest.mark.slow
@pytest.mark.statistical
def test_rows_that_are_spoilt_are_no_losses_of_links(traces):
    dirt = Dirt(twice=0.02, nameless=0.02, impossible=0.02)
    tables = {name: spoil(rows, name, dirt, seed=5) for name, rows in traces.tables.items()}
    learnt = characterise(without(replace(traces, tables=tables), "probes"), base=sound())
    found = learnt.parameters.set_index("path")
    for path, truth in TRUTH.items():
        if path.startswith(("links", "publishers")) and path.endswith("reliability"):
            seen = truth * dirt.kept  # of what arrived
            error = (seen * (1.0 - seen) / found.loc[path, "count"]) ** 0.5 / dirt.kept
            assert abs(found.loc[path, "estimate"] - truth) < 5.0 * error, path
            assert 5.0 * error < 0.02  # without regard to spoilt rows it would be 0.04 off
    measured, predicted = (
        each.subscribers.set_index("subscriber")["on_time"]
        for each in (learnt.measured, predict(learnt.system, seed=5))
    )
    assert (predicted.loc[measured.index] - measured).abs().max() < 0.008


@pytest.mark.slow
@pytest.mark.statistical
def test_of_the_ends_alone_all_losses_are_those_of_subscribers(traces):
    """No broker says anything: whatever is missing was lost on the way to its subscriber."""
    tables = {**traces.tables, "hops": traces.tables["hops"].limit(0)}
    ends = without(replace(traces, tables=tables), "probes", "states", "sessions")
    fitted = characterise(ends, base=sound())
    measured = fitted.measured.subscribers.set_index("subscriber")["delivered"]
    for each in fitted.system.subscribers:
        assert each.link.reliability == pytest.approx(measured[each.name], rel=1e-12)
    predicted = predict(fitted.system).subscribers.set_index("subscriber")["delivered"]
    assert predicted.loc[measured.index].to_numpy() == pytest.approx(measured, abs=1e-6)


def test_outages_last_from_down_to_up_and_from_the_beginning_if_up_comes_first(frame):
    rows = [
        ("a", "up", 3 * S),  # so it was down until then
        ("a", "down", 5 * S),
        ("a", "down", 6 * S),  # nothing new
        ("a", "up", 8 * S),
        ("b", "up", 0),
        ("b", "down", 9 * S),
        ("c", "sideways", 4 * S),
    ]
    window = TraceWindow(from_ns=0, until_ns=10 * S)
    spans = outages(frame(rows, STATES.ddl), window).toPandas()
    seconds = pd.DataFrame(
        {"component": spans["component"], "down": spans["down_ns"] // S, "up": spans["up_ns"] // S}
    )
    assert sorted(seconds.itertuples(index=False, name=None)) == [
        ("a", 0, 3),
        ("a", 5, 6),
        ("a", 6, 8),
        ("b", 9, 10),
    ]
