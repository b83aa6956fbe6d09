"""Numbers as people read them: shares in percent, times and rates with units, standard errors."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from tidings.model.units import format_seconds

UNKNOWN = "–"
# Characters that make what follows run from right to left, and would turn a sentence's numbers.
_TURNING = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def percent(share: float, se: float = math.nan) -> str:
    """Write a share in percent with the digits it deserves, and ± its standard error where known.

    One decimal, more close to nothing and to everything (where the odd event matters) and where
    the standard error is smaller than that.

    >>> percent(0.873), percent(0.873, 0.0042), percent(0.99972), percent(1.0), percent(math.nan)
    ('87.3 %', '87.3 ± 0.4 %', '99.97 %', '100 %', '–')
    """
    if not math.isfinite(share):
        return UNKNOWN
    digits = decimals(share, se)
    if math.isfinite(se):
        return f"{100 * share:.{digits}f} ± {100 * se:.{digits}f} %"
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    return f"{100 * share:.{digits}f} %"


def gives(remedy: Mapping[str, Any], verb: str = " gives") -> str:
    """Say what a change gives, in percent on time and in points gained.

    >>> gives({"change": "speed hub x2", "on_time": 0.9, "gain": 0.1, "error": 0.004})
    'speed hub x2 gives 90.0 % on time (+10 ± 0.4 percentage points)'
    """
    error = "" if remedy["error"] is None else f" ± {100 * remedy['error']:.2g}"
    gain = f"{100 * remedy['gain']:+.3g}{error} percentage points"
    return f"{remedy['change']}{verb} {percent(remedy['on_time'])} on time ({gain})"


def decimals(share: float, se: float = math.nan) -> int:
    """Count the decimals of a percentage that mean something."""
    if math.isfinite(se) and se > 0:
        return min(3, max(1, math.ceil(-math.log10(100 * se) - 1e-9)))
    edge = 100 * min(abs(share), abs(1.0 - share))
    return 1 if edge >= 0.5 or edge == 0 else 2 if edge >= 0.02 else 3


def whole_percent(share: float) -> str:
    """Write a share in percent without decimals, for running text.

    >>> whole_percent(0.784), whole_percent(0.004), whole_percent(0.9999)
    ('78 %', 'under 1 %', 'over 99 %')
    """
    if not math.isfinite(share):
        return UNKNOWN
    if 0 < share < 0.005:
        return "under 1 %"
    if 0.995 <= share < 1:
        return "over 99 %"
    return f"{100 * share:.0f} %"


def seconds(value_s: float, se_s: float = math.nan) -> str:
    """Write a time in the unit a person would pick, with ± its standard error in the same unit.

    >>> seconds(0.25), seconds(0.25, 0.002), seconds(math.inf), seconds(math.nan)
    ('250 ms', '250 ± 2 ms', 'infinite', '–')
    >>> seconds(0.25, math.inf)
    '250 ms ± ∞'
    """
    if math.isnan(value_s):
        return UNKNOWN
    if math.isinf(value_s):
        return "infinite"
    text = format_seconds(value_s)
    if math.isnan(se_s) or value_s == 0:
        return text
    if math.isinf(se_s):
        return f"{text} ± ∞"
    number, _, unit = text.rpartition(" ")
    return f"{number} ± {se_s * float(number) / value_s:.2g} {unit}"


def rate(per_s: float, of: str = "") -> str:
    """Write a rate in events per second, minute, hour or day, whichever reads best.

    >>> rate(12.34), rate(0.05, "events"), rate(1e-4), rate(0.0)
    ('12.3 /s', '3 events/min', '8.64 /d', '0 /s')
    """
    if not math.isfinite(per_s):
        return UNKNOWN
    for unit, size in (("s", 1.0), ("min", 60.0), ("h", 3600.0)):
        if per_s == 0 or per_s * size >= 0.5:
            return f"{per_s * size:.3g} {of}/{unit}"
    return f"{per_s * 86400:.3g} {of}/d"


def number(value: float, se: float = math.nan) -> str:
    """Write a number with four significant digits, and ± its standard error where known."""
    if not math.isfinite(value):
        return UNKNOWN
    return f"{value:.4g} ± {se:.2g}" if math.isfinite(se) else f"{value:.4g}"


def quantity(value: float, unit: str, se: float = math.nan) -> str:
    """Write a value with its unit: times and shares in their own way, the rest as a number.

    >>> quantity(0.004, "s"), quantity(0.98, "share", 0.001), quantity(2.5, "1/s")
    ('4 ms', '98.0 ± 0.1 %', '2.5 /s')
    """
    if unit == "s":
        return seconds(value, se)
    if unit in ("share", "probability"):
        return percent(value, se)
    if unit == "1/s":
        return rate(value) if math.isnan(se) else f"{number(value, se)} /s"
    return f"{number(value, se)} {unit}".rstrip()


def plural(count: int, noun: str) -> str:
    """Write a count with its noun.

    >>> plural(1, "subscriber"), plural(1200, "subscriber")
    ('1 subscriber', '1,200 subscribers')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def short(name: str, most: int = 40) -> str:
    """Shorten a name to at most so many characters, of which none turns others round.

    >>> short("an airport with a rather long name", 16)
    'an airport with…'
    >>> short("a\u202eb")
    'a\ufffdb'
    """
    name = _TURNING.sub("\ufffd", name)
    return name if len(name) <= most else name[: most - 1].rstrip() + "…"
