"""Catching up as a person reads it: in a terminal, as a section of a page, as JSON."""

from __future__ import annotations

import json
import re

import pytest

from tidings.cli.commands import run
from tidings.reporting.annexes import load_annex
from tidings.reporting.catch_ups import sentences, text_curve
from tidings.reporting.study_page import section_parts

SHOP = """
tidings: 1
lifetime: 1s
brokers: {hub: {}}
publishers: {shop: {at: hub, every: {deterministic: 12.5ms}, content: {event: {topic: orders}}}}
subscribers:
  orders: {at: hub, wants: {topic: orders}, processing: {deterministic: TIME}, consumers: 1}
"""


@pytest.fixture
def asked(tmp_path, capsys):
    def ask(*words, time="10ms"):
        path = tmp_path / "shop.yaml"
        path.write_text(SHOP.replace("TIME", time))
        code = run(["catchup", str(path), *words])
        return code, capsys.readouterr()

    return ask


def test_the_answer_in_words(asked):
    code, said = asked("--stopped", "orders=6s", "--replications", "2")
    text = " ".join(said.out.split())
    assert code == 0
    assert re.search(r"Caught up after 23\.9\S* ± \S+ s\. From a stop of 6 s", text)
    assert "gone the first time that no more than 0 events wait, the usual number" in text
    assert re.search(r"Check: backlog / \(capacity - rate\) gives (24|23\.9\S*) s", text)
    assert re.search(r"Late: 2,00\d ± \d+ of the events", text)
    assert "Events waiting" in text


def test_a_queue_that_never_catches_up(asked):
    code, said = asked("--backlog", "orders=100", time="13ms")
    text = " ".join(said.out.split())
    assert code == 0
    assert text.startswith("Never caught up: consumer group 'orders' is offered 80 events/s and")
    assert "can handle 76.9 events/s" in text


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--backlog", "orders=5", "--stopped", "orders=5s"),
        ("--backlog", "120000"),
        ("--backlog", "orders=many"),
        ("--backlog", "orders=0"),
        ("--stopped", "orders=-1s"),
        ("--stopped", "=1s"),
    ],
)
def test_a_state_that_cannot_be_read(asked, words):
    assert asked(*words)[0] == 2


def test_a_page_shows_the_curve(asked, tmp_path):
    _, said = asked("--stopped", "orders=6s", "--replications", "2", "--json")
    document = json.loads(said.out)
    assert len(document["curve"]) == 61
    path = tmp_path / "annex.json"
    path.write_text(said.out)
    section = load_annex(path)
    assert section.title == "Catching up"
    assert section.words.startswith("Caught up after 23.9")
    parts = section_parts(section)
    assert [grid.title for grid in parts["grids"]] == ["Published from the stop until then"]
    (plot,) = parts["folds"][0]["plots"]
    assert plot["svg"].count('class="line') == 3


def test_what_is_not_caught_up_says_how_often():
    answer = {"what": "broker", "queue": "b", "from": "a stop of 1 s", "rate_per_s": 5.0}
    answer |= {"capacity_per_s": 9.0, "replications": 20, "caught_up": 17, "backlog": 50.0}
    answer |= {"usual_backlog": 1, "stopped_s": 1.0, "waited_s": 90.0}
    (said,) = sentences({"catch_up": answer, "subscribers": [], "curve": []})
    assert said.startswith("Not caught up: ")
    assert "3 of 20 replications still had more than 1 event waiting 90 s later" in said


def test_the_text_curve_falls_from_the_top_left():
    points = [{"after_s": float(t), "backlog": 100.0 - 10 * t} for t in range(11)]
    title, *rows, axis = text_curve({"curve": points}).splitlines()
    assert title == "Events waiting"
    assert [len(row.rstrip()) for row in rows] == sorted(len(row.rstrip()) for row in rows)
    assert rows[0].startswith("      100 █")
    assert axis.split() == ["0", "s", "10", "s"]
