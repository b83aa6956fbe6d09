"""What ``tidings init kafka://…`` makes of a cluster's offsets.

librdkafka's mock cluster answers for topics and offsets, also committed ones. It knows no questions
for groups and their members, so these answers are made up here, in the shape of the client's.
"""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

import tidings as td
from tidings.cli.commands import run
from tidings.errors import EngineError, InvalidInputError
from tidings.running import kafka_rounds
from tidings.running.kafka_network import kafka_network
from tidings.running.kafka_rounds import (
    GroupMember,
    KafkaGroup,
    KafkaRound,
    client_settings,
    read_round,
    two_rounds,
)
from tidings.running.network import assumptions, file_text

WITHIN_S = 30.0


def at(at_s, ends, *groups, refused=()):
    return KafkaRound(at_s=at_s, brokers=3, ends=ends, groups=groups, asked=(), refused=refused)


def logs(topic, *ends):
    return {(topic, number): end for number, end in enumerate(ends)}


def billing(*committed, **more):
    members = (
        GroupMember(name="b-1", partitions=(("orders", 0), ("orders", 2))),
        GroupMember(name="b 2", partitions=(("orders", 1), ("orders", 3))),
    )
    more = {"members": members, "state": "stable"} | more
    return KafkaGroup(name="billing", committed=logs("orders", *committed), **more)


def two_readings(**more):
    """Ten seconds of 1,000 orders, 700 of them in the first partition."""
    first = at(100.0, logs("orders", 50, 50, 50, 50) | logs("idle", 7), billing(50, 50, 50, 50))
    ends = logs("orders", 750, 150, 150, 150) | logs("idle", 7)
    return first, at(110.0, ends, billing(700, 150, 140, 150, **more))


def test_rates_groups_members_and_partitions():
    network = kafka_network(*two_readings())
    system = td.loads(file_text(network))
    (publisher,) = system.publishers
    assert publisher.name == "producers of orders"
    assert publisher.rate_per_s == pytest.approx(100)
    (group,) = system.subscribers
    assert [member.name for member in group.consumers.members] == ["b-1", "b 2"]
    partitions = group.consumers.partitions
    assert partitions.shares == pytest.approx((0.7, 0.1, 0.1, 0.1))
    assert partitions.owners == ("b-1", "b 2", "b-1", "b 2")
    # the busier member gets 80/s, and 1 ms is below half of what it has for each
    assert group.processing.mean_s == pytest.approx(1e-3)
    text = file_text(network)
    assert "stable group, gets 100/s, is 60 behind, committed 94/s" in text
    assert "keeps up below 12.5ms" in text
    assert "nobody published to idle" in network.notes[0]


def test_what_is_assumed_is_marked_with_its_reason():
    whys = {each["where"]: each["why"] for each in assumptions(kafka_network(*two_readings()))}
    assert set(whys) == {
        "lifetime",
        "brokers.kafka.service",
        "publishers.producers of orders.content",
        "subscribers.billing.processing",
    }
    assert all(whys.values())


def test_a_busy_group_is_not_assumed_to_be_overloaded():
    first = at(0.0, logs("orders", 0), KafkaGroup(name="g", committed=logs("orders", 0)))
    second = at(1.0, logs("orders", 10_000), KafkaGroup(name="g", committed=logs("orders", 9_000)))
    network = kafka_network(first, second)
    (group,) = td.loads(file_text(network)).subscribers
    assert group.processing.mean_s == pytest.approx(0.5 / 10_000)
    assert group.consumers.count == 1
    notes = " ".join(network.notes)
    assert "has no member now" in notes
    assert "falls behind" not in notes  # it was not behind before: offsets are committed in steps


def test_a_group_that_falls_behind_is_said():
    first, second = two_readings()
    late = at(100.0, first.ends, billing(40, 50, 50, 50))
    assert "falls behind, from 10 to 60 messages" in kafka_network(late, second).notes[-1]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"members": (), "untold": "not allowed"}, "members could not be read (not allowed)"),
        ({"members": ()}, "the group has no members now"),
        (
            {"members": (GroupMember(name="b-1", partitions=(("orders", 0),)),)},
            "some have no owner now: members in turn",
        ),
    ],
)
def test_groups_whose_members_are_not_known(more, says):
    network = kafka_network(*two_readings(**more))
    assert f"# assumed: {says}" in file_text(network)
    partitions = td.loads(file_text(network)).subscribers[0].consumers.partitions
    assert (partitions.count, partitions.owners) == (4, ())


def test_equal_partitions_have_no_shares():
    ends = logs("orders", 265, 240, 248, 247)
    network = kafka_network(
        at(0.0, logs("orders", 0, 0, 0, 0)), at(10.0, ends, billing(0, 0, 0, 0))
    )
    assert td.loads(file_text(network)).subscribers[0].consumers.partitions.shares == ()
    assert "equal, as far as is told by 1000 messages" in file_text(network)


def test_partitions_without_an_answer_and_topics_that_nobody_reads():
    first = at(0.0, logs("orders", 0, 0) | logs("new", 0), refused=("orders-1 has no leader",))
    second = at(10.0, logs("orders", 10) | logs("other", 3), refused=("orders-1 has no leader",))
    network = kafka_network(first, second)
    assert [each.name for each in network.publishers] == ["producers of orders"]
    assert network.notes[0] == "orders-1 has no leader"
    (anybody,) = td.loads(file_text(network)).subscribers
    assert anybody.name == "consumers"
    assert "no consumer group is known" in network.notes[-1]


def test_topics_without_messages():
    """One that a group reads stays, with a rate that is marked; others are left out and named."""
    first, second = two_readings()
    silent = at(110.0, first.ends, *second.groups)
    network = kafka_network(first, silent)
    (publisher,) = network.publishers
    assert (publisher.name, publisher.every.assumed) == ("producers of orders", True)
    assert td.loads(file_text(network)).publishers[0].every.mean_s == pytest.approx(10)
    assert "nobody published to idle" in " ".join(network.notes)
    busy = at(110.0, first.ends | logs("idle", 9), *second.groups)
    assert "no consumer group reads idle" in " ".join(kafka_network(first, busy).notes)
    with pytest.raises(EngineError, match="no topics but Kafka's own"):
        kafka_network(at(0.0, {}), at(1.0, {}))


def test_a_hostile_name_stays_a_name():
    name = 'x: {a}\n  evil: "y"\x1b[2J'
    first = at(0.0, logs(name, 0, 0))
    member = GroupMember(name=name, partitions=((name, 0), (name, 1)))
    group = KafkaGroup(name=name, members=(member,), committed=logs(name, 1, 1))
    system = td.loads(file_text(kafka_network(first, at(1.0, logs(name, 5, 5), group))))
    assert system.subscribers[0].name == name
    assert system.subscribers[0].consumers.members[0].name == name


# ---- answers as the client gives them ------------------------------------------------------------


def answer(value):
    def result(timeout):
        assert timeout <= WITHIN_S
        if isinstance(value, Exception):
            raise value
        return value

    return SimpleNamespace(result=result)


NOT_ALLOWED = KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED, "not allowed"))


class Cluster:
    """Answers like an admin client of a cluster with one topic."""

    def __init__(self, listed, described):
        self.listed, self.described = listed, described

    def list_topics(self, timeout):
        topic = SimpleNamespace(partitions={1: None, 0: None})
        return SimpleNamespace(
            topics={"orders": topic, "__consumer_offsets": topic}, brokers={1: None}
        )

    def list_offsets(self, asked, request_timeout):
        no_leader = KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE, "no leader"))
        return {
            each: answer(no_leader if each.partition else SimpleNamespace(offset=9))
            for each in asked
        }

    def list_consumer_groups(self, request_timeout):
        return answer(self.listed)

    def describe_consumer_groups(self, names, request_timeout):
        return {name: answer(self.described) for name in names}

    def list_consumer_group_offsets(self, questions, request_timeout):
        (question,) = questions
        offsets = [
            SimpleNamespace(topic=each.topic, partition=each.partition, offset=offset)
            for each, offset in zip(question.topic_partitions, (5, -1001), strict=True)
        ]
        return {question.group_id: answer(SimpleNamespace(topic_partitions=offsets))}


def member(client, number, *partitions):
    return SimpleNamespace(
        client_id=client,
        member_id=f"{client}-{number}",
        assignment=SimpleNamespace(
            topic_partitions=[TopicPartition("orders", each) for each in partitions]
        ),
    )


def test_groups_as_a_cluster_tells_them():
    groups = SimpleNamespace(valid=[SimpleNamespace(group_id="billing")], errors=[])
    described = SimpleNamespace(
        state=SimpleNamespace(name="STABLE"), members=[member("a", 2, 1), member("a", 1, 0)]
    )
    told = read_round(Cluster(groups, described), ())
    assert told.ends == {("orders", 0): 9}  # not Kafka's own topics
    assert told.groups == (
        KafkaGroup(
            name="billing",
            state="stable",
            committed={("orders", 0): 5},  # and nothing yet of the other
            members=(
                GroupMember(name="a-1", partitions=(("orders", 0),)),
                GroupMember(name="a-2", partitions=(("orders", 1),)),
            ),
        ),
    )
    assert told.refused == ("could not read the end offsets of partitions orders-1 (no leader)",)
    assert told.asked == (
        "METADATA of all topics",
        "LIST_OFFSETS of 1 topics",
        "LIST_GROUPS",
        "OFFSET_FETCH of group billing",
        "DESCRIBE_GROUPS billing",
    )


def test_what_a_cluster_refuses_to_tell_is_said():
    told = read_round(Cluster(NOT_ALLOWED, NOT_ALLOWED), ())
    assert (
        told.refused[-1]
        == "could not list consumer groups (not allowed); name them with --group NAME"
    )
    (group,) = read_round(Cluster(NOT_ALLOWED, NOT_ALLOWED), ("billing",)).groups
    assert (group.untold, group.members) == ("not allowed", ())


# ---- librdkafka's mock cluster -------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    """The address of a mock cluster, and a producer that keeps it alive."""
    producer = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 3, "log_level": 0})
    brokers = producer.list_topics(timeout=WITHIN_S).brokers.values()
    return ",".join(f"{each.host}:{each.port}" for each in brokers), producer


def produce(producer, count):
    for number in range(count):
        producer.produce("orders", b"x", partition=number % 4)
    assert producer.flush(WITHIN_S) == 0


def test_offsets_of_a_mock_cluster(cluster):
    hosts, producer = cluster
    admin = AdminClient(client_settings([f"kafka://{hosts}"]))
    produce(producer, 4)
    consumer = Consumer({"bootstrap.servers": hosts, "group.id": "billing", "log_level": 0})
    consumer.commit(offsets=[TopicPartition("orders", 2, 1)], asynchronous=False)
    first = read_round(admin, ["billing"])
    produce(producer, 80)
    second = read_round(admin, ["billing"])
    consumer.close()
    assert first.brokers == 3
    grown = {each: end - first.ends[each] for each, end in second.ends.items()}
    assert grown == dict.fromkeys((("orders", number) for number in range(4)), 20)
    (group,) = second.groups
    assert group.committed == {("orders", 2): 1}
    assert "not supported by broker" in group.untold  # by the mock cluster
    listed = read_round(admin, ())
    assert listed.groups == ()
    assert "not all consumer groups could be listed" in listed.refused[0]


def test_a_first_file_of_a_mock_cluster(cluster, tmp_path, capsys):
    """The command asks, writes a file that ``check`` takes, and leaves no offset behind."""
    hosts, producer = cluster
    produce(producer, 4)
    ended = threading.Event()

    def traffic():
        while not ended.wait(0.01):
            producer.produce("orders", b"x", partition=0)
            producer.poll(0)

    thread = threading.Thread(target=traffic)
    thread.start()
    try:
        place = tmp_path / "shop.yaml"
        words = ["init", f"kafka://{hosts}", "--group", "mailing", "--for", "0.2s"]
        assert run([*words, "--to", str(place), "--json"]) == 0
    finally:
        ended.set()
        thread.join(WITHIN_S)
    told = json.loads(capsys.readouterr().out)
    assert {each.split()[0] for each in told["asked"]} == {
        "METADATA",
        "LIST_OFFSETS",
        "OFFSET_FETCH",
        "DESCRIBE_GROUPS",
    }
    assert "no consumer group is known" in " ".join(told["notes"])
    assert run(["check", str(place)]) == 0
    (publisher,) = td.load(place).publishers
    assert publisher.rate_per_s > 0


def test_where_no_cluster_is(monkeypatch):
    monkeypatch.setattr(kafka_rounds, "_ANSWER_S", 0.2)
    with pytest.raises(EngineError, match="no Kafka cluster answers"):
        two_rounds(["kafka://127.0.0.1:9"], 0.0, None, ())


# ---- addresses and settings ----------------------------------------------------------------------


def test_users_and_encryption_come_from_the_address(tmp_path):
    plain = client_settings(["kafka://a", "kafka://b:9"])
    assert plain["bootstrap.servers"] == "a:9092,b:9"
    assert plain["security.protocol"] == "PLAINTEXT"
    secret = client_settings(["kafkas://me:p%40ss@a:1"])
    assert secret["security.protocol"] == "SASL_SSL"
    assert (secret["sasl.username"], secret["sasl.password"]) == ("me", "p@ss")
    file = tmp_path / "client.properties"
    file.write_text("# of the cluster\nsasl.mechanism = SCRAM-SHA-256\n\nsasl.password=a=b\n")
    chosen = client_settings(["kafkas://me:x@a:1"], file)
    assert (chosen["sasl.mechanism"], chosen["sasl.password"]) == ("SCRAM-SHA-256", "a=b")


@pytest.mark.parametrize("text", ["secret", "= secret"])
def test_a_line_that_is_no_setting_is_refused_and_not_shown(tmp_path, text):
    file = tmp_path / "client.properties"
    file.write_text(f"\n{text}\n")
    with pytest.raises(InvalidInputError, match=r"line 2: wants key=value") as told:
        client_settings(["kafka://a"], file)
    assert "secret" not in str(told.value)


def test_settings_that_the_client_does_not_know(tmp_path):
    file = tmp_path / "client.properties"
    file.write_text("no.such.setting=1\n")
    with pytest.raises(EngineError, match=r"refuses its settings.*no\.such\.setting"):
        two_rounds(["kafka://127.0.0.1:9"], 0.0, file, ())


@pytest.mark.parametrize("url", ["kafka://", "kafka://a,,b", "kafka://me:secret@"])
def test_what_is_no_address_is_refused(url):
    with pytest.raises(InvalidInputError, match="expected kafka://HOST:PORT") as told:
        client_settings([url])
    assert "secret" not in str(told.value)


def test_options_of_other_brokers_are_refused(capsys):
    assert run(["init", "nats://127.0.0.1:1", "--group", "g"]) == 2
    assert "--group is for Kafka" in capsys.readouterr().err
    assert run(["init", "mqtt://127.0.0.1:1", "--creds", "pyproject.toml"]) == 2
    assert "--creds is for NATS and Kafka" in capsys.readouterr().err
    assert run(["init", "kafka", "nats://127.0.0.1:1"]) == 2
    assert "kafka://HOST:PORT" in capsys.readouterr().err


def test_without_the_client_library_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(__import__("sys").modules, "confluent_kafka", None)
    assert run(["init", "kafka://127.0.0.1:9"]) == 5
    assert "pip install 'tidings[kafka]'" in capsys.readouterr().err
