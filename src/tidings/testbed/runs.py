"""What a run on a testbed is asked to be, and what it was."""

from __future__ import annotations

import math
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidings.errors import InvalidInputError

if TYPE_CHECKING:
    from tidings.model.routes import Routes
    from tidings.model.system import System
    from tidings.testbed.layout import TestbedLayout
    from tidings.testbed.outages import Outage
    from tidings.testbed.workload import Publication, Subjects

HOST = "127.0.0.1"  # where everything listens
MOST_EVENTS = 50_000
# Seconds between two tries of a server to join a neighbour again, by the server. Bridges of
# Mosquitto are told one second, the least there is, and take two.
RECONNECT_S = {"nats": 0.1, "mosquitto": 2.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class TestbedOptions:
    """How long a run is; times in seconds."""

    __test__ = False  # whatever its name makes a test runner believe

    duration_s: float = 20.0
    warmup_s: float = 2.0  # before, published and not recorded
    seed: int = 1
    most_events: int = MOST_EVENTS
    compression: float = 1.0  # times between failures and of repair are so many times shorter
    broker: str = "nats"  # which server: one of RECONNECT_S

    def __post_init__(self) -> None:
        if not 0.0 < self.duration_s < math.inf:
            raise InvalidInputError(f"duration_s is {self.duration_s}; wants a time above 0")
        if not 0.0 <= self.warmup_s < math.inf:
            raise InvalidInputError(f"warmup_s is {self.warmup_s}; wants 0 or more")
        if self.broker not in RECONNECT_S:
            raise InvalidInputError(f"broker is {self.broker!r}; wants {' or '.join(RECONNECT_S)}")

    @property
    def reconnect_s(self) -> float:
        """How long servers wait between two tries to join a neighbour again, in seconds."""
        return RECONNECT_S[self.broker]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """An event as a subscriber got it, by the loop's clock."""

    event: str
    subscriber: int
    received_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Handling:
    """An event as a member of a group handled it, perhaps not as the first; by the loop's clock."""

    event: str
    subscriber: int
    member: int
    begin_s: float
    end_s: float
    part: str | None = None  # the partition that it came from, where there are any


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A time in which nobody of a group begins anything, by seconds from the run's start."""

    subscriber: str
    begin_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """A broker or link that went down or came up again, by the loop's clock."""

    component: str
    is_up: bool
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChange:
    """A client that has connected or disconnected, by the loop's clock."""

    peer: str
    is_connected: bool
    at_s: float


@dataclass(slots=True, kw_only=True)
class Stay:
    """One life of a subscription, by the loop's clock."""

    subscriber: int
    begin_s: float
    end_s: float | None = None  # None: it had not ended when the run did


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejoining:
    """How long after its repair a component took part again, with all that should cross it."""

    component: str
    took_s: float


Beside = Callable[["Run"], Coroutine[Any, Any, None]]


@dataclass(slots=True, kw_only=True)
class Run:
    """What happened: everything that was published, seen and received, and how far to trust it."""

    system: System
    routes: Routes
    subjects: Subjects
    options: TestbedOptions
    layout: TestbedLayout
    publications: list[Publication]  # as they were planned
    outages: list[Outage] = field(default_factory=list)  # as they were drawn
    states: list[StateChange] = field(default_factory=list)  # as they came about
    rejoined: list[Rejoining] = field(default_factory=list)  # of stores
    sessions: list[SessionChange] = field(default_factory=list)
    stays: list[Stay] = field(default_factory=list)  # of subscribers that come and go
    connecting_s: list[float] = field(default_factory=list)  # how late clients were back
    takes_precedence: bool = False  # over the other programs of this machine
    start_s: float = 0.0  # by the loop's clock
    epoch_ns: int = 0  # the Unix time of the loop's zero
    subscribed_s: float = 0.0
    published_late_s: list[float] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    stops: Sequence[Stop] = ()  # of consumer groups, as they were asked for
    beside: Sequence[Beside] = ()  # what goes on beside it, from the first event to the last
    handlings: list[Handling] = field(default_factory=list)  # by members of groups
    documents: list[bytes] = field(default_factory=list)  # as the servers sent them
    incomplete: str | None = None  # why it ended early

    @property
    def published(self) -> list[Publication]:
        """What was published of what was planned: all of it, unless the run ended early."""
        return self.publications[: len(self.published_late_s)]

    def nanoseconds(self, at_s: float) -> int:
        """Convert a moment of the loop's clock, in seconds, to Unix time, in nanoseconds."""
        return self.epoch_ns + round(at_s * 1e9)
