"""Quantities as people write them: ``250ms``, ``0.25``, ``2/s``, ``64 B``, ``10Mbit/s``.

Inside Tidings every time is in seconds, every size in bytes, every rate in 1/s, as plain floats.
A bare number is already in that unit.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

SECONDS = {
    "ns": 1e-9,
    "us": 1e-6,
    "µs": 1e-6,  # micro sign
    "μs": 1e-6,  # Greek mu, which keyboards produce too
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
BYTES = {
    "B": 1.0,
    "kB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "KiB": 1024.0,
    "MiB": 1024.0**2,
    "GiB": 1024.0**3,
}
BITS_PER_S = {"bit/s": 0.125, "kbit/s": 125.0, "Mbit/s": 125e3, "Gbit/s": 125e6}
PER_S = {f"/{unit}": 1.0 / seconds for unit, seconds in SECONDS.items()}
BYTES_PER_S = {f"{unit}/s": size for unit, size in BYTES.items()} | BITS_PER_S

_EPOCHS_S = 1e9  # from so many seconds on, times are moments of this century
_QUANTITY = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(\S.*?)?\s*")


def parse(text: str, units: dict[str, float]) -> float | None:
    """Read the value of a quantity in its base unit, or None where the text is not such a quantity.

    >>> parse("250ms", SECONDS), parse("0.25", SECONDS), parse("10 Mbit/s", BYTES_PER_S)
    (0.25, 0.25, 1250000.0)
    >>> parse("3 parsecs", SECONDS) is None
    True
    """
    quantity = _QUANTITY.fullmatch(text)
    if quantity is None:
        return None
    number, unit = float(quantity[1]), quantity[2]
    if unit is None:
        return number
    if unit not in units:
        return None
    # Dividing by 1000 rounds better than multiplying by 0.001: "250ms" is exactly 0.25.
    scale = units[unit]
    return number * scale if scale >= 1 else number / round(1 / scale)


def format_seconds(seconds: float) -> str:
    """Write a time, in seconds, with three significant digits in the unit a person would pick.

    >>> format_seconds(0.25), format_seconds(0.0000125), format_seconds(5400.0), format_seconds(0)
    ('250 ms', '12.5 µs', '1.5 h', '0 s')
    """
    if seconds == 0 or not math.isfinite(seconds):
        return f"{seconds:g} s"
    size = abs(seconds)
    for unit, scale in (("d", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3)):
        # Minutes and above only once they read better than seconds do.
        if size >= scale * (1.0 if scale <= 1.0 else 1.5 if scale > 60 else 2.0):
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def short_seconds(seconds: float) -> str:
    """Write a time, in seconds, as files may hold it: in a handy unit where that loses nothing.

    >>> short_seconds(0.04), short_seconds(1 / 3)
    ('40ms', '0.3333333333333333s')
    """
    handy = format_seconds(seconds).replace(" ", "")
    return handy if parse(handy, SECONDS) == seconds else f"{seconds!r}s"


def exact_seconds(nanoseconds: int) -> str:
    """Write a time in seconds to the nanosecond, without zeros at the end.

    >>> exact_seconds(12_500_000_001), exact_seconds(-3_000_000_000), exact_seconds(0)
    ('12.500000001 s', '-3 s', '0 s')
    """
    whole, rest = divmod(abs(nanoseconds), 1_000_000_000)
    sign = "-" if nanoseconds < 0 else ""
    return f"{sign}{whole}.{rest:09d}".rstrip("0").rstrip(".") + " s"


def moment(at_ns: int) -> str:
    """Write a moment in UTC to the nanosecond, or else as time on the recording's own clock.

    >>> moment(1_700_000_000_000_000_001), moment(5_000_000_000)
    ('2023-11-14T22:13:20.000000001Z', "5 s on the recording's clock")
    """
    whole, rest = divmod(at_ns, 1_000_000_000)
    if whole < _EPOCHS_S:
        return f"{exact_seconds(at_ns)} on the recording's clock"
    clock = datetime.fromtimestamp(whole, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{clock}.{rest:09d}".rstrip("0").rstrip(".") + "Z"
