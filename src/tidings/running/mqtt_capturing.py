"""Traces of MQTT traffic as a client sees it: when messages pass brokers, not what those do.

A listener at each broker hears every message and when it passes there. What is heard at several
brokers went over bridges; it is one event, which entered where its topic is mostly heard first.
Probes, messages of our own, are known from the moment they are sent. All times are of this
machine's clock, and those of listeners have the way from a broker to this machine in them. What an
event waits inside a broker cannot be told from what it travels: it is in the delays of links.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import pyarrow as pa

from tidings.errors import EngineError, InvalidInputError
from tidings.model.events import canonical_event
from tidings.model.naming import few
from tidings.model.progress import Progress
from tidings.model.trace_files import trace_table
from tidings.model.trace_tables import FORMAT_VERSION
from tidings.running.mqtt import Message, joined_brokers, listening, places_of

PROBES = "tidings/probe"
_LAST_S = 1.0  # until what was published has come everywhere
_SETTLE_S = 0.5  # in which brokers send what they retain
MOST_MESSAGES = 2_000_000  # heard at all brokers together; they are held in memory
MOST_TOPICS = 1_000  # each is a publisher of its own

Key = tuple[str, bytes]  # topic, and what tells payloads apart


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttPlan:
    """What to capture: where, for how long, which topics, how many probes a second and broker."""

    urls: tuple[str, ...]
    seconds: float
    bridges: tuple[str, ...] = ()  # "A,B", by the names of brokers; two alone are joined anyway
    topic: str = "#"
    probes_per_s: float = 1.0
    lifetime_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MqttCaptured:
    """The trace tables of a capture, what ``traces.json`` says, and what to know of it."""

    tables: dict[str, pa.Table]
    manifest: dict[str, Any]
    heard: int
    probes: int
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Passing:
    """When messages passed, in nanoseconds, by broker; and how large they are."""

    at_ns: dict[Key, dict[str, list[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    size_bytes: dict[Key, int] = field(default_factory=dict)
    sent_ns: dict[Key, tuple[str, int]] = field(default_factory=dict)  # of probes: where, and when
    count: int = 0

    def take(self, broker: str, message: Message, now_ns: int) -> None:
        """Write a message down that passes a broker."""
        if message.retain or self.count >= MOST_MESSAGES:
            return
        key = message.topic, hashlib.blake2b(message.payload, digest_size=8).digest()
        self.at_ns[key][broker].append(now_ns)
        self.size_bytes[key] = len(message.payload)
        self.count += 1


def capture_mqtt(plan: MqttPlan, progress: Progress = lambda _: None) -> MqttCaptured:
    """Listen to brokers and send probes for so many seconds; gives what passed, as trace tables."""
    places = places_of(plan.urls)
    names = [name for name, _ in places]
    joined = _joined(plan.bridges, names)
    passing, one_at_a_time = _Passing(), threading.Lock()
    topics = tuple(dict.fromkeys((plan.topic, f"{PROBES}/#")))
    with contextlib.ExitStack() as stack:
        clients = {}
        for name, parts in places:

            def take(message: Message, name: str = name) -> None:
                now_ns = time.time_ns()  # before it waits for other listeners
                with one_at_a_time:
                    passing.take(name, message, now_ns)

            clients[name] = stack.enter_context(listening(name, parts, topics, take))
        time.sleep(_SETTLE_S)
        begin_ns = time.time_ns()
        until_ns = begin_ns + round(plan.seconds * 1e9)
        _probe(plan, clients, passing, until_ns, progress)
        progress("waiting for the last messages")
        time.sleep(_LAST_S)
    if passing.count >= MOST_MESSAGES:
        raise EngineError(
            f"more than {MOST_MESSAGES:,} messages were heard; capture for a shorter time (--for), "
            "or fewer topics (--subject)"
        )
    return _captured(plan, joined, passing, (begin_ns, until_ns))


def _probe(
    plan: MqttPlan,
    clients: Mapping[str, Any],
    passing: _Passing,
    until_ns: int,
    progress: Progress,
) -> None:
    """Send probes at every broker in turn until the time is over."""
    number = 0
    step_s = 1.0 / (plan.probes_per_s * len(clients)) if plan.probes_per_s > 0 else 1.0
    due_s = time.monotonic()
    while (now_ns := time.time_ns()) < until_ns:
        if plan.probes_per_s > 0:
            name = list(clients)[number % len(clients)]
            topic, payload = f"{PROBES}/{name}", f"{number}/{now_ns}".encode()
            key = topic, hashlib.blake2b(payload, digest_size=8).digest()
            passing.sent_ns[key] = (name, time.time_ns())
            clients[name].publish(topic, payload)
        number, due_s = number + 1, due_s + step_s
        progress(f"heard {passing.count} messages")
        time.sleep(max(0.0, min(due_s - time.monotonic(), (until_ns - time.time_ns()) / 1e9)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    name: str
    topic: str
    publisher: str
    broker: str
    published_ns: int
    size_bytes: int
    heard_ns: Mapping[str, int]  # by broker
    passed_ns: dict[str, int] = field(default_factory=dict)  # the same, in order along the way


def _joined(bridges: Sequence[str], names: Sequence[str]) -> nx.Graph:
    """Make the graph of brokers and bridges; exactly one path must join each two brokers."""
    joined = joined_brokers(bridges, names)
    if not nx.is_tree(joined):
        raise InvalidInputError(
            f"wants bridges (--bridge A,B) that join {few(list(names))} in exactly one way"
        )
    return joined


def _captured(
    plan: MqttPlan, joined: nx.Graph, passing: _Passing, window: tuple[int, int]
) -> MqttCaptured:
    names = list(joined)
    events = [each for each in _events(passing) if window[0] <= each.published_ns < window[1]]
    publishers = {each.publisher for each in events}
    if len(publishers) > MOST_TOPICS:
        raise EngineError(
            f"messages on {len(publishers):,} topics, more than the limit of {MOST_TOPICS:,}; "
            "restrict them with --subject"
        )
    wanted: dict[str, set[str]] = {name: set() for name in names}
    for each in events:
        for broker in each.heard_ns:
            wanted[broker].add(each.topic)
    lifetime_ns = None if plan.lifetime_s is None else round(plan.lifetime_s * 1e9)
    own = sum(each.topic.startswith(f"{PROBES}/") for each in events)
    return MqttCaptured(
        tables={
            "publications": _publications(events, lifetime_ns),
            "hops": _hops(events, joined),
            "deliveries": _deliveries(events),
            "subscriptions": _subscriptions(wanted, window[0]),
        },
        manifest={
            "version": FORMAT_VERSION,
            "source": "capture",
            "from_ns": window[0],
            "until_ns": window[1],
        },
        heard=len(events) - own,
        probes=own,
        notes=tuple(_notes(events, names, _copies(passing, _origins(passing)))),
    )


def _events(passing: _Passing) -> Iterator[_Event]:
    """Yield what passed as events: the first of a kind at one broker is the first at the others.

    What is heard more often at another broker than where it enters is a copy, and does not count.
    """
    origin = _origins(passing)
    number = itertools.count(1)
    for key, heard in passing.at_ns.items():
        if key in passing.sent_ns:
            continue
        for place in range(len(heard.get(origin[key[0]], ()))):
            at_ns = {name: times[place] for name, times in heard.items() if place < len(times)}
            yield _Event(
                name=f"m{next(number)}",
                topic=key[0],
                publisher=key[0],
                broker=origin[key[0]],
                # Listeners may be told of what passes at the same moment in any order.
                published_ns=min(at_ns.values()),
                size_bytes=passing.size_bytes[key],
                heard_ns=at_ns,
            )
    for key, (broker, sent_ns) in passing.sent_ns.items():
        heard = passing.at_ns.get(key, {})
        yield _Event(
            name=f"m{next(number)}",
            topic=key[0],
            publisher=f"probe at {broker}",
            broker=broker,
            published_ns=sent_ns,
            size_bytes=passing.size_bytes.get(key, 0),
            heard_ns={name: times[0] for name, times in heard.items()},
        )


def _origins(passing: _Passing) -> dict[str, str]:
    """Find, by topic, the broker where its messages are mostly heard first."""
    first: dict[str, Counter[str]] = defaultdict(Counter)
    for (topic, _), heard in passing.at_ns.items():
        for place in range(max(map(len, heard.values()))):
            at_ns = {name: times[place] for name, times in heard.items() if place < len(times)}
            first[topic][min(at_ns, key=at_ns.__getitem__)] += 1
    return {topic: counts.most_common(1)[0][0] for topic, counts in first.items()}


def _copies(passing: _Passing, origin: Mapping[str, str]) -> list[str]:
    """List the brokers that hear messages more often than they are published."""
    more = {
        name
        for (topic, _), heard in passing.at_ns.items()
        for name, times in heard.items()
        if len(times) > len(heard.get(origin[topic], ()))
    }
    return sorted(more)


def _notes(events: Sequence[_Event], names: Sequence[str], copies: Sequence[str]) -> Iterator[str]:
    yield (
        "a client sees when messages pass brokers, not what brokers do: waits and services are in "
        "the delays of links. Who publishes is not known (every topic is a publisher), and "
        "subscribers are the listeners"
    )
    silent = [name for name in names if not any(name in each.heard_ns for each in events)]
    if silent:
        yield f"nothing was heard at {few(silent)}"
    if copies:
        yield (
            f"some messages come more often to {few(list(copies))} than they are published "
            "(bridges whose topics overlap?); the first of each counts"
        )
    own = [each for each in events if each.topic.startswith(f"{PROBES}/")]
    if len(names) > 1 and own and all(len(each.heard_ns) <= 1 for each in own):
        yield (
            "no probe came over a bridge; delays between brokers are known from other "
            f"messages alone. Let bridges pass on {PROBES}/#"
        )


def _publications(events: Sequence[_Event], lifetime_ns: int | None) -> pa.Table:
    columns = {
        "event": [each.name for each in events],
        "publisher": [each.publisher for each in events],
        "broker": [each.broker for each in events],
        "published_ns": [each.published_ns for each in events],
        "content": [canonical_event({"topic": each.topic}) for each in events],
        "lifetime_ns": [lifetime_ns] * len(events),
        "size_bytes": [each.size_bytes for each in events],
    }
    return trace_table("publications", columns)


def _hops(events: Sequence[_Event], joined: nx.Graph) -> pa.Table:
    """Tabulate where events passed, along bridges from where they entered."""
    trees = {origin: nx.bfs_tree(joined, origin) for origin in joined}
    rows = []
    for each in events:
        tree, passed_ns = trees[each.broker], dict[str, int]()
        for broker in tree:  # from near to far
            before = next(iter(tree.predecessors(broker)), None)
            if broker in each.heard_ns and (before is None or before in passed_ns):
                # Not before it passed the last one, whichever listener was told first.
                earliest_ns = each.published_ns if before is None else passed_ns[before]
                passed_ns[broker] = max(each.heard_ns[broker], earliest_ns)
                rows.append((each, broker, before or each.publisher))
        each.passed_ns.update(passed_ns)
    columns = {
        "event": [each.name for each, *_ in rows],
        "broker": [broker for _, broker, _ in rows],
        "came_from": [source for *_, source in rows],
        "arrived_ns": [each.passed_ns[broker] for each, broker, _ in rows],
        "started_ns": [None] * len(rows),
        "left_ns": [each.passed_ns[broker] for each, broker, _ in rows],
        "sent_to": [
            [one for one in trees[each.broker].successors(broker) if one in each.passed_ns]
            for each, broker, _ in rows
        ],
    }
    return trace_table("hops", columns)


def _deliveries(events: Sequence[_Event]) -> pa.Table:
    heard = [
        (each, broker, max(at_ns, each.passed_ns.get(broker, 0), each.published_ns))
        for each in events
        for broker, at_ns in each.heard_ns.items()
    ]
    columns = {
        "event": [each.name for each, *_ in heard],
        "subscriber": [f"listener at {broker}" for _, broker, _ in heard],
        "broker": [broker for _, broker, _ in heard],
        "received_ns": [at_ns for *_, at_ns in heard],
    }
    return trace_table("deliveries", columns)


def _subscriptions(wanted: Mapping[str, set[str]], at_ns: int) -> pa.Table:
    """Tabulate what each listener wants: what came to it.

    That bridges keep other topics from it is no loss.
    """
    some = {broker: sorted(topics) for broker, topics in wanted.items() if topics}
    columns = {
        "subscription": [f"listener at {broker}/1" for broker in some],
        "subscriber": [f"listener at {broker}" for broker in some],
        "broker": list(some),
        "action": ["subscribe"] * len(some),
        "at_ns": [at_ns] * len(some),
        "filter": [
            json.dumps({"topic": topics}, separators=(",", ":"), ensure_ascii=False)
            for topics in some.values()
        ],
    }
    return trace_table("subscriptions", columns)
