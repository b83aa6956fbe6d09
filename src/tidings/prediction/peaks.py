r"""Waits behind streams that come in bursts of a known speed: backlogs of peers that were away.

Spitzer's identity gives the mean work from E[(Y(t) − t)⁺] (``workload``). A stream that cannot
bring more than its ``peak_per_s`` for long is Poisson at a rate of which the share of the peak
follows a beta law, with the mean and the dispersion I(t) that are known. For Poisson streams it is
exact.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from tidings.model.laws import Law
from tidings.prediction.time_grid import TimeGrid
from tidings.prediction.workload import Server

Floats = NDArray[np.float64]

# Shares at which the rate is looked at, below and at the peak; rare high rates matter most.
_BELOW, _ABOVE = np.linspace(0.0, 1.0, 7)[:-1], np.geomspace(1.0, 1e-3, 14)
_COUNTED = 130.0  # arrivals from which on work is taken as normal
_MOST_COUNTED = 1500.0  # the same, where services are very uneven
_WIDE, _TAIL = 8.0, 30.0  # standard deviations, and arrivals, that are looked at beyond the mean
_FAR = 38.0  # standard deviations beyond which there is nothing


def mean_wait_s(server: Server, dispersion: Floats, grid: TimeGrid, peak_per_s: float) -> float:
    """Mean wait before service, in seconds, of a stream with a peak; load below 1."""
    work_s = _mean_work_s(server, dispersion, grid, peak_per_s)
    return max(0.0, work_s / server.load - 0.5 * server.mean_s * (1.0 + server.sums.scv))


def extra_wait_s(rate_per_s: float, service: Law, dispersion: Floats, grid: TimeGrid) -> float:
    """How much longer than Poisson arrivals uneven ones wait, in seconds; work taken as normal.

    For services so uneven that their sums cannot be added up one by one (interrupted for long, and
    rarely): only the difference to Poisson arrivals, known exactly, is approximated.
    """
    t_s, load = grid.times_s, rate_per_s * service.mean_s

    def work_s(variance: Floats) -> float:
        spread_s = np.sqrt(load * service.mean_s * t_s * np.maximum(variance + service.scv, 1e-12))
        excess = _normal_excess_s((1.0 - load) * t_s, spread_s)
        return float(grid.step * (excess.sum() - 0.5 * (excess[0] + excess[-1])))

    return (work_s(dispersion) - work_s(np.ones(t_s.size))) / load


def _mean_work_s(server: Server, dispersion: Floats, grid: TimeGrid, peak_per_s: float) -> float:
    """Mean work in the system at a random moment, in seconds of service."""
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
    excess = _poisson_excess_s(server, mean.ravel(), np.repeat(t_s, weights.size))
    by_time = excess.reshape(mean.shape) @ weights
    body = grid.step * (by_time.sum() - 0.5 * (by_time[0] + by_time[-1]))
    return float(by_time[0] + body)  # before the grid it grows like t


def _poisson_excess_s(server: Server, mean: Floats, t_s: Floats) -> Floats:
    """E[(Y − t)⁺] where so many arrivals are expected, Poisson; normal where they are many."""
    found = np.zeros(t_s.size)
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
    over = server.mean_s * server.sums.over(count, t_s[few][at] / server.mean_s)
    found[few] = np.bincount(at, share * over, minlength=few.size)
    many = np.setdiff1d(np.arange(t_s.size), few, assume_unique=True)
    spread_s = server.mean_s * np.sqrt(mean[many] * (1.0 + server.sums.scv))
    found[many] = _normal_excess_s(t_s[many] - mean[many] * server.mean_s, spread_s)
    return found


def _normal_excess_s(margin_s: Floats, spread_s: Floats) -> Floats:
    """E[(X − margin)⁺] of a normal X with mean 0."""
    u = np.clip(margin_s / spread_s, -1e9, _FAR)
    density = np.exp(-0.5 * np.minimum(u**2, 1e3)) / math.sqrt(2.0 * math.pi)
    found: Floats = np.maximum(spread_s * (density - u * special.ndtr(-u)), 0.0)
    return found
