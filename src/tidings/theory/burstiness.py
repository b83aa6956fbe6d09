r"""How bursty streams are, by one number each, and how long queues are then: Whitt's QNA.

Every stream has a variability c² (1: Poisson; 0: as regular as can be). With p a share, ρ a load,
c²_s the variability of service:

- thinned with probability p: c² → p c² + 1 − p;
- merged, shares p_i: c²_a = w Σ p_i c²_i + 1 − w, w = 1/(1 + 4(1−ρ)²(v−1)), v = 1/Σ p_i²;
- departing: c²_d = 1 + (1−ρ²)(c²_a − 1) + ρ²(max(c²_s, 0.2) − 1).

All of this is linear in what c² is beyond 1, so links that are used in both directions make one
linear system, which is solved as a whole. An overloaded station departs as it serves (ρ = 1).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import linalg

from tidings.model.laws import Law
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.theory.flows import Flows
from tidings.theory.mobility.publishing import emitted_scv
from tidings.theory.queues import FULL_LOAD, offered_load
from tidings.theory.splitting import Splits, splits

Floats = NDArray[np.float64]

LEAST_SERVICE_SCV = 0.2  # QNA's: departures are never as regular as constant services


def thinned_scv(scv: float, share: float) -> float:
    """c² of a stream of which each event is kept with probability ``share``.

    >>> thinned_scv(0.0, 0.25)
    0.75
    """
    return share * scv + 1.0 - share


def merging_weight(shares: Floats, load: float) -> float:
    """How much the c² of streams that are merged still counts, from 0 (as Poisson) to 1.

    >>> merging_weight(np.array([0.5, 0.5]), 0.5)
    0.5
    """
    effective = 1.0 / float(np.sum(shares**2))
    return 1.0 / (1.0 + 4.0 * (1.0 - min(load, 1.0)) ** 2 * (effective - 1.0))


def merged_scv(scvs: Floats, shares: Floats, load: float) -> float:
    """c² of several streams together, as a queue under this load feels it."""
    weight = merging_weight(shares, load)
    return weight * float(shares @ scvs) + 1.0 - weight


def departing_scv(arriving_scv: float, service_scv: float, load: float) -> float:
    """c² of what leaves a queue.

    >>> departing_scv(1.0, 1.0, 0.7)  # Burke
    1.0
    """
    busy = min(load, 1.0) ** 2
    beyond = (1.0 - busy) * (arriving_scv - 1.0)
    return 1.0 + beyond + busy * (max(service_scv, LEAST_SERVICE_SCV) - 1.0)


def mean_wait_gg1_s(rate_per_s: float, service: Law, arriving_scv: float) -> float:
    """Mean wait before service in a G/G/1 queue, in seconds, by Krämer and Langenbach-Belz.

    W = ρ E[S] (c²_a + c²_s)/(2(1−ρ)) · g, with g = exp(−2(1−ρ)(1−c²_a)²/(3ρ(c²_a+c²_s))) for
    c²_a < 1 and g = 1 otherwise. Exact for Poisson arrivals; infinite from full load on.
    """
    load = offered_load(rate_per_s, service)
    if load >= FULL_LOAD:
        return math.inf
    both = arriving_scv + service.scv
    if load == 0.0 or both <= 0.0:
        return 0.0
    wait_s = load * service.mean_s * both / (2.0 * (1.0 - load))
    if arriving_scv < 1.0:
        regular = (1.0 - arriving_scv) ** 2
        wait_s *= math.exp(-2.0 * (1.0 - load) * regular / (3.0 * load * both))
    return wait_s


def arriving_scvs(system: System, routes: Routes, flows: Flows) -> tuple[tuple[float, ...], ...]:
    """c² of what arrives at every station of every broker."""
    split = splits(system, routes, flows)
    entering = _beyond_poisson(system)
    first = _at_first_stations(split, flows, entering)
    return tuple(
        _through_stations(1.0 + float(beyond), float(rate), services)
        for beyond, rate, services in zip(first, flows.arrivals, flows.services, strict=True)
    )


def _beyond_poisson(system: System) -> Floats:
    """c² − 1 of each publisher's stream, its own link's losses taken off."""
    found = [
        thinned_scv(emitted_scv(publisher), publisher.link.reliability) - 1.0
        for publisher in system.publishers
    ]
    return np.array(found, dtype=np.float64)


def _at_first_stations(split: Splits, flows: Flows, entering: Floats) -> Floats:
    """c² − 1 of what arrives at each broker: x = w Σ p_i x_i, x_arc = q (a x_from + b), solved."""
    brokers = flows.arrivals.size
    shares = split.arriving_shares(brokers)
    weights = np.ones(brokers)
    for broker, services in enumerate(flows.services):
        mine = shares.data[shares.indptr[broker] : shares.indptr[broker + 1]]
        if np.any(mine > 0):
            load = flows.arrivals[broker] * services[0].mean_s if services else 0.0
            weights[broker] = merging_weight(mine, float(load))
    through = [
        _departing_line(float(rate), services)
        for rate, services in zip(flows.arrivals, flows.services, strict=True)
    ]
    kept, added = np.array(through).reshape(-1, 2).T
    merged = sparse.diags_array(weights) @ shares
    over_arcs = merged[:, split.publishers :] @ sparse.diags_array(split.arc_shares)
    arcs = np.arange(split.out_of.size)
    chosen = sparse.coo_array(
        (np.ones(arcs.size), (arcs, split.out_of)), shape=(arcs.size, brokers)
    ).tocsr()
    between = over_arcs @ chosen  # [broker, the broker before it]
    known = merged[:, : split.publishers] @ entering + between @ added
    matrix = sparse.eye_array(brokers) - between @ sparse.diags_array(kept)
    found: Floats = np.atleast_1d(linalg.spsolve(matrix.tocsc(), known))
    return found


def _departing_line(rate_per_s: float, services: tuple[Law, ...]) -> tuple[float, float]:
    """How c² − 1 leaves a broker as a function of how it arrives: slope and constant."""
    at_0, at_1 = (_departed(1.0 + beyond, rate_per_s, services) for beyond in (0.0, 1.0))
    return at_1 - at_0, at_0 - 1.0


def _departed(arriving: float, rate_per_s: float, services: tuple[Law, ...]) -> float:
    for service in services:
        arriving = departing_scv(arriving, service.scv, offered_load(rate_per_s, service))
    return arriving


def _through_stations(
    arriving: float, rate_per_s: float, services: tuple[Law, ...]
) -> tuple[float, ...]:
    return tuple(
        _departed(arriving, rate_per_s, services[:position]) for position in range(len(services))
    )
