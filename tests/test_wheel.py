"""A wheel in clean environments, on every Python that is found: no compiler, the same numbers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
INSTALLER = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
SIMULATE = ("simulate", str(ROOT / "examples/orders.yaml"), "--seed", "3", "--json")
PREDICT = ("predict", str(ROOT / "examples/orders.yaml"), "--json")


def python(version):
    """An interpreter of this version: pyenv has shims on the path for those that it cannot run."""
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        return sys.executable
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    return str(kept[-1]) if kept else shutil.which(f"python{version}")


def said(command, **env):
    """What a command prints as JSON, but for what it cost."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=os.environ | env,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder]
    subprocess.run([*map(str, pip), str(ROOT)], check=True, timeout=1800)
    return next(folder.glob("*.whl"))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("version", PYTHONS)
def test_a_wheel_alone_predicts_and_simulates_as_the_sources_do(wheel, version, tmp_path):
    interpreter = python(version)
    if interpreter is None:
        pytest.skip(f"NOT TRIED ON PYTHON {version}, which was not found")
    subprocess.run([interpreter, "-m", "venv", str(tmp_path / "venv")], check=True)
    own = tmp_path / "venv" / "bin"
    pip = [own / "python", "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel]
    subprocess.run([str(word) for word in pip], check=True, timeout=1800)
    site = next((tmp_path / "venv" / "lib").glob("python3*/site-packages"))
    assert not (site / "numba").exists()
    brought = [each for each in site.iterdir() if not each.name.startswith(INSTALLER)]
    files = [file for each in brought for file in (each, *each.rglob("*")) if file.is_file()]
    assert 100e6 < sum(file.stat().st_blocks * 512 for file in files) < 400e6  # with all bytecode
    clean = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": "", "TIDINGS_KERNELS": ""}
    here = Path(sys.executable).parent
    for command in (SIMULATE, PREDICT):
        alone = said([own / "tidings", *command], **clean)
        sources = said([here / "tidings", *command])
        assert alone["subscribers"]
        assert_alike(alone["subscribers"], sources["subscribers"])


def assert_alike(alone, sources):
    """The same, but for last digits, which differ between releases of Python's libraries."""
    if isinstance(alone, dict):
        assert alone.keys() == sources.keys()
        for name in alone:
            assert_alike(alone[name], sources[name])
    elif isinstance(alone, list):
        for one, other in zip(alone, sources, strict=True):
            assert_alike(one, other)
    elif isinstance(alone, float):
        assert alone == pytest.approx(sources, rel=1e-6, abs=1e-12)
    else:
        assert alone == sources
