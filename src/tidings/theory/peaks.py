r"""Waits behind streams that come in bursts of a known speed: backlogs of peers that were away.

Spitzer's identity gives mean and variance of the work from E[(Y(t) − t)⁺] and E[((Y(t) − t)⁺)²]
(``workload``). A stream that cannot
bring more than its ``peak_per_s`` for long is Poisson at a rate of which the share of the peak
follows a beta law, with the mean and the dispersion I(t) that are known. For Poisson streams it is
exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tidings.theory.service_sums import normal_excess
from tidings.theory.time_grid import TimeGrid
from tidings.theory.workload import Server, WaitMoments, from_work

Floats = NDArray[np.float64]

# Shares at which the rate is looked at, below and at the peak; rare high rates matter most.
_BELOW, _ABOVE = np.linspace(0.0, 1.0, 7)[:-1], np.geomspace(1.0, 1e-3, 14)
_COUNTED = 130.0  # arrivals from which on work is taken as all but normal
_MOST_COUNTED = 1500.0  # the same, where services are very uneven
_WIDE, _TAIL = 8.0, 30.0  # standard deviations, and arrivals, that are looked at beyond the mean


def wait_moments(
    server: Server, dispersion: Floats, grid: TimeGrid, peak_per_s: float
) -> WaitMoments:
    """The first two moments of the wait before service of a stream with a peak; load below 1."""
    return from_work(server, *_work_cumulants(server, dispersion, grid, peak_per_s))


def extra_work(
    load: float, service_s: float, scv: float, dispersion: Floats, grid: TimeGrid
) -> tuple[float, float]:
    """How much more work than Poisson arrivals uneven ones make: its mean and its variance.

    Work is taken as normal, for services so uneven that their sums cannot be added up one by one
    (interrupted for long, and rarely): only the difference to Poisson arrivals is approximated.
    """
    t_s = grid.times_s
    even = np.ones(t_s.size)

    def excess(variance: Floats) -> Floats:
        spread_s2 = load * service_s * t_s * np.maximum(variance + scv, 1e-12)
        return np.stack(normal_excess((1.0 - load) * t_s, spread_s2, np.zeros(t_s.size)))

    more = excess(dispersion) - excess(even)
    mean_s, spread_s2 = grid.step * (more.sum(axis=1) - 0.5 * (more[:, 0] + more[:, -1]))
    return float(mean_s), float(spread_s2)


def _work_cumulants(
    server: Server, dispersion: Floats, grid: TimeGrid, peak_per_s: float
) -> tuple[float, float]:
    """Mean and variance of the work in the system at a random moment, in seconds of service."""
    t_s, share = grid.times_s, min(server.rate_per_s / peak_per_s, 1.0 - 1e-9)
    variance = np.maximum(dispersion - 1.0, 0.0) * server.rate_per_s / (peak_per_s**2 * t_s)
    variance = np.clip(variance, 1e-9 * share**2, 0.999 * share * (1.0 - share))
    size = share * (1.0 - share) / variance - 1.0
    # A stream that is all or nothing is at its peak for this share of time: cut there.
    edges = np.concatenate([(1.0 - share) * _BELOW, 1.0 - share * _ABOVE, [1.0]])
    weights, middles = np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    of_peak = special.betaincinv(share * size[:, None], (1.0 - share) * size[:, None], middles)
    of_peak *= share / np.maximum(of_peak @ weights, 1e-300)[:, None]
    mean = (peak_per_s * t_s)[:, None] * np.minimum(of_peak, 1.0)
    excess = _poisson_excess(server, mean.ravel(), np.repeat(t_s, weights.size))
    by_time = excess.reshape(2, *mean.shape) @ weights
    body = grid.step * (by_time.sum(axis=1) - 0.5 * (by_time[:, 0] + by_time[:, -1]))
    # Before the grid both grow like t.
    mean_s, spread_s2 = by_time[:, 0] + body
    return float(mean_s), float(spread_s2)


def _poisson_excess(server: Server, mean: Floats, t_s: Floats) -> Floats:
    """E[(Y − t)⁺] and E[((Y − t)⁺)²] where so many arrivals are expected, Poisson."""
    found = np.zeros((2, t_s.size))
    few = np.flatnonzero(mean <= min(_COUNTED * max(server.sums.scv, 1.0), _MOST_COUNTED))
    spread = _WIDE * np.sqrt(mean[few] + 1.0)
    least = np.maximum(np.floor(mean[few] - spread), 1.0).astype(np.int64)
    sizes = np.ceil(mean[few] + spread + _TAIL).astype(np.int64) - least
    at = np.repeat(np.arange(few.size), sizes)
    count = least[at] + np.arange(at.size) - (np.cumsum(sizes) - sizes)[at]
    expected = mean[few][at]
    share = np.exp(special.xlogy(count, expected) - expected - special.gammaln(count + 1.0))
    matters = share > 1e-18
    at, count, share = at[matters], count[matters], share[matters]
    over = server.sums.over(count, t_s[few][at] / server.mean_s)
    for row, scale, each in zip(found, (server.mean_s, server.mean_s**2), over, strict=True):
        row[few] = scale * np.bincount(at, share * each, minlength=few.size)
    many = np.setdiff1d(np.arange(t_s.size), few, assume_unique=True)
    margin_s = t_s[many] - mean[many] * server.mean_s
    squares, cubes = 1.0 + server.sums.scv, 1.0 + 3.0 * server.sums.scv + server.sums.third
    spread_s2 = mean[many] * server.mean_s**2 * squares
    found[:, many] = normal_excess(margin_s, spread_s2, mean[many] * server.mean_s**3 * cubes)
    return np.maximum(found, 0.0)
