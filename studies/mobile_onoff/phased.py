r"""The mean response of an ON/OFF queue whose times ON and OFF are of any law, by phases.

A law that has phases is taken as it is, any other as the phase-type law with its mean and c² (at
least 1/24). With Poisson arrivals and exponential services, events there and the phase of the peer
are a quasi-birth-and-death process; R being its rate matrix and π₀ the phases while nobody is
there, E[N] = π₀ R (I − R)⁻² 1, and the mean response is E[N]/λ.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import linalg

from tidings.model.arrays import Floats
from tidings.model.laws import Law, phases

MOST_PHASES = 24  # of one period; a more regular law is taken as Erlang of so many
_MOST_ROUNDS = 64  # of logarithmic reduction: each squares the number of levels looked at
_SETTLED = 1e-15


def phased_response_s(on: Law, off: Law, service_s: float, rate_per_s: float) -> float:
    """Compute the mean time from arrival to the end of service, in seconds; load below 1."""
    periods, connected = _alternating(period_phases(on), period_phases(off))
    size = len(periods)
    up, down = rate_per_s * np.eye(size), np.diag(connected / service_s)
    climbs = _rate_matrix(up, periods - up - down, down)
    above = np.linalg.inv(np.eye(size) - climbs)
    balance = periods - up + climbs @ down
    balance[:, 0] = above.sum(
        axis=1
    )  # one equation follows from the others: the sum takes its place
    empty = linalg.solve(balance.T, np.eye(size)[0])
    return float((empty @ climbs @ above @ above).sum() / rate_per_s)


def _rate_matrix(up: Floats, local: Floats, down: Floats) -> Floats:
    """R: how much a level's phases feed those of the next, by logarithmic reduction."""
    high, low = (np.linalg.solve(-local, each) for each in (up, down))
    reached, path = low.copy(), high.copy()
    for _ in range(_MOST_ROUNDS):
        mixed = np.eye(len(local)) - high @ low - low @ high
        high, low = np.linalg.solve(mixed, high @ high), np.linalg.solve(mixed, low @ low)
        step = path @ low
        reached += step
        path = path @ high
        if np.abs(step).max() <= _SETTLED:
            break
    climbs: Floats = up @ np.linalg.inv(-(local + up @ reached))
    return climbs


def _alternating(on: tuple[Floats, Floats], off: tuple[Floats, Floats]) -> tuple[Floats, Floats]:
    """The generator of periods in turn (1/s), and 1 for the phases that are ON."""
    generator = np.block(
        [
            [on[1], np.outer(-on[1].sum(axis=1), off[0])],
            [np.outer(-off[1].sum(axis=1), on[0]), off[1]],
        ]
    )
    return generator, (np.arange(len(generator)) < on[0].size).astype(np.float64)


def period_phases(law: Law) -> tuple[Floats, Floats]:
    """Give the phases of a law: where they begin, and their generator (1/s)."""
    own = phases(law)
    if own is not None and own.shift_s == 0.0 and 0 < own.initial.size <= MOST_PHASES:
        return own.initial / own.initial.sum(), own.generator
    if law.scv >= 1.0:  # two branches with equal loads
        share = 0.5 * (1.0 + math.sqrt((law.scv - 1.0) / (law.scv + 1.0)))
        shares = np.array([share, 1.0 - share])
        return shares, np.diag(-2.0 * shares / law.mean_s)
    return _stages(law.mean_s, max(law.scv, 1.0 / MOST_PHASES))


def _stages(mean_s: float, scv: float) -> tuple[Floats, Floats]:
    """Tijms' mixture of Erlang laws of k − 1 and k stages, 1/k ≤ c² ≤ 1/(k − 1)."""
    count = max(math.ceil(1.0 / scv - 1e-9), 2)
    fewer = (count * scv - math.sqrt(count * (1.0 + scv) - count**2 * scv)) / (1.0 + scv)
    rate_per_s = (count - fewer) / mean_s
    initial = np.zeros(count)
    initial[0], initial[1] = 1.0 - fewer, fewer
    return initial, rate_per_s * (np.eye(count, k=1) - np.eye(count))
