"""Changes of numbers and laws: how fast, how surely, how often, how long."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tidings.errors import InvalidInputError
from tidings.model import records, yaml_text
from tidings.model.batches import Batch
from tidings.model.behaviour import (
    CONNECTIVITY,
    FAILURE,
    LAW,
    MOST_SERVERS,
    POSITIVE_LAW,
    SERVICE,
    Channel,
    Service,
    Station,
)
from tidings.model.content import Content, ContentTable
from tidings.model.laws import Exponential
from tidings.model.records import Kind
from tidings.model.system import (
    Broker,
    FailureGroup,
    Link,
    Publisher,
    Recovery,
    SharedNetwork,
    System,
)
from tidings.planning.change_kinds import Adjustment, Factor, new_law, own_field
from tidings.planning.choices import ALL
from tidings.planning.group_changes import GROUP_ADJUSTMENTS
from tidings.planning.selections import GONE, edited

_FACTOR = re.compile(r"[x×*]\s*(.+)")
NOTHING = "none"
PEERS = ("publishers", "subscribers")


def adjust(system: System, verb: str, target: str, value: Any) -> System:
    """Change one property of a system in every record that the target means."""
    how = SETTINGS[verb]
    if verb in RECOVERIES:
        return replace(system, recovery=how.edit(system.used_recovery, value))
    if verb == "lifetime" and target == ALL:
        return _with_lifetimes(system, value)
    if verb == "lifetime":
        return edited(system, how.sections, target, lambda each: _lives(system, each, value))
    return edited(system, how.sections, target, lambda each: how.edit(each, value))


def read_value(kind: Kind, text: str) -> Any:
    """Read a value of a kind as it is written in system files."""
    place = yaml_text.parse(text)
    value = None if place.problems else kind.read(place)
    if place.problems:
        raise InvalidInputError("its value cannot be read", place.problems)
    return value


def read_setting(verb: str, text: str) -> Any:
    """Read the value that something is to get: of its kind, a factor, or None for "none"."""
    how = SETTINGS[verb]
    if how.may_be_none and text == NOTHING:
        return None
    factor = _FACTOR.fullmatch(text)
    if factor is None:
        if how.kind is None:
            raise InvalidInputError(f"'{verb}' takes a factor such as x2; got '{text}'")
        return read_value(how.kind, text)
    if not how.scales:
        raise InvalidInputError(f"'{verb}' takes a value, not a factor such as x2; got '{text}'")
    try:
        times = float(factor[1])
    except ValueError:
        times = 0.0
    if not 0.0 < times < float("inf"):
        raise InvalidInputError(f"wants a factor above 0, such as x2; got '{text}'")
    return Factor(times=times)


# ---- one function for each thing that can be changed ---------------------------------------------


def _rate(publisher: Publisher, value: Any) -> Publisher:
    if isinstance(value, Factor):
        if publisher.every is not None:
            return replace(publisher, every=publisher.every.scaled(1.0 / value.times))
        if publisher.publishes is not None:
            return replace(publisher, publishes=publisher.publishes.faster(value.times))
        rates = publisher.rates
        assert rates is not None  # a publisher has one of the three
        return replace(
            publisher, rates=replace(rates, per_s=tuple(each * value.times for each in rates.per_s))
        )
    every = Exponential(mean_s=1.0 / value) if isinstance(value, float) else value
    return replace(publisher, every=every, rates=None, publishes=None)


def _bursts(publisher: Publisher, value: None) -> Publisher | None:
    return publisher.evenly() if publisher.is_uneven else None


def _read_rate(place: Any) -> Any:
    """Read a rate such as 5/s (a Poisson stream), or a distribution of times between two events."""
    if isinstance(place.value, int | float) or (
        isinstance(place.value, str) and "/" in place.value
    ):
        rate = records.RATE.read(place)
        if rate == 0.0:
            place.report("a rate above 0", fix="remove the publisher instead")
        return rate
    return POSITIVE_LAW.read(place)


def _rate_document(value: Any) -> Any:
    return value if isinstance(value, float) else POSITIVE_LAW.write(value)


_RATE = Kind(label="a rate or a law", read=_read_rate, write=_rate_document, schema=dict)


def faster(broker: Broker, factor: float) -> Broker:
    """Divide all service times of a broker by a factor."""
    return _worked(broker, Factor(times=1.0 / factor)) or broker


def _speed(broker: Broker, value: Factor) -> Broker | None:
    return _worked(broker, Factor(times=1.0 / value.times))


def _service(broker: Broker, value: Any) -> Broker | None:
    if isinstance(value, Factor):
        return _worked(broker, value)
    return replace(broker, service=value)


def _worked(broker: Broker, factor: Factor) -> Broker | None:
    """Multiply all service times of a broker by a factor.

    None where the broker has no stations.
    """
    if not broker.stations:
        return None

    def longer(service: Service | None) -> Service | None:
        if service is None:
            return None
        return replace(service, law=service.law.scaled(factor.times))

    def station(old: Station | None) -> Station | None:
        if old is None:
            return None
        demands = tuple((kind, law.scaled(factor.times)) for kind, law in old.demands)
        return replace(old, service=longer(old.service), demands=demands)

    return replace(
        broker,
        service=longer(broker.service),
        cpu=station(broker.cpu),
        disk=station(broker.disk),
        out=station(broker.out),
    )


def _servers(broker: Broker, value: int) -> Broker | None:
    return None if broker.service is None else replace(broker, servers=value)


def _through(edit: Callable[[Channel, Any], Channel | None]) -> Callable[[Any, Any], Any]:
    """Turn an edit of a channel into one of a link (both directions) or a peer (its own link)."""

    def on_record(record: Any, value: Any) -> Any:
        if not isinstance(record, Link):
            link = edit(record.link, value)
            return None if link is None else replace(record, link=link)
        there, back = edit(record.there, value), edit(record.back, value)
        if there is None and back is None:
            return None
        return replace(record, there=there or record.there, back=back or record.back)

    return on_record


def _delay(channel: Channel, value: Any) -> Channel | None:
    if isinstance(value, Factor) and channel.delay.mean_s == 0.0:
        return None
    return replace(channel, delay=new_law(channel.delay, value) or channel.delay)


def _wider(record: Any, value: Any) -> Any:
    """Change the bandwidth of a link, of a peer's own link or of a shared network."""
    if not isinstance(record, SharedNetwork):
        return _through(_bandwidth)(record, value)
    if value is None:
        return None  # a network without limit is none
    times = value.times if isinstance(value, Factor) else value / record.bandwidth_bytes_per_s
    return replace(record, bandwidth_bytes_per_s=record.bandwidth_bytes_per_s * times)


def _bandwidth(channel: Channel, value: Any) -> Channel | None:
    if not isinstance(value, Factor):
        return replace(channel, bandwidth_bytes_per_s=value)
    if channel.bandwidth_bytes_per_s is None:
        return None
    return replace(channel, bandwidth_bytes_per_s=channel.bandwidth_bytes_per_s * value.times)


def _reliability(channel: Channel, value: float) -> Channel:
    burst = channel.loss_burst if value < 1.0 else 1.0
    return replace(channel, reliability=value, loss_burst=burst)


def _failure(record: Any, value: Any) -> Any:
    if isinstance(record, FailureGroup) and value is None:
        return GONE
    if isinstance(record, Broker | FailureGroup):
        return replace(record, failure=value)
    there, back = replace(record.there, failure=value), replace(record.back, failure=value)
    return replace(record, there=there, back=back)


def _availability(record: Any, value: float) -> Any:
    old = (
        record.there.failure or record.back.failure if isinstance(record, Link) else record.failure
    )
    if old is None:
        return None
    if value == 1.0:
        return _failure(record, None)
    up_s = old.down.mean_s * value / (1.0 - value)
    return _failure(record, replace(old, up=old.up.scaled(up_s / old.up.mean_s)))


def _connected(field: str) -> Callable[[Any, Any], Any]:
    def edit(peer: Any, value: Any) -> Any:
        old = peer.connectivity
        if old is None or getattr(old, field) is None:
            return None
        law = new_law(getattr(old, field), value)
        return replace(peer, connectivity=replace(old, **{field: law}))

    return edit


def _lives(system: System, peer: Any, value: Any) -> Any:
    """Change how long a publisher's events are of use, or which age a subscriber takes as late."""
    if not isinstance(peer, Publisher):
        return own_field("lifetime")(peer, value)
    content = _contents(peer.content, value)
    old = peer.lifetime or system.lifetime
    if isinstance(value, Factor) and old is None and content == peer.content:
        return None
    return replace(peer, content=content, lifetime=new_law(old, value))


def _contents(content: Content, value: Any) -> Content:
    """Scale the own lifetimes of contents, or drop them for one that holds for all."""

    def own(holder: Any) -> Any:
        return replace(holder, lifetime=new_law(holder.lifetime, _none_unless_factor(value)))

    if isinstance(content, ContentTable):
        return replace(content, table=tuple(own(row) for row in content.table))
    return own(content)  # type: ignore[no-any-return]


def _none_unless_factor(value: Any) -> Any:
    return value if isinstance(value, Factor) else None


def _with_lifetimes(system: System, value: Any) -> System:
    """Scale all lifetimes, or set one for all events, whoever publishes or receives them."""
    inner = _none_unless_factor(value)

    def own(peer: Any) -> Any:
        return replace(peer, lifetime=new_law(peer.lifetime, inner))

    return replace(
        system,
        lifetime=new_law(system.lifetime, value),
        publishers=tuple(
            replace(own(each), content=_contents(each.content, value)) for each in system.publishers
        ),
        subscribers=tuple(own(each) for each in system.subscribers),
    )


_SHARE = Kind(label="a share above 0", read=lambda place: place.share(positive=True), schema=dict)
_LINKS = ("links", *PEERS)
_COMPONENTS = ("brokers", "links", "failure_groups")

ADJUSTMENTS: dict[str, Adjustment] = {
    "rate": Adjustment(sections=("publishers",), kind=_RATE, edit=_rate),
    "bursts": Adjustment(
        sections=("publishers",),
        kind=records.choice(NOTHING),
        edit=_bursts,
        scales=False,
        may_be_none=True,
    ),
    "speed": Adjustment(sections=("brokers",), kind=None, edit=_speed),
    "service": Adjustment(sections=("brokers",), kind=SERVICE, edit=_service, may_be_none=True),
    "servers": Adjustment(
        sections=("brokers",), kind=records.whole(1, MOST_SERVERS), edit=_servers, scales=False
    ),
    "delay": Adjustment(sections=_LINKS, kind=LAW, edit=_through(_delay)),
    "bandwidth": Adjustment(
        sections=(*_LINKS, "networks"), kind=records.BANDWIDTH, edit=_wider, may_be_none=True
    ),
    "batch": Adjustment(
        sections=("publishers",),
        kind=records.part(Batch),
        edit=own_field("batch"),
        scales=False,
        may_be_none=True,
    ),
    "reliability": Adjustment(
        sections=_LINKS, kind=records.SHARE, edit=_through(_reliability), scales=False
    ),
    "availability": Adjustment(sections=_COMPONENTS, kind=_SHARE, edit=_availability, scales=False),
    "failure": Adjustment(
        sections=_COMPONENTS, kind=FAILURE, edit=_failure, scales=False, may_be_none=True
    ),
    "on": Adjustment(sections=PEERS, kind=POSITIVE_LAW, edit=_connected("on")),
    "off": Adjustment(sections=PEERS, kind=POSITIVE_LAW, edit=_connected("off")),
    "connectivity": Adjustment(
        sections=PEERS,
        kind=CONNECTIVITY,
        edit=own_field("connectivity"),
        scales=False,
        may_be_none=True,
    ),
    **GROUP_ADJUSTMENTS,
    "stays": Adjustment(
        sections=("subscribers",), kind=POSITIVE_LAW, edit=own_field("stays"), may_be_none=True
    ),
    "away": Adjustment(
        sections=("subscribers",), kind=LAW, edit=own_field("away"), may_be_none=True
    ),
    "lifetime": Adjustment(sections=PEERS, kind=LAW, edit=own_field("lifetime"), may_be_none=True),
    "target": Adjustment(
        sections=("subscribers",), kind=records.SHARE, edit=own_field("target"), scales=False
    ),
}


def _scheme(recovery: Recovery, value: str) -> Recovery:
    """Change the scheme; that of doing nothing has no times."""
    return Recovery(scheme=value) if value == "none" else replace(recovery, scheme=value)


def _of_recovery(
    key: str, edit: Callable[[Any, Any], Any] | None = None, *, may_be_none: bool = False
) -> Adjustment:
    field = records.document_fields(Recovery)[key]
    return Adjustment(
        sections=("recovery",),
        kind=field.metadata["kind"],
        edit=edit or own_field(field.name),
        scales=False,
        may_be_none=may_be_none,
    )


RECOVERIES: dict[str, Adjustment] = {  # of the system itself: they have no target
    "scheme": _of_recovery("scheme", _scheme),
    "refresh": _of_recovery("refresh"),
    "timeout": _of_recovery("timeout", may_be_none=True),
    "detection": _of_recovery("detection"),
}
SETTINGS = ADJUSTMENTS | RECOVERIES
