"""The notification probability d of the notification-loss paper, in closed form and exactly.

T_ON is how long a subscription lasts, T_sub and T_diff how long subscriptions and publications take
to reach all brokers, r the rapidity of spreading: the share of brokers reached by τ is
(τ/T)^(1/r), within T_sub or T_diff.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from tidings.errors import InvalidInputError
from tidings.model.arrays import Floats


def notified_share(stay_s: ArrayLike, spread_s: ArrayLike, rapidity: ArrayLike) -> Floats:
    r"""Compute the paper's share d for power laws of spreading, S = ``spread_s`` = T_sub + T_diff.

    .. math:: d = 1 - \frac{S}{(r + 1)\,T_{ON}} \;(T_{ON} \ge S), \qquad
       d = \frac{r}{r + 1} \left(\frac{T_{ON}}{S}\right)^{1/r} \;(T_{ON} \le S)

    The first is the paper's; the second, ours, continues it below S, where the paper's falls below
    0, for subscription and event delays of a couple that grow together, as in a tree. Its area is
    right and its shape is not: below S prefer :func:`exact_share`.

    >>> [round(float(d), 4) for d in notified_share([10.0, 20.0, 40.0], 20.0, 1.14)]
    [0.29, 0.5327, 0.7664]
    """
    stay, spread, r = np.broadcast_arrays(
        *(np.asarray(each, dtype=np.float64) for each in (stay_s, spread_s, rapidity))
    )
    if not (np.all(stay > 0) and np.all(spread >= 0) and np.all(r > 0)):  # NaN is none of these
        raise InvalidInputError(
            "a stay, a time to spread or a rapidity is out of range; wants a stay and a rapidity "
            "above 0 and a time to spread of 0 or more"
        )
    with np.errstate(divide="ignore", over="ignore"):
        short = r / (r + 1.0) * (stay / np.where(spread > 0, spread, np.nan)) ** (1.0 / r)
    long = 1.0 - spread / ((r + 1.0) * stay)
    return np.where(stay >= spread, long, short)


def rapidity(area_s: float, spread_s: float) -> float:
    """Compute r = A/(S − A) from the area A = ∫ f + ∫ g, in seconds; S = T_sub + T_diff.

    >>> rapidity(12.0, 20.0)
    1.5
    """
    if not 0.0 <= area_s < spread_s:
        raise InvalidInputError(
            f"the area is {area_s:.4g} s; wants 0 or more and less than the "
            f"{spread_s:.4g} s to spread"
        )
    return area_s / (spread_s - area_s)


def exact_share(stay_s: ArrayLike, delays_s: ArrayLike) -> Floats:
    """Compute the share d = E[(T_ON − X)⁺]/T_ON over couples, X being both delays of each, in s.

    Couples weigh the same. Exact for a lone subscriber on a tree and publications spread evenly
    over the stay.

    >>> exact_share([1.0, 4.0], [0.5, 2.0]).tolist()
    [0.25, 0.6875]
    """
    stay = np.asarray(stay_s, dtype=np.float64)
    sorted_s = np.sort(np.asarray(delays_s, dtype=np.float64).ravel())
    if not (np.all(stay > 0) and sorted_s.size and np.all(sorted_s >= 0)):
        raise InvalidInputError(
            f"stays {_ends(stay)} and delays {_ends(sorted_s)}; wants stays above 0 and at least "
            "one delay, all of them of 0 or more, in seconds"
        )
    sums = np.concatenate([[0.0], np.cumsum(sorted_s)])
    below = np.searchsorted(sorted_s, stay, side="right")
    share: Floats = (below * stay - sums[below]) / (sorted_s.size * stay)
    return share


def _ends(values_s: Floats) -> str:
    """Say between which numbers some times lie, in seconds, for messages."""
    if not values_s.size:
        return "(none)"
    return f"of {values_s.min():g} to {values_s.max():g} s"
