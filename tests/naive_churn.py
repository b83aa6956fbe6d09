"""A slow, obvious twin of subscriptions that spread: brokers as tables, one heap of messages.

Filters are ranges [low, high) of one number, so that containment is plain to see. It is told who
comes and goes when, and what is published when; every delay is constant.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Range = tuple[int, int]


def contains(wide: Range, narrow: Range) -> bool:
    return wide[0] <= narrow[0] and narrow[1] <= wide[1]


@dataclass
class NaiveChurn:
    """A tree of brokers; ``hops[a][b]`` is the delay from a to its neighbour b, in nanoseconds."""

    hops: Mapping[str, Mapping[str, int]]
    home: Mapping[str, str]
    wants: Mapping[str, Range]
    way_home: Mapping[str, int]  # delay between a subscriber and its broker
    came_from: dict[str, dict[str, str]] = field(default_factory=dict)  # [broker][who]: neighbour
    sent: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    here: dict[str, int] = field(default_factory=dict)  # who is subscribed, since when
    queue: list[tuple[int, int, tuple[object, ...]]] = field(default_factory=list)
    latest: dict[object, int] = field(default_factory=dict)
    learnt: set[tuple[str, int, str, int]] = field(default_factory=set)
    notified: set[tuple[str, str, int]] = field(default_factory=set)
    messages: list[tuple[int, bool]] = field(default_factory=list)
    order: int = 0

    def put(self, at: int, *what: object) -> None:
        self.order += 1
        heapq.heappush(self.queue, (at, self.order, what))

    def run(
        self,
        before: Iterable[str],
        turns: Iterable[tuple[int, str, bool]],
        published: Iterable[tuple[int, str, str, int]],
    ) -> None:
        """``before``: who is there already, in this order; then everything as it happens."""
        for who in before:
            self.here[who] = -1
            self.settle(who)
        for at, who, comes in turns:
            self.put(at, "turn", who, comes)
        for at, event, broker, number in published:
            self.put(at, "event", event, number, broker, None)
        while self.queue:
            now, _, (kind, *rest) = heapq.heappop(self.queue)
            getattr(self, kind)(now, *rest)

    def settle(self, who: str) -> None:
        """Let a subscription spread in no time."""
        waiting: list[tuple[str, str | None]] = [(self.home[who], None)]
        while waiting:
            broker, neighbour = waiting.pop(0)
            waiting += [(onwards, broker) for onwards in self.learn(broker, who, neighbour)]

    def learn(self, broker: str, who: str, neighbour: str | None) -> list[str]:
        """A broker knows somebody from now on; where it must pass that on."""
        self.came_from.setdefault(broker, {})[who] = neighbour or ""
        onwards = []
        for other in self.hops[broker]:
            if other != neighbour and not self.is_covered(broker, other, who):
                self.sent.setdefault((broker, other), []).append(who)
                onwards.append(other)
        return onwards

    def is_covered(self, broker: str, other: str, who: str) -> bool:
        already = self.sent.get((broker, other), [])
        return any(contains(self.wants[each], self.wants[who]) for each in already)

    def turn(self, now: int, who: str, comes: bool) -> None:
        if comes:
            self.here[who] = now
        else:
            del self.here[who]
        self.post(now, who, self.home[who], None, comes, now)

    def post(
        self, now: int, who: str, broker: str, neighbour: str | None, comes: bool, since: int
    ) -> None:
        if neighbour is not None:
            self.messages.append((now, comes))
        delay = self.way_home[who] if neighbour is None else self.hops[neighbour][broker]
        way = (neighbour, broker) if neighbour is not None else who
        self.latest[way] = max(now + delay, self.latest.get(way, 0))
        self.put(self.latest[way], "message", who, broker, neighbour, comes, since)

    def message(
        self, now: int, who: str, broker: str, neighbour: str | None, comes: bool, since: int
    ) -> None:
        if comes:
            if since >= 0:
                self.learnt.add((who, since, broker, now))
            for onwards in self.learn(broker, who, neighbour):
                self.post(now, who, onwards, broker, True, since)
            return
        del self.came_from[broker][who]
        for other in self.hops[broker]:
            if who in self.sent.get((broker, other), []):
                self.sent[broker, other].remove(who)
                self.uncover(now, broker, other)
                self.post(now, who, other, broker, False, -1)

    def uncover(self, now: int, broker: str, other: str) -> None:
        """Send what is known, from elsewhere, and not covered any more; the widest first."""
        known = [who for who, side in self.came_from[broker].items() if side != other]
        for who in sorted(known, key=lambda each: self.wants[each][0] - self.wants[each][1]):
            if not self.is_covered(broker, other, who):
                self.sent[broker, other].append(who)
                self.post(now, who, other, broker, True, -1)

    def event(self, now: int, event: str, number: int, broker: str, neighbour: str | None) -> None:
        matching = [
            (who, side)
            for who, side in self.came_from.get(broker, {}).items()
            if self.wants[who][0] <= number < self.wants[who][1]
        ]
        for other in {side for _, side in matching} - {neighbour, ""}:
            self.put(now + self.hops[broker][other], "event", event, number, other, broker)
        for who, side in matching:
            if side == "":
                self.put(now + self.way_home[who], "arrival", event, who)

    def arrival(self, now: int, event: str, who: str) -> None:
        if who in self.here and now > self.here[who]:
            self.notified.add((event, who, now))
