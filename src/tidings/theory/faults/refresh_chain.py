"""Brokers that forget, from refresh to refresh: one chain of all that a way depends on.

A broker that fails loses its subscriptions; a refresh, every so often, gives them back to those it
reaches. It comes from the last broker of the way: along the way as far as all is up, or, where
events and subscriptions may bypass failures, to whatever is joined to it. With a time-out, what has
not been refreshed for so long is forgotten too. Other homes that want the same events refresh
brokers of the way as well, at random moments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tidings.theory.faults.components import Components, Path
from tidings.theory.faults.disjoint_products import Network
from tidings.theory.faults.evolution import Evolution
from tidings.theory.faults.joint_states import Ints, JointStates, Values, joint_states
from tidings.theory.faults.processes import Bools, Floats, Process, forgetting
from tidings.theory.faults.reachability import lying_between
from tidings.theory.faults.refresh import Refresh
from tidings.theory.faults.refresh_axes import settled_shares

ALONG, JOINED, UP = "along the way", "joined", "up"
MOST_STATES = 6_000  # where waits are followed as well
_MOST_PASSED, _MOST_JUMPS = 250_000, 8_000_000  # states, and these times jumps between refreshes


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshes:
    """How often a home refreshes a way, how, and how often others do it as well."""

    own: Refresh
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


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """The joint states of a way and of what is beside it, and who reaches whom in them."""

    network: Network
    path: Path
    states: JointStates
    links: tuple[int, ...]  # that are followed
    reach: str  # of refreshes: ALONG the way, to all that is JOINED, or taken as all that is UP

    def joined(self, values: Values, source: int) -> Mapping[int, Bools]:
        """Which brokers are joined to one, by what is up and followed."""
        ends = [self.network.ends[link] for link in self.links]
        of_link = self.network.components.of_link
        link_up = [self.states.up(values, of_link[link]) for link in self.links]
        brokers = {broker for pair in ends for broker in pair} | {source}
        broker_up = {broker: self.states.broker_up(values, broker) for broker in brokers}
        found = {b: up if b == source else np.zeros_like(up) for b, up in broker_up.items()}
        for _ in brokers:
            for (first, second), works in zip(ends, link_up, strict=True):
                either = works & (found[first] | found[second])
                found[first] = found[first] | (either & broker_up[first])
                found[second] = found[second] | (either & broker_up[second])
        return found

    def renewed(self, values: Values, origin: int | None = None, *, ageing: bool = False) -> Values:
        """The states after a refresh of the way's own home, or of others that come to a broker.

        Others refresh only the brokers before that one: from there on they are behind other links.
        With ``ageing``, tables that the home's own refresh does not reach grow older.
        """
        brokers = self.path.brokers
        first = len(brokers) - 1 if origin is None else origin
        if self.reach == JOINED:
            reached = self.joined(values, brokers[first])
        else:
            reached = self._along_the_way(values, first)
        found = {}
        for broker in brokers if origin is None else brokers[:origin]:
            if broker in values.tables:
                age = values.tables[broker]
                missed = np.minimum(age + 1, self.states.ages) if ageing else age
                found[broker] = np.where(reached[broker], 0, missed)
        return values.with_tables(found)

    def oldest_gone(self, values: Values) -> Values:
        """The states after the oldest tables have timed out between two refreshes."""
        ages = self.states.ages
        gone = {each: np.where(age == ages - 1, ages, age) for each, age in values.tables.items()}
        return values.with_tables(gone)

    def _along_the_way(self, values: Values, origin: int) -> Mapping[int, Bools]:
        of_link = self.network.components.of_link
        coming = self.states.broker_up(values, self.path.brokers[origin])
        found = {self.path.brokers[origin]: coming}
        for place in range(origin - 1, -1, -1):
            broker = self.path.brokers[place]
            up = self.states.broker_up(values, broker)
            if self.reach == UP:
                found[broker] = found[self.path.brokers[origin]] & up
                continue
            coming = coming & up & self.states.up(values, of_link[self.path.links[place]])
            found[broker] = coming
        return found


@dataclass(frozen=True, kw_only=True)
class RefreshChain:
    """The joint states of a way (and of what is beside it) between refreshes, and after one."""

    surroundings: Surroundings
    refreshes: Refreshes
    evolution: Evolution
    after: Floats  # shares just after a refresh

    @cached_property
    def mean_shares(self) -> Floats:
        """The shares of all joint states, at any moment between two refreshes."""
        every_s, gone_s = self.refreshes.own.every_s, self.refreshes.own.oldest_gone_s
        if gone_s is None:
            return self.evolution.mean_shares(self.after, every_s)
        first = self.evolution.mean_shares(self.after, gone_s)
        then = moved(self.oldest_gone, self.evolution.shares(self.after, gone_s))
        second = self.evolution.mean_shares(then, every_s - gone_s)
        return np.asarray((gone_s * first + (every_s - gone_s) * second) / every_s)

    @cached_property
    def oldest_gone(self) -> Ints:
        """Where each joint state goes when the oldest tables time out."""
        around = self.surroundings
        return around.states.index(around.oldest_gone(around.states.values))


def forgetful_on_average(components: Components, path: Path, refreshes: Refreshes) -> Components:
    """Brokers of a way that forget, with waits for refreshes independent and exponential."""

    def table(per_s: float) -> Callable[[Process], Process]:
        return lambda each: forgetting(each, refreshes.own.every_s, per_s)

    processes = list(components.processes)
    for broker, per_s in zip(path.brokers, refreshes.helped_per_s, strict=True):
        for each in set(components.of_broker[broker]) - components.shared:
            processes[each] = table(per_s)(components.processes[each])
    return replace(components, processes=tuple(processes))


def refresh_chain(network: Network, path: Path, refreshes: Refreshes) -> RefreshChain | None:
    """The chain of a way, with all that is beside it where that is little enough.

    None where nothing is ever forgotten, or even the way's own states are too many.
    """
    around = None
    own = refreshes.own
    if refreshes.any_way:
        beside = lying_between(network, path)
        around = _surroundings(network, path, beside, _Followed(own, JOINED, MOST_STATES))
        around = around or _surroundings(network, path, path.links, _Followed(own, UP, MOST_STATES))
    else:
        around = _surroundings(network, path, path.links, _Followed(own, ALONG, MOST_STATES))
    return None if around is None else _chain(around, refreshes)


def passing_chain(network: Network, path: Path, refreshes: Refreshes) -> RefreshChain | None:
    """The chain of a way along which nothing waits: far more states can be followed then."""
    components = network.components
    used = {each for element in components.of_path(path) for each in element}
    fastest = [float(-components.processes[each].generator.diagonal().min()) for each in used]
    jumps = refreshes.own.every_s * (sum(fastest) + sum(refreshes.helped_per_s))
    most = min(_MOST_PASSED, max(MOST_STATES, int(_MOST_JUMPS / (jumps + 20.0))))
    around = _surroundings(network, path, path.links, _Followed(refreshes.own, ALONG, most))
    return None if around is None else _chain(around, refreshes)


class _Followed(NamedTuple):
    """Whose refreshes are followed, how far they reach, and in how many states at most."""

    refresh: Refresh
    reach: str
    most: int


def _surroundings(
    network: Network, path: Path, links: Sequence[int], how: _Followed
) -> Surroundings | None:
    components = network.components
    refresh = how.refresh
    brokers = {broker for link in links for broker in network.ends[link]} | set(path.brokers)
    needed = {each for broker in brokers for each in components.of_broker[broker]}
    needed |= {each for link in links for each in components.of_link[link]}
    forgets = [
        each for each in path.brokers if components.of_broker[each] or refresh.timeout_s is not None
    ]
    states = joint_states(components, sorted(needed), forgets, refresh.ages, how.most)
    if states is None or not forgets:
        return None
    return Surroundings(
        network=network, path=path, states=states, links=tuple(links), reach=how.reach
    )


def _chain(around: Surroundings, refreshes: Refreshes) -> RefreshChain:
    states, own = around.states, refreshes.own
    generator = states.generator
    for origin, per_s in refreshes.streams:
        after = states.index(around.renewed(states.values, origin))
        place = np.arange(states.count), after
        jumps = sparse.csr_array((np.ones(states.count), place), shape=generator.shape)
        generator = generator + per_s * (jumps - sparse.eye_array(states.count))
    evolution = Evolution(sparse.csr_array(generator))
    after = states.index(around.renewed(states.values, ageing=own.timeout_s is not None))
    gone = states.index(around.oldest_gone(states.values))

    def step(shares: Floats) -> Floats:
        if own.oldest_gone_s is None:
            return moved(after, evolution.shares(shares, own.every_s))
        first = moved(gone, evolution.shares(shares, own.oldest_gone_s))
        return moved(after, evolution.shares(first, own.every_s - own.oldest_gone_s))

    return RefreshChain(
        surroundings=around,
        refreshes=refreshes,
        evolution=evolution,
        after=settled_shares(step, _all_refreshed(states)),
    )


def _all_refreshed(states: JointStates) -> Floats:
    """Shares of states as if all that is up had just been refreshed."""
    values = states.values
    found = np.ones(states.count)
    for each, phase in values.phases.items():
        found *= states.components.processes[each].stationary[phase]
    for broker, age in values.tables.items():
        found *= np.where(states.broker_up(values, broker), age == 0, 1.0)
    return found


def moved(where: Ints, shares: Floats) -> Floats:
    """Shares of states each of which goes somewhere."""
    return np.asarray(np.bincount(where, shares, shares.size), np.float64)
