"""Probes of every link as trace rows: they meet its delay and loss and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidings.model.behaviour import Channel
from tidings.model.system import System
from tidings.model.trace_files import trace_table
from tidings.simulation.tapes import nanoseconds
from tidings.simulation.trace_rows import generator_of
from tidings.simulation.world import Window


def probe_rows(
    system: System, window: Window, seed: int, replication: int, count: int
) -> Iterator[pa.Table]:
    """So many test messages at regular moments over each link, from a moment of its own."""
    for source, target, channel in _links(system):
        generator = generator_of(seed, replication, f"probe {source}--{target}", "probe")
        part = (generator.random() + np.arange(count)) / max(count, 1)
        sent_ns = nanoseconds(window.warmup_s + part * window.length_s, window)
        lost = _lost(channel, generator, count)
        took_ns = np.floor(channel.delay.sample(generator, count) * 1e9 + 0.5).astype(np.int64)
        columns = {
            "source": [source] * count,
            "target": [target] * count,
            "sent_ns": sent_ns,
            "received_ns": pa.array(sent_ns + took_ns, mask=lost),
        }
        yield trace_table("probes", columns)


def _lost(channel: Channel, generator: np.random.Generator, count: int) -> NDArray[np.bool_]:
    """Which probes are lost: alone, or in a row."""
    decides = generator.random(count) < channel.decided_anew
    fails = generator.random(count) >= channel.reliability
    return fails[np.maximum.accumulate(np.where(decides, np.arange(count), 0))]


def _links(system: System) -> Iterator[tuple[str, str, Channel]]:
    """Every direction in which events go."""
    for link in system.links:
        one, other = link.between
        yield one, other, link.there
        yield other, one, link.back
    for publisher in system.publishers:
        yield publisher.name, publisher.at, publisher.link
    for subscriber in system.subscribers:
        yield subscriber.at, subscriber.name, subscriber.link
