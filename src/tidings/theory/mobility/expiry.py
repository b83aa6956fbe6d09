r"""Certain lifetimes at an ON/OFF centre: events that expire while they wait leave the queue.

What has been begun is finished. No bound on the buffer, Poisson arrivals, exponential ON, any OFF
and service. Below the lifetime τ the time V until the server would be free obeys the same equation
as in the queue without expiry, so that its law there is a multiple of that law. With F the law of V
and F_T that of the sojourn without expiry, ρ the load,

.. math:: k = \frac{1}{1 - \rho + \rho F(\tau)}, \quad
   \text{delivered} = k F(\tau), \quad \text{on time} = k F_T(\tau),

exactly. What is delivered has waited as without expiry, given that it waited no longer than τ: its
mean response is E[V; V ≤ τ]/F(τ) + E[C], and P[response ≤ t] is F_T(t)/F(τ) up to τ, beyond it a
sum over the wait. Exponential lifetimes are in ``buffers``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model.laws import Exponential
from tidings.model.outcome import QUANTILES
from tidings.theory.faults.expiry import mean_up_to_s
from tidings.theory.mobility.centre import OnOff
from tidings.theory.mobility.completion import completion
from tidings.theory.mobility.sojourn import sojourn_stage, wait_stage
from tidings.theory.path_laws import PathLaw, Workshop, path_law
from tidings.theory.stages import Floats

_CELLS = 512  # into which the wait is cut for responses that end after the lifetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedFate:
    """What becomes of events with a certain lifetime; delivered + expired = 1."""

    delivered: float  # begun within the lifetime, and finished whenever
    on_time: float  # finished within it
    expired: float
    delay_mean_s: float  # of those delivered, as are the quantiles
    delay_p50_s: float
    delay_p95_s: float
    delay_p99_s: float


def fate_with_lifetime(centre: OnOff, rate_per_s: float, lifetime_s: float) -> TimedFate:
    """What becomes of events that expire a certain time after they came, while they wait.

    Exact for Poisson arrivals, exponential ON, load below 1; quantiles beyond the lifetime are good
    to about 1e-4 of a share.

    >>> from tidings.theory.mobility.centre import exponential_centre
    >>> found = fate_with_lifetime(exponential_centre(0.125, 20.0, 20.0), 2.0, 60.0)
    >>> round(found.delivered, 3), round(found.expired, 3), round(found.delay_mean_s, 2)
    (0.952, 0.048, 13.4)
    """
    for name, value in (("rate_per_s", rate_per_s), ("lifetime_s", lifetime_s)):
        if not value >= 0.0:
            raise InvalidInputError(f"{name}: got {value:g}; wants 0 or more")
    if not isinstance(centre.on, Exponential):
        raise UnsupportedError(
            "expiry at a peer is predicted only where its times ON are exponential"
        )
    if centre.is_overloaded(rate_per_s):
        raise UnsupportedError(
            "expiry at a peer that is offered more than it can take is not predicted; simulate it"
        )
    workshop, stage = Workshop(), wait_stage(centre, rate_per_s)
    wait = path_law(stage, workshop)
    sojourn = path_law(sojourn_stage(centre, rate_per_s), workshop)
    begun, done = (float(law.cdf(lifetime_s).value) for law in (wait, sojourn))
    load = centre.load(rate_per_s)
    scale = 1.0 / (1.0 - load + load * begun)
    waited_s = float(mean_up_to_s(stage, wait, np.array([lifetime_s]))[0])
    late = _Late(centre=centre, lifetime_s=lifetime_s, parts=_parts(wait, lifetime_s))
    quantiles_s = {
        name: sojourn.quantile(share * begun)
        if share * begun <= done
        else late.quantile_s(share * begun)
        for name, share in QUANTILES.items()
    }
    return TimedFate(
        delivered=scale * begun,
        on_time=scale * done,
        expired=1.0 - scale * begun,
        delay_mean_s=waited_s / begun + centre.demand_s,
        **quantiles_s,
    )


def _parts(wait: PathLaw, lifetime_s: float) -> tuple[Floats, Floats]:
    """Waits up to the lifetime as cells: their middles, in seconds, and the probability of each."""
    edges_s = np.linspace(0.0, lifetime_s, _CELLS + 1)
    below = np.asarray(wait.cdf(edges_s).value)
    middles_s = np.concatenate([[0.0], 0.5 * (edges_s[1:] + edges_s[:-1])])
    return middles_s, np.diff(below, prepend=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Late:
    """Responses of what was begun in time and finished late."""

    centre: OnOff
    lifetime_s: float
    parts: tuple[Floats, Floats]

    def below(self, t_s: float) -> float:
        """P[V ≤ τ, V + C ≤ t]."""
        waits_s, shares = self.parts
        return float(shares @ completion(self.centre).cdf(np.maximum(t_s - waits_s, 0.0)))

    def quantile_s(self, share: float) -> float:
        """The time by which this share of all that came would be done, in seconds."""
        far_s = self.lifetime_s + self.centre.demand_s
        while self.below(far_s) < share:
            far_s *= 2.0
        found: float = optimize.brentq(lambda t_s: self.below(t_s) - share, 0.0, far_s, xtol=1e-9)
        return found
