"""What pipelines are shown: any name, any verdict."""

from __future__ import annotations

from xml.etree import ElementTree

from tidings.reporting.gates import gate_table, junit, markdown, sentences

STANDING = {"on_time": 0.9}
WAITING = [{"cause": "waiting", "place": "b", "words": "waiting at b", "cost": 0.3, "error": 0.02}]


def row(name, verdict="misses", **other):
    given = {"broker": "b", "count": 1.0, "target": 0.9, "on_time": 0.6, "error": 0.01}
    return {"subscriber": name, "verdict": verdict, "causes": WAITING, **given, **other}


def document(*rows, verdict="misses", remedy=None):
    return {
        "verdict": verdict,
        "predicted": STANDING,
        "subscribers": rows,
        "causes": WAITING if verdict != "meets" else [],
        "remedy": remedy,
        "least": None,
    }


REMEDY = {"change": "speed 'b' x2", "on_time": 0.95, "gain": 0.35, "error": None}


def test_a_failure_names_share_target_cause_and_change():
    text = junit(document(row("s"), remedy={**REMEDY, "verdict": "meets"}), "city.yaml")
    (failure,) = ElementTree.fromstring(text.encode()).iter("failure")
    assert failure.get("message") == (
        "60.0 % ± 1 % on time, target 90.0 %: not met; waiting at b (30.0 ± 2.0 %)"
    )
    assert "speed 'b' x2" in failure.text
    assert "all targets are then met" in failure.text


def test_a_change_that_does_not_suffice_is_not_praised():
    *_, do = sentences(document(row("s"), remedy={**REMEDY, "verdict": "misses"}))
    assert do.endswith("targets are still missed after it.")


def test_who_may_miss_its_target_is_skipped_where_the_gate_is_met():
    rows = (row("s"), row("t", "meets"))
    suite = ElementTree.fromstring(junit(document(*rows, verdict="meets"), "x").encode())
    assert [each.get("name") for each in suite.iter("testcase")] == ["s", "t"]
    assert len(list(suite.iter("skipped"))) == 1
    assert not list(suite.iter("failure"))
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "0", "1")


def test_any_name_is_shown_as_it_is():
    name = "a|b\n<img src=x>`*\x00\x1b"
    case = ElementTree.fromstring(junit(document(row(name)), name).encode()).find(".//testcase")
    assert case.get("name").startswith("a|b")
    text = markdown(document(row(name)), name, 5)
    assert "<img" not in text
    (line,) = [line for line in text.splitlines() if line.startswith("| a")]
    assert r"a\|b &lt;img src=x&gt;\`\*" in line


def test_how_many_are_left_out_is_said():
    rows = [row(f"s{number}") for number in range(7)]
    text = markdown(document(*rows), "x", 5)
    assert "5 of 7 subscribers" in text
    assert text.count("| s") == 6  # with the head
    assert gate_table(document(*rows), 5).caption == "5 of 7 subscribers (--json has all)"


def test_identical_subscribers_are_counted_each():
    text = markdown(document(row("s", count=3.0), row("t", "meets", count=5.0)), "x", 5)
    assert "5 of 8 subscribers with a target meet it" in text
