"""A NATS network as the beginning of a system, from two rounds of its servers' documents.

What servers report: who is joined to whom and the round trip, how many messages every connection
sent, what every subscription wants and how many messages it was handed, settings of JetStream
consumers. What they do not report, and is assumed: lifetimes, service times, which connection
publishes on which subject, and how long handlers take.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from tidings.model.naming import few
from tidings.running.handling import handling_s
from tidings.running.nats_counts import Client, Consumer, CounterGrowth, Join, StreamCounts
from tidings.running.nats_pages import NatsRound
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
from tidings.running.subject_shares import subject_rates

_SERVICE = assumed("50us", "servers do not tell what one event takes")
_HANDLER = assumed("{exponential: 1ms}", "servers do not know how long handlers take")
_DELAY = assumed("500us", "no round trip was reported")
_LIFETIME = assumed("1s", "NATS does not know how long an event is of use to you")
_ENTERS = "server"  # attribute of events
_OTHER = "other"  # subject of what no subscription wants
_ACKS = 2.2  # messages that a worker sends for each it is handed: an ack and a request for more
_IDLE = 0.2  # messages a second that make nobody a publisher
_LEAST_SHARE = 0.02  # of events that nobody wants, to be worth a row

Wants = dict[str, dict[str, str] | str]


def nats_network(first: NatsRound, second: NatsRound) -> SeenNetwork:
    """Make the network that two rounds describe; rates are the growth of counters in between."""
    counts = CounterGrowth(first, second)
    clients, streams, joins = counts.clients(), counts.streams(), counts.joins()
    accounts = {client.account for client in clients if client.patterns or client.queues}
    by_account = len(accounts | {stream.account for stream in streams}) > 1
    asked = set(counts.names.values())
    brokers = sorted(asked.union(*(join.ends for join in joins)))
    workers = [client for client in clients if _only_acknowledges(client)]
    cyclic = len(joins) >= len(brokers)
    publishers = list(_publishers(clients, streams, workers, by_account))
    if cyclic:
        publishers = [_with_entry(each) for each in publishers]
    subscribers = _named_apart(
        [
            *_plain_subscribers(clients, by_account),
            *_queue_groups(clients, by_account),
            *_stream_consumers(streams, by_account),
        ]
    )
    notes = {
        f"servers that were not asked, known by links only: {few(sorted({*brokers} - asked))}; "
        "who is connected there is not in the file": bool({*brokers} - asked),
        "taken for JetStream workers, because they send about one message for each one they get: "
        f"{few([each.name for each in workers])}; add those that publish or send requests "
        "to the publishers": bool(workers),
        "no messages were published while counters were read; wait longer (--for)": not publishers,
        "nobody subscribes to anything": not subscribers,
    }
    return SeenNetwork(
        description=f"NATS network of {len(brokers)}, as seen in {counts.elapsed_s:.3g} s",
        lifetime=_LIFETIME,
        brokers=tuple(SeenBroker(name=name, service=_SERVICE) for name in brokers),
        links=tuple(_link(join) for join in joins),
        enters=_ENTERS if cyclic else None,
        publishers=tuple(publishers),
        subscribers=tuple(subscribers),
        notes=tuple(note for note, holds in notes.items() if holds),
    )


def _only_acknowledges(client: Client) -> bool:
    """Test if a client sends no more than acks and requests for what it is handed as answers."""
    return client.answers > 0 and client.sent <= _ACKS * client.answers + _IDLE


def _link(join: Join) -> SeenLink:
    if join.round_trip_s is None:
        return SeenLink(ends=join.ends, delay=_DELAY)
    source = f"half the round trip of this {join.kind}"
    return SeenLink(ends=join.ends, delay=reported(seconds(join.round_trip_s / 2), source))


def _with_entry(publisher: SeenPublisher) -> SeenPublisher:
    """Add to a publisher's events the name of the server where they enter."""
    events = tuple((share, {_ENTERS: publisher.at, **event}) for share, event in publisher.events)
    return replace(publisher, events=events)


def _publishers(
    clients: list[Client], streams: list[StreamCounts], workers: list[Client], by_account: bool
) -> Iterator[SeenPublisher]:
    sending = [each for each in clients if each.sent > _IDLE and each not in workers]
    names = _distinct((each.name, each.server) for each in sending)
    for account in sorted({each.account for each in sending}):
        senders = [each for each in sending if each.account == account]
        rates = subject_rates(_pattern_rates(clients, streams, account))
        total = sum(each.sent for each in senders)
        unwanted = total - sum(rates.values())
        if unwanted > _LEAST_SHARE * total:
            rates[_OTHER] = unwanted
        shares = [(s, rate / sum(rates.values())) for s, rate in rates.items()]
        shares.sort(key=lambda each: -each[1])
        events = tuple((share, _event(s, account, by_account)) for s, share in shares)
        source = "subjects that subscriptions were handed, wildcards as 'any'"
        if len(senders) == 1 and _OTHER not in rates:
            events_from = reported("", source)
        else:
            events_from = assumed("", f"all publishers alike: {source}")
        for each in senders:
            yield SeenPublisher(
                name=names[each.name, each.server],
                at=each.server,
                every=reported(every(each.sent), "counted; at random times, as far as known"),
                events=events or ((1.0, _event(_OTHER, account, by_account)),),
                events_from=events_from,
                size_bytes=round(each.sent_bytes / each.sent),
            )


def _pattern_rates(
    clients: list[Client], streams: list[StreamCounts], account: str
) -> dict[str, float]:
    """Compute how many events a second each pattern is handed: the mean of those who share it."""
    rates: defaultdict[str, list[float]] = defaultdict(list)
    queues: Counter[tuple[str, str]] = Counter()
    for client in clients:
        if client.account == account:
            for pattern, rate in client.patterns.items():
                rates[pattern].append(rate / max(1, client.connections))
            queues.update(client.queues)
    for (pattern, _), rate in queues.items():
        rates[pattern].append(rate)
    for stream in streams:
        if stream.account == account and len(stream.subjects) == 1:
            rates[stream.subjects[0]].append(stream.stored)
    return {pattern: sum(each) / len(each) for pattern, each in rates.items()}


def _plain_subscribers(clients: list[Client], by_account: bool) -> Iterator[SeenSubscriber]:
    wanting = [each for each in clients if each.patterns]
    names = _distinct((each.name, each.server) for each in wanting)
    for each in wanting:
        yield SeenSubscriber(
            name=names[each.name, each.server],
            at=each.server,
            wants=tuple(_wants(pattern, each.account, by_account) for pattern in each.patterns),
            remark=f"handed {sum(each.patterns.values()):.4g}/s",
        )


def _queue_groups(clients: list[Client], by_account: bool) -> Iterator[SeenSubscriber]:
    """Yield queue groups of core NATS; one spread over servers is put where most members are."""
    members: defaultdict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for client in clients:
        for pattern, queue in client.queues:
            members[client.account, pattern, queue][client.server] += client.connections
    for (account, pattern, queue), servers in members.items():
        home = max(servers, key=lambda name: (servers[name], name))
        spread = f"; members at {few(sorted(servers))}" if len(servers) > 1 else ""
        yield SeenSubscriber(
            name=queue,
            at=home,
            wants=(_wants(pattern, account, by_account),),
            remark=f"queue group{spread}",
            processing=_HANDLER,
            settings=(
                ("count", reported(str(servers.total()), "members connected")),
                ("choose", reported("random", "as servers do")),
                ("prefetch", reported("0", "events are pushed at once")),
            ),
        )


def _stream_consumers(streams: list[StreamCounts], by_account: bool) -> Iterator[SeenSubscriber]:
    accounts = Counter(
        (stream.name, consumer.name) for stream in streams for consumer in stream.consumers
    )
    for stream in streams:
        for consumer in stream.consumers:
            name = f"{stream.name}-{consumer.name}"
            shared = accounts[stream.name, consumer.name] > 1  # polls of them are named alike
            patterns = _consumer_patterns(consumer, stream)
            yield SeenSubscriber(
                name=f"{stream.account}/{name}" if shared else name,
                at=stream.server,
                wants=tuple(_wants(each, stream.account, by_account) for each in patterns),
                remark=f"JetStream consumer, handed {consumer.delivered:.4g}/s",
                processing=_handling(consumer),
                settings=tuple(_settings(consumer)),
            )


def _consumer_patterns(consumer: Consumer, stream: StreamCounts) -> tuple[str, ...]:
    several = consumer.settings.get("filter_subjects") or ()
    one = consumer.settings.get("filter_subject")
    return tuple(map(str, several)) or ((str(one),) if one else stream.subjects or (">",))


def _handling(consumer: Consumer) -> SeenValue:
    """Estimate the handlers' mean time from what is handed out and not yet acknowledged."""
    if consumer.delivered <= 0 or consumer.in_flight <= 0:
        return _HANDLER
    limit = consumer.settings.get("max_ack_pending")
    most = float(limit) if limit is not None and _positive(limit) else math.inf
    mean = seconds(handling_s(consumer.in_flight, consumer.delivered, 1, most))
    why = f"{consumer.in_flight:.3g} in flight at {consumer.delivered:.3g}/s, with random arrivals"
    return assumed(f"{{exponential: {mean}}}", why)


def _settings(consumer: Consumer) -> Iterator[tuple[str, SeenValue]]:
    settings = consumer.settings
    yield "count", assumed("1", "servers do not tell how many clients fetch from it")
    yield "prefetch", assumed("1", "clients decide how many they fetch at once")
    if not settings.get("deliver_subject"):
        yield "choose", reported("longest waiting", "as pull consumers do")
    if settings.get("ack_policy") == "none":
        return
    if _positive(settings.get("max_ack_pending")):
        yield "in_flight", reported(str(settings["max_ack_pending"]), "max_ack_pending")
    backoff = settings.get("backoff")
    if isinstance(backoff, list) and backoff and all(map(_positive, backoff)):
        times = ", ".join(seconds(each / 1e9) for each in backoff)
        yield "backoff", reported(f"[{times}]", "backoff")
    elif _positive(settings.get("ack_wait")):
        yield "ack_wait", reported(seconds(settings["ack_wait"] / 1e9), "ack_wait")
    if _positive(settings.get("max_deliver")):
        yield "deliveries", reported(str(settings["max_deliver"]), "max_deliver")


def _positive(value: Any) -> bool:
    return isinstance(value, int | float) and value > 0


def _wants(pattern: str, account: str, by_account: bool) -> Wants:
    wants: Wants = {"subject": {"nats": pattern}}
    return {"account": account, **wants} if by_account else wants


def _event(subject: str, account: str, by_account: bool) -> dict[str, str]:
    return {"account": account, "subject": subject} if by_account else {"subject": subject}


def _distinct(clients: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Name each client; the name of its server is added where several servers have one so named."""
    pairs = list(dict.fromkeys(clients))
    times = Counter(name for name, _ in pairs)
    return {(n, server): f"{n}@{server}" if times[n] > 1 else n for n, server in pairs}


def _named_apart(subscribers: list[SeenSubscriber]) -> list[SeenSubscriber]:
    """Enumerate subscribers of one name from the second on."""
    seen: Counter[str] = Counter()
    apart = []
    for each in subscribers:
        seen[each.name] += 1
        number = seen[each.name]
        apart.append(each if number == 1 else replace(each, name=f"{each.name}#{number}"))
    return apart
