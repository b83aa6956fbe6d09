"""The same numbers streamed on a cluster, added part by part, and counted at once."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from pyspark.sql import functions as F

import tidings as td
from killing import (
    DROPPED,
    MARGIN_S,
    REDELIVERED,
    SECOND_NS,
    SYSTEM,
    Run,
    compare,
    polls_of,
    put,
    tables_of,
)
from spark_cluster import FEW_ROWS, cluster
from tidings.characterisation.count.adding import add_traces
from tidings.characterisation.count.store import read_catalogue
from tidings.characterisation.stored import characterise_store
from tidings.traces.reading import read_traces
from tidings.watching.staging import TIMES

SECONDS, FIRST_S = 25.0, 13.0
# Looks twice; what comes between the two lies ready beside the source.
WATCH = f"""
import json, os, sys
from pathlib import Path
import tidings as td
from tidings.traces.session import spark_session
from tidings.watching import rounds
from tidings.watching.closing import Closing

master, source, more, store, system = sys.argv[1], *map(Path, sys.argv[2:])
known = td.load(system)
plan = rounds.WatchPlan(
    closing=Closing(source=source, store=store, base=known, period_s=10.0, margin_s={MARGIN_S}),
    system=known, name="clustered", folder=store / "watch",
)
with spark_session(master, memory="1g", small=True, settings={FEW_ROWS}) as spark:
    with rounds.watching(plan, spark, lambda _: None, lambda _: None) as watcher:
        told = [watcher.round().health.problem]
        for file in more.rglob("*.parquet"):
            os.rename(file, source / file.relative_to(more))
        told.append(watcher.round().health.problem)
print(json.dumps(told))
"""


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.usefixtures("few_rows")
def test_streamed_on_a_cluster_added_and_at_once_are_the_same(spark, tmp_path):
    source, more, store = (tmp_path / name for name in ("in", "more", "store"))
    (tmp_path / "system.yaml").write_text(SYSTEM)
    tables, recording = tables_of(td.loads(SYSTEM), SECONDS, 1)
    tables["levels"] = polls_of(SECONDS, recording.from_ns, 1)
    for table, rows in tables.items():
        later = rows[TIMES[table]] >= recording.from_ns + FIRST_S * SECOND_NS
        put(rows[~later], source, table, "first")
        put(rows[later], more, table, "second")
    with cluster(tmp_path / "cluster") as machines:
        told = machines.run(WATCH, *map(str, (source, more, store, tmp_path / "system.yaml")))
    assert told == ["", ""]
    streamed = Run()
    compare(store, spark, source, streamed)
    assert streamed.wrong == []
    assert streamed.compared > 1000

    whole, added = tmp_path / "whole", tmp_path / "added"
    traces = read_traces(spark, whole)  # as compared: the rows of the time that the store has
    for number, part in enumerate(read_catalogue(store).parts):
        begin_ns = part.from_ns if number else 0  # who had subscribed before it began
        own = {
            name: rows.where(F.col(TIMES[name]).between(begin_ns, part.until_ns - 1))
            for name, rows in traces.tables.items()
        }
        add_traces(
            replace(traces, tables=own, window=part.window),
            added,
            base=td.loads(SYSTEM),
            margin_s=MARGIN_S,
        )
    (tmp_path / "added" / "watch").mkdir()
    shutil.copy(store / "watch" / "now.json", added / "watch" / "now.json")
    shutil.rmtree(whole)
    by_parts = Run()
    compare(added, spark, source, by_parts)
    assert by_parts.wrong == []
    assert by_parts.compared == streamed.compared
    paths = set(characterise_store(store, td.loads(SYSTEM)).parameters["path"])
    assert {f"queues.sailor.{REDELIVERED}", f"queues.sailor.expired.{DROPPED}"} <= paths
