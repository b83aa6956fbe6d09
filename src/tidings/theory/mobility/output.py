r"""What leaves an ON/OFF centre: nothing while the peer is away, then a backlog at full speed.

Arrivals Poisson with rate λ, ON exponential (ν = 1/T_ON), OFF with transform B*, completions C*.
After a departure the peer is ON and leaves behind as many events as arrived during a sojourn, so

.. math:: h^*(z) = \frac{C^*(z)}{1 - C^*(z)} \left(
   1 - T^*(\lambda(1 - g)) \frac{r(z)}{r(z + \lambda(1 - g))} \right), \quad
   r(z) = z + \nu(1 - B^*(z)),

is the transform of the rate of departures at a time after a departure; T* is that of the sojourn
and g = C*(z + λ(1 − g)) that of a busy period begun while ON. The dispersion of the counts follows,

.. math:: I(t) - 1 = \frac{2}{t} \int_0^t (t - u)(h(u) - \lambda) \, du.

It is 1 at once and 1 after long times, and far above 1 at times like OFF: a stream that is bursty
to queues that recover within such times, and not to others. One number a stream (QNA) has only the
c² of the intervals between departures.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tidings.model.laws import Deterministic
from tidings.theory.inversion import euler_rule
from tidings.theory.mobility.centre import OnOff
from tidings.theory.stages import Complexes, Floats

_TERMS = 17  # of the inversion: good to about 1e-8, at corners (constant services) to about 5e-3
_LONG = 3e3  # recoveries from an absence, after which a limit is reached
_MOST_ROUNDS = 400
_SETTLED = 1e-13
_INSTANT = 1e-3  # of the shortest time asked for: a service that takes no time is given this much
_NUDGE = 1e-4  # of a rate, by which a transform is moved to see its slope


def departing_dispersion(centre: OnOff, rate_per_s: float, t_s: Floats) -> Floats:
    """I(t) − 1 of what leaves a centre with Poisson arrivals, at times t > 0; load below 1.

    Exact for exponential ON; other ON laws count by their mean.
    """
    if centre.service.mean_s == 0.0:
        brief = Deterministic(value_s=_INSTANT * min(float(t_s.min()), centre.off.mean_s))
        centre = replace(centre, service=brief)
    nodes, weights = euler_rule(_TERMS)
    # After long the counts' variance is that of Poisson arrivals and a constant.
    recovery_s = (centre.off.mean_s + centre.demand_s) / (1.0 - centre.load(rate_per_s))
    asked_s = np.minimum(t_s, _LONG * recovery_s)
    z: Complexes = nodes / asked_s[:, None]
    beyond = (_departures_after_one(centre, rate_per_s, z) - rate_per_s / z) / z**2
    found: Floats = 2.0 * (beyond.real @ weights) / (asked_s * t_s)
    return found


def _departures_after_one(centre: OnOff, rate_per_s: float, z: Complexes) -> Complexes:
    """h*(z)."""
    busy = _busy_period(centre, rate_per_s, z)
    arrived = rate_per_s * (1.0 - busy)
    done = _completed(centre, z)
    idle = _sojourn(centre, rate_per_s, arrived) * _away(centre, z) / _away(centre, z + arrived)
    found: Complexes = done / (1.0 - done) * (1.0 - idle)
    return found


def _away(centre: OnOff, z: Complexes) -> Complexes:
    """r(z) = z + ν (1 − B*(z)): a time ON as it is felt by one who waits through absences."""
    value: Complexes = z + (1.0 - centre.off.transform(z)) / centre.on.mean_s
    return value


def _completed(centre: OnOff, z: Complexes) -> Complexes:
    return centre.service.transform(_away(centre, z))


def _sojourn(centre: OnOff, rate_per_s: float, z: Complexes) -> Complexes:
    """T*(z) for Poisson arrivals."""
    done = _completed(centre, z)
    idle = (1.0 - centre.load(rate_per_s)) / centre.slowdown
    value: Complexes = idle * _away(centre, z) * done / (z - rate_per_s * (1.0 - done))
    return value


def _busy_period(centre: OnOff, rate_per_s: float, z: Complexes) -> Complexes:
    """G = C*(z + λ(1 − g)), by steps of which every third is Aitken's."""

    def step(value: Complexes) -> Complexes:
        return _completed(centre, z + rate_per_s * (1.0 - value))

    busy = _completed(centre, z + rate_per_s)
    for _ in range(_MOST_ROUNDS):
        once = step(busy)
        twice = step(once)
        bend = twice - 2.0 * once + busy
        safe = np.abs(bend) > 1e-300
        jump = busy - (once - busy) ** 2 / np.where(safe, bend, 1.0)
        change = float(np.abs(twice - once).max())
        busy = np.where(safe & (np.abs(jump) < 1.0), jump, twice)
        if change <= _SETTLED:
            return twice
    return busy


def departing_scv(centre: OnOff, rate_per_s: float) -> float:
    """c² of the intervals between departures, Poisson arrivals, exponential ON; load below 1.

    An interval is a completion, and where the centre was left empty also the time until an event
    has come and the peer is there for it.
    """
    rate, leaving_per_s = rate_per_s, 1.0 / centre.on.mean_s
    asked = np.array([rate], dtype=np.complex128)
    empty = float(_sojourn(centre, rate, asked)[0].real)  # P[nobody arrived during a sojourn]
    nobody = float(centre.off.transform(asked)[0].real)  # P[nobody arrives during an OFF]
    nudged = centre.off.transform(rate * np.array([1.0 + _NUDGE, 1.0 - _NUDGE])).real
    off_if_nobody_s = float(nudged[1] - nudged[0]) / (2.0 * _NUDGE * rate)
    off_s, off_s2 = centre.off.mean_s, centre.off.mean_s**2 * (1.0 + centre.off.scv)
    first_s = 1.0 / (rate + leaving_per_s)  # until an event comes or the peer goes
    goes = leaving_per_s * first_s
    mean_s = (first_s + goes * off_s) / (1.0 - goes * nobody)
    after_s = goes * (off_s + nobody * mean_s)
    square_s2 = 2.0 * first_s**2 + 2.0 * first_s * after_s
    square_s2 += goes * (off_s2 + 2.0 * off_if_nobody_s * mean_s)
    square_s2 /= 1.0 - goes * nobody
    whole_s2 = centre.demand_square_s2 + empty * (2.0 * centre.demand_s * mean_s + square_s2)
    return rate**2 * whole_s2 - 1.0
