"""Times as other tools write them, as whole nanoseconds."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

# A number in one of these units, or a date and time in ISO 8601.
NANOSECONDS_PER = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
ISO = "iso"
UNITS = (*NANOSECONDS_PER, ISO)

_DATE_AND_TIME = (
    r"^\s*(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}:\d{2})(?:[.,](\d+))?\s*(Z|z|[+-]\d{2}:?\d{2})?\s*$"
)


def nanoseconds(text: Column, unit: str) -> Column:
    """Read the time that a text stands for in a unit, in nanoseconds; null where it is none.

    Numbers are taken as decimals, never as floating point: a double cannot hold today's date in
    nanoseconds. ISO 8601 may have up to nine decimals; without an offset it is taken as UTC.
    """
    if unit == ISO:
        return _from_iso(text)
    # Nineteen digits before the point: whatever is longer overflows in nanoseconds too.
    number = F.nullif(F.trim(text), F.lit("")).try_cast("decimal(28,9)")
    whole = F.round(F.try_multiply(number, F.lit(NANOSECONDS_PER[unit])), 0)
    return whole.try_cast("bigint")


def _from_iso(text: Column) -> Column:
    """Read a time in ISO 8601, in nanoseconds.

    Spark's own timestamps end at microseconds, so that decimals are read apart.
    """
    parts = [F.regexp_extract(text, _DATE_AND_TIME, group) for group in (1, 2, 3, 4)]
    date, time, decimals, offset = parts
    zone = F.when(F.upper(offset).isin("", "Z"), F.lit("+00:00")).otherwise(offset)
    zone = F.regexp_replace(zone, r"^([+-]\d{2})(\d{2})$", "$1:$2")
    moment = F.concat(date, F.lit("T"), time, zone).try_cast("timestamp")
    seconds = F.try_multiply(F.unix_seconds(moment), F.lit(10**9))
    fraction = F.rpad(F.substring(decimals, 1, 9), 9, "0").try_cast("bigint")
    return F.try_add(seconds, fraction)
