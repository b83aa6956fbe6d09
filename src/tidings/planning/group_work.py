"""What the members of a consumer group have to do, and which numbers of them are worth a try."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tidings.model.consumers import MOST_MEMBERS, Partitions
from tidings.model.loads import FULL_LOAD
from tidings.model.system import System
from tidings.simulation.network import compile_system

MOST_TIMES = 16  # as many members as carry the load, at most, are tried


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The partition that bounds what a group can do, however many members it has."""

    partitions: int
    partition: int  # from 1
    share: float  # of the group's events
    load: float  # seconds of work a second for the member that has it

    @property
    def is_alone(self) -> bool:
        """Whether other partitions have less."""
        return self.share > 1.0 / self.partitions + 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupWork:
    """Events that a group of members that are alike is offered, and how these are shared out."""

    rate_per_s: float
    each_per_s: float  # what a member can handle, its absences included
    partitions: Partitions | None
    crash: bool  # partitions of those that are away go to others

    @classmethod
    def of(cls, system: System, name: str) -> GroupWork:
        """Find what the group of this name has to do."""
        compiled = compile_system(system)
        at = [each.subscriber.name for each in compiled.groups].index(name)
        group = compiled.groups[at]
        return cls(
            rate_per_s=float(compiled.group_arrivals[at]),
            each_per_s=group.able_per_s / len(group.members),
            partitions=group.consumers.partitions,
            crash=group.consumers.crashes,
        )

    @property
    def bound(self) -> Bound | None:
        """The busiest partition; None where there are no partitions."""
        if self.partitions is None:
            return None
        shares = self.partitions.used_shares
        most = int(np.argmax(shares))
        load = shares[most] * self.rate_per_s / self.each_per_s
        count = self.partitions.count
        return Bound(partitions=count, partition=most + 1, share=shares[most], load=load)

    def sizes(self) -> list[int]:
        """List numbers of members worth a try: they can do the work, and no fewer do it better.

        Where owners take turns, one member more can bring two hot partitions together.
        """
        least = math.floor(self.rate_per_s / self.each_per_s) + 1
        most = min(MOST_TIMES * least, MOST_MEMBERS)
        if self.partitions is None:
            return list(range(least, most + 1))
        most = min(most, self.partitions.count)
        counts = range(min(1 if not self.crash else least, most), most + 1)
        better = list(self._no_worse(counts))
        able = [size for size, share in better if self._can(share) and size >= least]
        return able or [better[-1][0]]

    def sizes_with_partitions(self) -> list[int]:
        """List numbers of members, each with a partition of its own, beyond those there are."""
        if self.partitions is None:
            return []
        first = self.partitions.count + 1
        least = math.floor(self.rate_per_s / self.each_per_s) + 1
        most = min(MOST_TIMES * max(least, first), MOST_MEMBERS)
        hottest = max(self.partitions.spread_over(most).used_shares)
        if not self._can(hottest):
            return []
        low, high = max(first, least) - 1, most
        while high - low > 1:  # the least number that can do the work
            middle = (low + high) // 2
            can = self._can(max(self.partitions.spread_over(middle).used_shares))
            low, high = (low, middle) if can else (middle, high)
        return list(range(high, most + 1))

    def _can(self, share: float) -> bool:
        """Whether one member can handle this share of all events."""
        return self.crash or share * self.rate_per_s < FULL_LOAD * self.each_per_s

    def _no_worse(self, counts: range) -> Iterator[tuple[int, float]]:
        """Yield numbers of members and the share of the busiest, never above one before."""
        assert self.partitions is not None
        shares = np.array(self.partitions.used_shares)
        lowest = math.inf
        for members in counts:
            busiest = float(np.bincount(np.arange(len(shares)) % members, shares).max())
            if busiest <= lowest + 1e-12:
                lowest = min(busiest, lowest)
                yield members, busiest
