from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from studies.fault_tolerance import random_systems
from tidings.cli.commands import run


@pytest.fixture
def uptimes(tmp_path):
    """A made-up archive of ten nodes: hours up, minutes down, every node at its own times."""
    rng, rows = np.random.default_rng(4), []
    for node in range(10):
        now_s = int(rng.integers(100_000))
        for number in range(20):
            up = number % 2
            length_s = 1 + int(rng.weibull(0.7) * (40_000 if up else 4_000))
            rows.append((node, up, now_s, now_s + length_s, 0))
            now_s += length_s
    columns = ["node_id", "event_type", "event_start_time", "event_stop_time", "event_end_reason"]
    path = tmp_path / "small_events.parquet"
    pd.DataFrame(rows, columns=columns).to_parquet(path)
    return path


@pytest.mark.slow
def test_experiments_and_real_uptimes_end_to_end(uptimes, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(random_systems, "BROKERS", 5)  # all that the paper does, in small
    monkeypatch.setattr(random_systems, "SUBSCRIBERS", 20)
    folder = tmp_path / "out"
    short = ["--systems", "1", "--seeds", "2", "--duration", "2d", "--every", "6000s"]
    command = ["reproduce", "fault-tolerance", *short, "--machines", "low-end", "--json"]
    assert run([*command, "--uptimes", str(uptimes), "--to", str(folder)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert run([*command, "--to", str(tmp_path / "again")]) == 0
    assert json.loads(capsys.readouterr().out)["by_run"] == found["by_run"]  # by the seeds alone
    assert len(found["by_run"]) == 2 + 2 * (4 + 2)  # bypassing schemes by the paper's model too
    assert [(row["law"], row["scheme"]) for row in found["uptime_laws"]] == [
        (law, scheme)
        for law in ("exponential", "fitted", "as measured")
        for scheme in ("periodic", "buffering", "buffering")
    ]
    assert {row["outages"] for row in found["uptime_groups"]} == {"independent", "together"}
    page = (folder / "reproduction.html").read_text(encoding="utf-8")
    assert "Real times up and down: small" in page
    assert (folder / "uptime_laws.csv").exists()


def test_uptimes_that_are_none_are_refused_before_anything_is_run(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    for given in ("empty", "missing.parquet"):
        command = ["reproduce", "fault-tolerance", "--uptimes", str(tmp_path / given)]
        assert run([*command, "--to", str(tmp_path / "out")]) == 2
        assert "wants Parquet tables" in capsys.readouterr().err
        assert not (tmp_path / "out").exists()


def test_without_machines_there_must_be_uptimes(tmp_path, capsys):
    command = ["reproduce", "fault-tolerance", "--machines", "none", "--to", str(tmp_path / "out")]
    assert run(command) == 2
    assert "without --uptimes" in " ".join(capsys.readouterr().err.split())
