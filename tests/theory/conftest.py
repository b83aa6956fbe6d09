"""Small systems for the tests of prediction."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tidings.model.behaviour import Channel, Service
from tidings.model.content import ContentRow, ContentTable
from tidings.model.filters import as_filter
from tidings.model.laws import Deterministic, Exponential, Law
from tidings.model.routes import route
from tidings.model.system import Broker, Link, Publisher, Subscriber, System
from tidings.theory.burstiness import departing_scv, merged_scv, thinned_scv
from tidings.theory.flows import flows


def content(
    shares: Mapping[str, float], lifetimes: Mapping[str, Law] | None = None
) -> ContentTable:
    return ContentTable(
        table=tuple(
            ContentRow(
                probability=share, event={"topic": topic}, lifetime=(lifetimes or {}).get(topic)
            )
            for topic, share in shares.items()
        )
    )


def line(
    services: Sequence[Law | None],
    *,
    rate_per_s: float = 1.0,
    channel: Channel | None = None,
    lifetime_s: float | None = 1.0,
    **of_system: Any,
) -> System:
    """Brokers b0, b1, … in a row; 'pub' at b0; subscribers s0, s1, … at each want all."""
    channel = channel or Channel()
    names = [f"b{index}" for index in range(len(services))]
    return System(
        version=1,
        lifetime=None if lifetime_s is None else Deterministic(value_s=lifetime_s),
        brokers=tuple(
            Broker(name=name, service=None if law is None else Service(law=law))
            for name, law in zip(names, services, strict=True)
        ),
        links=tuple(
            Link(between=pair, there=channel, back=channel) for pair in itertools.pairwise(names)
        ),
        publishers=(
            Publisher(
                name="pub",
                at="b0",
                every=Exponential(mean_s=1.0 / rate_per_s),
                content=content({"all": 1.0}),
            ),
        ),
        subscribers=tuple(
            Subscriber(name=f"s{index}", at=name, wants=as_filter({}))
            for index, name in enumerate(names)
        ),
        **of_system,
    )


def scaled(system: System, factor: float) -> System:
    """The same system with every time multiplied."""

    def law(each: Law | None) -> Law | None:
        return None if each is None or each.mean_s == 0 else each.scaled(factor)

    def channel(each: Channel) -> Channel:
        return replace(each, delay=law(each.delay) or each.delay)

    return replace(
        system,
        lifetime=law(system.lifetime),
        brokers=tuple(
            replace(b, service=b.service and Service(law=b.service.law.scaled(factor)))
            for b in system.brokers
        ),
        links=tuple(
            replace(each, there=channel(each.there), back=channel(each.back))
            for each in system.links
        ),
        publishers=tuple(
            replace(p, every=law(p.every), lifetime=law(p.lifetime), link=channel(p.link))
            for p in system.publishers
        ),
        subscribers=tuple(
            replace(s, lifetime=law(s.lifetime), link=channel(s.link)) for s in system.subscribers
        ),
    )


def qna_by_iteration(system: System) -> dict[int, float]:
    """c² of what arrives at each broker by QNA, iterated arc by arc until it stands still."""
    routes = route(system)
    rates = flows(system, routes)
    arcs = routes.arcs
    reliability = [arc.channel.reliability for arc in arcs]
    arc_rate = [r * rates.offered[i].sum() for i, r in enumerate(reliability)]
    on_arc = [1.0] * len(arcs)
    arriving: dict[int, float] = {}
    for _ in range(400):
        for b in range(len(system.brokers)):
            streams = [
                (p.rate_per_s * p.link.reliability, thinned_scv(p.every.scv, p.link.reliability))
                for p in system.publishers
                if system.broker_index[p.at] == b
            ]
            streams += [(arc_rate[i], on_arc[i]) for i, a in enumerate(arcs) if a.target == b]
            streams = [each for each in streams if each[0] > 0]
            if streams:
                total = sum(rate for rate, _ in streams)
                shares = np.array([rate / total for rate, _ in streams])
                load = total * rates.services[b][0].mean_s
                arriving[b] = merged_scv(np.array([c for _, c in streams]), shares, load)
                gone = departing_scv(arriving[b], rates.services[b][0].scv, load)
                for i, a in enumerate(arcs):
                    if a.source == b:
                        on_arc[i] = thinned_scv(gone, arc_rate[i] / total)
    return arriving


class Make:
    """What the tests build systems with."""

    content = staticmethod(content)
    line = staticmethod(line)
    scaled = staticmethod(scaled)
    qna_by_iteration = staticmethod(qna_by_iteration)


@pytest.fixture(scope="session")
def make() -> type[Make]:
    return Make
