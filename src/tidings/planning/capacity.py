"""How fast brokers must be, or how many, so that everybody gets what they should."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any

from tidings.errors import InvalidInputError, UnstableError
from tidings.model.json_text import plain
from tidings.model.progress import Progress
from tidings.model.shown import Shown
from tidings.model.system import Link, Subscriber, System
from tidings.planning.change_kinds import times
from tidings.planning.changes import changed
from tidings.planning.choices import ALL
from tidings.planning.evidence import (
    MEETS,
    MISSES,
    OPEN,
    Evidence,
    Play,
    Target,
    TargetStanding,
    weigh,
)
from tidings.planning.selections import check_target

SLOWEST, FASTEST = 1 / 64, 64.0
CLOSE = 0.01  # relative: how near the least speed is to that given, which is the faster one
LONGER = 4.0  # each step to a size that is not spoken against is so many times the last
MOST_COPIES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One size that was looked at, and how the system stands with it."""

    size: float  # times as fast, or how many brokers
    evidence: Evidence

    @property
    def standing(self) -> TargetStanding:
        """How the system stands with it, predicted."""
        return self.evidence.predicted


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Capacity(Shown):
    """The least size that meets the target, and what the others that were looked at give."""

    _table = "options"
    _columns = ("size", "satisfied", "on_time", "margin", "worst", "verdict")

    what: str  # "speed", "brokers", or "members" of a consumer group
    broker: str  # or the group
    options: tuple[Option, ...]  # by size
    choice: Option | None  # the least size that meets the target; None where none does
    plan: System  # the system of the size chosen, or of the largest

    @property
    def best(self) -> Option:
        """What comes nearest to the target, whether it meets it or not."""
        return max(self.options, key=lambda each: (each.standing.satisfied, each.standing.margin))

    @property
    def verdict(self) -> str:
        """Whether some size meets the target."""
        if self.choice is not None:
            return MEETS
        # Faster is never worse, so that the fastest speaks for all.
        decisive = self.options[-1:] if self.what == "speed" else self.options
        return next((OPEN for each in decisive if each.evidence.verdict == OPEN), MISSES)

    def to_document(self) -> dict[str, Any]:
        """Give the answer as plain data for JSON."""
        options = [{"size": each.size, **each.evidence.to_document()} for each in self.options]
        chosen = self.choice.evidence.to_document() if self.choice else {}
        document = {
            "what": self.what,
            "broker": self.broker,
            "choice": self.choice.size if self.choice else None,
            "best": self.best.size,
            "verdict": self.verdict,
            "simulated": chosen.get("simulated"),
            "options": options,
        }
        return dict(plain(document))


def least_speed(
    system: System,
    target: Target,
    broker: str = ALL,
    *,
    play: Play | None = None,
    progress: Progress = lambda _: None,
) -> Capacity:
    """Find the least factor on the speed of a broker (or of all) with which the target is met.

    By bisection on a logarithmic scale: a faster broker makes nobody's events later. From the
    least that is predicted to be enough on, faster ones are looked at until one surely is.
    """
    check_target(system, ("brokers",), broker)
    seen: dict[float, Option] = {}

    def look(factor: float, play: Play | None = None) -> Evidence | None:
        progress(f"{factor:.3g} times as fast")
        try:
            evidence = weigh(faster(system, broker, factor), target, play)
        except UnstableError:  # overloaded, and only the simulator can do this system
            if factor == FASTEST:
                raise
            return None
        seen[factor] = Option(size=factor, evidence=evidence)
        return evidence

    def is_predicted(factor: float) -> bool:
        evidence = look(factor)
        return evidence is not None and evidence.predicted.meets

    def is_proved(factor: float) -> bool:
        evidence = look(factor, play)
        return evidence is not None and evidence.meets

    size = _least_predicted(is_predicted)
    # Also where the fastest is predicted to miss, perhaps by less than its error.
    size = _least_proved(is_proved, size or FASTEST)
    return Capacity(
        what="speed",
        broker=broker,
        options=tuple(seen[each] for each in sorted(seen)),
        choice=None if size is None else seen[size],
        plan=faster(system, broker, size or FASTEST),
    )


def _least_predicted(meets: Callable[[float], bool]) -> float | None:
    if meets(1.0):
        return narrowed(meets, SLOWEST, 1.0)
    return narrowed(meets, 1.0, FASTEST) if meets(FASTEST) else None


def _least_proved(meets: Callable[[float], bool], least: float) -> float | None:
    """Find the least size from this one on that meets the target.

    Tries longer and longer steps, then sizes between the last two.
    """
    low, size, step = least, least, CLOSE
    while not meets(size):
        if size >= FASTEST:
            return None
        low, size, step = size, min(FASTEST, least * (1 + step)), LONGER * step
    return narrowed(meets, low, size)


def narrowed(
    meets: Callable[[float], bool], low: float, high: float, *, close: float = CLOSE
) -> float:
    """Narrow the least size that meets the target, between one that does not and one that does."""
    while high > low * (1 + close) * (1 + 1e-12):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def faster(system: System, broker: str, factor: float) -> System:
    """Make a broker (or all) work so many times as fast."""
    return changed(system, [times("speed", broker, factor)])


def least_copies(
    system: System,
    target: Target,
    broker: str,
    *,
    most: int = MOST_COPIES,
    play: Play | None = None,
    progress: Progress = lambda _: None,
) -> Capacity:
    """Find the least number of brokers that should share the subscribers of one, for the target."""
    options, plan = [], system
    for number in range(1, most + 1):
        progress(f"{number} brokers")
        plan = shared_out(system, broker, number)
        options.append(Option(size=number, evidence=weigh(plan, target, play)))
        if options[-1].evidence.meets:
            break
    choice = options[-1] if options[-1].evidence.meets else None
    tried = tuple(options)
    return Capacity(what="brokers", broker=broker, options=tried, choice=choice, plan=plan)


def shared_out(system: System, broker: str, number: int) -> System:
    """Share the subscribers of a broker at the edge evenly among so many brokers like it.

    Each is linked as it is and fails with whatever it fails with; subscribers with a ``count`` are
    divided. Publishers stay where they are. A broker that others are reached through cannot be
    shared out so.
    """
    check_target(system, ("brokers",), broker)
    like = next((each for each in system.brokers if each.name == broker), None)
    links = [link for link in system.links if broker in link.between]
    if like is None or len(links) > 1:
        raise InvalidInputError(
            f"'{broker}' has {len(links)} links; only a broker with a single link (at the "
            "edge) can be replaced by several, because its neighbour needs no choice "
            "between them"
        )
    taken = {each.name for each in system.brokers}
    copies = [broker, *islice(_unused(broker, taken), number - 1)]
    new = {link.name: [_relinked(link, broker, copy) for copy in copies[1:]] for link in links}
    alike = {broker: copies[1:]} | {name: [e.name for e in each] for name, each in new.items()}
    return replace(
        system,
        brokers=(*system.brokers, *(replace(like, name=name) for name in copies[1:])),
        links=(*system.links, *(link for each in new.values() for link in each)),
        subscribers=tuple(_dealt(system.subscribers, broker, copies)),
        failure_groups=tuple(
            replace(
                group,
                members=(*group.members, *(e for m in group.members for e in alike.get(m, ()))),
            )
            for group in system.failure_groups
        ),
    )


def _unused(name: str, taken: set[str]) -> Iterator[str]:
    """Yield names like one that nobody has yet: ``edge 2``, ``edge 3``, …"""
    return (each for index in count(2) if (each := f"{name} {index}") not in taken)


def _relinked(link: Link, broker: str, copy: str) -> Link:
    one, other = (copy if end == broker else end for end in link.between)
    return replace(link, between=(one, other))


def _dealt(
    subscribers: Iterable[Subscriber], broker: str, copies: list[str]
) -> Iterator[Subscriber]:
    """Yield all subscribers, those of one broker dealt out to its copies, head by head in turn."""
    subscribers = tuple(subscribers)
    heads, taken = 0, {each.name for each in subscribers}
    for each in subscribers:
        if each.at != broker or len(copies) == 1:
            yield each
            continue
        yield from _divided(each, copies, heads % len(copies), _unused(each.name, taken))
        heads += each.count


def _divided(
    subscriber: Subscriber, copies: list[str], first: int, others: Iterator[str]
) -> Iterator[Subscriber]:
    """Yield the parts of a subscriber shared out among brokers, beginning with one of them."""
    for turn in range(len(copies)):
        place = (first + turn) % len(copies)
        heads = (subscriber.count + len(copies) - 1 - turn) // len(copies)
        if heads:
            name = subscriber.name if turn == 0 else next(others)
            yield replace(subscriber, name=name, at=copies[place], count=heads)
