"""When a Markov chain has ended: the CDF of a phase-type law, exact to rounding at any time.

Rates of a chain may differ by many orders (a service of milliseconds, a repair of hours), and then
1 − initial · exp(generator · t) · 1 loses its digits: what ends slowly drowns in the rounding of
what moves fast. Here the share that has ended is added up for itself, in steps of doubling length,
and what remains is kept in balance with it (as in the algorithm of Grassmann, Taksar and Heyman for
stationary chains): the smaller of the two is exact to its own last digits, the other makes up the
whole. So the share does not waver where nearly all have ended.

Every time is worked on as if it were alone, for sums are rounded by the order of their terms, which
libraries choose by the size of the whole: the same time gives the same share in any company.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tidings.model.laws.law import Reals, as_times

_TERMS = 20  # of Taylor's series at arguments up to 1: the next is below 1e-18
_MOST_STEPS = 2.0**1000  # of 1/rate, by when every chain has ended that floating point can tell


def ended_share(initial: Reals, generator: Reals, t_s: npt.ArrayLike) -> Reals:
    r"""Compute the share of chains that have left all phases by time t, in seconds.

    It includes chains that never began.

    .. math:: 1 - \alpha e^{T t} 1

    with :math:`\alpha` ``initial`` (what it lacks to 1 is over at time 0) and :math:`T`
    ``generator``, a stable sub-generator in 1/s.

    >>> float(ended_share(np.ones(1), np.array([[-2.0]]), 1e-20))  # no digit is lost
    2e-20
    """
    times = as_times(t_s)
    flat = np.maximum(times.ravel(), 0.0)
    # A power of two above the fastest rate: dividing by it rounds nothing, or a slow way out would
    # be lost in the difference of two fast rates.
    clock_per_s = 2.0 ** math.ceil(math.log2(-np.diag(generator).min()))
    steps = np.minimum(flat, _MOST_STEPS / clock_per_s) * clock_per_s
    whole = np.floor(steps)
    at = np.tile(initial, (flat.size, 1))
    ended = np.full(flat.size, max(1.0 - float(initial.sum()), 0.0))
    _take_part(at, ended, generator / clock_per_s, steps - whole)
    _take_whole(at, ended, generator / clock_per_s, whole)
    remains = _each(at, np.ones((len(initial), 1)))[:, 0]
    ended = np.where(remains < 0.5, 1.0 - remains, np.minimum(ended, 1.0))
    ended[np.isinf(flat)] = 1.0
    return np.where(times < 0, 0.0, ended.reshape(times.shape))


def _take_part(at: Reals, ended: Reals, rates: Reals, part: Reals) -> None:
    """Move every row of ``at`` on by its part of a step (below 1), in place.

    Uniformisation: jumps of a Poisson process of rate 1 between phases, each by I + rates.
    """
    jump = np.column_stack([rates + np.eye(len(rates)), leaving(rates)])
    jumped, left = at.copy(), np.zeros_like(ended)
    weight = np.exp(-part)
    at *= weight[:, None]
    for count in range(1, _TERMS):
        moved = _each(jumped, jump)
        jumped, left = moved[:, :-1], left + moved[:, -1]
        weight = weight * part / count
        at += weight[:, None] * jumped
        ended += weight * left


def _take_whole(at: Reals, ended: Reals, rates: Reals, steps: Reals) -> None:
    """Move every row of ``at`` on by its whole number of steps, in place, a binary digit a time.

    There may be far more steps than an integer counts: a fast chain that hardly ever ends.
    """
    key = rates.tobytes()
    for digit in range(math.frexp(steps.max(initial=0.0))[1]):
        step = _doubled(key, digit)
        if not step[:, :-1].any():  # nobody is left after so many steps
            at[steps >= 2.0**digit] = 0.0
            return
        moving = np.flatnonzero(np.floor(steps / 2.0**digit) % 2.0)
        moved = _each(at[moving], step)
        at[moving], ended[moving] = moved[:, :-1], ended[moving] + moved[:, -1]


@lru_cache(maxsize=128)
def _doubled(key: bytes, digit: int) -> Reals:
    """Find where 2^digit steps lead from each phase; the last column is the share that has ended.

    ``key`` are the rates. Kept, as whoever looks for a quantile asks for them again and again.
    """
    rates = np.frombuffer(key)
    rates = rates.reshape(math.isqrt(rates.size), -1)
    if digit == 0:
        stay, leave = np.eye(len(rates)), np.zeros(len(rates))
        _take_part(stay, leave, rates, np.ones(len(rates)))
        return np.column_stack([stay, leave])
    step = _doubled(key, digit - 1)
    twice = _each(step[:, :-1], step)
    # What stays must make up, with what leaves, exactly the whole.
    stay, leave = twice[:, :-1], step[:, -1] + twice[:, -1]
    total = stay.sum(axis=1)
    leave = np.where(total < 0.5, 1.0 - total, np.minimum(leave, 1.0))
    stay = stay * np.where(total < 0.5, 1.0, (1.0 - leave) / np.maximum(total, 0.5))[:, None]
    return np.column_stack([stay, leave])


def _each(rows: Reals, matrix: Reals) -> Reals:
    """Multiply rows by a matrix, each the same to the last digit whatever rows are beside it.

    By plain sums, in one order on every machine: libraries round by the shape of what they are
    given.
    """
    product: Reals = rows[:, :1] * matrix[0]
    for phase in range(1, len(matrix)):
        product = product + rows[:, phase, None] * matrix[phase]
    return product


def time_to_end(generator: Reals, cost: Reals) -> Reals:
    """Compute the mean cost of a chain until it ends, from each phase, at ``cost`` a second there.

    Of 1 in every phase this is the mean time in seconds; infinite where it overflows. Phases are
    taken out one by one without a subtraction (Grassmann, Taksar and Heyman), so that no digit is
    lost however far apart the rates are.

    >>> float(time_to_end(np.array([[-1.0, 1.0], [1.0, -1.0 - 2**-40]]), np.ones(2))[0] / 2**41)
    1.0000000000004547
    """
    count = len(generator)
    move, leave, total = generator.copy(), leaving(generator), np.array(cost, dtype=np.float64)
    np.fill_diagonal(move, 0.0)
    for phase in range(count - 1, 0, -1):
        away = move[phase, :phase].sum() + leave[phase]
        reach = move[:phase, phase] / away
        move[:phase, :phase] += reach[:, None] * move[phase, :phase]
        leave[:phase] += reach * leave[phase]
        total[:phase] += reach * total[phase]
        move[phase] /= away
        total[phase] /= away
        np.fill_diagonal(move, 0.0)  # to come back is no way on
    total[0] /= leave[0]
    for phase in range(1, count):
        total[phase] += (move[phase, :phase] * total[:phase]).sum()
    return total


def leaving(rates: Reals) -> Reals:
    """Compute the rates, in 1/s, at which phases end the chain.

    A rounding error in a row's sum is no rate.
    """
    sums = np.array([-math.fsum(row) for row in rates])
    return np.where(sums > -1e-15 * np.diag(rates), np.maximum(sums, 0.0), 0.0)
