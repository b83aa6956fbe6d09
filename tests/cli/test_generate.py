"""Traces made by the command: counted, readable again, and what makes no sense refused at once."""

from __future__ import annotations

import contextlib
import json

import pytest

from tidings.cli.commands import run
from tidings.traces.reading import read_traces

TEXT = """
tidings: 1
brokers: {hub: {service: {exponential: 3ms} STATION}}
publishers:
  ticker: {at: hub, every: {exponential: 10ms}, content: [{p: 1, event: {topic: stock}}]}
subscribers:
  alice: {at: hub, wants: {topic: stock}, stays: {exponential: 1s}, away: {exponential: 1s}}
"""


@pytest.fixture
def city(tmp_path):
    path = tmp_path / "city.yaml"
    path.write_text(TEXT.replace(" STATION", ""))
    return str(path)


@pytest.mark.slow
def test_tables_are_written_and_counted(spark, few_rows, city, tmp_path, capsys, monkeypatch):
    shared = contextlib.nullcontext(spark)
    monkeypatch.setattr("tidings.cli.spark.started", lambda *_, **__: shared)
    to = tmp_path / "traces"
    asked = ["generate", city, "--into", str(to), "--duration", "20s", "--probes", "5",
             "--samples", "1s", "--ahead", "hub=5ms", "--ahead", "alice=-2ms"]  # fmt: skip
    assert run([*asked, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["until_ns"] - said["from_ns"], said["seed"]) == (20 * 10**9, 1)
    rows = said["rows"]
    assert rows["publications"] == pytest.approx(2000, abs=5 * 2000**0.5)
    assert (rows["hops"], rows["probes"]) == (rows["publications"], 10)
    assert 0 < rows["deliveries"] < rows["publications"]  # she is not always there
    assert 17 <= rows["utilisation"] <= 20
    found = read_traces(spark, to)
    assert {name: frame.count() for name, frame in found.tables.items()} == rows
    assert run(asked) == 2  # the folder is there already
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "code", "said"),
    [
        (["--events", "5", "--duration", "1h"], 2, "give one of them"),
        (["--ahead", "hub"], 2, "wants NAME=TIME"),
        (["--ahead", "nobody=5ms"], 2, "names 'nobody'"),
        (["--duration", "0s"], 2, "is not a time above 0"),
        (["--duration", "1us"], 2, "less than one event would be published"),
        (["--dirt", "0.5"], 2, "0.3"),
    ],
)
def test_what_makes_no_sense_is_refused_before_spark_starts(
    city, tmp_path, capsys, more, code, said
):
    assert run(["generate", city, "--into", str(tmp_path / "traces"), *more]) == code
    assert said in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not (tmp_path / "traces").exists()


def test_what_is_not_planted_is_refused_by_name(tmp_path, capsys):
    path = tmp_path / "city.yaml"
    path.write_text(TEXT.replace(" STATION", ", cpu: {service: 1ms}"))
    assert run(["generate", str(path), "--into", str(tmp_path / "traces")]) == 3
    assert "several stations in a broker: brokers.hub.cpu" in capsys.readouterr().err
