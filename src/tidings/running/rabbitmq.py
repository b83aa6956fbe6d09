"""A RabbitMQ cluster as the beginning of a system, from its management API.

What the API reports: nodes, who publishes how fast, how fast exchanges take messages in and each
queue gets them, bindings, consumers with their prefetch, limits of queues. What it does not report,
and is assumed: which connection publishes to which exchange (unless rates are kept in detail), with
which routing keys, and how long handlers take.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tidings.errors import EngineError
from tidings.model.naming import few
from tidings.running.asking import Pages
from tidings.running.handling import handling_s
from tidings.running.network import (
    SeenBroker,
    SeenLink,
    SeenNetwork,
    SeenPublisher,
    SeenSubscriber,
    SeenValue,
    assumed,
    every,
    reported,
    seconds,
)
from tidings.running.rabbitmq_bindings import DEFAULT, Binding
from tidings.running.subject_shares import explaining_rates

_SERVICE = assumed("100us", "RabbitMQ does not tell what one message takes")
_HANDLER = assumed("{exponential: 1ms}", "RabbitMQ does not know how long handlers take")
_LIFETIME = assumed("1s", "how long a message is of use is for you to say")
_DELAY = assumed("500us", "the API tells no round trip between nodes")
_ENTERS = "node"
_OTHER = "other"
_WHEN_FULL = {
    "drop-head": "drop old",
    "reject-publish": "drop new",
    "reject-publish-dlx": "drop new",
}
_LEAST_AGE_S = 10  # rates are kept in steps of five seconds


def read_rabbitmq(url: str, seconds_back: float) -> tuple[SeenNetwork, tuple[str, ...]]:
    """Read what the management API tells of the last seconds; also give what was asked for it."""
    asked: list[str] = []
    pages = Pages(url.rstrip("/").removesuffix("/api"), asked)
    age: dict[str, str | int] = {
        "msg_rates_age": max(_LEAST_AGE_S, round(seconds_back)),
        "msg_rates_incr": 5,
        "lengths_age": max(_LEAST_AGE_S, round(seconds_back)),
        "lengths_incr": 5,
    }
    overview = pages.read("api/overview")
    if not isinstance(overview, dict) or "rabbitmq_version" not in overview:
        raise EngineError(f"{pages.base}/api/overview is no page of RabbitMQ's management API")
    documents = {
        "overview": overview,
        "nodes": pages.read("api/nodes", columns="name,running"),
        "exchanges": pages.read("api/exchanges", **age),
        "queues": pages.read("api/queues", **age),
        "bindings": pages.read("api/bindings"),
        "consumers": pages.read("api/consumers"),
        "connections": pages.read(
            "api/connections", columns="name,client_properties,user_provided_name"
        ),
        "channels": pages.read("api/channels", **age),
    }
    return rabbitmq_network(documents), tuple(asked)


def rabbitmq_network(documents: dict[str, Any]) -> SeenNetwork:
    """Make the network that these documents of the API describe."""
    nodes = sorted(
        str(row["name"]) for row in _rows(documents, "nodes") if row.get("running", True)
    )
    kinds = {
        (row.get("vhost"), row.get("name")): str(row.get("type"))
        for row in _rows(documents, "exchanges")
    }
    hosts = sorted({str(row.get("vhost")) for row in _rows(documents, "queues")})
    times = Counter(str(row.get("name")) for row in _rows(documents, "queues"))
    shared = {name for name, number in times.items() if number > 1}  # polls of them are named alike
    notes: list[str] = []
    publishers: list[SeenPublisher] = []
    subscribers: list[SeenSubscriber] = []
    for host in hosts:
        label = host if len(hosts) > 1 else None
        bindings = _bindings(documents, host, kinds, notes)
        queues = [row for row in _rows(documents, "queues") if str(row.get("vhost")) == host]
        inflow = _inflow(documents, host)
        cells = _cells(bindings, queues, inflow)
        entry = _ENTERS if len(nodes) > 1 else None
        publishers += _publishers(documents, host, cells, label, entry)
        for queue in queues:
            name = str(queue.get("name"))
            consumers = [
                row
                for row in _rows(documents, "consumers")
                if row.get("queue") == {"name": name, "vhost": queue.get("vhost")}
            ]
            subscriber = _subscriber(queue, bindings[name], consumers, label, notes)
            called = f"{host}/{name}" if name in shared else name
            subscribers.append(replace(subscriber, name=called))
    if not publishers:
        notes.append("no messages were published in the time that rates are averaged over")
    pairs = [(a, b) for at, a in enumerate(nodes) for b in nodes[at + 1 :]]
    return SeenNetwork(
        description=f"RabbitMQ cluster of {len(nodes)}, by its management API",
        lifetime=_LIFETIME,
        brokers=tuple(SeenBroker(name=name, service=_SERVICE) for name in nodes),
        links=tuple(SeenLink(ends=pair, delay=_DELAY) for pair in pairs),
        enters=_ENTERS if len(pairs) >= len(nodes) else None,
        publishers=tuple(publishers),
        subscribers=tuple(subscribers),
        notes=tuple(dict.fromkeys(notes)),
    )


def _bindings(
    documents: dict[str, Any], host: str, kinds: dict[tuple[Any, Any], str], notes: list[str]
) -> dict[str, list[Binding]]:
    """List the bindings of each queue; the default exchange, to which all are bound, comes last."""
    bindings: defaultdict[str, list[Binding]] = defaultdict(list)
    ignored: Counter[str] = Counter()
    rows = [row for row in _rows(documents, "bindings") if str(row.get("vhost")) == host]
    for row in sorted(rows, key=lambda row: row.get("source") == ""):
        source = str(row.get("source"))
        kind = kinds.get((row.get("vhost"), source), "direct")
        if row.get("destination_type") != "queue":
            ignored[source] += 1
            continue
        binding = Binding(
            exchange=source or DEFAULT, kind=kind, key=str(row.get("routing_key") or "")
        )
        bindings[str(row.get("destination"))].append(binding)
        if kind == "headers" or (kind == "topic" and "#" in binding.key.rstrip("#")):
            notes.append(
                f"queue '{row.get('destination')}' is bound by headers, or by a pattern with '#' "
                "inside: the file lets it want more than it gets"
            )
    if ignored:
        notes.append(f"bindings between exchanges are left out: from {few(sorted(ignored))}")
    return bindings


def _inflow(documents: dict[str, Any], host: str) -> dict[str, float]:
    """Give the messages a second that each exchange takes in."""
    return {
        str(row.get("name")) or DEFAULT: _rate(row, "publish_in")
        for row in _rows(documents, "exchanges")
        if str(row.get("vhost")) == host
    }


def _cells(
    bindings: dict[str, list[Binding]], queues: list[dict[str, Any]], inflow: dict[str, float]
) -> dict[tuple[str, str], float]:
    """Estimate messages a second by exchange and routing key.

    They explain what exchanges and queues got.
    """
    keys = [
        (binding.exchange, binding.example())
        for each in bindings.values()
        for binding in each
        if inflow.get(binding.exchange)
    ]
    cells = list(dict.fromkeys([*keys, *((name, _OTHER) for name, rate in inflow.items() if rate)]))
    if not cells:
        return {}
    rows, rates = [], []
    for queue in queues:
        own = bindings[str(queue.get("name"))]
        rows.append([any(b.takes(*cell) for b in own) for cell in cells])
        rates.append(_rate(queue, "publish"))
    for name, rate in inflow.items():
        rows.append([exchange == name for exchange, _ in cells])
        rates.append(rate)
    explained = explaining_rates(np.array(rows, dtype=float), np.array(rates))
    return {cell: float(rate) for cell, rate in zip(cells, explained, strict=True) if rate > 0}


def _publishers(
    documents: dict[str, Any],
    host: str,
    cells: dict[tuple[str, str], float],
    label: str | None,
    entry: str | None,
) -> Iterator[SeenPublisher]:
    names = {
        row.get("name"): row.get("user_provided_name")
        or (row.get("client_properties") or {}).get("connection_name")
        for row in _rows(documents, "connections")
    }
    sent: defaultdict[tuple[str, str], float] = defaultdict(float)
    exchanges: defaultdict[tuple[str, str], defaultdict[str, float]] = defaultdict(
        lambda: defaultdict(float)
    )
    for row in _rows(documents, "channels"):
        rate = _rate(row, "publish")
        if str(row.get("vhost")) != host or rate <= 0:
            continue
        connection = str((row.get("connection_details") or {}).get("name"))
        key = (str(names.get(connection) or connection), str(row.get("node")))
        sent[key] += rate
        for each in row.get("publishes") or ():
            exchange = str((each.get("exchange") or {}).get("name") or "") or DEFAULT
            exchanges[key][exchange] += _rate({"message_stats": each.get("stats")}, "publish")
    times = Counter(name for name, _ in sent)
    for (name, node), rate in sent.items():
        own = exchanges[name, node]
        known = {cell for cell in cells if own.get(cell[0])} or set(cells)
        total = sum(cells[cell] for cell in known) or 1.0
        events = tuple(
            (cells[cell] / total, _event(cell, label, {} if entry is None else {entry: node}))
            for cell in sorted(known, key=lambda cell: -cells[cell])
        )
        source = "routing keys as bindings say, rates as queues get them"
        alike = "" if own else "all publishers alike: "
        yield SeenPublisher(
            name=f"{name}@{node}" if times[name] > 1 else name,
            at=node,
            every=reported(
                every(rate), "as its channels publish; at random times, as far as known"
            ),
            events=events or ((1.0, _event((DEFAULT, _OTHER), label, {})),),
            events_from=assumed("", f"{alike}{source}"),
        )


def _event(cell: tuple[str, str], label: str | None, entry: dict[str, str]) -> dict[str, str]:
    event = {**entry, "exchange": cell[0], "key": cell[1]}
    return event if label is None else {"vhost": label, **event}


def _subscriber(
    queue: dict[str, Any],
    bindings: list[Binding],
    consumers: list[dict[str, Any]],
    label: str | None,
    notes: list[str],
) -> SeenSubscriber:
    name = str(queue.get("name"))
    others = [each for each in bindings if each.exchange != DEFAULT] or bindings
    if not others:
        others = [Binding(exchange=DEFAULT, kind="direct", key=name)]
    wants = [filter_ for binding in others for filter_ in binding.wants()]
    if label is not None:
        wants = [{"vhost": label, **each} for each in wants]
    limits = {**(queue.get("effective_policy_definition") or {}), **_arguments(queue)}
    ttl_ms = limits.get("message-ttl") or 0
    return SeenSubscriber(
        name=name,
        at=str(queue.get("leader") or queue.get("node")),
        wants=tuple(wants),
        remark=f"queue, gets {_rate(queue, 'publish'):.4g}/s, holds {queue.get('messages', 0)}",
        lifetime=reported(seconds(ttl_ms / 1e3), "its message TTL") if _positive(ttl_ms) else None,
        processing=_handling(queue, consumers),
        settings=tuple(_settings(limits, consumers, name, notes)),
    )


def _settings(
    limits: dict[str, Any], consumers: list[dict[str, Any]], name: str, notes: list[str]
) -> Iterator[tuple[str, SeenValue]]:
    if consumers:
        yield "count", reported(str(len(consumers)), "consumers of the queue")
    else:
        notes.append(f"queue '{name}' has no consumer; the file gives it one")
        yield "count", assumed("1", "nobody consumes it now")
    prefetches = sorted({int(row.get("prefetch_count") or 0) for row in consumers})
    if len(prefetches) > 1:
        yield "prefetch", assumed(str(prefetches[-1]), f"consumers differ: {prefetches}")
    else:
        yield (
            "prefetch",
            reported(str(prefetches[0] if prefetches else 0), "of its consumers; 0 is no limit"),
        )
    if _positive(limits.get("max-length")):
        yield "buffer", reported(str(int(limits["max-length"])), "its longest length")
        full = _WHEN_FULL.get(str(limits.get("overflow", "drop-head")), "drop old")
        yield "when_full", reported(full, "its overflow")


def _handling(queue: dict[str, Any], consumers: list[dict[str, Any]]) -> SeenValue:
    """Estimate the handlers' mean time from what is delivered and not yet acknowledged."""
    details = queue.get("messages_unacknowledged_details") or {}
    held = details.get("avg", queue.get("messages_unacknowledged", 0))
    acked = _rate(queue, "ack")
    if not _positive(held) or acked <= 0:
        return _HANDLER
    prefetches = [row.get("prefetch_count") or math.inf for row in consumers] or [math.inf]
    mean = seconds(handling_s(held, acked, len(prefetches), sum(prefetches)))
    why = f"{held:.3g} unacknowledged at {acked:.3g} acks/s, with random arrivals"
    return assumed(f"{{exponential: {mean}}}", why)


def _arguments(queue: dict[str, Any]) -> dict[str, Any]:
    """Give the queue's own arguments, named as in policies."""
    given = queue.get("arguments") or {}
    return {str(key).removeprefix("x-"): value for key, value in given.items()}


def _rate(row: dict[str, Any], name: str) -> float:
    """Give messages a second, over all of the time asked for where the API tells it."""
    details = (row.get("message_stats") or {}).get(f"{name}_details") or {}
    rate = details.get("avg_rate", details.get("rate"))
    return float(rate) if isinstance(rate, int | float) else 0.0


def _rows(documents: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows = documents.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
