"""The obvious consumer group: one list of messages, members as objects, a heap of moments.

It shares no code with the simulator and draws numbers of its own; the two agree in standard errors.
"""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Message:
    born: float
    tries: int = 0
    handled: list[float] = field(default_factory=list)
    over: bool = False
    dead: bool = False


class Group:
    """Members that handle events in a constant or exponential time, with acknowledgements."""

    def __init__(
        self, *, rate, processing, members, prefetch, ack_wait, deliveries, seed, refill=None
    ):
        self.rate, self.processing, self.ack_wait = rate, processing, ack_wait
        self.prefetch, self.deliveries = prefetch, deliveries
        self.rng = np.random.default_rng(seed)
        self.moments, self.number = [], itertools.count()
        self.waiting, self.again = [], []
        self.local = [[] for _ in range(members)]
        self.held = [0] * members
        self.turn = 0
        # Requests of pull consumers, [member, events asked for]; None: members in turn.
        self.refill = refill
        self.requests = [] if refill is None else [[m, prefetch] for m in range(members)]

    def at(self, when, what, *about):
        heapq.heappush(self.moments, (when, next(self.number), what, about))

    def run(self, end):
        self.messages = []
        self.at(self.rng.exponential(1 / self.rate), self.arrive)
        while self.moments:
            self.now, _, what, about = heapq.heappop(self.moments)
            if what == self.arrive and self.now > end:
                continue
            what(*about)
        return self.messages

    def arrive(self):
        self.at(self.now + self.rng.exponential(1 / self.rate), self.arrive)
        message = Message(self.now)
        self.messages.append(message)
        self.waiting.append(message)
        self.hand_out()

    def hand_out(self):
        while True:
            while self.again and self.again[0].over:
                self.again.pop(0)
            queue = self.again or self.waiting
            order = [(self.turn + step) % len(self.held) for step in range(len(self.held))]
            free = [member for member in order if self.held[member] < self.prefetch]
            if self.refill is not None:
                free = [member for member, _ in self.requests]
            if not queue or not free:
                return
            message, member = queue.pop(0), free[0]
            self.turn = (member + 1) % len(self.held)
            if self.refill is not None:
                request = self.requests.pop(0)
                request[1] -= 1
                self.requests += [request] if request[1] else []
            message.tries += 1
            self.held[member] += 1
            self.local[member].append(message)
            self.at(self.now + self.ack_wait, self.overdue, message)
            if len(self.local[member]) == 1:
                self.at(self.now + self.processing(self.rng), self.done, member)

    def done(self, member):
        message = self.local[member].pop(0)
        message.handled.append(self.now)
        message.over = True
        self.held[member] -= 1
        left = self.held[member] + sum(n for m, n in self.requests if m == member)
        if self.refill is not None and left < self.refill:
            self.requests.append([member, self.prefetch - left])
        if self.local[member]:
            self.at(self.now + self.processing(self.rng), self.done, member)
        self.hand_out()

    def overdue(self, message):
        if message.over:
            return
        if message.tries < self.deliveries:
            self.again.append(message)
        else:
            message.over = message.dead = True
        self.hand_out()
