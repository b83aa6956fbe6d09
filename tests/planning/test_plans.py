from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from planning.small_systems import CROWD, INVERTED, TWO, one_queue, two_brokers
from planning.truths import played_by
from tidings.cli.commands import run
from tidings.errors import InvalidInputError
from tidings.model import reading
from tidings.model.laws import Deterministic
from tidings.planning.admission import Admissions, newcomer_like
from tidings.planning.capacity import CLOSE as SPEED_CLOSE
from tidings.planning.capacity import least_copies, least_speed, shared_out
from tidings.planning.changes import changed, check_whole
from tidings.planning.deadlines import CLOSE, column, shortest_lifetimes
from tidings.planning.evidence import MISSES, OPEN, Target, foretell, standing, weigh
from tidings.planning.homes import assign_homes, search_for
from tidings.prediction.choices import WITHIN
from tidings.simulation.run import simulate

# ---- deadlines -----------------------------------------------------------------------------------


def test_deadlines_of_a_queue_are_quantiles_of_its_response():
    """M/M/1, half full: exponential with rate 5, so that −log(1 − q)/5 s suffice."""
    found = shortest_lifetimes(one_queue())
    for level in (0.95, 0.99, 0.999):
        exact_s = -math.log1p(-level) / 5
        given_s = found.table[column(level)][0]
        assert exact_s * (1 - 1e-5) <= given_s <= exact_s * (1 + CLOSE + 1e-5)
    assert found.possible


@pytest.mark.parametrize("slower", [0.99, 0.8])
def test_promises_that_the_simulation_speaks_against_are_made_longer(slower, theory_off_by):
    """In truth the queue is slower: response at rate 10 f − 5; at most twice as much is added."""
    given_s = shortest_lifetimes(one_queue(), [0.9]).table["p90_s"][0]
    theory_off_by(1.0)
    found = shortest_lifetimes(one_queue(), [0.9], play=played_by(f"speed all x{slower}"))
    exact_s = -math.log1p(-0.9) / (10 * slower - 5)
    assert found.possible
    longer_s = found.table["p90_s"][0]
    assert exact_s <= longer_s * (1 + 1e-5)
    assert longer_s - given_s < 2 * (exact_s - given_s) + 0.01 * given_s
    never = shortest_lifetimes(one_queue(), [0.9], play=played_by("speed all x0.55"))
    assert never.verdict == OPEN
    assert shortest_lifetimes(one_queue(), [0.9], play=played_by()).table["p90_s"][0] == given_s


def test_what_is_promised_is_longer_by_what_theory_can_be_off(theory_off_by):
    """Nothing is played: 1 − exp(−5 τ) less .02 is to be .9."""
    theory_off_by(0.02)
    found = shortest_lifetimes(one_queue(), [0.9])
    exact_s = -math.log1p(-0.92) / 5
    assert found.possible
    assert exact_s <= found.table["p90_s"][0] < 1.3 * exact_s
    theory_off_by(0.2)
    assert shortest_lifetimes(one_queue(), [0.9]).verdict == OPEN


def test_what_threefold_times_do_not_keep_is_not_tried_for_long(theory_off_by):
    """A tenth is lost of which the prediction knows nothing: two plays, and none for more."""
    theory_off_by(1.0)
    plays = []

    def lossy(plan, precision):
        plays.append(plan)
        found = played_by()(plan, precision)
        found.subscribers["on_time"] *= 0.9
        return found

    found = shortest_lifetimes(one_queue(), [0.99, 0.95], play=lossy)
    assert found.verdicts == (OPEN, OPEN)
    assert len(plays) == 2
    short_s, long_s = (each.subscribers[0].lifetime.mean_s for each in plays)
    assert long_s == pytest.approx(3 * short_s)
    assert list(found.table.columns[-2:]) == ["p99_s", "p95_s"]
    assert found.table["p95_s"][0] == pytest.approx(long_s)
    assert found.table["p99_s"][0] >= found.table["p95_s"][0]


def test_what_is_lost_cannot_be_promised():
    found = shortest_lifetimes(two_brokers(), [0.95])
    table = found.table.set_index("subscriber")
    # The link loses a tenth, the broker is up nine tenths of the time, and what is with it (at 4.5
    # and 1 events a second, served 20 a second) when it fails, every 900 s, is lost with it.
    outlives = 14.5 / (14.5 + 1 / 900)
    assert table.loc["far", "best"] == pytest.approx(0.9 * 0.9 * outlives, abs=WITHIN)
    assert math.isinf(table.loc["far", "p95_s"])
    assert not found.possible
    with pytest.raises(InvalidInputError):
        shortest_lifetimes(one_queue(), [1.0])


def test_a_share_within_its_error_of_a_level_does_not_rule_the_level_out(theory_off_by):
    """Chance may put one of two equal subscribers above a level, and the other below it."""
    theory_off_by(0.0)
    assert shortest_lifetimes(two_brokers(), [0.95]).verdict == MISSES
    theory_off_by(0.2)
    assert shortest_lifetimes(two_brokers(), [0.95]).verdict == OPEN


def test_equal_subscribers_get_equal_deadlines_where_their_share_is_just_the_level():
    """The link delivers 0.999, rounded down for one of them and not for the other."""
    loss = "delay: {exponential: 10ms}, reliability: 0.999"
    system = reading.loads(
        f"""
        tidings: 1
        brokers: {{hub: {{service: {{exponential: 4ms}}}}, east: {{service: {{exponential: 5ms}}}}}}
        links: [{{between: [hub, east], {loss}}}]
        publishers:
          shop:
            at: hub
            every: {{exponential: 9ms}}
            content: [{{p: 0.7, event: {{region: eu}}}}, {{p: 0.3, event: {{region: us}}}}]
        subscribers: {{stock: {{at: east, wants: {{region: eu}}}}, all: {{at: east, wants: {{}}}}}}
        """
    )
    one, other = shortest_lifetimes(system, [0.999]).table["p99.9_s"]
    assert math.isfinite(one)
    assert one == pytest.approx(other, rel=2 * CLOSE)


# ---- capacity ------------------------------------------------------------------------------------


def test_the_least_speed_of_a_queue_is_what_its_closed_form_says():
    """1 − exp(−(10 f − 5) τ) = q at f = (5 − log(1 − q)/τ)/10."""
    for share, lifetime_s in ((0.99, 0.5), (0.9, 1.0)):
        system = changed(one_queue(), [f"lifetime all {lifetime_s}s"])
        exact = (5 - math.log1p(-share) / lifetime_s) / 10
        found = least_speed(system, Target(share=share))
        assert exact * (1 - INVERTED) <= found.choice.size <= exact * (1 + SPEED_CLOSE)
        assert weigh(found.plan, Target(share=share)).meets
        short = [each for each in found.options if each.size < found.choice.size]
        assert short
        assert not any(each.standing.meets for each in short)


def test_a_target_that_no_speed_meets_is_said_with_the_best_there_is():
    found = least_speed(two_brokers(), Target(share=0.95))
    assert found.choice is None
    assert found.best.standing.margin == pytest.approx(0.9 * 0.9 - 0.95, abs=0.02)
    assert found.best.standing.worst == "far"


@pytest.mark.parametrize("slower", [0.98, 0.9, 0.5])
def test_where_the_simulation_speaks_against_a_speed_the_next_is_taken(slower, theory_off_by):
    """In truth all is slower than the model says: that much more speed is needed."""
    theory_off_by(1.0)
    system = changed(one_queue(), ["lifetime all 0.5s"])
    exact = (5 - math.log1p(-0.99) / 0.5) / 10 / slower
    found = least_speed(system, Target(share=0.99), play=played_by(f"speed all x{slower}"))
    assert exact * (1 - 1e-6) <= found.choice.size <= exact * (1 + SPEED_CLOSE)
    assert found.choice.evidence.simulated.meets
    assert weigh(found.plan, Target(share=0.99)).predicted.meets
    played = [each for each in found.options if each.evidence.simulated]
    refuted = [each for each in played if each.standing.meets and not each.evidence.meets]
    assert refuted
    assert all(each.size < found.choice.size for each in refuted)


def test_a_size_within_the_error_of_the_prediction_is_decided_by_the_simulation(theory_off_by):
    """Two standard errors of .002 above .99: as fast as .994 needs; none is sure of .995 ± .01."""
    theory_off_by(0.01)
    system, target = changed(one_queue(), ["lifetime all 0.5s"]), Target(share=0.99)
    exact = (5 - math.log1p(-0.994) / 0.5) / 10
    found = least_speed(system, target, play=played_by(noise=0.002))
    assert exact * (1 - 1e-6) <= found.choice.size <= exact * (1 + SPEED_CLOSE)
    assert found.choice.evidence.predicted.tells == OPEN
    assert least_speed(system, Target(share=0.995), play=played_by(noise=0.006)).verdict == OPEN
    # A lossy link keeps everybody .005 below, which the prediction might be off by.
    lossy = changed(reading.loads(CROWD), ["link hub--edge {reliability: 0.985}"])
    assert least_speed(lossy, target).verdict == OPEN
    assert least_speed(lossy, target, play=played_by()).verdict == MISSES
    better = played_by("reliability all 1")
    assert least_speed(lossy, target, play=better).choice.evidence.simulated.meets


@pytest.mark.parametrize("arguments", [[], ["--simulate"], ["--no-simulate"]])
def test_a_gate_within_the_error_of_the_prediction_is_decided_by_the_simulation(
    arguments, world, capsys, theory_off_by
):
    """Predicted .632; in truth more, or less, by less than the model's error."""
    theory_off_by(0.01)
    for target, change, code in ((0.63, 0.98, 1), (0.635, 1.02, 0), (0.6, 0.999, 0)):
        city = world(CROWD, f"speed all x{change}")
        found = run(["plan", "targets", city, "--target", str(target), "--json", *arguments])
        document = json.loads(capsys.readouterr().out)
        near = target != 0.6
        assert document["predicted"]["tells"] == ("undecided" if near else "meets")
        if arguments == ["--no-simulate"]:
            assert found == near  # it cannot be told, which opens no gate
        else:
            assert found == code
        played = arguments == ["--simulate"] or (near and not arguments)
        assert (document["simulated"] is not None) == played


def test_where_every_simulation_speaks_against_it_no_size_is_named(theory_off_by):
    theory_off_by(1.0)
    system, target = changed(reading.loads(CROWD), ["lifetime all 1s"]), Target(share=0.9)
    lossy = played_by("link hub--edge {reliability: 0.8}")
    for found in (
        least_speed(system, target, play=lossy),
        least_copies(system, target, "edge", most=3, play=lossy),
    ):
        assert found.choice is None
        assert found.verdict == MISSES
        assert found.to_document()["verdict"] == MISSES
    more = least_copies(system, target, "edge", most=3, play=played_by("speed edge x0.75"))
    assert (more.choice.size, more.options[0].evidence.verdict) == (2, MISSES)


def test_brokers_that_share_subscribers_halve_what_comes():
    """One broker has both topics (λ = 6.67), two have one each (3.33): 1 − exp(−(10 − λ) .3)."""
    system = reading.loads(CROWD)
    found = least_copies(system, Target(share=0.8), "edge")
    shares = [each.standing.on_time for each in found.options]
    assert shares == pytest.approx([1 - math.exp(-1.0), 1 - math.exp(-2.0)], abs=INVERTED)
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


def test_copies_of_a_broker_have_names_of_their_own_and_fail_with_it():
    text = (
        CROWD
        + """
failure_groups: {rack: {members: [edge, hub--edge], failure: {mtbf: 900s, mttr: 100s}}}
recovery: {scheme: periodic}
"""
    )
    taken = [
        "broker 'edge 2' {}",
        "link 'hub--edge 2' {}",
        "subscriber 'sa 2' {at: hub, wants: {}}",
    ]
    many = ["subscriber sa {at: edge, wants: {topic: a}, count: 2}"]
    found = shared_out(changed(reading.loads(text), taken + many), "edge", 2)
    check_whole(found, "shared out")
    assert [each.name for each in found.brokers] == ["hub", "edge", "edge 2", "edge 3"]
    (rack,) = found.failure_groups
    assert rack.members == ("edge", "hub--edge", "edge 3", "hub--edge 3")
    heads = {each.name: each.at for each in found.subscribers}
    assert heads == {"sa": "edge", "sa 3": "edge 3", "sb": "edge", "sa 2": "hub"}


def test_who_goes_where_does_not_depend_on_names():
    """Names of one parity of their bytes, as s0 and s2, are dealt out as any others are."""
    for names in (("s0", "s2", "s4"), ("s0", "s1", "s2")):
        more = [f"subscriber {name} {{at: edge, wants: {{topic: a}}}}" for name in names]
        parts = shared_out(changed(reading.loads(CROWD), more), "edge", 2).subscribers
        homes = [each.at for each in parts if each.name in names]
        assert sorted(homes.count(place) for place in ("edge", "edge 2")) == [1, 2]


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
        (["deadline", "--at", "0.9", "--no-simulate"], 0, "90 %"),
        (["capacity", "--broker", "edge", "--target", "0.9", "--no-simulate"], 0, "least speed"),
        (["capacity", "--copies", "edge", "--target", "0.99", "--no-simulate"], 1, "No size"),
        (["admission", "--like", "nobody", "--target", "0.6"], 2, ""),
        (["admission", "--like", "sa", "--at", "nowhere", "--target", "0.6"], 2, ""),
        (["capacity", "--target", "0.9", "--no-simulate"], 0, "cheapest mix that was found adds"),
        (["capacity", "--target", "0.9", "--no-simulate", "--cost", "edge=3"], 0, "found costs"),
        (["capacity", "--target", "0.9", "--cost", "edge"], 2, ""),
        (["capacity", "--target", "0.9", "--cost", "edge=3", "--broker", "edge"], 2, ""),
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


def test_a_plan_is_played_through_and_meets_its_target(city, capsys, theory_off_by):
    theory_off_by(0.05)
    arguments = ["plan", "capacity", city, "--broker", "edge", "--target", "0.9", "--json"]
    assert run(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["simulated"]["meets"]
    assert document["simulated"]["margin"] == pytest.approx(0.0, abs=0.02)
    least = (20 / 3 - math.log(0.1) / 0.3) / 10
    assert 0.99 * least < document["choice"] < 1.05 * least


@pytest.mark.parametrize(
    ("arguments", "truth", "code", "said"),
    [
        (["targets", "--target", "0.6", "--simulate"], [], 0, "met"),
        (["targets", "--target", "0.6", "--simulate"], ["speed all x0.8"], 1, "not met"),
        (["targets", "--target", "0.7", "--simulate"], ["speed all x2"], 0, "met"),
        (["targets", "--target", "0.7", "--simulate"], [], 1, "not met"),
        (["deadline", "--at", "0.9"], ["speed all x0.9"], 0, "90 %"),
        (["deadline", "--at", "0.9"], ["speed all x0.7"], 1, "Undecided whether every"),
        (["capacity", "--broker", "all", "--target", "0.9"], ["speed all x0.5"], 0, "least speed"),
        (["capacity", "--broker", "all", "--target", "0.9"], ["lifetime all 1ms"], 1, "No size"),
        (["capacity", "--copies", "edge", "--target", "0.8"], [], 0, "need 2 brokers"),
    ],
)
def test_commands_follow_their_evidence(arguments, truth, code, said, world, capsys, theory_off_by):
    theory_off_by(0.01 if arguments[0] == "targets" else 1.0)
    assert run(["plan", arguments[0], world(CROWD, *truth), *arguments[1:]]) == code
    assert said in " ".join(capsys.readouterr().out.split())


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
    assert choice.share == pytest.approx(1 - math.exp(-4.0), abs=INVERTED)
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
    found = weigh(replace(system, lifetime=None), target).predicted
    assert 0.0 < found.satisfied < 1.0
