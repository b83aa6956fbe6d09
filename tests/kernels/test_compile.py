"""The cache of compiled kernels: kept between processes, forgotten when any kernel changes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import tidings
from tidings.kernels import compile as compiling
from tidings.kernels import library
from tidings.kernels.streams import uniform
from tidings.model import own_folders

PACKAGE = Path(tidings.__file__).parent
PROGRAM = """
from tidings.kernels import records, sampling
from tidings.kernels.streams import stream_states
from tidings.model.laws import Uniform
kinds, offsets, params = records.encode([Uniform(low_s=1.0, high_s=2.0)])
states = stream_states(0, 0, [("a", "b")])
print(sampling.draw(kinds[0], offsets[0], params, states, 0))
print(sum(sampling.draw.stats.cache_hits.values()))
"""


def run(source, cache):
    """The draw, and how often the cache served, in a new process."""
    env = {**os.environ, "PYTHONPATH": str(source), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, capture_output=True, text=True, check=True
    )
    value, hits = done.stdout.split()
    return float(value), int(hits)


@pytest.mark.slow
@pytest.mark.skipif(not compiling.IS_COMPILING, reason="nothing is compiled")
def test_the_cache_serves_until_a_called_module_changes(tmp_path):
    copy = tmp_path / "src" / "tidings"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    source, cache = copy.parent, tmp_path / "cache"
    first, hits = run(source, cache)
    assert hits == 0
    assert 1.0 <= first < 2.0
    assert run(source, cache) == (first, 1)
    # Now the draw's own file stays, and what it calls changes.
    streams = copy / "kernels" / "streams.py"
    text = streams.read_text()
    streams.write_text(text.replace("* 1.1102230246251565e-16", "* 0.0"))
    assert streams.read_text() != text
    assert run(source, cache) == (1.0, 0)


def test_the_hash_covers_the_kernels_of_an_engine_and_those_shared(tmp_path, monkeypatch):
    def hashed():
        library.source_hash.cache_clear()
        engines = ("simulation", "petri", compiling.engine_of(Path("/elsewhere/own_kernel.py")))
        return [library.source_hash(engine) for engine in engines]

    monkeypatch.setattr(library, "_PACKAGE", tmp_path)
    changes = {  # of the hashes of the simulator, of nets, and of kernels of somebody else
        "kernels/streams.py": [True, True, True],
        "model/delay_grid.py": [True, True, True],
        "simulation/kernel_calendar.py": [True, False, True],
        "petri/kernel_run.py": [False, True, True],
        "simulation/run.py": [False, False, False],
    }
    for file in changes:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("a = 1\n")
    try:
        for file, changed in changes.items():
            before = hashed()
            (tmp_path / file).write_text("a = 2\n")
            pairs = zip(before, hashed(), strict=True)
            assert [old != new for old, new in pairs] == changed, file
    finally:
        monkeypatch.undo()
        library.source_hash.cache_clear()


def test_an_engine_sees_no_kernels_of_another():
    """Else what it compiled would outlive a change of theirs."""
    files = [*PACKAGE.glob("*/kernel*.py"), *PACKAGE.glob("kernels/**/*.py")]
    assert {compiling.engine_of(file) for file in files} == {"kernels", "petri", "simulation"}
    for file in files:
        seen = re.findall(r"tidings\.(\w+)\.kernel\w*", file.read_text(encoding="utf-8"))
        assert set(seen) <= {compiling.engine_of(file)} - {"kernels"}, file


def test_an_unwritable_cache_folder_is_replaced(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setattr(own_folders.tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    compiling.kernel_folder.cache_clear()
    try:
        folder = compiling.kernel_folder("petri")
        assert folder.is_relative_to(tmp_path / "temporary")
        assert folder.is_dir()
    finally:
        compiling.kernel_folder.cache_clear()


@pytest.mark.skipif(not compiling.IS_COMPILING, reason="nothing is compiled")
def test_others_who_use_numba_are_left_alone():
    @numba.njit(cache=True)
    def foreign(x):
        return x + 1

    assert foreign.stats.cache_path != uniform.stats.cache_path
    assert os.environ.get("NUMBA_CACHE_DIR", "") == numba.config.CACHE_DIR
