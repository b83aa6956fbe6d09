"""Subscribers whose subscriptions come and go, and when each broker learnt of them."""

from __future__ import annotations

import asyncio
import bisect
import itertools
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from nats.aio.client import Client
from nats.aio.msg import Msg

from tidings.model import topology
from tidings.model.laws import Deterministic
from tidings.model.routes import Routes
from tidings.testbed.carrying import Works
from tidings.testbed.journal import Journal
from tidings.testbed.layout import lane_name
from tidings.testbed.runs import Run, Stay
from tidings.testbed.stations import periods

_PURPOSE = 23  # of random numbers
_NONE = Deterministic(value_s=0.0)
_LOST_S = 10.0  # a broker that has not heard of a change for so long never will


class Visitor:
    """A subscriber that subscribes for a while, goes, and subscribes again."""

    def __init__(
        self, works: Works, index: int, client: Client, subjects: tuple[str, ...],
        receive: Callable[[Msg], Awaitable[None]],
    ) -> None:  # fmt: skip
        self._works, self._index, self._client = works, index, client
        self._subjects, self._receive = subjects, receive

    async def come_and_go(self) -> None:
        """Subscribe and unsubscribe by the laws of the subscriber, for ever."""
        run, loop = self._works.run, asyncio.get_running_loop()
        one = run.system.subscribers[self._index]
        assert one.stays is not None
        generator = np.random.default_rng([run.options.seed, _PURPOSE, self._index])
        for begin_s, end_s in periods(one.stays, one.away or _NONE, generator):
            await self._works.sleep_until(run.start_s + begin_s)
            stay = Stay(subscriber=self._index, begin_s=loop.time())
            run.stays.append(stay)
            mine = [await self._client.subscribe(each, cb=self._receive) for each in self._subjects]
            await self._works.sleep_until(run.start_s + end_s)
            stay.end_s = loop.time()
            for each in mine:
                await each.unsubscribe()


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """A broker that learnt of a subscription, or forgot it, by the loop's clock."""

    stay: int  # its number
    broker: str
    at_s: float
    learnt: bool  # not: forgotten


def learnings(
    run: Run, routes: Routes, subjects: tuple[tuple[str, ...], ...]
) -> Iterator[Learning]:
    """Yield when each broker knew all that a subscription asks for, and when it no longer did.

    Servers tell their neighbours of a subject once, whoever wants it: where others want the same, a
    broker has known at once, and knows on. What is heard only after the subscriber has come back is
    not told: it may be of its next subscription.
    """
    requests = _Requests(run.layout.journal)
    back_s = _back_again_s(run.stays)
    names = [broker.name for broker in run.system.brokers]
    for number, stay in enumerate(run.stays):
        one, wanted = run.system.subscribers[stay.subscriber], subjects[stay.subscriber]
        for broker, into in topology.walk(
            routes.trees[0], routes.arcs, int(routes.home_of_subscriber[stay.subscriber])
        ):
            lane = lane_name(one.name, one.at)
            if into >= 0:
                arc = routes.arcs[into]
                lane = lane_name(names[arc.source], names[arc.target])
            learnt_s = requests.learnt_s(lane, wanted, stay)
            if learnt_s is not None and learnt_s <= back_s[number]:
                yield Learning(stay=number, broker=names[broker], at_s=learnt_s, learnt=True)
                forgot_s = requests.forgotten_s(lane, wanted, stay)
                if forgot_s is not None:
                    yield Learning(stay=number, broker=names[broker], at_s=forgot_s, learnt=False)


def _back_again_s(stays: Sequence[Stay]) -> list[float]:
    """Find when the subscriber of each stay came again, in seconds; infinity where it did not."""
    again_s, next_s = [math.inf] * len(stays), dict[int, float]()
    for number, stay in reversed(list(enumerate(stays))):
        again_s[number] = next_s.get(stay.subscriber, math.inf)
        next_s[stay.subscriber] = stay.begin_s
    return again_s


class _Requests:
    """What was asked for over each lane, when."""

    def __init__(self, journal: Journal) -> None:
        self._changes: dict[tuple[str, str], list[tuple[float, bool]]] = {}
        for each in journal.crossings:
            key = each.lane, each.subject
            self._changes.setdefault(key, []).append((each.at_s, each.wanted))

    def learnt_s(self, lane: str, subjects: tuple[str, ...], stay: Stay) -> float | None:
        """Find when all that a subscription asks for had been asked for over a lane, in seconds.

        None where something of it never was.
        """
        asked_s = [self._asked_s(lane, subject, stay) for subject in subjects]
        known = [each for each in asked_s if each is not None]
        return max(known) if known and len(known) == len(asked_s) else None

    def forgotten_s(self, lane: str, subjects: tuple[str, ...], stay: Stay) -> float | None:
        """Find when, in seconds, something of it was withdrawn after its end; None if never."""
        if stay.end_s is None:
            return None
        withdrawn_s = [
            self._next_s((lane, subject), stay.end_s, asked=False) for subject in subjects
        ]
        return min((each for each in withdrawn_s if each is not None), default=None)

    def _asked_s(self, lane: str, subject: str, stay: Stay) -> float | None:
        key, begin_s = (lane, subject), stay.begin_s
        changes = self._changes.get(key, [])
        place = bisect.bisect(changes, (begin_s, True))
        if place and changes[place - 1][1]:
            # Known; but what is withdrawn before its end was an earlier one, still spreading.
            withdrawn_s = self._next_s(key, begin_s, asked=False)
            if withdrawn_s is None or (stay.end_s is not None and withdrawn_s >= stay.end_s):
                return begin_s
            begin_s = withdrawn_s
        return self._next_s(key, begin_s, asked=True)

    def _next_s(self, key: tuple[str, str], after_s: float, *, asked: bool) -> float | None:
        changes = self._changes.get(key, [])
        later = itertools.islice(changes, bisect.bisect(changes, (after_s, True)), None)
        return next((at for at, is_on in later if is_on == asked and at < after_s + _LOST_S), None)
