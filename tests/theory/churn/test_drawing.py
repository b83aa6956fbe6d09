"""What others draw who come and go: by hand, against every state of everybody, and simulated."""

from __future__ import annotations

import itertools
import math

import pytest

from tidings.model.reading import from_document
from tidings.simulation.run import simulate
from tidings.theory.churn.drawing import Guests, drawn_to, draws, others
from tidings.theory.predicting import predict

# 0 – 1 – 2 – 3, to which 3 is the end; 4 hangs on 1, 5 on 4, and 6 on the end itself.
ONWARDS = {0: (1, 0), 1: (2, 1), 2: (3, 2), 4: (1, 3), 5: (4, 4), 6: (3, 5)}
LINE, JOINS = [0, 1, 2, 3], {0: 0, 1: 1, 2: 2, 3: 3, 4: 1, 5: 1, 6: 3}


@pytest.mark.parametrize("least", [0, 1, 3])
def test_the_furthest_broker_over_all_states_of_all_guests(least):
    """Everybody there or not, all states weighed: the law of the furthest place that anyone joins.

    Two at broker 5 are told as one that is away if both are.
    """
    present = [(0, 0.9), (2, 0.3), (5, 0.5), (5, 0.25), (6, 0.125)]
    exact = dict.fromkeys(range(4), 0.0)
    for state in itertools.product((False, True), repeat=len(present)):
        chance = math.prod(
            p if here else 1 - p for here, (_, p) in zip(state, present, strict=True)
        )
        there = [JOINS[broker] for here, (broker, _) in zip(state, present, strict=True) if here]
        exact[max([least, *there])] += chance
    away = {0: 0.1, 2: 0.7, 5: 0.5 * 0.75, 6: 0.875}
    guests = [Guests(broker=at, log_absent=math.log(p)) for at, p in away.items()]
    found = draws(ONWARDS, LINE, least, guests)
    assert dict(found) == pytest.approx({k: v for k, v in exact.items() if v > 0}, abs=1e-15)


def test_those_who_are_there_to_stay_draw_for_certain():
    assert drawn_to(ONWARDS, LINE, ()) == 0
    assert drawn_to(ONWARDS, LINE, (0, 5)) == 1
    assert drawn_to(ONWARDS, LINE, (5, 6)) == 3


def test_nobody_draws_for_himself():
    """Three alike at the end, there half of the time: two others, away together in a quarter."""
    alike = [Guests(broker=3, log_absent=3 * math.log(0.5))]
    found = draws(ONWARDS, LINE, 0, others(alike, 3, 0.5))
    assert dict(found) == pytest.approx({0: 0.25, 3: 0.75}, abs=1e-15)
    alone = [Guests(broker=3, log_absent=math.log(0.5))]
    assert draws(ONWARDS, LINE, 0, others(alone, 3, 0.5)) == ((0, 1.0),)


def line(subscribers):
    """a – b – c, a second each, a publisher at a."""
    document = {
        "tidings": 1,
        "lifetime": "10s",
        "brokers": {"a": {}, "b": {}, "c": {}},
        "links": [{"between": [*pair], "delay": "1s", "reliability": 0.8} for pair in ("ab", "bc")],
        "publishers": {
            "p": {"at": "a", "every": {"exponential": "1s"}, "content": {"event": {"x": 1}}}
        },
        "subscribers": subscribers,
    }
    return from_document(document, "a test")


TEN = {"at": "c", "wants": {"x": 1}, "stays": "10s", "away": "30s"}


def test_guests_on_the_way_and_at_the_end_by_hand():
    """Known at a, b or c after 2, 1 or 0 s of a stay of 10 s, of which the last 2 s are too late.

    Half of the time somebody is at b, and for 1 − ¾² of it one of two others at c; one whose
    contents differ counts for nothing.
    """
    half = {"at": "b", "wants": {}, "stays": {"exponential": "50s"}, "away": "50s"}
    others_too = {"other": {**half, "wants": {"y": 2}}}
    rows = predict(line({"s": {**TEN, "count": 3}, "half": half, **others_too})).subscribers
    row = rows.set_index("subscriber").loc["s"]
    end = 1 - 0.75**2
    at_a = (1 - end) * 0.5
    # What is matched at b takes its second there as well: nothing of that comes too early.
    assert row["lost_not_known"] == pytest.approx(at_a * 0.2, abs=1e-12)
    assert row["delivered"] == pytest.approx(0.64 * (0.8 - at_a * 0.2), abs=1e-12)


def test_who_is_back_at_once_is_known():
    (row,) = predict(line({"s": {**TEN, "away": "0s"}})).subscribers.to_dict("records")
    assert row["lost_not_known"] == 0.0
    assert row["delivered"] == pytest.approx(0.64 * 0.8, abs=1e-12)


def test_guests_in_haste_are_warned_of():
    slow = {**TEN, "stays": "20s"}
    assert not predict(line({"s": slow, "t": slow})).warnings
    fast = {**TEN, "stays": "3s"}
    assert not predict(line({"t": fast})).warnings
    (said,) = predict(line({"s": slow, "t": fast})).warnings
    assert said.startswith("s, t: others that come and go within 4 delays")
    (soon,) = predict(line({"t": {**slow, "away": "1s"}})).warnings
    assert soon.startswith("t: back so soon")


@pytest.mark.slow
@pytest.mark.statistical
def test_many_guests_are_so_simulated():
    """Two who come and go at c, and one at b: what each would miss alone the others draw."""
    at_b = {"at": "b", "wants": {}, "stays": {"exponential": "40s"}, "away": {"exponential": "40s"}}
    comes = {**TEN, "stays": {"exponential": "20s"}, "away": {"exponential": "20s"}, "count": 2}
    system = line({"s": comes, "t": at_b})
    run = simulate(system, replications=8, duration_s=20_000.0, warmup_s=200.0).subscribers
    said = predict(system).subscribers
    alone = predict(line({"s": {**comes, "count": 1}})).subscribers
    assert said["delivered"][0] > alone["delivered"][0] + 0.02
    assert (run["on_time_se"] < 0.004).all()
    for name in ("delivered", "lost_not_known"):
        gap = (run[name] - said[name]).abs()
        assert (gap < 3.5 * run["on_time_se"]).all()
