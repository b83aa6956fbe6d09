"""Consumer groups for the kernel: members, queues, and the way of acknowledgements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from tidings.kernels.records import make_records, more_records
from tidings.model.arrays import Floats
from tidings.model.batches import Fetch
from tidings.model.consumers import CHOICES, LONGEST_WAITING, WHEN_FULL, Consumers, Member
from tidings.model.laws import Law, residual
from tidings.model.loads import FULL_LOAD
from tidings.model.system import Subscriber
from tidings.simulation import kernel_layout as layout
from tidings.simulation.audience import is_instant

MESSAGE_COPIES = 3  # that one event at a group can make at once: the message, a delivery, a clock
_ONE_BY_ONE = Fetch(size=0)  # members that do not fetch
_JOINED = {
    "places": layout.PLACE,
    "stations": layout.STATION,
    "servers": layout.SERVER,
    "switches": layout.SWITCH,
    "channels": layout.CHANNEL,
}
_OWN = {
    "groups": layout.GROUP,
    "members": layout.MEMBER,
    "group_queues": layout.GROUP_QUEUE,
    "requests": layout.REQUEST,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A subscriber that is a group of consumers, with all members one by one."""

    receiver: int
    subscriber: Subscriber
    consumers: Consumers
    members: tuple[Member, ...]

    @property
    def name(self) -> str:
        """What it is, and its name."""
        return f"subscriber {self.subscriber.name}"

    @property
    def drops_events(self) -> bool:
        """Whether what it is offered may end before it is handled."""
        consumers = self.consumers
        # Without a limit on what members hold nothing ever waits in the buffer.
        waits = consumers.held > 0 or consumers.in_flight is not None
        return consumers.buffer is not None and not consumers.blocks and waits

    @property
    def at_once(self) -> int:
        """How many events are handed out at a time at most."""
        return 1 if self.consumers.fetch is None else self.consumers.fetch.size

    @property
    def asks(self) -> bool:
        """Whether members ask for events, and the request that waits longest gets the next."""
        consumers = self.consumers
        shared = consumers.partitions is None and consumers.fetch is None
        shared = shared and consumers.prefetch > 0
        return shared and consumers.choose == LONGEST_WAITING

    @property
    def choice(self) -> int:
        """Which member gets the next event; where owners or none are to choose, members in turn."""
        choose = self.consumers.choose
        return CHOICES.index(choose) if self.asks or choose != LONGEST_WAITING else 0

    @property
    def cycle_s(self) -> float:
        """Longest mean time from one crash of a member to its next, in seconds."""
        failures = [each.failure for each in self.members if each.failure is not None]
        return max((each.up.mean_s + each.down.mean_s for each in failures), default=0.0)

    def processing(self, member: Member) -> Law:
        """Give the distribution of the time in which a member handles one event."""
        law = member.processing or self.subscriber.processing
        assert law is not None
        return law

    @property
    def _while_there_per_s(self) -> Floats:
        """What each member can handle while it is there, in events per second.

        Without a limit on what it holds it works all the time; with one it also waits for
        acknowledgements to come back and events to come, which is as long as a round trip.
        """
        fetch, prefetch = self.consumers.fetch, self.consumers.prefetch
        needed_s = self._processing_s
        if fetch is not None:  # no more come before it is done with all of them
            needed_s = needed_s / (fetch.size if fetch.together else 1)
            needed_s = needed_s + self._trip_s / fetch.size
        elif prefetch:
            needed_s = np.maximum(needed_s, (needed_s + self._trip_s) / prefetch)
        if not self.consumers.acknowledges:
            needed_s = needed_s * self.subscriber.link.reliability
        with np.errstate(divide="ignore"):
            per_s: Floats = 1.0 / needed_s
        return per_s

    @property
    def _processing_s(self) -> Floats:
        return np.array([self.processing(each).mean_s for each in self.members])

    @property
    def _trip_s(self) -> float:
        """How long an event and its acknowledgement travel, in seconds; 0 where that changes."""
        link = self.subscriber.link
        return 0.0 if link.delay_by_time is not None else 2.0 * link.delay.mean_s

    @property
    def each_per_s(self) -> Floats:
        """What each member can handle, its absences included, in events per second."""
        there = [each.failure.availability if each.failure else 1.0 for each in self.members]
        return self._while_there_per_s * there

    @property
    def busy_per_s(self) -> float:
        """Events per second that all members together could handle if they never waited."""
        with np.errstate(divide="ignore"):
            return float((1.0 / self._processing_s).sum())

    @property
    def able_per_s(self) -> float:
        """Events per second that all members together can handle."""
        return float(self.each_per_s.sum())

    @property
    def offered_shares(self) -> Floats:
        """Share of the events in the partitions of each member."""
        shares = np.zeros(len(self.members))
        if self.consumers.partitions is not None:
            np.add.at(shares, self.owners, self.consumers.partitions.used_shares)
        return shares

    def loads(self, arriving_per_s: float) -> Floats:
        """Compute how many times what it can handle each member's partitions are offered.

        While a member is not there, others handle its partitions, at most one each.
        """
        able, there = self.each_per_s, self._while_there_per_s
        away = 1.0 - np.divide(able, there, out=np.ones(able.size), where=np.isfinite(there))
        owned = np.bincount(self.owners, minlength=able.size)
        for number in np.flatnonzero((away > 0.0) & (owned > 0)):
            others = np.sort(np.delete(there, number))[::-1]
            able[number] += away[number] * others[: owned[number]].sum()
        loads: Floats = arriving_per_s * self.offered_shares / able
        return loads

    @property
    def capacity_per_s(self) -> float:
        """Events per second that it can be offered at most, if none is delivered again.

        With partitions, the member that is offered most for what it can do is the bound; with a
        limit on events in flight, that each of them is so for as long as it takes at least.
        """
        bounds, busiest = [self.able_per_s], float(self.loads(1.0).max())
        if busiest > 0.0:
            bounds.append(1.0 / busiest)
        shortest_s = float(self._processing_s.min()) + self._trip_s
        if self.consumers.in_flight is not None and shortest_s > 0.0:
            bounds.append(self.consumers.in_flight / shortest_s)
        return min(bounds)

    def hot_members(self, arriving_per_s: float) -> list[int]:
        """Find the members whose partitions are offered more than they can handle.

        None where no others are left who could go on: all members are, or what waits for those
        that are takes all the places there are among the events in flight.
        """
        consumers = self.consumers
        hot = np.flatnonzero(self.loads(arriving_per_s) >= FULL_LOAD)
        cold = np.setdiff1d(self.owners, hot)
        places = (consumers.fetch.size if consumers.fetch else consumers.prefetch) or np.inf
        blocked = consumers.in_flight is not None and hot.size * places >= consumers.in_flight
        return [] if not cold.size or (hot.size and blocked) else hot.tolist()

    @property
    def owners(self) -> list[int]:
        """The member, by its position, that has each partition while all are there."""
        partitions = self.consumers.partitions
        if partitions is None:
            return []
        if not partitions.owners:
            return [number % len(self.members) for number in range(partitions.count)]
        position = {member.name: number for number, member in enumerate(self.members)}
        return [position[owner] for owner in partitions.owners]


def find_groups(followed: Sequence[Subscriber]) -> tuple[Group, ...]:
    """Find the consumer groups among the subscribers that the receivers stand for."""
    return tuple(
        Group(
            receiver=receiver,
            subscriber=subscriber,
            consumers=subscriber.consumers,
            members=tuple(subscriber.consumers.each()),
        )
        for receiver, subscriber in enumerate(followed)
        if subscriber.consumers is not None
    )


def group_tables(
    groups: Sequence[Group],
    before: Mapping[str, Any],
    laws: Callable[..., int],
    streams: Callable[..., int],
) -> dict[str, Any]:
    """Make tables of groups, and those shared with others, their own rows behind the rest."""
    tables = _GroupTables(before, laws, streams)
    for group in groups:
        tables.add(group)
    return tables.finished()


class _GroupTables:
    """Tables that grow by one group after the other."""

    def __init__(
        self, before: Mapping[str, Any], laws: Callable[..., int], streams: Callable[..., int]
    ) -> None:
        self.before, self.laws, self.streams = before, laws, streams
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in (*_JOINED, *_OWN)}
        self.receivers = before["receivers"].copy()
        self.backoffs: list[float] = []

    def _next(self, name: str) -> int:
        """Give the position that the next row of a table will have."""
        return len(self.before.get(name, ())) + len(self.rows[name])

    def _place(self, kind: int, receiver: int, stations: int = 0) -> int:
        place, station = self._next("places"), self._next("stations")
        self.rows["places"].append((station, station + stations, kind, receiver))
        return place

    def add(self, group: Group) -> None:
        consumers, number = group.consumers, self._next("groups")
        first = {name: self._next(name) for name in ("members", "group_queues")}
        self.receivers["group"][group.receiver] = number
        self.receivers["waits_at"][group.receiver] = self._place(layout.TO_GROUP, group.receiver)
        for member in group.members:
            self._add_member(group, member, number)
        self._add_queues(group, first["members"])
        first_request = self._next("requests")
        asking = self._add_requests(group, first["members"])
        waits_s = consumers.backoff_s or (
            () if consumers.ack_wait_s is None else (consumers.ack_wait_s,)
        )
        first_backoff = len(self.backoffs)
        self.backoffs += waits_s
        bounded = consumers.buffer is not None and not consumers.blocks
        fetch = consumers.fetch or _ONE_BY_ONE
        rebalance_s = consumers.partitions.rebalance_s if consumers.partitions else 0.0
        self.rows["groups"].append(
            (
                group.receiver,
                first["members"],
                self._next("members"),
                first["group_queues"],
                self._next("group_queues"),
                group.choice,
                consumers.buffer if bounded else layout.NO_LIMIT,
                consumers.when_full == WHEN_FULL[1],
                consumers.prefetch or layout.NO_LIMIT,
                consumers.in_flight or layout.NO_LIMIT,
                consumers.deliveries or layout.NO_LIMIT,
                first_backoff,
                len(self.backoffs),
                rebalance_s,
                self._add_channel(group),
                self._place(layout.HANDLED, group.receiver),
                self._place(layout.ACKNOWLEDGED, group.receiver),
                self._place(layout.OVERDUE, group.receiver),
                self.streams(group.name, "sharing out"),
                min(consumers.refill or consumers.prefetch, consumers.prefetch),
                first_request,
                self._next("requests") - first_request,
                asking,
                0,
                fetch.size,
                fetch.linger_s,
                fetch.together,
                consumers.qos,
            )
        )

    def _add_member(self, group: Group, member: Member, number: int) -> None:
        place = self._place(layout.AT_MEMBER, group.receiver, stations=1)
        station, server = self._next("stations"), self._next("servers")
        name = f"{group.name}, member {member.name}"
        law, stream = self.laws(group.processing(member)), self.streams(name, "processing")
        row = (place, law, stream, server, 1, layout.NO_LIMIT, 1, server, -1, -1, 0)
        counts = (0, 0, 0.0, 0.0, 0)  # up to whether what expires is kept
        self.rows["stations"].append((*row, *counts, 1))
        self.rows["servers"].append((station, -1, -1, 0.0))
        if member.failure is not None:
            both = member.failure.up, member.failure.down
            four = (*map(self.laws, both), *(self.laws(residual(law)) for law in both))
            turns = self.streams(name, "failure")
            switch = (member.failure.availability, *four, turns, 0, 0, station, 0, 0, 0, 0)
            self.rows["switches"].append((*switch, 1 + self._next("members")))
        asked = group.consumers.prefetch if group.asks else 0
        self.rows["members"].append((number, place, 1, 0, asked))

    def _add_requests(self, group: Group, first_member: int) -> int:
        """Let every member ask for all that it may hold; how many have asked."""
        if not group.asks:
            return 0
        count, prefetch = len(group.members), group.consumers.prefetch
        requests = [(first_member + number, prefetch) for number in range(count)]
        self.rows["requests"] += requests + [(0, 0)] * (count * (prefetch - 1))
        return count

    def _add_queues(self, group: Group, first_member: int) -> None:
        empty = (-1, -1, -1, -1)
        partitions = group.consumers.partitions
        if partitions is None:
            self.rows["group_queues"].append((1.0, -1, -1, *empty))
            return
        for below, owner in zip(accumulate(partitions.used_shares), group.owners, strict=True):
            member = first_member + owner
            self.rows["group_queues"].append((below, member, member, *empty))

    def _add_channel(self, group: Group) -> int:
        """Add the channel of acknowledgements: as slow as that of events, and it loses nothing.

        Its position is returned.
        """
        channel, link = self._next("channels"), group.subscriber.link
        loss, delay = (self.streams(group.name, f"acknowledgement {w}") for w in ("loss", "delay"))
        of_events = self.before["receivers"]["channel"][group.receiver]
        day = int(self.before["channels"]["day"][of_events])
        row = (1.0, is_instant(link), self.laws(link.delay), loss, delay, -1, 1.0, -1, day, -1)
        self.rows["channels"].append(row)
        return channel

    def finished(self) -> dict[str, Any]:
        """Give all tables, as far as groups have a part in them."""
        joined = {
            name: more_records(self.before[name], kind, self.rows[name])
            for name, kind in _JOINED.items()
        }
        own = {name: make_records(kind, self.rows[name]) for name, kind in _OWN.items()}
        backoffs = np.array(self.backoffs, dtype=np.float64)
        return joined | own | {"receivers": self.receivers, "backoffs": backoffs}
