"""MQTT brokers as the beginning of a system: what they say of themselves, and what goes over them.

A broker tells its version, how many clients and subscriptions it has and how many messages it takes
in (``$SYS``), but not who publishes or subscribes. So a client listens to everything for a while
and counts messages by topic. Which brokers are bridged is for the user to say.
"""

from __future__ import annotations

import contextlib
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import networkx as nx

from tidings.errors import EngineError, InvalidInputError
from tidings.model.naming import few
from tidings.running.asking import hidden
from tidings.running.network import (
    SeenBroker,
    SeenLink,
    SeenNetwork,
    SeenPublisher,
    SeenSubscriber,
    assumed,
    every,
    reported,
)

_SERVICE = assumed("100us", "MQTT brokers do not tell what one message takes")
_LIFETIME = assumed("1s", "how long a message is of use is for you to say")
_DELAY = assumed("5ms", "brokers do not tell how long a bridge takes")
_ANSWER_S = 5.0
_SETTLE_S = 0.5  # in which a broker sends what it retains, which nobody publishes now
MOST_TOPICS = 100  # at one broker; rarer ones are one event
_OTHER = "(other topics)"
_STATE = "$SYS/broker/connection/"


@dataclass(slots=True, kw_only=True)
class Heard:
    """What one broker said and passed on while it was listened to."""

    name: str
    seconds: float = 0.0
    system: dict[str, str] = field(default_factory=dict)  # by topic under $SYS
    messages: Counter[str] = field(default_factory=Counter)  # by topic
    payload_bytes: int = 0


def read_mqtt(
    urls: Sequence[str], listen_s: float, bridges: Sequence[str]
) -> tuple[SeenNetwork, tuple[str, ...]]:
    """Listen to brokers, all at once; gives what was learnt, and what was asked for it."""
    places = places_of(urls)
    names = [name for name, _ in places]
    joined = joined_brokers(bridges, names)
    if not nx.is_connected(joined):
        raise InvalidInputError(
            f"{few(names)} are not joined by the bridges that were named; wants --bridge A,B for "
            "each pair that is: brokers do not tell where their bridges lead"
        )
    heard = [Heard(name=name) for name in names]
    problems: list[Exception] = []

    def one(what: Heard, parts: urllib.parse.SplitResult) -> None:
        try:
            _listen(what, parts, listen_s)
        except EngineError as problem:
            problems.append(problem)

    threads = [
        threading.Thread(target=one, args=(what, parts), daemon=True)
        for what, (_, parts) in zip(heard, places, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    asked = tuple(f"SUBSCRIBE {topic} at {name}" for name in names for topic in ("$SYS/#", "#"))
    return mqtt_network(heard, list(joined.edges)), asked


def mqtt_network(heard: Sequence[Heard], joined: Sequence[tuple[str, str]]) -> SeenNetwork:
    """Give the network that was heard; an event enters where it was heard most, first or alone.

    A bridge passes a topic on, so that two brokers are heard with it. It is published once.
    """
    notes: list[str] = []
    origin: dict[str, Heard] = {}
    for topic in dict.fromkeys(topic for one in heard for topic in one.messages):
        origin[topic] = max(heard, key=lambda one: one.messages[topic] / (one.seconds or 1.0))
    publishers = [each for one in heard for each in _publishers(one, origin)]
    for one in heard:
        notes += _notes(one, joined)
    if not publishers:
        notes.append(
            "no messages were published while brokers were listened to; listen longer (--for)"
        )
    return SeenNetwork(
        description=f"{len(heard)} MQTT broker{'s' if len(heard) > 1 else ''}, listened to",
        lifetime=_LIFETIME,
        brokers=tuple(SeenBroker(name=one.name, service=_SERVICE) for one in heard),
        links=tuple(SeenLink(ends=ends, delay=_DELAY) for ends in joined),
        publishers=tuple(publishers),
        subscribers=tuple(
            SeenSubscriber(
                name=f"clients of {one.name}",
                at=one.name,
                wants=({},),
                remark="assumed: brokers do not tell who subscribes to what; "
                + _said(one, "subscriptions/count", "subscriptions"),
            )
            for one in heard
        ),
        notes=tuple(dict.fromkeys(notes)),
    )


def _publishers(one: Heard, origin: dict[str, Heard]) -> list[SeenPublisher]:
    """Make the one publisher of a broker that stands for all who publish there; none if none do."""
    mine = Counter({t: n for t, n in one.messages.items() if origin[t] is one})
    total = mine.total()
    if not total:
        return []
    often = mine.most_common(MOST_TOPICS)
    events = [(count / total, {"topic": topic}) for topic, count in often]
    if rest := total - sum(count for _, count in often):
        events.append((rest / total, {"topic": _OTHER}))
    return [
        SeenPublisher(
            name=f"publishers at {one.name}",
            at=one.name,
            every=reported(
                every(total / one.seconds),
                f"{total} messages in {one.seconds:.3g} s; at random times, as far as known",
            ),
            events=tuple(events),
            events_from=reported("", "topics as they were heard"),
            size_bytes=round(one.payload_bytes / one.messages.total()),
        )
    ]


def _notes(one: Heard, joined: Sequence[tuple[str, str]]) -> list[str]:
    version = one.system.get("$SYS/broker/version", "a broker that does not tell its version")
    notes = [
        f"{one.name} is {version}, with {_said(one, 'clients/connected', 'clients')} and "
        f"{_said(one, 'subscriptions/count', 'subscriptions')}; who they are it does not tell"
    ]
    bridges = sorted(
        topic.removeprefix(_STATE).removesuffix("/state")
        for topic, text in one.system.items()
        if topic.startswith(_STATE) and text == "1"
    )
    if bridges and not any(one.name in ends for ends in joined):
        notes.append(
            f"{one.name} has bridges ({few(bridges)}); say which brokers they join: --bridge A,B"
        )
    if len(one.messages) > MOST_TOPICS:
        notes.append(
            f"{one.name}: {len(one.messages)} topics were heard; the file has the "
            f"{MOST_TOPICS} busiest and one event for the rest"
        )
    return notes


def _said(one: Heard, topic: str, what: str) -> str:
    return f"{one.system.get(f'$SYS/broker/{topic}', 'an unknown number of')} {what}"


def places_of(urls: Sequence[str]) -> list[tuple[str, urllib.parse.SplitResult]]:
    """Give the names of brokers, and the parts of their addresses; refuses to name one twice."""
    places = [_place(url) for url in urls]
    names = [name for name, _ in places]
    if len(set(names)) < len(names):
        raise InvalidInputError(f"a broker is named twice: {few(names)}")
    return places


def _place(url: str) -> tuple[str, urllib.parse.SplitResult]:
    """Give a broker's name, which is where it listens, and the parts of its address."""
    parts = urllib.parse.urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or port == -1:
        raise InvalidInputError(
            f"'{hidden(url)}' is not an MQTT address; expected mqtt://HOST:PORT"
        )
    default = 8883 if parts.scheme == "mqtts" else 1883
    return f"{parts.hostname}:{port or default}", parts


def joined_brokers(bridges: Sequence[str], names: Sequence[str]) -> nx.Graph:
    """Make the graph of brokers and the bridges that were named; two brokers are joined anyway."""
    joined = nx.Graph()
    joined.add_nodes_from(names)
    joined.add_edges_from(bridge_ends(each, names) for each in bridges)
    if len(names) == 2:
        joined.add_edge(*names)
    return joined


def bridge_ends(text: str, names: Sequence[str]) -> tuple[str, str]:
    """Read which two brokers a bridge joins, from ``A,B``."""
    first, comma, second = (each.strip() for each in text.partition(","))
    if not comma or first == second or not {first, second} <= set(names):
        raise InvalidInputError(f"--bridge {text}: wants two of {few(list(names))}, as A,B")
    return first, second


def _listen(what: Heard, parts: urllib.parse.SplitResult, listen_s: float) -> None:
    """Hear what a broker says and passes on for so many seconds."""
    counts = threading.Event()

    def take(message: Message) -> None:
        if message.topic.startswith("$SYS/"):
            what.system[message.topic] = message.payload.decode(errors="replace")[:200]
        elif counts.is_set() and not message.retain:
            what.messages[message.topic] += 1
            what.payload_bytes += len(message.payload)

    with listening(what.name, parts, ("$SYS/#", "#"), take):
        time.sleep(_SETTLE_S)
        counts.set()
        begin_s = time.monotonic()
        time.sleep(listen_s)
        counts.clear()
        what.seconds = time.monotonic() - begin_s


class Message(Protocol):
    """A message as the client library hands it over."""

    topic: str
    payload: bytes
    retain: bool


@contextlib.contextmanager
def listening(
    name: str,
    parts: urllib.parse.SplitResult,
    topics: Sequence[str],
    take: Callable[[Message], None],
) -> Iterator[Any]:
    """Give a client that takes all messages of some topics, in a thread of its own."""
    try:
        import paho.mqtt.client as mqtt
        from paho.mqtt.enums import CallbackAPIVersion
    except ModuleNotFoundError as problem:
        raise EngineError(
            "MQTT brokers are asked through a client library; run: pip install 'tidings[mqtt]'"
        ) from problem
    answered, refusal = threading.Event(), []

    def connected(client: Any, _: Any, __: Any, code: Any, ___: Any) -> None:
        if code.is_failure:
            refusal.append(str(code))
            answered.set()
        else:
            client.subscribe([(topic, 0) for topic in topics])

    client = mqtt.Client(CallbackAPIVersion.VERSION2)
    client.on_connect = connected
    client.on_subscribe = lambda *_: answered.set()
    client.on_message = lambda _, __, message: take(cast(Message, message))
    client.connect_timeout = _ANSWER_S
    if parts.scheme == "mqtts":
        client.tls_set()
    if parts.username is not None:
        unquote = urllib.parse.unquote
        client.username_pw_set(unquote(parts.username), unquote(parts.password or ""))
    host, _, port = name.rpartition(":")
    try:
        client.connect(host, int(port))
    except (OSError, ValueError) as problem:
        raise EngineError(f"there is no MQTT broker at {name}: {problem}") from None
    client.loop_start()
    try:
        if not answered.wait(_ANSWER_S):
            raise EngineError(
                f"{name} accepted the connection but did not answer in MQTT; check host and port"
            )
        if refusal:
            raise EngineError(f"{name} refused the connection: {refusal[0]}")
        yield client
    finally:
        client.disconnect()
        client.loop_stop()
