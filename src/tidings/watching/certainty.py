"""How certain something must be before it is said: all tests of a day share one level.

A day on which nothing changes raises no alarm with 99 %.
"""

from __future__ import annotations

from scipy import special

DAY_S = 86_400.0
# A day in which nothing changes has an alarm with probability .01: in equal parts by parameters,
# silent publishers, subscribers who get nothing, shares that were not predicted, promises that are
# just kept, and queues.
FALSE_ALARMS = 0.01 / 6
FREEDOM = 31  # degrees of freedom of standard errors, from 32 batches
LEAST_COUNT = 30  # observations behind a mean that is tested
LEAST_SHARE = 0.01  # of events: what is too small to matter, however certain


def bound(tests: int, looks_per_day: float, freedom: int = FREEDOM) -> float:
    """Compute how many standard errors, of so many degrees of freedom, a parameter must have moved.

    >>> bound(1, 1.0) < bound(20, 1440.0) < 9.0 < bound(20, 1440.0, freedom=10)
    True
    """
    return -float(special.stdtrit(freedom, _level(tests, looks_per_day)))


def certain(tests: int, looks_per_day: float) -> float:
    """Compute how many standard errors a share must be away.

    >>> 4.0 < certain(1, 1440.0) < certain(100, 1440.0) < 7.0
    True
    """
    return -float(special.ndtri(_level(tests, looks_per_day)))


def _level(tests: int, looks_per_day: float) -> float:
    """Compute the level of one of the two sides of one test."""
    return FALSE_ALARMS / (2.0 * max(tests, 1) * max(looks_per_day, 1.0))
