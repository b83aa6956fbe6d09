"""A first file from MQTT brokers: real ones where there are any, and what they said elsewhere."""

from __future__ import annotations

import socket
from collections import Counter

import pytest

from mqtt_publishing import published, server
from real_servers import HAS_MOSQUITTO
from tidings.errors import EngineError, InvalidInputError
from tidings.model.reading import loads
from tidings.running.mqtt import MOST_TOPICS, Heard, mqtt_network, read_mqtt
from tidings.running.network import assumptions, file_text
from tidings.testbed.mosquitto import Mosquitto
from tidings.testbed.runs import HOST
from tidings.testbed.servers import free_ports, servers


def heard(name, messages, **system):
    said = {f"$SYS/broker/{topic}": text for topic, text in system.items()}
    return Heard(
        name=name, seconds=2.0, system=said, messages=Counter(messages),
        payload_bytes=10 * sum(messages.values()),
    )  # fmt: skip


def test_a_bridged_topic_enters_where_it_was_heard_most():
    network = mqtt_network(
        [heard("a:1", {"x": 100, "y": 38}), heard("b:2", {"x": 90, "y": 40})], [("a:1", "b:2")]
    )
    system = loads(file_text(network))
    rates = {each.at: 1.0 / each.every.mean_s for each in system.publishers}
    assert rates == pytest.approx({"a:1": 50.0, "b:2": 20.0})
    assert [each.between for each in system.links] == [("a:1", "b:2")]
    assert {each["where"] for each in assumptions(network)} == {
        "lifetime", "brokers.a:1.service", "brokers.b:2.service", "links.a:1–b:2.delay",
    }  # fmt: skip
    assert "assumed: brokers do not tell who subscribes" in file_text(network)


def test_many_topics_become_one_event_and_it_is_said():
    messages = {f"t/{number}": 3 for number in range(MOST_TOPICS)} | {"rare/1": 1, "rare/2": 1}
    network = mqtt_network([heard("a:1", messages)], [])
    (publisher,) = loads(file_text(network)).publishers
    assert len(publisher.content.rows()) == MOST_TOPICS + 1
    assert any(f"{MOST_TOPICS + 2} topics were heard" in each for each in network.notes)


def test_bridges_that_nobody_named_are_asked_for():
    said = {"connection/east/state": "1", "connection/old/state": "0", "version": "mosquitto 2"}
    alone = mqtt_network([heard("a:1", {"x": 1}, **said), heard("b:2", {})], [])
    assert any("has bridges (east); say which" in each for each in alone.notes)
    joined = mqtt_network([heard("a:1", {"x": 1}, **said), heard("b:2", {})], [("a:1", "b:2")])
    assert not any("has bridges" in each for each in joined.notes)


@pytest.mark.parametrize(
    ("urls", "bridges", "said"),
    [
        (["http://h:1"], [], "'http://h:1' is not an MQTT address"),
        (["mqtt://u:secret@h:99999999"], [], "'mqtt://h:99999999' is not an MQTT address"),
        (["mqtt://h", "mqtt://h:1883"], [], "named twice: h:1883, h:1883"),
        (["mqtt://h:1", "mqtt://i:2"], ["h:1"], "wants two of h:1, i:2"),
        (["mqtt://h:1", "mqtt://i:2"], ["h:1,j:3"], "wants two of h:1, i:2"),
        (["mqtt://h:1", "mqtt://i:2", "mqtt://j:3"], ["h:1,i:2"], "are not joined by the bridges"),
    ],
)
def test_what_cannot_be_listened_to_is_told_before_anybody_is_asked(urls, bridges, said):
    with pytest.raises(InvalidInputError, match=said):
        read_mqtt(urls, 1.0, bridges)


def test_nobody_there_and_somebody_else_there_are_told(monkeypatch):
    (port,) = free_ports(1)
    with pytest.raises(EngineError, match=f"no MQTT broker at {HOST}:{port}"):
        read_mqtt([f"mqtt://{HOST}:{port}"], 0.1, [])
    monkeypatch.setattr("tidings.running.mqtt._ANSWER_S", 0.3)
    with socket.socket() as other:
        other.bind((HOST, port))
        other.listen()
        with pytest.raises(EngineError, match="did not answer in MQTT"):
            read_mqtt([f"mqtt://{HOST}:{port}"], 0.1, [])


@HAS_MOSQUITTO
def test_a_real_broker_is_listened_to_and_its_file_is_valid(tmp_path):
    plan = server("a")
    with (
        servers({"a": plan}, tmp_path, Mosquitto({}, 0)),
        published(plan.client_port, ["s/1", "s/2", "s/1", "s/1"], every_s=0.02),
    ):
        network, asked = read_mqtt([f"mqtt://{HOST}:{plan.client_port}"], 1.5, [])
    assert asked == tuple(
        f"SUBSCRIBE {topic} at {HOST}:{plan.client_port}" for topic in ("$SYS/#", "#")
    )
    (publisher,) = loads(file_text(network)).publishers
    assert 1.0 / publisher.every.mean_s == pytest.approx(50.0, rel=0.2)
    shares = {row.event["topic"]: row.probability for row in publisher.content.rows()}
    assert shares == pytest.approx({"s/1": 0.75, "s/2": 0.25}, abs=0.05)  # nothing retained
    assert publisher.size_bytes == 8
    assert any("mosquitto version" in each for each in network.notes)
