"""Files that a system names, opened by workers: they may lie nowhere else than for the driver."""

from __future__ import annotations

import pytest

from tidings.errors import InvalidInputError
from tidings.model.reading import load
from tidings.planning.evidence import foretell
from tidings.planning.scenarios import read_scenarios
from tidings.simulation.world import Window
from tidings.sweeps import what_if
from tidings.sweeps.replications import replicate_on
from tidings.sweeps.what_if import assess_all, summaries

SYSTEM = """
tidings: 1
lifetime: 1s
brokers: {hub: {service: {exponential: 3ms}}}
publishers: {p: {at: hub, every: {exponential: 1s}, content: [{p: 1, event: {topic: a}}]}}
subscribers:
  s: {at: hub, wants: {topic: a}, connectivity: {trace: given/trips.csv, service: 1ms}}
"""
ROWS = "state,at_ns\n" + "".join(
    f"{state},{at_s}000000000\n"
    for state, at_s in zip(["connected", "disconnected"] * 2, [0, 5, 8, 12], strict=True)
)


@pytest.fixture
def place(tmp_path):
    """A system with a trace of its own, and beside it somebody else's."""
    for name in ("given", "mine"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "trips.csv").write_text(ROWS)
    (tmp_path / "given" / "system.yaml").write_text(SYSTEM.replace("given/", f"{tmp_path}/given/"))
    return tmp_path


def exchange(place):
    (place / "given" / "trips.csv").unlink()
    (place / "given" / "trips.csv").symlink_to(place / "mine" / "trips.csv")


@pytest.mark.slow
def test_replications_open_no_file_that_was_exchanged_since(spark, place):
    system = load(place / "given" / "system.yaml")
    exchange(place)
    with pytest.raises(InvalidInputError, match="not below"):
        list(replicate_on(spark)(system, Window(warmup_s=0.0, end_s=5.0), 1, range(1)))


@pytest.mark.slow
def test_scenarios_open_no_file_elsewhere_nor_one_that_was_exchanged_since(
    spark, place, monkeypatch
):
    system = load(place / "given" / "system.yaml")
    before = foretell(system)
    monkeypatch.setattr(what_if, "foretell", lambda _: before)
    named = f"connectivity s {{trace: {place}/mine/trips.csv, service: 1ms}}"
    scenarios = place / "given" / "scenarios.yaml"
    scenarios.write_text(f"faster: speed hub x2\nelsewhere: '{named}'\n")
    asked = read_scenarios(scenarios)
    exchange(place)
    errors = {row["scenario"]: row["error"] for row in summaries(assess_all(spark, system, asked))}
    assert "not below" in errors["faster"]
    assert f"a file below {place / 'given'}" in errors["elsewhere"]
