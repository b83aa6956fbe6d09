"""What must hold between the settings of a consumer group, so that none is ignored.

What real brokers do decides: a setting that its broker would refuse, or that another one replaces,
is a problem. Two limits of the same thing are none: both hold, and the smaller one is felt.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tidings.model.document import Place
from tidings.model.records import given

if TYPE_CHECKING:
    from tidings.model.consumers import Consumers

_AGAIN = ("ack_wait", "backoff")
_ACKNOWLEDGED = (*_AGAIN, "deliveries", "in_flight")
_TOLD_NOTHING = "'qos' 1 or 2: with 0 nothing is acknowledged, and nothing delivered again"
_ONE_OF_TWO = {  # a field, and another that takes its place
    "count": ("members", "either 'count' (members alike) or 'members' by name"),
    "prefetch": ("fetch", "either 'prefetch' or 'fetch', which is the limit then"),
    "ack_wait": ("backoff", "either 'ack_wait' or 'backoff', whose first time replaces it"),
    "choose": (
        "partitions",
        "either 'choose' or 'partitions', whose owners get their events, whoever is busy",
    ),
}


def check_fields(place: Place) -> None:
    """Check that no field is given beside one that takes its place, or without one it needs."""
    fields = given(place)
    for field, (other, want) in _ONE_OF_TWO.items():
        if {field, other} <= fields:
            place.inside(field).report(want)
    if place.inside("members").value == {}:
        place.inside("members").report("at least one member, or 'count'")
    if "when_full" in fields and "buffer" not in fields:
        place.inside("when_full").report("a 'buffer' that can be full", saw="none")
    if place.inside("qos").value == 0:
        for field in _ACKNOWLEDGED:
            if field in fields:
                place.inside(field).report(_TOLD_NOTHING)
    elif "deliveries" in fields and not fields & set(_AGAIN):
        place.inside("deliveries").report(
            "an 'ack_wait' after which an event is delivered again", saw="none"
        )


def check_group(group: Consumers, place: Place) -> None:
    """Check that the values of a group's fields leave something for each of them to do."""
    _check_names(group, place)
    _check_quality(group, place)
    _check_requests(group, place)
    _check_fetches(group, place)
    _check_partitions(group, place)
    waits = place.inside("backoff")
    if group.deliveries is not None and len(group.backoff_s) > group.deliveries:
        waits.report(f"at most as many times as 'deliveries', {group.deliveries}")


def _check_names(group: Consumers, place: Place) -> None:
    """Check that each member has a name of its own, those numbered by their count included."""
    of = Counter(each.name for each in group.each())
    twice = next((name for name, times in of.items() if times > 1), None)
    if twice is not None:
        place.inside("members").report(
            "members with names of their own, also where a 'count' numbers them",
            saw=f"two members '{twice}'",
        )


def _check_quality(group: Consumers, place: Place) -> None:
    """Check what the quality of service asks for.

    With 2 there must be a time after which what did not arrive is sent again, and events come one
    by one, without 'fetch'. With 0 a broker that pushes events never learns what a member holds.
    """
    if group.qos == 2 and not group.acknowledges:
        place.inside("qos").report("'ack_wait', after which what did not arrive is sent again")
    if group.qos == 2 and group.fetch is not None:
        place.inside("fetch").report("'qos' 0 or 1, or no 'fetch': those of 2 come one by one")
    if group.untold and "prefetch" in given(place) and group.prefetch > 0:
        place.inside("prefetch").report(
            "0 (no limit), or 'qos' 1 or 2: with 0 nobody tells the broker what a member holds"
        )


def _check_requests(group: Consumers, place: Place) -> None:
    """Check that only members that ask for events ask for more, at most 'prefetch' at a time."""
    if group.asks:
        if group.prefetch == 0:
            place.inside("prefetch").report("1 or more: so many events a member asks for")
        if group.refill is not None and group.refill > group.prefetch > 0:
            place.inside("refill").report(f"at most 'prefetch', {group.prefetch}")
    elif group.refill is not None:
        place.inside("refill").report("'choose: longest waiting'", saw=group.choose)


def _check_fetches(group: Consumers, place: Place) -> None:
    """Check that members that fetch do not ask beside it, and that what lingers can grow."""
    if group.fetch is None:
        return
    if group.asks:
        place.inside("choose").report(
            "another way, or 'prefetch' instead of 'fetch': members that fetch ask when they are "
            "done, and those that wait get events in turn"
        )
    if group.fetch.size == 1 and group.fetch.linger_s > 0.0:
        place.inside("fetch", "linger").report(
            "no 'linger', or a 'size' above 1: fewer than one event never waits"
        )


def _check_partitions(group: Consumers, place: Place) -> None:
    """Check that owners are members, and that members come and go where that takes a pause."""
    if group.partitions is None:
        return
    names = [member.name for member in group.each()]
    at = place.inside("partitions")
    for index, owner in enumerate(group.partitions.owners):
        if owner not in names:
            at.inside("owners", index).report(f"one of the members {', '.join(names[:8])}")
    if group.partitions.rebalance_s > 0.0 and not group.crashes:
        at.inside("rebalance").report(
            "members with a 'failure': without, nobody comes or goes",
            fix="such as members: {worker: {count: 4, failure: {mtbf: 1d, mttr: 1min}}}",
        )
