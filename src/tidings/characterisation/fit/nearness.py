"""How near a law must be to what was measured, whatever times it is of."""

from __future__ import annotations

import math

ENOUGH_TIMES = 30  # to tell one law from another, and more than a mean
# In P[X ≤ t], as bins tell it; from the times themselves what is said to fit is 0.05 off at most.
NEAR = 0.045
# A Kolmogorov distance of 1.63/√n is exceeded by one true law in a hundred, and by fewer when its
# parameters were fitted. A distance of half a percent moves no on-time share by more than that,
# however many times were measured.
_SIGNIFICANT = 1.63
_NEGLIGIBLE = 0.005


def allowed_distance(times: int, near: float = NEAR) -> float:
    """Compute the greatest Kolmogorov distance of a distribution that may stand for so many times.

    No more than chance explains; and of times that are enough to tell, no more than ``near``.

    >>> [round(allowed_distance(times), 3) for times in (9, 100, 10_000, 1_000_000)]
    [0.543, 0.045, 0.016, 0.005]
    """
    by_chance = max(_SIGNIFICANT / math.sqrt(times), _NEGLIGIBLE)
    return by_chance if times < ENOUGH_TIMES else min(by_chance, near)


def unlike(family: str, distance: float, allowed: float) -> str:
    """Say that no family is near, and what is used."""
    return (
        f"no standard distribution fits (best: {family}, Kolmogorov distance {distance:.3g}, "
        f"limit {allowed:.3g}); the measured distribution itself is used"
    )
