r"""What the direction of time does to a queue behind another one.

Spitzer's identity sees how the work Y(t) that arrives in a time t is spread and skewed, not in
which order. Departures have an order: services that are fast by chance empty their queue *later*.
Z, the work found, is the maximum of a Brownian motion of drift −c and variance σ² a second. With ξ
and η the work that arrives within adjacent times of lengths a and b, their third cumulants change
E[Z] to first order by what Spitzer's identity knows and

.. math:: ΔE[Z] = \frac{1}{4} \iint e(a) e(b) \, (κ(ξ, ξ, η) - κ(ξ, η, η)) \, da \, db,
   \qquad e(a) = \frac{e^{-θ a}}{σ \sqrt{2π a^3}}, \quad θ = \frac{c^2}{2σ^2},

e(a) being how often the maximum is reached twice, a apart. In the units of ``departures`` the
station before is a reflected Brownian motion Q, ξ and η depend on it by its increments and its idle
time, and since nothing is left of third cumulants where arrivals and services are equally uneven,

.. math:: κ(ξ, ξ, η) - κ(ξ, η, η) = -β (1 - 2β) (J(a, b) + J(b, a)),

J(a, b) = E[h_a(Q) g_b(Q)], where g_b(v) and h_a(v) are the means of v − Q(b) and (Q(a) − v)² from
Q(0) = v on; their transforms are elementary. With Φ(θ) = σ² ∬ e(a) e(b) J(a, b) da db:
ΔE[Z] = −½ β (1 − 2β) Φ(θ)/σ². Where services are the more regular ones (β < ½) it is a relief.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from tidings.theory.workload import Server

Floats = NDArray[np.float64]

_NODES = 24  # of Gauss and Legendre: good to 1e-5 of the value


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """How far the order of a stream's events matters: β(1 − 2β) of its station, in events cubed."""

    third: float  # of a share q of what leaves the station: q³ times that of all
    unit_s: float


def relieved_s(server: Server, work_s: float, feeds: Sequence[Order]) -> float:
    """By how much the mean work at a station falls short of E[Z] for the order of what feeds it.

    σ² = 2c E[Z] with c = 1 − ρ, as a Brownian motion with this maximum has.
    """
    if not feeds or work_s <= 0.0:
        return 0.0
    spare = 1.0 - server.load
    units_s = np.array([each.unit_s for each in feeds])
    thirds = np.array([each.third for each in feeds]) * server.mean_s**3
    felt = relief(0.25 * spare * units_s / work_s)
    return float(np.sum(thirds * felt / units_s)) / (4.0 * spare * work_s)


def relief(theta: Floats) -> Floats:
    """Φ(θ), how far a queue feels the order of departures before it; falls with θ > 0.

    >>> relief(np.array([0.01, 1.0, 100.0])).round(4)
    array([0.2469, 0.049 , 0.0009])
    """
    angle, weight = _angles()
    # a^−3/2 e^−θa is (2/√π) ∫ √(z − θ) e^−za dz from θ on; z = θ + y², y a tangent.
    scale = np.sqrt(theta + 0.5)[:, None]
    y = scale * np.tan(angle)
    z = theta[:, None] + y**2
    at = 2.0 * y**2 * scale * weight / np.cos(angle) ** 2
    both = _joint(z[:, :, None], z[:, None, :])
    found: Floats = 2.0 / np.pi**2 * np.einsum("ni,nij,nj->n", at, both, at)
    return found


@cache
def _angles() -> tuple[Floats, Floats]:
    place, weight = np.polynomial.legendre.leggauss(_NODES)
    return 0.25 * np.pi * (place + 1.0), 0.25 * np.pi * weight


def _joint(z: Floats, other: Floats) -> Floats:
    """The transform of J(a, b) over a and b; Q of drift −1 and variance 1 has density 2e^−2v."""
    root, root_of = np.sqrt(1.0 + 2.0 * z) - 1.0, np.sqrt(1.0 + 2.0 * other) - 1.0
    far, near = 2.0 + root, 2.0 + root + root_of
    longer = 1.0 / (far * other) ** 2 - 1.0 / (near**2 * other * root_of)
    sooner = 1.0 / (far * other**2) - 1.0 / (near * other * root_of)
    found: Floats = -4.0 / (z * root) * (longer + sooner / z)
    return found
