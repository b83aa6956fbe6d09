"""Brokers that forget, from refresh to refresh: one chain of all that a way depends on.

A broker that fails loses its subscriptions; a refresh, every so often, gives them back to those it
reaches. It comes from the last broker of the way: along the way as far as all is up, or, where
events and subscriptions may bypass failures, to whatever is joined to it. Other homes that want the
same events refresh brokers of the way too, at random moments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from tidings.prediction.faults.components import Components, Path
from tidings.prediction.faults.disjoint_products import Network
from tidings.prediction.faults.processes import Bools, Floats, Process, forgetting, with_table
from tidings.prediction.faults.reachability import lying_between
from tidings.prediction.faults.refresh_axes import settled_shares
from tidings.prediction.faults.waiting import joint_rates, phases_of

Phases = dict[int, NDArray[np.int64]]  # of each process, in many joint states

ALONG, JOINED, UP = "along the way", "joined", "up"
MOST_STATES = 6_000
_MOMENTS = 16
_UNSEEN = 1e-13


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshes:
    """How often a home refreshes a way, how, and how often others do it as well."""

    every_s: float
    helped_per_s: tuple[float, ...]  # of each broker of the way
    any_way: bool = False  # whether refreshes go round what is down

    @property
    def streams(self) -> list[tuple[int, float]]:
        """Random streams of others' refreshes: the broker where they come to the way, and how
        often.
        """
        rates = [*self.helped_per_s, 0.0]
        found = [(place, rates[place - 1] - rates[place]) for place in range(1, len(rates))]
        return [(place, per_s) for place, per_s in found if per_s > 0.0]


class Evolution:
    """Shares of the states of a chain, and means over what becomes of them, as time goes by."""

    def __init__(self, generator: sparse.csr_array) -> None:
        self.per_s = max(float(-generator.diagonal().min()), 1e-12)
        unit = sparse.eye_array(generator.shape[0])
        self.forwards = sparse.csr_array(unit + generator / self.per_s)
        self.backwards = sparse.csr_array(self.forwards.T)

    def shares(self, rows: Floats, time_s: float) -> Floats:
        """Shares of states (the last axis), so much later."""
        return self._summed(self.backwards, rows.T, time_s).T

    def means(self, values: Floats, time_s: float) -> Floats:
        """The mean of some value of the state so much later, by the state now."""
        return self._summed(self.forwards, values, time_s)

    def _summed(self, jump: sparse.csr_array, begin: Floats, time_s: float) -> Floats:
        """Σ P[k jumps] jumpᵏ, jumps at a constant rate."""
        mean = self.per_s * time_s
        weights = stats.poisson.pmf(np.arange(int(stats.poisson.isf(_UNSEEN, mean)) + 2), mean)
        now = begin
        total: Floats = weights[0] * begin
        for weight in weights[1:]:
            now = jump @ now
            total = total + weight * now
        return total


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """The processes whose joint phases are followed, and who reaches whom in them."""

    network: Network  # with brokers of the way that forget
    path: Path
    processes: tuple[int, ...]  # in ascending order
    links: tuple[int, ...]  # that are followed
    reach: str  # of refreshes: ALONG the way, to all that is JOINED, or taken as all that is UP

    def phases(self) -> Phases:
        """All joint phases, the last process varying fastest."""
        sizes = [len(self.network.components.processes[each].up) for each in self.processes]
        at = np.unravel_index(np.arange(math.prod(sizes)), sizes)
        return dict(zip(self.processes, at, strict=True))

    def up(self, phases: Phases, needed: Iterable[int]) -> Bools:
        """Whether all these processes are up; those that are not followed are."""
        known = [each for each in needed if each in phases]
        ups = [self.network.components.processes[each].up[phases[each]] for each in known]
        count = next(iter(phases.values())).size
        return np.all(ups, axis=0) if ups else np.ones(count, np.bool_)

    def able(self, phases: Phases, broker: int) -> Bools:
        """Whether a broker is up and knows the subscription."""
        processes = self.network.components.processes
        known = [each for each in self.network.components.of_broker[broker] if each in phases]
        ables = [processes[each].able[phases[each]] for each in known]
        count = next(iter(phases.values())).size
        return np.all(ables, axis=0) if ables else np.ones(count, np.bool_)

    def joined(self, phases: Phases, source: int) -> Mapping[int, Bools]:
        """Which brokers are joined to one, by what is up and followed."""
        of_broker, of_link = self.network.components.of_broker, self.network.components.of_link
        ends = [self.network.ends[link] for link in self.links]
        link_up = [self.up(phases, of_link[link]) for link in self.links]
        brokers = {broker for pair in ends for broker in pair} | {source}
        broker_up = {broker: self.up(phases, of_broker[broker]) for broker in brokers}
        found = {b: up if b == source else np.zeros_like(up) for b, up in broker_up.items()}
        for _ in brokers:
            for (first, second), works in zip(ends, link_up, strict=True):
                either = works & (found[first] | found[second])
                found[first] = found[first] | (either & broker_up[first])
                found[second] = found[second] | (either & broker_up[second])
        return found

    def renewed(self, phases: Phases, origin: int | None = None) -> Phases:
        """The phases after a refresh of the way's own home, or of others that come to a broker.

        Others refresh only the brokers before that one: from there on they are behind other links.
        """
        brokers = self.path.brokers
        first = len(brokers) - 1 if origin is None else origin
        if self.reach == JOINED:
            reached = self.joined(phases, brokers[first])
        else:
            reached = self._along_the_way(phases, first)
        found = dict(phases)
        for broker in brokers if origin is None else brokers[:origin]:
            for each in self.network.components.of_broker[broker]:
                if each in phases:
                    ready = int(self.network.components.processes[each].able.sum())
                    bare = reached[broker] & (phases[each] >= ready)
                    found[each] = np.where(bare, phases[each] - ready, phases[each])
        return found

    def _along_the_way(self, phases: Phases, origin: int) -> Mapping[int, Bools]:
        of_broker, of_link = self.network.components.of_broker, self.network.components.of_link
        coming = self.up(phases, of_broker[self.path.brokers[origin]])
        found = {self.path.brokers[origin]: coming}
        for place in range(origin - 1, -1, -1):
            broker = self.path.brokers[place]
            up = self.up(phases, of_broker[broker])
            if self.reach == UP:
                found[broker] = found[self.path.brokers[origin]] & up
                continue
            coming = coming & up & self.up(phases, of_link[self.path.links[place]])
            found[broker] = coming
        return found


@dataclass(frozen=True, kw_only=True)
class RefreshChain:
    """The joint phases of a way (and of what is beside it) between refreshes, and after one."""

    surroundings: Surroundings
    refreshes: Refreshes
    evolution: Evolution
    after: Floats  # shares just after a refresh
    _moments: dict[int, list[Floats]] = field(default_factory=dict)

    def moments(self, count: int = _MOMENTS) -> list[Floats]:
        """Shares of joint phases in the middle of so many equal parts of an interval."""
        if count not in self._moments:
            step_s = self.refreshes.every_s / count
            found = [self.evolution.shares(self.after, 0.5 * step_s)]
            for _ in range(count - 1):
                found.append(self.evolution.shares(found[-1], step_s))
            self._moments[count] = found
        return self._moments[count]


def forgetful(components: Components, path: Path) -> Components:
    """The components with brokers of a way that lose their subscriptions when they fail."""
    return _with_tables(components, path, [lambda each: with_table(each, 0.0)] * len(path.brokers))


def forgetful_on_average(components: Components, path: Path, refreshes: Refreshes) -> Components:
    """The same, with refreshes as waits of each broker that are independent and exponential."""

    def table(per_s: float) -> Callable[[Process], Process]:
        return lambda each: forgetting(each, refreshes.every_s, per_s)

    return _with_tables(components, path, [table(per_s) for per_s in refreshes.helped_per_s])


def _with_tables(
    components: Components, path: Path, tables: Sequence[Callable[[Process], Process]]
) -> Components:
    processes = list(components.processes)
    for broker, table in zip(path.brokers, tables, strict=True):
        for each in set(components.of_broker[broker]) - components.shared:
            processes[each] = table(components.processes[each])
    return replace(components, processes=tuple(processes))


def refresh_chain(network: Network, path: Path, refreshes: Refreshes) -> RefreshChain | None:
    """The chain of a way, with all that is beside it where that is little enough.

    None where components fail together, none fails, or even the way's own states are too many.
    """
    if network.components.fail_together(path):
        return None
    known = replace(network, components=forgetful(network.components, path))
    around = None
    if refreshes.any_way:
        around = _surroundings(known, path, lying_between(network, path), JOINED)
        around = around or _surroundings(known, path, path.links, UP)
    else:
        around = _surroundings(known, path, path.links, ALONG)
    return None if around is None else _chain(around, refreshes)


def _surroundings(
    network: Network, path: Path, links: Sequence[int], reach: str
) -> Surroundings | None:
    components = network.components
    brokers = {broker for link in links for broker in network.ends[link]} | set(path.brokers)
    needed = {each for broker in brokers for each in components.of_broker[broker]}
    needed |= {each for link in links for each in components.of_link[link]}
    if not needed or phases_of(components.processes, sorted(needed)) > MOST_STATES:
        return None
    return Surroundings(
        network=network, path=path, processes=tuple(sorted(needed)), links=tuple(links), reach=reach
    )


def _chain(around: Surroundings, refreshes: Refreshes) -> RefreshChain:
    processes = around.network.components.processes
    phases = around.phases()
    sizes = [len(processes[each].up) for each in around.processes]

    def moved(origin: int | None = None) -> NDArray[np.int64]:
        after = around.renewed(phases, origin)
        found: NDArray[np.int64] = np.ravel_multi_index(
            [after[each] for each in around.processes], sizes
        )
        return found

    generator = joint_rates(processes, around.processes)
    count = generator.shape[0]
    for origin, per_s in refreshes.streams:
        jumps = sparse.csr_array((np.ones(count), (np.arange(count), moved(origin))))
        jumps.resize((count, count))
        generator = generator + per_s * (jumps - sparse.eye_array(count))
    evolution = Evolution(sparse.csr_array(generator))
    after = moved()

    def step(shares: Floats) -> Floats:
        later = evolution.shares(shares, refreshes.every_s)
        return np.asarray(np.bincount(after, later, count), np.float64)

    begin = np.ones(())
    for each in around.processes:
        # As if all that is up had just been refreshed.
        mine = processes[each]
        ready = int(mine.able.sum())
        shares = mine.stationary.copy()
        if mine.ready is not None:
            shares[:ready] += shares[ready : 2 * ready]
            shares[ready : 2 * ready] = 0.0
        begin = np.multiply.outer(begin, shares)
    return RefreshChain(
        surroundings=around,
        refreshes=refreshes,
        evolution=evolution,
        after=settled_shares(step, begin.ravel()),
    )
