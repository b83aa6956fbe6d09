"""What a publish/subscribe system is, as data.

Every record is frozen; its fields say what they mean, and from them come the YAML format, its JSON
Schema and the reference in ``docs/reference/system-file.md``. Times are seconds, sizes bytes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from tidings.model import records
from tidings.model.batches import Batch
from tidings.model.behaviour import (
    CONNECTIVITY,
    DAILY_RATES,
    DISCIPLINES,
    FAILURE,
    LAW,
    MOST_SERVERS,
    PERFECT,
    POSITIVE_LAW,
    PRIORITIES,
    PRIORITIES_MEAN,
    SERVICE,
    STATION,
    Channel,
    Connectivity,
    DailyRates,
    Failure,
    Service,
    Station,
)
from tidings.model.consumers import CONSUMERS, Consumers
from tidings.model.content import (
    Content,
    ContentTable,
    content_document,
    content_schema,
    read_content,
)
from tidings.model.covering import read_wants
from tidings.model.document import Place
from tidings.model.filters import Filter, filter_document, filter_schema
from tidings.model.laws import Exponential, Law
from tidings.model.publishing import PUBLISHING, Publishing
from tidings.model.record_tables import column
from tidings.model.records import Kind, spec

FORMAT_VERSION = 1
SCHEMES = ("none", "periodic", "buffering", "bypass", "bypass-buffering")
WHEN_FULL = ("drop new", "block")
WHEN_BLOCKED = ("go on", "pause")
EXPIRY = ("at subscriber", "at hop", "in queue")

CONTENT = Kind(label="contents", read=read_content, write=content_document, schema=content_schema)
WANTS = Kind(label="a filter", read=read_wants, write=filter_document, schema=filter_schema)


def _read_channel(place: Place) -> Channel | None:
    channel: Channel | None = records.read_record(Channel, place)
    if channel is not None and channel.delay_by_time and not channel.delay.mean_s:
        place.inside("delay_by_time").report("a 'delay' above 0, which it makes longer", saw="none")
    return channel


CHANNEL = dataclasses.replace(records.part(Channel), read=_read_channel)


UNEVEN = 1.5  # squared variation of intervals from which on events come in bursts


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker: every copy of an event that crosses it is served once, then forwarded."""

    name: str
    service: Service | None = spec(SERVICE, "time to match and forward one event", default=None)
    servers: int = spec(
        records.whole(1, MOST_SERVERS), "how many events are served in parallel", default=1
    )
    buffer: int | None = spec(
        records.whole(0), "events that may wait; no limit if left out", default=None
    )
    when_full: str = spec(
        records.choice(*WHEN_FULL),
        "whether an event is dropped when so many wait, or its publisher is blocked until there "
        "is room",
        default=WHEN_FULL[0],
    )
    discipline: str = spec(records.choice(*DISCIPLINES), "order of service", default="fcfs")
    priorities: tuple[tuple[str, int], ...] = spec(PRIORITIES, PRIORITIES_MEAN, default=())
    cpu: Station | None = spec(STATION, "the CPU as a queue of its own", default=None)
    disk: Station | None = spec(STATION, "the disk as a queue of its own", default=None)
    out: Station | None = spec(STATION, "the output as a queue of its own", default=None)
    failure: Failure | None = spec(FAILURE, "how it crashes and is repaired", default=None)

    @property
    def blocks(self) -> bool:
        """Whether publishers wait while its buffer is full."""
        return self.buffer is not None and self.when_full == WHEN_FULL[1]

    @property
    def stations(self) -> tuple[Station, ...]:
        """The queues an event passes at this broker, in order."""
        first: tuple[Station, ...] = ()
        if self.service is not None:
            first = (
                Station(
                    service=self.service,
                    servers=self.servers,
                    buffer=None if self.blocks else self.buffer,  # then none is dropped
                    discipline=self.discipline,
                    priorities=self.priorities,
                ),
            )
        return first + tuple(each for each in (self.cpu, self.disk, self.out) if each is not None)

    @property
    def station_places(self) -> tuple[str, ...]:
        """Where the fields of each of these queues stand in the file."""
        inner = [name for name in ("cpu", "disk", "out") if getattr(self, name) is not None]
        first = (f"brokers.{self.name}",) if self.service is not None else ()
        return first + tuple(f"brokers.{self.name}.{name}" for name in inner)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A link between two brokers, there and back."""

    between: tuple[str, str]
    there: Channel = PERFECT
    back: Channel = PERFECT

    @property
    def name(self) -> str:
        """How the link is called, in failure groups for example: ``hub--east``."""
        return "--".join(self.between)


def _read_link(place: Place) -> Link | None:
    known = ("between", *records.document_fields(Channel), "back")
    before = len(place.problems)
    parts = place.mapping(known, "a link: {between: [a, b], delay: ..., reliability: ...}")
    ends: list[str | None] = []
    if "between" not in parts:
        if isinstance(place.value, dict):
            place.report("the field 'between' (the two brokers it joins)", saw="none")
    else:
        ends = [each.text("a broker's name") for each in parts["between"].items("two brokers")]
        if isinstance(parts["between"].value, list) and len(ends) != 2:
            parts["between"].report("two brokers")
    own = {key: part.value for key, part in parts.items() if key not in ("between", "back")}
    there = _read_channel(place.instead(own))
    differs = _read_back(parts["back"]) if "back" in parts else {}
    if len(place.problems) > before:
        return None
    assert there is not None  # else it has a problem
    back = dataclasses.replace(there, **differs)
    return Link(between=(str(ends[0]), str(ends[1])), there=there, back=back)


def _read_back(place: Place) -> dict[str, Any]:
    """Read what a link's reverse direction gives itself.

    The rest, and failures, it shares with the forward direction.
    """
    fields = records.document_fields(Channel)
    values: dict[str, Any] = {}
    for key, part in place.mapping([key for key in fields if key != "failure"]).items():
        none = part.value is None and fields[key].default is None
        values[fields[key].name] = None if none else fields[key].metadata["kind"].read(part)
    return values


def _link_document(link: Link) -> dict[str, Any]:
    document = {"between": list(link.between), **records.record_document(link.there)}
    if link.back != link.there:
        defaults = {
            key: field.metadata["kind"].write(field.default) if field.default is not None else None
            for key, field in records.document_fields(Channel).items()
        }
        there, back = ({**defaults, **records.record_document(c)} for c in (link.there, link.back))
        document["back"] = {key: back[key] for key in back if back[key] != there[key]}
    return document


def _link_schema() -> dict[str, Any]:
    schema = records.record_schema(Channel)
    ends = {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}
    schema["properties"] = {
        "between": {"description": "the two brokers it joins", **ends},
        **schema["properties"],
        "back": {
            "description": "what differs in the direction from the second broker to the first",
            **records.record_schema(Channel),
        },
    }
    return {**schema, "required": ["between"]}


LINK = Kind(label="a link", read=_read_link, write=_link_document, schema=_link_schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """A publisher: what it publishes, how often, and from where."""

    name: str
    at: str = spec(records.TEXT, "its home broker")
    every: Law | None = spec(
        POSITIVE_LAW,
        "time between two events; {rate: 2/s} is short for a Poisson stream",
        default=None,
    )
    rates: DailyRates | None = spec(
        DAILY_RATES, "rates by time of day, instead of 'every'", default=None
    )
    publishes: Publishing | None = spec(
        PUBLISHING,
        "recorded times, a clock, batches or bursts, instead of 'every'",
        default=None,
    )
    content: Content = spec(CONTENT, "what it publishes, with probabilities")
    lifetime: Law | None = spec(LAW, "how long its events are of use", default=None)
    size_bytes: float | None = spec(records.SIZE, "of its messages", default=None, key="size")
    link: Channel = spec(CHANNEL, "its connection to the broker", default=PERFECT)
    connectivity: Connectivity | None = spec(
        CONNECTIVITY, "if it disconnects at times", default=None
    )
    batch: Batch | None = spec(
        records.part(Batch), "if it gathers events and sends several as one", default=None
    )
    when_blocked: str = spec(
        records.choice(*WHEN_BLOCKED),
        "while a full buffer blocks it: it goes on to make events, which wait with it, or it makes "
        "none until it has sent the one in hand",
        default=WHEN_BLOCKED[0],
    )

    @property
    def pauses(self) -> bool:
        """Whether it makes no events while it is blocked."""
        return self.when_blocked == WHEN_BLOCKED[1]

    @property
    def rate_per_s(self) -> float:
        """Events published per second, in the long run."""
        if self.every is not None:
            return 1.0 / self.every.mean_s
        if self.publishes is not None:
            return self.publishes.mean_per_s(self.name)
        assert self.rates is not None
        return sum(self.rates.per_s) / len(self.rates.per_s)

    @property
    def is_uneven(self) -> bool:
        """Whether it publishes in bursts, by a clock, or more at some times than at others."""
        return self.every is None or self.every.scv > UNEVEN

    @property
    def has_deadline(self) -> bool:
        """Whether it, or some of what it publishes, has a lifetime of its own."""
        of_contents = (
            [row.lifetime for row in self.content.table]
            if isinstance(self.content, ContentTable)
            else [self.content.lifetime]
        )
        return any(each is not None for each in (self.lifetime, *of_contents))

    def evenly(self) -> Publisher:
        """Make a copy that publishes as often, at random: a Poisson process of the same rate."""
        every = Exponential(mean_s=1.0 / self.rate_per_s)
        return replace(self, every=every, rates=None, publishes=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """A subscriber: what it wants, and where it is."""

    name: str
    at: str = spec(records.TEXT, "its home broker")
    wants: Filter = spec(WANTS, "the events it wants")
    lifetime: Law | None = spec(
        LAW,
        "events older than this are late for it, even if their own lifetime is longer",
        default=None,
    )
    link: Channel = spec(CHANNEL, "its connection to the broker", default=PERFECT)
    connectivity: Connectivity | None = spec(
        CONNECTIVITY, "if it disconnects at times", default=None
    )
    processing: Law | None = spec(LAW, "its own time to process one event (a queue)", default=None)
    consumers: Consumers | None = spec(
        CONSUMERS,
        "members that share the subscription, a consumer group: each event is handled by one of "
        "them, for the time 'processing'",
        default=None,
    )
    stays: Law | None = spec(POSITIVE_LAW, "how long a subscription lasts", default=None)
    away: Law | None = spec(LAW, "time between two subscriptions", default=None)
    count: int = spec(records.whole(1), "how many such subscribers there are", default=1)
    group: str | None = spec(
        records.TEXT,
        "a label that several subscribers can share, for plans and changes; it does not "
        "affect predictions",
        default=None,
    )
    target: float | None = spec(
        records.SHARE,
        "the on-time share it should reach; used by `tidings plan`, `gate` and `watch`",
        default=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What the brokers do about failures."""

    scheme: str = spec(records.choice(*SCHEMES), "how subscriptions and events survive")
    refresh_s: float = spec(
        records.TIME,
        "interval at which subscriptions are sent again; 0: restored at once",
        default=0.0,
        key="refresh",
    )
    timeout_s: float | None = spec(
        records.POSITIVE_TIME,
        "a subscription that is not refreshed for this long is forgotten",
        default=None,
        key="timeout",
    )
    detection_s: float = spec(
        records.TIME, "time until a failure is noticed", default=0.0, key="detection"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Which tree events follow, where the links allow more than one."""

    root: str | None = spec(
        records.TEXT, "shortest hops from this broker, ties broken by name", default=None
    )
    tree: tuple[tuple[str, ...], ...] | None = spec(
        records.listing(records.listing(records.TEXT, least=2)),
        "the links of the tree",
        default=None,
    )
    by: str | None = spec(records.TEXT, "attribute whose value chooses the tree", default=None)
    roots: tuple[tuple[str, str], ...] = spec(
        records.by_name(records.TEXT), "root of the tree for each value of 'by'", default=()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Components that fail and are repaired together."""

    name: str
    members: tuple[str, ...] = spec(
        records.listing(records.TEXT, least=1), "brokers by name, links as a--b"
    )
    failure: Failure = spec(FAILURE, "how the group fails and is repaired")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNetwork:
    """A physical network that several links share."""

    name: str
    bandwidth_bytes_per_s: float = spec(records.BANDWIDTH, "shared by all", key="bandwidth")
    duplex: str = spec(
        records.choice("full", "half"), "whether both directions can send at once", default="full"
    )


@dataclass(frozen=True, kw_only=True)
class System:
    """A publish/subscribe system, complete and consistent."""

    version: int = spec(records.whole(1), "version of this format", key="tidings")
    description: str | None = spec(records.TEXT, "what system this is", default=None)
    lifetime: Law | None = spec(
        LAW, "how long events are of use, unless publishers or contents set their own", default=None
    )
    expired: str = spec(
        records.choice(*EXPIRY),
        "where events older than their lifetime are dropped",
        default="at subscriber",
    )
    event_type: str | None = spec(
        records.TEXT, "attribute that is an event's type (for demands by type)", default=None
    )
    size_bytes: float | None = spec(
        records.SIZE,
        "of messages, unless publishers or contents set their own",
        default=None,
        key="size",
    )
    recovery: Recovery | None = spec(
        records.part(Recovery),
        "what brokers do about failures; if left out, clients subscribe again at once after a "
        "crash, as with {scheme: periodic}",
        default=None,
    )
    routing: Routing | None = spec(
        records.part(Routing), "needed when the links are not a tree already", default=None
    )
    brokers: tuple[Broker, ...] = spec(records.named(Broker), "the brokers")
    links: tuple[Link, ...] = spec(records.listing(LINK), "the links between brokers", default=())
    publishers: tuple[Publisher, ...] = spec(records.named(Publisher), "the publishers")
    subscribers: Sequence[Subscriber] = spec(records.named(Subscriber), "the subscribers")
    failure_groups: tuple[FailureGroup, ...] = spec(
        records.named(FailureGroup), "what fails together", default=()
    )
    networks: tuple[SharedNetwork, ...] = spec(
        records.named(SharedNetwork), "physical networks that links share", default=()
    )
    standard_errors: tuple[tuple[str, float], ...] = spec(
        records.by_name(records.number_from(0.0)),
        "of measured parameters, by their path, such as brokers.hub.service",
        default=(),
    )
    remarks: tuple[str, ...] = spec(
        records.listing(records.TEXT),
        "what is not sure of this description, such as of a fit to traces; comes with every "
        "prediction",
        default=(),
    )

    @cached_property
    def broker_index(self) -> dict[str, int]:
        """Position of each broker by name."""
        return {broker.name: index for index, broker in enumerate(self.brokers)}

    @property
    def used_recovery(self) -> Recovery:
        """What brokers do about failures; clients subscribe again where nothing else is said."""
        return self.recovery or Recovery(scheme="periodic")

    @property
    def stored_subscriptions(self) -> int:
        """How many subscriptions every broker stores: all of them, as nothing is covered."""
        counts = column(self.subscribers, "count")
        return int(np.array(counts.values, dtype=np.int64)[counts.codes].sum())

    def _repr_html_(self) -> str:
        """Show a notebook what there is, and how much is published."""
        from tidings.model.system_summary import summary_html

        return summary_html(self)

    def lifetime_of(self, publisher: Publisher, own: Law | None) -> Law | None:
        """Find how long an event is of use: its own lifetime, its publisher's or the system's."""
        return own or publisher.lifetime or self.lifetime
