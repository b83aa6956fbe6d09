"""A system under watch: killed, it counts what batch counts; changed, it says what changed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

import tidings as td
from jetstream import jetstream_server, publish
from killing import SECOND_NS, SYSTEM, killed_again_and_again, put, tables_of
from tidings.characterisation.count.store import load_partial, read_catalogue
from tidings.model.laws import Exponential
from tidings.watching.closing import Closing
from tidings.watching.rounds import WatchPlan, watching
from tidings.watching.staging import TIMES
from tidings.watching.state import read_state

# ---- kills ---------------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.timeout(2400)  # every kill starts Spark anew
@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("seed", [1, 2])  # with old parts dropped, and kept
def test_a_watch_killed_again_and_again_counts_what_batch_counts(spark, tmp_path, seed):
    """Rows come late and twice; parts are put together all the while."""
    run = killed_again_and_again(tmp_path, spark, 5, seed)
    assert run.wrong == []
    assert run.left == 0
    assert run.compared > 5000


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
        plan = WatchPlan(
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
