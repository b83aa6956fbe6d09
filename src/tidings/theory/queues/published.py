r"""The queue models of the content-timeliness paper: waits that are constant, at their mean.

``mm1`` takes the mean wait of an M/M/1 queue. ``gg1`` takes that of Whitt's QNA, by one number a
stream, its c² (1: Poisson). With p a share, ρ a load and c²_s that of services:

- thinned with probability p: c² → p c² + 1 − p;
- merged, shares p_i: c²_a = w Σ p_i c²_i + 1 − w, w = 1/(1 + 4(1−ρ)²(v−1)), v = 1/Σ p_i²;
- departing: c²_d = 1 + (1−ρ²)(c²_a − 1) + ρ²(max(c²_s, 0.2) − 1).

All of this is linear in c² − 1, so links that are used in both directions make one linear system,
which is solved as a whole. An overloaded station departs as it serves (ρ = 1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from tidings.errors import InvalidInputError
from tidings.model.arrays import Floats
from tidings.model.laws import Law
from tidings.model.loads import FULL_LOAD
from tidings.theory.delay.delays import Delays, all_lost, from_law, nothing, stack
from tidings.theory.delay.grids import Grid
from tidings.theory.delay.paths import BrokerStages
from tidings.theory.models import QUEUE_MODELS
from tidings.theory.queues.flows import Flows

LEAST_SERVICE_SCV = 0.2  # QNA's: departures are never as regular as constant services


def require_queue_model(name: str) -> None:
    """Refuse a name that no queue model has."""
    if name not in QUEUE_MODELS:
        names = ", ".join(QUEUE_MODELS)
        raise InvalidInputError(f"there is no queue model '{name}'; wants one of {names}")


def published_stages(
    grid: Grid, rates: Flows, emitted: Sequence[Law | None], model: str
) -> BrokerStages:
    """Build what events meet at brokers by a published model, waits in seconds.

    ``emitted`` are the intervals of what each publisher hands to its link; None: Poisson.
    """
    scvs = arriving_scvs(rates, emitted) if model == "gg1" else np.ones(rates.arrivals.size)
    waiting, serving = [], []
    for broker, services in enumerate(rates.services):
        rate, scv = float(rates.arrivals[broker]), float(scvs[broker])
        wait = served = nothing(grid)
        for service in services:
            wait = wait.series(_constant_wait(grid, rate, service, scv, model))
            served = served.series(from_law(grid, service))
            scv = departing_scv(scv, service.scv, rate * service.mean_s)
        waiting.append(wait)
        serving.append(served)
    felt = scvs[rates.into]
    return BrokerStages(
        waiting=stack(waiting).take(rates.into),
        serving=stack(serving).take(rates.into),
        own=felt,
        others=felt,
        exact=np.zeros(felt.size, dtype=bool),
    )


def _constant_wait(
    grid: Grid, rate_per_s: float, service: Law, arriving_scv: float, model: str
) -> Delays:
    if model == "mm1":
        wait_s = mean_wait_mm1_s(rate_per_s, service.mean_s)
    else:
        wait_s = mean_wait_gg1_s(rate_per_s, service, arriving_scv)
    if wait_s == math.inf:
        return all_lost(grid, "overload")
    return replace(nothing(grid), shift_s=np.array([wait_s]))


def mean_wait_mm1_s(rate_per_s: float, service_s: float) -> float:
    """Compute the mean wait before service in an M/M/1 queue, in seconds.

    >>> round(mean_wait_mm1_s(5.0, 0.1), 12)
    0.1
    """
    load = rate_per_s * service_s
    return math.inf if load >= FULL_LOAD else load * service_s / (1.0 - load)


def mean_wait_gg1_s(rate_per_s: float, service: Law, arriving_scv: float) -> float:
    """Compute the mean wait before service in a G/G/1 queue, in seconds.

    By Krämer and Langenbach-Belz: W = ρ E[S] (c²_a + c²_s)/(2(1−ρ)) · g, with
    g = exp(−2(1−ρ)(1−c²_a)²/(3ρ(c²_a+c²_s))) for c²_a < 1 and g = 1 otherwise. Exact for Poisson
    arrivals.
    """
    load = rate_per_s * service.mean_s
    both = arriving_scv + service.scv
    if load == 0.0 or both <= 0.0:
        return 0.0 if load < FULL_LOAD else math.inf
    wait_s = 0.5 * both * mean_wait_mm1_s(rate_per_s, service.mean_s)
    if arriving_scv < 1.0 and load < 1.0:
        regular = (1.0 - arriving_scv) ** 2
        wait_s *= math.exp(-2.0 * (1.0 - load) * regular / (3.0 * load * both))
    return wait_s


def departing_scv(arriving_scv: float, service_scv: float, load: float) -> float:
    """Compute c² of what leaves a queue.

    >>> departing_scv(1.0, 1.0, 0.7)  # Burke
    1.0
    """
    busy = min(load, 1.0) ** 2
    beyond = (1.0 - busy) * (arriving_scv - 1.0)
    return 1.0 + beyond + busy * (max(service_scv, LEAST_SERVICE_SCV) - 1.0)


def arriving_scvs(rates: Flows, emitted: Sequence[Law | None]) -> Floats:
    """Compute c² of what arrives at every broker.

    With x = c² − 1: x = w Σ p_i x_i at a broker, and x_arc = q (a x + b) over an arc that takes the
    share q of what leaves it.
    """
    arrivals, sources = rates.arrivals, rates.source_rates
    shares = _ratios(sources, arrivals[rates.into])
    squares = np.bincount(rates.into, weights=shares**2, minlength=arrivals.size)
    first_s = np.array([laws[0].mean_s if laws else 0.0 for laws in rates.services])
    idle = 1.0 - np.minimum(arrivals * first_s, 1.0)
    streams_beyond_one = 1.0 / np.where(squares > 0.0, squares, 1.0) - 1.0
    counts = shares / (1.0 + 4.0 * idle**2 * streams_beyond_one)[rates.into]

    beyond = [
        0.0 if law is None else rate * law.mean_s * (law.scv - 1.0)  # thinned by its link
        for law, rate in zip(emitted, sources, strict=False)
    ]
    known = np.bincount(
        rates.into[: len(beyond)],
        weights=counts[: len(beyond)] * np.array(beyond),
        minlength=arrivals.size,
    )
    kept, added = np.transpose(
        [_line(float(rate), laws) for rate, laws in zip(arrivals, rates.services, strict=True)]
    )
    out_of = np.array([arc.source for arc in rates.routes.arcs], dtype=np.int64)
    over_arc = _ratios(sources[len(beyond) :], (arrivals * rates.passes)[out_of])
    between = sparse.coo_array(  # [broker, the broker before it]
        (counts[len(beyond) :] * over_arc, (rates.into[len(beyond) :], out_of)),
        shape=(arrivals.size, arrivals.size),
    )
    matrix = sparse.eye_array(arrivals.size) - between @ sparse.diags_array(kept)
    scvs: Floats = 1.0 + np.atleast_1d(linalg.spsolve(matrix.tocsc(), known + between @ added))
    return scvs


def _ratios(parts: Floats, wholes: Floats) -> Floats:
    """Divide, 0 by 0 being 0."""
    return np.divide(parts, wholes, out=np.zeros_like(parts), where=wholes > 0.0)


def _line(rate_per_s: float, services: Sequence[Law]) -> tuple[float, float]:
    """Compute slope and constant of c² − 1 that leaves a broker as a function of that arriving."""
    slope, constant = 1.0, 0.0
    for service in services:
        load = rate_per_s * service.mean_s
        slope *= departing_scv(2.0, 1.0, load) - 1.0
        constant = departing_scv(1.0 + constant, service.scv, load) - 1.0
    return slope, constant
