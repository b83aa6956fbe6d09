"""The numbers of a system by their paths, as fitted parameters are called."""

from __future__ import annotations

from collections.abc import Iterator

from tidings.model.behaviour import Channel
from tidings.model.system import System


def parameter_values(system: System) -> Iterator[tuple[str, float]]:
    """Give paths and values: services and delays in seconds, rates per second, reliabilities.

    A link is there in both orders of its ends, as either may be the one that was fitted.
    """
    for broker in system.brokers:
        if broker.service is not None:
            mean_s = broker.service.with_stored(system.stored_subscriptions).mean_s
            yield f"brokers.{broker.name}.service", mean_s
    for link in system.links:
        first, second = link.between
        for name, there, back in (
            (f"{first}--{second}", link.there, link.back),
            (f"{second}--{first}", link.back, link.there),
        ):
            yield from _of_channel(f"links.{name}", there)
            yield from _of_channel(f"links.{name}.back", back)
    for publisher in system.publishers:
        yield f"publishers.{publisher.name}.rate", publisher.rate_per_s
        yield from _of_channel(f"publishers.{publisher.name}.link", publisher.link)
    for subscriber in system.subscribers:
        yield from _of_channel(f"subscribers.{subscriber.name}.link", subscriber.link)


def _of_channel(path: str, channel: Channel) -> Iterator[tuple[str, float]]:
    yield f"{path}.delay", channel.delay.mean_s
    yield f"{path}.reliability", channel.reliability
    yield f"{path}.loss_burst", channel.loss_burst
