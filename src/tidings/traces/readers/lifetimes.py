"""How long messages are of use, where spans tell it or a rule says it.

>>> rules = parse_lifetimes(["30s", "orders.*=5s", "@messaging.header.ttl=ms"])
>>> rules.everything_ns, rules.destinations, rules.attributes["messaging.header.ttl"]
(30000000000, (('orders.*', 5000000000),), 'ms')
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidings.errors import InvalidInputError
from tidings.model import units
from tidings.traces.readers.times import NANOSECONDS_PER, nanoseconds

ODD = "its lifetime is not a time"
# Headers as instrumentations record them, by what their brokers mean: NATS's in seconds or with a
# unit, AMQP's in milliseconds.
KNOWN = {
    "messaging.header.Nats-TTL": "s",
    "messaging.header.Nats_TTL": "s",
    "messaging.header.nats_ttl": "s",
    "messaging.header.expiration": "ms",
}
_FORMS = "wants a time (30s), DESTINATION=TIME (orders.*=5s) or @ATTRIBUTE=UNIT (@ttl=ms)"
# A number, perhaps with a unit; headers are lists, which some tools write as text.
_TIME = r'^[\["\s]*(\d{1,18}(?:\.\d{1,9})?)\s*(ns|us|ms|s|min|m|h|d)?["\]\s]*$'


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetimes:
    """Where lifetimes come from: attributes of a span, else its destination, else one for all."""

    attributes: Mapping[str, str] = field(default_factory=lambda: dict(KNOWN))  # and their units
    destinations: tuple[tuple[str, int], ...] = ()  # patterns, and nanoseconds
    everything_ns: int | None = None


def parse_lifetimes(rules: Sequence[str]) -> Lifetimes:
    """Read the rules of a command line; what it says of attributes comes before what is known."""
    attributes: dict[str, str] = {}
    destinations: list[tuple[str, int]] = []
    everything: int | None = None
    for rule in rules:
        name, equals, value = rule.rpartition("=")
        if rule.startswith("@"):
            if not equals or value not in NANOSECONDS_PER or len(name) < 2:
                raise InvalidInputError(f"the lifetime '{rule}' has no unit; {_FORMS}")
            attributes[name.removeprefix("@")] = value
        elif equals and name:
            destinations.append((name, _nanoseconds(rule, value)))
        elif equals:
            raise InvalidInputError(f"the lifetime '{rule}' names no destination; {_FORMS}")
        else:
            everything = _nanoseconds(rule, value)
    return Lifetimes(
        attributes={**attributes, **KNOWN, **attributes},
        destinations=tuple(destinations),
        everything_ns=everything,
    )


def told_lifetime(lifetimes: Lifetimes, texts: Mapping[str, Column]) -> tuple[Column, Column]:
    """Read a lifetime from attributes, by name: in nanoseconds, and whether it cannot be read."""
    times: list[Column] = []
    for name, unit in lifetimes.attributes.items():
        number = F.regexp_extract(texts[name], _TIME, 1)
        word = F.regexp_extract(texts[name], _TIME, 2)
        words = {**{each: each for each in NANOSECONDS_PER}, "m": "min", "": unit}
        times += [F.when(word == each, nanoseconds(number, one)) for each, one in words.items()]
    time, given = F.coalesce(*times), F.coalesce(*texts.values())
    return time, given.isNotNull() & time.isNull()


def ruled_lifetime(lifetimes: Lifetimes, destination: Column) -> Column:
    """Give the lifetime of messages to a destination, in ns: the first rule that fits counts."""
    ruled = F.lit(lifetimes.everything_ns).cast("bigint")
    for pattern, time_ns in reversed(lifetimes.destinations):
        parts = [re.escape(part) for part in pattern.split("*")]
        fits = destination.rlike(f"^{'.*'.join(parts)}$")
        ruled = F.when(fits, F.lit(time_ns)).otherwise(ruled)
    return ruled


def _nanoseconds(rule: str, text: str) -> int:
    time_s = units.parse(text, units.SECONDS)
    if time_s is None or not 0 < time_s < 1e9:
        raise InvalidInputError(f"the lifetime '{rule}' is not a time above 0; {_FORMS}")
    return round(time_s * 1e9)
