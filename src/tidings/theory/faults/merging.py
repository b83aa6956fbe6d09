"""Many processes that are needed together, taken as one where their joint phases are too many.

While all of them are up the first to fail ends that: with exponential times it is up for an
exponential time too. Until all are up again takes a time D that the renewal equation knows: with
h(t) = P[all up at t | all up at 0] − P[all up], h_k = ∫ t^k h dt, A = P[all up] and F failures a
second, E[D] = (1 − A)/(A F), E[D²]/2 = h_0/(A² F) and E[D³]/6 = (A h_1 + h_0²)/(A³ F). D is a
mixture of exponential times, and is taken as that of two which has these three moments: P[all up],
how often they fail, and mean and variance of the wait until all are up are right.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tidings.theory.faults.processes import Process, alternating
from tidings.theory.faults.waiting import Hop
from tidings.theory.stages import Chain, Floats

_TIMES, _EARLY, _LATE = 4_000, 1e-12, 60.0  # of the integrals, in units of the rates
_ALIKE = 1e-9  # squared variation between the two parts from which on they are told apart


def put_together(
    processes: Sequence[Process], hops: Sequence[Hop], first: Sequence[int]
) -> tuple[tuple[Process, ...], list[Hop], tuple[int, ...]]:
    """The same hops, where what fails independently and is needed by the same hops is one process.

    Only processes with one phase up and one down are put together; ``first`` are known to be up at
    the start.
    """
    alike: dict[tuple[tuple[int, ...], bool], list[int]] = {}
    for each in sorted(set().union(*hops)):
        if len(processes[each].up) == 2 and processes[each].ready is None:
            mine = tuple(number for number, hop in enumerate(hops) if each in hop)
            alike.setdefault((mine, each in first), []).append(each)
    found = list(processes)
    instead: dict[int, int] = {}
    for members in alike.values():
        if len(members) > 1:
            instead |= dict.fromkeys(members, len(found))
            found.append(all_up([processes[each] for each in members]))
    merged: list[Hop] = [
        {
            instead.get(each, each): found[instead[each]].up if each in instead else phases
            for each, phases in hop.items()
        }
        for hop in hops
    ]
    return tuple(found), merged, tuple(sorted({instead.get(each, each) for each in first}))


def all_up(processes: Sequence[Process]) -> Process:
    """The process that is up when all of some independent ones with exponential times are.

    >>> from tidings.model.laws import Exponential
    >>> from tidings.model.behaviour import Failure
    >>> from tidings.theory.faults.processes import exponential
    >>> often = exponential(Failure(up=Exponential(mean_s=9.0), down=Exponential(mean_s=1.0)))
    >>> both = all_up([often, often])
    >>> round(both.availability, 12), round(both.breaks_per_s, 12)  # .9², and .81 · 2/9
    (0.81, 0.18)
    """
    ups = np.array([each.availability for each in processes])
    fails_per_s = np.array([each.breaks_per_s for each in processes]) / ups
    settles_per_s = fails_per_s / (1.0 - ups)
    share, per_s = float(ups.prod()), float(fails_per_s.sum())
    times_s = np.geomspace(_EARLY / settles_per_s.max(), _LATE / settles_per_s.min(), _TIMES)
    left = (ups + (1.0 - ups) * np.exp(-np.multiply.outer(times_s, settles_per_s))).prod(axis=1)
    log_step = math.log(times_s[1] / times_s[0])
    area, tilted = (float(((left - share) * times_s**k).sum()) * log_step for k in (1, 2))
    down = _two_parts(
        (1.0 - share) / (share * per_s),
        area / (share**2 * per_s),
        (share * tilted + area**2) / (share**3 * per_s),
    )
    return alternating((np.ones(1), np.array([[-per_s]])), down)


def _two_parts(first: float, second: float, third: float) -> Chain:
    """The mixture of two exponential times with E[D], E[D²]/2 and E[D³]/6.

    Their means are the roots of x² − b x + c, as these are the moments of a mean drawn of the two.
    """
    spread = second - first**2
    if spread <= _ALIKE * first**2:
        return np.ones(1), np.array([[-1.0 / first]])
    half_b = 0.5 * (third - first * second) / spread
    c = (first * third - second**2) / spread
    apart = math.sqrt(max(half_b**2 - c, 0.0))
    long_s = half_b + apart
    short_s = c / long_s
    share = (first - short_s) / (long_s - short_s)
    starts: Floats = np.array([1.0 - share, share])
    return starts, np.diag([-1.0 / short_s, -1.0 / long_s])
