r"""Mean response times at one queue that events of several kinds share, in seconds.

For kind i: rate :math:`\lambda_i`, mean service :math:`S_i`, squared coefficient of variation
:math:`c^2_i`; :math:`a = \sum \lambda_i S_i` and :math:`U = a/m` with m servers.

==================  ============================================================================
processor sharing   :math:`R_i = S_i (1 + C/(m(1 - U)))`, one server: :math:`S_i/(1 - U)`; exact
                    for Poisson arrivals and *any* service. The paper's formula for every queue.
first come          :math:`R_i = S_i + \sum \lambda S^2 (1 + c^2)/2/(1 - U)` (Pollaczek and
                    Khinchine), exact for Poisson arrivals and one server
first come, m > 1   :math:`R_i = S_i + C/(m\mu - \lambda) \cdot (1 + c^2)/2` with the mean service
                    :math:`1/\mu` and c² of all kinds together; exact for one exponential kind
priority            :math:`R_i = S_i + W_0/((1 - U_{>i})(1 - U_{\ge i}))` (Cobham) with
                    :math:`W_0 = \sum \lambda S^2 (1 + c^2)/2` and the loads of kinds of higher
                    (and of the same) priority; exact for Poisson arrivals and one server
infinite server     :math:`R_i = S_i`
==================  ============================================================================

C is Erlang's probability of waiting, with m servers and offered load a.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.errors import UnsupportedError
from tidings.model.arrays import Floats, Ints
from tidings.model.loads import waiting_probability
from tidings.model.workload import Centre


@dataclass(frozen=True, slots=True, kw_only=True)
class Demands:
    """What kinds of events ask of one queue: how many per second, how long, how unevenly."""

    rates_per_s: Floats
    means_s: Floats
    scvs: Floats
    priorities: Ints | None = None  # None: all alike

    @property
    def offered(self) -> float:
        """Seconds of work that arrive per second."""
        return float(np.dot(self.rates_per_s, self.means_s))


def responses_s(centre: Centre, demands: Demands) -> Floats:
    """Compute mean times of each kind at a queue, waiting and service, in seconds.

    They are ``inf`` where it is overloaded.

    >>> both = Demands(rates_per_s=np.array([0.4, 0.1]), means_s=np.array([1.0, 1.0]),
    ...                scvs=np.array([1.0, 1.0]))
    >>> responses_s(Centre(name="cpu"), both).tolist()  # M/M/1 at half load
    [2.0, 2.0]
    """
    rates, means = demands.rates_per_s, demands.means_s
    if centre.discipline == "infinite-server":
        return means
    load = demands.offered / centre.servers
    if load >= 1.0:
        return np.where(means >= 0.0, np.inf, np.nan)
    if centre.discipline == "processor-sharing":
        waiting = waiting_probability(centre.servers, demands.offered)
        stretched: Floats = means * (1.0 + waiting / (centre.servers * (1.0 - load)))
        return stretched
    squares = float(np.dot(rates, means**2 * (1.0 + demands.scvs)))  # Σ λ E[S²]
    if centre.discipline == "priority":
        return _by_priority(centre, demands, squares)
    if centre.servers == 1:
        responses_s: Floats = means + 0.5 * squares / (1.0 - load)
        return responses_s
    total = float(rates.sum())
    if total == 0.0 or demands.offered == 0.0:
        return means
    mean_s = demands.offered / total
    uneven = squares / total / mean_s**2  # 1 + c² of a service of any kind
    waiting = waiting_probability(centre.servers, demands.offered)
    several: Floats = means + 0.5 * uneven * waiting * mean_s / (centre.servers * (1.0 - load))
    return several


def _by_priority(centre: Centre, demands: Demands, squares: float) -> Floats:
    """Compute Cobham's mean responses, in seconds: whoever is served is not interrupted."""
    if centre.servers > 1:
        raise UnsupportedError(
            f"the queue '{centre.name}' serves by priority with {centre.servers} servers; "
            "operational analysis handles priorities with one server only. Use tidings "
            "petri generate and solve"
        )
    loads = demands.rates_per_s * demands.means_s
    ranks = np.zeros(loads.size) if demands.priorities is None else demands.priorities
    above = np.array([loads[ranks > rank].sum() for rank in ranks])
    with_own = np.array([loads[ranks >= rank].sum() for rank in ranks])
    responses_s: Floats = demands.means_s + 0.5 * squares / ((1.0 - above) * (1.0 - with_own))
    return responses_s
