"""Consumer groups: members that share one subscription, and what they acknowledge."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from tidings.model import records
from tidings.model.batches import Fetch
from tidings.model.behaviour import FAILURE, POSITIVE_LAW, Failure
from tidings.model.document import Place
from tidings.model.laws import Law
from tidings.model.laws.law import WEIGHT_SLACK
from tidings.model.records import Kind, given, spec

LONGEST_WAITING = "longest waiting"  # the request of a member, as pull consumers of JetStream do
CHOICES = ("round robin", "least busy", "random", LONGEST_WAITING)
WHEN_FULL = ("drop new", "drop old", "block")
MOST_MEMBERS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One consumer of a group, or several that are alike."""

    name: str
    processing: Law | None = spec(
        POSITIVE_LAW,
        "its time to handle one event; that of the subscriber if left out",
        default=None,
    )
    count: int = spec(records.whole(1, MOST_MEMBERS), "how many such members there are", default=1)
    failure: Failure | None = spec(
        FAILURE, "how it crashes and comes back; what it holds is handed out again", default=None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """A group's events split by key, each part handled by one member at a time."""

    count: int = spec(records.whole(1, MOST_MEMBERS), "how many there are")
    shares: tuple[float, ...] = spec(
        records.listing(records.SHARE),
        "share of the events that falls into each; equal if left out",
        default=(),
    )
    owners: tuple[str, ...] = spec(
        records.listing(records.TEXT),
        "the member that handles each; members in turn if left out",
        default=(),
    )
    rebalance_s: float = spec(
        records.TIME,
        "how long the whole group stands still when a member comes or goes",
        default=0.0,
        key="rebalance",
    )

    @property
    def used_shares(self) -> tuple[float, ...]:
        """The share of the events of each partition."""
        return self.shares or (1.0 / self.count,) * self.count


def _read_partitions(place: Place) -> Partitions | None:
    partitions: Partitions | None = records.read_record(Partitions, place)
    if partitions is None:
        return None
    for name in ("shares", "owners"):
        values = getattr(partitions, name)
        if values and len(values) != partitions.count:
            place.inside(name).report(f"one for each of the {partitions.count} partitions")
    if partitions.shares and abs(sum(partitions.shares) - 1.0) > WEIGHT_SLACK:
        place.inside("shares").report("shares that add up to 1", saw=f"{sum(partitions.shares):g}")
    return partitions


PARTITIONS = replace(records.part(Partitions), read=_read_partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumers:
    """Members that share one subscription: each event is handled by one of them."""

    count: int = spec(
        records.whole(1, MOST_MEMBERS), "how many members there are, if all are alike", default=1
    )
    members: tuple[Member, ...] = spec(
        records.named(Member), "the members by name, instead of 'count'", default=()
    )
    choose: str = spec(
        records.choice(*CHOICES), "which member with room gets the next event", default=CHOICES[0]
    )
    partitions: Partitions | None = spec(
        PARTITIONS, "if events are split by key, as in Kafka", default=None
    )
    prefetch: int = spec(
        records.whole(0),
        "events that a member may hold without having acknowledged them; 0: no limit",
        default=1,
    )
    refill: int | None = spec(
        records.whole(1),
        "with 'longest waiting': a member asks for more when fewer than so many are left of those "
        "it asked for; whenever one is handled if left out",
        default=None,
    )
    fetch: Fetch | None = spec(
        records.part(Fetch),
        "if a member takes several events at a time and no more until it is done with them, "
        "instead of 'prefetch'",
        default=None,
    )
    in_flight: int | None = spec(
        records.whole(1),
        "unacknowledged events of all members together (max ack pending); no limit if left out",
        default=None,
    )
    ack_wait_s: float | None = spec(
        records.POSITIVE_TIME,
        "an event that is not acknowledged for so long is delivered again; never if left out",
        default=None,
        key="ack_wait",
    )
    backoff_s: tuple[float, ...] = spec(
        records.listing(records.POSITIVE_TIME),
        "instead of 'ack_wait' after the first, second, ... delivery; the last for all others",
        default=(),
        key="backoff",
    )
    qos: int = spec(
        records.whole(0, 2),
        "quality of service in MQTT's sense. 0, at most once: nothing is acknowledged, and what a "
        "member holds that crashes is lost. 1, at least once: that is handed out again, and with "
        "'ack_wait' what was not acknowledged in time. 2, once: with 'ack_wait' what did not reach "
        "a member in time is sent again, and nobody handles it twice",
        default=1,
    )
    deliveries: int | None = spec(
        records.whole(1),
        "times that an event is delivered at most (max deliver); then it is a dead letter",
        default=None,
    )
    buffer: int | None = spec(
        records.whole(1), "events that may wait for a member; no limit if left out", default=None
    )
    when_full: str = spec(
        records.choice(*WHEN_FULL),
        "what is dropped when so many wait; or their publishers are blocked until there is room",
        default=WHEN_FULL[0],
    )

    @property
    def acknowledges(self) -> bool:
        """Whether what is not acknowledged is delivered again."""
        return self.ack_wait_s is not None or bool(self.backoff_s)

    @property
    def held(self) -> int:
        """How many events a member holds at most that it handles one by one; 0: no limit."""
        if self.fetch is None:
            return self.prefetch
        return 1 if self.fetch.together else self.fetch.size

    @property
    def blocks(self) -> bool:
        """Whether publishers wait while its buffer is full."""
        return self.buffer is not None and self.when_full == WHEN_FULL[2]

    def with_even_keys(self) -> Consumers:
        """Make a copy with partitions of equal shares that the members own in turn."""
        if self.partitions is None:
            return self
        return replace(self, partitions=replace(self.partitions, shares=(), owners=()))

    def with_member(self, name: str, law: Law) -> Consumers:
        """Make a copy in which the member of this name has another processing time per event."""
        members = (
            replace(each, processing=law) if each.name == name else each for each in self.members
        )
        return replace(self, members=tuple(members))

    def with_crashes(self, failure: Failure | None) -> Consumers:
        """Make a copy whose named members crash as given; None: never."""
        return replace(self, members=tuple(replace(each, failure=failure) for each in self.members))

    def each(self) -> Iterator[Member]:
        """Give every member on its own, each with a name of its own."""
        for member in self.members or (Member(name="", count=self.count),):
            for number in range(1, member.count + 1):
                alone = member.count == 1 and member.name
                name = member.name if alone else f"{member.name} {number}".strip()
                yield replace(member, name=name, count=1)


def _read_consumers(place: Place) -> Consumers | None:
    fields = given(place)
    if isinstance(place.value, int) and not isinstance(place.value, bool):  # short for a count
        place = place.instead({"count": place.value})
    if isinstance(place.value, Mapping) and {"count", "members"} <= fields:
        place.inside("count").report("either 'count' (members alike) or 'members' by name")
    if {"prefetch", "fetch"} <= fields:
        place.inside("prefetch").report("either 'prefetch' or 'fetch', which is the limit then")
    if "when_full" in fields and "buffer" not in fields:
        place.inside("when_full").report("a 'buffer' that can be full", saw="none")
    if "deliveries" in fields and not fields & {"ack_wait", "backoff"}:
        place.inside("deliveries").report(
            "an 'ack_wait' after which an event is delivered again", saw="none"
        )
    consumers: Consumers | None = records.read_record(Consumers, place)
    if consumers is not None:
        _check_quality(consumers, fields, place)
        _check_requests(consumers, place)
        _check_owners(consumers, place)
    return consumers


def _check_quality(consumers: Consumers, fields: Collection[str], place: Place) -> None:
    """Check that the fields of redelivery fit the QoS.

    With QoS 0 nothing is acknowledged, so nothing is delivered again; with 2 there must be a time
    after which it is, and events come one by one, without 'fetch'.
    """
    again = next((name for name in ("ack_wait", "backoff") if name in fields), None)
    if consumers.qos == 0 and again is not None:
        place.inside(again).report("'qos' 1 or 2: with 0 nothing is acknowledged")
    if consumers.qos == 2 and again is None:
        place.inside("qos").report("'ack_wait', after which what did not arrive is sent again")
    if consumers.qos == 2 and consumers.fetch is not None:
        place.inside("fetch").report("'qos' 0 or 1, or no 'fetch': those of 2 come one by one")


def _check_requests(consumers: Consumers, place: Place) -> None:
    """Check that only members that ask for events ask for more, at most 'prefetch' at a time."""
    if consumers.choose == LONGEST_WAITING:
        if consumers.prefetch == 0:
            place.inside("prefetch").report("1 or more: so many events a member asks for")
        if consumers.refill is not None and consumers.refill > consumers.prefetch > 0:
            place.inside("refill").report(f"at most 'prefetch', {consumers.prefetch}")
    elif consumers.refill is not None:
        place.inside("refill").report(f"'choose: {LONGEST_WAITING}'", saw=consumers.choose)


def _check_owners(consumers: Consumers, place: Place) -> None:
    """Check that the owners of partitions are members."""
    if consumers.partitions is None:
        return
    names = [member.name for member in consumers.each()]
    for index, owner in enumerate(consumers.partitions.owners):
        if owner not in names:
            place.inside("partitions", "owners", index).report(
                f"one of the members {', '.join(names[:8])}"
            )


CONSUMERS = Kind(
    label="how many, or Consumers",
    read=_read_consumers,
    write=records.record_document,
    schema=lambda: {"anyOf": [{"type": "integer", "minimum": 1}, {"$ref": "#/$defs/Consumers"}]},
)
