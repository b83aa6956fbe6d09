"""Ways around what is down, with brokers that have their subscriptions back at the next refresh.

An event follows its usual way wherever that is up, and is sent round what is down to the next
broker of it that can be reached. So it meets all brokers of its usual way that are joined to its
home, in this order; the first of them that does not know the subscription loses it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidings.theory.faults.components import Path
from tidings.theory.faults.connectivity import joined
from tidings.theory.faults.disjoint_products import Network
from tidings.theory.faults.processes import Bools, Floats, keeps_table
from tidings.theory.faults.reachability import graphs, reached_given
from tidings.theory.faults.refresh import Passed, Refresh, helped_processes
from tidings.theory.faults.refresh_chain import JOINED, RefreshChain


class Known(NamedTuple):
    """Probabilities that the home is up and no broker met has lost the subscription."""

    reached: float  # and that there is a way to the end
    cut_off: float  # and that there is none


class Meeting(NamedTuple):
    """What an event meets that is published in a joint phase of a chain."""

    home: Bools  # its home is up
    way: Bools  # all of its usual way is up
    reached: Floats  # P[there is a way to the end]
    known: Bools  # all brokers of the usual way that it meets know the subscription

    def waits(self, survives: float) -> Floats:
        """P[it must wait for its usual way], given that copies sent round survive so often."""
        through = np.where(self.way, 1.0, self.reached * survives)
        return np.asarray(1.0 - self.known * through, np.float64)


def meeting(chain: RefreshChain) -> Meeting:
    """What events meet in each joint state.

    Where what is beside the way is not followed, its brokers that are up count as met. Raises
    TooWideError where that cannot be worked out.
    """
    around, states = chain.surroundings, chain.surroundings.states
    brokers, values = around.path.brokers, states.values
    needed = {e for element in states.components.of_path(around.path) for e in element}
    if around.reach == JOINED:
        joined = around.joined(values, brokers[0])
        reached = joined[brokers[-1]].astype(np.float64)
    else:
        joined = {broker: states.broker_up(values, broker) for broker in brokers}
        processes = states.components.processes
        ups = {each: processes[each].up[values.phases[each]] for each in needed}
        reached = reached_given(around.network, around.path, ups)
    known = [~joined[broker] | states.able(values, broker) for broker in brokers]
    return Meeting(
        home=joined[brokers[0]],
        way=states.up(values, needed),
        reached=reached,
        known=np.all(known, axis=0),
    )


def followed_shares(chain: RefreshChain) -> Known:
    """Whether an event gets through, is cut off, or (the rest) meets a broker that forgot."""
    met, shares = meeting(chain), chain.mean_shares
    return Known(
        float(shares @ (met.reached * met.known)),
        float(shares @ (met.home * (1.0 - met.reached) * met.known)),
    )


def followed_passed(chain: RefreshChain) -> Passed:
    """The checks of a way along which events are sent, whatever is down."""
    around, states = chain.surroundings, chain.surroundings.states
    left = chain.mean_shares
    up, table = [], []
    for place, needed in enumerate(states.components.of_path(around.path)):
        left = left * states.up(states.values, needed)
        up.append(float(left.sum()))
        if place % 2 == 0:
            left = left * states.able(states.values, around.path.brokers[place // 2])
        table.append(float(left.sum()))
    return Passed(up=tuple(up), table=tuple(table), off=0.0)


def refreshed_shares(
    network: Network, usual: Path, refresh: Refresh, helped_per_s: tuple[float, ...]
) -> Known:
    """The same where only the way is followed: refreshes are taken to reach all that is up.

    A broker knows the subscription if it has been up since the last refresh, at a moment U before,
    or another home has refreshed it meanwhile. Raises TooWideError where the network cannot be
    followed exactly.
    """
    brokers = [network.components.of_broker[broker] for broker in usual.brokers]
    weights, lasting = _lasting(network, brokers, refresh, helped_per_s)
    found = np.zeros(2)
    for _, share, graph in graphs(network, usual.brokers[0], usual.brokers[-1]):
        part = graph.between(usual.brokers[0], usual.brokers[-1])
        labels, shares = joined(part, usual.brokers, up=usual.brokers[:1])
        met = labels == 1
        knows = np.ones((weights.size, shares.size))
        for process, share_left in lasting.items():
            mine = [place for place, needed in enumerate(brokers) if process in needed]
            knows *= np.where(met[:, mine].any(axis=1), share_left[:, None], 1.0)
        passes = (weights @ knows) * shares * share
        found += [passes[met[:, -1]].sum(), passes[~met[:, -1]].sum()]
    return Known(float(found[0]), float(found[1]))


def refreshed_at_least(
    network: Network,
    usual: Path,
    refresh: Refresh,
    helped_per_s: tuple[float, ...],
    reached: float,
) -> Known:
    """The same as if every event met all brokers of its usual way, where more is not known."""
    brokers = [network.components.of_broker[broker] for broker in usual.brokers]
    weights, lasting = _lasting(network, brokers, refresh, helped_per_s)
    home = network.components.all_up(brokers[0])
    every = float(weights @ math.prod(lasting.values(), start=np.ones(weights.size)))
    first = math.prod((lasting[each] for each in brokers[0]), start=np.ones(weights.size))
    return Known(reached * every, (home - reached) * float(weights @ first))


def _lasting(
    network: Network,
    brokers: list[tuple[int, ...]],
    refresh: Refresh,
    helped_per_s: tuple[float, ...],
) -> tuple[Floats, dict[int, Floats]]:
    """Weights of moments since a refresh, and of each process P[subscriptions known | up]."""
    helped = helped_processes(brokers, helped_per_s)
    processes = {each: network.components.processes[each] for each in helped}
    rates = [float(-each.generator.diagonal().min()) for each in processes.values()]
    times_s, weights = refresh.moments(max([*rates, *helped_per_s], default=0.0))
    if refresh.timeout_s is not None and refresh.timeout_s <= refresh.every_s:
        weights = weights * refresh.holds(0, times_s)
    return weights, {
        each: keeps_table(process, times_s, helped[each]) / process.availability
        for each, process in processes.items()
    }
