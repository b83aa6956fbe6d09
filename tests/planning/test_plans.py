from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from planning.small_systems import QUEUE, TWO, one_queue, two_brokers
from tidings.cli.commands import run
from tidings.errors import InvalidInputError
from tidings.model import reading
from tidings.model.laws import Deterministic
from tidings.planning.admission import Admissions, newcomer_like
from tidings.planning.capacity import CLOSE as SPEED_CLOSE
from tidings.planning.capacity import least_copies, least_speed, shared_out
from tidings.planning.changes import changed
from tidings.planning.deadlines import CLOSE, column, shortest_lifetimes
from tidings.planning.evidence import foreseen, standing
from tidings.planning.homes import assign_homes, search_for
from tidings.planning.scenarios import foretell
from tidings.planning.targets import Target
from tidings.simulation.run import simulate

# ---- deadlines -----------------------------------------------------------------------------------


def test_deadlines_of_a_queue_are_quantiles_of_its_response():
    """M/M/1, half full: exponential with rate 5, so that −log(1 − q)/5 s suffice."""
    found = shortest_lifetimes(one_queue())
    for level in (0.95, 0.99, 0.999):
        exact_s = -math.log1p(-level) / 5
        given_s = found.table[column(level)][0]
        assert exact_s * (1 - 1e-9) <= given_s <= exact_s * (1 + CLOSE) * (1 + 1e-9)
    assert found.possible


def test_what_is_lost_cannot_be_promised():
    found = shortest_lifetimes(two_brokers(), [0.95])
    table = found.table.set_index("subscriber")
    # The link loses a tenth, the broker is up nine tenths of the time, and what is with it (at 4.5
    # and 1 events a second, served 20 a second) when it fails, every 900 s, is lost with it.
    outlives = 14.5 / (14.5 + 1 / 900)
    assert table.loc["far", "best"] == pytest.approx(0.9 * 0.9 * outlives, abs=1e-6)
    assert math.isinf(table.loc["far", "p95_s"])
    assert not found.possible
    with pytest.raises(InvalidInputError):
        shortest_lifetimes(one_queue(), [1.0])


# ---- capacity ------------------------------------------------------------------------------------


def test_the_least_speed_of_a_queue_is_what_its_closed_form_says():
    """1 − exp(−(10 f − 5) τ) = q at f = (5 − log(1 − q)/τ)/10."""
    for share, lifetime_s in ((0.99, 0.5), (0.9, 1.0)):
        system = changed(one_queue(), [f"lifetime all {lifetime_s}s"])
        exact = (5 - math.log1p(-share) / lifetime_s) / 10
        found = least_speed(system, Target(share=share))
        assert exact * (1 - 1e-9) <= found.choice.size <= exact * (1 + SPEED_CLOSE)
        assert foreseen(found.plan, Target(share=share)).meets
        short = [each for each in found.options if each.size < found.choice.size]
        assert short
        assert not any(each.standing.meets for each in short)


def test_a_target_that_no_speed_meets_is_said_with_the_best_there_is():
    found = least_speed(two_brokers(), Target(share=0.95))
    assert found.choice is None
    assert found.best.standing.margin == pytest.approx(0.9 * 0.9 - 0.95, abs=0.02)
    assert found.best.standing.worst == "far"


CROWD = """
tidings: 1
lifetime: 300ms
brokers: {hub: {}, edge: {service: {exponential: 100ms}}}
links: [{between: [hub, edge]}]
publishers:
  p: {at: hub, every: {exponential: 300ms}, content: {event: {topic: a}}}
  q: {at: hub, every: {exponential: 300ms}, content: {event: {topic: b}}}
subscribers:
  sa: {at: edge, wants: {topic: a}}
  sb: {at: edge, wants: {topic: b}}
"""


def test_brokers_that_share_subscribers_halve_what_comes():
    """One broker has both topics (λ = 6.67), two have one each (3.33): 1 − exp(−(10 − λ) .3)."""
    system = reading.loads(CROWD)
    found = least_copies(system, Target(share=0.8), "edge")
    shares = [each.standing.on_time for each in found.options]
    assert shares == pytest.approx([1 - math.exp(-1.0), 1 - math.exp(-2.0)], abs=1e-9)
    assert found.choice.size == 2
    assert len({each.at for each in found.plan.subscribers}) == 2


def test_heads_are_shared_out_and_none_is_lost():
    system = changed(
        reading.loads(CROWD), ["subscriber sa {at: edge, wants: {topic: a}, count: 8}"]
    )
    parts = shared_out(system, "edge", 3).subscribers
    assert sorted(each.count for each in parts if each.name.startswith("sa")) == [2, 3, 3]
    assert sum(each.count for each in parts) == 9
    with pytest.raises(InvalidInputError, match="links"):
        shared_out(changed(system, ["broker x {}", "link edge--x {}"]), "edge", 2)


# ---- homes ---------------------------------------------------------------------------------------


def small_random_system(seed):
    rng = np.random.default_rng(seed)
    topics = ["a", "b"]
    return reading.from_document(
        {
            "tidings": 1,
            "lifetime": 0.4,
            "brokers": {
                f"b{i}": {"service": {"exponential": float(rng.uniform(0.03, 0.09))}}
                for i in range(3)
            },
            "links": [
                {
                    "between": ["b0", "b1"],
                    "delay": float(rng.uniform(0.0, 0.2)),
                    "reliability": 0.97,
                },
                {
                    "between": ["b1", "b2"],
                    "delay": float(rng.uniform(0.0, 0.2)),
                    "reliability": 0.99,
                },
            ],
            "publishers": {
                f"p{i}": {
                    "at": f"b{rng.integers(3)}",
                    "every": {"exponential": float(rng.uniform(0.15, 0.4))},
                    "content": {"event": {"topic": topics[i % 2]}},
                }
                for i in range(2)
            },
            "subscribers": {
                f"s{i}": {
                    "at": f"b{rng.integers(3)}",
                    "wants": {"topic": topics[i % 2]},
                    "count": int(rng.integers(1, 3)),
                }
                for i in range(3)
            },
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "most"), [(1, None), (3, 3)])
def test_homes_are_those_of_brute_force(seed, most):
    target = Target(share=0.8)
    search = search_for(small_random_system(seed), target, most=most)
    found = assign_homes(search)
    every = [
        homes
        for homes in itertools.product(search.brokers, repeat=len(search.movers))
        if search.fits(homes)
    ]
    best = max(search.worth(homes) for homes in every)
    assert search.worth(tuple(found.best.homes.values())) == best
    assert found.predictions < len(search.brokers) ** len(search.movers)


def test_too_few_places_are_refused():
    with pytest.raises(InvalidInputError, match="cannot be home"):
        search_for(two_brokers(), Target(share=0.5), most=1)


# ---- admission -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def desk():
    return Admissions(system=reading.loads(CROWD), target=Target(share=0.6))


def test_who_wants_what_is_there_already_changes_nothing(desk):
    newcomer = newcomer_like(desk.system, "sa", 1000)
    answer = desk.ask(newcomer, target=0.6)
    places = {place.broker: place for place in answer.places}
    assert answer.exact
    assert answer.choice.broker == "hub"  # no queue there
    assert places["edge"].share == pytest.approx(1 - math.exp(-1.0), abs=1e-9)
    assert places["edge"].admits
    desk.admit(newcomer, places["edge"])
    assert desk.ask(newcomer, target=0.6).exact
    assert desk.confirm()


def test_who_would_let_others_down_is_turned_away():
    """At the edge topic b would come on top of a: (10 − 6.67) .3, below what all should have."""
    system = changed(reading.loads(CROWD), ["move sb to hub"])
    desk = Admissions(system=system, target=Target(share=0.8))
    newcomer = newcomer_like(system, "sb")
    answer = desk.ask(newcomer, target=0.5, brokers=["edge"])
    (place,) = answer.places
    assert answer.choice is None
    assert (place.who, place.admits) == ("sa", False)
    assert place.margin == pytest.approx(1 - math.exp(-1.0) - 0.8, abs=1e-9)
    assert desk.ask(newcomer, target=0.5).choice.broker == "hub"


def test_answers_are_exact_again_once_confirmed():
    """Admitted where its events were not, a newcomer makes later answers first-order ones."""
    system = changed(reading.loads(CROWD), ["move sb to hub", "lifetime all 1s"])
    desk = Admissions(system=system, target=Target(share=0.5))
    newcomer = newcomer_like(system, "sb")
    answer = desk.ask(newcomer, target=0.5, brokers=["edge"])
    desk.admit(newcomer, answer.choice)
    guessed = desk.ask(newcomer_like(system, "sa"), target=0.5, brokers=["edge"])
    assert not guessed.exact
    assert desk.confirm()
    sure = desk.ask(newcomer_like(desk.system, "sa"), target=0.5, brokers=["edge"])
    assert sure.exact
    alone = foretell(desk.system).subscribers.set_index("subscriber").loc["sa", "on_time"]
    assert sure.choice.share == pytest.approx(alone, abs=1e-12)


def test_where_brokers_count_heads_a_thousand_is_not_one():
    text = QUEUE.replace("{exponential: 100ms}", "{exponential: 50ms, per: subscription}")
    desk = Admissions(system=reading.loads(text), target=Target(share=0.5))
    few, many = (desk.ask(newcomer_like(desk.system, "s", count), target=0.5) for count in (1, 3))
    assert few.choice.share == pytest.approx(1 - math.exp(-(10 - 5)), abs=1e-9)
    assert many.choice is None  # four stored: 200 ms each, as much as comes


# ---- commands ------------------------------------------------------------------------------------


@pytest.fixture
def city(tmp_path):
    path = tmp_path / "city.yaml"
    path.write_text(CROWD)
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["targets", "--target", "0.6"], 0, "met"),
        (["targets", "--target", "0.7"], 1, "not met"),
        (["deadline", "--at", "0.9"], 0, "90 %"),
        (["capacity", "--broker", "edge", "--target", "0.9", "--no-simulate"], 0, "least speed"),
        (["capacity", "--copies", "edge", "--target", "0.99", "--no-simulate"], 1, "No size"),
        (["homes", "--target", "0.9", "--no-simulate"], 0, "Who should move"),
        (["admission", "--like", "sa", "--target", "0.6", "--no-simulate"], 0, "may come"),
        (
            ["admission", "--like", "sa", "--at", "edge", "--target", "0.99", "--no-simulate"],
            1,
            "may not come",
        ),
        (["admission", "--like", "nobody", "--target", "0.6"], 2, ""),
        (["admission", "--like", "sa", "--at", "nowhere", "--target", "0.6"], 2, ""),
        (["capacity"], 2, ""),
        (["capacity", "--target", "0.9", "--broker", "nowhere"], 2, ""),
        (["deadline", "--at", "2"], 2, ""),
        (["targets", "--slo", "nowhere.yaml"], 2, ""),
    ],
)
def test_commands_answer_and_their_exit_code_tells(city, arguments, code, said, capsys):
    assert run(["plan", arguments[0], city, *arguments[1:]]) == code
    printed = capsys.readouterr()
    assert said in printed.out
    assert "Traceback" not in printed.err


def test_a_plan_is_played_through_and_meets_its_target(city, capsys):
    arguments = ["plan", "capacity", city, "--broker", "edge", "--target", "0.9", "--json"]
    assert run(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["simulated"]["meets"]
    assert document["simulated"]["margin"] == pytest.approx(0.0, abs=0.02)
    assert document["choice"] == pytest.approx((20 / 3 - math.log(0.1) / 0.3) / 10, rel=0.011)


# ---- played through ------------------------------------------------------------------------------


def simulated(system):
    rows = simulate(system, seed=3, events=30_000, replications=4, warmup_s=20.0).subscribers
    assert rows["on_time_se"].max() < 0.01
    return rows.set_index("subscriber")


@pytest.mark.statistical
def test_promised_lifetimes_are_kept_and_shorter_ones_are_not():
    system = reading.loads(CROWD)
    promised = shortest_lifetimes(system, [0.9]).table.set_index("subscriber")["p90_s"]
    for factor, kept in ((1.0, True), (0.8, False)):
        own = tuple(
            replace(each, lifetime=Deterministic(value_s=factor * promised[each.name]))
            for each in system.subscribers
        )
        rows = simulated(replace(system, lifetime=None, subscribers=own))
        off = (rows["on_time"] - 0.9) / rows["on_time_se"]
        assert (abs(off) < 4.0).all() if kept else (off < -4.0).all()


@pytest.mark.statistical
def test_assigned_homes_and_admitted_newcomers_get_what_was_foreseen():
    """With a hub of its own speed the best home for both is the hub: 1 − exp(−(20 − 20/3) .3)."""
    system = changed(reading.loads(CROWD), ["service hub {exponential: 50ms}"])
    target = Target(share=0.95)
    found = assign_homes(search_for(system, target))
    desk = Admissions(system=found.plan, target=target)
    newcomer = newcomer_like(found.plan, "sa")
    choice = desk.ask(newcomer, target=0.95).choice
    assert choice.share == pytest.approx(1 - math.exp(-4.0), abs=1e-9)
    desk.admit(newcomer, choice)
    assert desk.confirm()
    assert len(desk.system.subscribers) == 3
    rows = simulated(desk.system)
    off = (rows["on_time"] - choice.share) / rows["on_time_se"]
    assert (abs(off) < 4.0).all()
    assert standing(found.plan, target, foretell(found.plan)).meets
    assert not standing(system, target, foretell(system)).meets


def test_one_head_of_a_subscriber_is_as_good_as_another():
    """A target of 1 is met only by what loses nothing; heads count, not rows."""
    system = reading.loads(TWO)
    target = Target(share=0.9, of=0.4)
    found = foreseen(replace(system, lifetime=None), target)
    assert 0.0 < found.satisfied < 1.0
