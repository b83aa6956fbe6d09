"""Subscribers with a count, listed one by one, each with a name of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from tidings.model.arrays import Ints
from tidings.model.record_tables import column, names
from tidings.model.system import Subscriber, System


def one_by_one(
    system: System, holds: Callable[[Subscriber], bool] = lambda _: True
) -> tuple[System, Ints]:
    """List subscribers with a count and a property one by one; whose each of the system's then is.

    >>> from tidings.model.reading import loads
    >>> system = loads('''
    ... tidings: 1
    ... brokers: {hub: {}}
    ... publishers: {desk: {at: hub, every: 1s, content: [{p: 1, event: {topic: a}}]}}
    ... subscribers: {north: {at: hub, wants: {}, count: 2}, south: {at: hub, wants: {}}}
    ... ''')
    >>> listed, whose = one_by_one(system)
    >>> [each.name for each in listed.subscribers], whose.tolist()
    (['north 1', 'north 2', 'south'], [0, 0, 1])
    """
    several = column(system.subscribers, "count").where(lambda count: count > 1)
    chosen = {int(index) for index in several if holds(system.subscribers[index])}
    everyone = np.arange(len(system.subscribers))
    if not chosen:
        return system, everyone
    taken = set(names(system.subscribers))
    listed: list[Subscriber] = []
    whose: list[int] = []
    for index, subscriber in enumerate(system.subscribers):
        each = list(_each(subscriber, taken)) if index in chosen else [subscriber]
        listed += each
        whose += [index] * len(each)
    return replace(system, subscribers=tuple(listed)), np.array(whose, dtype=np.int64)


def _each(subscriber: Subscriber, taken: set[str]) -> Iterator[Subscriber]:
    for number in range(1, subscriber.count + 1):
        name = f"{subscriber.name} {number}"
        while name in taken:
            name += "'"
        taken.add(name)
        yield replace(subscriber, name=name, count=1)
