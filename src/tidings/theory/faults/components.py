"""Which independent processes each broker and link of a system depends on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tidings.model.behaviour import Failure
from tidings.model.system import System
from tidings.theory.faults.processes import Process


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """The brokers of a way by position, in the order an event meets them, and the links between."""

    brokers: tuple[int, ...]
    links: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """The processes of a system, and those that each broker and each link needs to be up."""

    processes: tuple[Process, ...]
    of_broker: tuple[tuple[int, ...], ...]
    of_link: tuple[tuple[int, ...], ...]

    def all_up(self, needed: Iterable[int]) -> float:
        """P[all these processes are up]; one named twice counts once."""
        return math.prod(self.processes[each].availability for each in set(needed))

    def fails_per_s(self, needed: Iterable[int]) -> float:
        """How often something fails that needs all these processes, per second of its time up."""
        used = [self.processes[each] for each in needed]
        return sum(each.breaks_per_s / each.availability for each in used if each.availability > 0)

    def of_path(self, path: Path) -> tuple[tuple[int, ...], ...]:
        """The processes of each element of a path: broker, link, broker, …"""
        found = [self.of_broker[path.brokers[0]]]
        for link, broker in zip(path.links, path.brokers[1:], strict=True):
            found += [self.of_link[link], self.of_broker[broker]]
        return tuple(found)

    def fail_together(self, path: Path) -> bool:
        """Whether elements of a path depend on more than a process each of their own."""
        needs = self.of_path(path)
        distinct = {each for needed in needs for each in needed}
        return max(map(len, needs)) > 1 or len(distinct) < sum(map(len, needs))

    @property
    def shared(self) -> frozenset[int]:
        """Processes that more than one component depends on: the failure groups."""
        seen: set[int] = set()
        twice: set[int] = set()
        for needed in (*self.of_broker, *self.of_link):
            twice |= seen.intersection(needed)
            seen.update(needed)
        return frozenset(twice)


def components(system: System, processes: dict[Failure, Process]) -> Components:
    """The components of a system, with the process of each way to fail as given.

    A failure group is a process of its own, which all its members need beside their own.
    """
    found: list[Process] = []

    def own(failure: Failure | None) -> list[int]:
        if failure is None:
            return []
        found.append(processes[failure])
        return [len(found) - 1]

    of_broker = [own(broker.failure) for broker in system.brokers]
    of_link = [own(link.there.failure) for link in system.links]
    place = {broker.name: needed for broker, needed in zip(system.brokers, of_broker, strict=True)}
    for link, needed in zip(system.links, of_link, strict=True):
        place[link.name] = place["--".join(reversed(link.between))] = needed
    for group in system.failure_groups:
        shared = own(group.failure)
        for member in dict.fromkeys(id(place[name]) for name in group.members):
            next(each for each in place.values() if id(each) == member).extend(shared)
    return Components(
        processes=tuple(found),
        of_broker=tuple(map(tuple, of_broker)),
        of_link=tuple(map(tuple, of_link)),
    )


def ways_to_fail(system: System) -> list[Failure]:
    """Every distinct way to fail that occurs in a system."""
    own = [*(b.failure for b in system.brokers), *(link.there.failure for link in system.links)]
    groups = [group.failure for group in system.failure_groups]
    return list(dict.fromkeys(each for each in (*own, *groups) if each is not None))
