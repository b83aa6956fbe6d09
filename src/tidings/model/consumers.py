"""Consumer groups: members that share one subscription, and what they acknowledge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tidings.model import records
from tidings.model.batches import Fetch
from tidings.model.behaviour import FAILURE, POSITIVE_LAW, Failure
from tidings.model.document import Place
from tidings.model.group_checks import check_fields, check_group
from tidings.model.laws import Law
from tidings.model.laws.law import WEIGHT_SLACK
from tidings.model.records import Kind, given, spec

LONGEST_WAITING = "longest waiting"  # the request of a member, as pull consumers of JetStream do
CHOICES = ("round robin", "least busy", "random", LONGEST_WAITING)
_BY_KEY = "events of one key go to one member by 'partitions', such as partitions: {count: 8}"
_MEANT = {  # as brokers and those who run them say it
    "sticky": _BY_KEY,
    "by key": _BY_KEY,
    "key": _BY_KEY,
    "key shared": _BY_KEY,
    "hash": _BY_KEY,
    "consistent hash": _BY_KEY,
    "in turn": "did you mean 'round robin'?",
    "shared": "did you mean 'round robin'?",
    "fair": "did you mean 'round robin' with 'prefetch: 1'?",
    "least loaded": "did you mean 'least busy'?",
    "least connections": "did you mean 'least busy'?",
    "shortest queue": "did you mean 'least busy'?",
    "pull": "did you mean 'longest waiting'?",
    "first idle": "did you mean 'longest waiting'?",
}
WHEN_FULL = ("drop new", "drop old", "block")
_MEANT_WHEN_FULL = {  # as brokers say it
    "drop head": "did you mean 'drop old'?",
    "old": "did you mean 'drop old'?",
    "reject publish": "did you mean 'drop new'?",
    "new": "did you mean 'drop new'?",
    "back pressure": "did you mean 'block'?",
}
_MEANT_QOS = {
    "at most once": "that is 0",
    "fire and forget": "that is 0",
    "none": "that is 0",
    "at least once": "that is 1",
    "explicit": "that is 1",
    "once": "that is 2",
    "exactly once": "that is 2",
}
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
        "how long the whole group stands still when a member comes or goes, by its 'failure'",
        default=0.0,
        key="rebalance",
    )

    @property
    def used_shares(self) -> tuple[float, ...]:
        """The share of the events of each partition."""
        return self.shares or (1.0 / self.count,) * self.count

    def spread_over(self, count: int) -> Partitions:
        """Make a copy with so many partitions, which members own in turn.

        What a partition has more than the one with the least is taken as a single key, which stays
        as hot as it is; all other keys are spread evenly.

        >>> Partitions(count=2, shares=(0.75, 0.25)).spread_over(4).used_shares
        (0.625, 0.125, 0.125, 0.125)
        """
        if not self.shares:
            return replace(self, count=count, owners=())
        even = min(self.shares)
        shares = [self.count * even / count] * count
        for number, share in enumerate(self.shares):
            shares[number % count] += share - even
        return replace(self, count=count, shares=tuple(shares), owners=())


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
        records.whole(1, MOST_MEMBERS),
        "how many members there are, if all are alike",
        default=1,
        aka=("replicas", "instances", "concurrency", "servers", "size"),
    )
    members: tuple[Member, ...] = spec(
        records.named(Member), "the members by name, instead of 'count'", default=()
    )
    choose: str = spec(
        records.choice(*CHOICES, meant=_MEANT),
        "which member with room gets the next event; with 'partitions' it is their owner",
        default=CHOICES[0],
        aka=("strategy", "policy", "dispatch", "balance"),
    )
    partitions: Partitions | None = spec(
        PARTITIONS, "if events are split by key, as in Kafka", default=None
    )
    prefetch: int = spec(
        records.limit(0),
        "events that a member may hold without having acknowledged them; 0: no limit, as it is "
        "where 'qos: 0' has nothing acknowledged and members neither fetch nor ask",
        default=1,
        aka=("prefetch_count", "receive_maximum", "max_inflight_messages", "pull_max_messages"),
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
        aka=("max_poll_records", "batch", "batch_size", "poll"),
    )
    in_flight: int | None = spec(
        records.limit(1),
        "unacknowledged events of all members together (max ack pending); no limit if left out",
        default=None,
        aka=("max_ack_pending", "max_in_flight", "ack_pending"),
    )
    ack_wait_s: float | None = spec(
        records.POSITIVE_TIME,
        "an event that is not acknowledged for so long is delivered again; never if left out",
        default=None,
        key="ack_wait",
        aka=("visibility_timeout", "ack_timeout", "ack_deadline", "consumer_timeout"),
    )
    backoff_s: tuple[float, ...] = spec(
        records.listing(records.POSITIVE_TIME),
        "instead of 'ack_wait': the wait after the first, second, ... delivery; the last for all "
        "others",
        default=(),
        key="backoff",
    )
    qos: int = spec(
        records.whole(0, 2, meant=_MEANT_QOS),
        "quality of service in MQTT's sense. 0, at most once: nothing is acknowledged, and what a "
        "member holds that crashes is lost. 1, at least once: that is handed out again, and with "
        "'ack_wait' what was not acknowledged in time. 2, once: with 'ack_wait' what did not reach "
        "a member in time is sent again, and nobody handles it twice",
        default=1,
    )
    deliveries: int | None = spec(
        records.limit(1),
        "times that an event is delivered at most (max deliver); then it is a dead letter",
        default=None,
        aka=("max_deliver", "max_deliveries", "delivery_limit", "max_receive_count"),
    )
    buffer: int | None = spec(
        records.limit(1),
        "events that may wait for a member; no limit if left out",
        default=None,
        aka=("max_length", "x_max_length", "max_msgs", "max_queued_messages", "queue_size"),
    )
    when_full: str = spec(
        records.choice(*WHEN_FULL, meant=_MEANT_WHEN_FULL),
        "what is dropped when so many wait; or their publishers are blocked until there is room",
        default=WHEN_FULL[0],
        aka=("overflow", "x_overflow", "discard"),
    )

    @property
    def acknowledges(self) -> bool:
        """Whether what is not acknowledged is delivered again."""
        return self.ack_wait_s is not None or bool(self.backoff_s)

    @property
    def each_has_its_time(self) -> bool:
        """Whether no member takes the processing time of the subscriber."""
        return bool(self.members) and all(each.processing for each in self.members)

    @property
    def asks(self) -> bool:
        """Whether members ask for events, and who has waited longest gets the next."""
        return self.choose == LONGEST_WAITING

    @property
    def untold(self) -> bool:
        """Whether members get events unasked and nobody says what became of them."""
        takes = self.partitions is not None or self.fetch is not None or self.asks
        return self.qos == 0 and not takes

    @property
    def crashes(self) -> bool:
        """Whether members crash and come back."""
        return any(each.failure is not None for each in self.members)

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

    def with_partitions(self, count: int) -> Consumers:
        """Make a copy with so many partitions; hot keys stay as hot as they are."""
        if self.partitions is None:
            return self
        return replace(self, partitions=self.partitions.spread_over(count))

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
        """Make a copy whose named members crash as given; None: never, and no pauses then."""
        members = tuple(replace(each, failure=failure) for each in self.members)
        partitions = self.partitions
        if partitions is not None and failure is None:
            partitions = replace(partitions, rebalance_s=0.0)
        return replace(self, members=members, partitions=partitions)

    def each(self) -> Iterator[Member]:
        """Give every member on its own, each with a name of its own."""
        for member in self.members or (Member(name="", count=self.count),):
            for number in range(1, member.count + 1):
                alone = member.count == 1 and member.name
                name = member.name if alone else f"{member.name} {number}".strip()
                yield replace(member, name=name, count=1)


def _read_consumers(place: Place) -> Consumers | None:
    if isinstance(place.value, int) and not isinstance(place.value, bool):  # short for a count
        place = place.instead({"count": place.value})
    if not isinstance(place.value, Mapping):
        number = str(place.value).strip() if isinstance(place.value, str) else ""
        fix = f"did you mean {int(number)}?" if number.isdecimal() else ""
        want = "how many members (a whole number, 1 or more), or a mapping such as {count: 4}"
        place.report(want, fix=fix)
        return None
    consumers: Consumers | None = records.read_record(Consumers, place)
    check_fields(place)
    if consumers is not None:
        check_group(consumers, place)
        if consumers.untold and "prefetch" not in given(place):
            return replace(consumers, prefetch=0)
    return consumers


CONSUMERS = Kind(
    label="how many, or Consumers",
    read=_read_consumers,
    write=records.record_document,
    schema=lambda: {"anyOf": [{"type": "integer", "minimum": 1}, {"$ref": "#/$defs/Consumers"}]},
)
