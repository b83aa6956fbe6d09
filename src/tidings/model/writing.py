"""Files and folders that appear whole or not at all.

What is new is built aside, under a name of its own in the same folder (so on the same file system),
and then put in place. What a file holds is on the disk before its name is. What cannot be written
is an error of the input: the place was given.

Who builds locks what is built. So whoever writes to a place next knows the drafts of those that
were killed, which nobody locks any more, and clears them away.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tidings.errors import InvalidInputError

DISK = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO}
_RANDOM = re.compile(r"[0-9a-f]{12}")  # how the names of drafts end
_OLD = ".old"  # and of what a folder is about to replace
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK


def write_file(path: str | os.PathLike[str], data: bytes | Iterable[bytes]) -> None:
    """Write a file whole or not at all, over an older one; the umask says who may read it."""
    pieces = [data] if isinstance(data, bytes) else data
    check_file(path)
    target = Path(path).absolute()
    with _refusals(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        with _draft(target, _made_file) as (draft, handle):
            try:
                with open(handle, "wb", closefd=False) as stream:
                    stream.writelines(pieces)
                os.fsync(handle)  # a name must not outlive a power cut without its data
                os.replace(draft, target)
                keep_on_disk(target.parent)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise


def keep_on_disk(path: Path) -> None:
    """Wait until a file, or a folder's list of names, is on the disk: it outlives a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def keep_below(folder: Path) -> None:
    """Wait until all that is in a folder is on the disk, so that it can be put in place."""
    for place, _, files in os.walk(folder):
        for name in files:
            keep_on_disk(Path(place) / name)
        keep_on_disk(Path(place))


@contextmanager
def new_folder(path: str | os.PathLike[str], *, replace: bool = False) -> Iterator[Path]:
    """Make an empty folder to fill; it becomes the folder at ``path`` when the block ends well.

    When it does not, nothing appears. With ``replace`` an older folder is put back if the exchange
    fails, and removed after it.
    """
    check_new_folder(path, replace=replace)
    target = Path(path).absolute()
    with ExitStack() as held:
        with _refusals(path):
            target.parent.mkdir(parents=True, exist_ok=True)
            new, _ = held.enter_context(_draft(target, _made_folder))
        old = new.with_name(f"{new.name}{_OLD}")
        try:
            try:
                yield new
            except OSError as error:
                if _is_of_disk(error, new):
                    raise refusal(path, error) from error
                raise  # the block may do more than write
            check_new_folder(path, replace=replace)  # it may have come up meanwhile
            with _refusals(path):
                _exchange(new, target, old if replace else None)
        finally:
            _clear(old, target)
            shutil.rmtree(new, ignore_errors=True)


def _clear(old: Path, target: Path) -> None:
    """Remove an older folder, or put it back where it is the only copy."""
    if os.path.lexists(old) and not os.path.lexists(target):
        with suppress(OSError):
            os.replace(old, target)
    if os.path.lexists(target):
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _draft(target: Path, make: Callable[[Path], int]) -> Iterator[tuple[Path, int]]:
    """Make a draft beside its target, opened and locked; first clear away abandoned ones."""
    is_folder = make is _made_folder
    _clear_abandoned(target, is_folder=is_folder)
    while True:
        draft = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
        handle = make(draft)
        with suppress(OSError):  # where nothing can be locked, nothing is cleared away
            fcntl.flock(handle, fcntl.LOCK_EX)
        if os.path.lexists(draft):
            break
        os.close(handle)  # before it was locked, somebody took it for abandoned
    try:
        yield draft, handle
    finally:
        os.close(handle)


def _made_file(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)


def _made_folder(path: Path) -> int:
    path.mkdir()
    return os.open(path, _FOLDER)


def _clear_abandoned(target: Path, *, is_folder: bool) -> None:
    """Remove the drafts of processes that were killed: those that nobody locks."""
    begin = f".{target.name}."
    for name in [each for each in os.listdir(target.parent) if each.startswith(begin)]:
        path, rest = target.with_name(name), name.removeprefix(begin)
        if is_folder and rest.endswith(_OLD) and _RANDOM.fullmatch(rest.removesuffix(_OLD)):
            _clear(path, target)
        elif _RANDOM.fullmatch(rest):
            with suppress(OSError), _locked(path, _FOLDER if is_folder else _FILE):
                shutil.rmtree(path) if is_folder else os.unlink(path)


@contextmanager
def _locked(path: Path, how: int) -> Iterator[None]:
    """Lock a file or folder that is there, if nobody else does."""
    handle = os.open(path, how)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _exchange(new: Path, target: Path, old: Path | None) -> None:
    """Put a new folder in place; an older one becomes ``old``, or is refused where that is None."""
    if old is None:
        os.rename(new, target)  # fails where there is anything but an empty folder
        return
    try:
        if os.path.lexists(target):
            os.replace(target, old)
        os.replace(new, target)
    except BaseException:
        if os.path.lexists(old) and not os.path.lexists(target):
            os.replace(old, target)
        raise


def check_file(path: str | os.PathLike[str]) -> None:
    """Refuse a place where a file cannot be written, before long work; changes nothing."""
    target = Path(path)
    with _refusals(path):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():  # a device or pipe must not be replaced
            raise OSError(errno.EINVAL, "not a plain file")
        _check_parent(target)


def check_new_folder(path: str | os.PathLike[str], *, replace: bool = False) -> None:
    """Refuse a place where a folder cannot be made, before long work; changes nothing."""
    target = Path(path)
    if os.path.lexists(target) and not replace:
        raise InvalidInputError(f"{path} exists already; choose another place or remove it")
    with _refusals(path):
        if os.path.lexists(target) and not target.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        _check_parent(target)


def check_place(path: str | os.PathLike[str], *, suffixes: tuple[str, ...], what: str) -> None:
    """Refuse a place where ``what`` cannot go, a file of these suffixes or a new folder."""
    suffix = Path(path).suffix
    if suffix in suffixes:
        check_file(path)
    elif suffix:
        raise InvalidInputError(f"{path}: {what} goes to a {suffixes[0]} file or a folder")
    else:
        check_new_folder(path)


def _check_parent(target: Path) -> None:
    """Check that the nearest folder above that exists takes new entries: one is tried."""
    parents = target.absolute().parents
    nearest = next((each for each in parents if os.path.lexists(each)), target)
    if not nearest.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{nearest} is not a folder")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"no permission to write in {nearest}")
    # Permissions do not tell of places that are no real folders (/proc) or of full disks.
    try:
        _try_entry(nearest)
    except OSError as error:
        raise OSError(error.errno, f"nothing can be created in {nearest}") from error


def _try_entry(folder: Path) -> None:
    """Make something in a folder, and remove it; without a name, so that a kill leaves nothing."""
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600))
    except (OSError, AttributeError):  # not on every system, nor in every folder
        os.rmdir(tempfile.mkdtemp(prefix=".tidings-", dir=folder))


@contextmanager
def _refusals(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what the system says against writing into an error of the input."""
    try:
        yield
    except OSError as error:
        raise refusal(path, error) from error


def refusal(path: str | os.PathLike[str], error: OSError) -> InvalidInputError:
    """Say that something cannot be written, and why."""
    reason = error.strerror or str(error)
    return InvalidInputError(f"{path}: cannot be written: {reason[:1].lower()}{reason[1:]}")


def _is_of_disk(error: OSError, scratch: Path) -> bool:
    names = (error.filename, error.filename2)
    inside = any(isinstance(name, str) and Path(name).is_relative_to(scratch) for name in names)
    return inside or error.errno in DISK
