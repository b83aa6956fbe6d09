"""Which subjects are published how often, from how often each pattern is delivered.

A server counts what it hands to each subscription, not what each publisher publishes on. For every
pattern one subject stands that it wants; their rates are those that explain the counts best.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import nnls

from tidings.model.arrays import Floats
from tidings.model.wildcards import expression

_ANY = "any"
_LEAST_SHARE = 0.001  # of all events; less than that is noise of the two counts


def example_subject(pattern: str) -> str:
    """Make a subject that a NATS pattern wants.

    >>> example_subject("orders.*.eu"), example_subject("orders.>")
    ('orders.any.eu', 'orders.any')
    """
    return ".".join(_ANY if token in ("*", ">") else token for token in pattern.split("."))


def subject_rates(pattern_rates: Mapping[str, float]) -> dict[str, float]:
    """Fit rates of subjects, per second, that explain at which rate each pattern is delivered.

    >>> subject_rates({"orders.*.eu": 40.0, "orders.>": 50.0, "jobs": 5.0})
    {'orders.any.eu': 40.0, 'orders.any': 10.0, 'jobs': 5.0}
    """
    subjects = list(dict.fromkeys(map(example_subject, pattern_rates)))
    if not subjects:
        return {}
    tests = [expression("nats", pattern) for pattern in pattern_rates]
    wanted = np.array([[bool(t.fullmatch(s)) for s in subjects] for t in tests], dtype=float)
    rates = explaining_rates(wanted, np.array(list(pattern_rates.values())))
    return {s: round(float(r), 6) for s, r in zip(subjects, rates, strict=True) if r > 0}


def explaining_rates(counted: Floats, rates: Floats) -> Floats:
    """Fit rates of kinds of events (columns) that best explain rates of what counts them (rows)."""
    explaining, _ = nnls(counted, rates)
    return np.where(explaining > _LEAST_SHARE * explaining.sum(), explaining, 0.0)
