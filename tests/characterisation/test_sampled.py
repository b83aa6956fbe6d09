"""Traces of a random share of all events give the rates of all."""

from __future__ import annotations

import json

import pytest

import tidings as td
from tidings.characterisation.count.adding import add_traces
from tidings.errors import InvalidTracesError
from tidings.traces.reading import Traces

SYSTEM = """
tidings: 1
lifetime: 100ms
brokers: {b: {service: {exponential: 8ms}}}
publishers: {p: {at: b, every: {rate: 40/s}, content: {event: {topic: a}}}}
subscribers: {s: {at: b, wants: {topic: a}}}
"""
SHARE = 0.25

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def traces(spark, few_rows, tmp_path_factory):
    """One event in four of a recording, and a manifest that says so."""
    folder = tmp_path_factory.mktemp("sampled") / "traces"
    td.write_traces(td.record(td.loads(SYSTEM), seed=2, duration_s=120.0), folder)
    whole = td.read_traces(spark, folder)
    kept = {
        name: frame.where("crc32(event) % 100 < 25") if "event" in frame.columns else frame
        for name, frame in whole.tables.items()
    }
    return whole, Traces(
        tables={name: frame.localCheckpoint() for name, frame in kept.items()},
        window=whole.window,
        sampled=SHARE,
    )


def test_rates_are_those_of_all(traces):
    whole, sampled = (td.characterise(each) for each in traces)
    all_rate, rate = (each.system.publishers[0].rate_per_s for each in (whole, sampled))
    assert rate == pytest.approx(all_rate, rel=0.1)
    unsure = dict(sampled.system.standard_errors)["publishers.p.rate"]
    assert unsure == pytest.approx(rate / (SHARE * 120 * 40) ** 0.5, rel=0.3)
    assert abs(rate - 40) < 4 * unsure
    wanted = sampled.measured.subscribers["wanted_per_s"].iloc[0]
    assert wanted == pytest.approx(rate, rel=0.01)
    assert sampled.measured.brokers["arrivals_per_s"].iloc[0] == pytest.approx(rate, rel=0.01)


def test_a_store_takes_traces_of_all_events_only(traces, tmp_path):
    with pytest.raises(InvalidTracesError, match=r"0\.25 of all events"):
        add_traces(traces[1], tmp_path / "store")


@pytest.mark.parametrize("share", [0, 1.5, "half", True, None])
def test_a_share_that_is_none_is_refused(spark, traces, tmp_path, share):
    folder = tmp_path / "traces"
    td.write_traces(td.record(td.loads(SYSTEM), seed=2, duration_s=2.0), folder)
    manifest = json.loads((folder / "traces.json").read_text())
    (folder / "traces.json").write_text(json.dumps({**manifest, "sampled": share}))
    with pytest.raises(InvalidTracesError, match="sampled"):
        td.read_traces(spark, folder)
