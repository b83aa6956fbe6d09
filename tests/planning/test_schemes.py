from __future__ import annotations

import io
import json
import math
from dataclasses import replace

import pytest
from rich.console import Console

from tidings.cli.commands import run
from tidings.errors import InvalidInputError
from tidings.model import reading
from tidings.model.outcome import Outcome, table
from tidings.model.system import SCHEMES
from tidings.planning.evidence import OPEN, prediction_error, verdict
from tidings.planning.schemes import compare_schemes, under
from tidings.planning.targets import Target
from tidings.reporting.plans import scheme_tables
from tidings.simulation.run import SimulationOptions, simulate
from tidings.theory.predicting import predict
from tidings.theory.stated_errors import MODEL_ERROR, SURELY

# A square: where the way along a--b--d is down there is the one along a--c--d.
SQUARE = """
tidings: 1
lifetime: 100s
routing: {root: a}
brokers:
  a: {}
  b: {failure: {mtbf: 800s, mttr: 200s}}
  c: {failure: {mtbf: 800s, mttr: 200s}}
  d: {}
links:
  - {between: [a, b]}
  - {between: [b, d]}
  - {between: [a, c]}
  - {between: [c, d]}
publishers:
  p: {at: a, every: 10s, content: {event: {x: 1}}}
subscribers:
  near: {at: a, wants: {}}
  far: {at: d, wants: {}, count: 3}
"""


@pytest.fixture(scope="module")
def system():
    return reading.loads(SQUARE)


@pytest.fixture(scope="module")
def advice(system):
    return compare_schemes(system, Target(share=0.95))


def test_every_scheme_gives_what_theory_says(advice):
    """Two brokers of availability .8, both of them on a way of their own."""
    worst = {each.scheme: each.on_time["worst"] for each in advice.reports}
    assert worst["none"] == 0.0
    assert worst["periodic"] == pytest.approx(0.8, abs=1e-9)
    assert worst["bypass"] == pytest.approx(1 - 0.2**2, abs=1e-9)
    assert worst["periodic"] < worst["buffering"] < worst["bypass"] < worst["bypass-buffering"]
    for each in advice.reports:
        assert each.on_time["mean"] == pytest.approx((1 + 3 * each.on_time["worst"]) / 4)
        if each.scheme != "none":  # which is 0 in the long run only
            assert each.simulated == pytest.approx(each.on_time["mean"], abs=0.03)


def test_the_cheapest_scheme_that_meets_the_target_is_named(advice):
    assert [each.scheme for each in advice.reports] == list(SCHEMES)
    meets = {each.scheme for each in advice.reports if each.meets}
    assert meets == {"bypass", "bypass-buffering"}
    costs = {each.scheme: each.cost for each in advice.reports}
    assert advice.choice.scheme == min(meets, key=costs.get)
    # The event goes over two links to three subscribers at d, and to one at a over none.
    bypass = next(each for each in advice.reports if each.scheme == "bypass")
    assert bypass.transmissions == pytest.approx(2 / 4, abs=0.02)
    assert bypass.duplicates == bypass.acknowledgements == 0.0
    assert bypass.cost == bypass.transmissions
    both = next(each for each in advice.reports if each.scheme == "bypass-buffering")
    assert both.duplicates > 0.0
    # Without delays what is sent along the tree arrives, and is acknowledged.
    kept = next(each for each in advice.reports if each.scheme == "buffering")
    assert kept.acknowledgements == pytest.approx(kept.transmissions, rel=1e-12)
    assert kept.cost == pytest.approx(kept.transmissions + kept.acknowledgements, rel=1e-12)
    assert all(0.0 < each.cost_se < 0.05 * each.cost for each in advice.reports[1:])


def test_costs_that_chance_explains_are_told_as_equal(advice):
    cheap, dear = (replace(advice.reports[1], cost=cost, cost_se=0.01) for cost in (1.0, 1.02))
    assert cheap.costs_as_much_as(dear)
    assert not cheap.costs_as_much_as(replace(dear, cost=1.03))
    lone = replace(cheap, cost_se=math.nan)
    assert lone.costs_as_much_as(lone)
    assert not lone.costs_as_much_as(dear)
    # Where there is no way around, buffers cost the same with and without looking for one.
    line = SQUARE.replace("  - {between: [a, c]}\n", "")
    found = compare_schemes(reading.loads(line), Target(share=0.81))
    assert [each.scheme for each in found.cheapest] == ["buffering", "bypass-buffering"]
    assert found.to_document()["equally_cheap"] == ["buffering", "bypass-buffering"]


def test_what_cannot_be_predicted_is_simulated_and_said():
    slow = reading.loads(SQUARE + "recovery: {scheme: periodic, detection: 5s}")
    found = compare_schemes(slow, Target(share=0.5), SimulationOptions(duration_s=4000.0))
    sources = {each.scheme: each.source for each in found.reports}
    predicted = dict.fromkeys(("none", "periodic"), "predicted")
    assert sources == dict.fromkeys(SCHEMES, "simulated") | predicted
    for each in found.reports:
        if each.source == "simulated":
            assert each.on_time["mean"] == each.simulated
            assert "recovery.detection" in each.warnings[0]
            assert each.warnings[0].endswith("its simulated shares count")
    table, _ = scheme_tables(found.to_document())
    cells = {column.title: column.cells for column in table.columns}
    assert [cell.startswith("~") for cell in cells["on time"]] == [False, False, True, True, True]


def test_errors_of_the_prediction_are_told(advice):
    assert {each.error for each in advice.reports} == {MODEL_ERROR}
    # Two homes behind one link refresh for each other: how far that is off nobody knows.
    text = SQUARE.replace("near: {at: a", "near: {at: b")
    several = reading.loads(text + "recovery: {scheme: buffering, refresh: 60s}")
    found = compare_schemes(several, Target(share=0.5), SimulationOptions(duration_s=4000.0))
    assert [each.error for each in found.reports] == [MODEL_ERROR, None, None, None, None]
    cells = {each.title: each.cells for each in scheme_tables(found.to_document())[0].columns}
    assert cells["error"] == ["0.01", "?", "?", "?", "?"]


def test_what_nothing_can_make_a_broker_forget_is_exact():
    """Links alone fail: a refresh has nothing to bring back, and no scheme is as good as one."""
    text = SQUARE.replace("{failure: {mtbf: 800s, mttr: 200s}}", "{}")
    text = text.replace("[a, b]}", "[a, b], failure: {mtbf: 800s, mttr: 200s}}")
    text = text.replace("near: {at: a", "near: {at: b")
    system = reading.loads(text + "recovery: {scheme: periodic, refresh: 60s}")
    found = compare_schemes(system, Target(share=0.8), SimulationOptions(duration_s=4000.0))
    none, periodic = found.reports[:2]
    assert none.error == periodic.error == MODEL_ERROR
    assert none.on_time["worst"] == pytest.approx(0.8, abs=1e-12)
    assert periodic.on_time["worst"] == pytest.approx(0.8, abs=1e-12)
    assert none.cost < periodic.cost


def outcome_of(share, *errors, noise=math.nan):
    """A prediction of one share for everybody, by methods with these errors; or a simulation."""
    methods = [{"method": "bounds", "error": each, "of": "shares on time"} for each in errors]
    methods.append({"method": "fitted", "error": 0.4, "of": "laws"})
    rows = {"subscriber": ["near", "far"], "broker": ["a", "d"], "count": [1, 3]}
    return Outcome(
        source="predicted",
        subscribers=table(
            "subscribers", {**rows, "on_time": [share, share], "on_time_se": [noise, noise]}
        ),
        provenance={"faults": {"methods": methods}},
    )


def test_a_target_within_the_error_is_neither_met_nor_missed(system):
    target = Target(share=0.95)

    def told(share, errors, simulated, noise=0.001):
        seen = outcome_of(simulated, noise=noise)
        return verdict(system, target, outcome_of(share, *errors), seen)

    assert told(0.96, (0.005, 0.004), 0.96) == "meets"
    # Errors add up; within them the simulation decides, if it is sure.
    assert told(0.96, (0.006, 0.006), 0.96) == "meets"
    assert told(0.96, (0.006, 0.006), 0.94) == "misses"
    assert told(0.94, (0.006, 0.006), 0.96) == "meets"
    assert told(0.96, (0.006, 0.006), 0.96, noise=0.01) == "cannot be told"
    assert told(0.96, (0.006, 0.006), 0.96, noise=math.nan) == "cannot be told"
    assert told(0.94, (0.005,), 0.94) == "misses"
    # The simulation may doubt, but not be sure of the contrary.
    assert told(0.96, (0.005,), 0.94, noise=0.01) == "meets"
    assert told(0.96, (0.005,), 0.9, noise=math.nan) == "meets"
    assert told(0.96, (0.005,), 0.9) == "cannot be told"
    assert told(0.94, (0.005,), 0.96) == "cannot be told"
    # Where nobody knows the error, it must be as sure of the same.
    assert told(0.96, (None,), 0.96) == "meets"
    assert told(0.96, (None,), 0.96, noise=0.01) == "cannot be told"
    assert told(0.96, (None,), 0.96, noise=math.nan) == "cannot be told"
    assert told(0.96, (None,), 0.94) == "cannot be told"
    assert told(0.94, (None, 0.1), 0.94) == "misses"


def test_what_the_model_simplifies_has_an_error_of_its_own():
    exact = outcome_of(0.96, 0.002)
    assert prediction_error(exact) == 0.002
    provenance = {**exact.provenance, "approximations": ["waits taken as independent"]}
    assert prediction_error(replace(exact, provenance=provenance)) == 0.002 + MODEL_ERROR


def test_a_cheaper_scheme_that_may_do_is_named(advice):
    open_ = replace(advice.reports[1], verdict="cannot be told", cost=0.01)
    undecided = replace(advice, reports=(open_, *advice.reports[2:]))
    assert undecided.choice is not None
    assert undecided.to_document()["perhaps"] == ["periodic"]
    cells = {each.title: each.cells for each in scheme_tables(undecided.to_document())[1].columns}
    assert cells[""][0] == "?"


def test_all_that_was_asked_for_fits_a_terminal_of_eighty_columns(advice):
    screen = Console(width=80, file=io.StringIO())
    screen.print(*scheme_tables(advice.to_document()))
    lines = screen.file.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    shares, costs = (line.split() for line in lines if line.lstrip().startswith("scheme "))
    for title in ("worst", "5", "half", "content"):
        assert title in shares
    assert {"messages", "duplicates"} <= set(costs)
    row, _ = (line.split() for line in lines if line.lstrip().startswith("buffering "))
    report = next(each for each in advice.reports if each.scheme == "buffering")
    assert {f"{report.on_time[each]:.4f}" for each in ("worst", "p05", "p50")} <= set(row)


def test_where_nothing_is_asked_for_a_scheme_that_delivers_nothing_is_not_advised(advice):
    found = replace(advice.reports[0], verdict="meets", cost=math.nan)
    nothing = replace(advice, target=Target(share=0.0), reports=(found, *advice.reports[1:]))
    assert nothing.choice is not None
    assert nothing.choice.scheme != found.scheme


def test_a_target_nobody_meets_names_what_comes_nearest(system):
    found = compare_schemes(system, Target(share=0.9999))
    assert found.choice is None
    assert found.nearest.scheme == "bypass-buffering"
    assert found.nearest.satisfied == 0.25  # heads, not rows


def test_targets_are_shares_of_heads(system):
    rows = {"subscriber": ["near", "far"], "broker": ["a", "d"], "count": [1, 3]}
    outcome = Outcome(
        source="predicted", subscribers=table("subscribers", {**rows, "on_time": [0.99, 0.9]})
    )
    assert Target(share=0.95).satisfied(system, outcome) == 0.25
    assert Target(share=0.9).satisfied(system, outcome) == 1.0
    assert Target(share=0.95, of=0.25).is_met(0.25)
    own = reading.loads(SQUARE.replace("count: 3", "count: 3, target: 0.85"))
    assert Target(share=0.995).satisfied(own, outcome) == 0.75
    with pytest.raises(InvalidInputError, match="nothing is asked"):
        Target().wanted(system)
    with pytest.raises(InvalidInputError, match=r"share is 1\.5"):
        Target(share=1.5)


def test_only_the_scheme_changes(system):
    changed = under(reading.loads(SQUARE + "recovery: {scheme: periodic, refresh: 5s}"), "bypass")
    assert changed.recovery.scheme == "bypass"
    assert changed.recovery.refresh_s == 5.0
    assert under(system, "buffering").brokers == system.brokers


def test_without_failures_there_is_nothing_to_choose():
    text = SQUARE.replace("{failure: {mtbf: 800s, mttr: 200s}}", "{}")
    with pytest.raises(InvalidInputError, match="nothing in this system fails"):
        compare_schemes(reading.loads(text), Target(share=0.9))


def test_the_command_says_which_and_its_exit_code_whether(tmp_path, capsys):
    path = tmp_path / "square.yaml"
    path.write_text(SQUARE)
    arguments = ["plan", "scheme", str(path), "--duration", "2h"]
    assert run([*arguments, "--target", "0.95"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "The cheapest scheme that meets the target is" in out
    assert run([*arguments, "--target", "0.9999", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["choice"] is None
    assert [each["scheme"] for each in document["schemes"]] == list(SCHEMES)


OVERWHELMED = """
tidings: 1
lifetime: 60s
brokers:
  a: {}
  b: {service: {exponential: 0.95s}, failure: {availability: 0.9, period: 1000s}}
links: [{between: [a, b]}]
publishers: {p: {at: a, every: {rate: 1/s}, content: {event: {topic: x}}}}
subscribers: {s: {at: b, wants: {}}}
recovery: {scheme: buffering}
"""


@pytest.mark.slow
@pytest.mark.statistical
def test_a_scheme_that_the_simulation_is_sure_to_miss_by_is_not_advised():
    """A broker up too little to catch up: predictions leave the backlog out, and say so."""
    system, target = reading.loads(OVERWHELMED), Target(share=0.85)
    predicted = predict(system, delays=False)
    assert predicted.on_time > 0.87
    assert any("grows without end" in each for each in predicted.provenance["warnings"])
    simulated = simulate(system, seed=1, replications=16, duration_s=60_000.0)
    worst = float(simulated.subscribers["on_time_se"].max())
    assert simulated.on_time + SURELY * worst < 0.85
    assert verdict(system, target, predicted, simulated) == OPEN
    slower = reading.loads(OVERWHELMED.replace("0.95s", "0.4s"))
    assert not predict(slower, delays=False).provenance["warnings"]
