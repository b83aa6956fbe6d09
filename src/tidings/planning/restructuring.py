"""Changes of what there is: brokers, links and peers that come, go or move."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tidings.errors import InvalidInputError
from tidings.model import reading, records, yaml_text
from tidings.model.document import Place
from tidings.model.record_tables import names
from tidings.model.system import LINK, Broker, Link, Publisher, Subscriber, System
from tidings.planning.selections import check_target, edited, means

PUTS = {"broker": Broker, "link": Link, "publisher": Publisher, "subscriber": Subscriber}
_ALL = ("brokers", "links", "publishers", "subscribers")


def check_whole(system: System, name: str) -> System:
    """The same system, read anew: what no longer fits together is told as of any system file."""
    return reading.from_document(reading.system_document(system), name)


def remove(system: System, target: str) -> System:
    """Without a broker (nor its links and peers), a link, or a peer; nor what is said of them."""
    check_target(system, _ALL, target)
    gone = {broker.name for broker in system.brokers if means(target, broker)}
    kept: dict[str, Any] = {
        "brokers": _kept(system.brokers, target),
        "links": tuple(
            link for link in _kept(system.links, target) if not gone & set(link.between)
        ),
        "publishers": tuple(p for p in _kept(system.publishers, target) if p.at not in gone),
        "subscribers": tuple(s for s in _kept(system.subscribers, target) if s.at not in gone),
    }
    left = {record.name for section in kept.values() for record in section}
    groups = (
        replace(group, members=tuple(name for name in group.members if name in left))
        for group in system.failure_groups
    )
    return replace(
        system,
        **kept,
        failure_groups=tuple(group for group in groups if group.members),
        standard_errors=_known_errors(system, left),
    )


def _kept(records: Iterable[Any], target: str) -> tuple[Any, ...]:
    return tuple(record for record in records if not means(target, record))


def _known_errors(system: System, left: set[str]) -> tuple[tuple[str, float], ...]:
    def owner_is_left(path: str) -> bool:
        _, *steps = path.split(".")
        return any(".".join(steps[:length]) in left for length in range(1, len(steps) + 1))

    return tuple(each for each in system.standard_errors if owner_is_left(each[0]))


def move(system: System, target: str, home: str) -> System:
    """Peers at another home broker."""
    peers = tuple(s for s in ("publishers", "subscribers") if _has(system, s, target))
    return edited(system, peers or ("subscribers",), target, lambda peer: replace(peer, at=home))


def _has(system: System, section: str, target: str) -> bool:
    return any(means(target, record) for record in getattr(system, section))


def add(system: System, count: int, model: str, home: str | None = None) -> System:
    """So many subscribers more like one there is, at its broker or at another."""
    check_target(system, ("subscribers",), model)
    like = next((each for each in system.subscribers if each.name == model), None)
    if like is None:
        raise InvalidInputError(f"wants the name of one subscriber, not '{model}'")
    at = home or like.at
    taken = set(names(system.subscribers))
    name = f"{count} like {model} at {at}"
    while name in taken:
        name += " again"
    new = replace(like, name=name, at=at, count=count)
    return replace(system, subscribers=(*system.subscribers, new))


def put(system: System, verb: str, name: str, text: str) -> System:
    """With a record as it stands in a system file, in the place of one of that name or new."""
    section = f"{verb}s"
    place = yaml_text.parse(text)
    record = None if place.problems else _read(verb, name, place)
    if place.problems or record is None:
        raise InvalidInputError("its value cannot be read", place.problems)
    old = tuple(getattr(system, section))
    at = next((index for index, each in enumerate(old) if means(record.name, each)), len(old))
    changes: dict[str, Any] = {section: (*old[:at], record, *old[at + 1 :])}
    return replace(system, **changes)


def _read(verb: str, name: str, place: Place) -> Any:
    if verb != "link":
        return records.read_record(PUTS[verb], place, name=name)
    value = place.value if isinstance(place.value, dict) else {}
    return LINK.read(place.instead({"between": name.split("--"), **value}))
