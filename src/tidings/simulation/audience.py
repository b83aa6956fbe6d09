"""Who is told apart from whom: plain subscribers share counts, receivers are followed one by one.

Subscribers that see exactly the same are not told apart: those with a perfect link, and neither a
lifetime nor a queue of their own, and that never leave, are *plain* and are counted by (home
broker, row of contents). Every other subscriber is a *receiver* with random numbers of its own. A
subscriber with a ``count`` above one is one representative of its kind: with a perfect link all of
them see the same anyway, and otherwise the shares of one are unbiased for each of them. Only where
they get in each other's way (:func:`meet`) each of them is followed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.model.arrays import Ints
from tidings.model.behaviour import Channel
from tidings.model.laws import Deterministic
from tidings.model.routes import Routes
from tidings.model.system import Subscriber, System


def is_perfect(channel: Channel) -> bool:
    """Test whether a channel neither loses nor delays anything."""
    return channel.reliability >= 1.0 and channel.failure is None and is_instant(channel)


def is_instant(channel: Channel) -> bool:
    """Test whether a channel delays nothing."""
    if channel.bandwidth_bytes_per_s is not None or channel.network is not None:
        return False
    return isinstance(channel.delay, Deterministic) and channel.delay.value_s == 0.0


def has_queue(subscriber: Subscriber) -> bool:
    """Test whether events wait for this subscriber, to connect or to take them in."""
    own = (subscriber.connectivity, subscriber.processing, subscriber.consumers)
    return any(each is not None for each in own)


def meet(subscriber: Subscriber) -> bool:
    """Test whether subscribers of one count hinder each other: by a network, or by blocking."""
    consumers = subscriber.consumers
    return subscriber.link.network is not None or (consumers is not None and consumers.blocks)


def find_receivers(system: System, routes: Routes) -> tuple[list[int], Ints]:
    """Find subscribers to be followed on their own (one of each kind), and whose receiver is whose.

    Where nothing but a fixed lifetime tells subscribers from plain ones, all of a kind are one.
    """
    representatives: list[int] = []
    kinds: dict[Any, int] = {}
    receiver_of = np.full(len(system.subscribers), -1, dtype=np.int64)
    for index, subscriber in enumerate(system.subscribers):
        perfect = is_perfect(subscriber.link) and not has_queue(subscriber)
        perfect = perfect and subscriber.stays is None
        if perfect and subscriber.lifetime is None:
            continue
        kind: Any = index
        if perfect and isinstance(subscriber.lifetime, Deterministic):
            kind = (subscriber.at, routes.filter_of_subscriber[index], subscriber.lifetime)
        if kind not in kinds:
            kinds[kind] = len(representatives)
            representatives.append(index)
        receiver_of[index] = kinds[kind]
    return representatives, receiver_of


def find_curves(routes: Routes, receiver_of: Ints, brokers: int) -> tuple[Ints, int]:
    """Assign a histogram to each set of local plain filters that a class meets at a broker."""
    curve_of = np.full((brokers, routes.class_count), -1, dtype=np.int64)
    count = 0
    plain = receiver_of < 0
    for broker in range(brokers):
        here = np.unique(routes.filter_of_subscriber[plain & (routes.home_of_subscriber == broker)])
        met = routes.wants[:, here]
        wanted = np.flatnonzero(met.any(axis=1))
        if wanted.size:
            _, kind = np.unique(met[wanted], axis=0, return_inverse=True)
            curve_of[broker, wanted] = count + kind.ravel()
            count += int(kind.max()) + 1
    return curve_of, count


def receiver_lists(routes: Routes, representatives: list[int], brokers: int) -> tuple[Ints, Ints]:
    """List the receivers at each broker that want each class, one list after the other."""
    keys: list[Ints] = [np.zeros(0, dtype=np.int64)]
    receivers: list[Ints] = [np.zeros(0, dtype=np.int64)]
    for receiver, index in enumerate(representatives):
        wanted = np.flatnonzero(routes.wanted_by(index))
        keys.append(routes.home_of_subscriber[index] * routes.class_count + wanted)
        receivers.append(np.full(wanted.size, receiver, dtype=np.int64))
    key = np.concatenate(keys)
    order = np.argsort(key, kind="stable")
    counts = np.bincount(key, minlength=brokers * routes.class_count)
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return first, np.concatenate(receivers)[order]
