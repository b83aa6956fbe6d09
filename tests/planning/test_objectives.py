from __future__ import annotations

import pytest

from planning.small_systems import two_brokers
from tidings.errors import InvalidInputError
from tidings.model.laws import Deterministic
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
