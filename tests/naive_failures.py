"""The obvious twin where brokers and links fail: every component, entry and kept copy an object.

It knows the schemes without detours. Draws are those of the kernel, so counts must be equal; where
copies are kept, brokers have one server (the order of what a crash takes from several is free).
"""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np

import naive_simulator as naive
from tidings.model.filters import matches
from tidings.model.laws import residual


class FailingTwin(naive.Twin):
    def __init__(self, system, seed, replication, warmup_s, end_s):
        super().__init__(system, seed, replication, warmup_s, end_s)
        self.recovery = system.recovery
        self.keeping = system.recovery.scheme == "buffering"
        self.forgetting = system.recovery.refresh_s > 0
        self.down = defaultdict(int)  # by name of a broker, or frozenset of a link's ends
        self.breaks = defaultdict(int)  # of a link, so far
        self.kept = defaultdict(list)  # by arc
        self.heard = {}  # (broker, home, tree): number of the round
        self.inside = defaultdict(list)  # copies at a broker, waiting or served

    def component(self, name):
        return frozenset(name.split("--")) if "--" in name else name

    def run(self):
        switches = [(f"broker {b.name}", b.failure, [b.name]) for b in self.system.brokers]
        switches += [(f"link {each.name}", each.there.failure, [each.name])
                     for each in self.system.links]  # fmt: skip
        switches += [(f"group {g.name}", g.failure, g.members) for g in self.system.failure_groups]
        for name, failure, members in switches:
            if failure is not None:
                stream = self.stream(name, "failure")
                parts = [self.component(member) for member in members]
                up = stream.uniform() < failure.availability
                rest = stream.time(residual(failure.up if up else failure.down))
                if not up:
                    for part in parts:
                        self.down[part] += 1
                self.at(rest, self.turn, failure, stream, parts, up)
        self.start_rounds()
        return super().run()

    def turn(self, failure, stream, parts, was_up):
        law = failure.down if was_up else failure.up
        self.at(self.now + stream.time(law), self.turn, failure, stream, parts, not was_up)
        for part in parts:
            before = self.down[part]
            self.down[part] += 1 if was_up else -1
            if was_up and before == 0:
                if isinstance(part, frozenset):
                    self.breaks[part] += 1
                else:
                    self.crash(part)
            elif not was_up and self.down[part] == 0:
                self.repaired(part)

    def crash(self, name):
        index = self.system.broker_index[name]
        for key in [key for key in self.heard if key[0] == name]:
            del self.heard[key]
        for station in self.stations[index]:
            station.queue.clear()
            station.free = station.servers
        inside, self.inside[index] = self.inside[index], []
        # The kernel takes station after station, what waits before what is served.
        for copy in sorted(inside, key=lambda copy: (copy.station, copy.served)):
            copy.gone = True
            self.fall(copy)

    def repaired(self, part):
        names = [broker.name for broker in self.system.brokers]
        arcs = list(enumerate(self.routes.arcs))
        if isinstance(part, frozenset):
            for index, arc in arcs:
                if {names[arc.source], names[arc.target]} == part:
                    self.send_kept(index)
            return
        for end in ("target", "source"):
            found = [(names[a.source if end == "target" else a.target], i)
                     for i, a in arcs if names[getattr(a, end)] == part]  # fmt: skip
            for _, index in sorted(found):
                self.send_kept(index)

    # ---- subscriptions

    def start_rounds(self):
        names = [broker.name for broker in self.system.brokers]
        self.homes = [n for n in names if any(s.at == n for s in self.system.subscribers)]
        if not self.forgetting:
            return
        every, timeout = self.recovery.refresh_s, self.recovery.timeout_s
        for home in self.homes:
            phase = every * self.stream(f"broker {home}", "refresh").uniform()
            for tree in range(len(self.routes.trees)):
                for broker in names:
                    if not self.down[broker]:
                        self.heard[broker, home, tree] = 0
            self.at(phase, self.refresh, home, phase, 1)
            if timeout is not None:
                self.at(max(phase - every + timeout, 0.0), self.end, home, phase, 0)

    def refresh(self, home, phase, number):
        self.at(phase + number * self.recovery.refresh_s, self.refresh, home, phase, number + 1)
        if self.down[home]:
            return
        names = [broker.name for broker in self.system.brokers]
        for tree, each in enumerate(self.routes.trees):
            waiting = [(self.system.broker_index[home], None)]
            for broker, into in waiting:
                self.heard[names[broker], home, tree] = number
                for arc in each.outgoing[broker]:
                    target = self.routes.arcs[arc].target
                    link = frozenset([names[broker], names[target]])
                    back = into is not None and arc == into ^ 1
                    if not back and not self.down[link] and not self.down[names[target]]:
                        waiting.append((target, arc))

    def end(self, home, phase, number):
        due = phase + number * self.recovery.refresh_s + self.recovery.timeout_s
        self.at(due, self.end, home, phase, number + 1)
        for key in [key for key in self.heard if key[1] == home and self.heard[key] <= number]:
            del self.heard[key]

    def knows(self, broker, home, event):
        tree = int(self.routes.tree_of_class[event.row.content_class])
        name = self.system.brokers[broker].name
        return not self.forgetting or (name, home, tree) in self.heard

    # ---- copies

    def link(self, arc):
        ends = self.routes.arcs[arc]
        return frozenset(self.system.brokers[i].name for i in (ends.source, ends.target))

    def is_open(self, arc):
        return not any(self.down[each] for each in (self.link(arc), *self.link(arc)))

    def cross(self, copy, channel, name):
        copy.gone, copy.served = False, False
        if copy.arc is None:
            super().cross(copy, channel, name)
            return
        if self.keeping and not self.is_open(copy.arc):
            copy.waited = True
            self.kept[copy.arc].append(copy)
        elif self.down[self.link(copy.arc)]:
            self.lose(copy, "path_down")
        else:
            while channel.reliability < 1.0 and (
                self.stream(name, "link loss").uniform() >= channel.reliability
            ):
                if not self.keeping:
                    self.lose(copy, "link")
                    return
            delay = self.stream(name, "link delay").time(channel.delay)
            breaks = self.breaks[self.link(copy.arc)]
            self.at(self.now + delay, self.arrive, copy, breaks)

    def arrive(self, copy, breaks):
        if breaks != self.breaks[self.link(copy.arc)]:
            self.fall(copy)
        else:
            self.enter(copy)

    def fall(self, copy):
        if copy.arc is None:
            self.lose(copy, "broker_down")
        elif not self.keeping:
            self.lose(copy, "path_down")
        else:
            again = naive.Copy(copy.event, copy.broker, copy.arc)
            again.waited = True
            self.send(again)

    def send(self, copy):
        ends = self.routes.arcs[copy.arc]
        names = [self.system.brokers[i].name for i in (ends.source, ends.target)]
        self.cross(copy, ends.channel, "link " + "--".join(names))

    def send_kept(self, arc):
        if self.is_open(arc):
            copies, self.kept[arc] = self.kept[arc], []
            for copy in copies:
                if self.expired(copy):
                    self.lose(copy, "expired_in_buffer")
                else:
                    self.send(copy)

    def enter(self, copy):
        if self.down[self.system.brokers[copy.broker].name]:
            self.fall(copy)
            return
        self.inside[copy.broker].append(copy)
        super().enter(copy)

    def join(self, copy):
        copy.served = False
        super().join(copy)

    def serve(self, station, copy):
        copy.served = True
        super().serve(station, copy)

    def finish(self, station, copy):
        if not copy.gone:
            super().finish(station, copy)

    def is_too_late(self, subscriber, delay, lifetime):
        late = self.waited and delay > lifetime + naive.SLACK_S
        self.counts[subscriber.name]["expired_in_buffer"] += late
        return late

    def lose(self, copy, cause):
        if copy in self.inside[copy.broker]:
            self.inside[copy.broker].remove(copy)
        super().lose(copy, cause)

    def leave(self, copy):
        self.inside[copy.broker].remove(copy)
        event, name = copy.event, self.system.brokers[copy.broker].name
        self.waited = copy.waited
        for subscriber in self.system.subscribers:
            if subscriber.at == name and matches(subscriber.wants, event.content):
                if copy.waited and self.expired(copy):
                    self.counts[subscriber.name]["expired_in_buffer"] += event.measured
                elif self.knows(copy.broker, name, event):
                    self.receive(subscriber, event)
                elif event.measured:
                    self.counts[subscriber.name]["not_restored"] += 1
        tree = self.routes.trees[self.routes.tree_of_class[event.row.content_class]]
        for arc in tree.outgoing[copy.broker]:
            behind = list(filter(self.wants(event), self.behind(arc, tree)))
            if behind and (copy.arc is None or arc != copy.arc ^ 1):
                event.copies += 1
                child = naive.Copy(event, self.routes.arcs[arc].target, arc)
                child.waited = copy.waited
                if any(self.knows(copy.broker, each.at, event) for each in behind):
                    self.send(child)
                else:
                    self.lose(child, "not_restored")
        self.release(event)


def simulate(system, *, seed, replication, warmup_s, duration_s):
    """Counts by subscriber (wanted, delivered, on_time, losses by cause), and their delays."""
    assert math.isfinite(duration_s)
    twin = FailingTwin(system, seed, replication, warmup_s, warmup_s + duration_s)
    counts = twin.run()
    return counts, {name: np.array(delays) for name, delays in twin.delays.items()}
