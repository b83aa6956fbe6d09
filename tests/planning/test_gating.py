"""Gates on queues whose shares are known: 1 − exp(−(μ − λ) τ)."""

from __future__ import annotations

import json
import math

import pytest

from planning.small_systems import QUEUE, one_queue
from planning.truths import played_by
from tidings.cli.commands import run
from tidings.model import reading
from tidings.planning.evidence import MEETS, MISSES, OPEN, Target
from tidings.planning.gating import hold

SHARE = 1.0 - math.exp(-5.0)  # of what one queue gives
# A slow branch for a few events and a quick one for many.
BRANCHES = """
tidings: 1
lifetime: 300ms
brokers: {hub: {}, quick: {service: {exponential: 20ms}}, slow: {service: {exponential: 200ms}}}
links: [{between: [hub, quick]}, {between: [hub, slow]}]
publishers:
  p: {at: hub, every: {exponential: 25ms}, content: {event: {topic: many}}}
  q: {at: hub, every: {exponential: 1s}, content: {event: {topic: few}}}
subscribers:
  crowd: {at: quick, wants: {topic: many}}
  other: {at: quick, wants: {topic: many}}
  lonely: {at: slow, wants: {topic: few}, target: 0.9}
"""


def test_a_gate_that_is_met_says_so_and_looks_for_nothing():
    gate = hold(one_queue(), Target(share=SHARE - 0.01))
    assert gate.met
    assert gate.budget is None
    (row,) = gate.to_document()["subscribers"]
    assert row["verdict"] == MEETS
    assert row["on_time"] == pytest.approx(SHARE, abs=1e-5)


def test_causes_and_the_change_are_those_of_who_misses_its_target():
    """Nearly all events are late at the quick branch, which nobody promised anything."""
    gate = hold(reading.loads(BRANCHES), Target())
    assert gate.evidence.verdict == MISSES
    document = gate.to_document()
    assert [row["subscriber"] for row in document["subscribers"]] == ["lonely"]
    assert document["causes"][0]["place"] == "slow"
    assert document["remedy"]["change"] == "speed 'slow' x2"
    after = 1.0 - math.exp(-(10.0 - 1.0) * 0.3)
    assert document["remedy"]["on_time"] == pytest.approx(after, abs=1e-4)
    assert document["remedy"]["verdict"] == MEETS
    assert after > 0.9
    enough = (1.0 + math.log(10.0) / 0.3) / 5.0  # times as fast: exactly 0.9 on time
    assert 0.0 <= _factor(gate.least, "slow") - enough < 0.1


def test_the_smallest_change_is_enough_for_as_many_as_the_target_asks_for():
    """Two of three need a little more; the third would need another broker to be faster."""
    system = reading.loads(BRANCHES)
    assert hold(system, Target(share=0.97)).least is None
    two_of_three = hold(system, Target(share=0.97, of=2 / 3))
    enough = (40.0 + math.log(1 / 0.03) / 0.3) / 50.0
    assert 0.0 <= _factor(two_of_three.least, "quick") - enough < 0.1


def _factor(remedy, broker):
    ((verb, name, factor),) = remedy.changes
    assert (verb, name) == ("speed", broker)
    return factor.times


def test_names_that_look_like_factors_are_left_alone():
    """A broker called 'box x4' is made faster, not renamed."""
    gate = hold(reading.loads(BRANCHES.replace("slow", "box x4")), Target())
    assert gate.remedy.change == "speed 'box x4' x2"
    assert gate.least.change.startswith("speed 'box x4' x1.7")


def test_the_smallest_change_leaves_room_for_the_error_after_it(theory_off_by):
    theory_off_by(0.004)
    least = hold(reading.loads(BRANCHES), Target()).least
    assert 0.904 <= least.on_time < 0.92


def test_each_of_several_brokers_is_made_as_fast_as_it_needs():
    two = BRANCHES.replace("20ms", "30ms").replace("mean: 1s", "").replace("200ms", "2s")
    gate = hold(reading.loads(two), Target(share=0.9))
    factors = [each.value.times for each in gate.remedy.changes]
    assert len(factors) == 2
    assert factors[0] < factors[1]
    assert gate.least is not None
    least = [each.value.times for each in gate.least.changes]
    assert least[1] - least[0] > 0.3


def test_a_change_that_is_not_enough_is_said_to_be_none():
    gate = hold(reading.loads(BRANCHES.replace("target: 0.9", "target: 0.99")), Target())
    assert gate.to_document()["remedy"]["verdict"] == MISSES


def test_who_furthest_misses_its_target_comes_first():
    gate = hold(reading.loads(BRANCHES), Target(share=0.99))
    rows = gate.to_document()["subscribers"]
    margins = [row["on_time"] - row["target"] for row in rows]
    assert margins == sorted(margins)
    assert len(rows) == 3


def test_what_cannot_be_told_does_not_pass(theory_off_by):
    theory_off_by(0.05)
    gate = hold(one_queue(), Target(share=SHARE - 0.01))
    assert gate.evidence.verdict == OPEN
    assert not gate.met
    assert hold(one_queue(), Target(share=SHARE - 0.01), played_by()).met


@pytest.mark.parametrize(("target", "code"), [(0.99, 0), (0.999, 1)])
def test_the_exit_code_is_the_verdict(world, target, code, capsys, tmp_path):
    words = ["--target", str(target), "--junit", str(tmp_path / "new" / "gate.xml")]
    assert run(["gate", world(QUEUE), *words, "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == (MISSES if code else MEETS)
    assert (tmp_path / "new" / "gate.xml").exists()


def test_a_gate_without_targets_or_with_a_wrong_file_is_wrong_input(world, tmp_path, capsys):
    system = world(QUEUE)
    assert run(["gate", system]) == 2
    assert "no target" in capsys.readouterr().err
    assert run(["gate", system, "--slo", str(tmp_path / "none.yaml")]) == 2
    assert run(["gate", system, "--target", "0.5", "--junit", str(tmp_path)]) == 2


def test_summaries_of_several_gates_follow_each_other(world, tmp_path, capsys):
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    for target in ("0.5", "0.999"):
        run(["gate", world(QUEUE), "--target", target, "--summary", str(summary)])
    text = summary.read_text("utf-8")
    assert text.startswith("before\n")
    assert text.index("targets met") < text.index("targets not met")
