"""The obvious twin where peers come and go, take their time, or publish at rates by time of day.

Every queue of a peer is an object; what expires in it leaves it at that very moment, by an event of
its own. Draws are those of the kernel, so counts must be equal.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

import naive_simulator as naive
from tidings.kernels.streams import exponential
from tidings.model.connectivity_traces import periods_of
from tidings.model.laws import Deterministic, residual


class Queue:
    """One server with a gate; ``done`` and ``lost`` say what becomes of (copy or event) items."""

    def __init__(self, twin, law, stream, buffer, done, lost):
        self.twin, self.law, self.stream = twin, law, stream
        self.buffer = math.inf if buffer is None else buffer
        self.done, self.lost = done, lost
        self.is_open, self.waiting, self.served = True, [], None
        self.left = self.due = 0.0
        self.visit = 0  # a finish that was put off is out of date

    def arrive(self, event, item):
        twin = self.twin
        if twin.expiry == 2 and twin.is_old(event):
            self.lost(item, "expired")
        elif self.is_open and self.served is None:
            self.begin(item)
        elif len(self.waiting) < self.buffer:
            self.waiting.append(item)
            if twin.expiry == 2 and event.lifetime < math.inf:
                when = event.born + event.lifetime + 2 * naive.SLACK_S
                twin.at(max(when, twin.now), self.expire, item)
        else:
            self.lost(item, "overflow")

    def expire(self, item):
        if item in self.waiting:
            self.waiting.remove(item)
            self.lost(item, "expired")

    def begin(self, item):
        self.served = item
        self.go_on(self.stream.time(self.law))

    def go_on(self, work):
        self.visit += 1
        self.due = self.twin.now + work
        self.twin.at(self.due, self.finish, self.visit)

    def finish(self, visit):
        if visit != self.visit or self.served is None or not self.is_open:
            return
        item, self.served = self.served, None
        if self.waiting:
            self.begin(self.waiting.pop(0))
        self.done(item)

    def turn(self, is_on):
        self.is_open = is_on
        if not is_on:
            self.left = self.due - self.twin.now
            self.visit += 1
        elif self.served is not None:
            self.go_on(self.left)
        elif self.waiting:
            self.begin(self.waiting.pop(0))


class MobileTwin(naive.Twin):
    def __init__(self, system, seed, replication, warmup_s, end_s):
        super().__init__(system, seed, replication, warmup_s, end_s)
        self.queues = {}
        for publisher in system.publishers:
            if publisher.connectivity is not None:
                self.connect(publisher, f"publisher {publisher.name}", super().set_out, self.lose)
        for subscriber in system.subscribers:
            if subscriber.connectivity is not None:
                self.connect(subscriber, f"subscriber {subscriber.name}", self.hand, self.drop)
            if subscriber.processing is not None:
                name = f"subscriber {subscriber.name}"
                stream = self.stream(name, "processing")
                self.queues[name, "own"] = Queue(
                    self, subscriber.processing, stream, None, self.taken, self.drop
                )

    def connect(self, peer, name, done, lost):
        given = peer.connectivity
        queue = Queue(
            self,
            given.service or Deterministic(value_s=0.0),
            self.stream(name, "handing over"),
            given.buffer,
            lambda item: done(*item),
            lambda item, cause: lost(item[0] if lost == self.lose else item, cause),
        )
        self.queues[name, "on/off"] = queue
        periods, stream = periods_of(given, peer.name), self.stream(name, "connectivity")
        if periods.loop_s:
            moment = sum(periods.loop_s) * stream.uniform()
            ends = list(itertools.accumulate(periods.loop_s))
            at = next(i for i, end in enumerate(ends) if end > moment)
            following = itertools.islice(itertools.cycle(periods.loop_s), at + 1, None)
            is_on, rest = at % 2 == 0, ends[at] - moment
        else:
            is_on = stream.uniform() < periods.connected
            rest = stream.time(residual(periods.on if is_on else periods.off))
            following = (
                stream.time(law)
                for law in itertools.cycle(
                    (periods.off, periods.on) if is_on else (periods.on, periods.off)
                )
            )
        queue.is_open = is_on
        self.at(rest, self.turn, queue, not is_on, following)

    def turn(self, queue, is_on, following):
        self.at(self.now + next(following), self.turn, queue, not is_on, following)
        queue.turn(is_on)

    def is_old(self, event):
        return self.now - event.born > event.lifetime + naive.SLACK_S

    # ---- publishers

    def set_out(self, copy, publisher):
        queue = self.queues.get((f"publisher {publisher.name}", "on/off"))
        if queue is None:
            super().set_out(copy, publisher)
        else:
            queue.arrive(copy.event, (copy, publisher))

    def first(self, publisher):
        return super().first(publisher) if publisher.rates is None else self.following(publisher)

    def following(self, publisher):
        """By the expected number of events since long ago, turned round."""
        rates = publisher.rates
        if rates is None:
            return super().following(publisher)
        stream = self.stream(f"publisher {publisher.name}", "interval")
        days = range(-5, 60) if rates.repeat else range(1)
        edges = self.warmup_s + rates.length_s * days[0]
        edges += rates.slot_s * np.arange(len(days) * len(rates.per_s) + 1)
        expected = np.cumsum([0.0, *(rates.slot_s * np.array(rates.per_s * len(days)))])
        wanted = np.interp(self.now, edges, expected) + exponential(stream.states, 0)
        if wanted > expected[-1]:
            return math.inf
        at = np.searchsorted(expected, wanted, side="left") - 1
        part = (wanted - expected[at]) / (expected[at + 1] - expected[at])
        return edges[at] + part * rates.slot_s

    # ---- subscribers

    def receive(self, subscriber, event):
        name = f"subscriber {subscriber.name}"
        if (name, "on/off") in self.queues:
            event.copies += 1
            self.queues[name, "on/off"].arrive(event, (subscriber, event))
        elif (name, "own") in self.queues:
            event.copies += 1
            self.hand(subscriber, event)
        else:
            super().receive(subscriber, event)

    def hand(self, subscriber, event):
        name, link = f"subscriber {subscriber.name}", subscriber.link
        if link.reliability < 1.0 and self.stream(name, "link loss").uniform() >= link.reliability:
            self.drop((subscriber, event), "link")
            return
        received = self.now + self.stream(name, "link delay").time(link.delay)
        if (name, "own") in self.queues:
            queue = self.queues[name, "own"]
            self.at(received, queue.arrive, event, (subscriber, event))
            return
        if event.measured:
            self.take_in(subscriber, event, received)
        self.release(event)

    def taken(self, item):
        subscriber, event = item
        if event.measured:
            self.take_in(subscriber, event, self.now)
        self.release(event)

    def drop(self, item, cause):
        subscriber, event = item
        self.counts[subscriber.name][cause] += event.measured
        self.release(event)


def simulate(system, *, seed, replication, warmup_s, duration_s):
    """Counts by subscriber, as the plain twin gives them, and their delays."""
    twin = MobileTwin(system, seed, replication, warmup_s, warmup_s + duration_s)
    counts = twin.run()
    return counts, {name: np.array(delays) for name, delays in twin.delays.items()}
