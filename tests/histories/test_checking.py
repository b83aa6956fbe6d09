"""Histories by hand, random ones against a naive checker, planted violations, and the plan."""

from __future__ import annotations

import importlib.util
import re
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


def collected(found):
    counts = {row.subscriber: row.asDict() for row in found.counts.collect()}
    return found.violations.collect(), counts


def compares_nothing_with_everything(found, together):
    """No cartesian product, no Python for events; huge audiences are met by a shuffle, by bucket.

    Contents are matched by Python where they are distinct, and only there.
    """
    plan = found.ledger._jdf.queryExecution().toString()
    assert "hashpartitioning(event" in plan
    assert "CartesianProduct" not in plan
    assert "BroadcastNestedLoopJoin" not in plan
    assert "EvalPython" not in plan
    # Notifications are not looked through once for every shard of their audience.
    assert not re.search(r"filter\(notices[^\n]*xxhash64", plan)
    assert set(re.findall(r"MapIn\w+ [^#]*", plan)) == {"MapInPandas match(content"}
    shard = r"(?:, (?:shard#\d+|0))?"  # where all are in one, Spark knows its number
    joins = set(re.findall(rf"(\w+Join) \[wanted#\d+, bucket#\d+{shard}\]", plan))
    assert joins == {"BroadcastHashJoin"} if together else joins & {"SortMergeJoin"}


def faultless(random, name, t_sub, t_diff):
    """A history of a system that keeps its promises, and tells more than it must."""
    people = [f"{name}/p{n}" for n in range(4)]
    subscriptions, deliveries = [], []
    for who in people:
        at = int(random.integers(0, 50))
        for life in range(3):
            stay = int(random.integers(5, 200))
            wants = {"h": name, "a": int(random.integers(1, 4))}
            subscriptions.append(step(who, at, "subscribe", wants, f"s{life}"))
            subscriptions.append(step(who, at + stay, "unsubscribe", None, f"s{life}"))
            at += stay + int(random.integers(1, 40))
    alive = naive.naive_lives(subscriptions)
    publications = []
    for number in range(20):
        at, a = int(random.integers(0, 400)), int(random.integers(1, 4))
        publications.append(event(f"{name}/e{number}", at, a=a, h=name))
        for who, _, wants, s, u in alive:
            took = int(random.integers(1, t_diff))  # one at u itself would be illegal
            must = s + t_sub <= at and at + t_diff <= u
            may = s < at + took < u and (must or random.random() < 0.5)
            if naive.matches(wants, {"a": a, "h": name}) and may:
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


def planted_histories(t_sub, t_diff):
    """Histories of systems that keep their promises, half of them with violations put in."""
    random = np.random.default_rng(5)
    clean = [faultless(random, f"f{n}", t_sub, t_diff) for n in range(40)]
    spoilt, planted = [], []
    for history in clean[:20]:
        worse, there = plant(random, history, t_sub, t_diff)
        spoilt.append(worse)
        planted += there
    assert len(planted) > 50
    return spoilt + clean[20:], planted


def histories_by_hand():
    """s < t < u for what may come, s + 2 ≤ t and t + 3 ≤ u for what must; and bad rows."""
    ends = (
        [event("early", 9, h=1), event("soon", 11, h=1), event("first", 12, h=1),
         event("last", 17, h=1), event("late", 18, h=1)],
        [step("p", 10, "subscribe", {"h": 1}), step("p", 20, "unsubscribe")],
        [notice("first", "p", 20), notice("early", "p", 10)],
    )  # fmt: skip
    clean = (
        [event("good", 7, h=2, a=1)],
        [step("q", 1, "subscribe", {"h": 2, "a": 1}), step("r", 1, "subscribe", {"h": 2, "a": 2})],
        [notice("good", "q", 8)],
    )
    # Nobody can tell who wants what is no event; what is due after the recording is not missed.
    unclear = (
        [{**event("broken", 7), "content": "{"}, event("due", 27, h=3), event("after", 28, h=3)],
        [step("s", 1, "subscribe", {"h": 3})],
        [notice("broken", "s", 9)],
    )
    untrue = ([event("never", -1)], [], [notice("good", None, 6), notice("good", None, 7)])
    violations = [
        ("legality", "early", "p"),  # at the very moment of subscribing
        ("legality", "first", "p"),  # at the very moment of unsubscribing
        ("liveness", "due", "s"),
        ("liveness", "last", "p"),  # "first" did come, though too late to be legal
    ]
    return [ends, clean, unclear, untrue], violations


def agrees_with_the_naive_checker(rows, counts, histories, bounds):
    """The same violations, row by row, with lives that prove them, and the same counts."""
    expected, guaranteed = Counter(), set()
    t_sub, t_diff = bounds.subscription_ns, bounds.diffusion_ns
    for part in histories:
        violations, owed = naive.naive_check(part, t_sub, t_diff, bounds.in_time)
        expected += violations
        guaranteed |= owed
    assert min(Counter(kind for kind, *_ in expected).values()) > 30
    seen = {(row.kind, row.event, row.subscriber, row.notified_ns): row.rows for row in rows}
    assert len(seen) == len(rows)
    assert seen == expected
    assert Counter(who for _, who in guaranteed) == {
        who: row["guaranteed"] for who, row in counts.items() if row["guaranteed"]
    }
    told = Counter(row["subscriber"] for part in histories for row in part[2])
    assert told == {
        who: row["notifications"] for who, row in counts.items() if row["notifications"]
    }
    lost = Counter(who for kind, _, who, _ in expected if kind == "liveness")
    assert {who: row["lost"] for who, row in counts.items() if row["lost"]} == lost
    for row in rows:
        if row.kind == "liveness":  # the life that proves it does
            assert row.subscribed_ns + t_sub <= row.published_ns
            assert row.unsubscribed_ns is None or row.published_ns + t_diff <= row.unsubscribed_ns
            assert row.notified_ns is None or row.notified_ns > row.published_ns + t_diff


def of(rows, counts, names):
    """The part of a result that is about these subscribers, and the rest."""
    mine = [row for row in rows if names(row.subscriber)]
    others = [row for row in rows if not names(row.subscriber)]
    here = {who: row for who, row in counts.items() if names(who)}
    return mine, here, others, {who: row for who, row in counts.items() if who not in here}


def test_all_and_only_what_the_definitions_say(tables, many_histories):
    """Random histories as the naive checker finds them, and some by hand, checked in one."""
    histories = many_histories(150, seed=2)
    by_hand, violations = histories_by_hand()
    bounds = Bounds(subscription_ns=2, diffusion_ns=3, recorded_until_ns=30)
    with checked_history(tables(made.joined(histories + by_hand)), bounds) as found:
        every_row, every_count = collected(found)
        compares_nothing_with_everything(found, together=True)
        bad = {tuple(row) for row in found.bad_rows.itertuples(index=False)}
        assert _schema(found.ledger) == [tuple(part.split()) for part in LEDGER.split(", ")]
        assert _schema(found.counts) == [tuple(part.split()) for part in COUNTS.split(", ")]
    mine, counts, rows, others = of(every_row, every_count, lambda who: "/" not in who)
    agrees_with_the_naive_checker(rows, others, histories, bounds)
    assert kinds(mine) == violations
    assert set(counts) == {"p", "q", "s"}
    assert counts["p"]["guaranteed"] == 2
    assert counts["q"] == {
        "subscriber": "q", "guaranteed": 1, "notified": 1, "lost": 0,
        "notifications": 1, "illegal": 0, "invalid": 0,
    }  # fmt: skip
    assert bad == {
        ("publications", "published_ns is negative", 1),
        ("deliveries", "no subscriber", 2),
    }


def test_huge_histories_are_checked_in_pieces(tables, many_histories, monkeypatch):
    """As if all were too large to be sent around: audiences in shards, no broadcasts, in time.

    Random histories as the naive checker finds them; and all that was planted, and nothing else.
    """
    monkeypatch.setattr(audiences, "LARGEST_AUDIENCE", 1)
    monkeypatch.setattr(checking, "MOST_LIVES", -1)
    monkeypatch.setattr(checking, "MOST_CONTENTS", -1)
    histories = many_histories(150, seed=1)
    bounds = Bounds(subscription_ns=1, diffusion_ns=2, in_time=True)
    further, planted = planted_histories(1, 2)
    with checked_history(tables(made.joined(histories + further)), bounds) as found:
        every_row, every_count = collected(found)
        compares_nothing_with_everything(found, together=False)
    mine, counts, rows, others = of(every_row, every_count, lambda who: who.startswith("f"))
    agrees_with_the_naive_checker(rows, others, histories, bounds)
    assert kinds(mine) == sorted(planted)
    assert sum(row["notified"] for row in counts.values()) > 500  # there was much to be found


def _schema(frame):
    return [(field.name, field.dataType.simpleString()) for field in frame.schema]


def test_what_cannot_be_checked_is_an_error(tables):
    with pytest.raises(InvalidInputError, match="subscription_ns is -1"):
        Bounds(subscription_ns=-1, diffusion_ns=0)
    bad = ([event("e", 5)], [step("p", 1, "subscribe", {"a": {"bellow": 3}})], [])
    none = ([], [step("p", 1, "subscribe", {})], [])
    for history, said in ((bad, "bellow"), (none, "publications: the table is empty")):
        with (
            pytest.raises(InvalidTracesError, match=said),
            checked_history(tables(history), Bounds(subscription_ns=0, diffusion_ns=0)),
        ):
            pass
