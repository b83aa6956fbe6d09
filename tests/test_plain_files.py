"""Links and pipes where files should be: refused by name, by the commands themselves."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import threading
from pathlib import Path

import pandas as pd
import pyarrow
import pytest
from pyarrow import parquet

from snapshots import everything_below
from tidings.characterisation.count.store import Catalogue, StorePart, save_partial, write_catalogue
from tidings.characterisation.statistics import Partial
from tidings.cli.commands import run
from tidings.model.parquet_files import read_parquet
from tidings.model.plain_files import check_below, open_plain, read_text
from tidings.model.reading import loads, save

PART = "counted-0123456789abcdef"
SYSTEM = """
tidings: 1
lifetime: 1s
brokers: {hub: {service: {exponential: 3ms}}}
publishers: {p: {at: hub, every: {exponential: 1s}, content: [{p: 1, event: {topic: a}}]}}
subscribers: {s: {at: hub, wants: {topic: a}}}
"""


@pytest.fixture
def lay():
    """Puts a link, a pipe or a socket where a file is; whoever waits at a pipe is let go later."""
    done, pipes = threading.Event(), []

    def let_go():
        while not done.wait(5.0):
            for path in pipes:
                with contextlib.suppress(OSError):
                    os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))

    def lay(kind, path):
        away = path.with_name(f"away-{path.name}")
        path.rename(away)
        if kind == "a link":
            path.symlink_to(away)
        elif kind == "a pipe":
            os.mkfifo(path)
            pipes.append(path)
        else:
            with socket.socket(socket.AF_UNIX) as held, contextlib.chdir(path.parent):
                held.bind(path.name)

    helper = threading.Thread(target=let_go, daemon=True)
    helper.start()
    yield lay
    done.set()
    helper.join()


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    """A system as a file and as tables, an outcome as a file and as a folder, a store, traces."""
    tmp_path = tmp_path_factory.mktemp("honest")
    (tmp_path / "system.yaml").write_text(SYSTEM)
    system = loads(SYSTEM)
    save(system, tmp_path / "tables")
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "system.yaml").write_text(SYSTEM.partition("subscribers")[0])
    (tmp_path / "csv" / "subscribers.csv").write_text('name,at,wants\ns,hub,"{""topic"":""a""}"\n')
    for name in ("outcome", "outcome.json"):
        command = ["predict", str(tmp_path / "system.yaml"), "--output", str(tmp_path / name)]
        assert run(command) == 0
    counted = tmp_path / "store" / PART
    save_partial(counted, Partial(tables={"cells": pd.DataFrame({"rows": [1]})}))
    rows = counted / "rows" / "subscriptions"
    rows.mkdir(parents=True)
    parquet.write_table(pyarrow.table({"a": [1]}), rows / "part-0.parquet")
    part = StorePart(folder=PART, from_ns=0, until_ns=9, source="monday", tables=("hops",))
    write_catalogue(tmp_path / "store", Catalogue(margin_s=1.0, parts=(part,)))
    (tmp_path / "traces" / "hops").mkdir(parents=True)
    parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "traces" / "hops" / "p.parquet")
    (tmp_path / "traces" / "publications.csv").write_text("event,at_ns\n")
    return tmp_path


@pytest.fixture
def place(honest, tmp_path, monkeypatch):
    """A copy of all that, in which the commands run."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(honest, tmp_path, dirs_exist_ok=True)


CHECK, SIMULATE = "check {}", "simulate {} --events 10"
REPORT = "report system.yaml {} --to page.html"
CHARACTERISE = "characterise {}"
INSIDE = {
    "head of tables": (CHECK, "tables", "system.yaml"),
    "subscribers in Parquet": (CHECK, "tables", "subscribers.parquet"),
    "publishers in Parquet": (SIMULATE, "tables", "publishers.parquet"),
    "subscribers in CSV": (CHECK, "csv", "subscribers.csv"),
    "head of an outcome": (REPORT, "outcome", "outcome.json"),
    "table of an outcome": (REPORT, "outcome", "subscribers.parquet"),
    "store": (CHARACTERISE, "store", "store.json"),
    "what was decided": (CHARACTERISE, "store", f"{PART}/decided.json"),
    "statistics": (CHARACTERISE, "store", f"{PART}/cells.parquet"),
    "rows": (CHARACTERISE, "store", f"{PART}/rows/subscriptions/part-0.parquet"),
    "folder of rows": (CHARACTERISE, "store", f"{PART}/rows/subscriptions"),
    "folder of all rows": (CHARACTERISE, "store", f"{PART}/rows"),
}
TYPED = {
    "system": (CHECK, "system.yaml"),
    "outcome": (REPORT, "outcome.json"),
    "table of traces": (CHARACTERISE, "traces", "publications.csv"),
    "part of a table of traces": (CHARACTERISE, "traces", "hops/p.parquet"),
}


def refusal(command, place, given, capsys):
    """What a command says that may change nothing."""
    before = everything_below(place)
    assert run(command.format(given).split()) == 2
    assert everything_below(place) == before
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("kind", ["a link", "a pipe", "a socket"])
@pytest.mark.parametrize(("command", "given", "name"), INSIDE.values(), ids=INSIDE)
def test_what_lies_in_a_folder_is_a_plain_file(place, lay, capsys, command, given, name, kind):
    lay(kind, place / given / name)
    said = refusal(command, place, given, capsys)
    assert f"{kind}, not a plain file" in said
    assert Path(name).name in said


@pytest.mark.parametrize("kind", ["a pipe", "a socket"])
@pytest.mark.parametrize("case", TYPED.values(), ids=TYPED)
def test_a_pipe_is_not_waited_for_where_links_are_followed(place, lay, capsys, case, kind):
    command, given, *name = case
    lay(kind, place.joinpath(given, *name))
    said = refusal(command, place, given, capsys)
    assert f"{kind}, not a plain file" in said
    assert Path(*[given, *name]).name in said


def test_what_was_typed_may_be_a_link_or_come_from_the_shell(place, lay, capsys):
    lay("a link", place / "system.yaml")
    assert run(["check", str(place / "system.yaml")]) == 0
    reading, writing = os.pipe()
    os.write(writing, SYSTEM.encode())
    os.close(writing)
    assert run(["check", f"/dev/fd/{reading}"]) == 0
    os.close(reading)


def test_a_second_name_of_a_file_is_a_file(place):
    (place / "tables" / "subscribers.parquet").rename(place / "mine.parquet")
    (place / "tables" / "subscribers.parquet").hardlink_to(place / "mine.parquet")
    before = everything_below(place)
    assert run(["check", str(place / "tables")]) == 0
    assert everything_below(place) == before


@pytest.mark.parametrize("kind", ["a link", "a pipe"])
@pytest.mark.parametrize("read", [open_plain, read_text, read_parquet])
def test_what_comes_between_the_look_and_the_opening_is_not_followed(
    tmp_path, monkeypatch, read, lay, kind
):
    path = tmp_path / "a.parquet"
    path.write_text("a")
    usual = os.open

    def exchanging(name, flags, *rest, **options):
        lay(kind, path)
        return usual(name, flags, *rest, **options)

    monkeypatch.setattr(os, "open", exchanging)
    with pytest.raises(OSError, match=r"symbolic links|a pipe, not a plain file"):
        read(path)


@pytest.mark.parametrize("table", ["traces/hops", f"store/{PART}/rows/subscriptions"])
def test_a_folder_with_the_log_of_a_stream_is_refused(place, capsys, table):
    """Spark would read the files that the log lists, wherever they are."""
    log = place / table / "_spark_metadata"
    log.mkdir()
    (log / "0").write_text("v1\n")
    said = refusal(CHARACTERISE, place, table.split("/")[0], capsys)
    assert f"{table}/_spark_metadata: got the log of a stream" in said


def test_devices_and_folders_are_told_by_their_kind(tmp_path):
    with pytest.raises(OSError, match="a device, not a plain file"):
        open_plain("/dev/zero")
    with pytest.raises(OSError, match="a folder, not a plain file"):
        open_plain(tmp_path)


def test_folders_are_looked_through_however_deep(tmp_path, lay, monkeypatch):
    monkeypatch.chdir(tmp_path)
    depth = 1100
    deepest = Path(*["d"] * depth)
    for _ in range(depth):
        os.mkdir("d")
        os.chdir("d")
    Path("file").touch()
    os.chdir(tmp_path)
    check_below(Path("d"))
    (deepest / "file").unlink()
    os.mkfifo(deepest / "file")
    with pytest.raises(OSError, match="a pipe, not a plain file"):
        check_below(Path("d"))
    for _ in range(depth):  # whoever clears up after the tests may not reach so deep
        os.chdir("d")
    os.unlink("file")
    for _ in range(depth):
        os.chdir("..")
        os.rmdir("d")
