"""A line of brokers played by a recursion of its own: what became of every event of a stream."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from tidings.model.arrays import Floats
from tidings.model.publishing import Publishing
from tidings.model.reading import from_document
from tidings.model.system import System

NAME = "stream"  # of the one publisher
LIFETIMES = (2.0, 5.0, 20.0)  # of subscribers, in times that a path takes without waiting
PARTS = 32  # of the time, from whose differences standard errors come


def delays_s(times_s: Floats, services_s: Floats) -> Floats:
    """Delay of each event through brokers in a row, first come, first served, in seconds.

    Lindley's recursion: an event begins when it is there and its predecessor is through.
    ``services_s`` has a row per broker.

    >>> delays_s(np.array([0.0, 0.5, 5.0]), np.array([[1.0, 1.0, 1.0]])).tolist()
    [1.0, 1.5, 1.0]
    """
    there_s = times_s.copy()
    for service_s in services_s:
        # With S the sum of services up to an event, it is through at S + max of (there − S before).
        total_s = np.cumsum(service_s)
        there_s = total_s + np.maximum.accumulate(there_s - total_s + service_s)
    through: Floats = there_s - times_s
    return through


def line(publishes: Publishing, brokers: int, service_s: float) -> System:
    """A line of brokers with exponential services, and subscribers at its end that wait so long."""
    names = [f"b{number}" for number in range(brokers)]
    subscribers = {
        f"waits {times:g}": {
            "at": names[-1],
            "wants": {},
            "lifetime": times * brokers * service_s,
        }
        for times in LIFETIMES
    }
    own = {"at": names[0], "content": {"event": {"k": 1}}, "every": 1.0}
    system = from_document(
        {
            "tidings": 1,
            "brokers": {name: {"service": {"exponential": service_s}} for name in names},
            "links": [{"between": list(pair)} for pair in pairwise(names)],
            "publishers": {NAME: own},
            "subscribers": subscribers,
        }
    )
    publisher = replace(system.publishers[0], every=None, publishes=publishes)
    return replace(system, publishers=(publisher,))


def on_time(
    times_s: Floats, delay_s: Floats, lifetimes_s: Floats, since_s: float, until_s: float
) -> tuple[Floats, Floats]:
    """Share of the events published between two moments that came within each lifetime; its error.

    Standard errors are those of a ratio over equal parts of the time.
    """
    chosen = (times_s >= since_s) & (times_s < until_s)
    part = ((times_s[chosen] - since_s) / (until_s - since_s) * PARTS).astype(np.int64)
    counts = np.bincount(part, minlength=PARTS)
    shares, errors = [], []
    for lifetime_s in lifetimes_s:
        good = np.bincount(part, weights=delay_s[chosen] <= lifetime_s, minlength=PARTS)
        share = good.sum() / counts.sum()
        spread = ((good - share * counts) ** 2).sum() * PARTS / (PARTS - 1)
        shares.append(share)
        errors.append(np.sqrt(spread) / counts.sum())
    return np.array(shares), np.array(errors)
