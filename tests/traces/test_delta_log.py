"""Delta tables by their log. ``written_by_delta_rs`` was: four appends, two deletes (one rewrites
a file, one drops a day), a checkpoint, an append with one more column and a blank in its day."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from tidings.errors import InvalidTracesError, UnsupportedError
from tidings.traces.delta_log import read_log
from tidings.traces.readers.lines import expand

WRITTEN = Path(__file__).parent / "written_by_delta_rs" / "publications"
PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
SCHEMA = json.dumps(
    {
        "type": "struct",
        "fields": [{"name": "event", "type": "string", "nullable": True, "metadata": {}}],
    }
)
TABLE = {"metaData": {"schemaString": SCHEMA, "partitionColumns": []}}


def add(name, **more):
    return {"add": {"path": name, **more}}


def remove(name, **more):
    return {"remove": {"path": name, "dataChange": True, **more}}


def log(folder, *commits, first=0):
    """A log of these commits, and the files that it adds."""
    (folder / "_delta_log").mkdir(exist_ok=True)
    for version, actions in enumerate(commits, first):
        text = "".join(json.dumps(action) + "\n" for action in actions)
        (folder / "_delta_log" / f"{version:020}.json").write_text(text)
        for name in (action["add"]["path"] for action in actions if "add" in action):
            if "/" not in name and "%" not in name:
                (folder / name).touch()
    return folder


def checkpoint(folder, version, *parts):
    for part, actions in enumerate(parts, 1):
        of = f".{part:010}.{len(parts):010}" if len(parts) > 1 else ""
        kinds = ("add", "metaData", "protocol")
        columns = {kind: [action.get(kind) for action in actions] for kind in kinds}
        path = folder / "_delta_log" / f"{version:020}.checkpoint{of}.parquet"
        pyarrow.parquet.write_table(pa.table(columns), path)


def live(folder):
    return [os.path.relpath(file, folder) for file in read_log(folder).files]


def test_a_table_of_delta_rs_has_the_files_that_delta_rs_says():
    table = read_log(WRITTEN)
    days = [Path(file).parent.name for file in table.files]
    assert days == ["day=2026-11-15", "day=2026-11-15", "day=2026-11-18%20x"]
    assert len(list(WRITTEN.glob("day=*/*.parquet"))) == 6  # three of them were removed
    assert table.partitioned_by == ("day",)
    assert "lifetime_ns" in table.schema  # since its last commit


def test_commits_add_and_remove(tmp_path):
    log(tmp_path, [PROTOCOL, TABLE, add("a"), add("b")], [remove("a"), add("c")], [add("a")])
    assert live(tmp_path) == ["a", "b", "c"]
    log(tmp_path, [remove("b"), {"commitInfo": {}}, {"txn": {}}], first=3)
    assert live(tmp_path) == ["a", "c"]


@pytest.mark.parametrize("parts", [1, 2])
def test_a_checkpoint_stands_for_all_commits_before_it(tmp_path, parts):
    log(tmp_path, [add("b"), remove("old")], [add("c")], first=3)
    for name in ("a", "old"):
        (tmp_path / name).touch()
    sums = [[PROTOCOL, TABLE, add("a"), add("old")], [add("b")]]
    checkpoint(tmp_path, 2, *(sums if parts == 2 else [[*sums[0], *sums[1]]]))
    checkpoint(tmp_path, 1, [add("vacuumed long ago")])  # an older one is not read
    assert live(tmp_path) == ["a", "b", "c"]


def test_a_checkpoint_that_is_not_whole_is_not_taken(tmp_path):
    log(tmp_path, [PROTOCOL, TABLE, add("a")], [add("b")])
    checkpoint(tmp_path, 1, [PROTOCOL, TABLE, add("a")], [add("b")])
    (tmp_path / "_delta_log" / f"{1:020}.checkpoint.{2:010}.{2:010}.parquet").unlink()
    assert live(tmp_path) == ["a", "b"]
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(InvalidTracesError, match="commit 0 is missing"):
        read_log(tmp_path)


@pytest.mark.parametrize(
    ("actions", "why"),
    [
        (
            [add("a", deletionVector={"storageType": "u", "pathOrInlineDv": "x"})],
            "deletion vectors",
        ),
        ([{"protocol": {"minReaderVersion": 4}}], "protocol 4"),
        ([{"protocol": {"minReaderVersion": 3, "readerFeatures": ["v2Checkpoint"]}}], "v2Checkp"),
        (
            [
                {
                    "metaData": {
                        **TABLE["metaData"],
                        "configuration": {"delta.columnMapping.mode": "id"},
                    }
                }
            ],
            "other names in its files",
        ),
    ],
)
def test_what_only_delta_can_read_is_said(tmp_path, actions, why):
    log(tmp_path, [PROTOCOL, TABLE], actions)
    with pytest.raises(UnsupportedError, match=why):
        read_log(tmp_path)


def test_features_that_are_not_in_use_do_no_harm(tmp_path):
    """A file that lost rows to a vector and was then rewritten has none any more."""
    vector = {"storageType": "u", "pathOrInlineDv": "x"}
    log(
        tmp_path,
        [{"protocol": {"minReaderVersion": 3, "readerFeatures": ["deletionVectors"]}}, TABLE],
        [add("a")],
        [add("a", deletionVector=vector), remove("a")],  # in any order
        [add("b"), remove("a", deletionVector=vector)],
    )
    assert live(tmp_path) == ["b"]


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../b", "file:///etc/passwd", "s3://x/y", "x/%2E%2E/%2E%2E/b"]
)
def test_a_log_names_no_file_elsewhere(tmp_path, name):
    (tmp_path / "t").mkdir()
    (tmp_path / "b").touch()
    log(tmp_path / "t", [PROTOCOL, TABLE, add(name)])
    with pytest.raises(InvalidTracesError, match="outside the table's folder"):
        read_log(tmp_path / "t")


@pytest.mark.parametrize(
    "text",
    ["nonsense", "[1]", '{"add": 5}', '{"add": {}}', '{"protocol": {"minReaderVersion": "x"}}'],
)
def test_what_is_no_log_is_refused(tmp_path, text):
    log(tmp_path, [PROTOCOL, TABLE], [])
    (tmp_path / "_delta_log" / f"{1:020}.json").write_text(text)
    with pytest.raises(InvalidTracesError, match="cannot be read as the log"):
        read_log(tmp_path)


def test_files_that_are_gone_are_named(tmp_path):
    log(tmp_path, [PROTOCOL, TABLE, add("a"), add("b")])
    (tmp_path / "b").unlink()
    with pytest.raises(InvalidTracesError, match=r"1 of 2 files .* not there, the first: .*/b"):
        read_log(tmp_path)


def test_a_log_without_anything_is_refused(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / f"{1:020}.crc").touch()
    with pytest.raises(InvalidTracesError, match="neither commits nor a checkpoint"):
        read_log(tmp_path)


def test_an_import_reads_the_files_that_the_log_says(tmp_path):
    log(tmp_path, [PROTOCOL, TABLE, add("a.parquet"), add("b.parquet")], [remove("a.parquet")])
    assert expand([str(tmp_path)]) == [str(tmp_path / "b.parquet")]
    (tmp_path / "ice" / "metadata").mkdir(parents=True)
    (tmp_path / "ice" / "metadata" / "v1.metadata.json").touch()
    with pytest.raises(UnsupportedError, match="a table of Iceberg"):
        expand([str(tmp_path / "ice")])
