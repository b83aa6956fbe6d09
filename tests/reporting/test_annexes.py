from __future__ import annotations

import json

import pytest

from planning.small_systems import TWO, one_queue
from tidings.cli.commands import run
from tidings.errors import InvalidInputError
from tidings.model import reading
from tidings.planning.budget import explain
from tidings.planning.evidence import Target, foretell, weigh
from tidings.planning.scenarios import Scenario, difference
from tidings.prediction.predict import predict
from tidings.reporting.annexes import grid, load_annex
from tidings.reporting.budgets import remedy_table
from tidings.reporting.page_data import _links
from tidings.reporting.terminal import Column, FittingTable, link_table


def saved(tmp_path, document):
    path = tmp_path / "annex.json"
    path.write_text(json.dumps(document))
    return path


def test_a_table_of_the_terminal_is_one_of_a_page():
    table = FittingTable(
        title="t",
        columns=[Column(title="who", cells=["a", "b"], left=True), Column(title="n", cells="12")],
        caption="c",
    )
    found = grid(table)
    assert (found.columns, found.rows, found.names) == (("who", "n"), (("a", "1"), ("b", "2")), 1)


def test_a_budget_and_a_what_if(tmp_path):
    budget = load_annex(saved(tmp_path, explain(one_queue()).to_document()))
    assert [each.title.split()[0] for each in budget.exhibits] == ["Do:", "On", "Worst"]
    assert any(row[0] == "speed 'hub' x2" for row in budget.exhibits[0].rows)
    scenario = Scenario(name="x", changes=("speed hub x2",))
    found = difference(one_queue(), scenario, foretell).to_document()
    assert load_annex(saved(tmp_path, {"predicted": found})).title == "What if"


def test_only_what_is_not_proven_is_said_to_be_so():
    proven = {"change": "rate 'sale' 5/s", "on_time": 0.9, "gain": 0.1, "error": 0.01}
    assumed = {**proven, "change": "speed 'hub' x2", "error": None}
    both = remedy_table({"target": None, "remedies": [proven, assumed]}, 2)
    one = remedy_table({"target": None, "remedies": [proven, assumed]}, 1)
    assert "not proven" in both.caption
    assert one.caption == ""
    assert list(both.columns[0].cells) == ["rate 'sale' 5/s", "speed 'hub' x2"]


def test_how_a_system_stands_to_its_targets(tmp_path):
    evidence = weigh(one_queue(), Target(share=0.999))
    document = {"predicted": evidence.predicted.to_document(), "simulated": None}
    found = load_annex(saved(tmp_path, {**document, "verdict": evidence.verdict}))
    (shown,) = found.exhibits
    assert (found.title, shown.title) == ("Targets", "Targets not met")
    assert [row[0] for row in shown.rows] == ["predicted"]


@pytest.mark.parametrize("document", [{}, [], {"remedies": []}, {"predicted": {}}, 3])
def test_what_is_none_of_these_is_refused(tmp_path, document):
    with pytest.raises(InvalidInputError):
        load_annex(saved(tmp_path, document))
    with pytest.raises(InvalidInputError, match="cannot be read as JSON"):
        load_annex(tmp_path / "nowhere.json")


def test_a_number_beyond_all_floats_is_refused(tmp_path):
    document = explain(one_queue(), remedies=False).to_document()
    document["on_time"] = document["subscribers"][0]["on_time"] = 10**400
    with pytest.raises(InvalidInputError, match="missing or wrong"):
        load_annex(saved(tmp_path, document))


def test_the_report_shows_what_was_planned(tmp_path, capsys):
    city, predicted, page = (str(tmp_path / name) for name in ("c.yaml", "p.json", "r.html"))
    (tmp_path / "c.yaml").write_text(TWO)
    assert run(["predict", city, "--by", "theory", "--output", predicted]) == 0
    capsys.readouterr()
    plans = []
    for number, arguments in enumerate(
        [
            ["plan", "capacity", city, "--broker", "all", "--target", "0.5", "--no-simulate"],
            ["plan", "capacity", city, "--target", "0.999", "--no-simulate"],
            ["plan", "admission", city, "--like", "near", "--target", "0.5", "--no-simulate"],
            ["plan", "deadline", city, "--at", "0.5", "--no-simulate"],
            ["plan", "targets", city, "--target", "0.5", "--no-simulate"],
            ["plan", "homes", city, "--who", "near", "--target", "0.5", "--no-simulate"],
        ]
    ):
        assert run([*arguments, "--json"]) in (0, 1)
        path = tmp_path / f"{number}.json"
        path.write_text(capsys.readouterr().out)
        plans += ["--with", str(path)]
    assert run(["report", city, predicted, *plans, "--to", page]) == 0
    text = (tmp_path / "r.html").read_text()
    for title in (
        "Capacity",
        "Targets",
        "Admission",
        "Deadlines that can be promised",
        "Home brokers",
    ):
        assert title in text


@pytest.mark.parametrize("command", ["predict", "report"])
def test_a_way_that_carries_nothing_shows_no_loss(command):
    """Everything is published at the hub: from the edge to it goes nothing, over a lossy link."""
    text = """
tidings: 1
lifetime: 1s
brokers: {hub: {}, edge: {}}
links: [{between: [hub, edge], reliability: 0.9}]
publishers: {p: {at: hub, every: {exponential: 1s}, content: {event: {topic: a}}}}
subscribers: {s: {at: edge, wants: {}}}
"""
    system = reading.loads(text)
    outcome = predict(system, by="theory")
    if command == "predict":
        cells = {each.title: each.cells for each in link_table(outcome).columns}
        assert list(zip(cells["from"], cells["lost"], strict=True)) == [
            ("hub", "10.0 %"),
            ("edge", "–"),
        ]
    else:
        (link,) = _links(system, outcome)
        assert [way["lost"] for way in link["ways"]] == [pytest.approx(0.1), None]
