"""A wheel in clean environments, on every Python that is found: no compiler, the same numbers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from same_bytes import alike, digest
from tidings.samples.loading import sample_names

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
INSTALLER = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
SIMULATE = ("simulate", str(ROOT / "examples/orders.yaml"), "--seed", "3", "--json")
# Made of sums of times, which Spark adds up in any order.
LEARNT = {"characterise", "characterise, measured", "characterise, parameters"}
SAID = []  # by the first Python, and those after it
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


@pytest.fixture(scope="module", params=PYTHONS)
def alone(request, wheel, tmp_path_factory):
    """A clean environment of one Python with the wheel, for what works on traces as well."""
    interpreter = python(request.param)
    if interpreter is None:
        pytest.skip(f"NOT TRIED ON PYTHON {request.param}, which was not found")
    folder = tmp_path_factory.mktemp(f"alone-{request.param}")
    subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    install(folder, wheel)
    return folder


def install(folder, what):
    pip = [folder / "bin/python", "-m", "pip", "install", "--quiet"]
    subprocess.run(
        [*map(str, (*pip, "-c", ROOT / "constraints.txt", what))], check=True, timeout=1800
    )


def clean(folder):
    return {"XDG_CACHE_HOME": str(folder / "cache"), "PYTHONPATH": "", "TIDINGS_KERNELS": ""}


@pytest.mark.nightly
@pytest.mark.slow
def test_a_wheel_alone_predicts_and_simulates_as_the_sources_do(alone):
    site = next((alone / "lib").glob("python3*/site-packages"))
    assert not (site / "numba").exists()
    brought = [each for each in site.iterdir() if not each.name.startswith(INSTALLER)]
    files = [file for each in brought for file in (each, *each.rglob("*")) if file.is_file()]
    assert 100e6 < sum(file.stat().st_blocks * 512 for file in files) < 400e6  # with all bytecode
    here = Path(sys.executable).parent
    for command in (SIMULATE, PREDICT):
        found = said([alone / "bin/tidings", *command], **clean(alone))["subscribers"]
        sources = said([here / "tidings", *command])["subscribers"]
        assert found
        # Last digits differ between releases of Python's libraries.
        assert alike(found, sources, 1e-6)


@pytest.mark.nightly
@pytest.mark.slow
def test_samples_come_with_a_wheel(alone):
    listed = said([alone / "bin/tidings", "samples", "--json"], **clean(alone))
    assert [each["name"] for each in listed] == list(sample_names())


@pytest.mark.nightly
@pytest.mark.slow
def test_every_python_gives_the_same_for_any_number_of_workers(alone, wheel):
    """To the last bit within one Python; 3.12 and later add up floats more exactly than 3.11."""
    install(alone, f"{wheel}[spark]")
    script = alone / "same_bytes.py"
    shutil.copy(ROOT / "tests/same_bytes.py", script)
    one, two, three = (
        said([alone / "bin/python", script, workers, "--spark"], **clean(alone))
        for workers in (1, 2, 3)
    )
    for other in (two, three):
        for name in one.keys() - LEARNT:
            assert digest(other[name]) == digest(one[name]), name
        assert alike(other, one, 1e-12)
    SAID.append(one)
    assert alike(one, SAID[0], 1e-9)
    for name in ("simulate, Spark", "generate", "record"):
        assert digest(one[name]) == digest(SAID[0][name]), name
