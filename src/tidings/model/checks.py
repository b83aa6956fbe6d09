"""What must hold across a whole system description, beyond each field on its own.

The checks run on what stands in the document, even where it could not be read as a record, so that
one reading reports everything. A name counts as known when it stands in the document, whether or
not its own record is in order; where a whole section could not be read, nothing is said of names
that might stand in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tidings.model.document import Place, meant_name
from tidings.model.link_checks import LinkEnds, check_links, check_paths, unknown_broker
from tidings.model.record_tables import RecordTable
from tidings.model.records import given
from tidings.model.system import FORMAT_VERSION, Broker, Recovery

Names = Mapping[str, Sequence[str] | None]  # of each section; None where it could not be read
NEEDED = ("brokers", "publishers", "subscribers")
_STAYS_BESIDE = "'stays' as well: how long a subscription lasts before the subscriber is away"


def check_system(parts: Mapping[str, Any], place: Place) -> None:
    """Note every problem between the parts of a system, at its place."""
    names = {section: _names(place, section) for section in (*NEEDED, "networks")}
    if parts.get("version") not in (FORMAT_VERSION, None):
        place.inside("tidings").report(
            f"{FORMAT_VERSION}", fix="this version of Tidings reads format 1"
        )
    for section in NEEDED:
        if names[section] == []:
            place.inside(section).report(f"at least one of the {section}")
    _check_names(names, place)
    _check_homes(names["brokers"], place)
    _check_brokers(place)
    _check_publishers(place)
    _check_pauses(place)
    _check_subscribers(place)
    _check_networks(names["networks"], place)
    _check_table(names, place)
    ends = check_links(names["brokers"], place)
    check_paths(names["brokers"], ends, place)
    _check_members(names["brokers"], ends, place)
    _check_recovery(parts.get("recovery"), place)
    _check_paths_of_errors(names, ends, place)


def _names(place: Place, section: str) -> list[str] | None:
    value = place.inside(section).value
    if isinstance(value, RecordTable):
        return list(value.names)
    if isinstance(value, Mapping):
        return [str(name) for name in value]
    return [] if value is None and section not in NEEDED else None


def _each(place: Place, section: str) -> Iterator[Place]:
    """Yield the locations of a section's parts, by name or by index, that are mappings."""
    value = place.inside(section).value
    keys: Any = ()
    if isinstance(value, Mapping):
        keys = value
    elif isinstance(value, list):
        keys = range(len(value))
    for key in keys:
        part = place.inside(section, key)
        if isinstance(part.value, Mapping):
            yield part


def _check_names(names: Names, place: Place) -> None:
    """Check that names are not empty, and that no client has the name of a broker.

    Links refer to both alike, and so do traces. A client may publish and subscribe under one name.
    """
    brokers = set(names["brokers"] or ())
    for section in NEEDED:
        for name in names[section] or ():
            if not name.strip():
                place.inside(section, name).report(
                    "a name that is not empty", saw=f"the name '{name}'"
                )
            elif section == "brokers" and "--" in name:
                place.inside(section, name).report(
                    "a name without '--' in it (that joins the ends of links)",
                    saw=f"the name '{name}'",
                )
            if section != "brokers" and name in brokers:
                place.inside(section, name).report(
                    "a name of its own", saw=f"'{name}', which is also among the brokers"
                )


def _check_homes(brokers: Sequence[str] | None, place: Place) -> None:
    if brokers is None:
        return
    known = set(brokers)
    for section in ("publishers", "subscribers"):
        for peer in _each(place, section):
            home = peer.inside("at")
            if isinstance(home.value, str) and home.value and home.value not in known:
                unknown_broker(home, brokers)


def _check_brokers(place: Place) -> None:
    plain = Broker(name="plain")
    for broker in _each(place, "brokers"):
        fields = given(broker)
        queue = [
            field
            for field in ("servers", "buffer", "when_full", "discipline", "priorities")
            if field in fields and broker.value[field] != getattr(plain, field)
        ]
        if "service" not in fields and queue:
            broker.report(f"a 'service' law, as '{queue[0]}' is of the queue before it", saw="none")
        if "when_full" in fields and "buffer" not in fields:
            broker.inside("when_full").report("a 'buffer' that can be full", saw="none")
        _check_event_types(place, broker)


def _check_event_types(place: Place, broker: Place) -> None:
    """Check that what is given by event type can be applied.

    It needs 'event_type' at the top of the file, which says what an event's type is; priorities
    also need the discipline 'priority', since the others ignore them.
    """
    stations = [broker.inside(name) for name in ("cpu", "disk", "out")]
    by_type = {
        "demands": [each.inside("demands") for each in stations],
        "priorities": [each.inside("priorities") for each in (broker, *stations)],
    }
    for what, places in by_type.items():
        if place.inside("event_type").value is None and any(each.value for each in places):
            broker.report(
                "'event_type' at the top of the file: the attribute that is an event's type",
                saw=f"{what} by event type",
            )
    for station, priorities in zip((broker, *stations), by_type["priorities"], strict=True):
        if priorities.value and station.inside("discipline").value != "priority":
            priorities.report("no priorities, or the discipline 'priority': others ignore them")


def _check_publishers(place: Place) -> None:
    for publisher in _each(place, "publishers"):
        fields = given(publisher) & {"every", "rates", "publishes"}
        if len(fields) != 1:
            publisher.report(
                "one of 'every' (time between events), 'rates' (by time of day) and 'publishes' "
                "(recorded times, a clock, batches, bursts)",
                saw=" and ".join(sorted(fields)) or "none of them",
            )
        if publisher.inside("when_blocked").value == "pause" and "every" not in fields:
            publisher.inside("when_blocked").report(
                "'every' beside 'pause': other times are what they are, whoever is blocked"
            )


def _check_pauses(place: Place) -> None:
    """Check that something can block the publishers that make no events while they are blocked."""
    pausing = [
        each.inside("when_blocked")
        for each in _each(place, "publishers")
        if each.inside("when_blocked").value == "pause"
    ]
    if not pausing or isinstance(place.inside("subscribers").value, RecordTable):
        return
    queues = (
        *_each(place, "brokers"),
        *(each.inside("consumers") for each in _each(place, "subscribers")),
    )
    if not any(each.inside("when_full").value == "block" for each in queues):
        for each in pausing:
            each.report("a 'buffer' with 'when_full: block' at a broker or of 'consumers'")


def _check_subscribers(place: Place) -> None:
    for subscriber in _each(place, "subscribers"):
        fields = given(subscriber)
        if "away" in fields and "stays" not in fields:
            subscriber.inside("away").report(_STAYS_BESIDE)
        if "consumers" in fields:
            _check_consumers(subscriber, fields)


def _check_consumers(subscriber: Place, fields: set[str]) -> None:
    """Check that a consumer group knows how long handling takes and is always there.

    Its members come and go, by their 'failure', not the group.
    """
    members = subscriber.inside("consumers", "members").value
    named = list(members.values()) if isinstance(members, Mapping) else []
    own = [isinstance(each, Mapping) and each.get("processing") is not None for each in named]
    if "processing" not in fields and not (own and all(own)):
        subscriber.report("'processing': the time a member of 'consumers' takes for one event")
    if "processing" in fields and own and all(own):
        subscriber.inside("processing").report(
            "none here, or a member without: each of the 'members' has its own"
        )
    for other in ("connectivity", "stays"):
        if other in fields:
            subscriber.inside(other).report(
                f"'consumers' without '{other}': the group is always there; its members come and "
                "go by their 'failure'"
            )


def _check_networks(networks: Sequence[str] | None, place: Place) -> None:
    if networks is None:
        return
    channels = [part for link in _each(place, "links") for part in (link, link.inside("back"))]
    for section in ("publishers", "subscribers"):
        channels += [peer.inside("link") for peer in _each(place, section)]
    for channel in channels:
        network = channel.inside("network")
        if isinstance(network.value, str) and network.value and network.value not in networks:
            network.report(
                f"one of the networks {', '.join(networks) or '(there are none)'}",
                fix=meant_name(network.value, networks),
            )


def _check_table(names: Names, place: Place) -> None:
    """Check subscribers that were read by columns; report each problem for the whole table.

    Reading by rows reports it in full.
    """
    table = place.inside("subscribers")
    if not isinstance(table.value, RecordTable):
        return
    stays, away = (
        table.value.column(name).where(lambda law: law is not None) for name in ("stays", "away")
    )
    if np.setdiff1d(away, stays).size:
        table.report(_STAYS_BESIDE, saw="a subscriber with 'away' alone")
    homes = set(table.value.column("at").values)
    networks = {channel.network for channel in table.value.column("link").values} - {None}
    for used, section in ((homes, "brokers"), (networks, "networks")):
        known = names[section]
        if known is not None and not used <= set(known):
            table.report(f"only names of the {section}")


def _check_members(brokers: Sequence[str] | None, ends: LinkEnds | None, place: Place) -> None:
    every_link = ends is not None and not ends.nameless
    for group in _each(place, "failure_groups"):
        members = group.inside("members")
        for index, member in enumerate(members.value if isinstance(members.value, list) else ()):
            if not isinstance(member, str) or not member:
                continue
            is_link = ends is not None and member in ends.names
            checkable = every_link if "--" in member else brokers is not None
            if checkable and not is_link and member not in (brokers or ()):
                members.inside(index).report("the name of a broker, or of a link as a--b")


def _check_recovery(recovery: Recovery | None, place: Place) -> None:
    """Check that no recovery field is given that the scheme would ignore."""
    if recovery is None:
        return
    at = place.inside("recovery")
    if recovery.timeout_s is not None and recovery.refresh_s == 0.0:
        at.inside("timeout").report(
            "a 'refresh' interval above 0, or no 'timeout': with refresh 0 nothing ever times out"
        )
    plain = Recovery(scheme="none")
    fields = ("refresh", "timeout", "detection")
    changed = [one for one in fields if getattr(recovery, f"{one}_s") != getattr(plain, f"{one}_s")]
    if recovery.scheme == "none" and changed:
        at.inside(changed[0]).report("a scheme other than 'none', which has no recovery options")


def _check_paths_of_errors(names: Names, ends: LinkEnds | None, place: Place) -> None:
    known = {section: None if each is None else set(each) for section, each in names.items()}
    known["links"] = set(ends.names) if ends is not None and not ends.nameless else None
    errors = place.inside("standard_errors").value
    for path in map(str, errors if isinstance(errors, Mapping) else ()):
        section, *steps = path.split(".")
        owners = known.get(section, set())
        prefixes = (".".join(steps[:length]) for length in range(1, len(steps) + 1))
        if owners is not None and not any(
            prefix in owners for prefix in prefixes
        ):  # names may have dots
            place.inside("standard_errors", path).report(
                "the path of a parameter, such as brokers.hub.service or links.a--b.delay",
                saw=f"the path '{path}'",
            )
