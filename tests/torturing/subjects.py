"""What is disturbed: commands, the inputs they need, and how their results are read as numbers."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import yaml

from systems.two_ways import SYSTEM

Words = tuple[str, ...]
Result = dict[str, float]  # numbers by what they are of; empty where there is nothing yet
TIDINGS = ("-m", "torturing.stepping")
UNFINISHED: Result = {"marked as not finished": 1.0}
# To compile a query takes longer than to run it as it stands, where rows are a handful.
_QUICKLY = ("--spark-conf", "spark.sql.codegen.wholeStage=false",
            "--spark-conf", "spark.sql.codegen.factoryMode=NO_CODEGEN",
            "--spark-conf", "spark.sql.shuffle.partitions=2")  # fmt: skip
SPARK = (*TIDINGS, *_QUICKLY)
LOCAL = ("--master", "local[2]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Commands that are run one after the other, and may be disturbed at any of them."""

    what: str
    prepare: Callable[[Path], None]  # makes the inputs, once
    steps: tuple[Words, ...]
    read: Callable[[Path], Result]  # of the place; raises what a user would see
    faults: tuple[str, ...]
    spark: bool = False
    only_new: bool = False  # refuses to write where something is
    varying: bool = False  # how many files there are depends on when they were begun
    own_temporary: bool = False  # removes its temporary files even if it is killed
    rivals: tuple[int, int] | None = None  # the steps that two writers do; None: the same one
    again: tuple[tuple[Words, int], ...] = ()  # old rows once more: a command, its exit code


# ---- inputs --------------------------------------------------------------------------------------


def with_system(inputs: Path) -> None:
    (inputs / "system.yaml").write_text(SYSTEM, encoding="utf-8")
    (inputs / "hasty.yaml").write_text(SYSTEM.replace("500ms", "50ms"), encoding="utf-8")


def with_days(inputs: Path) -> None:
    """Two days of ten seconds, one after the other; and one that lies across both."""
    import tidings as td
    from tidings.simulation.recording import write_traces

    system = td.loads(SYSTEM)
    seconds = 10
    for day, name in enumerate(("monday", "tuesday", "across")):
        recording = td.record(system, seed=day + 1, duration_s=seconds)
        write_traces(recording, inputs / name)
        shift = round((day % 2 or day * 0.25) * seconds * 1e9)
        _shift(inputs / name, shift, f"{name}-")


def _shift(folder: Path, by_ns: int, named: str) -> None:
    """Let traces begin later, with events of other names."""
    import pandas as pd

    for file in folder.glob("*/*.parquet"):
        schema = pq.read_schema(file)
        rows = pd.read_parquet(file)
        for column in rows.columns:
            if column.endswith("_ns") and column != "lifetime_ns":
                rows[column] += by_ns
        if "event" in rows:
            rows["event"] = named + rows["event"].astype(str)
        import pyarrow as pa

        pq.write_table(pa.Table.from_pandas(rows, schema=schema, preserve_index=False), file)
    manifest = folder / "traces.json"
    told = json.loads(manifest.read_text())
    for name in ("from_ns", "until_ns"):
        told[name] += by_ns
    manifest.write_text(json.dumps(told))


MAPPING = """
mapping: 1
tables:
  publications: {where: {kind: publish}, event: message, publisher: client, published_ns: {column: at_ms, unit: ms},
                 lifetime_ns: {constant: 5, unit: s}, content: {attributes: {topic: topic}}}
  deliveries: {where: {kind: deliver}, event: message, subscriber: client, received_ns: {column: at_ms, unit: ms}}
  subscriptions: {where: {kind: deliver}, subscription: client, subscriber: client, broker: {constant: kafka},
                  action: {constant: subscribe}, at_ns: {constant: 0}, filter: {attributes: {topic: topic}}}
"""  # noqa: E501


def with_logs(inputs: Path) -> None:
    """A log of a morning, one of the whole day, and a folder in which the morning lies twice."""
    (inputs / "log.yaml").write_text(MAPPING)
    head, begin_ms = "kind,message,client,topic,at_ms", 1_700_000_000_000
    lines = []
    for n in range(200):
        at_ms = begin_ms + 40 * n
        lines.append(f"publish,orders-{n},shop,orders,{at_ms}")
        lines.append(f"deliver,orders-{n},billing,orders,{at_ms + 3 + n % 7}")
        if n % 50 == 7:
            lines.append("publish,x")  # is set aside
    for name, some in (("morning", lines[:200]), ("day", lines)):
        text = "\n".join([head, *some]) + "\n"
        (inputs / f"{name}.csv").write_text(text)
    (inputs / "twice").mkdir()
    for name in ("day", "morning"):  # and the older rows come once more
        shutil.copy(inputs / f"{name}.csv", inputs / "twice")


def with_watched(inputs: Path) -> None:
    """What a watch wrote."""
    from watched_folders import made_state, write_state, write_system

    names = [f"client {n}" for n in range(5)]
    folder = inputs / "watched"
    folder.mkdir()
    write_state(folder, made_state(names, system_file=write_system(folder, names)))


def with_line(inputs: Path) -> None:
    from real_servers import LINE

    (inputs / "line.yaml").write_text(LINE)


# ---- results -------------------------------------------------------------------------------------


def numbers_of_tables(folder: Path) -> Result:
    """Tell of each column of the Parquet tables below a folder its rows and sums."""
    found: Result = {}
    for place in sorted({file.parent for file in folder.rglob("*.parquet")}):
        name = str(place.relative_to(folder))
        if name.startswith("."):
            continue
        table = pq.read_table(place, partitioning=None)
        found[f"{name}: rows"] = table.num_rows
        for column in table.column_names:
            found.update(_sum(f"{name}.{column}", table[column].to_pylist()))
    return found


def _sum(name: str, values: list[Any]) -> Iterator[tuple[str, float]]:
    there = [each for each in values if each is not None]
    if there and all(isinstance(each, int | float) for each in there):
        whole = all(isinstance(each, int) for each in there)
        yield name, sum(there) if whole else float(np.sum(np.sort(there)))
    else:
        yield name, sum(zlib.crc32(repr(each).encode()) for each in there)


def numbers_of_document(name: str, document: Any) -> Iterator[tuple[str, float]]:
    """Tell all numbers of a document by where they stand, and what its texts are."""
    if isinstance(document, Mapping):
        for key, each in document.items():
            if key != "cpu_s":  # how long it took is never twice the same
                yield from numbers_of_document(f"{name}.{key}", each)
    elif isinstance(document, list):
        for number, each in enumerate(document):
            yield from numbers_of_document(f"{name}.{number}", each)
    elif isinstance(document, int | float):
        yield name, document
    elif document is not None:
        yield name, zlib.crc32(str(document).encode())


def files(place: Path) -> Result:
    """Read whatever tables and documents there are; a hidden one is of nobody's business."""
    found: Result = {}
    for path in sorted((place / "out").iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            found |= {f"{path.name}/{key}": each for key, each in numbers_of_tables(path).items()}
            for file in sorted(path.glob("*.json")):
                document = json.loads(file.read_text())
                found |= numbers_of_document(f"{path.name}/{file.name}", document)
        elif path.suffix in (".json", ".yaml"):
            read = json.loads if path.suffix == ".json" else yaml.safe_load
            found |= numbers_of_document(path.name, read(path.read_text()))
        else:
            found[path.name] = zlib.crc32(path.read_bytes())
    return found


def imported(place: Path) -> Result:
    """Read imported tables; as long as an import is unfinished, they are refused."""
    if (place / "out" / "traces" / ".finishing").exists():
        return UNFINISHED
    return files(place)


def store(place: Path) -> Result:
    """Read all that a store counted, and what is fitted to it."""
    from tidings.characterisation import stored
    from tidings.characterisation.count.store import is_store, read_catalogue

    folder = place / "out" / "store"
    if not is_store(folder):
        return {}
    catalogue = read_catalogue(folder)
    assert catalogue is not None
    found: Result = {"parts": len(catalogue.parts)}
    for name, table in stored._whole(folder, catalogue).tables.items():
        for column in table.columns:
            values = [None if each != each else each for each in table[column].tolist()]
            found.update(_sum(f"{name}.{column}", values))
    fitted = stored.characterise_store(folder)
    for kind, frame in (("fitted", fitted.parameters), ("measured", fitted.measured.subscribers)):
        found |= numbers_of_document(kind, frame.to_dict("records"))
    return {key: each for key, each in found.items() if each == each}


def spans(place: Path) -> Result:
    """Count the different spans that can be seen, and those acknowledged that cannot."""
    from torturing.sending import ACKNOWLEDGED, ids_in

    seen = ids_in(place / "out" / "spans")
    acknowledged = set((place / ACKNOWLEDGED).read_text().split())
    hidden = ids_in(place / "out" / "spans", hidden=True)
    found: Result = {f"span {each}": 1 for each in seen}
    if lost := acknowledged - seen - hidden:
        found["acknowledged, and lost"] = len(lost)
    return found


def published(place: Path) -> Result:
    """Count what was published on real servers; when it passed them is never twice the same."""
    folder = place / "out" / "traces"
    if not folder.exists():
        return {}
    told = json.loads((folder / "traces.json").read_text())
    rows = pq.read_table(folder / "publications", partitioning=None).to_pandas()
    if "incomplete" in told:
        return UNFINISHED
    found: Result = {"publications": len(rows)}
    for (publisher, content), some in rows.groupby(["publisher", "content"]):
        found[f"{publisher} {content}"] = len(some)
    return found


# ---- all of them ---------------------------------------------------------------------------------

KILLED = ("killed", "killed at a file")
ALONE = (*KILLED, "disk full", "memory short", "two writers", "clock stepped")
ON_SPARK = (*KILLED, "Java killed", "disk full", "no room for temporary files", "memory short",
            "two writers", "clock stepped")  # fmt: skip
_LOG = ("import", "table", "--mapping", "in/log.yaml", "--broker", "kafka", "--to", "out/traces")
_DAY = ("characterise", "--into", "out/store", "--margin", "2s")

SUBJECTS: dict[str, Subject] = {
    "samples": Subject(
        what="`tidings samples NAME --to FOLDER`: trace tables copied",
        prepare=with_system,
        steps=((*TIDINGS, "samples", "nats-steady", "--to", "out/traces"),),
        read=files,
        faults=ALONE,
        only_new=True,
    ),
    "predict": Subject(
        what="`tidings predict -o FILE`, then again over the older file",
        prepare=with_system,
        steps=(
            (*TIDINGS, "predict", "in/system.yaml", "--output", "out/predicted.json"),
            (
                *TIDINGS,
                "predict",
                "in/hasty.yaml",
                "--output",
                "out/predicted.json",
            ),
        ),
        read=files,
        faults=ALONE,
    ),
    "simulate": Subject(
        what="`tidings simulate --traces FOLDER -o FILE`: a run recorded as trace tables",
        prepare=with_system,
        steps=(
            (
                *TIDINGS,
                "simulate",
                "in/system.yaml",
                "--duration",
                "20s",
                "--traces",
                "out/traces",
                "--output",
                "out/simulated.json",
            ),
        ),
        read=files,
        faults=ALONE,
        only_new=True,
    ),
    "receive": Subject(
        what="`tidings receive FOLDER` while spans are sent; those not acknowledged are sent again",
        prepare=lambda _: None,
        steps=(("-m", "torturing.sending"),),
        read=spans,
        faults=(*KILLED, "server killed", "disk full", "two writers", "clock stepped", "old rows"),
        varying=True,
        again=((("-m", "torturing.sending", "all"), 0),),
    ),
    "serve": Subject(
        what="`tidings serve FOLDER` while its pages and metrics are asked for",
        prepare=with_watched,
        steps=(("-m", "torturing.asking"),),
        read=files,
        faults=("killed", "server killed", "two writers", "clock stepped"),
    ),
    "testbed": Subject(
        what="`tidings testbed run --to FOLDER`: real servers, ended with their supervisor",
        prepare=with_line,
        steps=(
            (
                *TIDINGS,
                "testbed",
                "run",
                "in/line.yaml",
                "--to",
                "out/traces",
                "--warmup",
                "0s",
                "--duration",
                "3s",
            ),
        ),
        read=published,
        faults=(*KILLED, "server killed", "disk full"),
        only_new=True,
        own_temporary=True,
    ),
    "import": Subject(
        what="`tidings import table`, then `--replace` by a longer log",
        prepare=with_logs,
        steps=(
            (*SPARK, *_LOG, *LOCAL, "in/morning.csv"),
            (*SPARK, *_LOG, *LOCAL, "--replace", "in/day.csv"),
        ),
        read=imported,
        faults=(*ON_SPARK, "old rows"),
        spark=True,
        again=(((*SPARK, *_LOG, *LOCAL, "--replace", "in/twice"), 0),),
    ),
    "characterise": Subject(
        what="`tidings characterise --to FILE --measured FILE --report FILE`",
        prepare=with_days,
        steps=(
            (
                *SPARK,
                "characterise",
                "in/monday",
                *LOCAL,
                "--to",
                "out/fitted.yaml",
                "--measured",
                "out/measured.json",
            ),
        ),
        read=files,
        faults=(*ON_SPARK, "worker lost"),
        spark=True,
    ),
    "store": Subject(
        what="`tidings characterise --into STORE`, day after day",
        prepare=with_days,
        steps=(
            (*SPARK, *_DAY, *LOCAL, "in/monday"),
            (*SPARK, *_DAY, *LOCAL, "in/tuesday"),
        ),
        read=store,
        faults=(*ON_SPARK, "old rows"),
        spark=True,
        rivals=(0, 1),
        again=(
            ((*SPARK, *_DAY, *LOCAL, "in/monday"), 0),
            ((*SPARK, *_DAY, *LOCAL, "in/across"), 2),
        ),
    ),
    "compaction": Subject(
        what="days of a store put together as one, older parts dropped",
        prepare=with_days,
        steps=(
            (*SPARK, *_DAY, *LOCAL, "in/monday"),
            (*SPARK, *_DAY, *LOCAL, "in/tuesday"),
            ("-m", "torturing.compacting"),
        ),
        read=store,
        faults=(*KILLED, "Java killed", "disk full", "two writers"),
        spark=True,
    ),
}
