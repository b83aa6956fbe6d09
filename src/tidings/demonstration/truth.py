"""The true value of every learnt parameter, where the truth is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidings.model.behaviour import Channel
from tidings.model.system import System

if TYPE_CHECKING:
    import pandas as pd


def with_truth(parameters: pd.DataFrame, truth: System, fitted: System) -> pd.DataFrame:
    """The table of parameters with a column ``truth``, empty where the true system has none."""
    known = dict(_true_values(truth, fitted))
    return parameters.assign(truth=parameters["path"].map(known))


def _true_values(truth: System, fitted: System) -> Iterator[tuple[str, float]]:
    for broker in truth.brokers:
        if broker.service is not None:
            mean_s = broker.service.with_stored(truth.stored_subscriptions).mean_s
            yield f"brokers.{broker.name}.service", mean_s
    for link in truth.links:
        first, second = link.between
        for name, there, back in (
            (f"{first}--{second}", link.there, link.back),
            (f"{second}--{first}", link.back, link.there),
        ):
            yield from _of_channel(f"links.{name}", there)
            yield from _of_channel(f"links.{name}.back", back)
    for publisher in truth.publishers:
        yield f"publishers.{publisher.name}.rate", publisher.rate_per_s
        yield from _of_channel(f"publishers.{publisher.name}.link", publisher.link)
    for subscriber in truth.subscribers:
        yield from _of_channel(f"subscribers.{subscriber.name}.link", subscriber.link)
    yield from _of_contents(truth, fitted)


def _of_channel(path: str, channel: Channel) -> Iterator[tuple[str, float]]:
    yield f"{path}.delay", channel.delay.mean_s
    yield f"{path}.reliability", channel.reliability
    yield f"{path}.loss_burst", channel.loss_burst


def _of_contents(truth: System, fitted: System) -> Iterator[tuple[str, float]]:
    """Contents are numbered in the order in which they were learnt, so they are found by event."""
    true_shares = {
        (publisher.name, row.text): row.probability
        for publisher in truth.publishers
        for row in publisher.content.rows()
    }
    for publisher in fitted.publishers:
        for number, row in enumerate(publisher.content.rows(), start=1):
            share = true_shares.get((publisher.name, row.text))
            if share is not None:
                yield f"publishers.{publisher.name}.content.{number}.p", share
