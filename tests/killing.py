"""Kill a watch at random moments, and hold what its store counted against batch, number by number.

``python tests/killing.py`` does it fifty times. Rows come late and twice while the process starts,
takes in, counts, puts parts together, drops old ones and judges; at any of these moments it and its
Java are killed. Every other kill comes whenever it comes; as most of a process's life is starting
and counting, the others wait for a moment that is soon over. Some rows come later than the margin:
these must be set aside, and nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession

import tidings as td
from spark_cluster import AS_IT_STANDS
from systems.two_ways import SYSTEM
from tidings.characterisation import stored
from tidings.characterisation.count.gathering import Decided, gather
from tidings.characterisation.count.store import read_catalogue
from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.fit.queues import DROPPED, REDELIVERED
from tidings.characterisation.statistics import STATISTICS, merge_of, merge_rows
from tidings.model.trace_tables import LEVELS
from tidings.traces.reading import Traces, read_traces
from tidings.traces.session import spark_session
from tidings.watching.staging import TIMES
from tidings.watching.state import read_state

SECOND_NS = 1_000_000_000
PART_S, MARGIN_S, CHUNK_S = 10, 2, 3.0
KEEP_S = 30.0  # in every other run
FIRST_CHUNKS = 5  # there before the first process: enough for a part
TOO_LATE = "long-ago-"  # how the names of events begin whose rows come again and again, and late
PATIENCE_S = 300.0  # for a process that is left alone
# What every other process is killed at, as it says itself, and how long after at most: all of this
# takes tenths of a second.
AIMS = (
    "putting parts together", "dropping old parts", "judging", "exchanging the catalogue",
    "carrying over what still stands", "measuring",
)  # fmt: skip
AFTER_AIM_S = 0.1
AIMED_CHUNKS = 4  # that a process has before it, so that a part is surely due

# Watches for ever or once, and says what it does. Parts are carried over and put together at once.
WATCH = f"""
print("starting Python", flush=True)
import sys
from functools import partial
from pathlib import Path
import tidings as td
from tidings.traces.session import spark_session
from tidings.watching import closing, rounds

closing.compact = partial(closing.compact, sizes=((20 * 10**9, 10**9),), most_uncarried=1)
closing.LEAST_KEPT_S = 0.0
source, store, system = map(Path, sys.argv[1:4])
known = td.load(system)
plan = rounds.WatchPlan(
    closing=closing.Closing(
        source=source, store=store, base=known, period_s={PART_S}, margin_s={MARGIN_S},
        keep_s=float(sys.argv[4]) or None,
    ),
    system=known, name="killed", folder=store / "watch", every_s=1.0, most_files=8,
)
say = partial(print, flush=True)
say("starting Spark")
with spark_session("local[2]", small=True) as spark:
    for name, value in {AS_IT_STANDS!r}.items():
        spark.conf.set(name, value)
    with rounds.watching(plan, spark, lambda _: None, say) as watcher:
        rounds.watch(watcher, for_s=None, once=sys.argv[5] == "once",
                     show=lambda state: say(state.health.problem or "waiting"))
"""


# ---- traffic -------------------------------------------------------------------------------------


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


def polls_of(seconds: float, from_ns: int, seed: int) -> pd.DataFrame:
    """A queue's counters, polled twice a second: redelivered, dropped, reset now and then."""
    rng, rows = np.random.default_rng(seed), []
    entered = again = expired = 0
    for poll in range(round(2 * seconds)):
        if rng.random() < 0.02:
            entered = again = expired = 0
        entered += int(rng.integers(5, 15))
        again, expired = again + int(rng.integers(0, 3)), expired + int(rng.random() < 0.4)
        at_ns = from_ns + poll * SECOND_NS // 2
        dropped = f'{{"expired":{expired}}}' if expired else None
        rows.append(("sailor", None, at_ns, entered, entered, None, again, dropped))
    columns = [each.name for each in LEVELS.columns]
    kinds = {"part": "string", "dropped": "string", "in_flight": "Int64"}
    return pd.DataFrame(rows, columns=columns).astype(kinds)


def put(rows: pd.DataFrame, source: Path, table: str, name: str) -> None:
    """A file that appears whole."""
    (source / table).mkdir(parents=True, exist_ok=True)
    draft = source / table / f".{name}"
    rows.to_parquet(draft, index=False)
    os.rename(draft, source / table / f"{name}.parquet")


@dataclass(slots=True, kw_only=True)
class Traffic:
    """Rows that come in chunk by chunk: some are held back, some come twice, some far too late."""

    tables: Mapping[str, pd.DataFrame]
    begin_ns: int
    source: Path
    rng: random.Random
    chunk: int = 0

    @classmethod
    def recorded(cls, chunks: int, seed: int, source: Path) -> Traffic:
        """Traffic of so many chunks; what is held back is never a publication."""
        tables, recording = tables_of(td.loads(SYSTEM), CHUNK_S * chunks, seed)
        tables["levels"] = polls_of(CHUNK_S * chunks, recording.from_ns, seed)
        some = np.random.default_rng(seed)
        held = {
            name: rows.assign(held=(some.random(len(rows)) < 0.2) & (name != "publications"))
            for name, rows in tables.items()
        }
        return cls(tables=held, begin_ns=recording.from_ns, source=source, rng=random.Random(seed))

    def more(self) -> None:
        """Put the next chunk there; its publications come last, so that nothing is too late."""
        chunk, late = self.chunk, self.rng.random() < 0.5
        for table in sorted(self.tables, key=lambda each: each == "publications"):
            rows = self.tables[table]
            number = ((rows[TIMES[table]] - self.begin_ns) // round(CHUNK_S * SECOND_NS)).clip(0)
            mine = rows[np.where(rows["held"], number + 1, number) == chunk].drop(columns="held")
            if len(mine) and self.rng.random() < 0.3:
                put(mine.iloc[::3], self.source, table, f"{chunk:03d}-again")
            if late and "event" in rows:
                old = rows.head(5).drop(columns="held")
                old = old.assign(event=f"{TOO_LATE}{chunk}-" + old["event"])
                put(old, self.source, table, f"{chunk:03d}-late")
            if len(mine):
                put(mine, self.source, table, f"{chunk:03d}")
        self.chunk += 1


# ---- processes -----------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class Run:
    """What became of one watch: where it was killed, and what of its store differs from batch."""

    killed: list[str] = field(default_factory=list)  # what it did at each kill
    left: int = 0  # processes that outlived a kill
    compared: int = 0  # numbers
    wrong: list[str] = field(default_factory=list)
    late_rows: int = 0
    parts: int = 0
    life_s: float = 0.0  # of a process, until it waits and a little longer


def killed_again_and_again(place: Path, spark: SparkSession, kills: int, seed: int) -> Run:
    """Watch, kill so many times, let it come to its end, and compare."""
    source, store, system = place / "in", place / "store", place / "system.yaml"
    source.mkdir()
    system.write_text(SYSTEM, encoding="utf-8")
    keep_s = KEEP_S if seed % 2 else 0.0
    traffic = Traffic.recorded(FIRST_CHUNKS + AIMED_CHUNKS * kills + 1, seed, source)
    rng, run = random.Random(f"kills {seed}"), Run()
    given = [*map(str, (source, store, system)), str(keep_s)]
    for _ in range(FIRST_CHUNKS):
        traffic.more()
    begun = time.monotonic()
    with _watch([*given, "ever"], place / "said") as process:
        _until(process, place / "said", "waiting")
        run.life_s = 1.2 * (time.monotonic() - begun)
    aims = itertools.islice(itertools.cycle(AIMS), seed, None)
    for number in range(kills):
        aim = next(aims) if number % 2 else None
        for _ in range(AIMED_CHUNKS if aim else 1):
            traffic.more()
        with _watch([*given, "ever"], place / "said") as process:
            if aim is None:
                kill_s = rng.uniform(0.0, run.life_s)
                more_s = rng.uniform(0.0, kill_s)
                time.sleep(more_s)
                traffic.more()
                time.sleep(kill_s - more_s)
            else:
                _until(process, place / "said", aim, "waiting")
                time.sleep(rng.uniform(0.0, AFTER_AIM_S))
            if process.poll() is not None:
                run.wrong.append(f"ended by itself with {process.returncode}")
        run.left += _alive(process.pid)
        run.killed.append(_last(place / "said"))
        print(f"kill {number + 1} of run {seed}, aimed at {aim}: {run.killed[-1]}", flush=True)
    traffic.more()
    for _ in range(2):  # the second time there is nothing left to do
        with _watch([*given, "once"], place / "said") as process:
            run.wrong += [f"ended with {code}"] if (code := process.wait(PATIENCE_S)) else []
    compare(store, spark, source, run)
    return run


class _watch:  # noqa: N801 - used as a verb
    """A process that watches, killed at the end of the block with all that it started."""

    def __init__(self, arguments: Sequence[str], said: Path) -> None:
        with said.open("wb") as out, said.with_suffix(".errors").open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", WATCH, *arguments],
                start_new_session=True,
                stdout=out,
                stderr=errors,
            )

    def __enter__(self) -> subprocess.Popen[bytes]:
        return self.process

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=60)


def _until(process: subprocess.Popen[bytes], said: Path, *lines: str) -> None:
    """Wait until a process says one of some lines."""
    patience = time.monotonic() + PATIENCE_S
    while not set(lines) & set(said.read_text().splitlines()):
        if process.poll() is not None or time.monotonic() > patience:
            raise RuntimeError(
                f"got none of {lines} but: {said.with_suffix('.errors').read_text()}"
            )
        time.sleep(0.01)


def _last(said: Path) -> str:
    lines = said.read_text().splitlines()
    return lines[-1] if lines else "before Python"


def _alive(session: int) -> int:
    """How many processes of a session still run, a moment later: Java takes one to be gone."""
    for _ in range(50):
        alive = sum(_session(each) == session for each in Path("/proc").iterdir())
        if not alive:
            return 0
        time.sleep(0.1)
    return alive


def _session(process: Path) -> int | None:
    try:
        fields = (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[3])


# ---- comparing -----------------------------------------------------------------------------------


def compare(store: Path, spark: SparkSession, source: Path, run: Run) -> None:
    """Hold all that a store has counted against batch on the rows that were not set aside."""
    catalogue = read_catalogue(store)
    assert catalogue is not None
    parts, run.parts = catalogue.parts, len(catalogue.parts)
    run.wrong += [
        f"a gap after {a.until_ns}" for a, b in itertools.pairwise(parts) if a.until_ns != b.from_ns
    ]
    traces = _in_time(store, spark, source, run)
    at_once = gather(traces, traces.window, lambda _: None, decided=Decided(every_link=True))
    together = stored._whole(store, catalogue)
    names = [
        name
        for name, each in STATISTICS.items()
        if each.keys and not each.stitched and name in at_once.tables
    ]
    if len(names) < 7:
        run.wrong.append(f"only {names} were counted")
    for name in names:
        a = _cells(name, together.tables[name])
        b = _cells(name, merge_rows(name, [at_once.tables[name]]))
        _compare(name, a, b, run)
    base = td.loads(SYSTEM)
    found = stored.characterise_store(store, base)
    for a, b in zip(_estimates(found), _estimates(td.characterise(traces, base=base)), strict=True):
        _compare("estimates", a, b, run)


def _in_time(store: Path, spark: SparkSession, source: Path, run: Run) -> Traces:
    """The rows that the store should have counted: not set aside as late, of the time it has."""
    catalogue, state = read_catalogue(store), read_state(store / "watch")
    assert catalogue is not None
    assert state is not None
    begin_ns, until_ns = catalogue.parts[0].from_ns, catalogue.parts[-1].until_ns
    whole = source.parent / "whole"
    for folder in sorted(each for each in source.iterdir() if each.is_dir()):
        table = folder.name
        rows = pd.concat([pd.read_parquet(file) for file in sorted(folder.glob("*.parquet"))])
        files = sorted((store / "watch" / "staged").glob(f"batch-*/late/{table}/*/*.parquet"))
        late = pd.concat([rows.head(0), *map(pd.read_parquet, files)])[list(rows.columns)]
        run.late_rows += len(late)
        if "event" in rows:  # of an event that came too late, rows of other tables may be in time
            which = ["event", TIMES[table]]
            in_time = not late["event"].astype(str).str.startswith(TOO_LATE).all()
            if in_time or late.duplicated(which).any():
                run.wrong.append(f"{table}: rows were set aside that came in time, or twice")
            index = pd.MultiIndex.from_frame(rows[which])
            rows = rows[~index.isin(pd.MultiIndex.from_frame(late[which]))]
        elif len(late):
            run.wrong.append(f"{table}: rows were set aside that came in time")
        earliest_ns = 0 if table == "subscriptions" else begin_ns
        put(rows[rows[TIMES[table]].between(earliest_ns, until_ns - 1)], whole, table, "all")
    if run.late_rows != state.health.late_rows:
        run.wrong.append(f"{state.health.late_rows} late rows, but {run.late_rows} are kept")
    window = {"version": 1, "from_ns": begin_ns, "until_ns": until_ns}
    (whole / "traces.json").write_text(json.dumps(window), encoding="utf-8")
    return read_traces(spark, whole)


def _cells(name: str, table: pd.DataFrame) -> pd.DataFrame:
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


def _estimates(found: Characterisation) -> Iterator[pd.DataFrame]:
    """What is not counted by batches: parameters, and what became of everybody's events.

    Of counters of queues a store knows what adds up: how many were redelivered and dropped.
    """
    rows = found.parameters
    adds_up = rows["path"].str.endswith((f".{REDELIVERED}", f".{DROPPED}"))
    rows = rows[(rows["source"] != "levels") | adds_up]
    yield rows.set_index("path")[["estimate", "count"]].sort_index()
    columns = ["events", "delivered", "on_time"]
    yield found.measured.subscribers.set_index("subscriber")[columns].sort_index()


def _compare(name: str, found: pd.DataFrame, whole: pd.DataFrame, run: Run) -> None:
    """Whole numbers are equal; sums of seconds, which add in another order, to rounding."""
    if list(found.index) != list(whole.index):
        run.wrong.append(f"{name}: other keys: {set(found.index) ^ set(whole.index)}")
        return
    for column in whole.columns:
        a, b = (each[column].astype(float).to_numpy() for each in (found, whole))
        rounding = 1e-9 * column.endswith(("total_s", "squares", "logs", "estimate"))
        same = np.isclose(a, b, rtol=rounding, atol=rounding, equal_nan=True)
        run.compared += len(same)
        run.wrong += [
            f"{name} {column} {whole.index[n]}: {a[n]!r}, in batch {b[n]!r}"
            for n in np.flatnonzero(~same)
        ]


def main() -> None:
    """Print what every run did, how many kills there were, and how many runs differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--kills", type=int, default=10, help="in every run")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    moments: Counter[str] = Counter()
    runs = []
    with spark_session("local[2]", small=True) as spark:
        for seed in range(args.seed, args.seed + args.runs):
            with tempfile.TemporaryDirectory() as place:
                run = killed_again_and_again(Path(place), spark, args.kills, seed)
            runs.append(run)
            moments.update(run.killed)
            print(
                f"run {seed}: {len(run.killed)} kills within {run.life_s:.0f} s, {run.parts} parts"
                f" kept, {run.late_rows} late rows set aside, {run.compared} numbers compared,"
                f" {len(run.wrong)} differ",
                *run.wrong[:10],
                sep="\n  ",
                flush=True,
            )
    for moment, times in moments.most_common():
        print(f"{times:4d} killed at: {moment}")
    failed = sum(bool(run.wrong or run.left) for run in runs)
    print(
        f"{sum(moments.values())} kills in {len(runs)} runs; {failed} runs differ from batch; "
        f"{sum(run.compared for run in runs)} numbers compared; "
        f"{sum(run.left for run in runs)} processes outlived a kill"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
