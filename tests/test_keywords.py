"""Verbs as Python calls them: options by keyword, lists of changes, clear refusals."""

from __future__ import annotations

import dataclasses
import inspect
import re

import pytest

import tidings as td
from tidings.planning.verbs import PlanChanges, PlanOptions
from tidings.prediction.predict import PredictChanges, PredictOptions
from tidings.simulation.options import SimulationChanges, SimulationOptions

NO_VERBS = ("The", "An", "How", "Which", "What", "When", "Where", "Whether", "All", "Every", "One")
SYSTEM = """
tidings: 1
lifetime: 400ms
brokers:
  hub: {service: {exponential: 20ms}}
  "<b>east": {service: {exponential: 50ms}}
links: [{between: [hub, "<b>east"], delay: 10ms}]
publishers: {p: {at: hub, every: {exponential: 100ms}, content: {event: {topic: a}}}}
subscribers:
  near: {at: hub, wants: {}}
  crowd: {at: "<b>east", wants: {}, count: 1200}
"""


@pytest.fixture(scope="module")
def system():
    """Two brokers and a publisher of ten events a second."""
    return td.loads(SYSTEM)


@pytest.mark.parametrize(
    ("by_name", "options"),
    [
        (PredictChanges, PredictOptions),
        (SimulationChanges, SimulationOptions),
        (PlanChanges, PlanOptions),
    ],
)
def test_options_by_name_are_those_of_the_record(by_name, options):
    hints = {name: each.__forward_arg__ for name, each in by_name.__annotations__.items()}
    assert hints == options.__annotations__
    assert by_name.__total__ is False


@pytest.mark.parametrize(
    ("verb", "options"),
    [("predict", "PredictOptions"), ("simulate", "SimulationOptions"), ("gate", "PlanOptions")],
)
def test_notebooks_are_told_the_options_by_name(verb, options):
    shown = inspect.signature(getattr(td, verb)).parameters
    for each in dataclasses.fields(getattr(td, options)):
        assert shown[each.name].default == each.default
    assert "changes" not in shown
    assert "system" in shown


def test_what_if_takes_changes_one_by_one_or_in_a_list(system):
    changes = ["speed hub x2", "rate all x1.2"]
    listed, apart = td.whatif(system, changes), td.whatif(system, *changes)
    assert listed.to_document() == apart.to_document()
    assert listed.after.on_time != listed.before.on_time


def test_a_deadline_is_found_for_one_share_or_several(system):
    one = td.plan_deadline(system, at=0.9, simulate=False)
    several = td.plan_deadline(system, at=[0.8, 0.9], simulate=False)
    assert one.levels == (0.9,)
    assert several.levels == (0.8, 0.9)


@pytest.mark.parametrize("at", [1.5, [0.9, 2], "0.9", [], [None], td.PlanOptions()])
def test_what_is_no_share_is_refused_in_words(system, at):
    with pytest.raises(td.TidingsError, match=r"wants shares between 0 and 1|options="):
        td.plan_deadline(system, at=at)


def test_a_system_shows_what_is_in_it(system):
    shown = system._repr_html_()
    assert "<th>brokers</th><td>2</td><td>hub, &lt;b&gt;east</td>" in shown
    assert "<th>links</th><td>1</td>" in shown
    assert "<th>publishers</th><td>1</td><td>10 events/s: p 10/s</td>" in shown
    assert "<th>subscribers</th><td>1,201</td><td>near, crowd</td>" in shown


def test_many_names_and_long_ones_are_cut():
    lines = [f"  {'x' * 60}{number}: {{at: b, wants: {{}}}}" for number in range(20)]
    text = SYSTEM.split("brokers:")[0] + (
        "brokers: {b: {}}\n"
        "publishers: {p: {at: b, every: {rate: 1/s}, content: {event: {a: 1}}}}\n"
        "subscribers:\n"
    )
    shown = td.loads(text + "\n".join(lines))._repr_html_()
    assert shown.count("x…") == 6
    assert shown.endswith("…</td></tr></tbody></table>")


def test_files_are_checked_exported_and_outcomes_validated_without_a_command(system, tmp_path):
    (tmp_path / "city.yaml").write_text(SYSTEM)
    facts = td.check(tmp_path / "city.yaml")
    assert (facts["brokers"], facts["subscribers"]) == (2, 1201)
    assert td.export(system, tmp_path / "city.jsimg").read_text().startswith("<?xml")
    with pytest.raises(td.TidingsError, match=r"no \.jsimg file"):
        td.export(system, tmp_path / "city.txt")
    as_it_is = td.predict(system, by="theory")
    assert td.validate(as_it_is, as_it_is).passed
    slower = td.predict(td.changed(system, ["speed hub x0.3"]), by="theory")
    assert not td.validate(as_it_is, slower).passed
    assert td.validate(as_it_is, slower, max_mae=1.0).passed
    assert "mean_absolute" in td.validate(as_it_is, slower)._repr_html_()


def test_what_is_no_share_or_no_workload_is_refused_in_words(system):
    with pytest.raises(td.TidingsError, match="wants a share from 0 to 1, such as"):
        td.gate(system, target="99.5%")
    with pytest.raises(td.TidingsError, match=r"wants a workload \(td.workload_of"):
        td.analyse(system)
    with pytest.raises(td.TidingsError, match=r"and below 0\.5"):
        td.predict(system, within="99.5%")


@pytest.mark.parametrize("name", td.__all__)
def test_what_is_public_says_what_it_does(name):
    """The first word is a verb in the imperative: no article, pronoun or question."""
    thing = getattr(td, name)
    members = vars(thing).values() if inspect.isclass(thing) else [thing]
    for each in members:
        if inspect.isfunction(each) and not each.__name__.startswith("_"):
            first = (inspect.getdoc(each) or "").split()[0]
            assert re.fullmatch("[A-Z][a-z]+[^s]|Cross|Guess|Process", first), (name, first)
            assert first not in NO_VERBS, (name, first)
