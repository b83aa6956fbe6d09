from __future__ import annotations

import json
import math

import pytest

from planning.small_systems import INVERTED, TWO, one_queue, two_brokers
from tidings.cli import whatif
from tidings.cli.commands import run
from tidings.errors import InvalidInputError
from tidings.model.outcome import LOSSES
from tidings.planning.evidence import foretell
from tidings.planning.scenarios import Scenario, assess, difference, read_scenarios


def scenario(*changes):
    return Scenario(name="one", changes=changes)


def test_a_faster_queue_before_and_after():
    """M/M/1: the response is exponential with rate μ − λ."""
    found = difference(one_queue(), scenario("speed hub x2"), foretell)
    (row,) = found.subscribers().to_dict("records")
    assert row["on_time_before"] == pytest.approx(1 - math.exp(-(10 - 5)), abs=INVERTED)
    assert row["on_time_after"] == pytest.approx(1 - math.exp(-(20 - 5)), abs=INVERTED)
    assert row["change"] == pytest.approx(row["on_time_after"] - row["on_time_before"], abs=1e-15)
    assert row["why"] == "fewer late"


def test_the_whole_is_shared_out_over_causes():
    found = difference(two_brokers(), scenario("reliability hub--east 0.5"), foretell)
    for total in found.total().values():
        assert math.fsum(total.values()) == pytest.approx(1.0, abs=1e-12)
    rows = found.subscribers().set_index("subscriber")
    assert rows.loc["far", "why"] == "more lost on a link"
    assert rows.loc["near", "why"] == "fewer late"  # less comes back over the link to its queue
    same = difference(two_brokers(), scenario("lifetime far 9s"), foretell).subscribers()
    assert same.set_index("subscriber").loc["near", ["change", "why"]].tolist() == [0.0, ""]
    lost = [f"{name}_after" for name in LOSSES]
    assert (rows["on_time_after"] + rows["late_after"] + rows[lost].sum(axis=1)).to_numpy() == (
        pytest.approx(1.0, abs=1e-12)
    )


def test_who_comes_and_who_goes_stands_on_one_side_only():
    found = difference(two_brokers(), scenario("remove far", "add 5 like near at east"), foretell)
    rows = found.subscribers().set_index("subscriber")
    assert math.isnan(rows.loc["far", "on_time_after"])
    assert math.isnan(rows.loc["5 like near at east", "on_time_before"])
    assert rows.loc["far", "why"] == rows.loc["5 like near at east", "why"] == ""


def test_a_scenario_that_cannot_be_is_told_in_its_row():
    system = two_brokers()
    before = foretell(system)
    bad = assess(system, scenario("remove nobody"), before)
    assert "nobody" in bad["error"]
    assert bad["subscribers"] == []
    good = assess(system, scenario("rate p x1.5"), before)
    assert good.keys() == bad.keys()
    assert good["error"] is None
    assert good["loser"] == "far"  # its events pass both queues
    assert good["bottleneck"] == "hub"
    assert good["utilisation"] == pytest.approx(0.1 * (1.5 * 5 + 0.9 * 1), rel=1e-12)


def test_scenarios_from_a_file(tmp_path):
    path = tmp_path / "scenarios.yaml"
    path.write_text("rush: [rate all x2, speed hub x2]\nslow: speed hub x0.9\n")
    assert [each.changes for each in read_scenarios(path)] == [
        ("rate all x2", "speed hub x2"),
        ("speed hub x0.9",),
    ]
    for text in ("", "[]", "a: []", "a: {b: 1}", "a: [1]", "a: [x]\na: [y]"):
        path.write_text(text)
        with pytest.raises(InvalidInputError):
            read_scenarios(path)


@pytest.fixture
def city(tmp_path):
    path = tmp_path / "city.yaml"
    path.write_text(TWO)
    return str(path)


def test_the_command_shows_before_and_after(city, capsys):
    assert run(["whatif", city, "rate p x1.5", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)["predicted"]
    assert document["changes"] == ["rate p x1.5"]
    assert len(document["subscribers"]) == 4
    assert run(["whatif", city, "rate p x1.5"]) == 0
    said = capsys.readouterr().out
    assert "What happens to wanted events" in said
    assert "more late" in said


def test_the_command_plays_both_systems_through(city, capsys):
    assert run(["whatif", city, "speed hub x2", "--simulate", "--json"]) == 0
    both = json.loads(capsys.readouterr().out)
    predicted, simulated = (both[each]["total"]["after"] for each in ("predicted", "simulated"))
    assert simulated["on_time"] == pytest.approx(predicted["on_time"], abs=0.01)


def test_the_command_takes_many_scenarios(city, tmp_path, capsys):
    path = tmp_path / "scenarios.yaml"
    path.write_text("rush: rate all x1.2\nwrong: remove nobody\n")
    assert run(["whatif", city, "--scenarios", str(path), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["scenarios"]
    assert [bool(row["error"]) for row in rows] == [False, True]
    assert run(["whatif", city, "--scenarios", str(path)]) == 0
    assert "nobody" in capsys.readouterr().err
    path.write_text("wrong: remove nobody\n")
    assert run(["whatif", city, "--scenarios", str(path)]) == 2


def test_the_command_tells_scenarios_in_their_order_wherever_they_were_predicted(
    city, tmp_path, monkeypatch, capsys
):
    path = tmp_path / "scenarios.yaml"
    path.write_text("b: rate all x1.2\na: remove nobody\nc: speed all x2\n")
    command = ["whatif", city, "--scenarios", str(path), "--json"]
    assert run(command) == 0
    alone = json.loads(capsys.readouterr().out)
    assert [row["scenario"] for row in alone["scenarios"]] == ["b", "a", "c"]

    def elsewhere(system, scenarios, *_):
        return list(reversed(whatif._one_by_one(system, scenarios)))

    monkeypatch.setattr(whatif, "ON_SPARK_FROM", 0)
    monkeypatch.setattr(whatif, "_on_spark", elsewhere)
    assert run(command) == 0
    told = json.loads(capsys.readouterr().out)["scenarios"]
    assert [row["scenario"] for row in told] == ["b", "a", "c"]
    assert [set(row) for row in told] == [set(row) for row in alone["scenarios"]]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["rate p x2", "--scenarios", "x.yaml"],
        ["--scenarios", "x.yaml", "--simulate"],
        ["rate p x2", "--master", "local[2]"],
        ["rate p x2 x3"],
        ["--scenarios", "nowhere.yaml"],
    ],
)
def test_what_makes_no_sense_is_refused(city, arguments, capsys):
    assert run(["whatif", city, *arguments]) == 2
    assert "Traceback" not in capsys.readouterr().err
