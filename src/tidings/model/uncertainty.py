"""The parameters of a system whose standard errors are known, and the system with other values.

A path names one number: the mean of a law (whose shape is kept), a rate, or a share:
``brokers.B.service``, ``links.A--B.delay`` and ``.reliability`` (``links.A--B.back.…`` for the way
back), ``publishers.P.rate``, ``subscribers.S.stays`` and ``.away``, ``….link.delay``,
``….link.reliability``, ``….connectivity.on`` and ``….connectivity.off`` of peers, and
``….failure.mtbf`` and ``.mttr`` of brokers, links (of both directions) and failure groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidings.model.behaviour import Channel, Failure
from tidings.model.laws import Law
from tidings.model.record_tables import names
from tidings.model.system import Broker, Link, Publisher, System

_OF_PEERS = ("link.delay", "link.reliability", "connectivity.on", "connectivity.off")
_PERIODS = {"failure.mtbf": "up", "failure.mttr": "down"}
_FIELDS = {
    "brokers": ("service", *_PERIODS),
    "links": ("back.delay", "back.reliability", "delay", "reliability", *_PERIODS),
    "failure_groups": (*_PERIODS,),
    "publishers": ("rate", *_OF_PEERS),
    "subscribers": ("stays", "away", *_OF_PEERS),
}
_OWN_TIMES = ("stays", "away")
_LEAST = 1e-3  # of its value, to which it is lowered at most: of nothing no delay is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertain:
    """A number of a system that is known with a standard error."""

    section: str
    owner: str  # by name
    field: str
    value: float
    standard_error: float

    @property
    def low(self) -> float:
        """One standard error less, where that is possible; else the least that is."""
        return max(self.value - self.standard_error, _LEAST * self.value)

    @property
    def high(self) -> float:
        """One standard error more, where that is possible; else the most that is."""
        most = 1.0 if self._is_share else float("inf")
        return min(self.value + self.standard_error, most)

    @property
    def moved(self) -> float:
        """One standard error more, or less where more is not possible.

        Of times between failures, so much more of their inverse: shares that are lost follow how
        often something fails, and few failures leave large errors, off the slope of the times.
        """
        if self.field == "failure.mtbf":
            return self.value**2 / (self.value + self.standard_error)
        return self.high if self.high > self.value else self.low

    @property
    def path(self) -> str:
        """Its name in the table of standard errors."""
        return f"{self.section}.{self.owner}.{self.field}"

    @property
    def _is_share(self) -> bool:
        return self.field.endswith("reliability")


def uncertain_parameters(system: System) -> tuple[list[Uncertain], list[str]]:
    """List the parameters with a standard error above 0, and paths that name no parameter."""
    uncertain, others = [], []
    owners = {section: _owners(system, section) for section in _FIELDS}
    for path, error in system.standard_errors:
        if error == 0.0:  # known exactly
            continue
        section, _, rest = path.partition(".")
        parts = _split(rest, _FIELDS.get(section, ()))
        owner = owners.get(section, {}).get(parts[0]) if parts else None
        value = None if owner is None or parts is None else _value(owner, parts[1])
        if value is None or parts is None:
            others.append(path)
        else:
            one = Uncertain(
                section=section, owner=parts[0], field=parts[1], value=value, standard_error=error
            )
            uncertain.append(one)
    return uncertain, others


def with_values(system: System, values: Mapping[Uncertain, float]) -> System:
    """Make a copy of the system with other values of some of its parameters."""
    paths = {path for path, _ in system.standard_errors}
    sections: dict[str, dict[str, list[tuple[str, float]]]] = {}
    for one, value in values.items():
        sections.setdefault(one.section, {}).setdefault(one.owner, []).append((one.field, value))
    parts: dict[str, Any] = {}
    for section, changes in sections.items():
        records = list(getattr(system, section))
        place_of = _places(system, section)
        for owner, fields in changes.items():
            record = records[place_of[owner]]
            for field, value in fields:
                both = f"links.{owner}.back.{field}" not in paths
                record = changed(record, field, value, both=both)
            records[place_of[owner]] = record
        parts[section] = tuple(records)
    return replace(system, **parts)


def _places(system: System, section: str) -> dict[str, int]:
    return {name: index for index, name in enumerate(names(getattr(system, section)))}


def _owners(system: System, section: str) -> dict[str, Any]:
    records = getattr(system, section)
    if not any(path.startswith(f"{section}.") for path, _ in system.standard_errors):
        return {}
    return dict(zip(names(records), records, strict=True))


def _split(rest: str, fields: tuple[str, ...]) -> tuple[str, str] | None:
    """Split a path into owner and field.

    Names may have dots in them, so the longest field that fits is it.
    """
    for field in fields:
        if rest.endswith(f".{field}"):
            return rest.removesuffix(f".{field}"), field
    return None


def _value(owner: Any, field: str) -> float | None:
    match owner, field:
        case Broker(), "service":
            return owner.service.law.mean_s if owner.service and owner.service.law.mean_s else None
        case Publisher(), "rate":
            return owner.rate_per_s if owner.every is not None else None
    if field in _OWN_TIMES:
        return None if getattr(owner, field) is None else float(getattr(owner, field).mean_s)
    if field in _PERIODS:
        failure = failure_of(owner)
        return None if failure is None else float(getattr(failure, _PERIODS[field]).mean_s)
    if field.startswith("connectivity."):
        law = getattr(owner.connectivity, field.rpartition(".")[2], None)
        return None if law is None else float(law.mean_s)
    channel = _channel(owner, field)
    value = channel.reliability if field.endswith("reliability") else channel.delay.mean_s
    return value or None


def failure_of(owner: Any) -> Failure | None:
    """Give how a component fails: a link with both its directions."""
    failure: Failure | None = owner.there.failure if isinstance(owner, Link) else owner.failure
    return failure


def _channel(owner: Any, field: str) -> Channel:
    if isinstance(owner, Link):
        return owner.back if field.startswith("back.") else owner.there
    channel: Channel = owner.link
    return channel


def changed(owner: Any, field: str, value: float, *, both: bool = True) -> Any:
    """Give a broker, link or peer with another value of one of its parameters.

    Of a link ``both`` directions change where they are alike.
    """
    if field == "service":
        service = owner.service
        return replace(owner, service=replace(service, law=_with_mean(service.law, value)))
    if field == "rate":
        return replace(owner, every=_with_mean(owner.every, 1.0 / value))
    if field in _OWN_TIMES:
        return replace(owner, **{field: _with_mean(getattr(owner, field), value)})
    if field in _PERIODS:
        return _failing(owner, _PERIODS[field], value)
    name = field.rpartition(".")[2]
    if field.startswith("connectivity."):
        law = _with_mean(getattr(owner.connectivity, name), value)
        return replace(owner, connectivity=replace(owner.connectivity, **{name: law}))
    old = _channel(owner, field)
    own: Any = value if name == "reliability" else _with_mean(old.delay, value)
    new = replace(old, **{name: own})
    if not isinstance(owner, Link):
        return replace(owner, link=new)
    if field.startswith("back."):
        return replace(owner, back=new)
    # What is told of one direction only holds for both, where they are alike.
    alike = both and getattr(owner.back, name) == getattr(old, name)
    back = replace(owner.back, **{name: own}) if alike else owner.back
    return replace(owner, there=new, back=back)


def _failing(owner: Any, name: str, mean_s: float) -> Any:
    """Make a copy of a component with another mean time up or down, in seconds."""
    if isinstance(owner, Link):
        is_alike = owner.back.failure == owner.there.failure
        there = _failing(owner.there, name, mean_s)
        back = replace(owner.back, failure=there.failure) if is_alike else owner.back
        return replace(owner, there=there, back=back)
    law = _with_mean(getattr(owner.failure, name), mean_s)
    return replace(owner, failure=replace(owner.failure, **{name: law}))


def _with_mean(law: Law, mean_s: float) -> Law:
    return law.scaled(mean_s / law.mean_s)
