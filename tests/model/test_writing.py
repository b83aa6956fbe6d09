import errno
import fcntl
import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tidings.errors import InvalidInputError
from tidings.model import writing
from tidings.model.writing import (
    check_file,
    check_new_folder,
    keep_below,
    new_folder,
    write_file,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def fill(path, work, *, replace=False):
    """A new folder, filled by the work: a function of the place, or an error that it ends in."""
    with new_folder(path, replace=replace) as place:
        (place / "new").touch()
        if isinstance(work, BaseException):
            raise work
        work(place)


def nothing(_):
    pass


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def old(tmp_path):
    """A folder that is there already."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "old").write_text("old")
    return folder


def failing_replace(monkeypatch, *, at):
    """Let the renaming with these numbers fail, as on a full disk."""
    real, calls = os.replace, []

    def replace(source, target):
        calls.append(target)
        if len(calls) in at:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(source, target)

    monkeypatch.setattr(writing.os, "replace", replace)


def test_a_file_is_written_over_another_and_makes_its_folders(tmp_path):
    target = tmp_path / "deep" / "er" / "x.txt"
    write_file(target, b"one")
    write_file(target, b"two")
    assert target.read_bytes() == b"two"
    assert names(target.parent) == ["x.txt"]


@pytest.mark.parametrize(
    ("umask", "file", "folder"), [(0o022, 0o644, 0o755), (0o077, 0o600, 0o700)]
)
def test_the_umask_says_who_may_read(umask, file, folder, tmp_path):
    before = os.umask(umask)
    try:
        write_file(tmp_path / "x.txt", b"")
        with new_folder(tmp_path / "out") as place:
            (place / "y").touch()
    finally:
        os.umask(before)
    assert mode(tmp_path / "x.txt") == file
    assert mode(tmp_path / "out") == folder


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    write_file(tmp_path / "x.txt", b"old")
    failing_replace(monkeypatch, at={1})
    message = f"{tmp_path / 'x.txt'}: cannot be written: no space left on device"
    with pytest.raises(InvalidInputError, match=f"^{re.escape(message)}$"):
        write_file(tmp_path / "x.txt", b"new")
    assert (tmp_path / "x.txt").read_bytes() == b"old"
    assert names(tmp_path) == ["x.txt"]


def test_a_folder_appears_whole_and_only_at_the_end(tmp_path):
    target = tmp_path / "deep" / "out"
    with new_folder(target) as place:
        (place / "x").write_text("x")
        assert not target.exists()
        assert place.stat().st_dev == target.parent.stat().st_dev
    assert names(target) == ["x"]
    assert names(target.parent) == ["out"]


@pytest.mark.parametrize("crash", [KeyboardInterrupt(), ValueError(), ConnectionRefusedError()])
def test_a_crash_in_the_middle_leaves_nothing(crash, tmp_path):
    with pytest.raises(type(crash)):
        fill(tmp_path / "out", crash)
    assert names(tmp_path) == []


def test_a_crash_in_the_middle_leaves_the_old_folder(old):
    with pytest.raises(KeyboardInterrupt):
        fill(old, KeyboardInterrupt(), replace=True)
    assert names(old) == ["old"]
    assert names(old.parent) == ["out"]


def test_an_old_folder_is_replaced_only_when_asked(old):
    worked = []
    with pytest.raises(InvalidInputError, match="exists already; choose another place"):
        fill(old, worked.append)
    assert not worked
    assert names(old) == ["old"]
    with new_folder(old, replace=True) as place:
        (place / "new").touch()
        assert names(old) == ["old"]
    assert names(old) == ["new"]
    assert names(old.parent) == ["out"]


def test_a_folder_that_comes_up_meanwhile_is_not_touched(tmp_path):
    with pytest.raises(InvalidInputError, match="exists already"):
        # The system would rename over an empty one.
        fill(tmp_path / "out", lambda _: (tmp_path / "out").mkdir())
    assert names(tmp_path / "out") == []
    assert names(tmp_path) == ["out"]


@pytest.mark.parametrize("at", [{1}, {2}])
def test_an_exchange_that_fails_puts_the_old_folder_back(at, old, monkeypatch):
    failing_replace(monkeypatch, at=at)
    with pytest.raises(InvalidInputError, match="cannot be written: no space left"):
        fill(old, nothing, replace=True)
    assert names(old) == ["old"]
    assert names(old.parent) == ["out"]


def test_the_only_copy_of_an_old_folder_is_never_removed(old, monkeypatch):
    with monkeypatch.context() as patch:
        failing_replace(patch, at={2, 3, 4})  # neither the new in nor the old back
        with pytest.raises(InvalidInputError, match="cannot be written"):
            fill(old, nothing, replace=True)
    assert [path.read_text() for path in old.parent.rglob("*.old/old")] == ["old"]
    with pytest.raises(InvalidInputError, match="exists already"):
        fill(old, nothing)  # whoever comes next puts it back
    assert names(old) == ["old"]
    assert names(old.parent) == ["out"]


KILLED = """
import os, signal, sys
from pathlib import Path
from tidings.model import writing

os.fsync = os.rename = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
target = Path(sys.argv[1])
if sys.argv[2] == "file":
    writing.write_file(target, b"new")
with writing.new_folder(target) as place:
    (place / "x").touch()
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_process_left_is_cleared_away_by_the_next_one(kind, tmp_path):
    target = tmp_path / "out"
    done = subprocess.run([sys.executable, "-c", KILLED, str(target), kind], check=False)
    assert done.returncode == -9
    (left,) = names(tmp_path)
    assert left.startswith(".out.")
    (tmp_path / ".other.0123456789ab").touch()  # of another place
    (tmp_path / ".out.backup").touch()  # of somebody else
    write_file(target, b"new") if kind == "file" else fill(target, nothing)
    assert names(tmp_path) == [".other.0123456789ab", ".out.backup", "out"]


def test_what_somebody_is_writing_is_not_cleared_away(tmp_path):
    target = tmp_path / "out"
    with new_folder(target) as slow:
        with new_folder(target) as quick:
            (quick / "quick").touch()
        shutil.rmtree(target)
        (slow / "slow").touch()
    assert names(target) == ["slow"]


def test_a_draft_that_is_lost_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    """Another process sees it in that moment, and takes it for abandoned."""
    locked, lost = fcntl.flock, []

    def late(handle, how):
        if not lost:
            lost.extend(tmp_path.glob(".out.*"))
            lost[0].unlink()
        locked(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    write_file(tmp_path / "out", b"new")
    assert names(tmp_path) == ["out"]
    assert lost


def test_a_full_disk_while_filling_a_folder_is_an_error_of_input(tmp_path):
    with pytest.raises(InvalidInputError, match="out: cannot be written: no space left"):
        fill(tmp_path / "out", OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(InvalidInputError, match="out: cannot be written: no such file"):
        fill(tmp_path / "out", lambda place: (place / "missing" / "x").touch())
    assert names(tmp_path) == []


def test_an_error_that_is_not_about_writing_stays_what_it_is(tmp_path):
    with pytest.raises(FileNotFoundError):
        fill(tmp_path / "out", lambda _: (tmp_path / "elsewhere").read_text())
    assert names(tmp_path) == []


@pytest.mark.parametrize("write", [lambda path: write_file(path, b""), check_file])
def test_a_file_cannot_be_where_a_folder_or_a_pipe_is(write, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "plain").touch()
    (tmp_path / "folder").mkdir()
    before = names(tmp_path)
    for place, reason in {
        "folder": "is a directory",
        "pipe": "not a plain file",
        "plain/x": "is not a folder",
        "plain/x/y": "is not a folder",
    }.items():
        with pytest.raises(InvalidInputError, match=f"{place}: cannot be written: .*{reason}"):
            write(tmp_path / place)
    assert names(tmp_path) == before
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_a_folder_cannot_be_where_a_file_is(tmp_path):
    (tmp_path / "plain").touch()
    (tmp_path / "astray").symlink_to("nowhere")
    for place in ("plain", "plain/x", "astray", "astray/x"):
        with pytest.raises(InvalidInputError, match=r"cannot be written: .*not a"):
            check_new_folder(tmp_path / place, replace=True)
    assert names(tmp_path) == ["astray", "plain"]


def test_a_folder_that_takes_no_entries_is_refused_before_the_work(tmp_path, monkeypatch):
    # Nothing is forbidden to root, so that the answer of the system is played.
    monkeypatch.setattr(writing.os, "access", lambda path, _: path != tmp_path)
    for refuse in (check_file, check_new_folder, lambda path: write_file(path, b"")):
        with pytest.raises(InvalidInputError, match="cannot be written: no permission to write in"):
            refuse(tmp_path / "deep" / "x")
    with (
        pytest.raises(InvalidInputError, match="no permission to write"),
        new_folder(tmp_path / "x"),
    ):
        pytest.fail("the work began")
    assert names(tmp_path) == []


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no such file system")
def test_a_place_that_no_permission_forbids_but_that_takes_nothing_is_refused_before_the_work():
    for refuse in (check_file, check_new_folder):
        with pytest.raises(
            InvalidInputError, match=r"cannot be written: nothing can be created in /proc"
        ):
            refuse("/proc/nope/x")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_read_only_folder_is_refused(tmp_path):
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(InvalidInputError, match="cannot be written"):
            write_file(tmp_path / "x", b"")
        with (
            pytest.raises(InvalidInputError, match="cannot be written"),
            new_folder(tmp_path / "y"),
        ):
            pytest.fail("the work began")
    finally:
        tmp_path.chmod(0o755)


def test_checking_a_place_changes_nothing(tmp_path):
    check_file(tmp_path / "deep" / "x.txt")
    check_new_folder(tmp_path / "deep" / "out")
    assert names(tmp_path) == []


def test_checking_a_place_makes_nothing_with_a_name(tmp_path, monkeypatch):
    """A kill in that moment would leave it."""
    monkeypatch.delattr(writing.tempfile, "mkdtemp")
    check_file(tmp_path / "x")
    check_new_folder(tmp_path / "deep" / "x")


def test_what_comes_up_at_the_last_moment_is_kept(tmp_path, monkeypatch):
    """Somebody else's folder appears after the last look and before the exchange."""
    target = tmp_path / "out"
    exchange = writing._exchange

    def late(new, place, old):
        target.mkdir()
        (target / "theirs").touch()
        exchange(new, place, old)

    monkeypatch.setattr(writing, "_exchange", late)
    with pytest.raises(InvalidInputError):
        fill(target, nothing)
    assert names(target) == ["theirs"]
    assert names(tmp_path) == ["out"]


def test_the_root_of_all_folders_has_none_above_it():
    with pytest.raises(InvalidInputError, match="exists already"):
        check_new_folder("/")
    check_new_folder("/", replace=True)  # whether it is ours to replace is for others to say


def test_what_a_file_holds_is_on_the_disk_before_its_name(tmp_path, monkeypatch):
    """Else a power cut could leave the new name with nothing behind it."""
    steps = []

    def sync(handle):
        kind = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        steps.append((kind, os.fstat(handle).st_size if kind == "file" else None))

    replace = os.replace

    def rename(source, target):
        steps.append(("rename", Path(target).name))
        replace(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    write_file(tmp_path / "a.txt", b"seven b")
    assert steps == [("file", 7), ("rename", "a.txt"), ("folder", None)]
    steps.clear()
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.txt").write_bytes(b"xy")
    keep_below(tmp_path)
    assert sorted(steps, key=str) == [("file", 2), ("file", 7), ("folder", None), ("folder", None)]
