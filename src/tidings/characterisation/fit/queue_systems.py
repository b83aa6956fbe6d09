"""Queues of which only counters or histograms are known, as a system or as part of one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tidings.characterisation.fit.reported import Reported
from tidings.model.filters import matches
from tidings.model.naming import few
from tidings.model.reading import from_document
from tidings.model.system import Link, System

_BROKER = "broker"


def system_of_queues(
    reported: Reported, names: Collection[str] | None = None, broker: str = _BROKER
) -> System:
    """Make a system of these queues alone: one broker that takes no time, Poisson arrivals."""
    publishers, subscribers = {}, {}
    for name in sorted(reported.names if names is None else names):
        queue = reported.queues.get(name)
        events = [each.events for (of, _), each in reported.buckets.items() if of == name]
        rate = queue.rate_per_s if queue is not None else max(events) / reported.window_s
        if rate > 0:
            content = {"event": {"queue": name}}
            every = {"exponential": f"{1.0 / rate!r}s"}
            publishers[f"into {name}"] = {"at": broker, "every": every, "content": content}
            subscribers[name] = {"at": broker, "wants": {"queue": name}}
    document = {
        "tidings": 1,
        "brokers": {broker: {}},
        "publishers": publishers,
        "subscribers": subscribers,
    }
    return from_document(document, "the system of the queues that were reported")


def with_queues(system: System, reported: Reported) -> tuple[System, tuple[str, ...]]:
    """Add queues of which traces know nothing, at a broker of their own; say so.

    What goes into them burdens no traced broker, and nobody else gets it. Where a traced subscriber
    wants whatever there is, that cannot be said: the system stays as it is.
    """
    known = {each.name for each in system.brokers} | {each.name for each in system.publishers}
    known |= {each.name for each in system.subscribers}
    new = sorted(
        name
        for name, queue in reported.queues.items()
        if queue.rate_per_s > 0 and not {name, f"into {name}"} & known
    )
    if not new:
        return system, ()
    broker = _BROKER
    while broker in known:
        broker += " of queues"
    greedy = [
        each.name
        for each in system.subscribers
        if any(matches(each.wants, {"queue": name}) for name in new)
    ]
    if greedy:
        return system, (
            f"queues of which only counters are known, {few(new)}, are left out: {few(greedy)} "
            "would get their events too; say in a base system (--base) who publishes into them",
        )
    queues = system_of_queues(reported, new, broker)
    joined = replace(
        system,
        brokers=(*system.brokers, *queues.brokers),
        links=(*system.links, Link(between=(system.brokers[0].name, broker))),
        publishers=(*system.publishers, *queues.publishers),
        subscribers=(*system.subscribers, *queues.subscribers),
    )
    return joined, (
        f"of {few(new)} only counters are known: taken as queues of their own, at a broker "
        f"'{broker}' that takes no time, with Poisson arrivals",
    )
