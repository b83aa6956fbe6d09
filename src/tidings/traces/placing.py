"""New tables put into a folder in one step: whoever is stopped leaves the old ones or the new ones.

What is new is built in a hidden folder, together with the steps that put it where it belongs. To
rename that folder is the one step that counts: from then on the new tables hold. All other steps
may be done over again from the first, so that the next import finishes what was left. Who only
reads changes nothing: it is refused until then.

A folder may come from anybody, and so may steps in it. They are carried out only where they bear
a mark that an import of this user made for this folder (:mod:`tidings.traces.marks`), and only on
entries of the few folders that an import knows (:class:`_Rooms`), each opened without following a
link. So no step reaches elsewhere, whatever is exchanged between a check and its use.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import shutil
import stat
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tidings.errors import InvalidTracesError
from tidings.model import json_text
from tidings.model.plain_files import open_plain
from tidings.model.trace_tables import MANIFEST, TRACE_TABLES
from tidings.traces import marks

FINISHING = ".finishing"
QUARANTINE = "quarantine"
_INCOMING = ".incoming-"
_LONGEST_NAME = 255  # bytes, on the file systems there are
_ABANDONED = re.compile(re.escape(_INCOMING) + "[0-9a-f]{12}")
_STEPS = "steps.json"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_PARENTS = ("", QUARANTINE, FINISHING, f"{FINISHING}/tables", f"{FINISHING}/{QUARANTINE}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSteps:
    """What goes and what moves where, all relative to the folder; nothing that goes is a target.

    What is new is found in ``FINISHING`` by the time. All names are entries of the folder itself,
    of its quarantine, or of what is new: any other is refused.
    """

    drop: Sequence[str]
    move: Mapping[str, str]


@contextlib.contextmanager
def incoming(to: Path) -> Iterator[Path]:
    """Make a hidden folder to build in, removed afterwards; clear what killed imports have left."""
    is_new = not to.exists()
    to.mkdir(parents=True, exist_ok=True)
    finish(to)
    # Java may be at work in another folder, and takes what is before a colon for a scheme.
    folder = to.absolute() / f"{_INCOMING}{uuid.uuid4().hex[:12]}"
    try:
        with contextlib.ExitStack() as held:
            with _locked(to) as handle:
                _clear_abandoned(handle)
                os.mkdir(folder.name, dir_fd=handle)
                held.enter_context(_locked(folder))
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if is_new:
            with contextlib.suppress(OSError):
                to.rmdir()  # where nothing came of it


def put_in_place(folder: Path, to: Path, steps: Callable[[], FileSteps]) -> None:
    """Make what was built in an incoming folder part of the folder it is in.

    The steps are asked for when nobody else can change the folder any more.
    """
    with _locked(to) as handle:
        _carry_out(to, handle)
        todo = steps()
        with _Rooms(to, handle) as rooms:
            rooms.check(todo)
        mark = marks.make(handle)
        document = {"mark": mark, **asdict(todo)}
        (folder / _STEPS).write_text(json.dumps(document), encoding="utf-8")
        # From here on the new holds, whatever happens.
        os.rename(folder.name, FINISHING, src_dir_fd=handle, dst_dir_fd=handle)
        _carry_out(to, handle, mark)


def check_finished(folder: Path) -> None:
    """Refuse a folder whose tables are partly old and partly new; waits for who is at it."""
    steps = folder / FINISHING / _STEPS
    if not os.path.lexists(steps):
        return
    with contextlib.suppress(OSError), _locked(folder, alone=False):
        pass  # whoever was at it has ended
    if os.path.lexists(steps):
        raise InvalidTracesError(
            f"{folder}: an import was stopped at its last step ({FINISHING} is there), so "
            "that tables may be partly old and partly new; run that import again: it "
            "finishes the interrupted one first"
        )


def finish(folder: Path) -> None:
    """Do what is left to do where an import was stopped while new tables were put in place."""
    if not os.path.lexists(folder / FINISHING):
        return
    try:
        with _locked(folder) as handle:
            _carry_out(folder, handle)
    except OSError as problem:
        raise InvalidTracesError(
            f"{folder}: an import was stopped at its last step, which cannot be finished "
            f"({problem.strerror}); wants a folder that can be written"
        ) from problem


def _carry_out(to: Path, handle: int, own: str | None = None) -> None:
    """Do all steps that are left; those with the mark ``own`` are of this very import."""
    with _Rooms(to, handle) as rooms:
        mark, steps = rooms.steps(own)
        if steps is not None:  # else all was done and clearing up was stopped
            rooms.check(steps)
            for name in steps.drop:
                rooms.remove(name)
            for source, target in steps.move.items():
                rooms.move(source, target)
            with contextlib.suppress(OSError):  # not empty, or not there
                os.rmdir(QUARANTINE, dir_fd=handle)
            rooms.clear_up()
        try:
            os.rmdir(FINISHING, dir_fd=handle)
        except FileNotFoundError:
            pass
        except OSError:
            raise rooms.refusal(
                f"a {FINISHING} without {_STEPS}", "none, or an empty one"
            ) from None
        if mark:
            marks.forget(mark)


class _Rooms:
    """The folders that steps may speak of, opened once each and never through a link."""

    def __init__(self, to: Path, handle: int) -> None:
        self._to = to
        self._opened = {"": handle}
        self._held = contextlib.ExitStack()

    def __enter__(self) -> _Rooms:
        return self

    def __exit__(self, *_: object) -> None:
        self._held.close()

    def steps(self, own: str | None) -> tuple[str, FileSteps | None]:
        """Read the mark of what is left to do, and what that is; None where nothing is."""
        place = f"{FINISHING}/{_STEPS}"
        if not self._is_there(place):
            return "", None
        try:
            with open_plain(_STEPS, dir_fd=self._folder(FINISHING)) as file:
                document = json_text.parse(file.read())
            mark = document.pop("mark")
            steps = FileSteps(**document)
            "".join((*steps.drop, *steps.move, *steps.move.values()))  # all of them are texts
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            raise self.refusal(_STEPS, "the steps that an import writes") from None
        is_own = own is not None and mark == own
        if not is_own and not marks.is_known(mark, self._opened[""]):
            raise self.refusal(
                f"the mark {str(mark)[:40]!r}, which no import of this user made",
                "one that an import of this user made for this very folder",
            )
        return mark, steps

    def check(self, steps: FileSteps) -> None:
        """Refuse all steps where one of them speaks of anything else than an import does."""
        for path in (*steps.drop, *steps.move, *steps.move.values()):
            parent, _, name = path.rpartition("/")
            plain = name not in ("", ".", "..") and _is_file_name(name)
            ours = parent or name == MANIFEST or name.split(".")[0] in TRACE_TABLES
            if parent not in _PARENTS or not plain or not ours:
                raise self.refusal(path, f"a table, {MANIFEST}, or a name in {QUARANTINE}")
            self._folder(parent)
        for path in (*steps.drop, *steps.move.values()):
            if path.startswith(FINISHING) or steps.move.get(path) == path:
                raise self.refusal(f"{path}, which would be lost", "what is new to be moved out")

    def remove(self, path: str) -> None:
        """Remove a file, a link (never what it leads to) or a folder, if it is there."""
        if not self._is_there(path):
            return
        parent, _, name = path.rpartition("/")
        handle = self._folder(parent)
        if stat.S_ISDIR(os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=handle)
        else:
            os.unlink(name, dir_fd=handle)

    def move(self, source: str, target: str) -> None:
        """Put something in the place of another, if it is not there already."""
        if not self._is_there(source):
            return
        self.remove(target)
        (old, _, name), (new, _, called) = source.rpartition("/"), target.rpartition("/")
        if new == QUARANTINE and self._folder(new) is None:
            os.mkdir(QUARANTINE, dir_fd=self._opened[""])
        os.rename(name, called, src_dir_fd=self._folder(old), dst_dir_fd=self._folder(new))

    def clear_up(self) -> None:
        """Empty the folder of steps, these last: as long as they are there it is known as ours."""
        names = os.listdir(self._folder(FINISHING))
        for name in sorted(names, key=lambda each: each == _STEPS):
            self.remove(f"{FINISHING}/{name}")

    def _is_there(self, path: str) -> bool:
        parent, _, name = path.rpartition("/")
        handle = self._folder(parent)
        try:
            return handle is not None and bool(os.stat(name, dir_fd=handle, follow_symlinks=False))
        except FileNotFoundError:
            return False

    def _folder(self, path: str) -> int | None:
        """Open a folder, for as long as these are in use; None where there is none."""
        if path in self._opened:
            return self._opened[path]
        parent, _, name = path.rpartition("/")
        within = self._folder(parent)
        if within is None:
            return None
        try:
            handle = os.open(name, _FOLDER, dir_fd=within)
        except FileNotFoundError:
            return None
        except OSError as problem:
            if problem.errno in (errno.ELOOP, errno.ENOTDIR):
                raise self.refusal(f"{path}, a link or a file", "a folder of that name") from None
            raise
        self._held.callback(os.close, handle)
        self._opened[path] = handle
        return handle

    def refusal(self, saw: str, want: str) -> InvalidTracesError:
        return InvalidTracesError(
            f"{self._to}: the unfinished steps of an earlier import in {FINISHING} are "
            f"not safe to carry out: got {saw}; wants {want}. Nothing was changed; remove "
            f"{FINISHING} by hand, or import again to a new folder"
        )


def _is_file_name(name: str) -> bool:
    """Test whether a file can have this name: every character has bytes, few and none zero."""
    try:
        return b"\0" not in os.fsencode(name) and len(os.fsencode(name)) <= _LONGEST_NAME
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def _clear_abandoned(handle: int) -> None:
    """Remove what imports that were killed have left: those whose lock nobody holds."""
    for name in os.listdir(handle):
        if _ABANDONED.fullmatch(name):
            with contextlib.suppress(OSError), _locked(name, wait=False, dir_fd=handle):
                shutil.rmtree(name, ignore_errors=True, dir_fd=handle)


@contextlib.contextmanager
def _locked(
    folder: Path | str, *, wait: bool = True, alone: bool = True, dir_fd: int | None = None
) -> Iterator[int]:
    """Lock a folder against all others; the lock ends with the process, however that ends."""
    link = os.O_NOFOLLOW if dir_fd is not None else 0  # a link that was given is followed
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | link, dir_fd=dir_fd)
    try:
        kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
        fcntl.flock(handle, kind | (0 if wait else fcntl.LOCK_NB))
        yield handle
    finally:
        os.close(handle)
