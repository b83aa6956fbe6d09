"""Ways around what is down, with brokers that have their subscriptions back at the next refresh.

An event follows its usual way wherever that is up: a broker of it that is up and does not know the
subscription stops the event, one that is down is gone round. Refreshes go round failures too, so
they are taken to reach every broker that is up.
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np

from tidings.prediction.faults.components import Path
from tidings.prediction.faults.connectivity import TooWideError
from tidings.prediction.faults.disjoint_products import Network
from tidings.prediction.faults.processes import Floats
from tidings.prediction.faults.reachability import WayStates, way_states
from tidings.prediction.faults.refresh import Refresh


def known_share(network: Network, usual: Path, refresh: Refresh) -> float:
    """P[the brokers of the usual way that are up know the subscription | there is a way].

    A broker knows it if it has been up since the last refresh, at a moment U before. Where the
    states of the way cannot be followed, all its brokers are taken to be needed.
    """
    components = network.components
    brokers = [components.of_broker[broker] for broker in usual.brokers]
    involved = sorted({each for needed in brokers for each in needed})
    processes = [components.processes[each] for each in involved]
    fastest = max((float(-each.generator.diagonal().min()) for each in processes), default=0.0)
    times_s, weights = refresh.moments(fastest)
    if refresh.timeout_s is not None and refresh.timeout_s <= refresh.every_s:
        weights = weights * refresh.holds(0, times_s)
    # Of each process: P[up without a break since the refresh | up], at each moment.
    lasting = [each.stays_up(times_s) / each.availability for each in processes]
    states = None
    if len(usual.brokers) > 1:
        with suppress(TooWideError):
            states = way_states(network, usual)
    if states is None:
        return float(weights @ math.prod(lasting, start=np.ones(times_s.size)))
    total = states.shares * states.reached
    left = np.ones((times_s.size, total.size))
    for each, share in zip(involved, lasting, strict=True):
        needed = _needed(states, brokers, each)
        left *= np.where(needed, share[:, None], 1.0)
    return float(weights @ (left @ total)) / float(total.sum())


def _needed(states: WayStates, brokers: list[tuple[int, ...]], process: int) -> Floats:
    """In which joint phases some broker of the way is up that depends on a process."""
    ups = [states.up[2 * place] for place, needed in enumerate(brokers) if process in needed]
    found: Floats = np.any(ups, axis=0)
    return found
