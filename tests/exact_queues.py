"""Queues of which the whole law is known in closed form."""

from __future__ import annotations

import math

import numpy as np
from scipy import linalg, optimize, stats


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


def late_with_geometric_waits(waits, ratio, servers, service_s, t_s):
    """P[sojourn > t] where a share waits for an exponential time, and service is exponential.

    Who finds n ≥ c events there does so with a probability that falls by ``ratio`` with every one
    more, as in GI/M/c; so its wait is exponential with the rate c μ (1 − ratio).
    """
    served, shrinks = 1.0 / service_s, servers * (1.0 - ratio) / service_s
    alone = math.exp(-served * t_s)
    if math.isclose(served, shrinks, rel_tol=1e-9):
        return alone * (1.0 + waits * served * t_s)
    both = (served * math.exp(-shrinks * t_s) - shrinks * alone) / (served - shrinks)
    return (1.0 - waits) * alone + waits * both


def m_m_c(servers, load, service_s, t_s):
    """P[sojourn ≤ t] in M/M/c."""
    waits = erlang_c(servers, servers * load)
    return 1.0 - late_with_geometric_waits(waits, load, servers, service_s, t_s)


def h2_m_c(servers, shares, means_s, service_s, t_s, most=500):
    """P[sojourn ≤ t] with hyperexponential intervals: what arrivals find, from the Markov chain.

    States are (events there, kind of the interval that runs), up to ``most`` events that wait.
    """
    ends, shares = 1.0 / np.array(means_s), np.array(shares)
    levels = servers + most
    rates = np.zeros((2 * levels, 2 * levels))
    for number in range(levels):
        for kind in (0, 1):
            at = 2 * number + kind
            above = 2 * min(number + 1, levels - 1)
            rates[at, above : above + 2] += ends[kind] * shares
            if number:
                rates[at, at - 2] += min(number, servers) / service_s
            rates[at, at] -= rates[at].sum()
    rates[:, 0] = 1.0  # instead of one balance: shares add up to 1
    of_states = np.linalg.solve(rates.T, np.eye(2 * levels)[0])
    found = of_states.reshape(levels, 2) @ ends
    found /= found.sum()
    ratio = found[servers + 51] / found[servers + 50]
    return 1.0 - late_with_geometric_waits(
        found[servers:].sum(), ratio, servers, service_s, t_s
    )  # fmt: skip


def m_d_c(servers, load, x, most=500):
    """P[wait ≤ x services] in M/D/c (Franx), from how many are there a service apart (Crommelin).

    What is there after one service time are those who waited before, and who came since.
    """
    offered, levels = servers * load, servers + most
    come = stats.poisson.pmf(np.arange(levels), offered)
    later = np.zeros((levels, levels))
    for number in range(levels):
        left = max(number - servers, 0)
        later[number, left:] = come[: levels - left]
    later -= np.eye(levels)
    later[:, 0] = 1.0
    there = np.linalg.solve(later.T, np.eye(levels)[0])
    at_most = np.cumsum(there)[servers:]  # waiting
    whole = math.floor(x) + 1
    terms = stats.poisson.pmf(np.arange(whole * servers), offered * (whole - x))
    return float(terms @ at_most[whole * servers - 1 - np.arange(whole * servers)])


def m_d_1_k(load, room):
    """P[admitted] in M/D/1 with room for so many, the one in service included (Cohen).

    π are the numbers that a service leaves behind; 1 / (π₀ + ρ) are admitted.
    """
    come = stats.poisson.pmf(np.arange(room), load)
    later = np.zeros((room, room))
    for number in range(room):
        left = max(number - 1, 0)
        later[number, left : room - 1] = come[: room - 1 - left]
        later[number, room - 1] = 1.0 - later[number].sum()
    later -= np.eye(room)
    later[:, 0] = 1.0
    behind = np.linalg.solve(later.T, np.eye(room)[0])
    return 1.0 / (behind[0] + load)


def urgent_of_two(rates_per_s, service_s, t_s):
    """P[sojourn ≤ t] of the urgent in M/M/1 that interrupts nobody.

    Whoever finds the server busy waits for the service met and those of its own kind.
    """
    urgent, load = rates_per_s[0], sum(rates_per_s) * service_s
    return 1.0 - late_with_geometric_waits(load, urgent * service_s, 1, service_s, t_s)


def m_m_1_shared(load, service_s, t_s, most=400):
    """P[sojourn ≤ t] in M/M/1 with processor sharing, from the chain of those who share."""
    rate, shared = load / service_s, np.arange(1.0, most + 1.0)  # with so many, oneself included
    others_leave = (shared - 1.0) / shared / service_s
    moves = np.diag(np.full(most - 1, rate), 1) + np.diag(others_leave[1:], -1)
    moves -= np.diag(np.append(np.full(most - 1, rate), 0.0) + 1.0 / service_s)
    found = (1.0 - load) * load ** (shared - 1.0)
    return 1.0 - float((found @ linalg.expm(moves * t_s)).sum())
