r"""What a broker's own traffic does to what its neighbour sends back.

Between brokers b and u events go both ways. What b sends to u waits there in one queue with what u
sends to b, and holds it up: the streams that arrive at b are not independent, nor are they of the
services at b. An event more over b → u takes from what u → b has brought up to time t, with q its
share of what leaves u,

.. math:: q \, H(t), \qquad H(t) = E[(t - D_u)^+] - E[(t - a_u)^+],

D_u the sojourn at u (so long it is itself under way) and a_u the lag after which u has let one more
through. That is exact where arrivals are Poisson. In a network of Poisson publishers and
exponential services all such effects cancel: every queue is as if its streams were independent
(Jackson, Kelly). So only what arrivals (B = I_a − 1) and services (S = I_S − 1) are beyond that
counts, to first order

.. math:: δI_b(t) = \frac{2 q κ}{t} \left( (S - B) \, E[H(t - a_b - d)]
   + (B - B_x) \, E[H(t - D_b - d)] \right),

κ the share of b → u in what leaves b, B_x the dispersion of the sources of b → u, d the delay of
both links together.

Copies do not cancel, not even there. An event that u copies to b and to v holds up at v what goes
v → u → b, while its own copy is at b already: fewer follow where one has come. With λ_bv the rate
of such events, q the share of v → u → b in what leaves v and p that of u → b in what leaves u,

.. math:: δI_{ub}(t) = -\frac{2 λ_{bv} q}{λ_{ub} t} I_{ub}(t) \left( p \, E[H_v(t - a_u - d)]
   + (1 - p) \, E[H_v(t - D_u - d)] \right).

Copies that v sends on and that are held up further away are not followed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """How events pass a station: laws of lag and sojourn in equal parts, in seconds."""

    lags_s: Floats
    stays_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond:
    """Dispersions beyond Poisson at the broker that hears the echo, each a curve."""

    arriving: Floats  # B
    sent: Floats  # B_x
    serving: Floats  # S


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBack:
    """E[H(t − X)]/t at the far station, by how an event comes there from the near one."""

    lagging: Floats  # X = a + d: as one more that has left
    staying: Floats  # X = D + d: as one that leaves by itself


def both_ways(near: Passage, far: Passage, delay_s: float, t_s: Floats) -> HeldBack:
    """What one event more at the near station holds back at the far one and is missed here."""
    return HeldBack(
        lagging=held_back(near.lags_s + delay_s, far, t_s),
        staying=held_back(near.stays_s + delay_s, far, t_s),
    )


def echo(held: HeldBack, beyond: Beyond) -> Floats:
    """What is added to I(t) of the arrivals at the near station, over 2qκ."""
    found: Floats = (beyond.serving - beyond.arriving) * held.lagging
    return found + (beyond.arriving - beyond.sent) * held.staying


def held_back(before_s: Floats, far: Passage, t_s: Floats) -> Floats:
    """E[H(t − X)]/t, X the time (in equal parts) until an event comes to the far station."""

    def reached_s(then_s: Floats) -> Floats:
        lag_s = (before_s[:, None] + then_s).ravel()
        found: Floats = np.maximum(t_s[:, None] - lag_s, 0.0).mean(axis=1)
        return found

    # Lags are those of heavy traffic: under little load they may be shorter than sojourns.
    return np.maximum(reached_s(far.stays_s) - reached_s(far.lags_s), 0.0) / t_s
