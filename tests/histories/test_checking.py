from __future__ import annotations

import importlib.util
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tidings.errors import InvalidInputError, InvalidTracesError
from tidings.histories import audiences
from tidings.histories.checking import Bounds, check_history
from tidings.model.events import canonical_event

_spec = importlib.util.spec_from_file_location(
    "naive_history", Path(__file__).parent / "naive_history.py"
)
naive = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(naive)

PUBLICATIONS = "event string, published_ns bigint, content string"
SUBSCRIPTIONS = "subscription string, subscriber string, action string, at_ns bigint, filter string"
DELIVERIES = "event string, subscriber string, received_ns bigint"


def frames(spark, history):
    tables = (PUBLICATIONS, SUBSCRIPTIONS, DELIVERIES)
    return [
        spark.createDataFrame(
            [tuple(row[name.split()[0]] for name in ddl.split(", ")) for row in rows], ddl
        )
        for ddl, rows in zip(tables, history, strict=True)
    ]


def checked(spark, history, t_sub=0, t_diff=0, in_time=False):
    bounds = Bounds(subscription_ns=t_sub, diffusion_ns=t_diff, in_time=in_time)
    return check_history(*frames(spark, history), bounds)


def event(name, at, **content):
    return {"event": name, "published_ns": at, "content": canonical_event(content)}


def step(who, at, action, filter_=None, name="s"):
    text = None if filter_ is None else json.dumps(filter_)
    return {
        "subscription": name, "subscriber": who, "action": action, "at_ns": at, "filter": text
    }  # fmt: skip


def notice(name, who, at):
    return {"event": name, "subscriber": who, "received_ns": at}


FILTERS = ({}, {"a": 1}, {"a": {"above": 1}}, {"b": "x"}, [{"a": 2}, {"b": {"exists": True}}])


def random_history(random, name, size=6):
    """A small history on a small clock, so that moments often fall together."""
    people = [f"{name}/p{n}" for n in range(3)]
    clock = lambda: int(random.integers(0, 12))  # noqa: E731
    subscriptions = []
    for _ in range(size):
        who, ours = people[random.integers(3)], f"s{random.integers(2)}"
        wants = FILTERS[random.integers(len(FILTERS))]
        act = "subscribe" if random.random() < 0.6 else "unsubscribe"
        subscriptions.append(
            step(who, clock(), act, wants if act == "subscribe" else None, name=ours)
        )
    publications = [
        event(
            f"{name}/e{random.integers(size)}",
            clock(),
            **{key: value for key, value in (("a", int(random.integers(1, 4))), ("b", "x"))
               if random.random() < 0.7},
        )
        for _ in range(size)
    ]  # fmt: skip
    deliveries = [
        notice(f"{name}/e{random.integers(size + 1)}", people[random.integers(3)], clock())
        for _ in range(2 * size)
    ]
    return publications, subscriptions, deliveries


def many_histories(count, seed):
    """Histories that have nothing to do with each other, as one."""
    random = np.random.default_rng(seed)
    parts = [random_history(random, f"h{n}") for n in range(count)]
    return tuple([row for part in parts for row in part[table]] for table in range(3))


@pytest.mark.parametrize(("in_time", "t_sub", "t_diff"), [(False, 2, 3), (True, 1, 2)])
@pytest.mark.parametrize("shards", [1, 3])
def test_all_and_only_what_the_definitions_say(spark, monkeypatch, in_time, t_sub, t_diff, shards):
    """Three hundred random histories in one: the naive checker finds the same, row by row."""
    monkeypatch.setattr("tidings.histories.checking.choose_shards", lambda _: shards)
    history = many_histories(300, seed=shards + 10 * t_sub)
    expected, guaranteed = [], set()
    by_prefix = {}
    for table, rows in enumerate(history):
        for row in rows:
            prefix = row.get("event", row.get("subscriber")).split("/")[0]
            by_prefix.setdefault(prefix, ([], [], []))[table].append(row)
    for part in by_prefix.values():
        violations, owed = naive.naive_check(*part, t_sub, t_diff, in_time)
        expected += violations
        guaranteed |= owed
    assert min(Counter(kind for kind, *_ in expected).values()) > 50
    found = checked(spark, history, t_sub, t_diff, in_time)
    rows = found.violations.collect()
    seen = Counter((row.kind, row.event, row.subscriber, row.notified_ns) for row in rows)
    assert seen == Counter(expected)
    counts = {row.subscriber: row for row in found.counts.collect()}
    assert sum(row.guaranteed for row in counts.values()) == len(guaranteed)
    assert sum(row.notifications for row in counts.values()) == len(history[2])
    lost = Counter(who for kind, _, who, _ in expected if kind == "liveness")
    assert {who: row.lost for who, row in counts.items() if row.lost} == lost
    for row in rows:
        if row.kind == "liveness":  # the life that proves it does
            assert row.subscribed_ns + t_sub <= row.published_ns
            assert row.unsubscribed_ns is None or row.published_ns + t_diff <= row.unsubscribed_ns


def test_the_ends_of_a_life(spark):
    """s < t < u for what may come, s + T_sub ≤ t and t + T_diff ≤ u for what must."""
    history = (
        [event("early", 9), event("first", 12), event("last", 17), event("late", 18)],
        [step("p", 10, "subscribe", {}), step("p", 20, "unsubscribe")],
        [notice("first", "p", 20), notice("early", "p", 10)],
    )
    rows = checked(spark, history, t_sub=2, t_diff=3).violations.collect()
    assert sorted((row.kind, row.event) for row in rows) == [
        ("legality", "early"),  # at the very moment of subscribing
        ("legality", "first"),  # at the very moment of unsubscribing
        ("liveness", "last"),  # "first" did come, though too late to be legal
    ]


def test_a_clean_history_has_no_violations_and_its_counts_say_so(spark):
    history = (
        [event("e", 5, a=1)],
        [step("p", 1, "subscribe", {"a": 1}), step("q", 1, "subscribe", {"a": 2})],
        [notice("e", "p", 6)],
    )
    found = checked(spark, history)
    assert found.violations.collect() == []
    (row,) = found.counts.collect()
    assert row.asDict() == {
        "subscriber": "p", "guaranteed": 1, "notified": 1, "lost": 0,
        "notifications": 1, "illegal": 0, "invalid": 0,
    }  # fmt: skip


def test_an_event_that_everybody_wants_is_shared_out(spark, monkeypatch):
    monkeypatch.setattr(audiences, "LARGEST_AUDIENCE", 10)
    people = [f"p{n}" for n in range(95)]
    history = (
        [event("e", 5)],
        [step(who, 1, "subscribe", {}) for who in people],
        [notice("e", who, 6) for who in people if who != "p7"],
    )
    found = checked(spark, history)
    assert [(row.kind, row.subscriber) for row in found.violations.collect()] == [
        ("liveness", "p7")
    ]
    assert found.judged.count() == 10


def test_the_plan_compares_nothing_with_everything(spark):
    history = many_histories(3, seed=1)
    plan = checked(spark, history, 1, 1).violations._jdf.queryExecution().toString()
    assert "CartesianProduct" not in plan
    assert "BroadcastNestedLoopJoin" not in plan
    assert "BatchEvalPython" not in plan
    assert "ArrowEvalPython" not in plan
    assert plan.count("MapInPandas") >= 1  # each distinct content, in batches


def test_what_cannot_be_checked_is_an_error(spark):
    with pytest.raises(InvalidInputError, match="subscription_ns is -1"):
        Bounds(subscription_ns=-1, diffusion_ns=0)
    bad = ([event("e", 5)], [step("p", 1, "subscribe", {"a": {"bellow": 3}})], [])
    with pytest.raises(InvalidTracesError, match="bellow"):
        checked(spark, bad)
    with pytest.raises(InvalidTracesError, match="publications: there are none"):
        checked(spark, ([], [step("p", 1, "subscribe", {})], []))
