"""Drawings of systems, with any names."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from tidings.cli.commands import run
from tidings.model import reading
from tidings.reporting.drawing import mermaid, svg

SVG = "{http://www.w3.org/2000/svg}"
TRIANGLE = """
tidings: 1
brokers: {a: {}, "b\\"]<i>": {}, c: {}}
links:
  - {between: [a, "b\\"]<i>"], delay: 5ms}
  - {between: ["b\\"]<i>", c]}
publishers: {p: {at: a, every: 1s, content: {event: {topic: x}}}}
subscribers: {s: {at: c, wants: {}, count: 7}, t: {at: c, wants: {}}}
"""


def test_every_broker_and_link_is_drawn_inside_the_picture():
    root = ElementTree.fromstring(svg(reading.loads(TRIANGLE)))
    circles, lines = list(root.iter(f"{SVG}circle")), list(root.iter(f"{SVG}line"))
    assert (len(circles), len(lines)) == (3, 2)
    _, _, width, height = map(float, root.get("viewBox").split())
    for circle in circles:
        assert 16 <= float(circle.get("cx")) <= width - 16
        assert 16 <= float(circle.get("cy")) <= height - 16
    places = {(each.get("cx"), each.get("cy")) for each in circles}
    assert len(places) == 3
    for line in lines:
        ends = {(line.get("x1"), line.get("y1")), (line.get("x2"), line.get("y2"))}
        assert ends < places
    texts = {each.text for each in root.iter(f"{SVG}text")}
    assert {"a", 'b"]<i>', "c", "5 ms", "1 publisher", "8 subscribers"} == texts


def test_mermaid_has_a_node_for_each_broker_and_no_name_ends_a_label():
    lines = mermaid(reading.loads(TRIANGLE)).splitlines()
    assert lines[0] == "graph LR"
    assert lines[1] == '  b0(["a<br/>1 publisher"])'
    assert lines[2] == '  b1(["b&quot;#93;&lt;i&gt;"])'
    assert lines[4:] == ['  b0 ---|"5 ms"| b1', "  b1 --- b2"]


def test_draw_writes_what_the_file_is_called(tmp_path, capsys):
    system, picture = tmp_path / "s.yaml", tmp_path / "s.svg"
    system.write_text(TRIANGLE)
    assert run(["draw", str(system)]) == 0
    assert capsys.readouterr().out == mermaid(reading.loads(TRIANGLE))
    assert run(["draw", str(system), "--to", str(picture)]) == 0
    assert capsys.readouterr().out == ""
    assert picture.read_text("utf-8") == svg(reading.loads(TRIANGLE))
    assert run(["draw", str(system), "--to", str(tmp_path / "s.png")]) == 2
    assert run(["draw", str(system), "--json"]) == 0
    document = {"mermaid": mermaid(reading.loads(TRIANGLE)), "file": None}
    assert json.loads(capsys.readouterr().out) == document


@pytest.mark.parametrize("count", [1, 100])
def test_one_broker_and_a_hundred_are_drawn(count):
    names = [f"b{number}" for number in range(count)]
    system = reading.loads(
        "tidings: 1\n"
        f"brokers: {{{', '.join(f'{name}: {{}}' for name in names)}}}\n"
        f"links: [{', '.join(f'{{between: [b0, {name}]}}' for name in names[1:])}]\n"
        "publishers: {p: {at: b0, every: 1s, content: {event: {topic: x}}}}\n"
        "subscribers: {s: {at: b0, wants: {}}}\n"
    )
    root = ElementTree.fromstring(svg(system))
    assert len(list(root.iter(f"{SVG}circle"))) == count
