r"""Certain lifetimes at an ON/OFF centre: events that expire while they wait leave the queue.

What has been begun is finished. No bound on the buffer, Poisson arrivals, exponential ON, any OFF
and service. Below the lifetime τ the time V until the server would be free obeys the same equation
as in the queue without expiry, so that its law there is a multiple of that law. With F the law of V
and F_T that of the sojourn without expiry, ρ the load,

.. math:: k = \frac{1}{1 - \rho + \rho F(\tau)}, \quad
   \text{delivered} = k F(\tau), \quad \text{on time} = k F_T(\tau),

exactly. Exponential lifetimes are in ``buffers``.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidings.errors import UnsupportedError
from tidings.model.laws import Exponential
from tidings.prediction.mobility.centre import OnOff
from tidings.prediction.mobility.sojourn import sojourn_stage, wait_stage
from tidings.prediction.path_laws import Workshop, path_law


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedFate:
    """What becomes of events with a certain lifetime; delivered + expired = 1."""

    delivered: float  # begun within the lifetime, and finished whenever
    on_time: float  # finished within it
    expired: float


def fate_with_lifetime(centre: OnOff, rate_per_s: float, lifetime_s: float) -> TimedFate:
    """What becomes of events that expire a certain time after they came, while they wait.

    Exact for Poisson arrivals, exponential ON, load below 1.
    """
    if not isinstance(centre.on, Exponential):
        raise UnsupportedError(
            "expiry at a peer is predicted only where its times ON are exponential"
        )
    if centre.is_overloaded(rate_per_s):
        raise UnsupportedError(
            "expiry at a peer that is offered more than it can take is not predicted; simulate it"
        )
    workshop = Workshop()
    wait = path_law(wait_stage(centre, rate_per_s), workshop)
    begun = float(wait.cdf(lifetime_s).value)
    done = float(path_law(sojourn_stage(centre, rate_per_s), workshop).cdf(lifetime_s).value)
    load = centre.load(rate_per_s)
    scale = 1.0 / (1.0 - load + load * begun)
    return TimedFate(delivered=scale * begun, on_time=scale * done, expired=1.0 - scale * begun)
