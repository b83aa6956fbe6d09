"""A system under watch: killed, it counts what batch counts; changed, it says what changed."""

from __future__ import annotations

import json
import logging
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import tidings as td
from jetstream import jetstream_server, publish
from spark_cluster import AS_IT_STANDS
from tidings.characterisation import stored
from tidings.characterisation.count.compacting import compact
from tidings.characterisation.count.gathering import Decided, gather
from tidings.characterisation.count.store import load_partial, read_catalogue
from tidings.characterisation.statistics import STATISTICS, merge_of, merge_rows
from tidings.model.laws import Exponential
from tidings.traces.reading import read_traces
from tidings.watching import closing, rounds
from tidings.watching.closing import Closing
from tidings.watching.rounds import Plan, watching
from tidings.watching.staging import TIMES
from tidings.watching.state import read_state

SYSTEM = """
tidings: 1
lifetime: 500ms
brokers:
  hub: {service: {exponential: 5ms}}
  edge: {service: {exponential: 5ms}}
links:
  - {between: [hub, edge], delay: {exponential: 20ms}, reliability: 0.99}
publishers:
  ticker: {at: hub, every: {exponential: 20ms}, content: {event: {topic: stock}}}
  mast: {at: edge, every: {exponential: 40ms}, content: {event: {topic: wind}}}
subscribers:
  trader: {at: edge, wants: {topic: stock}, target: 0.9}
  sailor: {at: hub, wants: {topic: wind}, target: 0.9}
"""
SECOND_NS = 1_000_000_000


def tables_of(system, seconds, seed, after_s=0.0, name=""):
    """What is recorded of a system, so much later than it begins, events by names of their own."""
    recording = td.record(system, seed=seed, duration_s=seconds)
    tables = {}
    for table, rows in recording.tables.items():
        frame = rows.to_pandas()
        for column in frame.columns:
            if column.endswith("_ns") and column != "lifetime_ns":
                frame[column] += round(after_s * SECOND_NS)
        if "event" in frame:
            frame["event"] = name + frame["event"].astype(str)
        tables[table] = frame
    return tables, recording


def put(rows, source, table, name):
    """A file that appears whole."""
    (source / table).mkdir(parents=True, exist_ok=True)
    draft = source / table / f".{name}"
    rows.to_parquet(draft, index=False)
    os.rename(draft, source / table / f"{name}.parquet")


# ---- kills ---------------------------------------------------------------------------------------

PART_S, MARGIN_S, CHUNK_S, CHUNKS = 10, 2, 3.0, 18


def feed(tables, begin_ns, source, chunk, rng):
    """The rows of three seconds: some were held back, some come twice; publications come last."""
    for table in sorted(tables, key=lambda each: each == "publications"):
        rows = tables[table]
        number = ((rows[TIMES[table]] - begin_ns) // round(CHUNK_S * SECOND_NS)).clip(lower=0)
        held = rows["held"].to_numpy()
        mine = rows[np.where(held, number + 1, number) == chunk].drop(columns="held")
        if len(mine):
            put(mine, source, table, f"{chunk:03d}")
        if len(mine) and rng.random() < 0.3:
            put(mine.iloc[::3], source, table, f"{chunk:03d}-again")


def as_cells(name, table):
    """The sums of a statistic, by key without batches: parts have theirs where a kill left them."""
    drop = {"batch", "stretch"}
    keys = [key for key in STATISTICS[name].keys if key in table.columns and key not in drop]
    rows = table.drop(columns=[each for each in drop if each in table.columns])
    if name in ("publications", "bad_contents"):
        keys += [key for key in ("least_lifetime_ns", "most_lifetime_ns") if key in rows.columns]
    rows[keys] = rows[keys].astype(object).where(rows[keys].notna(), None).astype(str)
    values = [each for each in rows.columns if each not in keys]
    how = {each: merge_of(each) for each in values if not each.startswith(("first", "last"))}
    return rows.groupby(keys).agg(how).sort_index()


def assert_counted_alike(store, spark, source, late):
    """All that the store has counted is what batch counts of the rows that were not too late."""
    catalogue = read_catalogue(store)
    begin_ns, until_ns = catalogue.parts[0].from_ns, catalogue.parts[-1].until_ns
    assert all(
        a.until_ns == b.from_ns for a, b in zip(catalogue.parts, catalogue.parts[1:], strict=False)
    )
    together = stored._whole(store, catalogue)
    whole = source.parent / "whole"
    for table in (each.name for each in source.iterdir() if each.is_dir()):
        rows = pd.concat(
            [
                pd.read_parquet(file)
                for file in sorted((source / table).glob("*.parquet"))
                if file.stem != late
            ]
        )
        rows = rows[rows[TIMES[table]] < until_ns]
        put(rows, whole, table, "all")
    window = {"version": 1, "from_ns": begin_ns, "until_ns": until_ns}
    (whole / "traces.json").write_text(json.dumps(window))
    traces = read_traces(spark, whole)
    at_once = gather(traces, traces.window, lambda _: None, decided=Decided(every_link=True))
    compared = 0
    for name, each in STATISTICS.items():
        if not each.keys or each.stitched or name not in at_once.tables:
            continue
        a = as_cells(name, together.tables[name])
        b = as_cells(name, merge_rows(name, [at_once.tables[name]]))
        assert list(a.index) == list(b.index), name
        for column in b.columns:
            x, y = (one[column].astype(float).to_numpy() for one in (a, b))
            if column.endswith(("total_s", "squares", "logs")):
                assert x == pytest.approx(y, rel=1e-9, abs=1e-9, nan_ok=True), (name, column)
            else:
                np.testing.assert_array_equal(x, y, err_msg=f"{name} {column}")
        compared += 1
    assert compared >= 7


# What is there at some moments of a round, of which each kill waits for something new.
MOMENTS = {
    "a batch is written": lambda store: set(store.glob("watch/staged/.batch-*")),
    "a batch is in place": lambda store: set(store.glob("watch/staged/batch-*")),
    "a part is written": lambda store: set(store.glob("counted-*")),
    "the store has changed": lambda store: {
        each.stat().st_ino for each in store.glob("store.json")
    },
}
# Watches for ever, and predicts nothing. Parts are carried over and put together at once.
WATCH = f"""
import sys
from functools import partial
from pathlib import Path
import tidings as td
from tidings.errors import EngineError
from tidings.traces.session import spark_session
from tidings.watching import closing, rounds

def unknown(*_, **__):
    raise EngineError("not asked for")

rounds.predict = rounds.explain = unknown
closing.compact = partial(closing.compact, sizes=((20 * 10**9, 10**9),), most_uncarried=1)
source, store, system = map(Path, sys.argv[1:])
known = td.load(system)
plan = rounds.Plan(
    closing=closing.Closing(
        source=source, store=store, base=known, period_s={PART_S}, margin_s={MARGIN_S}
    ),
    system=known, name="killed", folder=store / "watch", every_s=1.0,
)
with spark_session("local[2]", small=True) as spark:
    for name, value in {AS_IT_STANDS!r}.items():
        spark.conf.set(name, value)
    with rounds.watching(plan, spark, lambda _: None, lambda _: None) as watcher:
        rounds.watch(watcher, for_s=None, once=False, show=lambda _: None)
"""
KILLS, ENOUGH_S = 10, 900.0  # at most so many, and none is begun after so long


def killed_at(command, store, found, after_s):
    """Watch, and kill all of it so long after something new is there; whether it came to that."""
    before = found(store)
    process = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)
    try:
        patience = time.monotonic() + 200.0
        while not found(store) - before and time.monotonic() < patience:
            assert process.poll() is None
            time.sleep(0.01)
        came = bool(found(store) - before)
        time.sleep(after_s)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=60)
    return came


@pytest.mark.nightly
@pytest.mark.timeout(2400)  # every kill starts Spark anew
@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("seed", [1])
def test_a_watch_killed_again_and_again_counts_what_batch_counts(
    spark, tmp_path, monkeypatch, seed
):
    """Rows come late and twice; parts are put together all the while."""
    rng = random.Random(seed)
    (tmp_path / "system.yaml").write_text(SYSTEM)
    system, source, store = td.loads(SYSTEM), tmp_path / "in", tmp_path / "store"
    source.mkdir()
    tables, recording = tables_of(system, CHUNK_S * CHUNKS, seed)
    some = np.random.default_rng(seed)
    tables = {
        name: rows.assign(held=(some.random(len(rows)) < 0.2) & (name != "publications"))
        for name, rows in tables.items()
    }
    command = [sys.executable, "-c", WATCH, *map(str, (source, store, tmp_path / "system.yaml"))]
    reached, begun = [], time.monotonic()
    for chunk in range(CHUNKS + 1):
        feed(tables, recording.from_ns, source, chunk, rng)
        if chunk % 2 == 0 and len(reached) < KILLS and time.monotonic() - begun < ENOUGH_S:
            moment = list(MOMENTS)[len(reached) % len(MOMENTS)]
            came = killed_at(command, store, MOMENTS[moment], rng.uniform(0.0, 0.3))
            reached.append(moment if came else "")
    assert len(set(reached) - {""}) >= 3
    monkeypatch.setattr(
        closing, "compact", partial(compact, sizes=((20 * SECOND_NS, SECOND_NS),), most_uncarried=1)
    )
    monkeypatch.setattr(rounds, "predict", lambda *_, **__: None)
    plan = Plan(
        closing=Closing(
            source=source, store=store, base=system, period_s=PART_S, margin_s=MARGIN_S
        ),
        system=system,
        name="killed",
        folder=store / "watch",
    )
    # Rows of the first period, long after it was counted.
    first = {name: tables[name].drop(columns="held").head(5) for name in ("hops", "publications")}
    with watching(plan, spark, lambda _: None, lambda _: None) as watcher:
        watcher.round()
        for name, rows in first.items():
            put(rows, source, name, "late")
        state = watcher.round()
    assert state.health.late_rows == 10
    assert read_catalogue(store).carried is not None  # of what was counted before the last part
    assert_counted_alike(store, spark, source, "late")
    logging.getLogger(__name__).info("%d kills, at: %s", len(reached), reached)


# ---- sources -------------------------------------------------------------------------------------

TIDINGS = [sys.executable, "-c", "from tidings.cli.main import main; main()"]


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_a_stream_is_watched_by_one_command(tmp_path):
    """Twice: the second time it goes on where it was."""
    (tmp_path / "system.yaml").write_text(SYSTEM)
    store = tmp_path / "store"
    tables, recording = tables_of(td.loads(SYSTEM), 25.0, 1)
    half_ns = recording.from_ns + 13 * SECOND_NS
    (tmp_path / "nats").mkdir()
    with jetstream_server(tmp_path / "nats") as url:
        options = ["--part", "10s", "--margin", "2s", "--once", "--master", "local[2]"]
        given = ["--system", str(tmp_path / "system.yaml"), "--store", str(store), *options]
        rows = []
        for later in (False, True):
            messages = [
                (name, frame.iloc[begin : begin + 400].to_json(orient="records", lines=True))
                for name, whole in sorted(tables.items())
                for frame in [whole[(whole[TIMES[name]] >= half_ns) == later]]
                for begin in range(0, len(frame), 400)
            ]
            publish(url, "TRACES", *[(name, text.encode()) for name, text in messages])
            command = [*TIDINGS, "watch", f"{url}/TRACES", *given]
            subprocess.run(command, check=True, timeout=400)
            rows.append(read_state(store / "watch").health.rows)
    assert sum(rows) == sum(map(len, tables.values()))
    parts = read_catalogue(store).parts
    assert len(parts) == 2
    hops = [load_partial(store / part.folder).tables["hops"] for part in parts]
    counted = sum(each.query("statistic == 'quality'")["rows"].sum() for each in hops)
    assert counted == (tables["hops"]["arrived_ns"] < parts[-1].until_ns).sum()


# ---- changes -------------------------------------------------------------------------------------

# Steady until a period has just ended, so that the part that is judged is of the changed system.
STEADY_S, CHANGED_S = 122.5, 60.0


def slower(system, kind):
    """The system after one change."""
    ticker, mast = system.publishers
    hub, edge = system.brokers
    (link,) = system.links
    match kind:
        case "rate":
            faster = replace(ticker, every=Exponential(mean_s=ticker.every.mean_s / 1.5))
            return replace(system, publishers=(faster, mast))
        case "service":
            slow = replace(edge, service=replace(edge.service, law=Exponential(mean_s=0.0065)))
            return replace(system, brokers=(hub, slow))
        case "delay":
            there = replace(link.there, delay=Exponential(mean_s=0.04))
            return replace(system, links=(replace(link, there=there),))
        case "loss":
            there = replace(link.there, reliability=0.95)
            return replace(system, links=(replace(link, there=there),))
    return system


@pytest.fixture(scope="module")
def steady(spark, few_rows, tmp_path_factory):
    """A system watched for two minutes in which nothing changes; and whoever looks again."""
    place = tmp_path_factory.mktemp("steady")
    system, source = td.loads(SYSTEM), place / "in"
    tables, _ = tables_of(system, STEADY_S, 1)
    for table, rows in tables.items():
        put(rows, source, table, "steady")

    def look(store):
        told = []
        plan = Plan(
            closing=Closing(source=source, store=store, base=system, period_s=20.0, margin_s=2.0),
            system=system,
            name="steady",
            folder=store / "watch",
        )
        with watching(plan, spark, told.append, lambda _: None) as watcher:
            state = watcher.round()
        return state, told

    state, told = look(place / "store")
    assert told == []
    assert state.standings[0].measured is not None
    return system, source, place / "store", look


EXPECTED = {
    "nothing": set(),
    "rate": {"publisher ticker publishes more often"},
    "service": {"broker edge is slower"},
    "delay": {"link hub--edge is slower"},
    "loss": {"link hub--edge loses more"},
    "consumer gone": {"subscriber receives next to nothing any more"},
}


@pytest.mark.nightly
@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("kind", EXPECTED)
def test_what_has_changed_is_named_and_nothing_else(steady, tmp_path, kind):
    system, source, store, look = steady
    mine = shutil.copytree(store, tmp_path / "store")
    tables, _ = tables_of(slower(system, kind), CHANGED_S, 2, STEADY_S, "later-")
    if kind == "consumer gone":
        rows = tables["deliveries"]
        tables["deliveries"] = rows[rows["subscriber"] != "sailor"]
    try:
        for table, rows in tables.items():
            if table != "subscriptions":
                put(rows, source, table, kind)
        state, told = look(mine)
    finally:
        for table in tables:
            (source / table / f"{kind}.parquet").unlink(missing_ok=True)
    changed = [each for each in told if each.kind == "changed"]
    assert {each.what for each in changed} == EXPECTED[kind]
    for each in changed:
        assert each.sentence()
        assert each.since_ns > 0
    factor = {"rate": 1.5, "service": 1.3, "delay": 2.0}.get(kind)
    if factor is not None:
        assert changed[0].size == pytest.approx(factor, rel=0.1)
        assert changed[0].do.startswith("best single change")
        assert state.system_file.endswith("fitted.yaml")
    if kind == "nothing":
        assert told == []
