r"""How long the wait at a queue is, from how unevenly its arrivals count, by Spitzer's identity.

Mean and variance of the work Z found at a random moment are, with Y(t) the work that arrives in t,

.. math:: E[Z] = \int_0^\infty E[(Y(t) - t)^+] \, \frac{dt}{t}, \qquad
   \mathrm{Var} Z = \int_0^\infty E[((Y(t) - t)^+)^2] \, \frac{dt}{t}.

While the server is busy, which is the share ρ of the time, Z is a wait and the rest R of a service,
independent of each other. So E[W] = E[Z]/ρ − E[R] with E[R] = E[S](1 + c²_s)/2 (Brumelle), and
E[W²] = E[Z²]/ρ − 2 E[W] E[R] − E[R²] with E[R²] = E[S³]/3E[S]. Of N(t), the number
of arrivals, two moments are known, λt and λt I(t); it is taken as binomial where I < 1 (which n
periodic streams are within one period), Poisson where I = 1, negative binomial where I > 1, and
all but normal where it is large. Sums of services are those of the law (``service_sums``). So both
moments are exact for Poisson arrivals, whatever the service.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tidings.theory.service_sums import ServiceSums, normal_excess
from tidings.theory.time_grid import TimeGrid

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_COUNTED = 130.0  # arrivals from which on work is taken as all but normal
_MOST_COUNTED = 1500.0  # the same, where streams or services are very uneven
_POISSON = 1e-3  # |I − 1| below which a stream counts as Poisson
_WIDE = 8.0  # standard deviations on either side that are looked at
_TAIL = 30.0  # of an exponential tail, e^−30
_AFTER = 3.0  # of the logarithm of time, looked at beyond the grid
_LAST = 0.1  # of the grid, in the logarithm: what is averaged for the limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A station: how much arrives per second, and its services."""

    rate_per_s: float
    mean_s: float
    sums: ServiceSums

    @property
    def load(self) -> float:
        """ρ = λ E[S]."""
        return self.rate_per_s * self.mean_s


class WaitMoments(NamedTuple):
    """E[W] in seconds and E[W²] in seconds squared, of the wait before service."""

    mean_s: float
    square_s2: float


def wait_moments(
    server: Server, dispersion: Floats, grid: TimeGrid, skew: Floats | None = None
) -> WaitMoments:
    """The first two moments of the wait before service, from I(t) of what arrives; load below 1.

    ``skew``: by how much κ₃ N(t)/E N(t) exceeds that of the law with two moments.
    """
    return from_work(server, *work_cumulants(server, dispersion, grid, skew))


def from_work(server: Server, work_s: float, spread_s2: float) -> WaitMoments:
    """The first two moments of the wait, from mean and variance of the work at a random moment."""
    mean_s, sums = server.mean_s, server.sums
    left_s = 0.5 * mean_s * (1.0 + sums.scv)  # of a service under way, and its second moment
    left_s2 = mean_s**2 * (1.0 + 3.0 * sums.scv + sums.third) / 3.0
    wait_s = max(0.0, work_s / server.load - left_s)
    found = (spread_s2 + work_s**2) / server.load - 2.0 * wait_s * left_s - left_s2
    return WaitMoments(wait_s, max(found, wait_s**2))


def work_cumulants(
    server: Server, dispersion: Floats, grid: TimeGrid, skew: Floats | None = None
) -> tuple[float, float]:
    """Mean and variance of the work in the system at a random moment, in seconds of service."""
    variance = np.maximum(dispersion, 0.0)
    late = grid.times_s >= grid.times_s[-1] * np.exp(-_LAST * grid.step * grid.points)
    # After the grid I is at its limit, and all is normal.
    more = math.ceil(_AFTER / grid.step)
    t_s = grid.times_s[0] * np.exp(grid.step * np.arange(grid.points + more))
    variance = np.concatenate([variance, np.full(more, variance[late].mean())])
    uneven = np.maximum(np.maximum(variance, server.sums.scv), 1.0)
    limit = np.minimum(_COUNTED * uneven, _MOST_COUNTED)
    few = server.rate_per_s * t_s <= limit
    few &= np.cumsum(~few) == 0  # up to the first time it is not so
    excess = np.empty((2, t_s.size))
    excess[:, few] = _counted(server, variance[few], t_s[few])
    excess[:, ~few] = _normal(server, variance[~few], t_s[~few])
    if skew is not None:
        excess[:, : grid.points] += _skewed(server, dispersion, skew, grid.times_s)
        excess = np.maximum(excess, 0.0)
    body = grid.step * (excess.sum(axis=1) - 0.5 * (excess[:, 0] + excess[:, -1]))
    # Before the grid both grow like t.
    mean_s, spread_s2 = excess[:, 0] + body
    return float(mean_s), float(spread_s2)


def _normal(server: Server, variance: Floats, t_s: Floats) -> Floats:
    """E[(Y(t) − t)⁺] and E[((Y(t) − t)⁺)²] with Y all but normal."""
    scale_s2 = server.load * server.mean_s * t_s
    both = variance + server.sums.scv
    third_s3 = scale_s2 * server.mean_s * _third(variance, server.sums)
    third_s3 = np.where(both > 0.0, third_s3, 0.0)
    found = normal_excess((1.0 - server.load) * t_s, scale_s2 * both, third_s3)
    return np.maximum(np.stack(found), 0.0)


def _skewed(server: Server, variance: Floats, skew: Floats, t_s: Floats) -> Floats:
    """What a further third cumulant of the counts adds to both moments."""
    scale_s2 = server.load * server.mean_s * t_s
    around = (1.0 - server.load) * t_s, scale_s2 * np.maximum(variance + server.sums.scv, 1e-9)
    third_s3 = scale_s2 * server.mean_s * skew
    with_it = np.stack(normal_excess(*around, third_s3))
    without = np.stack(normal_excess(*around, np.zeros_like(t_s)))
    found: Floats = with_it - without
    return found


def _third(variance: Floats, sums: ServiceSums) -> Floats:
    """Third cumulant of Y(t) over λ t E[S]³, that of counts as of the laws with two moments."""
    counts = variance * (2.0 * variance - 1.0)
    found: Floats = sums.third + 3.0 * sums.scv * variance + counts
    return found


def _counted(server: Server, variance: Floats, t_s: Floats) -> Floats:
    """The same arrival by arrival: Σ P[N(t) = j] E[(S_1 + … + S_j − t)⁺], and of its square."""
    mean, time = server.rate_per_s * t_s, t_s / server.mean_s
    at, count = _looked_at(mean, variance, time, server.sums.scv)
    if at.size == 0:
        return np.zeros((2, t_s.size))
    shares = _share_of_count(count, mean[at], variance[at])
    first, second = server.sums.over(count, time[at])
    return np.stack(
        [
            np.bincount(at, shares * server.mean_s * first, minlength=t_s.size),
            np.bincount(at, shares * server.mean_s**2 * second, minlength=t_s.size),
        ]
    )


def _looked_at(mean: Floats, variance: Floats, time: Floats, scv: float) -> tuple[Ints, Ints]:
    """Which (time, number of arrivals) matter: neither of them all but impossible.

    ``time`` is in mean services. What is left out is below e^−30 of what is counted.
    """
    spread = _WIDE * np.sqrt(mean * np.maximum(variance, 0.0) + 1.0)
    most = np.ceil(mean + spread + _TAIL * np.maximum(variance, 0.3)).astype(np.int64)
    # j services reach t only if j + 8 √(j c²) + 30 c² > t
    room = np.maximum(time - _TAIL * scv, 0.0)
    root = np.sqrt(0.25 * _WIDE**2 * scv + room) - 0.5 * _WIDE * np.sqrt(scv)
    least = np.maximum(np.floor(root**2), np.floor(mean - spread))
    least = np.maximum(least, 1.0).astype(np.int64)
    sizes = np.maximum(most - least + 1, 0)
    at = np.repeat(np.arange(mean.size), sizes)
    begin = np.cumsum(sizes) - sizes
    count = least[at] + np.arange(at.size) - begin[at]
    return at, count


def _share_of_count(count: Ints, mean: Floats, variance: Floats) -> Floats:
    """P[N = j] of the law with this mean and this ratio of variance to mean."""
    j = count.astype(np.float64)
    shares: Floats = np.exp(special.xlogy(j, mean) - mean - special.gammaln(j + 1.0))
    regular, bursty = variance < 1.0 - _POISSON, variance > 1.0 + _POISSON
    if np.any(regular):
        shares[regular] = _regular(j[regular], mean[regular], variance[regular])
    if np.any(bursty):
        more = variance[bursty] - 1.0
        size = mean[bursty] / more
        shares[bursty] = np.exp(
            special.gammaln(j[bursty] + size)
            - special.gammaln(size)
            - special.gammaln(j[bursty] + 1.0)
            + special.xlog1py(j[bursty], -1.0 / variance[bursty])
            - special.xlogy(size, variance[bursty])
        )
    return shares


def _regular(j: Floats, mean: Floats, variance: Floats) -> Floats:
    """Binomial laws of this mean with the two next whole numbers of trials, mixed to the variance.

    With n trials the variance over the mean is 1 − mean/n. Where the lesser number is below the
    mean, the two whole numbers next to the mean take its place: nothing is more regular.
    """
    trials = mean / (1.0 - variance)
    fewer = np.floor(trials)
    more = np.maximum(fewer + 1.0, np.ceil(mean))
    below = np.floor(mean)
    part = mean - below
    tight = fewer < np.maximum(mean, 1.0)
    at_least = np.where(tight, part * (1.0 - part) / mean, 1.0 - mean / np.maximum(fewer, 1.0))
    at_most = 1.0 - mean / more
    weight = (variance - at_least) / np.maximum(at_most - at_least, 1e-12)
    weight = np.clip(weight, 0.0, 1.0)
    two = np.where(j == below, 1.0 - part, np.where(j == below + 1.0, part, 0.0))
    low = np.where(tight, two, _binomial(j, fewer, mean))
    found: Floats = (1.0 - weight) * low + weight * _binomial(j, more, mean)
    return found


def _binomial(j: Floats, trials: Floats, mean: Floats) -> Floats:
    share = np.minimum(mean / np.maximum(trials, 1.0), 1.0)
    left = np.maximum(trials - j, 0.0)
    found = np.exp(
        special.gammaln(trials + 1.0)
        - special.gammaln(j + 1.0)
        - special.gammaln(left + 1.0)
        + special.xlogy(j, share)
        + special.xlog1py(left, -share)
    )
    possible: Floats = np.where(j <= trials, found, 0.0)
    return possible
