"""What fails in a system: processes that go up and down, and which of them everything needs.

A process is a stationary Markov chain of phases. Exponential times have one phase each; phase-type
times bring their own; all others are fitted. Processes are independent of each other; a broker or
link is up when all the processes that it depends on are, its own and those of its failure groups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tidings.errors import UnsupportedError
from tidings.model import topology
from tidings.model.arrays import Bools, Complexes, Floats
from tidings.model.behaviour import Failure
from tidings.model.routes import Routes
from tidings.model.system import System

Chain = tuple[Floats, Floats]  # initial shares and generator (1/s) of a phase-type law
_ROUNDING = 1e-14  # of the fastest rate
_WORST = 1e9  # condition of modes beyond which rounding hides them

HOME_DOWN, PATH_DOWN, NOT_RESTORED = "broker_down", "path_down", "not_restored"
EXPIRED = "expired_in_buffer"
BUFFERING = ("buffering", "bypass-buffering")


class Modes(NamedTuple):
    """A generator in its own coordinates: right · diag(rates) · left."""

    rates: Complexes  # 1/s
    right: Complexes  # [phase, mode]
    left: Complexes  # [mode, phase]


@dataclass(frozen=True, kw_only=True, eq=False)
class Process:
    """A stationary chain: rates between phases (1/s), and in which of them it is up."""

    generator: Floats
    stationary: Floats
    up: Bools

    @cached_property
    def availability(self) -> float:
        """The long-run share of time in which it is up."""
        return float(self.stationary[self.up].sum())

    @cached_property
    def fails_per_s(self) -> float:
        """Failures per second of time up."""
        failing = self.generator[np.ix_(self.up, ~self.up)].sum(axis=1)
        return float(self.stationary[self.up] @ failing) / self.availability

    @property
    def given_up(self) -> Floats:
        """Shares of the phases while it is up."""
        shares: Floats = np.where(self.up, self.stationary, 0.0) / self.availability
        return shares

    @property
    def forgets(self) -> bool:
        """Whether being up says all there is to know of it: exponential times up."""
        return int(self.up.sum()) == 1

    @cached_property
    def modes(self) -> Modes:
        """The modes in which its phases settle."""
        rates, right = np.linalg.eig(self.generator.astype(np.complex128))
        rates[np.abs(rates) < _ROUNDING * np.abs(self.generator).max()] = 0.0
        if np.linalg.cond(right) > _WORST:
            raise UnsupportedError(
                "theory cannot compute the up and down times of a component: their "
                "phases are too similar for its arithmetic. Simulate, or change the "
                "shape of 'up' or 'down'."
            )
        return Modes(rates, right, np.linalg.inv(right))


def alternating(up: Chain, down: Chain) -> Process:
    """Build the process that is up for one phase-type time and down for another, in turn.

    >>> process = alternating((np.ones(1), np.array([[-1.0]])), (np.ones(1), np.array([[-9.0]])))
    >>> process.stationary.round(12).tolist()  # nine tenths of the time up
    [0.9, 0.1]
    """
    (up_start, up_rates), (down_start, down_rates) = up, down
    count = len(up_start) + len(down_start)
    generator = np.zeros((count, count))
    is_up = np.arange(count) < len(up_start)
    generator[np.ix_(is_up, is_up)] = up_rates
    generator[np.ix_(is_up, ~is_up)] = np.outer(-up_rates.sum(axis=1), down_start)
    generator[np.ix_(~is_up, ~is_up)] = down_rates
    generator[np.ix_(~is_up, is_up)] = np.outer(-down_rates.sum(axis=1), up_start)
    spent_s = np.concatenate(  # in each phase, during one time up and one time down
        [np.linalg.solve(-up_rates.T, up_start), np.linalg.solve(-down_rates.T, down_start)]
    )
    return Process(generator=generator, stationary=spent_s / spent_s.sum(), up=is_up)


@dataclass(frozen=True, slots=True)
class Path:
    """Brokers by position, in the order in which an event meets them, and the arcs between."""

    brokers: tuple[int, ...]
    arcs: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Components:
    """The processes of a system, and those that each broker and each link depends on."""

    processes: tuple[Process, ...]
    of_broker: tuple[tuple[int, ...], ...]
    of_link: tuple[tuple[int, ...], ...]
    ends: tuple[tuple[int, int], ...]  # the brokers of each link

    def all_up(self, needed: Iterable[int]) -> float:
        """Compute P[all these processes are up]; one named twice counts once."""
        return math.prod(self.processes[each].availability for each in set(needed))

    def fails_per_s(self, needed: Iterable[int]) -> float:
        """Compute the failures per second of time up of what needs all these processes."""
        return sum(self.processes[each].fails_per_s for each in set(needed))

    def of_path(self, path: Path) -> list[tuple[int, ...]]:
        """List the processes of each element of a path: broker, link, broker, …"""
        needs = [self.of_broker[path.brokers[0]]]
        for arc, broker in zip(path.arcs, path.brokers[1:], strict=True):
            needs += [self.of_link[arc >> 1], self.of_broker[broker]]
        return needs

    def hop(self, sender: int, arc: int, receiver: int) -> frozenset[int]:
        """List what must be up for an event to cross an arc."""
        return frozenset(
            (*self.of_broker[sender], *self.of_link[arc >> 1], *self.of_broker[receiver])
        )

    @cached_property
    def shared(self) -> frozenset[int]:
        """Processes that more than one component depends on: the failure groups."""
        seen: set[int] = set()
        twice: set[int] = set()
        for needed in (*self.of_broker, *self.of_link):
            twice |= seen.intersection(needed)
            seen.update(needed)
        return frozenset(twice)


def components(system: System, process_of: Callable[[Failure], Process]) -> Components:
    """List what fails in a system; a failure group is a process of its own."""
    known: dict[Failure, Process] = {}
    processes: list[Process] = []

    def own(failure: Failure | None) -> list[int]:
        if failure is None:
            return []
        if failure not in known:
            known[failure] = process_of(failure)
        processes.append(known[failure])
        return [len(processes) - 1]

    of_broker = [own(broker.failure) for broker in system.brokers]
    of_link = [own(link.there.failure) for link in system.links]
    needs_of = {each.name: need for each, need in zip(system.brokers, of_broker, strict=True)}
    for link, need in zip(system.links, of_link, strict=True):
        needs_of[link.name] = needs_of["--".join(reversed(link.between))] = need
    for group in system.failure_groups:
        shared = own(group.failure)
        members = {id(needs_of[name]): needs_of[name] for name in group.members}
        for need in members.values():
            need.extend(shared)
    index = system.broker_index
    return Components(
        processes=tuple(processes),
        of_broker=tuple(map(tuple, of_broker)),
        of_link=tuple(map(tuple, of_link)),
        ends=tuple((index[link.between[0]], index[link.between[1]]) for link in system.links),
    )


def process_places(system: System) -> dict[tuple[str, str], int]:
    """Enumerate the processes by section and name of what they are of, as `components` does."""
    owners = [("brokers", each.name) for each in system.brokers if each.failure is not None]
    owners += [("links", each.name) for each in system.links if each.there.failure is not None]
    owners += [("failure_groups", each.name) for each in system.failure_groups]
    return {owner: place for place, owner in enumerate(owners)}


def failures(system: System) -> list[Failure]:
    """List every distinct failure in a system."""
    own = [*(b.failure for b in system.brokers), *(link.there.failure for link in system.links)]
    own += [group.failure for group in system.failure_groups]
    return list(dict.fromkeys(each for each in own if each is not None))


def paths_to(routes: Routes, home: int, tree: int, starts: Sequence[int]) -> dict[int, Path]:
    """List the paths that events take from some brokers to another."""
    onwards = {
        broker: into ^ 1
        for broker, into in topology.walk(routes.trees[tree], routes.arcs, home)
        if into >= 0
    }
    paths = {}
    for start in starts:
        brokers, arcs = [start], []
        while brokers[-1] != home:
            arcs.append(onwards[brokers[-1]])
            brokers.append(routes.arcs[arcs[-1]].target)
        paths[start] = Path(tuple(brokers), tuple(arcs))
    return paths


def is_buffering(system: System) -> bool:
    """Test whether brokers keep events until what is down is repaired."""
    return system.used_recovery.scheme in BUFFERING


def acknowledged(system: System, routes: Routes) -> Routes:
    """Let links lose nothing by chance where brokers keep events: it is sent again at once."""
    if not is_buffering(system):
        return routes
    arcs = (replace(arc, channel=replace(arc.channel, reliability=1.0)) for arc in routes.arcs)
    return replace(routes, arcs=tuple(arcs))
