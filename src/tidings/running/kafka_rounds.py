"""What a Kafka cluster says of topics, consumer groups and offsets: asked, never changed.

No message is read and no group is joined: an admin client asks for metadata, the ends of logs, the
members of groups, and the offsets that groups have committed.
"""

from __future__ import annotations

import contextlib
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tidings.errors import EngineError, InvalidInputError
from tidings.model.naming import few
from tidings.model.plain_files import read_text
from tidings.running.asking import hidden

_ANSWER_S = 10.0
_PROTOCOLS = {
    ("kafka", False): "PLAINTEXT",
    ("kafka", True): "SASL_PLAINTEXT",
    ("kafkas", False): "SSL",
    ("kafkas", True): "SASL_SSL",
}
_PORT = 9092

Partition = tuple[str, int]  # topic, number


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member of a consumer group, and which partitions it has."""

    name: str
    partitions: tuple[Partition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaGroup:
    """A consumer group: its members where the cluster tells them, and how far it has got."""

    name: str
    state: str = ""
    members: tuple[GroupMember, ...] = ()
    committed: Mapping[Partition, int]
    untold: str = ""  # why members are not known


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRound:
    """All that was answered at one moment, the questions, and what was refused."""

    at_s: float
    brokers: int
    ends: Mapping[Partition, int]  # the offset that the next message gets
    groups: tuple[KafkaGroup, ...]
    asked: tuple[str, ...]
    refused: tuple[str, ...]


def two_rounds(
    urls: Sequence[str], seconds: float, settings: Path | None, groups: Sequence[str]
) -> tuple[KafkaRound, KafkaRound]:
    """Ask a cluster twice, so many seconds apart; of all groups it tells of, or of these alone."""
    with _client(urls, settings) as admin:
        first = read_round(admin, groups)
        time.sleep(seconds)
        return first, read_round(admin, groups)


def read_round(admin: Any, groups: Sequence[str]) -> KafkaRound:
    """Ask for everything once."""
    asked = ["METADATA of all topics"]
    refused: list[str] = []
    try:
        cluster = admin.list_topics(timeout=_ANSWER_S)
    except _errors() as problem:
        raise EngineError(f"no Kafka cluster answers: {_reason(problem)}") from None
    topics = {
        name: sorted(topic.partitions)
        for name, topic in sorted(cluster.topics.items())
        if not name.startswith("__")  # Kafka's own
    }
    at_s = time.monotonic()
    asked.append(f"LIST_OFFSETS of {len(topics)} topics")
    partitions = [(name, number) for name, numbers in topics.items() for number in numbers]
    ends = _ends(admin, partitions, refused)
    names = list(groups) or _group_names(admin, asked, refused)
    return KafkaRound(
        at_s=at_s,
        brokers=len(cluster.brokers),
        ends=ends,
        groups=tuple(_group(admin, name, partitions, asked) for name in names),
        asked=tuple(asked),
        refused=tuple(refused),
    )


def _ends(admin: Any, partitions: Sequence[Partition], refused: list[str]) -> dict[Partition, int]:
    """Ask for the end of every partition's log; those that have no leader now do not answer."""
    import confluent_kafka.admin

    if not partitions:
        return {}
    library: Any = confluent_kafka
    newest = library.admin.OffsetSpec.latest()
    asked = {library.TopicPartition(*each): newest for each in partitions}
    ends: dict[Partition, int] = {}
    missing: dict[str, str] = {}
    for place, answer in admin.list_offsets(asked, request_timeout=_ANSWER_S).items():
        try:
            ends[place.topic, place.partition] = answer.result(_ANSWER_S).offset
        except _errors() as problem:
            missing[f"{place.topic}-{place.partition}"] = _reason(problem)
    if missing:
        why = next(iter(missing.values()))
        named = few(list(missing))
        refused.append(f"could not read the end offsets of partitions {named} ({why})")
    return ends


def _group_names(admin: Any, asked: list[str], refused: list[str]) -> list[str]:
    asked.append("LIST_GROUPS")
    try:
        answer = admin.list_consumer_groups(request_timeout=_ANSWER_S).result(_ANSWER_S)
    except _errors() as problem:
        refused.append(
            f"could not list consumer groups ({_reason(problem)}); name them with --group NAME"
        )
        return []
    if answer.errors:
        why = few(sorted({problem.str() for problem in answer.errors}))
        refused.append(
            f"not all consumer groups could be listed ({why}); name the others with --group NAME"
        )
    return sorted(each.group_id for each in answer.valid)


def _group(admin: Any, name: str, partitions: Sequence[Partition], asked: list[str]) -> KafkaGroup:
    asked.append(f"OFFSET_FETCH of group {name}")
    group = KafkaGroup(name=name, committed=_committed(admin, name, partitions))
    asked.append(f"DESCRIBE_GROUPS {name}")
    try:
        answer = admin.describe_consumer_groups([name], request_timeout=_ANSWER_S)
        description = answer[name].result(_ANSWER_S)
    except _errors() as problem:
        return replace(group, untold=_reason(problem))
    times = Counter(member.client_id for member in description.members)
    members = [
        GroupMember(
            name=member.client_id if times[member.client_id] == 1 else member.member_id,
            partitions=tuple(
                (each.topic, each.partition) for each in member.assignment.topic_partitions
            ),
        )
        for member in description.members
    ]
    ordered = tuple(sorted(members, key=lambda member: member.name))
    return replace(group, state=description.state.name.lower(), members=ordered)


def _committed(admin: Any, name: str, partitions: Sequence[Partition]) -> dict[Partition, int]:
    """Ask for the offsets that a group has committed, where it has."""
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    wanted = [TopicPartition(*each) for each in partitions]
    if not wanted:
        return {}
    question = [ConsumerGroupTopicPartitions(name, wanted)]
    answers = admin.list_consumer_group_offsets(question, request_timeout=_ANSWER_S)
    try:
        told = answers[name].result(_ANSWER_S).topic_partitions
    except _errors() as problem:
        raise EngineError(
            f"could not read the offsets of group '{name}': {_reason(problem)}"
        ) from None
    return {(each.topic, each.partition): each.offset for each in told if each.offset >= 0}


# ---- who is asked --------------------------------------------------------------------------------


@contextlib.contextmanager
def _client(urls: Sequence[str], settings: Path | None) -> Iterator[Any]:
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ModuleNotFoundError as problem:
        raise EngineError(
            "Kafka is asked through a client library; run: pip install 'tidings[kafka]'"
        ) from problem
    try:
        yield AdminClient(client_settings(urls, settings))
    except KafkaException as problem:
        raise EngineError(f"Kafka's client refuses its settings: {_reason(problem)}") from None


def client_settings(urls: Sequence[str], file: Path | None = None) -> dict[str, Any]:
    """Give the settings of librdkafka for some addresses; those of a file win.

    >>> client_settings(["kafka://a,b:9093"])["bootstrap.servers"]
    'a:9092,b:9093'
    """
    places = [_place(url) for url in urls]
    if len({each[1:] for each in places}) > 1:
        raise InvalidInputError("addresses of one cluster want the same user and kind of address")
    _, scheme, user, password = places[0]
    chosen: dict[str, Any] = {
        "bootstrap.servers": ",".join(each[0] for each in places),
        "client.id": "tidings",
        "security.protocol": _PROTOCOLS[scheme, bool(user)],
        "log_level": 0,  # what goes wrong is told once, by the question
    }
    if user:
        chosen |= {"sasl.mechanism": "PLAIN", "sasl.username": user, "sasl.password": password}
    return chosen | (dict(_lines(file)) if file is not None else {})


def _place(url: str) -> tuple[str, str, str, str]:
    """Give the hosts of an address, its scheme, user and password."""
    scheme, _, rest = url.partition("://")
    person, _, hosts = rest.rpartition("@")
    user, _, password = map(urllib.parse.unquote, person.partition(":"))
    named = [
        host if host.rpartition(":")[2].isdigit() else f"{host}:{_PORT}"
        for host in hosts.rstrip("/").split(",")
    ]
    if scheme not in ("kafka", "kafkas") or "" in hosts.split(","):
        raise InvalidInputError(
            f"'{hidden(url)}' is not a Kafka address; expected kafka://HOST:PORT"
        )
    return ",".join(named), scheme, user, password


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    """Read settings from a file, a line ``key=value`` each; ``#`` begins a comment."""
    for number, line in enumerate(read_text(file, follow=True).splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        key, equals, value = (each.strip() for each in text.partition("="))
        if not key or not equals:  # the line itself may hold a password
            raise InvalidInputError(f"{file} line {number}: wants key=value, or # and a comment")
        yield key, value


def _errors() -> tuple[type[Exception], ...]:
    from confluent_kafka import KafkaException

    return KafkaException, TimeoutError


def _reason(problem: BaseException) -> str:
    """Give what the client says went wrong, in its own words."""
    said: Any = problem.args[0] if problem.args else None
    return str(said.str()) if hasattr(said, "str") else str(problem) or "no answer in time"
