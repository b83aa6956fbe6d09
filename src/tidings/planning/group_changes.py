"""Changes of consumer groups: members, what they hold, when they acknowledge, their partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tidings.errors import InvalidInputError
from tidings.model import records
from tidings.model.behaviour import FAILURE, LAW, POSITIVE_LAW
from tidings.model.consumers import CHOICES, CONSUMERS, MOST_MEMBERS, Consumers
from tidings.model.document import Place
from tidings.model.laws import Law
from tidings.model.records import Kind
from tidings.model.system import Subscriber
from tidings.planning.change_kinds import Adjustment, Factor, new_law, own_field

GroupEdit = Callable[[Consumers, Any], Consumers | None]  # None: it has nothing to change


def _field(name: str) -> GroupEdit:
    return lambda group, value: replace(group, **{name: value})


def _awaited(group: Consumers, value: float | None) -> Consumers:
    """Set how long every acknowledgement is waited for; None: nothing is delivered again."""
    deliveries = None if value is None else group.deliveries
    return replace(group, ack_wait_s=value, backoff_s=(), deliveries=deliveries)


def _crashing(group: Consumers, value: Any) -> Consumers | None:
    return group.with_crashes(value) if group.members else None


def _held(group: Consumers, value: int) -> Consumers:
    """Limit how many events members hold; where they fetch, set how many they fetch.

    They ask for more no sooner than they may.
    """
    if group.fetch is not None:
        size = max(value, 1)
        linger_s = group.fetch.linger_s if size > 1 else 0.0  # one event waits for no others
        return replace(group, fetch=replace(group.fetch, size=size, linger_s=linger_s))
    refill = None if group.refill is not None and group.refill > value else group.refill
    return replace(group, prefetch=value, refill=refill)


def _even_keys(group: Consumers, value: str) -> Consumers | None:
    return group.with_even_keys() if group.partitions is not None else None


def _partitions(group: Consumers, value: int) -> Consumers | None:
    return group.with_partitions(value) if group.partitions is not None else None


def _one_member(group: Consumers, value: tuple[str, Law]) -> Consumers | None:
    name, law = value
    return group.with_member(name, law) if name in {each.name for each in group.members} else None


def _read_member(place: Any) -> Any:
    """Read a member and its time for an event, such as slow: 5ms."""
    value = place.value
    if not isinstance(value, dict) or len(value) != 1:
        place.report("a member and its time for an event, such as {slow: 5ms}")
        return None
    (name,) = value
    return str(name), POSITIVE_LAW.read(place.inside(name))


_MEMBER = Kind(
    label="a member and a law",
    read=_read_member,
    write=lambda value: {value[0]: POSITIVE_LAW.write(value[1])},
    schema=dict,
)


def _members(group: Consumers, value: int) -> Consumers | None:
    """Set the number of members, who have partitions in turn; None where members are not alike."""
    if len(group.members) > 1:
        return None
    partitions = None if group.partitions is None else replace(group.partitions, owners=())
    if group.members:
        members = (replace(group.members[0], count=value),)
        return replace(group, members=members, partitions=partitions)
    return replace(group, count=value, partitions=partitions)


def _processed(subscriber: Subscriber, value: Any) -> Any:
    """Change a subscriber's time for an event; a factor changes those of its members, too."""
    old = subscriber.consumers
    own = own_field("processing")(subscriber, value)
    if old is not None and not isinstance(value, Factor) and (old.each_has_its_time or not value):
        return None  # nobody would take that time, or nobody would know how long to take
    if old is None or not isinstance(value, Factor) or not any(m.processing for m in old.members):
        return own
    members = tuple(
        replace(each, processing=new_law(each.processing, value)) for each in old.members
    )
    return replace(own or subscriber, consumers=replace(old, members=members))


def _check(group: Consumers, name: str) -> None:
    """Refuse a group whose settings do not fit together, as in a system file."""
    place = Place(CONSUMERS.write(group), ("subscribers", name, "consumers"))
    CONSUMERS.read(place)
    if place.problems:
        raise InvalidInputError("its settings do not fit together then", place.problems)


def _of_group(kind: Kind, edit: GroupEdit, *, may_be_none: bool = False) -> Adjustment:
    def edited(subscriber: Subscriber, value: Any) -> Subscriber | None:
        if subscriber.consumers is None:
            return None
        group = edit(subscriber.consumers, value)
        if group is None:
            return None
        _check(group, subscriber.name)
        processing = None if group.each_has_its_time else subscriber.processing
        return replace(subscriber, consumers=group, processing=processing)

    return Adjustment(
        sections=("subscribers",), kind=kind, edit=edited, scales=False, may_be_none=may_be_none
    )


GROUP_ADJUSTMENTS: dict[str, Adjustment] = {
    "crashes": _of_group(FAILURE, _crashing, may_be_none=True),
    "members": _of_group(records.whole(1, MOST_MEMBERS), _members),
    "prefetch": _of_group(records.whole(0), _held),
    "ack_wait": _of_group(records.POSITIVE_TIME, _awaited, may_be_none=True),
    "deliveries": _of_group(records.whole(1), _field("deliveries"), may_be_none=True),
    "processing": Adjustment(
        sections=("subscribers",), kind=LAW, edit=_processed, may_be_none=True
    ),
    "member": _of_group(_MEMBER, _one_member),
    "choose": _of_group(records.choice(*CHOICES), _field("choose")),
    "partitions": _of_group(records.whole(1, MOST_MEMBERS), _partitions),
    "keys": _of_group(records.choice("even"), _even_keys),
}
