"""Queues of which the whole law is known in closed form."""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize


def crommelin(load, x):
    """P[wait ≤ x services] in an M/D/1 queue."""
    return (1.0 - load) * math.fsum(
        (load * (k - x)) ** k / math.factorial(k) * math.exp(-load * (k - x))
        for k in range(math.floor(x) + 1)
    )


def gi_m_1(every, service_s, t_s):
    """P[sojourn ≤ t] in a GI/M/1 queue: exponential of rate μ(1 − σ), with σ = F*(μ(1 − σ))."""
    rate = 1.0 / service_s

    def off(share):
        return float(every.transform(np.array([rate * (1.0 - share)])).real[0]) - share

    waiting = optimize.brentq(off, 0.0, 1.0 - 1e-9, xtol=1e-15)
    return -math.expm1(-rate * (1.0 - waiting) * t_s)


def erlang_c(servers, offered):
    """Compute the share of events that wait in M/M/c, offered so many Erlangs."""
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    return servers * blocked / (servers - offered * (1.0 - blocked))
