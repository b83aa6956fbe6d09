from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from planning.small_systems import INVERTED, QUEUE, TWO, one_queue, two_brokers
from tidings.cli.commands import run
from tidings.model import reading
from tidings.planning.budget import draw_up
from tidings.planning.changes import changed
from tidings.planning.effects import EFFECTS, effects_of

# Everything at once, each effect with a closed form of its own when the others are off.
ALL = """
tidings: 1
lifetime: 1s
recovery: {scheme: periodic}
brokers:
  a: {service: {exponential: 100ms}}
  b: {failure: {mtbf: 900s, mttr: 100s}}
links:
  - {between: [a, b], delay: {exponential: 500ms}, reliability: 0.9}
publishers:
  p: {at: a, every: {exponential: 200ms}, content: {event: {topic: a}}}
subscribers:
  here: {at: a, wants: {}}
  there: {at: b, wants: {}}
  mobile: {at: a, wants: {}, connectivity: {on: {exponential: 9s}, off: {exponential: 1s}}}
"""
ALONE = {
    # M/M/1, half full: the response is exponential with rate μ − λ.
    "queueing": {"here": 1 - math.exp(-5)},
    "link loss": {"there": 0.9},
    "link delay": {"there": 1 - math.exp(-2)},
    "failures": {"there": 0.9},
    # Away with probability .1, and then for an exponential time of mean 1 s.
    "mobility": {"mobile": 1 - 0.1 * math.exp(-1)},
}


def only(system, kept):
    for name, effect in effects_of(system).items():
        together = {"queueing", "service"}
        if name not in (kept, "lifetimes") and not (kept in together and name in together):
            system = effect.without(system)
    return system


@pytest.mark.parametrize("effect", ALONE)
def test_with_all_other_effects_off_each_is_its_own_model(effect):
    from tidings.planning.scenarios import foretell

    outcome = foretell(only(reading.loads(ALL), effect)).subscribers.set_index("subscriber")
    for subscriber in ("here", "there", "mobile"):
        expected = ALONE[effect].get(subscriber)
        if effect == "queueing":  # everybody's events pass that queue
            expected = ALONE[effect]["here"]
        share = outcome.loc[subscriber, "on_time"]
        assert share == pytest.approx(1.0 if expected is None else expected, abs=1e-7)


def test_an_effect_that_is_switched_off_is_gone():
    system = reading.loads(ALL)
    assert set(effects_of(system)) == {
        "queueing", "service", "link loss", "link delay", "failures", "mobility",
        "lifetimes",
    }  # fmt: skip
    for name, effect in effects_of(system).items():
        left = effects_of(effect.without(system))
        assert name not in left or name == "queueing"  # of which it is known by what is left
    stays = changed(system, ["stays here 1h"])
    assert "churn" in effects_of(stays)
    assert effects_of(EFFECTS["churn"].without(stays)) == effects_of(system)


@pytest.fixture(scope="module")
def budget():
    return draw_up(changed(reading.loads(QUEUE), ["lifetime all 300ms"]))


def test_costs_of_a_queue_are_what_the_closed_forms_say(budget):
    """M/M/1 with μ = 10, λ = 5, τ = .3 s: with queueing, without, and without service at all."""
    now, alone = 1 - math.exp(-5 * 0.3), 1 - math.exp(-10 * 0.3)
    assert budget.totals["queueing"] == pytest.approx(alone - now, abs=1e-5)
    assert budget.totals["service"] == pytest.approx(1 - now, abs=INVERTED)
    assert budget.totals["lifetimes"] == pytest.approx(1 - now, abs=INVERTED)
    assert budget.costs["queueing"]["delay_s"][0] == pytest.approx(0.2 - 0.1, abs=1e-5)
    assert budget.bottleneck["broker"] == "hub"
    assert budget.bottleneck["utilisation"] == pytest.approx(0.5)


def test_the_change_that_helps_most_is_named(budget):
    (best,) = budget.remedies
    assert best.change == "speed 'hub' x2"
    assert best.on_time == pytest.approx(1 - math.exp(-15 * 0.3), abs=INVERTED)


def test_remedies_are_of_what_matters_and_best_first():
    found = draw_up(two_brokers())
    gains = [each.gain for each in found.remedies]
    assert gains == sorted(gains, reverse=True)
    assert {each.change.split()[0] for each in found.remedies} == {
        "speed", "reliability", "delay", "availability", "scheme",
    }  # fmt: skip
    worst = found.subscribers()["on_time"].to_list()
    assert worst == sorted(worst)


def test_weights_are_those_of_the_system_as_it_is():
    """Two subscribers at one queue, one with three heads: the total is weighted by heads."""
    system = one_queue()
    (one,) = system.subscribers
    many = replace(system, subscribers=(one, replace(one, name="t", count=3)))
    served = draw_up(many, remedies=False).totals["service"]
    assert served == pytest.approx(math.exp(-5), abs=INVERTED)


def test_the_command(tmp_path, capsys):
    path = tmp_path / "city.yaml"
    path.write_text(TWO)
    assert run(["explain", str(path), "--json", "--no-remedies"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {row["effect"] for row in document["effects"]} >= {"queueing", "failures", "link loss"}
    assert len(document["subscribers"]) == 4
    assert run(["explain", str(path), "--limit", "2", "--no-remedies"]) == 0
    said = capsys.readouterr().out
    assert "The bottleneck is hub" in said


def test_changes_that_theory_has_not_are_simulated(tmp_path, capsys):
    path = tmp_path / "two.yaml"
    path.write_text(TWO.replace("periodic}", "periodic, detection: 5s}"))
    assert run(["explain", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert "scheme bypass" in [each["change"] for each in document["remedies"]]
    assert document["untried"] == document["refused"] == {}
    assert all(row["by"] == "theory" and row["error"] < 1e-12 for row in document["subscribers"])
