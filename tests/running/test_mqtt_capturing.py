"""Traces of MQTT traffic as a client sees it, from real brokers where there are any."""

from __future__ import annotations

import json
import time

import pytest

from mqtt_publishing import published, server
from real_servers import HAS_MOSQUITTO
from tidings.errors import EngineError, InvalidInputError
from tidings.running import mqtt_capturing
from tidings.running.mqtt import listening
from tidings.running.mqtt_capturing import MqttPlan, capture_mqtt
from tidings.testbed.mosquitto import Mosquitto
from tidings.testbed.runs import HOST
from tidings.testbed.servers import servers


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    """A bridge from a to b passes on one topic and probes; somebody publishes two topics at a."""
    b = server("b")
    a = server("a", {0: b.broker_port})
    kind = Mosquitto({0: {"plant/1", f"{mqtt_capturing.PROBES}/#"}}, 0)

    def over_a_long_bridge(name, parts, topics, take):
        """On one machine a bridge takes no time, and either listener may hear first."""

        def late(message):
            time.sleep(0.02)
            take(message)

        return listening(name, parts, topics, late if str(b.client_port) in name else take)

    with (
        pytest.MonkeyPatch.context() as patched,
        servers({"b": b}, tmp_path_factory.mktemp("b"), kind),  # before a dials it
        servers({"a": a}, tmp_path_factory.mktemp("a"), kind),
        published(a.client_port, ["plant/1", "plant/2"], every_s=0.05),
    ):
        patched.setattr(mqtt_capturing, "listening", over_a_long_bridge)
        urls = tuple(f"mqtt://{HOST}:{each.client_port}" for each in (a, b))
        result = capture_mqtt(MqttPlan(urls=urls, seconds=3.0, probes_per_s=5.0, lifetime_s=0.5))
    names = {f"{HOST}:{a.client_port}": "a", f"{HOST}:{b.client_port}": "b"}
    return result, names


def by_topic(captured, names):
    """For every topic: how many were published where, and how many each broker's listener got."""
    published_rows = captured.tables["publications"].to_pylist()
    heard = {}
    for row in captured.tables["deliveries"].to_pylist():
        heard.setdefault(row["event"], {})[names[row["broker"]]] = row["received_ns"]
    counts = {}
    for row in published_rows:
        topic = json.loads(row["content"])["topic"]
        one = counts.setdefault(topic, {"at": set(), "published": 0, "a": 0, "b": 0})
        one["at"].add(names[row["broker"]])
        one["published"] += 1
        for broker, at_ns in heard.get(row["event"], {}).items():
            one[broker] += 1
            assert at_ns >= row["published_ns"]
    return counts


@HAS_MOSQUITTO
def test_what_is_heard_at_both_ends_of_a_bridge_is_one_event(captured):
    result, names = captured
    counts = by_topic(result, names)
    one, two = counts["plant/1"], counts["plant/2"]
    assert one["at"] == two["at"] == {"a"}
    assert one["published"] == one["a"] == one["b"] > 15
    assert (two["a"], two["b"]) == (two["published"], 0)
    assert result.heard == one["published"] + two["published"]
    assert set(counts) >= {"plant/1", "plant/2"}
    assert "old" not in counts  # retained, and published by nobody now


@HAS_MOSQUITTO
def test_probes_are_known_from_when_they_are_sent(captured):
    result, names = captured
    counts = by_topic(result, names)
    at = {broker: counts[f"tidings/probe/{name}"] for name, broker in names.items()}
    assert at["a"]["published"] == at["a"]["a"] == at["a"]["b"] > 5
    assert (at["b"]["b"], at["b"]["a"]) == (at["b"]["published"], 0)  # the bridge has one way
    assert result.probes == at["a"]["published"] + at["b"]["published"]


@HAS_MOSQUITTO
def test_listeners_want_what_came_to_them_and_it_is_said_what_a_client_cannot_see(captured):
    result, names = captured
    rows = result.tables["subscriptions"].to_pylist()
    wants = {names[row["broker"]]: set(json.loads(row["filter"])["topic"]) for row in rows}
    assert "plant/2" in wants["a"]
    assert "plant/2" not in wants["b"]
    assert any("not what brokers do" in each for each in result.notes)
    assert set(result.tables["publications"]["lifetime_ns"].to_pylist()) == {500_000_000}


@HAS_MOSQUITTO
def test_an_event_passes_brokers_along_the_bridges(captured):
    result, names = captured
    hops = result.tables["hops"].to_pylist()
    by_event = {}
    for row in hops:
        by_event.setdefault(row["event"], {})[names[row["broker"]]] = row
    over = [each for each in by_event.values() if len(each) == 2]
    assert len(over) > 15
    for each in over:
        assert names[each["b"]["came_from"]] == "a"
        assert [names[one] for one in each["a"]["sent_to"]] == ["b"]
        assert each["a"]["left_ns"] <= each["b"]["arrived_ns"] == each["b"]["left_ns"]


def test_bridges_must_join_brokers_in_one_way():
    urls = ("mqtt://a:1", "mqtt://b:2", "mqtt://c:3")
    for bridges in ((), ("a:1,b:2",), ("a:1,b:2", "b:2,c:3", "c:3,a:1")):
        with pytest.raises(InvalidInputError, match="join a:1, b:2, c:3 in exactly one way"):
            capture_mqtt(MqttPlan(urls=urls, seconds=1.0, bridges=bridges))


@HAS_MOSQUITTO
def test_more_than_can_be_held_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(mqtt_capturing, "MOST_MESSAGES", 3)
    plan = server("a")
    with (
        servers({"a": plan}, tmp_path, Mosquitto({}, 0)),
        pytest.raises(EngineError, match="more than 3 messages were heard"),
    ):
        capture_mqtt(
            MqttPlan(urls=(f"mqtt://{HOST}:{plan.client_port}",), seconds=1.0, probes_per_s=20)
        )
