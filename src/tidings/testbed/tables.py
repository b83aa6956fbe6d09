"""A run as canonical trace tables, and how far it is to be trusted.

What the servers say of each message themselves is one JSON document per server and message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.model.system import Subscriber
from tidings.model.trace_files import filter_text, subscription_table, trace_table
from tidings.model.trace_tables import FORMAT_VERSION
from tidings.testbed.breaking import usable_changes
from tidings.testbed.churning import learnings
from tidings.testbed.consuming import takes_time
from tidings.testbed.frames import EVENT
from tidings.testbed.runs import Delivery, Handling, Run
from tidings.testbed.workload import Publication

_CLIENT, _BROKER = 0, 4  # kinds of connections


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """An event as a server took it in: from whom, and to which it sent it on, by their labels."""

    event: str
    broker: str
    came_from: str
    sent_to: tuple[str, ...]


def sighting(document: bytes, header: str) -> Sighting | None:
    """Read one trace document of a server; None where it is not about an event of ours."""
    trace = json.loads(document)
    names = trace.get("request", {}).get("header", {}).get(header)
    came = [each for each in trace.get("events") or () if each.get("type") == "in"]
    if not names or not came:
        return None
    leaving = (each for each in trace["events"] if each.get("type") == "eg")
    return Sighting(
        event=names[0],
        broker=trace["server"]["name"],
        came_from=came[0].get("name", ""),
        sent_to=tuple(each["name"] for each in leaving if each.get("kind") == _BROKER),
    )


MOST_LATENESS = 0.05  # of the shortest mean service, at the 99th percentile
SO_LATE = " (99th percentile), more than "  # between who was late and what that means


def trace_tables(
    run: Run,
    published: Sequence[Publication] | None = None,
    known: Mapping[str, Publication] | None = None,
) -> dict[str, pa.Table]:
    """Make the trace tables of a run: what was published after its warm-up, each event to its end.

    Of a run that goes on, ``published`` is what is new of publications, and ``known`` are all so
    far by event.

    A hop is what two saw: arrival, start and end of service by the relay that holds an event as
    long as the broker works, and where it went by the server's own tracing. Whatever server, relay
    and timers cost beyond the drawn times occupies no station; it is on the way to the next one,
    and so in the delay of the link that is measured.
    """
    all_known = known if known is not None else {each.event: each for each in run.published}
    warm_s = run.options.warmup_s
    kept = {name: each for name, each in all_known.items() if each.at_s >= warm_s}
    events = kept.values() if published is None else published
    return {
        "publications": _publications(run, [each for each in events if each.at_s >= warm_s]),
        "hops": _hops(run, kept),
        "deliveries": _deliveries(run, kept),
        "subscriptions": _subscriptions(run),
        **({"states": _states(run)} if run.outages or run.states else {}),
        **({"sessions": _sessions(run)} if run.sessions else {}),
    }


def manifest(run: Run) -> dict[str, Any]:
    """Give what ``traces.json`` says: the window, and how late this machine was."""
    begin_s = run.start_s + run.options.warmup_s
    end_s = begin_s + run.options.duration_s
    if run.incomplete is not None:
        last_s = max((each.at_s for each in run.published), default=0.0)
        end_s = max(begin_s, run.start_s + last_s)
    said = {
        "version": FORMAT_VERSION,
        "source": "testbed",
        "from_ns": run.nanoseconds(begin_s),
        "until_ns": run.nanoseconds(end_s),
        "seed": run.options.seed,
        "takes_precedence": run.takes_precedence,
        "lateness": lateness(run),
    }
    if run.outages:
        said["outages"] = len(run.outages)
        said["failures_compressed"] = run.options.compression
    if run.handlings:
        said["consumers"] = handled_by_groups(run)
    if run.incomplete is not None:
        said["incomplete"] = run.incomplete
    return said


def handled_by_groups(run: Run) -> dict[str, dict[str, float]]:
    """Count, by subscriber that takes its time: events handled, and their share handled again."""
    kept = {each.event for each in run.published if each.at_s >= run.options.warmup_s}
    times: dict[str, dict[str, int]] = {}
    for each in run.handlings:
        if each.event in kept:
            mine = times.setdefault(run.system.subscribers[each.subscriber].name, {})
            mine[each.event] = mine.get(each.event, 0) + 1
    dropped = run.layout.journal.overflowed
    return {
        name: {
            "events": len(mine),
            "handled_again": sum(count > 1 for count in mine.values()) / len(mine),
            "dropped": dropped.get(name, 0),
        }
        for name, mine in times.items()
    }


def lateness(run: Run) -> dict[str, float]:
    """Compute how late relays, publishers and clients that came back were, in seconds.

    These are medians and 99 % quantiles.
    """
    late_s = {
        "relay": np.array(run.layout.journal.lateness_s),
        "publisher": np.array(run.published_late_s),
        **({"connecting": np.array(run.connecting_s)} if run.connecting_s else {}),
    }
    return {
        f"{who}_{name}_s": float(np.quantile(values, level)) if values.size else 0.0
        for who, values in late_s.items()
        for name, level in (("p50", 0.5), ("p99", 0.99))
    }


def doubts(run: Run) -> list[str]:
    """List why a run should not be believed; empty where nothing speaks against it."""
    stored = run.system.stored_subscriptions
    services = [
        each.service.with_stored(stored).mean_s for each in run.system.brokers if each.service
    ]
    shortest_s = min((mean_s for mean_s in services if mean_s > 0.0), default=None)
    reasons = [] if run.incomplete is None else [f"the run is incomplete: {run.incomplete}"]
    late = lateness(run)
    too_late = [
        f"{who}s were late by {1e3 * late[f'{who}_p99_s']:.2g} ms"
        for who in ("relay", "publisher")
        if shortest_s is not None and late[f"{who}_p99_s"] > MOST_LATENESS * shortest_s
    ]
    if too_late and shortest_s is not None:
        reasons.append(
            f"{' and '.join(too_late)}{SO_LATE}{MOST_LATENESS:.0%} of the "
            f"shortest mean service ({1e3 * shortest_s:.3g} ms), so delays are not reliable: run "
            "it on a less busy machine, or make all times longer"
        )
    return reasons


def _publications(run: Run, kept: list[Publication]) -> pa.Table:
    system = run.system
    publishers = [system.publishers[each.publisher] for each in kept]
    lifetimes = [each.lifetime_s for each in kept]
    sizes = [
        each.content.size_bytes or publisher.size_bytes or system.size_bytes
        for each, publisher in zip(kept, publishers, strict=True)
    ]
    columns = {
        "event": [each.event for each in kept],
        "publisher": [publisher.name for publisher in publishers],
        "broker": [publisher.at for publisher in publishers],
        # When it was due, not when this machine got round to it.
        "published_ns": [run.nanoseconds(run.start_s + each.at_s) for each in kept],
        "content": [each.content.text for each in kept],
        "lifetime_ns": [None if life_s is None else round(life_s * 1e9) for life_s in lifetimes],
        "size_bytes": [None if size is None else round(size) for size in sizes],
    }
    return trace_table("publications", columns)


def _hops(run: Run, kept: Mapping[str, Publication]) -> pa.Table:
    sent = sent_to(run)
    visits = [each for each in run.layout.journal.visits if each.event in kept]
    columns = {
        "event": [each.event for each in visits],
        "broker": [each.broker for each in visits],
        "came_from": [each.came_from for each in visits],
        "arrived_ns": [run.nanoseconds(each.arrived_s) for each in visits],
        "started_ns": [run.nanoseconds(each.started_s) for each in visits],
        "left_ns": [run.nanoseconds(each.left_s) for each in visits],
        # Not known where the server was killed before it said so.
        "sent_to": [sent.get((each.event, each.broker)) for each in visits],
    }
    return trace_table("hops", columns)


def sent_to(run: Run) -> dict[tuple[str, str], list[str]]:
    """List by event and broker where the server says it sent it; else where relays saw it go."""
    journal = run.layout.journal
    if run.layout.carried:
        takers = {(each.event, each.broker): list[str]() for each in journal.visits}
        for each in journal.visits:
            if (each.event, each.came_from) in takers:
                takers[each.event, each.came_from].append(each.broker)
        return takers
    if not run.layout.kind.tells:
        visited = ((each.event, each.broker) for each in journal.visits)
        return {each: journal.sent.get(each, []) for each in visited}
    seen = (sighting(document, EVENT.decode()) for document in run.documents)
    names = {plan.label: plan.name for plan in run.layout.servers.values()}
    return {
        (one.event, names[one.broker]): [names[each] for each in one.sent_to]
        for one in seen
        if one is not None
    }


def _states(run: Run) -> pa.Table:
    changes = usable_changes(run)
    columns = {
        "component": [each.component for each in changes],
        "state": ["up" if each.is_up else "down" for each in changes],
        "at_ns": [run.nanoseconds(each.at_s) for each in changes],
    }
    return trace_table("states", columns)


def _subscriptions(run: Run) -> pa.Table:
    """Tabulate who wants what from the beginning, and steps of subscriptions that come and go."""
    lasting = [each for each in run.system.subscribers if each.stays is None]
    table = subscription_table(lasting, run.nanoseconds(run.subscribed_s))
    if not run.stays:
        return table
    rows: list[tuple[int, str, float, str]] = []  # number of the stay, action, when, where
    for number, stay in enumerate(run.stays):
        home = run.system.subscribers[stay.subscriber].at
        rows.append((number, "subscribe", stay.begin_s, home))
        if stay.end_s is not None:
            rows.append((number, "unsubscribe", stay.end_s, home))
    for each in learnings(run, run.routes, run.subjects.of_subscriber):
        action = "learnt" if each.learnt else "forgotten"
        rows.append((each.stay, action, each.at_s, each.broker))
    who = [run.system.subscribers[run.stays[number].subscriber] for number, *_ in rows]
    texts = {each.name: filter_text(each) for each in who}
    columns = {
        "subscription": [f"{one.name}/{row[0]}" for one, row in zip(who, rows, strict=True)],
        "subscriber": [one.name for one in who],
        "broker": [where for *_, where in rows],
        "action": [action for _, action, *_ in rows],
        "at_ns": [run.nanoseconds(at_s) for _, _, at_s, _ in rows],
        "filter": [
            texts[one.name] if row[1] == "subscribe" else None
            for one, row in zip(who, rows, strict=True)
        ],
    }
    return pa.concat_tables([table, trace_table("subscriptions", columns)])


def _sessions(run: Run) -> pa.Table:
    columns = {
        "peer": [each.peer for each in run.sessions],
        "state": ["connected" if each.is_connected else "disconnected" for each in run.sessions],
        "at_ns": [run.nanoseconds(each.at_s) for each in run.sessions],
    }
    return trace_table("sessions", columns)


def _deliveries(run: Run, kept: Mapping[str, Publication]) -> pa.Table:
    """Tabulate what came to subscribers; of those that take their time, whatever was handled."""
    everyone = run.system.subscribers
    mine = [
        each
        for each in run.deliveries
        if each.event in kept and not takes_time(everyone[each.subscriber])
    ]
    handled = [each for each in run.handlings if each.event in kept]
    both: list[Delivery | Handling] = [*mine, *handled]
    who = [everyone[each.subscriber] for each in both]
    ends_s = [each.received_s for each in mine] + [each.end_s for each in handled]
    nobody: list[Any] = [None] * len(mine)
    columns = {
        "event": [each.event for each in both],
        "subscriber": [each.name for each in who],
        "broker": [each.at for each in who],
        "received_ns": [run.nanoseconds(each) for each in ends_s],
        "started_ns": nobody + [run.nanoseconds(each.begin_s) for each in handled],
        "member": nobody + [_member(everyone[each.subscriber], each.member) for each in handled],
        "part": nobody + [each.part for each in handled],
    }
    return trace_table("deliveries", columns)


def _member(subscriber: Subscriber, number: int) -> str | None:
    """Name a member of a group; None where a subscriber is none."""
    consumers = subscriber.consumers
    return None if consumers is None else list(consumers.each())[number].name
