"""Small systems for the tests of theory."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from tidings.model.behaviour import Channel, Service
from tidings.model.content import ContentRow, ContentTable
from tidings.model.filters import as_filter
from tidings.model.laws import Deterministic, Exponential, Law
from tidings.model.system import Broker, Link, Publisher, Subscriber, System


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


class Make:
    """What the tests build systems with."""

    content = staticmethod(content)
    line = staticmethod(line)
    scaled = staticmethod(scaled)


@pytest.fixture(scope="session")
def make() -> type[Make]:
    return Make
