from __future__ import annotations

import math

import pytest

from tidings.model.outcome import Outcome, table
from tidings.planning.budget import Budget
from tidings.planning.change_kinds import Change
from tidings.planning.change_search import Aim, Remedy
from tidings.planning.evidence import TargetStanding
from tidings.reporting import headline
from tidings.reporting.reasons import Deadline, DelayPart, Explanation, Reasons


def outcome(rows, *, brokers=(), links=(), source="measured"):
    full = [{"count": 1, "wanted_per_s": 1.0, "broker": "hub"} | row for row in rows]
    return Outcome(
        source=source,
        subscribers=table("subscribers", full),
        brokers=table("brokers", brokers),
        links=table("links", links),
    )


def shares(*on_time):
    return outcome(
        [
            {"subscriber": f"s{i}", "on_time": share, "late": 1 - share, "delivered": 1.0}
            for i, share in enumerate(on_time)
        ]
    )


WAITING = Reasons(
    subscribers={
        "s0": Explanation(
            parts=(
                DelayPart(kind="wait", place="core", mean_s=0.6),
                DelayPart(kind="link", place="core → hub", mean_s=0.2),
            ),
            deadlines=(Deadline(lifetime_s=0.5, share=1.0),),
        )
    },
    late_through={"core": 0.75, "hub": 1.0},
)


def test_the_lead_says_on_time_late_and_lost():
    found = outcome(
        [
            {"subscriber": "a", "on_time": 0.9, "late": 0.1, "wanted_per_s": 3.0},
            {"subscriber": "b", "on_time": 0.5, "late": 0.1, "lost_link": 0.4},
        ]
    )
    assert headline.lead(found) == (
        "80.0 % of the wanted events arrive on time; 10.0 % arrive late and 10.0 % never."
    )


def test_nobody_wanting_anything_is_said_so():
    found = outcome([{"subscriber": "a", "on_time": math.nan, "wanted_per_s": 0.0}])
    assert headline.lead(found).startswith("No published event")
    assert headline.sentences({"measured": found}, Reasons()) == []
    assert headline.figures({"measured": found})[0].value == "–"


def test_who_counts_those_below_a_telling_threshold_and_names_the_worst():
    found = shares(0.3, *[0.65] * 3, *[0.99] * 56)
    # 1 of 60 below 60 % is not telling yet, 4 of 60 below 70 % is.
    who = headline.sentences({"measured": found}, Reasons())[0].text
    assert who.startswith("4 of 60 subscribers get less than 70 % on time; the worst, s0 at")
    assert "gets 30.0 %" in who


def test_who_is_glad_when_all_is_well():
    who = headline.sentences({"measured": shares(0.999, 1.0)}, Reasons())[0].text
    assert who.startswith("All 2 subscribers get at least 99 % on time")


def test_identical_subscribers_count_each():
    row = {"subscriber": "a", "on_time": 0.4, "late": 0.6, "count": 30}
    who = headline.sentences({"measured": outcome([row])}, Reasons())[0].text
    assert who.startswith("30 of 30 subscribers")


def test_the_worst_is_explained_by_the_longest_part_and_its_deadline():
    found = outcome([{"subscriber": "s0", "on_time": 0.3, "late": 0.7, "delay_mean_s": 0.8}])
    who = headline.sentences({"measured": found}, WAITING)[0].text
    assert "it waits at core (75 % of its delay)" in who
    assert "the mean delay is 800 ms, with a lifetime of 500 ms" in who


def test_the_broker_to_blame_has_the_waits_that_late_events_pass():
    busy = {"broker": "core", "utilisation": 0.78, "wait_mean_s": 0.31, "service_mean_s": 0.04}
    calm = {"broker": "hub", "utilisation": 0.10, "wait_mean_s": 0.01, "service_mean_s": 0.04}
    found = outcome(
        [{"subscriber": "s0", "on_time": 0.3, "late": 0.7}],
        brokers=[calm, busy | {"arrivals_per_s": 19.5}],
    )
    late = headline.sentences({"measured": found}, WAITING)[1]
    assert late.question == "Why late"
    assert late.text == (
        "75 % of all late events pass broker core, which is 78 % busy with 19.5 events/s: "
        "an event waits 310 ms there on average, and is served in 40 ms."
    )


def test_an_overloaded_broker_is_called_so():
    full = {"broker": "core", "utilisation": 1.2, "wait_mean_s": math.inf}
    found = outcome([{"subscriber": "s0", "on_time": 0.0, "late": 1.0}], brokers=[full])
    late = headline.sentences({"measured": found}, WAITING)[1].text
    assert late.startswith("Broker core is overloaded: its queue grows without limit.")


@pytest.mark.parametrize("cause", ["link", "unexplained"])
def test_losses_are_traced_to_the_lossiest_link(cause):
    found = outcome(
        [{"subscriber": "s0", "on_time": 0.5, "late": 0.1, f"lost_{cause}": 0.4}],
        links=[{"source": "core", "target": "hub", "lost": 0.35}],
    )
    reasons = Reasons(
        subscribers={"s0": Explanation(losses=(("core → hub", 0.3), ("a → b", 0.1)))},
        lost_on={"core → hub": 0.3, "a → b": 0.1},
    )
    by_question = {s.question: s.text for s in headline.sentences({"measured": found}, reasons)}
    assert (
        "75 % of what links lose is lost on core → hub, which loses 35.0 %"
        in by_question["Why lost"]
    )
    assert "it loses 30.0 % of its events on core → hub" in by_question["Who"]


def test_other_causes_are_named():
    row = {"on_time": 0.5, "lost_overflow": 0.5, "late": 0.0}
    found = outcome([{"subscriber": "s0"} | row])
    by_question = {s.question: s.text for s in headline.sentences({"measured": found}, Reasons())}
    assert by_question["Why lost"] == "Dropped because a buffer was full: 100 % of all losses."
    assert "it loses 50.0 % (dropped because a buffer was full)" in by_question["Who"]


def test_the_measured_outcome_speaks_and_the_others_are_compared_with_it():
    outcomes = {"measured": shares(0.5), "predicted": shares(0.52)}
    predicted = outcomes["predicted"]
    outcomes["predicted"] = Outcome(source="predicted", subscribers=predicted.subscribers)
    assert headline.main_source(outcomes) == "measured"
    sure = headline.sentences(outcomes, Reasons())[-1]
    assert sure.question == "How sure"
    assert "prediction differs from the measured on-time shares by 2 percentage points" in sure.text
    assert "2 %" in [figure.value for figure in headline.figures(outcomes)]


def test_who_misses_nothing_needs_no_reason():
    row = {"on_time": 0.999, **{f"lost_{cause}": 0.0 for cause in headline.CAUSES}}
    assert headline.reason(row, None) == ""
    assert headline.reason(row | {"on_time": 0.9}, None) == "gets events late"
    assert headline.reason(row | {"on_time": math.nan}, None) == ""


def aim(verdict=None):
    """Who misses a target by 8.5 points, and what helps, or that nothing does."""
    standing = TargetStanding(
        source="predicted",
        on_time=0.9,
        satisfied=0.5,
        worst="billing",
        margin=-0.085,
        error=0.0033,
        meets=False,
        tells="misses",
    )
    changes = (Change("rate", "sale", 5.0),)
    least = Remedy(changes=changes, on_time=0.955, gain=0.046, error=0.004, verdict=verdict or "")
    return Aim(standing=standing, least=least if verdict else None)


def answers(aim, *remedies):
    """What the page says of these targets and remedies, by question."""
    predicted = shares(0.9)
    budget = Budget(outcome=predicted, totals=[], remedies=remedies, aim=aim)
    said = headline.sentences({"predicted": predicted}, Reasons(), budget)
    return {each.question: each.text for each in said}


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        ("meets", "The least change that meets them all: rate"),
        ("undecided", "The least change that meets them all, within its error: rate"),
        ("misses", "The least change that comes nearest to meeting them all: rate"),
        (None, "No single change that was tried meets all targets."),
    ],
)
def test_targets_are_said_with_the_least_change_that_meets_them(verdict, said):
    found = answers(aim(verdict))
    text = found["Targets"]
    assert "50.0 % of the subscribers with a target reach it (predicted)" in text
    assert "the worst, billing, lies 8.5 (± 0.33) percentage points below its own." in text
    assert said in text


def test_a_change_that_was_named_is_not_told_again():
    named = aim("meets")
    assert answers(named, named.least)["Targets"].endswith(
        "The least change that meets them all: the same."
    )
