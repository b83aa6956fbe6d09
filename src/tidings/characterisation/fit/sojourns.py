"""The service time with which a queueing model has a mean time in the queue that was measured."""

from __future__ import annotations

import math

from scipy import optimize


def mean_sojourn_s(
    rate_per_s: float, service_s: float, scv: float = 1.0, servers: int = 1
) -> float:
    r"""Compute mean time from entry to departure of an M/G/c queue, in seconds; ∞ when overloaded.

    .. math:: S = s + \frac{1 + c^2}{2} \frac{C(c, \lambda s)\, s}{c - \lambda s}

    with Erlang's :math:`C`, the share of events that wait: exact for one server (Pollaczek and
    Khinchine) and for exponential services, after Lee and Longton otherwise.

    >>> mean_sojourn_s(0.5, 1.0)
    2.0
    """
    load = rate_per_s * service_s
    if load >= servers:
        return math.inf
    blocked = 1.0  # Erlang's B, by its recursion over servers
    for number in range(1, servers + 1):
        blocked = load * blocked / (number + load * blocked)
    waits = blocked / (1.0 - load / servers * (1.0 - blocked))
    return service_s + (1.0 + scv) / 2.0 * waits * service_s / (servers - load)


def service_of_sojourn_s(
    rate_per_s: float, sojourn_s: float, scv: float = 1.0, servers: int = 1
) -> float:
    """Find the mean service with which an M/G/c queue has this mean sojourn, in seconds.

    >>> round(service_of_sojourn_s(0.5, 2.0), 9)
    1.0
    """
    if not (rate_per_s > 0 and sojourn_s > 0):
        return max(sojourn_s, 0.0)
    most_s = min(sojourn_s, servers / rate_per_s)

    def excess(service_s: float) -> float:
        mean_s = mean_sojourn_s(rate_per_s, service_s, scv, servers)
        return 1.0 if math.isinf(mean_s) else 1.0 - sojourn_s / mean_s

    return float(optimize.brentq(excess, most_s * 1e-9, most_s, xtol=1e-12 * most_s))
