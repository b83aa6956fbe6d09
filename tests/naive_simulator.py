"""The slow, obvious twin of the simulator: one heap, one object a copy, one loop over subscribers.

It draws from the same random streams in the same way, so that on any system without exact ties its
counts must be equal to the kernel's. It knows nothing of classes, cells or tables.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import Counter, deque

import numpy as np

from tidings.kernels.records import encode
from tidings.kernels.sampling import draw
from tidings.kernels.streams import stream_states, uniform
from tidings.model import topology
from tidings.model.filters import matches
from tidings.model.laws import residual
from tidings.model.routes import route

SLACK_S = 0.5e-9


class Stream:
    def __init__(self, seed, replication, entity, purpose):
        self.states = stream_states(seed, replication, [(entity, purpose)])

    def uniform(self):
        return uniform(self.states, 0)

    def time(self, law):
        table = encode([law])
        return draw(table.kinds[0], table.offsets[0], table.params, self.states, 0)


class Station:
    def __init__(self, law, servers, buffer, stream):
        self.law, self.stream = law, stream
        self.servers = self.free = servers
        self.buffer = math.inf if buffer is None else buffer
        self.queue = deque()


class Copy:
    def __init__(self, event, broker, arc):
        self.event, self.broker, self.arc, self.station = event, broker, arc, 0
        self.waited = False  # in a buffer, for a repair


class Event:
    def __init__(self, row, content, born, lifetime, measured):
        self.row, self.content, self.born = row, content, born
        self.lifetime, self.measured, self.copies = lifetime, measured, 0


class Twin:
    def __init__(self, system, seed, replication, warmup_s, end_s):
        self.system, self.routes = system, route(system)
        self.warmup_s, self.end_s = warmup_s, end_s
        self.key = (seed, replication)
        self.streams = {}
        self.agenda, self.order = [], itertools.count()
        self.now, self.alive = 0.0, 0
        self.counts = {s.name: Counter() for s in system.subscribers}
        self.delays = {s.name: [] for s in system.subscribers}
        stored = sum(s.count for s in system.subscribers)
        self.stations = [
            [
                Station(
                    station.service.with_stored(stored),
                    station.servers,
                    station.buffer,
                    self.stream(f"broker {broker.name}", f"service {place}"),
                )
                for place, station in enumerate(broker.stations)
            ]
            for broker in system.brokers
        ]
        self.expiry = ("at subscriber", "at hop", "in queue").index(system.expired)

    def stream(self, entity, purpose):
        if (entity, purpose) not in self.streams:
            self.streams[entity, purpose] = Stream(*self.key, entity, purpose)
        return self.streams[entity, purpose]

    def at(self, time, what, *args):
        heapq.heappush(self.agenda, (time, next(self.order), what, args))

    def run(self):
        for publisher in self.system.publishers:
            self.at(self.first(publisher), self.publish, publisher)
        while True:
            time, _, what, args = heapq.heappop(self.agenda)
            if time > self.end_s and self.alive == 0:
                return self.counts
            self.now = time
            what(*args)

    # ---- publishing

    def first(self, publisher):
        return self.stream(f"publisher {publisher.name}", "phase").time(residual(publisher.every))

    def following(self, publisher):
        return self.now + self.stream(f"publisher {publisher.name}", "interval").time(
            publisher.every
        )

    def publish(self, publisher):
        name = f"publisher {publisher.name}"
        self.at(self.following(publisher), self.publish, publisher)
        index = self.system.publishers.index(publisher)
        rows = [row for row in self.routes.rows if row.publisher == index]
        row = rows[-1]
        if len(rows) > 1:
            share, below = self.stream(name, "content").uniform(), 0.0
            for candidate in rows[:-1]:
                below += candidate.probability
                if below > share:
                    row = candidate
                    break
        lifetime = math.inf
        if row.lifetime is not None:
            lifetime = self.stream(name, "lifetime").time(row.lifetime)
        measured = self.warmup_s <= self.now <= self.end_s
        event = Event(row, self.routes.events[row.event], self.now, lifetime, measured)
        if measured:
            self.alive += 1
            for subscriber in self.system.subscribers:
                if matches(subscriber.wants, event.content):
                    self.counts[subscriber.name]["wanted"] += 1
        home = self.system.broker_index[publisher.at]
        event.copies += 1
        self.set_out(Copy(event, home, None), publisher)

    def set_out(self, copy, publisher):
        self.cross(copy, publisher.link, f"publisher {publisher.name}")

    def cross(self, copy, channel, name):
        if channel.reliability < 1.0 and (
            self.stream(name, "link loss").uniform() >= channel.reliability
        ):
            self.lose(copy, "link")
            return
        delay = self.stream(name, "link delay").time(channel.delay)
        self.at(self.now + delay, self.enter, copy)

    # ---- at a broker

    def expired(self, copy):
        return self.now - copy.event.born > copy.event.lifetime + SLACK_S

    def enter(self, copy):
        if self.expiry >= 1 and self.expired(copy):
            self.lose(copy, "expired")
        else:
            self.join(copy)

    def join(self, copy):
        stations = self.stations[copy.broker]
        if copy.station == len(stations):
            self.leave(copy)
            return
        station = stations[copy.station]
        if self.expiry == 2:
            for other in [other for other in station.queue if self.expired(other)]:
                station.queue.remove(other)
                self.lose(other, "expired")
        if station.free:
            station.free -= 1
            self.serve(station, copy)
        elif len(station.queue) < station.buffer:
            station.queue.append(copy)
        else:
            self.lose(copy, "overflow")

    def serve(self, station, copy):
        self.at(self.now + station.stream.time(station.law), self.finish, station, copy)

    def finish(self, station, copy):
        while station.queue:
            following = station.queue.popleft()
            if self.expiry == 2 and self.expired(following):
                self.lose(following, "expired")
            else:
                self.serve(station, following)
                break
        else:
            station.free += 1
        copy.station += 1
        self.join(copy)

    def leave(self, copy):
        event = copy.event
        name = self.system.brokers[copy.broker].name
        for subscriber in self.system.subscribers:
            if subscriber.at == name and matches(subscriber.wants, event.content):
                self.receive(subscriber, event)
        tree = self.routes.trees[self.routes.tree_of_class[event.row.content_class]]
        for arc in tree.outgoing[copy.broker]:
            back = copy.arc is not None and arc == copy.arc ^ 1
            if not back and any(map(self.wants(event), self.behind(arc, tree))):
                ends = self.routes.arcs[arc]
                names = [self.system.brokers[i].name for i in (ends.source, ends.target)]
                event.copies += 1
                self.cross(Copy(event, ends.target, arc), ends.channel, "link " + "--".join(names))
        self.release(event)

    def receive(self, subscriber, event):
        if not event.measured:
            return
        name, link = f"subscriber {subscriber.name}", subscriber.link
        if link.reliability < 1.0 and self.stream(name, "link loss").uniform() >= link.reliability:
            self.counts[subscriber.name]["link"] += 1
            return
        received = self.now + self.stream(name, "link delay").time(link.delay)
        self.take_in(subscriber, event, received)

    def take_in(self, subscriber, event, received):
        name, counts = f"subscriber {subscriber.name}", self.counts[subscriber.name]
        delay = received - event.born
        lifetime = event.lifetime
        if subscriber.lifetime is not None:
            lifetime = min(lifetime, self.stream(name, "lifetime").time(subscriber.lifetime))
        if self.is_too_late(subscriber, delay, lifetime):
            return
        counts["delivered"] += 1
        counts["on_time"] += bool(delay <= lifetime + SLACK_S)
        self.delays[subscriber.name].append(delay)

    def is_too_late(self, subscriber, delay, lifetime):
        """Whether an event is dropped since it has expired after a wait in a buffer."""
        return False

    # ---- who is where

    def wants(self, event):
        return lambda subscriber: matches(subscriber.wants, event.content)

    def behind(self, arc, tree):
        found = set()
        waiting = [arc]
        while waiting:
            into = waiting.pop()
            target = self.routes.arcs[into].target
            found.add(self.system.brokers[target].name)
            waiting += [out for out in tree.outgoing[target] if out != into ^ 1]
        return [s for s in self.system.subscribers if s.at in found]

    def lose(self, copy, cause):
        """Everyone at the broker and behind it, away from where the copy came from, loses it."""
        event = copy.event
        if event.measured:
            tree = self.routes.trees[self.routes.tree_of_class[event.row.content_class]]
            name = self.system.brokers[copy.broker].name
            losers = [s for s in self.system.subscribers if s.at == name]
            for arc in tree.outgoing[copy.broker]:
                if copy.arc is None or arc != copy.arc ^ 1:
                    losers += self.behind(arc, tree)
            for subscriber in filter(self.wants(event), losers):
                self.counts[subscriber.name][cause] += 1
        self.release(event)

    def release(self, event):
        event.copies -= 1
        if event.copies == 0 and event.measured:
            self.alive -= 1


def simulate(system, *, seed, replication, warmup_s, duration_s):
    """Counts by subscriber (wanted, delivered, on_time, losses by cause), and their delays."""
    assert topology.trees(system)
    twin = Twin(system, seed, replication, warmup_s, warmup_s + duration_s)
    counts = twin.run()
    return counts, {name: np.array(delays) for name, delays in twin.delays.items()}
