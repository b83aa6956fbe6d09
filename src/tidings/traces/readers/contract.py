"""What every reader has to hold, as a check that packages with readers of their own can call.

A sample of the format is spoilt in several ways: compressed, cut off, torn, emptied, with lines in
it that no reader has seen. All of it is read at once, beside the sample as it is; whatever the
format, every piece has to have a fate, and no file may cost another one anything.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path

import pandas as pd
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import TidingsError
from tidings.model.trace_tables import TRACE_TABLES
from tidings.traces.actions import bring_here
from tidings.traces.quarantine import REASON, with_reasons
from tidings.traces.readers import lines
from tidings.traces.readers.reading import Asked, Reader, Reading

MARK = "hostile-mark"  # in every line of HOSTILE
HOSTILE = (
    f"{MARK}",
    f'{{"{MARK}": ' * 5000,
    "[" * 5000 + MARK,
    f'{{"resourceSpans": [5, {{"scopeSpans": 7}}], "x": "{MARK}"}}',
    f'{{"data": null, "streams": {{}}, "{MARK}": "\\ud800"}}',
    f'"{MARK}, with a quote that nobody closes',
    f"{MARK}\0\0\0",
    f"{MARK} {'9' * 100_000}",
    f"<b>{MARK}</b>; DROP TABLE x; --{{{{7*7}}}}",
)
NOT_UTF8 = MARK.encode() + b"\xff\xfe\xc3("


def check_reader(
    spark: SparkSession,
    reader: Reader,
    samples: Sequence[Path],
    folder: Path,
    asked: Asked | None = None,
) -> None:
    """Raise AssertionError, with all that a reader does not hold.

    ``samples`` are files of its format, of several versions where there are some; each has to give
    a row. ``folder`` is an empty one for spoilt copies.
    """
    asked = asked or Asked(keep=lambda frame, _: frame.localCheckpoint())
    copies = dict(_spoilt(samples, folder))
    broken = [
        *_beside_each_other(spark, reader, samples, copies, asked),
        *_alone(spark, reader, samples[0], folder, asked),
    ]
    assert not broken, "\n".join(["the reader breaks its contract:", *broken])


def _spoilt(samples: Sequence[Path], folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield copies of the first sample, damaged in several ways, by what was done to them."""
    first = samples[0]
    whole = first.read_bytes()
    packed = gzip.compress(whole)
    end = b"" if whole.endswith(b"\n") else b"\n"
    hostile = b"".join(line.encode() + b"\n" for line in HOSTILE) + NOT_UTF8 + b"\n"
    made = {
        "packed": (f"{first.name}.gz", packed),
        "cut": (first.name, whole[: 2 * len(whole) // 3]),
        "torn": (f"{first.name}.gz", packed[: 9 * len(packed) // 10]),
        "empty": (first.name, b""),
        "blank": (first.name, b"\n\n"),
        "hostile": (first.name, whole + end + hostile),
    }
    for what, (name, data) in made.items():
        path = folder / f"{what}-{name}"
        path.write_bytes(data)
        yield what, path


def _beside_each_other(
    spark: SparkSession,
    reader: Reader,
    samples: Sequence[Path],
    copies: Mapping[str, Path],
    asked: Asked,
) -> Iterator[str]:
    """Yield what does not hold where all files are read at once."""
    files = [str(path.resolve()) for path in (*samples, *copies.values())]
    reading = reader.read(spark, files, asked)
    strange = sorted(set(reading.tables) - set(reader.tables))
    if strange:
        yield f"it fills {', '.join(strange)}, which is not among its tables"
        return
    records, rows = _records(reading), _rows(reading)
    for what, frame in (("records", records), ("rows", rows)):
        elsewhere = sorted(set(frame["file"].map(str)) - set(files))
        if elsewhere:
            yield f"{what} come from {elsewhere[0]}, which is none of the files"
    usable = set(rows.loc[rows["usable"], "file"])
    for number, path in enumerate(samples):
        # Copies tell the same: whatever joins or merges may take it from any of them.
        same = files[len(samples) :] if number == 0 else []
        if usable.isdisjoint([str(path.resolve()), *same]):
            yield f"the sample {path.name} gives no row that can be used"
    if (rows["marked"] & rows["usable"]).any():
        yield "rows are made of lines that are none of the format"
    yield from _fates(records, files[0], copies)


def _fates(records: pd.DataFrame, sample: str, copies: Mapping[str, Path]) -> Iterator[str]:
    """Yield what does not hold of the records of a sample and its copies."""

    def count(file: str) -> int:
        return int(records.loc[records["file"] == file, "n"].sum())

    first, of = count(sample), {what: count(str(path.resolve())) for what, path in copies.items()}
    if of["packed"] != first:
        yield f"compressed, the sample has {of['packed']} records; as it is {first}"
    if not 0 < of["cut"] <= first:
        yield f"cut off, the sample has {of['cut']} records; as it is {first}"
    if of["empty"] or of["blank"]:
        yield f"an empty file has {of['empty']} records, one of empty lines {of['blank']}"
    torn = records[records["file"] == str(copies["torn"].resolve())]
    if not torn[REASON].notna().any():
        yield "of a compressed file that is torn, no record says so"
    if not records["marked"].any():
        yield "lines that are none of the format have vanished"


def _alone(
    spark: SparkSession, reader: Reader, sample: Path, folder: Path, asked: Asked
) -> Iterator[str]:
    """Yield what does not hold of files with nothing of the format: refused, or set aside."""
    hostile, empty = folder / f"alone-{sample.name}", folder / f"nothing-{sample.name}"
    hostile.write_bytes(b"".join(line.encode() + b"\n" for line in HOSTILE))
    empty.write_bytes(b"")
    try:
        rows = _rows(reader.read(spark, [str(hostile.resolve()), str(empty.resolve())], asked))
    except TidingsError:
        return
    if rows["usable"].any():
        yield "rows are made of lines that are none of the format"


def _records(reading: Reading) -> pd.DataFrame:
    """Count the records by reason (why set aside), file and whether they are hostile."""
    counted = reading.records.groupBy(F.col(lines.FILE).alias("file"), REASON, _marked())
    return bring_here(counted.agg(F.count(F.lit(1)).alias("n")), "the records")


def _rows(reading: Reading) -> pd.DataFrame:
    """Count the candidate rows that can and cannot be used, by table and file."""
    counted = [
        with_reasons(frame, TRACE_TABLES[name])
        .groupBy(
            F.lit(name).alias("table"),
            F.col(lines.FILE).alias("file"),
            F.col(REASON).isNull().alias("usable"),
            _marked(),
        )
        .agg(F.count(F.lit(1)).alias("n"))
        for name, frame in reading.tables.items()
    ]
    return bring_here(reduce(DataFrame.unionByName, counted), "the rows")


def _marked() -> Column:
    return F.coalesce(F.col(lines.TEXT).contains(MARK), F.lit(False)).alias("marked")
