"""Histories by hand, random ones against a naive checker, planted violations, and the plan."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tidings.errors import InvalidInputError, InvalidTracesError
from tidings.histories import audiences, checking
from tidings.histories.checking import COUNTS, LEDGER, checked_history
from tidings.histories.judging import Bounds


def _beside(name):
    path = Path(__file__).parent / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"histories_{name}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


naive, made = _beside("naive_history"), _beside("conftest")
event, step, notice = made.event, made.step, made.notice


def kinds(rows):
    return sorted((row.kind, row.event, row.subscriber) for row in rows)


@pytest.mark.parametrize(
    ("in_time", "t_sub", "t_diff", "together"), [(False, 2, 3, True), (True, 1, 2, False)]
)
def test_all_and_only_what_the_definitions_say(
    checked, many_histories, monkeypatch, in_time, t_sub, t_diff, together
):
    """Three hundred random histories in one: the naive checker finds the same, row by row.

    Once as small histories are checked, once as huge ones are: audiences in shards, no broadcasts.
    """
    if not together:
        monkeypatch.setattr(audiences, "LARGEST_AUDIENCE", 1)
        monkeypatch.setattr(checking, "MOST_LIVES", -1)
        monkeypatch.setattr(checking, "MOST_CONTENTS", -1)
    histories = many_histories(300, seed=t_sub)
    expected, guaranteed = Counter(), set()
    for part in histories:
        violations, owed = naive.naive_check(part, t_sub, t_diff, in_time)
        expected += violations
        guaranteed |= owed
    assert min(Counter(kind for kind, *_ in expected).values()) > 50
    history = made.joined(histories)
    rows, counts = checked(history, t_sub, t_diff, in_time)
    seen = {(row.kind, row.event, row.subscriber, row.notified_ns): row.rows for row in rows}
    assert len(seen) == len(rows)
    assert seen == expected
    assert Counter(who for _, who in guaranteed) == {
        who: row["guaranteed"] for who, row in counts.items() if row["guaranteed"]
    }
    assert Counter(row["subscriber"] for row in history[2]) == {
        who: row["notifications"] for who, row in counts.items() if row["notifications"]
    }
    lost = Counter(who for kind, _, who, _ in expected if kind == "liveness")
    assert {who: row["lost"] for who, row in counts.items() if row["lost"]} == lost
    for row in rows:
        if row.kind == "liveness":  # the life that proves it does
            assert row.subscribed_ns + t_sub <= row.published_ns
            assert row.unsubscribed_ns is None or row.published_ns + t_diff <= row.unsubscribed_ns
            assert row.notified_ns is None or row.notified_ns > row.published_ns + t_diff


def faultless(random, name, t_sub, t_diff):
    """A history of a system that keeps its promises, and tells more than it must."""
    people = [f"{name}/p{n}" for n in range(4)]
    subscriptions, deliveries = [], []
    for who in people:
        at = int(random.integers(0, 50))
        for life in range(3):
            stay = int(random.integers(5, 200))
            wants = {"a": int(random.integers(1, 4))}
            subscriptions.append(step(who, at, "subscribe", wants, f"s{life}"))
            subscriptions.append(step(who, at + stay, "unsubscribe", None, f"s{life}"))
            at += stay + int(random.integers(1, 40))
    alive = naive.naive_lives(subscriptions)
    publications = []
    for number in range(20):
        at, a = int(random.integers(0, 400)), int(random.integers(1, 4))
        publications.append(event(f"{name}/e{number}", at, a=a))
        for who, _, wants, s, u in alive:
            took = int(random.integers(1, t_diff + 1))
            must = s + t_sub <= at and at + t_diff <= u
            may = s < at + took < u and (must or random.random() < 0.5)
            if naive.matches(wants, {"a": a}) and may:
                deliveries.append(notice(f"{name}/e{number}", who, at + took))
    return publications, subscriptions, deliveries


def plant(random, history, t_sub, t_diff):
    """The history with one violation of each kind in it, and these."""
    publications, subscriptions, deliveries = (list(part) for part in history)
    _, owed = naive.naive_check(history, t_sub, t_diff, False)
    planted = []
    if owed:
        name, who = sorted(owed)[random.integers(len(owed))]
        gone = [row for row in deliveries if (row["event"], row["subscriber"]) == (name, who)]
        deliveries = [row for row in deliveries if row not in gone]
        planted.append(("liveness", name, who))
    stranger = subscriptions[0]["subscriber"].replace("p0", "stranger")
    name = publications[random.integers(len(publications))]["event"]
    deliveries.append(notice(name, stranger, 10_000))
    planted.append(("legality", name, stranger))
    deliveries.append(notice(f"{name}x", subscriptions[0]["subscriber"], 100))
    planted.append(("validity", f"{name}x", subscriptions[0]["subscriber"]))
    return (publications, subscriptions, deliveries), planted


def test_what_was_planted_is_found_and_nothing_else(checked):
    random = np.random.default_rng(5)
    t_sub, t_diff = 12, 8
    clean = [faultless(random, f"h{n}", t_sub, t_diff) for n in range(40)]
    spoilt, planted = [], []
    for history in clean[:20]:
        worse, there = plant(random, history, t_sub, t_diff)
        spoilt.append(worse)
        planted += there
    assert len(planted) > 50
    rows, counts = checked(made.joined(spoilt + clean[20:]), t_sub, t_diff, in_time=True)
    assert kinds(rows) == sorted(planted)
    assert sum(row["notified"] for row in counts.values()) > 500  # there was much to be found


def test_the_ends_of_a_life(checked):
    """s < t < u for what may come, s + T_sub ≤ t and t + T_diff ≤ u for what must."""
    history = (
        [event("early", 9), event("soon", 11), event("first", 12), event("last", 17),
         event("late", 18)],
        [step("p", 10, "subscribe", {}), step("p", 20, "unsubscribe")],
        [notice("first", "p", 20), notice("early", "p", 10)],
    )  # fmt: skip
    rows, counts = checked(history, t_sub=2, t_diff=3)
    assert kinds(rows) == [
        ("legality", "early", "p"),  # at the very moment of subscribing
        ("legality", "first", "p"),  # at the very moment of unsubscribing
        ("liveness", "last", "p"),  # "first" did come, though too late to be legal
    ]
    assert counts["p"]["guaranteed"] == 2


def test_what_is_due_after_the_end_of_the_recording_is_not_missed(checked):
    history = ([event("e", 10), event("f", 13)], [step("p", 1, "subscribe", {})], [])
    assert kinds(checked(history, t_diff=3, until=15)[0]) == [("liveness", "e", "p")]
    assert len(checked(history, t_diff=3)[0]) == 2


def test_a_clean_history_has_no_violations_and_its_counts_say_so(checked):
    history = (
        [event("e", 5, a=1)],
        [step("p", 1, "subscribe", {"a": 1}), step("q", 1, "subscribe", {"a": 2})],
        [notice("e", "p", 6)],
    )
    rows, counts = checked(history)
    assert rows == []
    assert counts == {
        "p": {
            "subscriber": "p", "guaranteed": 1, "notified": 1, "lost": 0,
            "notifications": 1, "illegal": 0, "invalid": 0,
        }
    }  # fmt: skip


def test_an_event_that_everybody_wants_is_shared_out(checked, monkeypatch):
    monkeypatch.setattr(audiences, "LARGEST_AUDIENCE", 10)
    people = [f"p{n}" for n in range(95)]
    history = (
        [event("e", 5)],
        [step(who, 1, "subscribe", {}) for who in people],
        [notice("e", who, 6) for who in people if who != "p7"],
    )
    rows, counts = checked(history)
    assert kinds(rows) == [("liveness", "e", "p7")]
    assert sum(row["guaranteed"] for row in counts.values()) == 95


def test_content_that_is_no_event_is_neither_illegal_nor_missed(checked):
    broken = {**event("e", 5), "content": "{"}
    history = ([broken, event("f", 5)], [step("p", 1, "subscribe", {})], [notice("e", "p", 6)])
    assert kinds(checked(history)[0]) == [("liveness", "f", "p")]


def test_rows_that_cannot_be_true_are_set_aside_and_counted(tables):
    history = (
        [event("e", 5), event("f", -1)],
        [step("p", 1, "subscribe", {})],
        [notice("e", "p", 6), notice("e", None, 6), notice("e", None, 7)],
    )
    with checked_history(tables(history), Bounds(subscription_ns=0, diffusion_ns=0)) as found:
        assert found.violations.collect() == []
        rows = {tuple(row) for row in found.bad_rows.itertuples(index=False)}
    assert rows == {
        ("publications", "published_ns is negative", 1),
        ("deliveries", "no subscriber", 2),
    }


@pytest.mark.parametrize("small", [True, False])
def test_the_plan_compares_nothing_with_everything(tables, many_histories, monkeypatch, small):
    """No cartesian product, no Python for events, one shuffle of events unless audiences are huge.

    Contents are matched by Python where they are distinct, and only there: what is shuffled by
    event has passed no Python.
    """
    if not small:
        monkeypatch.setattr(checking, "MOST_LIVES", -1)
        monkeypatch.setattr(checking, "MOST_CONTENTS", -1)
    history = made.joined(many_histories(3, seed=1))
    with checked_history(tables(history), Bounds(subscription_ns=1, diffusion_ns=1)) as found:
        names = [(f.name, f.dataType.simpleString()) for f in found.ledger.schema]
        assert names == [tuple(part.split()) for part in LEDGER.split(", ")]
        names = [(f.name, f.dataType.simpleString()) for f in found.counts.schema]
        assert names == [tuple(part.split()) for part in COUNTS.split(", ")]
        cached = found.ledger._jdf.queryExecution().withCachedData().toString()
    plan = cached.split("Final Plan")[0]
    assert "hashpartitioning(event" in plan
    assert "CartesianProduct" not in cached
    assert "BroadcastNestedLoopJoin" not in cached
    assert not any(word in cached for word in ("EvalPython", "FlatMapGroupsInPandas"))
    if small:
        assert "hashpartitioning(wanted" not in plan.split("hashpartitioning(event")[0]


def test_what_cannot_be_checked_is_an_error(checked):
    with pytest.raises(InvalidInputError, match="subscription_ns is -1"):
        Bounds(subscription_ns=-1, diffusion_ns=0)
    bad = ([event("e", 5)], [step("p", 1, "subscribe", {"a": {"bellow": 3}})], [])
    with pytest.raises(InvalidTracesError, match="bellow"):
        checked(bad)
    with pytest.raises(InvalidTracesError, match="publications: there are none"):
        checked(([], [step("p", 1, "subscribe", {})], []))
