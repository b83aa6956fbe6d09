"""A system of twenty brokers in which everything happens at once, and its parts.

Contents with filters, lossy links with random delays, queueing brokers of several laws, brokers and
links that crash, publishers and subscribers that come and go, subscriptions that last a while,
lifetimes that vary. Most subscribers are several brokers away from what they want; every fifth is
at the broker of the one publisher that it follows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from studies.combined.effects import EFFECTS
from tidings.model import reading
from tidings.model.filters import EVERYTHING
from tidings.model.laws import Deterministic
from tidings.model.routes import route
from tidings.model.system import System
from tidings.planning.change_kinds import Change, times
from tidings.planning.changes import changed
from tidings.planning.choices import ALL
from tidings.theory.peers.churn import ChurnModel
from tidings.theory.queues.flows import flows

BROKERS, PUBLISHERS, SUBSCRIBERS = 20, 8, 40
LOAD = 0.65  # of the busiest broker
URGENT_S = 4.0  # how long urgent events are of use
NEIGHBOURS = SUBSCRIBERS // PUBLISHERS  # one of so many subscribers is beside a publisher
TOPICS = ("news", "sport", "stock", "weather")
SERVICES = ("exponential", "uniform", "erlang", "deterministic")


def everything(seed: int = 1, *, scheme: str = "periodic") -> System:
    """The system with all effects on, random by its seed."""
    rng = np.random.default_rng(seed)
    brokers = {f"b{i:02}": _broker(rng, i) for i in range(BROKERS)}
    names = list(brokers)
    links = [_link(rng, names[rng.integers(max(0, i - 4), i)], names[i]) for i in range(1, BROKERS)]
    publishers = {f"p{i}": _publisher(rng, names, i) for i in range(PUBLISHERS)}
    subscribers = {f"s{i:02}": _subscriber(rng, names, i) for i in range(SUBSCRIBERS)}
    neighbours = list(subscribers)[NEIGHBOURS - 1 :: NEIGHBOURS]
    for name, publisher in zip(neighbours, publishers, strict=True):
        beside = {"at": publishers[publisher]["at"], "wants": {"source": publisher}}
        subscribers[name] = subscribers[name] | beside
    system = reading.from_document(
        {
            "tidings": 1,
            "description": "everything at once",
            "lifetime": {"exponential": 20.0},
            "recovery": {"scheme": scheme},
            "brokers": brokers,
            "links": links,
            "publishers": publishers,
            "subscribers": subscribers,
        }
    )
    return _loaded(system)


def _broker(rng: np.random.Generator, number: int) -> dict[str, Any]:
    mean = float(rng.uniform(0.03, 0.06))
    laws: dict[str, Any] = {
        "exponential": {"exponential": mean},
        "uniform": {"uniform": [0.0, 2 * mean]},
        "erlang": {"erlang": {"mean": mean, "shape": 3}},
        "deterministic": {"deterministic": mean},
    }
    up_share = float(rng.uniform(0.94, 0.97))
    return {
        "service": laws[SERVICES[number % len(SERVICES)]],
        "failure": {"availability": up_share, "period": float(rng.uniform(120, 240))},
    }


def _link(rng: np.random.Generator, one: str, other: str) -> dict[str, Any]:
    link: dict[str, Any] = {
        "between": [one, other],
        "delay": {"exponential": float(rng.uniform(0.05, 0.3))},
        "reliability": float(rng.uniform(0.97, 0.995)),
    }
    if rng.random() < 0.3:
        link["failure"] = {"availability": 0.97, "period": float(rng.uniform(100, 200))}
    return link


def _publisher(rng: np.random.Generator, names: list[str], number: int) -> dict[str, Any]:
    event = {"topic": TOPICS[number % len(TOPICS)], "source": f"p{number}"}
    share = float(rng.uniform(0.3, 0.7))
    found: dict[str, Any] = {
        "at": names[int(rng.integers(len(names)))],
        "every": {"exponential": 1.0},
        "content": [
            {"p": share, "event": {**event, "urgent": 1}, "lifetime": URGENT_S},
            {"p": 1 - share, "event": {**event, "urgent": 0}},
        ],
    }
    if number % 2:
        found["connectivity"] = _connectivity(rng, (5, 7), service_s=0.05)
    return found


def _connectivity(
    rng: np.random.Generator, on_s: tuple[float, float], *, service_s: float
) -> dict[str, Any]:
    """ON for a random time of which the mean is in a range, .56 to .69 of all time."""
    mean_s = float(rng.uniform(*on_s))
    return {
        "on": {"exponential": mean_s},
        "off": {"exponential": mean_s * float(rng.uniform(0.45, 0.8))},
        "service": {"exponential": service_s},
    }


def _subscriber(rng: np.random.Generator, names: list[str], number: int) -> dict[str, Any]:
    wants: dict[str, Any] = {"topic": TOPICS[int(rng.integers(len(TOPICS)))]}
    if rng.random() < 0.3:
        wants["urgent"] = int(rng.random() < 0.5)
    found: dict[str, Any] = {"at": names[int(rng.integers(len(names)))], "wants": wants}
    if number % 3 == 0:
        found["connectivity"] = _connectivity(rng, (5, 9), service_s=0.03)
    if number % 3 == 1 or number % 6 == 0:
        found["stays"] = {"exponential": float(rng.uniform(20, 60))}
        found["away"] = {"exponential": 60.0}
    return found


def _loaded(system: System) -> System:
    """The system with all rates scaled so that its busiest broker is as busy as wanted."""
    return changed(system, [times("rate", ALL, LOAD / busiest_load(system))])


def busiest_load(system: System) -> float:
    """Compute the load of the busiest broker, over times in which subscribers come and go."""
    routes = route(system)
    open_to = ChurnModel(system=system, routes=routes).open_shares
    return float(np.max(flows(system, routes, open_to).loads))


def without(system: System, effect: str) -> System:
    """The system with one of the ``PARTS`` switched off."""
    if effect == "filters":
        all_want_all = tuple(replace(each, wants=EVERYTHING) for each in system.subscribers)
        return replace(system, subscribers=all_want_all)
    if effect == "varying lifetimes":
        return changed(system, [Change("lifetime", ALL, Deterministic(value_s=URGENT_S))])
    if effect in ("on/off publishers", "on/off subscribers"):
        section = effect.removeprefix("on/off ")
        peers = tuple(replace(each, connectivity=None) for each in getattr(system, section))
        changes: dict[str, Any] = {section: peers}
        return replace(system, **changes)
    for name in PARTS[effect]:
        system = EFFECTS[name].without(system)
    return system


def only(system: System, effects: tuple[str, ...]) -> System:
    """The system with these of the ``PARTS`` and no other."""
    for effect in PARTS:
        if effect not in effects:
            system = without(system, effect)
    return system


# What is switched on and off. Without filters everybody wants everything, and the busiest broker is
# kept as busy; without varying lifetimes every event is of use as long as an urgent one.
PARTS: dict[str, tuple[str, ...]] = {
    "queues": ("service",),
    "links": ("link loss", "link delay"),
    "failures": ("failures",),
    "on/off publishers": (),
    "on/off subscribers": (),
    "churn": ("churn",),
    "varying lifetimes": (),
    "filters": (),
}
