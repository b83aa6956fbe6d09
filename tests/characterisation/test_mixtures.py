"""Traces of some and counters of others, in one system: each number from the surest source."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import tidings as td
from exact_levels import Served
from tidings.characterisation.fit.queue_systems import with_queues
from tidings.characterisation.fit.reported import Reported
from tidings.characterisation.fit.subscribers import find_subscribers
from tidings.characterisation.job import characterise
from tidings.model.reading import from_document
from tidings.traces.reading import read_traces
from tidings.traces.window import TraceWindow

EPOCH_NS, RATE, SERVICE_S, POLL_S = 1_700_000_000_000_000_000, 20.0, 0.03, 2.0


def served(entered_s):
    """One server, exponential services."""
    rng, left, free = np.random.default_rng(3), [], 0.0
    for at_s, service_s in zip(entered_s, rng.exponential(SERVICE_S, entered_s.size), strict=True):
        free = max(at_s, free) + service_s
        left.append(free)
    return Served(entered_s=entered_s, left_s=np.array(left))


def polls(queue, one, until_s):
    at_s = np.arange(0.0, until_s, POLL_S)
    entered, done = one.polled(at_s)
    return pd.DataFrame(
        {
            "queue": queue,
            "at_ns": EPOCH_NS + np.rint(at_s * 1e9).astype(np.int64),
            "entered": entered,
            "done": done,
            "in_flight": pd.array([None] * at_s.size, dtype="Int64"),
        }
    )


@pytest.fixture(scope="module")
def mixed(spark, planted, write_traces, tmp_path_factory):
    """Bob's deliveries are not recorded, but his queue is counted; and so is a queue beside."""
    tables = dict(planted.tables)
    deliveries = tables["deliveries"]
    of_bob = deliveries[deliveries["subscriber"] == "bob"]["received_ns"].sort_values()
    rng = np.random.default_rng(5)
    beside_s = np.cumsum(rng.exponential(1.0 / RATE, int(RATE * planted.window_s * 1.2)))
    bob_s = (of_bob.to_numpy() - EPOCH_NS) / 1e9
    tables["deliveries"] = deliveries[deliveries["subscriber"] != "bob"]
    tables["levels"] = pd.concat(
        [
            polls("bob", Served(entered_s=bob_s, left_s=bob_s + 0.5), planted.window_s),
            polls("mails", served(beside_s), planted.window_s),
        ]
    )
    folder = tmp_path_factory.mktemp("mixed")
    write_traces(dataclasses.replace(planted, tables=tables), folder)
    return characterise(read_traces(spark, folder))


@pytest.fixture(scope="module")
def numbers(mixed):
    return mixed.parameters.set_index("path")


@pytest.mark.spark
def test_one_system_has_what_traces_and_what_counters_tell(mixed, numbers, characterised):
    assert [each.name for each in mixed.system.subscribers] == ["alice", "bob", "carol", "mails"]
    old = characterised.parameters.set_index("path")
    for path in ("brokers.hub.service", "subscribers.alice.link.delay", "publishers.ticker.rate"):
        assert numbers.loc[path, "source"] == "traces"
        assert numbers.loc[path, "estimate"] == old.loc[path, "estimate"]
    sources = numbers.loc[
        ["queues.mails.rate", "subscribers.mails.processing", "queues.bob.rate"], "source"
    ]
    assert set(sources) == {"levels"}
    rate, handling = numbers.loc["queues.mails.rate"], numbers.loc["subscribers.mails.processing"]
    assert abs(rate["estimate"] - RATE) < 4.0 * rate["standard_error"]
    assert abs(handling["estimate"] - SERVICE_S) < 4.0 * handling["standard_error"] + handling[
        "bound"
    ]  # fmt: skip


@pytest.mark.spark
def test_who_is_not_recorded_is_measured_by_its_counters(mixed, characterised):
    rows, old = (
        each.measured.subscribers.set_index("subscriber") for each in (mixed, characterised)
    )
    assert list(rows.loc[["bob", "mails"], "by"]) == ["levels", "levels"]
    assert rows.loc["bob", "delivered"] == 1.0  # and not lost, as no delivery was recorded
    assert rows.loc["bob", "delay_mean_s"] == pytest.approx(0.5, rel=0.05)
    pd.testing.assert_series_equal(rows.loc["alice"], old.loc["alice"])
    own_link = next(each.link for each in mixed.system.subscribers if each.name == "bob")
    assert own_link.reliability > 0.9


@pytest.mark.spark
def test_it_is_predicted_as_one_and_nobody_gets_what_is_not_his(mixed, characterised):
    rows = td.predict(mixed.system, by="theory").subscribers.set_index("subscriber")
    alone = td.predict(characterised.system, by="theory").subscribers.set_index("subscriber")
    for name in ("alice", "carol"):
        assert rows.loc[name, "wanted_per_s"] == pytest.approx(alone.loc[name, "wanted_per_s"])
        together = rows.loc[name, "error"] + alone.loc[name, "error"]
        assert abs(rows.loc[name, "on_time"] - alone.loc[name, "on_time"]) <= together
    # M/M/1, 0.6 busy
    assert rows.loc["mails", "wanted_per_s"] == pytest.approx(RATE, rel=0.1)
    assert rows.loc["mails", "delay_mean_s"] == pytest.approx(SERVICE_S / 0.4, rel=0.25)


def base_with(**more):
    subscriber = {"at": "hub", "wants": {"topic": "wind"}, "processing": "1ms"}
    publishers = {"p": {"at": "hub", "every": "1s", "content": {"event": {"topic": "wind"}}}}
    document = {"tidings": 1, "brokers": {"hub": {}}, "publishers": publishers}
    return document | {"subscribers": {"counted": subscriber}} | more


def test_who_is_in_the_base_alone_is_kept_where_its_queue_is_counted():
    base = from_document(base_with())
    rows = pd.DataFrame(
        {
            "subscriber": ["seen"],
            "broker": ["hub"],
            "action": ["subscribe"],
            "filter": ["{}"],
            "reason": [None],
            "last_ns": [1],
            "rows": [1],
            "duplicates": [0],
            "subscription": ["s"],
            "first_ns": [1],
        }
    )
    window = TraceWindow(from_ns=0, until_ns=10)
    kept = find_subscribers(rows, base, window, reported={"counted"})
    assert [each.name for each in kept.subscribers] == ["seen", "counted"]
    assert not any("left out" in note for note in kept.notes)
    without = find_subscribers(rows, base, window)
    assert [each.name for each in without.subscribers] == ["seen"]


def test_a_queue_is_left_out_where_others_would_get_its_events():
    everything = {"curious": {"at": "hub", "wants": {}}}
    system = from_document(base_with(subscribers=everything))
    levels = Reported(queues={"mails": SimpleNamespace(rate_per_s=2.0)})
    unchanged, said = with_queues(system, levels)
    assert unchanged is system
    assert "curious would get their events" in said[0]
    busy = from_document(
        base_with(brokers={"hub": {}, "broker": {}}, links=[{"between": ["hub", "broker"]}])
    )
    joined, _ = with_queues(busy, levels)
    assert [each.name for each in joined.brokers] == ["hub", "broker", "broker of queues"]
