"""How long handlers take, from what brokers count: events handed out and not yet acknowledged."""

from __future__ import annotations

import math

from scipy.optimize import brentq

from tidings.model.loads import waiting_probability

_MOST_BUSY = 1.0 - 1e-6


def handling_s(in_flight: float, rate_per_s: float, members: int, most: float = math.inf) -> float:
    """Estimate the mean handling time with which a group holds so many events, in seconds.

    Of what a member holds it handles one at a time, so that the others' waiting is no handling:
    events in flight are those of M/M/m, of which no more than ``most`` are handed out at once.
    Where that many always are, all members are busy.

    >>> handling_s(0.5, 10.0, members=1, most=1)  # nothing waits at the member
    0.05
    >>> round(handling_s(1.0, 10.0, members=1), 12)  # half busy, M/M/1
    0.05
    >>> round(handling_s(10.0, 10.0, members=2, most=10), 3)  # never idle
    0.2
    """
    if most <= members:
        return min(in_flight, most) / rate_per_s

    def missing(load: float) -> float:
        return _held(members, load, most) - in_flight

    if missing(_MOST_BUSY) <= 0.0:
        return members / rate_per_s
    return members * float(brentq(missing, 0.0, _MOST_BUSY)) / rate_per_s


def _held(members: int, load: float, most: float) -> float:
    """Compute the mean number in flight: in handling, and waiting at members."""
    beyond = load ** (most - members) if math.isfinite(most) else 0.0
    waiting = waiting_probability(members, members * load) * load * (1.0 - beyond) / (1.0 - load)
    return members * load + waiting
