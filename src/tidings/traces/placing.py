"""New tables put into a folder in one step: whoever is stopped leaves the old ones or the new ones.

What is new is built in a hidden folder, together with the steps that put it where it belongs. To
rename that folder is the one step that counts: from then on the new tables hold. All other steps
may be done over again from the first, so that whoever comes next finishes what was left.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tidings.errors import InvalidTracesError

FINISHING = ".finishing"
_INCOMING = ".incoming-"
_STEPS = "steps.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What goes and what moves where, all relative to the folder; nothing that goes is a target.

    What is new is found in ``FINISHING`` by the time.
    """

    drop: Sequence[str]
    move: Mapping[str, str]


@contextlib.contextmanager
def incoming(to: Path) -> Iterator[Path]:
    """A hidden folder to build in, which is gone afterwards; clears what the killed have left."""
    is_new = not to.exists()
    to.mkdir(parents=True, exist_ok=True)
    finish(to)
    folder = to / f"{_INCOMING}{uuid.uuid4().hex[:12]}"
    try:
        with contextlib.ExitStack() as held:
            with _locked(to):
                _clear_abandoned(to)
                folder.mkdir()
                held.enter_context(_locked(folder))
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if is_new:
            with contextlib.suppress(OSError):
                to.rmdir()  # where nothing came of it


def put_in_place(folder: Path, to: Path, steps: Callable[[], Steps]) -> None:
    """Make what was built in an incoming folder part of the folder it is in.

    The steps are asked for when nobody else can change the folder any more.
    """
    with _locked(to):
        _carry_out(to)
        (folder / _STEPS).write_text(json.dumps(asdict(steps())), encoding="utf-8")
        folder.rename(to / FINISHING)  # from here on the new holds, whatever happens
        _carry_out(to)


def finish(folder: Path) -> None:
    """Do what is left to do where somebody was stopped while new tables were put in place."""
    if not (folder / FINISHING).exists():
        return
    try:
        with _locked(folder):
            _carry_out(folder)
    except OSError as problem:
        raise InvalidTracesError(
            f"{folder}: an import was stopped at its last step, which cannot be finished "
            f"({problem.strerror}); wants a folder that can be written"
        ) from problem


def _carry_out(to: Path) -> None:
    place = to / FINISHING
    if (place / _STEPS).exists():  # else all was done and clearing up was stopped
        steps = Steps(**json.loads((place / _STEPS).read_text(encoding="utf-8")))
        for name in steps.drop:
            _remove(to / name)
        for source, target in steps.move.items():
            if os.path.lexists(to / source):
                _remove(to / target)
                (to / target).parent.mkdir(exist_ok=True)
                (to / source).rename(to / target)
        for name in (*steps.drop, *steps.move):
            with contextlib.suppress(OSError):  # not empty, or gone
                if (to / name).parent not in (to, place):
                    (to / name).parent.rmdir()
        (place / _STEPS).unlink()
    shutil.rmtree(place, ignore_errors=True)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _clear_abandoned(to: Path) -> None:
    """Remove what imports that were killed have left: those whose lock nobody holds."""
    for folder in to.glob(f"{_INCOMING}*"):
        with contextlib.suppress(BlockingIOError), _locked(folder, wait=False):
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Nobody else has the folder meanwhile; the lock ends with the process, however that ends."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(handle)
