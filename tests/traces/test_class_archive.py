"""Java starts from Spark's classes as they were kept, if only this user can have kept them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tidings.traces import class_archive
from tidings.traces.class_archive import archive_options
from tidings.traces.java import ensure_java


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a cache"))
    return tmp_path / "a cache"


@pytest.mark.parametrize(
    ("suffix", "option"), [("aot", "-XX:AOTCache="), ("jsa", "-XX:SharedArchiveFile=")]
)
def test_what_was_kept_is_used_by_the_java_that_kept_it(cache, suffix, option):
    home = Path("/of/a/java")
    assert archive_options(home) == ""
    kept = class_archive._file(home, suffix)
    assert kept.is_relative_to(cache)
    kept.write_bytes(b"")
    assert archive_options(home).startswith(f'"{option}{kept}"')
    assert archive_options(Path("/of/another")) == ""


def test_what_others_may_have_written_is_not_run(cache, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "temporary"))
    home = Path("/of/a/java")
    kept = class_archive._file(home, "jsa")
    kept.write_bytes(b"")
    kept.parent.chmod(0o777)
    assert archive_options(home) == ""


def test_a_file_that_java_cannot_use_harms_nothing(cache):
    """Nor does Java say anything on stdout, where a command's own output goes."""
    home = ensure_java()
    java = home / "bin" / "java"
    for suffix in ("aot", "jsa"):
        shutil.rmtree(cache, ignore_errors=True)
        class_archive._file(home, suffix).write_bytes(b"no archive at all")
        words = [each.strip('"') for each in archive_options(home).split('" ')]
        first, *others = [words[0], *words[1].split()]
        if suffix == "aot" and "AOTCache" not in _flags(java):
            continue  # such a Java makes no such file
        done = subprocess.run(
            [str(java), first, *others, "-version"], capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == b""


def _flags(java):
    command = [str(java), "-XX:+PrintFlagsFinal", "-version"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.nightly
def test_spark_starts_from_it(tmp_path):
    """All of it: what it compiles and keeps, other commands use."""
    tidings = [sys.executable, "-c", "from tidings.cli.main import main; main()"]
    environment = {"XDG_CACHE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [*tidings, "prepare"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (kept,) = (tmp_path / "tidings" / "spark").rglob("classes.*")
    script = (
        "from tidings.traces.session import spark_session\n"
        "with spark_session('local[1]', small=True) as spark:\n"
        "    bean = spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()\n"
        "    print(bean.getInputArguments())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert str(kept) in done.stdout
