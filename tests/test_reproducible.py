"""The same seed gives the same bytes, however the work is shared out.

What is simulated, predicted, recorded and generated is the same to the last bit for any number of
threads, processes and tasks of Spark. What is learnt from traces is the same to 1e-12: Spark adds
up times in any order. Another kind of processor may have other last digits: nothing is compared
with what another machine said. Between Pythons: tests/test_wheel.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import same_bytes
from same_bytes import alike, answers, answers_on_spark, digest


def digests(documents):
    return {name: digest(each) for name, each in documents.items()}


@pytest.fixture(scope="module")
def here():
    """With as many threads as there are cores."""
    return answers()


@pytest.mark.slow
def test_any_number_of_threads_gives_the_same_bytes(here, monkeypatch):
    expected = digests(here)
    assert len({*expected.values()}) == len(expected) == 6
    for workers in (1, 3):
        monkeypatch.setattr("tidings.kernels.replications.usable_cores", lambda n=workers: n)
        assert digests(answers()) == expected, workers


@pytest.mark.slow
def test_another_process_gives_the_same_bytes(here):
    """One with another order of sets, and libraries that may use one thread."""
    env = {"PYTHONHASHSEED": "77", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, same_bytes.__file__, "1"]
    done = subprocess.run(
        command, env=os.environ | env, capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr
    assert digests(json.loads(done.stdout)) == digests(here)


@pytest.mark.slow
def test_any_number_of_partitions_gives_the_same(spark, here, tmp_path):
    found = []
    for partitions in (1, 3):
        spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
        try:
            found.append(answers_on_spark(spark, tmp_path / "traces"))
        finally:
            spark.conf.unset("spark.sql.shuffle.partitions")
    first, other = found
    assert first["simulate, Spark"] == here["simulate"]
    assert min(map(len, first["generate"].values())) > 2
    for name in ("simulate, Spark", "generate"):
        assert digest(other[name]) == digest(first[name]), name
    assert alike(other, first, 1e-12)


def test_a_last_digit_makes_another_digest():
    assert digest({"a": 0.1 + 0.2}) != digest({"a": 0.3})
    assert alike({"a": 0.1 + 0.2}, {"a": 0.3}, 1e-12)
    assert not alike({"a": 0.3 + 1e-9}, {"a": 0.3}, 1e-12)
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
