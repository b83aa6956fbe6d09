"""An import killed before any change of the disk leaves the old tables or the new ones, whole."""

from __future__ import annotations

import json
import shutil
import sys

import pandas as pd
import pytest

from stopped_imports import mark_for
from tidings.errors import InvalidTracesError
from tidings.model.trace_tables import MANIFEST
from tidings.traces.importing import ACCOUNT_COLUMNS, _arranged, check_destination
from tidings.traces.places import table_names
from tidings.traces.placing import incoming, put_in_place
from tidings.traces.window import TraceWindow

CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree"}


class KilledError(BaseException):
    """Stands for kill -9: nothing catches it, and from then on nothing can be changed."""


class Killer:
    """Kills before the given change of the disk; audit hooks cannot be taken away again."""

    def __init__(self):
        self.at = self.seen = None
        sys.addaudithook(self.watch)

    def watch(self, event, arguments):
        writes = event == "open" and isinstance(arguments[1], str) and arguments[1][0] in "wax"
        if self.at is not None and (event in CHANGES or writes):
            self.seen += 1
            if self.seen > self.at:
                raise KilledError

    def kills(self, at, work):
        """Whether it came to the change number ``at`` of some work."""
        self.at, self.seen = at, 0
        try:
            work()
        except KilledError:
            return True
        finally:
            self.at = None
        return False


@pytest.fixture(scope="module")
def killer():
    return Killer()


def imports(to, tables, set_aside, version, window=(0, 9)):
    """What an import does once Spark has written: tables, and what it had to set aside."""
    rows = []
    with incoming(to) as fresh:
        for kind, names in (("tables", tables), ("quarantine", set_aside)):
            for name in names:
                (fresh / kind / name).mkdir(parents=True)
                (fresh / kind / name / "part.parquet").write_text(version)
        rows += [(name, "used", "", 1) for name in tables]
        rows += [(name, "set aside", version, 1) for name in set_aside]
        account = pd.DataFrame(rows, columns=list(ACCOUNT_COLUMNS))
        span = TraceWindow(from_ns=window[0], until_ns=window[1])
        put_in_place(fresh, to, lambda: _arranged(fresh, to, account, span))


def contents(to):
    """All that can be seen in a folder of tables, after whatever was left has been finished."""
    check_destination(to, [], replace_old=False)
    table_names(to)
    files = {str(path.relative_to(to)): path for path in to.rglob("*") if path.is_file()}
    hidden = [name for name in files if name.startswith(".") and ".incoming" not in name]
    assert not hidden
    return {name: path.read_text() for name, path in files.items() if name[0] != "."}


def seen(to):
    return {name: text for name, text in contents(to).items() if name != MANIFEST}


def accounts(to):
    """What the manifest says was set aside, by name and version."""
    imported = json.loads((to / MANIFEST).read_text())["imported"]
    return {
        f"quarantine/{name}/part.parquet": row["reason"]
        for name, rows in imported.items()
        for row in rows
        if row["fate"] == "set aside"
    }


def test_every_table_keeps_what_was_set_aside_until_it_is_imported_again(tmp_path):
    to = tmp_path / "traces"
    imports(to, ["publications", "deliveries"], ["lines", "publications"], "a")
    imports(to, ["probes"], ["lines", "probes"], "b")
    first = {
        "publications/part.parquet": "a",
        "deliveries/part.parquet": "a",
        "quarantine/publications/part.parquet": "a",
        "quarantine/lines-publications-deliveries/part.parquet": "a",
    }
    second = {"quarantine/lines-probes/part.parquet": "b", "quarantine/probes/part.parquet": "b"}
    assert seen(to) == {**first, **second, "probes/part.parquet": "b"}
    assert accounts(to) == {name: text for name, text in seen(to).items() if "quarantine" in name}
    imports(to, ["probes"], [], "c")  # clean: exactly its own go
    assert seen(to) == {**first, "probes/part.parquet": "c"}
    imports(to, ["deliveries"], ["lines"], "d")  # what was set aside is still of publications
    assert seen(to) == {
        "publications/part.parquet": "a",
        "deliveries/part.parquet": "d",
        "probes/part.parquet": "c",
        "quarantine/publications/part.parquet": "a",
        "quarantine/lines-publications/part.parquet": "a",
        "quarantine/lines-deliveries/part.parquet": "d",
    }
    assert accounts(to) == {name: text for name, text in seen(to).items() if "quarantine" in name}
    imports(to, ["publications", "deliveries"], [], "e")
    assert {name for name in seen(to) if "quarantine" in name} == set()
    assert not (to / "quarantine").exists()
    assert set(json.loads((to / MANIFEST).read_text())["imported"]) == {
        "publications", "deliveries", "probes",
    }  # fmt: skip


@pytest.mark.slow
def test_killed_at_any_moment_it_leaves_the_old_or_the_new(tmp_path, killer):
    old, to = tmp_path / "old", tmp_path / "traces"
    imports(old, ["publications", "deliveries"], ["lines", "deliveries"], "a")
    imports(old, ["probes"], ["lines", "probes"], "b")
    (old / "hops.csv").write_text("event\n")

    def again():
        imports(to, ["hops", "deliveries"], ["lines", "hops"], "new", window=(3, 7))

    shutil.copytree(old, to)
    again()
    before, after = contents(old), contents(to)
    assert "hops.csv" not in after
    ends, at = [], 0
    while True:
        shutil.rmtree(to)
        shutil.copytree(old, to)
        if not killer.kills(at, again):
            break
        found = contents(to)
        assert found in (before, after), at
        ends.append(found == after)
        again()
        assert contents(to) == after
        assert not list(to.glob(".*"))
        at += 1
    assert ends == sorted(ends)  # at first the old, from one moment on the new
    assert ends.count(False) > 5
    assert ends.count(True) > 15


def test_who_finishes_may_be_killed_too(tmp_path, killer):
    to = tmp_path / "traces"
    imports(to, ["publications"], ["lines"], "a")
    imports_new = lambda: imports(to, ["publications", "hops"], ["hops"], "new")  # noqa: E731
    at = 0
    while killer.kills(at, imports_new) and not (to / ".finishing").exists():
        at += 1
    assert (to / ".finishing").exists()
    for later in range(30):
        if not killer.kills(later, lambda: check_destination(to, [], replace_old=False)):
            break
    assert later > 3
    assert seen(to) == {
        "publications/part.parquet": "new",
        "hops/part.parquet": "new",
        "quarantine/hops/part.parquet": "new",
    }


def stopped(to, **steps):
    """Leave what an import leaves that is killed at its last step."""
    (to / ".finishing" / "tables").mkdir(parents=True)
    document = {"mark": mark_for(to), "drop": [], "move": {}, **steps}
    (to / ".finishing" / "steps.json").write_text(json.dumps(document))


def test_what_cannot_be_finished_is_told(tmp_path, monkeypatch):
    to = tmp_path / "traces"
    imports(to, ["probes"], [], "a")
    stopped(to, drop=["probes"])

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(shutil, "rmtree", refused)
    with pytest.raises(InvalidTracesError, match=r"stopped at its last step.*Permission denied"):
        check_destination(to, [], replace_old=False)


def test_an_import_at_work_is_left_alone(tmp_path):
    to = tmp_path / "traces"
    with incoming(to) as fresh:
        (fresh / "tables").mkdir()
        imports(to, ["probes"], [], "a")
        assert fresh.exists()
    assert not fresh.exists()
    with pytest.raises(InvalidTracesError, match="already has probes"):
        check_destination(to, ["probes"], replace_old=False)


def test_folders_that_no_import_made_are_left_alone(tmp_path):
    for name in (".incoming-mail", ".incoming-0123456789ab"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "letters").touch()
    with incoming(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [".incoming-mail"]
    (tmp_path / ".finishing").mkdir()
    (tmp_path / ".finishing" / "thesis").touch()
    with pytest.raises(InvalidTracesError, match=r"without steps\.json"), incoming(tmp_path):
        pass
    assert (tmp_path / ".finishing" / "thesis").exists()
