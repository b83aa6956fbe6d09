"""Times as NATS writes them: moments to the nanosecond, lengths as Go prints them."""

from __future__ import annotations

import re
from datetime import datetime

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def go_seconds(text: object) -> float | None:
    """Read a duration as Go prints it, in seconds; None where it is none.

    >>> go_seconds("1m2.5s"), go_seconds("242µs"), go_seconds("soon")
    (62.5, 0.000242, None)
    """
    parts = _PART.findall(str(text))
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def seconds_between(earlier: object, later: object) -> float | None:
    """Compute the time between two moments in ISO 8601, in seconds; None where one is not valid."""
    try:
        return (_moment(later) - _moment(earlier)).total_seconds()
    except ValueError:
        return None


def _moment(text: object) -> datetime:
    # Python keeps microseconds and refuses more digits than it knows.
    return datetime.fromisoformat(re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", str(text)))
