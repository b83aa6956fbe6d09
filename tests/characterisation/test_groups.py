"""Consumer groups are learnt from traces that say who handled what, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyarrow.parquet import write_table

from tidings.characterisation.job import characterise
from tidings.model.parameter_values import parameter_values
from tidings.model.reading import dumps, loads
from tidings.model.trace_tables import TRACE_TABLES
from tidings.prediction.predict import predict
from tidings.simulation.recording import record
from tidings.traces.reading import Traces, read_rows
from tidings.traces.window import TraceWindow

# Loads: half .5, most .8, hot .72 at its hottest member, pushed and turns .7, own .3.
SYSTEM = """
tidings: 1
lifetime: 60ms
brokers: {hub: {service: {exponential: 1ms}}}
publishers:
  jobs: {at: hub, every: {exponential: 10ms}, content: {event: {topic: jobs}}}
subscribers:
  half:
    at: hub
    wants: {topic: jobs}
    processing: {exponential: 10ms}
    consumers: 2
  most:
    at: hub
    wants: {topic: jobs}
    consumers:
      members:
        fast: {processing: {exponential: 10ms}}
        slow: {processing: {exponential: 40ms}}
        mid: {processing: {exponential: 18ms}}
  hot:
    at: hub
    wants: {topic: jobs}
    processing: {lognormal: {mean: 12ms, scv: 0.5}}
    consumers: {count: 2, partitions: {count: 3, shares: [0.6, 0.1, 0.3], owners: ["1", "2", "2"]}}
  pushed:
    at: hub
    wants: {topic: jobs}
    processing: {exponential: 21ms}
    consumers: {count: 3, prefetch: 0, choose: random}
  turns:
    at: hub
    wants: {topic: jobs}
    processing: {exponential: 21ms}
    consumers: {count: 3, prefetch: 0}
  own:
    at: hub
    wants: {topic: jobs}
    link: {delay: 2ms}
    processing: {exponential: 3ms}
"""


def traces_of(spark, place, recorded, change=lambda name, frame: frame):
    """Read recorded traces from files, as traces are read."""
    tables = {}
    for name, table in recorded.tables.items():
        write_table(table, place / f"{name}.parquet")
        rows = change(name, spark.read.parquet(str(place / f"{name}.parquet")))
        tables[name] = read_rows(rows, TRACE_TABLES[name])
    window = TraceWindow(from_ns=recorded.from_ns, until_ns=recorded.until_ns)
    return Traces(tables=tables, window=window)


@pytest.fixture(scope="module")
def system():
    return loads(SYSTEM)


@pytest.fixture(scope="module")
def recorded(system):
    return record(system, seed=5, duration_s=600.0, probes_per_s=1.0)


@pytest.fixture(scope="module")
def learnt(spark, recorded, tmp_path_factory):
    return characterise(traces_of(spark, tmp_path_factory.mktemp("groups"), recorded))


def group(learnt, name):
    return group_of(learnt.system, name)


PATHS = {
    "subscribers.half.processing": 0.010,
    "subscribers.hot.processing": 0.012,
    "subscribers.hot.consumers.partitions.shares.0": 0.6,
    "subscribers.hot.consumers.partitions.shares.1": 0.1,
    "subscribers.hot.consumers.partitions.shares.2": 0.3,
    "subscribers.most.consumers.members.fast.processing": 0.010,
    "subscribers.most.consumers.members.mid.processing": 0.018,
    "subscribers.most.consumers.members.slow.processing": 0.040,
    "subscribers.own.processing": 0.003,
    "subscribers.pushed.processing": 0.021,
    "subscribers.turns.processing": 0.021,
}


@pytest.mark.statistical
def test_planted_times_and_shares_are_recovered(system, learnt):
    """Each within five of its standard errors, which say something; of alike members one."""
    found = learnt.parameters.set_index("path")
    planted = dict(parameter_values(system))
    of_groups = [path for path in found.index if ".processing" in path or ".consumers." in path]
    assert sorted(of_groups) == sorted(PATHS)
    for path, value in PATHS.items():
        assert planted[path] == pytest.approx(value)
        assert 0 < found.standard_error[path] < 0.05 * value
        assert abs(found.estimate[path] - value) < 5 * found.standard_error[path], path


def test_groups_are_as_they_were(system, learnt):
    for name in ("half", "pushed", "turns", "own"):
        assert group(learnt, name).consumers == group_of(system, name).consumers, name
    assert group(learnt, "hot").consumers.partitions.owners == ("1", "2", "2")
    assert [each.name for each in group(learnt, "most").consumers.members] == [
        "fast",
        "mid",
        "slow",
    ]
    assert group(learnt, "most").consumers.prefetch == 1
    assert group(learnt, "own").link.delay.mean_s == pytest.approx(0.002)


@pytest.mark.statistical
@pytest.mark.slow
def test_a_learnt_system_predicts_what_was_measured(learnt):
    predicted = predict(learnt.system).subscribers.set_index("subscriber")["on_time"]
    measured = learnt.measured.subscribers.set_index("subscriber")["on_time"]
    for name in ("half", "most", "hot", "own"):
        assert predicted[name] == pytest.approx(measured[name], abs=0.01), name


def test_what_traces_do_not_tell_is_said(learnt):
    said = [note for note in learnt.notes if note.startswith("consumers of")]
    assert any("ack_wait" in note and "--base" in note for note in said)
    assert any(note.startswith("consumers of hot:") and "rebalance" in note for note in said)
    assert not any("own" in note.split(":")[0] for note in said)


def test_settings_of_a_base_system_are_kept(spark, few_rows, system, tmp_path):
    short = record(system, seed=6, duration_s=20.0, warmup_s=5.0)
    settings = {"ack_wait_s": 9.0, "deliveries": 4, "prefetch": 7, "in_flight": 30}
    base = with_settings(system, "half", settings)
    # Of a group whose traces tell its partitions, what these leave nothing to do.
    asking = {"choose": "longest waiting", "refill": 1, "in_flight": 9}
    paused = replace(group_of(system, "hot").consumers.partitions, rebalance_s=3.0)
    base = with_settings(base, "hot", asking | {"partitions": paused})
    fitted = characterise(traces_of(spark, tmp_path, short), base=base)
    found = group(fitted, "half").consumers
    assert {name: getattr(found, name) for name in settings} == settings
    assert found.count == 2
    assert not any("half" in note.split(":")[0] for note in fitted.notes)
    hot = group(fitted, "hot").consumers
    assert (hot.choose, hot.refill, hot.in_flight) == ("round robin", None, 9)
    assert (hot.partitions.count, hot.partitions.rebalance_s) == (3, 0.0)
    assert loads(dumps(fitted.system)) == fitted.system


def with_settings(system, name, settings):
    """The system whose group of this name has these settings."""
    changed = tuple(
        replace(each, consumers=replace(each.consumers, **settings)) if each.name == name else each
        for each in system.subscribers
    )
    return replace(system, subscribers=changed)


def group_of(system, name):
    return next(each for each in system.subscribers if each.name == name)
