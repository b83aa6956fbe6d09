from __future__ import annotations

from dataclasses import replace

import pytest

from planning.small_systems import TWO, two_brokers
from tidings.errors import InvalidInputError
from tidings.model import reading
from tidings.model.laws import Deterministic
from tidings.planning.changes import changed
from tidings.planning.objectives import read_objectives, with_objectives


def slo(name, goal="target: 0.9", labels="", kind="SLO"):
    return (
        f"apiVersion: openslo/v1\nkind: {kind}\nmetadata: {{name: {name}{labels}}}\n"
        f"spec: {{service: tidings, objectives: [{{{goal}}}]}}\n"
    )


def read(tmp_path, *texts):
    path = tmp_path / "objectives.yaml"
    path.write_text("---\n".join(texts))
    return read_objectives(path)


def targets(system):
    return {each.name: each.target for each in system.subscribers}


def test_the_most_particular_objective_holds(tmp_path):
    found = read(
        tmp_path,
        slo("one", "target: 0.99", ", labels: {subscriber: near}"),
        slo("desk", "targetPercent: 98", ", annotations: {tidings/group: desk}"),
        slo("a", "target: 0.97", ", labels: {topic: a}"),
        slo("all", "target: 0.5"),
        "apiVersion: openslo/v1\nkind: Service\nmetadata: {name: other}\n",
    )
    system = with_objectives(two_brokers(), found)
    assert targets(system) == {"near": 0.99, "far": 0.97, "moving": 0.5, "both": 0.5}
    without = with_objectives(two_brokers(), found[1:])
    assert targets(without)["near"] == pytest.approx(0.98)


def test_a_threshold_is_a_lifetime(tmp_path):
    found = read(
        tmp_path, slo("one", "op: lte, value: 0.25, target: 0.9", ", labels: {subscriber: far}")
    )
    far = with_objectives(two_brokers(), found).subscribers[1]
    assert (far.target, far.lifetime) == (0.9, Deterministic(value_s=0.25))


def test_the_time_of_a_wider_objective_is_not_that_of_others(tmp_path):
    found = read(
        tmp_path,
        slo("all", "op: lte, value: 0.25, target: 0.5"),
        slo("desk", "target: 0.9", ", labels: {group: desk}"),
    )
    near, far, moving, both = with_objectives(two_brokers(), found).subscribers
    assert (near.target, near.lifetime) == (0.9, None)
    for each in (far, moving, both):
        assert (each.target, each.lifetime) == (0.5, Deterministic(value_s=0.25))


def test_a_time_shortens_a_lifetime_and_never_lengthens_it(tmp_path):
    def promised(value, own):
        found = read(tmp_path, slo("all", f"op: lte, value: {value}, target: 0.5"))
        return with_objectives(changed(two_brokers(), [f"lifetime far {own}"]), found)

    for value, own, kept_s in ((5, "3s", 3.0), (3, "3s", 3.0), (2, "3s", 2.0)):
        assert promised(value, own).subscribers[1].lifetime == Deterministic(value_s=kept_s)
    law = promised(9, "{uniform: [1s, 3s]}").subscribers[1].lifetime
    assert law.mean_s == 2.0
    assert promised(1, "{uniform: [1s, 3s]}").subscribers[1].lifetime.mean_s == 1.0
    with pytest.raises(InvalidInputError, match="'far', whose own lifetime is random"):
        promised(2, "{uniform: [1s, 3s]}")


def test_objectives_hide_none_of_their_kind(tmp_path):
    ghosts = slo("same", labels=", labels: {group: ghosts}")
    with pytest.raises(InvalidInputError, match="match no subscriber of this system: same"):
        with_objectives(two_brokers(), read(tmp_path, slo("same"), ghosts))
    twice = read(tmp_path, slo("one"), slo("other", "target: 0.8"))
    with pytest.raises(
        InvalidInputError, match="'one' and 'other' both set a target for everybody"
    ):
        with_objectives(two_brokers(), twice)
    desks = (slo(name, labels=", labels: {group: desk}") for name in ("one", "other"))
    with pytest.raises(InvalidInputError, match="both set a target for group 'desk'"):
        with_objectives(two_brokers(), read(tmp_path, *desks))


def test_topics_are_values_of_the_type_attribute(tmp_path):
    """With an event type the attribute of that name tells topics apart, and no other."""
    text = TWO.replace("topic:", "kind:") + "event_type: kind\n"
    found = read(tmp_path, slo("a", "target: 0.9", ", labels: {topic: a}"), slo("all"))
    typed = with_objectives(reading.loads(text), (found[0], replace(found[1], share=0.5)))
    assert targets(typed) == {"near": 0.9, "far": 0.9, "moving": 0.5, "both": 0.5}
    with pytest.raises(InvalidInputError, match="match no subscriber of this system: a"):
        with_objectives(reading.loads(text.replace("event_type: kind", "")), found)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (slo("x", "target: 2"), "a share from 0 to 1"),
        (slo("x", "targetPercent: 200"), "from 0 to 100"),
        (slo("x", "target: 0.9, targetPercent: 90"), "either 'target'"),
        (slo("x", ""), "either 'target'"),
        (slo("x", "target: 0.9, op: gte, value: 1"), "lte"),
        (slo("x", "target: 0.9}, {target: 0.8"), "exactly one"),
        (slo("x", kind="Service"), "kind SLO"),
        ("apiVersion: v1\nkind: SLO\n", "OpenSLO version"),
        ("a: [", "well-formed"),
        ("", "kind SLO"),
    ],
)
def test_what_is_no_objective_is_said(tmp_path, text, said):
    with pytest.raises(InvalidInputError, match=said):
        read(tmp_path, text)


def test_lines_are_those_of_the_file(tmp_path):
    with pytest.raises(InvalidInputError, match="line 11"):
        read(tmp_path, slo("good"), slo("bad", "target: 2").replace("spec", "\n\nspec"))


def test_objectives_about_nobody_are_refused(tmp_path):
    found = read(tmp_path, slo("ghosts", labels=", labels: {group: ghosts}"))
    with pytest.raises(InvalidInputError, match="ghosts"):
        with_objectives(two_brokers(), found)
    with pytest.raises(InvalidInputError, match="nowhere"):
        read_objectives(tmp_path / "nowhere.yaml")
