"""Judge what was learnt against what is known, and by what waits: what has moved, and who is gone.

Nothing in here reads or writes anything. Whether a parameter has moved is a test in standard errors
with Student's t, of as many degrees of freedom as there are batches but one.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tidings.characterisation.fit.queues import DROPPED, REDELIVERED
from tidings.model.laws import Law
from tidings.model.units import format_seconds
from tidings.watching.certainty import FALSE_ALARMS, FREEDOM, LEAST_COUNT, LEAST_SHARE, bound
from tidings.watching.counts import EventCounts

# What is too small to matter, however certain: a share of rates and times, seconds, a share lost.
LEAST_RATIO, LEAST_S, LEAST_LOSS = 0.1, 1e-3, 0.005
NEXT_TO_NOTHING = 0.1  # of events, that a link carries: parts begin before a consumer goes
_MOMENTS = 1000  # at which a queue that goes down is looked at
LASTING = 0.5  # of the bound at which an alarm begins: where it ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A number, its standard error, and from how many observations it comes; 0: not from any."""

    value: float
    error: float = 0.0
    count: int = 0
    freedom: int = FREEDOM  # degrees of freedom of the error


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A parameter that is no longer what it was; ``distance`` is in standard errors."""

    path: str
    was: float
    now: float
    distance: float

    @property
    def kind(self) -> str:
        """What it is: rate, service, delay or reliability; redelivered or dropped of a queue."""
        return self.path.rpartition(".")[2]

    @property
    def name(self) -> str:
        """Of whom it is, without the kind: a broker, a link, a publisher.

        >>> Moved(path="links.hub--east.back.delay", was=1.0, now=2.0, distance=9.0).name
        'east--hub'
        """
        own = self.path.partition(".")[2].rpartition(".")[0].removesuffix(".link")
        if self.kind == DROPPED:
            return own.rpartition(".")[0]  # what comes last is the cause
        if self.path.startswith("links.") and own.endswith(".back"):
            return "--".join(own.removesuffix(".back").split("--")[::-1])
        return own

    @property
    def size(self) -> float:
        """How many times it is what it was, of reliability what is lost; from nothing, how much."""
        was, now = self.was, self.now
        if self.kind == "reliability":
            was, now = 1.0 - was, 1.0 - now
        return now / was if was else now

    @property
    def unit(self) -> str:
        """What its size is in."""
        nothing_before = self.was == (1.0 if self.kind == "reliability" else 0.0)
        nouns = {
            "rate": "rate", "service": "service time", "delay": "delay", "reliability": "loss",
            REDELIVERED: "share of redeliveries", DROPPED: "share of drops",
        }  # fmt: skip
        amounts = {
            "rate": "per second", "reliability": "of events lost",
            REDELIVERED: "redeliveries an event", DROPPED: "of events dropped",
        }  # fmt: skip
        if nothing_before:
            return amounts.get(self.kind, "s")
        return f"times the {nouns[self.kind]}"

    @property
    def story(self) -> str:
        """Say what it was and what it is now, and that this is no chance."""
        was, now = (self._written(each) for each in (self.was, self.now))
        return f"it was {was} and is {now}, which is not chance"

    def _written(self, value: float) -> str:
        if self.kind in ("service", "delay"):
            return format_seconds(float(f"{value:.3g}"))
        if self.kind == "rate":
            return f"{value:.3g}/s"
        lost = 1.0 - value if self.kind == "reliability" else value
        return f"{100.0 * lost:.2g} %"

    @property
    def words(self) -> str:
        """Say what has changed, without numbers."""
        noun, one, _, rest = self._said
        cause = f" ({self.path.split('.')[-2]})" if self.kind == DROPPED else ""
        return f"{noun} {self.name} {one} {rest}{cause}"

    @property
    def words_of_many(self) -> str:
        """Say what has changed of many that changed alike."""
        noun, _, many, rest = self._said
        return f"{noun}s {many} {rest}"

    @property
    def sort(self) -> str:
        """What it has in common with others of which the same can be said."""
        way = "up" if self.now > self.was else "down"
        return f"{self.path.partition('.')[0]}.*.{self.kind} {way}"

    @property
    def _said(self) -> tuple[str, str, str, str]:
        """What it is of, what one of them and many of them do, and the rest of the sentence."""
        more = self.now > self.was
        match self.kind:
            case "rate":
                return "publisher", "publishes", "publish", f"{'more' if more else 'less'} often"
            case "service":
                return "broker", "is", "are", "slower" if more else "faster"
            case "delay":
                return "link", "is", "are", "slower" if more else "faster"
            case "redelivered":
                rest = f"out {'more' if more else 'fewer'} events again"
                return "queue", "hands", "hand", rest
            case "dropped":
                return "queue", "drops", "drop", f"{'more' if more else 'fewer'} events"
        return "link", "loses", "lose", "less" if more else "more"


# ---- changes -------------------------------------------------------------------------------------


def find_moved(
    found: Mapping[str, Value],
    reference: Mapping[str, Value],
    looks_per_day: float,
    lasting: Collection[str] = (),
) -> list[Moved]:
    """Find parameters that differ from the reference by more than chance and by enough to matter.

    Paths in ``lasting`` had moved already, and have until they are well within the bound again.
    """
    both = [
        path
        for path in reference
        if path in found and found[path].count >= LEAST_COUNT and _kind(path) in _LEAST
    ]
    freedoms = {min(reference[path].freedom, found[path].freedom) for path in both}
    limits = {each: bound(len(both), looks_per_day, each) for each in freedoms}
    moved = []
    for path in both:
        was, now = reference[path], found[path]
        error = math.hypot(_error_at(path, was.value, now), was.error)
        apart = abs(now.value - was.value)
        distance = (apart / error if error > 0 else math.inf) if apart else 0.0
        share = LASTING if path in lasting else 1.0
        limit = limits[min(was.freedom, now.freedom)]
        if distance > share * limit and _LEAST[_kind(path)](was.value, now.value, share):
            moved.append(Moved(path=path, was=was.value, now=now.value, distance=distance))
    return sorted(moved, key=lambda each: -each.distance)


def _error_at(path: str, was: float, now: Value) -> float:
    """Compute an estimate's standard error, or what the reference's would be if that is larger."""
    if _kind(path) == "reliability":
        share = (was * now.count + 2.0) / (now.count + 4.0)
        return max(now.error, math.sqrt(share * (1.0 - share) / (now.count + 4.0)))
    if _kind(path) in (REDELIVERED, DROPPED):  # already with how far it strayed before
        return now.error
    if now.value <= 0:
        return now.error
    power = 0.5 if _kind(path) == "rate" else 1.0
    return float(now.error * max((was / now.value) ** power, 1.0))


def _kind(path: str) -> str:
    return path.rpartition(".")[2]


def _relative(was: float, now: float, share: float) -> bool:
    return abs(now - was) >= share * LEAST_RATIO * was


def _of_time(was: float, now: float, share: float) -> bool:
    return abs(now - was) >= share * max(LEAST_RATIO * was, LEAST_S)


def _of_loss(was: float, now: float, share: float) -> bool:
    return abs(now - was) >= share * max(LEAST_LOSS, LEAST_RATIO * (1.0 - was))


def _of_queue(was: float, now: float, share: float) -> bool:
    return abs(now - was) >= share * max(LEAST_SHARE, LEAST_RATIO * was)


_LEAST = {
    "rate": _relative, "service": _relative, "delay": _of_time, "reliability": _of_loss,
    REDELIVERED: _of_queue, DROPPED: _of_queue,
}  # fmt: skip


def owners(values: Mapping[str, Value], section: str, field: str) -> Iterator[tuple[str, Value]]:
    """Yield whom each value of a field of a section is of, and the value.

    >>> values = {"publishers.wire.eu.rate": Value(value=1.0)}
    >>> [name for name, _ in owners(values, "publishers", "rate")]  # names may have dots
    ['wire.eu']
    """
    begin, end = f"{section}.", f".{field}"
    for path, value in values.items():
        if path.startswith(begin) and path.endswith(end):
            yield path[len(begin) : -len(end)], value


def find_silent(
    reference: Mapping[str, Value], heard: Collection[str], watched_s: float, looks_per_day: float
) -> list[str]:
    """Find publishers of whom nothing came, though by their rate something must have."""
    rates = {name: value.value for name, value in owners(reference, "publishers", "rate")}
    level = FALSE_ALARMS / max(len(rates) * looks_per_day, 1.0)
    return [
        name
        for name, rate_per_s in rates.items()
        if name not in heard and math.exp(-rate_per_s * watched_s) < level
    ]


def find_gone(
    counts: Mapping[str, EventCounts], delivered: Mapping[str, float], looks_per_day: float
) -> list[str]:
    """Find subscribers who got nothing, though by the prediction they must have got something."""
    level = FALSE_ALARMS / max(len(counts) * looks_per_day, 1.0)
    return [
        name
        for name, each in counts.items()
        if each.delivered == 0
        and each.wanted > 0
        and (1.0 - min(delivered.get(name, 0.0), 1.0 - 1e-9)) ** each.wanted < level
    ]


def find_cut_off(found: Mapping[str, Value], reference: Mapping[str, Value]) -> list[str]:
    """Find subscribers whose own links, by the newest part alone, carry next to nothing.

    What was measured of them may reach back to when they still got everything.
    """
    known = owners(reference, "subscribers", "link.reliability")
    lossy = {name for name, value in known if value.value < LASTING}
    return [
        name
        for name, now in owners(found, "subscribers", "link.reliability")
        if now.count >= LEAST_COUNT and now.value <= NEXT_TO_NOTHING and name not in lossy
    ]


# ---- what waits ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingEvents:
    """Events that wait at a broker: how many in the mean, how fast they come and can go."""

    name: str
    rate_per_s: float
    service_s: float
    wait_s: float
    servers: int = 1

    @property
    def waiting(self) -> float:
        """How many wait in the mean, by Little's law."""
        return self.rate_per_s * self.wait_s

    @property
    def catch_up_s(self) -> float:
        """How long it takes until they are gone, if arrivals and services were steady flows.

        >>> WaitingEvents(name="hub", rate_per_s=50.0, service_s=0.01, wait_s=2.0).catch_up_s
        2.0
        """
        if self.service_s <= 0:
            return 0.0
        spare_per_s = self.servers / self.service_s - self.rate_per_s
        return self.waiting / spare_per_s if spare_per_s > 0 else math.inf


def late_until_gone(
    wait_s: float, rest_s: float, lifetimes: Iterable[tuple[float, Law | None]]
) -> float:
    """Compute the share of the events that come until a queue is gone which will be late.

    The wait falls evenly from what it is to nothing; ``rest_s`` is what the rest of the way takes.
    ``lifetimes`` are those of what passes, each with its share of the events.

    >>> from tidings.model.laws import Deterministic
    >>> late_until_gone(4.0, 0.5, [(1.0, Deterministic(value_s=1.5))])
    0.75
    """
    delays_s = rest_s + wait_s * (np.arange(_MOMENTS) + 0.5) / _MOMENTS
    return sum(
        share * float(np.mean(lifetime.cdf(delays_s)))
        for share, lifetime in lifetimes
        if lifetime is not None
    )


def unusual_wait_s(wait_s: float, utilisation: float, tests: int, looks_per_day: float) -> float:
    r"""Compute how long a mean wait must be that does not come by chance, in seconds.

    The queue is as it was.

    Waits have a tail that is about exponential, with the mean of those who wait at all,
    :math:`W / \rho`: exactly in M/M/1, and in heavy traffic whatever the laws are. A queue that is
    long may stay so for a look. All looks of a day at all queues share one level.

    >>> unusual_wait_s(0.1, 0.5, 1, 1.0) > 0.2
    True
    """
    level = FALSE_ALARMS / (max(tests, 1) * max(looks_per_day, 1.0))
    return wait_s / utilisation * -math.log(level) if utilisation > 0 else 0.0


def is_behind(queue: WaitingEvents, usual_s: float, longest_s: float) -> bool:
    """Test whether a queue takes too long to catch up, and waits are longer than usual for it."""
    unusual = queue.waiting >= 10.0 and queue.wait_s > usual_s
    return unusual and queue.catch_up_s > longest_s
