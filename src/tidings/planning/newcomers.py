"""What one more subscriber does to everybody, at each broker that it may come to.

A subscriber changes what others get only where it brings events to brokers that did not have them
before. So one prediction answers for all brokers that have all it wants already, as long as it
finds, and it is looked at, that nothing else has changed; each other broker takes one of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tidings.errors import InvalidInputError
from tidings.model.arrays import Floats, Ints
from tidings.model.routes import Routes, route
from tidings.model.system import Subscriber, System
from tidings.planning.scenarios import foretell

NOTHING = 1e-9  # a change that is rounding: transforms are inverted in parts of other sizes
_BUSY = ("arrivals_per_s", "utilisation", "wait_mean_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A system as it is predicted: what everybody gets in time, and how busy brokers are."""

    shares: Floats  # [subscriber]
    brokers: pd.DataFrame

    def is_that_of(self, other: State) -> bool:
        """Whether another state is the same for all whom this one knows."""
        pairs = [(self.shares, other.shares[: len(self.shares)])]
        pairs += [(self.brokers[name], other.brokers[name]) for name in _BUSY]
        return all(np.allclose(*p, rtol=NOTHING, atol=NOTHING, equal_nan=True) for p in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a newcomer gets at a broker, and what everybody else loses by it."""

    share: float
    losses: Floats  # [subscriber]
    quiet: bool = False  # whether nothing at all has changed but that it is there


def state(system: System) -> State:
    """Predict the state of a system: shares of its subscribers, work of its brokers."""
    outcome = foretell(system)
    return State(shares=outcome.subscribers["on_time"].to_numpy(), brokers=outcome.brokers)


def newcomer_like(system: System, name: str, count: int = 1) -> Subscriber:
    """Make a newcomer that wants and behaves as a subscriber of the system does, with its link."""
    like = next((each for each in system.subscribers if each.name == name), None)
    if like is None:
        raise InvalidInputError(
            f"there is no subscriber '{name}'; --like wants the name of an existing one"
        )
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


def quiet_effects(
    newcomer: Subscriber, brokers: Sequence[str], system: System, before: State
) -> dict[str, Effect]:
    """Effects at brokers that have the events already, by one prediction for all of them.

    There are none where even so something else has changed: brokers count heads, or those whose
    events they are come and go.
    """
    if not brokers:
        return {}
    after = state(joined(system, [replace(newcomer, at=name) for name in brokers]))
    if not before.is_that_of(after):
        return {}
    losses, known = np.zeros(len(before.shares)), len(before.shares)
    return {
        name: Effect(share=float(share), losses=losses, quiet=True)
        for name, share in zip(brokers, after.shares[known:], strict=True)
    }


def effect_at(broker: str, newcomer: Subscriber, system: System, before: State) -> Effect:
    """The effect at one broker, by a prediction of its own."""
    after = state(joined(system, [replace(newcomer, at=broker)]))
    losses = before.shares - after.shares[:-1]
    return Effect(
        share=float(after.shares[-1]), losses=np.where(np.abs(losses) <= NOTHING, 0.0, losses)
    )


def reached_brokers(system: System, newcomer: Subscriber) -> set[str]:
    """List the brokers that all events which a newcomer wants come to already."""
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
    common = set(range(len(system.brokers)))
    for home, content_class in sources:
        common &= _reached(one, interest[:, content_class], home, content_class)
    return {system.brokers[index].name for index in common}


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
