"""Spark's classes as Java keeps them from run to run: read and checked once, not at every start.

To load and check its classes is more than half of what it costs to start Spark. Java can keep them
in a file (an AOT cache since Java 25, a class data archive before) that ``tidings prepare`` makes.
Java itself looks whether a file fits: of another Java, other jars or another collector it makes no
use.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pyspark
from pyspark import SparkContext

from tidings.errors import EngineError
from tidings.model.own_folders import cache_folder
from tidings.traces.java import ensure_java, inspect_java

_LEAST_JAVA_OF_AOT = 25
_KEEPS_WITHIN_S = 600.0
# What to write one and to use one is called, by what Java calls the file.
_OPTIONS = {
    "aot": ("-XX:AOTCacheOutput", "-XX:AOTCache"),
    "jsa": ("-XX:ArchiveClassesAtExit", "-XX:SharedArchiveFile"),
}
# Remarks on single classes would go to stdout, among a command's own output.
_QUIETLY = "-Xlog:disable -Xlog:all=error:stderr"


def archive_options(java_home: Path) -> str:
    """Give the options with which Java uses the archive; empty where none was made."""
    for suffix, (_, use) in _OPTIONS.items():
        if (file := _file(java_home, suffix)).is_file():
            return f'"{use}={file}" {_QUIETLY}'
    return ""


def make_archive(work: Callable[[str], None]) -> Path:
    """Make the archive of all classes that some work on Spark needs; gives its file.

    ``work`` is given further options for Java, starts Spark with them, and stops it.
    """
    if SparkContext._gateway is not None:
        raise EngineError("Spark runs in this process already; use a process of its own")
    home = ensure_java()
    java = inspect_java(home / "bin" / "java")
    suffix = "aot" if java is not None and java.version >= _LEAST_JAVA_OF_AOT else "jsa"
    file = _file(home, suffix)
    draft = file.with_name(f"draft-{os.getpid()}.{suffix}")
    try:
        work(f'"{_OPTIONS[suffix][0]}={draft}" {_QUIETLY}')
        _end_gently()  # Java writes it when it ends
        if not draft.is_file():
            raise EngineError(
                f"Java ({home}) did not keep Spark's classes; Spark starts without them, which "
                "takes some seconds more"
            )
        os.replace(draft, file)
    finally:
        draft.unlink(missing_ok=True)
    return file


def _end_gently() -> None:
    gateway = SparkContext._gateway
    assert gateway is not None
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout=_KEEPS_WITHIN_S)


def _file(java_home: Path, suffix: str) -> Path:
    made_of = f"{java_home.resolve()}\0{pyspark.__file__}\0{pyspark.__version__}"
    key = hashlib.blake2b(made_of.encode(), digest_size=12).hexdigest()
    return cache_folder("spark", key) / f"classes.{suffix}"
