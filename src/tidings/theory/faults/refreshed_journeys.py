"""The states in which an event waits whose brokers forget subscriptions until the next refresh.

Such a broker keeps what it has; what it gets from others it takes, and keeps too. All that a way
depends on is known at every moment, so each joint state leads to one waiting state, or to none: a
refresh that reaches the broker that has the event, all behind it up, takes it through at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from tidings.theory.faults.joint_states import Ints, JointStates, Values, joint_states
from tidings.theory.faults.processes import Bools, Floats
from tidings.theory.faults.refresh_chain import JOINED, RefreshChain, Surroundings

_THROUGH = -1  # where an event leads that need not wait any more


@dataclass(frozen=True, kw_only=True)
class RefreshedJourney:
    """Waiting states of all hops, then for each hop one in which the wait has ended there."""

    waiting: int  # how many of the states are waiting ones
    hop_of: Ints  # of each waiting state
    entering: Ints  # of each joint state of the chain: where an event leads; below 0: through
    generator: sparse.csr_array  # 1/s, other homes' refreshes included
    renewal: sparse.csr_array  # what the home's own refresh does
    oldest_gone: sparse.csr_array  # what a time-out of the oldest tables does

    @property
    def hops(self) -> int:
        """How many hops there are."""
        return int(self.generator.shape[0]) - self.waiting

    def initial(self, shares: Floats) -> Floats:
        """The shares of the states of events that start in joint states of the chain."""
        held = self.entering >= 0
        size = int(self.generator.shape[0])
        return np.asarray(np.bincount(self.entering[held], shares[held], size), np.float64)


def refreshed_journey(chain: RefreshChain) -> RefreshedJourney:
    """All states in which an event waits on the way of a chain."""
    around = chain.surroundings
    spaces = list(_spaces(around))
    waiting = [~_met(around, states, hop) for hop, states in enumerate(spaces)]
    offsets = np.concatenate([[0], np.cumsum([int(each.sum()) for each in waiting])])
    leads = _leads(spaces, waiting, offsets)
    size = int(offsets[-1]) + len(spaces)

    def mapped(change: Callable[[Values], Values]) -> sparse.csr_array:
        """The waiting states after a change at one moment; ended waits stay ended."""
        found = np.arange(size)
        for hop, states in enumerate(spaces):
            after = leads[hop][states.index(change(states.values))][waiting[hop]]
            found[offsets[hop] : offsets[hop + 1]] = _or_ended(after, int(offsets[-1]) + hop)
        return sparse.csr_array((np.ones(size), (np.arange(size), found)), shape=(size, size))

    ageing = chain.refreshes.own.timeout_s is not None
    unit = sparse.eye_array(size)
    generator = _rates(spaces, leads, offsets)
    for origin, per_s in chain.refreshes.streams:
        jumps = mapped(partial(around.renewed, origin=origin))
        generator = generator + per_s * (jumps - unit)
    return RefreshedJourney(
        waiting=int(offsets[-1]),
        hop_of=np.repeat(np.arange(len(spaces)), np.diff(offsets)),
        entering=leads[0],
        generator=sparse.csr_array(generator),
        renewal=mapped(partial(around.renewed, ageing=ageing)),
        oldest_gone=mapped(around.oldest_gone),
    )


def _spaces(around: Surroundings) -> Iterator[JointStates]:
    """Of each hop the joint states that matter from there on.

    Where refreshes go any way, what lies behind matters too, but for what is known there.
    """
    states, path = around.states, around.path
    yield states
    last = len(path.brokers) - (0 if path.brokers[-1] in states.tables else 1)
    for hop in range(1, last):
        needs = states.components.of_path(path)[2 * hop :]
        ahead = {each for needed in needs for each in needed}
        processes = [p for p in states.processes if around.reach == JOINED or p in ahead]
        tables = [broker for broker in path.brokers[hop:] if broker in states.tables]
        found = joint_states(states.components, processes, tables, states.ages)
        assert found is not None  # it has no limit
        yield found


def _met(around: Surroundings, states: JointStates, hop: int) -> Bools:
    """In which joint states the needs of a hop are met; the last broker's is to know."""
    path, values = around.path, states.values
    able = states.able(values, path.brokers[hop])
    if hop == len(path.links):
        return able
    link = states.up(values, states.components.of_link[path.links[hop]])
    return able & link & states.broker_up(values, path.brokers[hop + 1])


def _leads(spaces: list[JointStates], waiting: list[Bools], offsets: Ints) -> list[Ints]:
    """Of each hop's joint states: the waiting state that an event there leads to."""
    found: list[Ints] = []
    for hop in range(len(spaces) - 1, -1, -1):
        states, held = spaces[hop], waiting[hop]
        lead = np.full(states.count, _THROUGH)
        if found:
            lead = found[-1][spaces[hop + 1].index(states.values)]
        found.append(np.where(held, offsets[hop] + np.cumsum(held) - 1, lead))
    return found[::-1]


def _or_ended(leads: Ints, ended: int) -> Ints:
    return np.where(leads == _THROUGH, ended, leads)


def _rates(spaces: list[JointStates], leads: list[Ints], offsets: Ints) -> sparse.csr_array:
    """The rates between waiting states, and to those of ended waits, by what fails."""
    rows, columns, rates = [], [], []
    size = int(offsets[-1]) + len(spaces)
    for hop, states in enumerate(spaces):
        own = states.generator.tocoo()
        here, there = own.coords
        held = (leads[hop][here] >= offsets[hop]) & (leads[hop][here] < offsets[hop + 1])
        chosen = held & (here != there)
        rows.append(leads[hop][here[chosen]])
        columns.append(_or_ended(leads[hop][there[chosen]], int(offsets[-1]) + hop))
        rates.append(own.data[chosen])
    place = np.concatenate(rows), np.concatenate(columns)
    moving = sparse.csr_array((np.concatenate(rates), place), shape=(size, size))
    leaving = np.asarray(moving.sum(axis=1)).ravel()
    return sparse.csr_array(moving - sparse.diags_array(leaving))
