"""The same numbers on two cores, on a cluster that loses a worker, on one core behind Connect."""

from __future__ import annotations

import pandas as pd
import pytest

from spark_cluster import FEW_ROWS, cluster, connect_server
from tidings.characterisation.count.gathering import gather
from tidings.characterisation.count.store import load_partial
from tidings.characterisation.statistics import STATISTICS
from tidings.traces.reading import read_traces

# Gathers all statistics; a process that is named is killed while some tasks of a job are done and
# others under way, so that what it had shuffled has to be made again.
GATHER = f"""
import json, os, signal, sys, threading, time
from pathlib import Path
from tidings.characterisation.count.gathering import gather
from tidings.characterisation.count.store import save_partial
from tidings.traces.reading import read_traces
from tidings.traces.session import spark_session

master, folder, to, *pids = sys.argv[1:]
killed = []

def kill(tracker):
    until = time.monotonic() + 120
    while not killed and time.monotonic() < until:
        stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
        if any(each and each.numCompletedTasks and each.numActiveTasks for each in stages):
            for pid in pids:
                os.kill(int(pid), signal.SIGKILL)
                killed.append(pid)
        time.sleep(0.002)

def tell(stage):
    if stage == "publications" and pids:
        threading.Thread(target=kill, args=[spark.sparkContext.statusTracker()]).start()

settings = {FEW_ROWS}
with spark_session(master, memory="1g", small=True, settings=settings) as spark:
    traces = read_traces(spark, folder)
    save_partial(Path(to), gather(traces, traces.window, tell))
print(json.dumps(killed))
"""


@pytest.fixture(scope="module")
def truth(plant_traces):
    """Half a minute of traces."""
    return plant_traces(3, window_s=30.0, probes=1000)


@pytest.fixture(scope="module")
def folder(truth, write_traces, tmp_path_factory):
    """The traces in four files a table, in no order, so that there is something to share out."""
    return write_traces(truth, tmp_path_factory.mktemp("shuffled") / "traces", parts=4)


@pytest.fixture(scope="module")
def here(spark, truth, write_traces, tmp_path_factory):
    """Counted in this process, on two cores, from one file a table, in the order of time."""
    traces = read_traces(spark, write_traces(truth, tmp_path_factory.mktemp("whole") / "traces"))
    return gather(traces, traces.window, lambda stage: None)


def assert_equal(found, expected):
    """Every table of every statistic: whole numbers are equal, sums to 1e-12."""
    assert found.tables.keys() == expected.tables.keys()
    assert {"publications", "intervals", "hops", "sightings", "probes", "loss_runs", "clocks",
            "crossings", "deliveries"} <= found.tables.keys()  # fmt: skip
    for name, table in expected.tables.items():
        keys = [key for key in STATISTICS[name].keys or table if key in table]
        a, b = (_in_order(each, keys) for each in (found.tables[name], table))
        whole = [column for column in b if not column.endswith(("_s", "squares", "logs"))]
        pd.testing.assert_frame_equal(a[whole], b[whole], check_exact=True, check_dtype=False)
        pd.testing.assert_frame_equal(a, b, rtol=1e-12, atol=0.0, check_dtype=False)


def _in_order(table, keys):
    by = table[keys].astype("string").fillna("")
    return table.loc[by.sort_values(keys, kind="stable").index].reset_index(drop=True)


@pytest.mark.nightly  # the test below asks the same of one process elsewhere, which loses nothing
def test_a_cluster_that_loses_a_worker_counts_the_same(folder, here, tmp_path):
    with cluster(tmp_path / "cluster") as machines:
        victim = str(machines.worker_pids[0])
        killed = machines.run(GATHER, str(folder), str(tmp_path / "counted"), victim)
        assert killed == [victim]
        assert machines.workers == 1
    assert here.tables["hops"]["rows"].sum() > 5_000
    assert_equal(load_partial(tmp_path / "counted"), here)


@pytest.mark.slow
def test_one_core_behind_spark_connect_counts_the_same(folder, here, tmp_path):
    pytest.importorskip("grpc", reason="Spark Connect needs pip install 'tidings[connect]'")
    with connect_server(tmp_path / "server") as server:
        assert server.run(GATHER, str(folder), str(tmp_path / "counted")) == []
    assert_equal(load_partial(tmp_path / "counted"), here)
