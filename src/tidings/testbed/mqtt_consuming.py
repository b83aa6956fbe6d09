"""Consumer groups on Mosquitto: members share a subscription (``$share``), each event goes to one.

Tried on Mosquitto 2.0: events go to members in turn, unasked, whatever they still have to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import numpy as np

from tidings.model.consumers import CHOICES, Consumers
from tidings.model.system import Subscriber
from tidings.testbed.carrying import Works
from tidings.testbed.consuming import PROCESSING, is_pushed
from tidings.testbed.runs import Delivery, Handling
from tidings.testbed.stations import draws

_IN_TURN = CHOICES[0]


def shared_refusal(subscriber: Subscriber, consumers: Consumers) -> str:
    """Say why a group is impossible on Mosquitto; empty if it is possible."""
    if not is_pushed(subscriber):
        return "Mosquitto hands events to members unasked; write 'prefetch: 0'"
    if consumers.partitions is not None:
        return "partitions, which MQTT does not have"
    if subscriber.consumers is not None and consumers.choose != _IN_TURN:
        return f"Mosquitto hands events to members in turn; write 'choose: {_IN_TURN}'"
    return ""


def shared_topics(subscriber: Subscriber, index: int, wanted: tuple[str, ...]) -> tuple[str, ...]:
    """Give what each member subscribes to: shared by all of them where it is a group."""
    if subscriber.consumers is None:
        return wanted
    return tuple(f"$share/g{index}/{topic}" for topic in wanted)


def members_of(works: Works, index: int) -> Iterator[SharingMember]:
    """Give the members of a subscriber that takes its time; one where it is no group."""
    subscriber, seen = works.run.system.subscribers[index], set[str]()
    for number, member in enumerate((subscriber.consumers or Consumers()).each()):
        law = member.processing or subscriber.processing
        assert law is not None
        seed = (works.run.options.seed, PROCESSING, index, number)
        processing = draws(law, np.random.default_rng(seed))
        yield SharingMember(works, (index, number), processing, seen)


class SharingMember:
    """Handles what it is handed, one after the other, in virtual time as a broker does."""

    def __init__(
        self, works: Works, place: tuple[int, int], processing: Callable[[], float], seen: set[str]
    ) -> None:
        self._works, self._processing, self._seen = works, processing, seen
        self._subscriber, self._number = place
        self._free_s = 0.0

    def take(self, event: str) -> None:
        """Take an event, to handle it in its turn."""
        begin_s = max(asyncio.get_running_loop().time(), self._free_s)
        self._free_s = begin_s + self._processing()
        self._works.start(self._handle(event, begin_s, self._free_s))

    async def _handle(self, event: str, begin_s: float, end_s: float) -> None:
        await self._works.sleep_until(end_s)
        run, now_s = self._works.run, asyncio.get_running_loop().time()
        run.handlings.append(
            Handling(
                event=event,
                subscriber=self._subscriber,
                member=self._number,
                begin_s=begin_s,
                end_s=now_s,
            )
        )
        if event not in self._seen:
            self._seen.add(event)
            run.deliveries.append(
                Delivery(event=event, subscriber=self._subscriber, received_s=now_s)
            )
