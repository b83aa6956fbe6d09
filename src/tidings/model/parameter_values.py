"""The numbers of a system by their paths, as fitted parameters are called."""

from __future__ import annotations

from collections.abc import Iterator

from tidings.model.behaviour import Channel, Failure
from tidings.model.consumers import Consumers
from tidings.model.laws import Law
from tidings.model.system import Publisher, Subscriber, System


def parameter_values(system: System) -> Iterator[tuple[str, float]]:
    """Give paths and values: times in seconds, rates per second, reliabilities.

    A link is there in both orders of its ends, as either may be the one that was fitted.
    """
    for broker in system.brokers:
        if broker.service is not None:
            mean_s = broker.service.with_stored(system.stored_subscriptions).mean_s
            yield f"brokers.{broker.name}.service", mean_s
        yield from _of_failure(f"brokers.{broker.name}", broker.failure)
    for link in system.links:
        first, second = link.between
        for name, there, back in (
            (f"{first}--{second}", link.there, link.back),
            (f"{second}--{first}", link.back, link.there),
        ):
            yield from _of_channel(f"links.{name}", there)
            yield from _of_channel(f"links.{name}.back", back)
            yield from _of_failure(f"links.{name}", there.failure)
    for publisher in system.publishers:
        yield f"publishers.{publisher.name}.rate", publisher.rate_per_s
        yield from _of_peer(f"publishers.{publisher.name}", publisher)
    for subscriber in system.subscribers:
        path = f"subscribers.{subscriber.name}"
        yield from _of_peer(path, subscriber)
        yield from _of_laws(
            path, stays=subscriber.stays, away=subscriber.away, processing=subscriber.processing
        )
        if subscriber.consumers is not None:
            yield from _of_consumers(f"{path}.consumers", subscriber.consumers)


def _of_channel(path: str, channel: Channel) -> Iterator[tuple[str, float]]:
    day = channel.delay_by_time
    mean = 1.0 if day is None else sum(day.times) / len(day.times)
    yield f"{path}.delay", mean * channel.delay.mean_s
    if day is not None:
        yield from ((f"{path}.delay_by_time.{n}", each / mean) for n, each in enumerate(day.times))
    yield f"{path}.reliability", channel.reliability
    # Losses that are independent come in a row, too: a loss is followed by another by chance.
    if channel.reliability > 0:
        yield f"{path}.loss_burst", max(channel.loss_burst, 1.0 / channel.reliability)


def _of_peer(path: str, peer: Publisher | Subscriber) -> Iterator[tuple[str, float]]:
    yield from _of_channel(f"{path}.link", peer.link)
    if peer.connectivity is not None:
        yield from _of_laws(
            f"{path}.connectivity", on=peer.connectivity.on, off=peer.connectivity.off
        )


def _of_consumers(path: str, consumers: Consumers) -> Iterator[tuple[str, float]]:
    for member in consumers.members:
        yield from _of_laws(f"{path}.members.{member.name}", processing=member.processing)
    if consumers.partitions is not None:
        for number, share in enumerate(consumers.partitions.used_shares):
            yield f"{path}.partitions.shares.{number}", share


def _of_failure(path: str, failure: Failure | None) -> Iterator[tuple[str, float]]:
    if failure is not None:
        yield from _of_laws(f"{path}.failure", mtbf=failure.up, mttr=failure.down)


def _of_laws(path: str, **laws: Law | None) -> Iterator[tuple[str, float]]:
    for name, law in laws.items():
        if law is not None:
            yield f"{path}.{name}", law.mean_s
