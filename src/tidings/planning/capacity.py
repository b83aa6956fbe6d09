"""How fast brokers must be, or how many, so that everybody gets what they should."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tidings.errors import InvalidInputError
from tidings.model.outcome_files import plain
from tidings.model.system import Link, Subscriber, System
from tidings.planning.changes import changed
from tidings.planning.evidence import Standing, foreseen
from tidings.planning.selections import ALL, check_target
from tidings.planning.targets import Target

SLOWEST, FASTEST = 1 / 64, 64.0
CLOSE = 0.01  # relative: how near the least speed is to that given, which is the faster one
MOST_COPIES = 16

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One size that was looked at, and how the system stands with it."""

    size: float  # times as fast, or how many brokers
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The least size that meets the target, and what the others that were looked at give."""

    what: str  # "speed" or "brokers"
    broker: str
    options: tuple[Option, ...]  # by size
    plan: System  # the system of the size chosen, or of the largest

    @property
    def choice(self) -> Option | None:
        """The least size that meets the target, or None where none does."""
        return next((each for each in self.options if each.standing.meets), None)

    @property
    def best(self) -> Option:
        """What comes nearest to the target, whether it meets it or not."""
        return max(self.options, key=lambda each: (each.standing.satisfied, each.standing.margin))

    def to_document(self) -> dict[str, Any]:
        """The answer as plain data for JSON."""
        options = [{"size": e.size, **e.standing.to_document()} for e in self.options]
        return dict(
            plain(
                {
                    "what": self.what,
                    "broker": self.broker,
                    "choice": self.choice.size if self.choice else None,
                    "best": self.best.size,
                    "options": options,
                }
            )
        )


def least_speed(
    system: System, target: Target, broker: str = ALL, *, progress: Progress = lambda _: None
) -> Capacity:
    """The least factor on the speed of a broker (or of all) with which the target is met.

    By bisection on a logarithmic scale: a faster broker makes nobody's events later.
    """
    check_target(system, ("brokers",), broker)
    seen: dict[float, Standing] = {}

    def meets(factor: float) -> bool:
        progress(f"{factor:.3g} times as fast")
        seen[factor] = foreseen(faster(system, broker, factor), target)
        return seen[factor].meets

    low, high = SLOWEST, FASTEST
    if meets(1.0):
        high = 1.0
    elif meets(FASTEST):
        low = 1.0
    if high < FASTEST or low == 1.0:
        while high > low * (1 + CLOSE):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if meets(middle) else (middle, high)
    options = tuple(Option(size=size, standing=seen[size]) for size in sorted(seen))
    return Capacity(what="speed", broker=broker, options=options, plan=faster(system, broker, high))


def faster(system: System, broker: str, factor: float) -> System:
    """The system in which a broker (or all) work so many times as fast."""
    return changed(system, [f"speed '{broker}' x{factor!r}"])


def least_copies(
    system: System,
    target: Target,
    broker: str,
    *,
    most: int = MOST_COPIES,
    progress: Progress = lambda _: None,
) -> Capacity:
    """The least number of brokers that should share the subscribers of one, for the target."""
    options, plan = [], system
    for number in range(1, most + 1):
        progress(f"{number} brokers")
        plan = shared_out(system, broker, number)
        options.append(Option(size=number, standing=foreseen(plan, target)))
        if options[-1].standing.meets:
            break
    return Capacity(what="brokers", broker=broker, options=tuple(options), plan=plan)


def shared_out(system: System, broker: str, number: int) -> System:
    """The system in which so many brokers like one at the edge share its subscribers evenly.

    Each is linked as it is; subscribers with a ``count`` are divided. Publishers stay where they
    are. A broker that others are reached through cannot be shared out so.
    """
    check_target(system, ("brokers",), broker)
    like = next((each for each in system.brokers if each.name == broker), None)
    links = [link for link in system.links if broker in link.between]
    if like is None or len(links) > 1:
        raise InvalidInputError(
            f"'{broker}' has {len(links)} links; only a broker at the edge, with one, can be "
            "shared out among several: others would have to choose between them"
        )
    copies = [broker, *(f"{broker} {index}" for index in range(2, number + 1))]
    return replace(
        system,
        brokers=(*system.brokers, *(replace(like, name=name) for name in copies[1:])),
        links=(*system.links, *(_relinked(link, broker, c) for c in copies[1:] for link in links)),
        subscribers=tuple(
            part for each in system.subscribers for part in _divided(each, broker, copies)
        ),
    )


def _relinked(link: Link, broker: str, copy: str) -> Link:
    one, other = (copy if end == broker else end for end in link.between)
    return replace(link, between=(one, other))


def _divided(subscriber: Subscriber, broker: str, copies: list[str]) -> Iterator[Subscriber]:
    """A subscriber with its heads shared out; one head goes to a broker by its name."""
    if subscriber.at != broker or len(copies) == 1:
        yield subscriber
        return
    first = sum(subscriber.name.encode()) % len(copies)
    for turn in range(len(copies)):
        place = (first + turn) % len(copies)
        heads = (subscriber.count + len(copies) - 1 - turn) // len(copies)
        if heads:
            name = subscriber.name if turn == 0 else f"{subscriber.name} {turn + 1}"
            yield replace(subscriber, name=name, at=copies[place], count=heads)
