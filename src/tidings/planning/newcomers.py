"""What one more subscriber does to everybody, at each broker that it may come to.

A subscriber changes what others get only where it brings events to brokers that did not have them
before. So one prediction answers for all brokers that have all it wants already, as long as it
finds, and it is looked at, that nothing else has changed; each other broker takes one of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tidings.errors import InvalidInputError
from tidings.model.outcome import Outcome
from tidings.model.routes import Ints, Routes, route
from tidings.model.system import Subscriber, System
from tidings.planning.scenarios import foretell
from tidings.planning.targets import Floats

NOTHING = 1e-12  # a change of shares, rates and waits (relative) that is rounding
_STATE = ("arrivals_per_s", "utilisation", "wait_mean_s")

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a newcomer gets at a broker, and what everybody else loses by it."""

    share: float
    losses: Floats  # [subscriber]


def newcomer_like(system: System, name: str, count: int = 1) -> Subscriber:
    """A newcomer that wants what a subscriber of the system wants, with its link and its ways."""
    like = next((each for each in system.subscribers if each.name == name), None)
    if like is None:
        raise InvalidInputError(f"there is no subscriber '{name}' to be like")
    return replace(like, name=f"newcomer like {name}", count=count)


def joined(system: System, newcomers: Iterable[Subscriber]) -> System:
    """The system with newcomers in it, by names that are not taken."""
    taken = {each.name for each in system.subscribers}
    named = []
    for each in newcomers:
        name, number = each.name, 1
        while name in taken:
            number += 1
            name = f"{each.name} {number}"
        taken.add(name)
        named.append(replace(each, name=name))
    return replace(system, subscribers=(*system.subscribers, *named))


def effects_of(
    newcomer: Subscriber,
    brokers: Sequence[str],
    system: System,
    before: Outcome,
    progress: Progress = lambda _: None,
) -> dict[str, Effect]:
    """By broker what a newcomer does there; ``before`` is the prediction of the system."""
    progress(f"{newcomer.name} where its events are already")
    reached = reached_brokers(system, newcomer)
    found = _together(newcomer, [name for name in brokers if name in reached], system, before)
    left = [name for name in brokers if name not in found]
    for number, name in enumerate(left, start=1):
        progress(f"{newcomer.name} at {name}, {number} of {len(left)}")
        after = foretell(joined(system, [replace(newcomer, at=name)]))
        found[name] = _effects(before, after)[0]
    return found


def reached_brokers(system: System, newcomer: Subscriber) -> set[str]:
    """The brokers that all events which a newcomer wants come to already."""
    # Interest counts heads, so twice that with one newcomer less that with two is that without,
    # in classes of contents that tell apart what the newcomer wants.
    at = system.brokers[0].name
    one, two = (route(joined(system, [replace(newcomer, at=at, count=n)])) for n in (1, 2))
    interest = 2 * one.interest - two.interest
    wanted = one.wanted_by(len(system.subscribers))
    sources = {
        (int(one.home_of_publisher[row.publisher]), row.content_class)
        for row in one.rows
        if wanted[row.content_class] and row.probability > 0.0
    }
    found = set(range(len(system.brokers)))
    for home, content_class in sources:
        found &= _reached(one, interest[:, content_class], home, content_class)
    return {system.brokers[index].name for index in found}


def _reached(routes: Routes, interest: Ints, home: int, content_class: int) -> set[int]:
    """The brokers that events of a class come to from a broker, along arcs behind which one is."""
    tree = routes.trees[routes.tree_of_class[content_class]]
    seen, ahead = {home}, [home]
    while ahead:
        for arc in tree.outgoing[ahead.pop()]:
            target = routes.arcs[arc].target
            if target not in seen and interest[arc] > 0:
                seen.add(target)
                ahead.append(target)
    return seen


def _together(
    newcomer: Subscriber, brokers: Sequence[str], system: System, before: Outcome
) -> dict[str, Effect]:
    """Effects at brokers that have the events; none where even so something else has changed."""
    if not brokers:
        return {}
    after = foretell(joined(system, [replace(newcomer, at=name) for name in brokers]))
    known = len(before.subscribers)
    shares = (before.subscribers["on_time"], after.subscribers["on_time"][:known])
    states = [(before.brokers[name], after.brokers[name]) for name in _STATE]
    if not all(
        np.allclose(*pair, rtol=NOTHING, atol=NOTHING, equal_nan=True) for pair in (shares, *states)
    ):
        return {}
    return dict(zip(brokers, _effects(before, after), strict=True))


def _effects(before: Outcome, after: Outcome) -> list[Effect]:
    """What each of those that came gets, and what those who were there lose by all of them."""
    known = len(before.subscribers)
    shares = after.subscribers["on_time"].to_numpy()
    losses = before.subscribers["on_time"].to_numpy() - shares[:known]
    losses = np.where(np.abs(losses) <= NOTHING, 0.0, losses)
    return [Effect(share=float(share), losses=losses) for share in shares[known:]]
