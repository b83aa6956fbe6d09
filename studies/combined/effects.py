"""What may keep an event from being on time, and systems in which one of these is switched off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tidings.model.behaviour import Channel
from tidings.model.features import FEATURES
from tidings.model.laws import Deterministic
from tidings.model.record_tables import column
from tidings.model.system import Broker, System
from tidings.planning.change_kinds import Change, times
from tidings.planning.changes import changed
from tidings.planning.choices import ALL

NO_RATE = 1e-6  # of what is published: so rare that no event ever meets another


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Something that costs on-time share: whether a system has it, and the system without it."""

    meaning: str
    present: Callable[[System], bool]
    without: Callable[[System], System]


def _rarely(system: System) -> System:
    return changed(system, [times("rate", ALL, NO_RATE)])


def _effortless(system: System) -> System:
    """Brokers that take no time; whatever else they are stays."""
    brokers = tuple(Broker(name=each.name, failure=each.failure) for each in system.brokers)
    return replace(system, brokers=brokers)


def _channels(system: System) -> list[Channel]:
    channels = [each for link in system.links for each in (link.there, link.back)]
    for peers in (system.publishers, system.subscribers):
        channels += column(peers, "link").values
    return channels


def _without(field: str, *sections: str) -> Callable[[System], System]:
    """The system in which no record of the sections has a field."""

    def off(system: System) -> System:
        parts: dict[str, Any] = {
            section: tuple(replace(each, **{field: None}) for each in getattr(system, section))
            for section in sections
        }
        return replace(system, **parts)

    return off


def _has(field: str, *sections: str) -> Callable[[System], bool]:
    def present(system: System) -> bool:
        values = [v for s in sections for v in column(getattr(system, s), field).values]
        return any(value is not None for value in values)

    return present


def _never_failing(system: System) -> System:
    whole = changed(system, [Change("failure", ALL)])
    return replace(whole, failure_groups=(), recovery=None)


def _settled(system: System) -> System:
    return _without("away", "subscribers")(_without("stays", "subscribers")(system))


def _lives(system: System) -> bool:
    return changed(system, [Change("lifetime", ALL)]) != system


PEERS = ("publishers", "subscribers")
EFFECTS: dict[str, Effect] = {
    "queueing": Effect(
        meaning="events queue at brokers and peers",
        present=lambda system: any(broker.stations for broker in system.brokers),
        without=_rarely,
    ),
    "service": Effect(
        meaning="brokers take time to serve an event, and others queue meanwhile",
        present=lambda system: any(broker.stations for broker in system.brokers),
        without=_effortless,
    ),
    "link loss": Effect(
        meaning="links lose events",
        present=lambda system: any(each.reliability < 1.0 for each in _channels(system)),
        without=lambda system: changed(system, [Change("reliability", ALL, 1.0)]),
    ),
    "link delay": Effect(
        meaning="links add delay",
        present=lambda system: any(each.delay.mean_s > 0.0 for each in _channels(system)),
        without=lambda system: changed(system, [Change("delay", ALL, Deterministic(value_s=0.0))]),
    ),
    "failures": Effect(
        meaning="brokers and links crash and are repaired",
        present=lambda system: any(FEATURES["failures"](system)),
        without=_never_failing,
    ),
    "mobility": Effect(
        meaning="peers disconnect at times, and events wait for them",
        present=_has("connectivity", *PEERS),
        without=_without("connectivity", *PEERS),
    ),
    "subscriber queues": Effect(
        meaning="subscribers take time to process an event",
        present=_has("processing", "subscribers"),
        without=_without("processing", "subscribers"),
    ),
    "churn": Effect(
        meaning="subscriptions come and go, and take time to spread",
        present=_has("stays", "subscribers"),
        without=_settled,
    ),
    "lifetimes": Effect(
        meaning="events are late after a limited time",
        present=_lives,
        without=lambda system: changed(system, [Change("lifetime", ALL)]),
    ),
}


def effects_of(system: System) -> dict[str, Effect]:
    """The effects that a system has, by name."""
    return {name: effect for name, effect in EFFECTS.items() if effect.present(system)}
