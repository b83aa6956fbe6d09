"""Files opened as plain files: nothing else that a path may lead to is followed or waited for.

A folder from somebody else may hold links to files of yours, pipes that nobody writes to, devices
without end. What lies in a folder is opened only where it is a plain file itself. With ``follow``,
for places that were typed, a link to a plain file will do, and so will what a shell hands over
(``<(command)``, ``/dev/stdin``).
"""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path
from typing import BinaryIO

_HANDED_OVER = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
_LOG = "_spark_metadata"
_KINDS = {
    stat.S_IFLNK: "a link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def open_plain(
    path: str | os.PathLike[str], *, follow: bool = False, dir_fd: int | None = None
) -> BinaryIO:
    """Open a plain file for reading; raises :class:`OSError` with what is there instead.

    Looked at before it is opened, as to open a device may do something, and once more afterwards,
    when nobody can exchange it any more.
    """
    if follow and os.fspath(path).startswith(_HANDED_OVER):
        return open(path, "rb")
    _check_plain(path, os.stat(path, follow_symlinks=follow, dir_fd=dir_fd))
    link = 0 if follow else os.O_NOFOLLOW
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | link, dir_fd=dir_fd)
    try:
        _check_plain(path, os.fstat(handle))
    except OSError:
        os.close(handle)
        raise
    return open(handle, "rb")


def read_text(path: str | os.PathLike[str], *, follow: bool = False) -> str:
    """Read the text of a plain file in UTF-8."""
    with io.TextIOWrapper(open_plain(path, follow=follow), encoding="utf-8") as file:
        return file.read()


def check_below(folder: Path, *, follow: bool = False) -> None:
    """Refuse with :class:`OSError` a folder in which anything is neither file nor folder.

    For who reads folders by path, such as Spark. With ``follow``, links to plain files will do. A
    folder that a stream has written is refused too: Spark reads what its log lists, anywhere.
    """
    folders = [os.fspath(folder)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name == _LOG:
                    saw = "the log of a stream, which is not read (copy its data files elsewhere)"
                    raise OSError(errno.EINVAL, saw, entry.path)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                else:
                    _check_plain(entry.path, os.stat(entry.path, follow_symlinks=follow))


def _check_plain(path: str | os.PathLike[str], status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "a device")
        code = errno.EISDIR if kind == "a folder" else errno.EINVAL
        raise OSError(code, f"{kind}, not a plain file", os.fspath(path))
