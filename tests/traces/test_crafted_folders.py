"""Folders of tables by people who mean harm: no step leads out of them, and reading takes none."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest

from snapshots import everything_below
from stopped_imports import mark_for
from tidings.errors import InvalidTracesError
from tidings.traces import placing
from tidings.traces.importing import ACCOUNT_COLUMNS, _arranged, check_destination
from tidings.traces.places import table_names
from tidings.traces.placing import incoming, put_in_place
from tidings.traces.reading import _manifest
from tidings.traces.window import TraceWindow

NEW = ".finishing/tables/hops"


@pytest.fixture
def place(tmp_path):
    """A folder of tables, and beside it what belongs to somebody else."""
    (tmp_path / "traces" / "quarantine" / "hops").mkdir(parents=True)
    (tmp_path / "traces" / "publications.csv").write_text("event\n")
    (tmp_path / "mine" / "hops").mkdir(parents=True)
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    (tmp_path / "mine" / "hops" / "part.parquet").write_text("mine")
    return tmp_path


def craft(to, *, marked=True, drop=(), move=None):
    """What an import leaves that is killed at its last step, or what looks like it."""
    (to / NEW).mkdir(parents=True, exist_ok=True)
    document = {"drop": list(drop), "move": move or {}}
    document |= {"mark": mark_for(to)} if marked else {}
    (to / ".finishing" / "steps.json").write_text(json.dumps(document))


def imports_hops(to):
    """What an import does once Spark has written."""
    with incoming(to) as fresh:
        (fresh / "tables" / "hops").mkdir(parents=True)
        (fresh / "quarantine" / "hops").mkdir(parents=True)
        account = pd.DataFrame([("hops", "used", "", 1)], columns=list(ACCOUNT_COLUMNS))
        window = TraceWindow(from_ns=0, until_ns=9)
        put_in_place(fresh, to, lambda: _arranged(fresh, to, account, window))


def link_in(to, name, target):
    if (to / name).is_dir():
        shutil.rmtree(to / name)
    (to / name).symlink_to(target)


OUTSIDE = {
    "drop absolute": lambda at: {"drop": [str(at / "mine")]},
    "drop above": lambda at: {"drop": ["../mine"]},
    "drop around": lambda at: {"drop": ["quarantine/../../mine/letter.txt"]},
    "drop itself": lambda at: {"drop": ["quarantine/.."]},
    "drop what is no table": lambda at: {"drop": ["thesis.txt"]},
    "drop deeper": lambda at: {"drop": ["publications/part/../../../mine"]},
    "fetch absolute": lambda at: {"move": {str(at / "mine" / "letter.txt"): "hops.csv"}},
    "fetch above": lambda at: {"move": {"../mine/letter.txt": "hops.csv"}},
    "bring absolute": lambda at: {"move": {NEW: str(at / "mine" / "hops")}},
    "bring above": lambda at: {"move": {NEW: "../mine/hops"}},
    "bring around": lambda at: {"move": {NEW: ".finishing/../../mine/hops"}},
    "drop what no file is called": lambda at: {"drop": ["hops.\ud800"]},
    "drop what is too long a name, after others": lambda at: {
        "drop": ["hops.csv", "hops." + "a" * 300]
    },
    "fetch what no file is called": lambda at: {"move": {"hops.\ud800": "hops.csv"}},
    "bring to what no file is called": lambda at: {"move": {NEW: "quarantine/\udcff\ud800"}},
    "drop a name with a zero byte": lambda at: {"drop": ["hops.\0"]},
    "good and bad": lambda at: {"drop": ["publications.csv", "../mine"], "move": {NEW: "hops"}},
}
LINKED = {
    "drop": {"drop": ["quarantine/hops", "quarantine/letter.txt"]},
    "fetch": {"move": {"quarantine/letter.txt": "hops.csv"}},
    "bring": {"move": {NEW: "quarantine/hops"}},
}
EITHER = pytest.mark.parametrize("marked", [True, False], ids=["marked", "unmarked"])
READ_OR_IMPORT = pytest.mark.parametrize(
    "use",
    [table_names, lambda to: check_destination(to, [], replace_old=True), imports_hops],
    ids=["read", "check", "import"],
)


@EITHER
@READ_OR_IMPORT
@pytest.mark.parametrize("steps", OUTSIDE.values(), ids=OUTSIDE)
def test_steps_that_lead_elsewhere_are_refused(place, steps, use, marked):
    to = place / "traces"
    (to / "thesis.txt").write_text("mine too")
    craft(to, marked=marked, **steps(place))
    before = everything_below(place)
    with pytest.raises(InvalidTracesError, match=r"traces: .*\.finishing"):
        use(to)
    assert everything_below(place) == before


@EITHER
@READ_OR_IMPORT
@pytest.mark.parametrize("steps", LINKED.values(), ids=LINKED)
def test_links_in_the_folder_are_not_followed(place, steps, use, marked):
    to = place / "traces"
    link_in(to, "quarantine", place / "mine")
    craft(to, marked=marked, **steps)
    before = everything_below(place)
    with pytest.raises(InvalidTracesError, match=r"traces: .*\.finishing"):
        use(to)
    assert everything_below(place) == before


@READ_OR_IMPORT
def test_what_is_left_may_be_no_link_itself(place, use):
    to = place / "traces"
    craft(place / "mine", marked=False, drop=["publications.csv", "letter.txt"])
    shutil.move(place / "mine" / ".finishing", place / "mine" / "steps")
    link_in(to, ".finishing", place / "mine" / "steps")
    before = everything_below(place)
    with pytest.raises(InvalidTracesError, match=r"traces: .*\.finishing"):
        use(to)
    assert everything_below(place) == before


def test_reading_what_was_stopped_changes_nothing_and_the_next_import_finishes_it(place):
    to = place / "traces"
    craft(to, drop=["publications.csv"], move={NEW: "hops"})
    (to / NEW / "part.parquet").write_text("new")
    before = everything_below(place)
    with pytest.raises(InvalidTracesError, match="run that import again"):
        table_names(to)
    assert everything_below(place) == before
    check_destination(to, [], replace_old=True)
    assert table_names(to) == ("hops",)
    assert not (to / ".finishing").exists()


def test_a_copy_of_what_was_stopped_is_not_carried_out(place):
    craft(place / "traces", drop=["publications.csv"])
    copied = place / "copied"
    shutil.copytree(place / "traces", copied)
    before = everything_below(place)
    with pytest.raises(InvalidTracesError, match="no import of this user made"):
        imports_hops(copied)
    assert everything_below(place) == before


FORGED = {
    "a random one": lambda to, true: "0123456789abcdef" * 2,
    "the inode": lambda to, true: to.stat().st_ino,
    "a path": lambda to, true: f"../imports/{true}",
    "a part": lambda to, true: true[:-1],
    "none": lambda to, true: None,
    "a list": lambda to, true: [true],
}


@READ_OR_IMPORT
@pytest.mark.parametrize("mark", FORGED.values(), ids=FORGED)
def test_a_mark_that_no_import_of_this_user_made_is_refused(place, mark, use):
    to = place / "traces"
    craft(to, drop=["publications.csv"], move={NEW: "hops"})
    file = to / ".finishing" / "steps.json"
    document = json.loads(file.read_text())
    file.write_text(json.dumps({**document, "mark": mark(to, document["mark"])}))
    before = everything_below(place)
    with pytest.raises(InvalidTracesError, match=r"traces: .*\.finishing"):
        use(to)
    assert everything_below(place) == before
    if use is not table_names:
        with pytest.raises(
            InvalidTracesError, match=r"remove \.finishing by hand, or import again"
        ):
            use(to)
    file.write_text(json.dumps(document))
    check_destination(to, [], replace_old=True)
    assert sorted(os.listdir(to)) == ["hops", "quarantine"]


def notes():
    return Path(os.environ["XDG_STATE_HOME"], "tidings", "imports")


def test_a_mark_is_known_as_long_as_it_is_needed_and_only_where_nobody_else_writes(place):
    to = place / "traces"
    craft(to, drop=["publications.csv"])
    mark = json.loads((to / ".finishing" / "steps.json").read_text())["mark"]
    assert notes().stat().st_mode & 0o77 == 0
    notes().chmod(0o770)
    with pytest.raises(InvalidTracesError, match="no import of this user made"):
        imports_hops(to)
    notes().chmod(0o700)
    assert (notes() / mark).exists()
    before = set(notes().iterdir())
    imports_hops(to)
    assert before - set(notes().iterdir()) == {notes() / mark}
    assert not set(notes().iterdir()) - before
    assert not (to / "publications.csv").exists()


def test_without_a_state_folder_an_import_works_and_one_that_was_stopped_is_refused(
    place, monkeypatch
):
    (place / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "file"))
    to = place / "traces"
    imports_hops(to)
    assert (to / "hops").is_dir()
    assert not (to / ".finishing").exists()
    craft(to, drop=["publications.csv"])
    with pytest.raises(
        InvalidTracesError, match=r"no import of this user made.*remove \.finishing by hand"
    ):
        imports_hops(to)
    assert (to / "publications.csv").exists()


@pytest.mark.parametrize("path", ["publications.csv", "quarantine/hops", NEW])
def test_a_step_that_would_lose_what_it_moves_is_refused(place, path):
    to = place / "traces"
    craft(to, move={path: path})
    before = everything_below(place)
    with pytest.raises(InvalidTracesError, match="would be lost"):
        imports_hops(to)
    assert everything_below(place) == before


@pytest.mark.parametrize(
    "text", ["", "[]", "[" * 100_000, '{"mark": 1}', "null", '{"drop": [1], "move": {}}']
)
def test_steps_that_are_none_are_refused(place, text):
    to = place / "traces"
    craft(to)
    (to / ".finishing" / "steps.json").write_text(text)
    before = everything_below(place)
    with pytest.raises(InvalidTracesError, match="wants the steps that an import writes"):
        imports_hops(to)
    assert everything_below(place) == before


def test_links_are_replaced_and_what_they_lead_to_stays(place):
    to, mine = place / "traces", place / "mine"
    link_in(to, "hops", mine / "hops")
    os.link(mine / "letter.txt", to / "hops.csv")
    link_in(to, "traces.json", mine / "letter.txt")
    link_in(to, ".incoming-1", mine)
    before = everything_below(mine)
    imports_hops(to)
    assert everything_below(mine) == before
    assert not (to / "hops").is_symlink()
    assert not (to / "traces.json").is_symlink()
    assert not (to / "hops.csv").exists()


def test_an_import_is_refused_where_its_quarantine_is_a_link(place):
    to = place / "traces"
    link_in(to, "quarantine", place / "mine")
    before = [everything_below(place / each) for each in ("traces", "mine")]
    with pytest.raises(InvalidTracesError, match="quarantine, a link"):
        imports_hops(to)
    assert [everything_below(place / each) for each in ("traces", "mine")] == before


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(place):
    to = place / "traces"
    os.mkfifo(to / ".incoming-1")
    craft(to)
    (to / ".finishing" / "steps.json").unlink()
    os.mkfifo(to / ".finishing" / "steps.json")
    with pytest.raises(InvalidTracesError, match="wants the steps"):
        imports_hops(to)
    shutil.rmtree(to / ".finishing")
    imports_hops(to)
    assert (to / "hops").is_dir()


@pytest.mark.parametrize("name", ["quarantine", ".finishing"])
def test_a_link_that_comes_between_check_and_use_leads_nowhere(place, monkeypatch, name):
    to = place / "traces"
    (to / "quarantine" / "letter.txt").write_text("set aside")
    craft(
        to,
        drop=["quarantine/hops", "quarantine/letter.txt"],
        move={NEW: "hops", ".finishing/tables/letter.txt": "quarantine/new"},
    )
    (place / "mine" / "tables").mkdir()
    (place / "mine" / "tables" / "letter.txt").write_text("mine")
    remove, swapped = shutil.rmtree, []

    def swapping(*arguments, **options):
        if not swapped:  # at the first removal all checks are over
            swapped.append(name)
            (to / name).rename(place / "away")
            (to / name).symlink_to(place / "mine")
        return remove(*arguments, **options)

    monkeypatch.setattr(placing.shutil, "rmtree", swapping)
    before = everything_below(place / "mine")
    with contextlib.suppress(InvalidTracesError):  # to refuse is as good
        check_destination(to, [], replace_old=True)
    assert swapped == [name]
    assert everything_below(place / "mine") == before


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_manifest_that_is_no_file_is_none(place, kind):
    manifest = place / "traces" / "traces.json"
    if kind == "pipe":
        os.mkfifo(manifest)
    elif kind == "device":
        manifest.symlink_to("/dev/zero")
    else:
        manifest.mkdir()
    assert _manifest(None, str(place / "traces"), remote=False) is None
    imports_hops(place / "traces")
    assert json.loads(manifest.read_text())["until_ns"] == 9


@pytest.mark.parametrize("told", ["7", "[]", '{"imported": 7}', '{"imported": [["hops"]]}', "{"])
def test_an_older_manifest_may_say_anything(place, told):
    manifest = place / "traces" / "traces.json"
    manifest.write_text(told)
    imports_hops(place / "traces")
    assert json.loads(manifest.read_text())["imported"].keys() == {"hops"}
