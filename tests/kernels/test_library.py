"""Machine code that is built ahead runs without numba, and does what compiled kernels do."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidings.kernels import building, library, paths
from tidings.kernels.compile import IS_COMPILING, Part

needs_compiler = pytest.mark.skipif(
    not (IS_COMPILING and building.can_build()), reason="nothing can be linked here"
)
# Tails of a line of three brokers from both ends, and what is inverted of them, as numbers.
PROGRAM = """
import json, sys
import numpy as np
from tidings.kernels.compile import HOW
from tidings.kernels.paths import carry_outwards, invert_paths

draws = np.random.default_rng(1)
arcs = np.array([0, 1, 3, 4]), np.array([0, 1, 2, 3]), np.array([1, 0, 2, 1])
hops = draws.random((4, 5, 3)) + 1j * draws.random((4, 5, 3))
tails, first = np.zeros((3, 5, 3), dtype=complex), np.zeros(3, dtype=np.int64)
carry_outwards(0, arcs, hops, (1, 5), tails, first)
inverted = np.zeros((2, 2, 4))
rules = hops[0, 1:], hops[1, 1:]
invert_paths(np.array([1, 0]), np.array([2, 1]), hops[:2], tails, first, (1, 5), rules, inverted)
print(json.dumps([HOW, "numba" in sys.modules, float(abs(tails).sum()), inverted.ravel().tolist()]))
"""


def _multiply_and_add(address, one, other):
    return address + one * other


@needs_compiler
def test_a_part_is_called_in_a_library(tmp_path):
    part = Part(_multiply_and_add)
    building.link([part], tmp_path / "one.so")
    linked = ctypes.CDLL(str(tmp_path / "one.so"))[part.name]
    linked.restype, linked.argtypes = ctypes.c_int64, [ctypes.c_int64] * 3
    assert linked(2**40, -3, 5) == 2**40 - 15
    assert [each.name for each in tmp_path.iterdir()] == ["one.so"]


def told(tmp_path, how):
    """What the program prints, with kernels run so."""
    env = os.environ | {"TIDINGS_KERNELS": how, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", PROGRAM]
    return json.loads(subprocess.run(command, env=env, capture_output=True, check=True).stdout)


@needs_compiler
def test_a_library_does_without_numba_what_plain_python_does(tmp_path):
    folder = tmp_path / "tidings" / "kernels" / "built"
    folder.mkdir(parents=True)
    for each in (folder, *folder.parents[:2]):
        each.chmod(0o700)
    building.link([paths.carry, paths.invert], folder / library.library_name())
    how, has_numba, total, inverted = told(tmp_path, "built")
    assert (how, has_numba) == ("built", False)
    how, has_numba, *plain = told(tmp_path, "plain")
    assert (how, has_numba) == ("plain", False)
    assert total > 1.0
    assert plain == [pytest.approx(total, rel=1e-12), pytest.approx(inverted, rel=1e-9)]


def test_without_a_library_kernels_are_compiled(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert library.find_library() is None
    library.kept_library().write_bytes(b"")
    assert library.find_library() == library.kept_library()


@needs_compiler
def test_what_cannot_be_linked_is_said_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "false")
    with pytest.raises(building.EngineError, match="could not link the kernels"):
        building.link([Part(_multiply_and_add)], tmp_path / "none.so")
    assert list(tmp_path.iterdir()) == []


def test_every_part_of_every_engine_is_built():
    parts = {part.name for part in building.every_part()}
    assert {
        "tidings_kernels_paths_carry",
        "tidings_petri_kernel_run_run",
        "tidings_simulation_kernel_parts_settle_part",
        "tidings_simulation_kernel_run_run",
    } <= parts
    sources = Path(building.__file__).parents[1].glob("*/*.py")
    written = sum(file.read_text().count("\n@apart\n") for file in sources)
    assert len([name for name in parts if name.startswith("tidings_")]) == written
