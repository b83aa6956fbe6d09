"""Traces of a random share of all events give the rates of all."""

from __future__ import annotations

import json
from dataclasses import replace

import pandas as pd
import pytest
from pyspark.sql import functions as F

import tidings as td
from tidings.characterisation.count.adding import add_traces
from tidings.characterisation.count.store import read_catalogue
from tidings.characterisation.stored import characterise_store
from tidings.errors import InvalidTracesError
from tidings.traces.reading import Traces
from tidings.traces.window import TraceWindow
from tidings.watching.closing import Closing
from tidings.watching.rounds import WatchPlan, watching
from tidings.watching.staging import TIMES

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


def halves(traces):
    """The same traces as two parts, by when events were published, crossed brokers and came."""
    middle_ns = (traces.window.from_ns + traces.window.until_ns) // 2
    ends = ((traces.window.from_ns, middle_ns), (middle_ns, traces.window.until_ns))
    for begin_ns, end_ns in ends:
        within = {
            name: frame.where(F.col(TIMES[name]).between(begin_ns, end_ns - 1))
            for name, frame in traces.tables.items()
            if name != "subscriptions" or begin_ns == traces.window.from_ns
        }
        window = TraceWindow(from_ns=begin_ns, until_ns=end_ns)
        yield replace(traces, tables=within, window=window)


def test_a_store_gives_the_numbers_of_batch(traces, tmp_path):
    """Part by part, and put together: rates are those of all, counts of what was recorded."""
    whole = td.characterise(traces[1])
    for half in halves(traces[1]):
        add_traces(half, tmp_path / "store", margin_s=1.0)
    found = characterise_store(tmp_path / "store")
    assert any(note.startswith("0.25 of all events") for note in found.notes)
    wanted = whole.parameters.set_index("path")["estimate"].sort_index()
    rows = found.parameters.set_index("path")["estimate"].sort_index()
    pd.testing.assert_series_equal(rows, wanted, rtol=1e-9)
    for name in ("subscribers", "pairs", "brokers", "links", "delays"):
        seen, batch = getattr(found.measured, name), getattr(whole.measured, name)
        exact = [each for each in batch.columns if not each.endswith("_se")]  # of other batches
        pd.testing.assert_frame_equal(seen[exact], batch[exact], rtol=1e-9)


def test_a_store_has_one_share(traces, tmp_path):
    """Parts of another are refused; alone, a part is replaced by one of another share."""
    store = tmp_path / "store"
    first, second = halves(traces[1])
    add_traces(first, store, margin_s=1.0)
    add_traces(replace(first, sampled=0.5), store)
    assert read_catalogue(store).sampled == 0.5
    with pytest.raises(InvalidTracesError, match=r"0\.25 of all events .* 0\.5 of them in the"):
        add_traces(second, store)
    add_traces(replace(second, sampled=0.5), store)
    with pytest.raises(InvalidTracesError, match="wants traces of the same share, or a new store"):
        add_traces(first, store)


def test_a_watch_gives_the_numbers_of_batch_and_no_alarm(spark, traces, tmp_path):
    """Another share than the store's is refused before Spark is started."""
    source, store = tmp_path / "in", tmp_path / "store"
    begin_ns = traces[1].window.from_ns
    for name, frame in traces[1].tables.items():
        frame.write.parquet(str(source / name))
    manifest = {"version": 1, "from_ns": begin_ns, "until_ns": begin_ns + 1, "sampled": SHARE}
    (source / "traces.json").write_text(json.dumps(manifest))
    system, told = td.loads(SYSTEM), []
    closing = Closing(source=source, store=store, base=system, period_s=30.0, margin_s=1.0)
    plan = WatchPlan(closing=closing, system=system, name="a share", folder=store / "watch")
    with watching(plan, spark, told.append, lambda _: None) as watcher:
        state = watcher.round()
    assert told == []
    until_ns = read_catalogue(store).parts[-1].until_ns
    counted = replace(traces[1], window=TraceWindow(from_ns=begin_ns, until_ns=until_ns))
    rows = [
        each.parameters.set_index("path")["estimate"].sort_index()
        for each in (characterise_store(store, system), td.characterise(counted, base=system))
    ]
    pd.testing.assert_series_equal(*rows, rtol=1e-9)
    assert state.standings[1].wanted == pytest.approx(40 * 90, rel=0.1)  # of all events
    (source / "traces.json").write_text(json.dumps({**manifest, "sampled": 0.5}))
    with pytest.raises(InvalidTracesError, match=r"0\.5 of all events .* 0\.25 of them in the"):
        plan.check()


@pytest.mark.parametrize("share", [0, 1.5, "half", True, None])
def test_a_share_that_is_none_is_refused(spark, traces, tmp_path, share):
    folder = tmp_path / "traces"
    td.write_traces(td.record(td.loads(SYSTEM), seed=2, duration_s=2.0), folder)
    manifest = json.loads((folder / "traces.json").read_text())
    (folder / "traces.json").write_text(json.dumps({**manifest, "sampled": share}))
    with pytest.raises(InvalidTracesError, match="sampled"):
        td.read_traces(spark, folder)
