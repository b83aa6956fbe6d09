from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest

from studies import mobile_onoff
from studies.mobile_onoff.scenarios import TABLE_3
from tidings.characterisation.fit.duration_laws import FAMILIES
from tidings.cli.commands import run

SAMPLES = Path(__file__).parents[3] / "docs" / "samples"


@pytest.mark.slow
def test_samples_of_connectivity_and_activity_end_to_end(
    spark, few_rows, tmp_path, monkeypatch, capsys
):
    shared = contextlib.nullcontext(spark)
    monkeypatch.setattr("tidings.cli.spark.started", lambda *_, **__: shared)
    monkeypatch.setattr(mobile_onoff, "TABLE_3", TABLE_3[-1:])
    folder = tmp_path / "out"
    command = ["reproduce", "mobile-onoff", "--runs", "0", "--json", "--to", str(folder)]
    command += ["--sessions", str(SAMPLES / "journeys.csv")]
    command += ["--activity", str(SAMPLES / "activity.csv")]
    assert run(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["antenna"] for row in found["antennas"]] == [
        "antenna 9 as quiet", "antenna 24 as busy",
    ]  # fmt: skip
    assert {row["path"] for row in found["by_law"]} == {"north - centre", "centre - north"}
    for row in found["by_law"]:  # the laws have the same means: they differ by spread alone
        assert row["as measured"] == pytest.approx(row["exponential"], rel=0.35)
    laws = [row for row in found["laws"] if row["path"] == "north - centre"]
    assert {row["state"] for row in laws} == {"connected", "away"}
    assert len(laws) == 2 * len(FAMILIES)
    exponential = json.loads(laws[0]["law"])["exponential"]  # as a system file has it
    assert exponential == pytest.approx(laws[0]["mean_s"], rel=1e-6)
    page = (folder / "reproduction.html").read_text(encoding="utf-8")
    assert "Real times connected and away: north - centre" in page
    assert (folder / "by_law.csv").exists()


def test_traces_that_are_none_are_refused_before_spark_starts(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tidings.cli.spark.started", lambda *_, **__: pytest.fail("Spark began"))
    (tmp_path / "empty").mkdir()
    for option in ("--sessions", "--activity"):
        for given, saw in (("empty", "got no table"), ("missing.csv", "got nothing")):
            command = ["reproduce", "mobile-onoff", option, str(tmp_path / given)]
            assert run([*command, "--to", str(tmp_path / "out")]) == 2
            assert saw in capsys.readouterr().err
