"""The random systems of the content-timeliness experiments.

What the paper says and what we chose where it leaves things open is in ``content_timeliness.yaml``.
Structure (tree, homes, contents, filters) depends on the seed alone, and so do the delays of links
from one source of them; all settings of one seed differ in nothing but their laws and their rate.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from studies.content_timeliness.latencies import LinkDelays, wide_area
from studies.points import zipf
from studies.settings.content_timeliness import INTERVALS, MATCHINGS
from tidings.errors import InvalidInputError
from tidings.model import reading
from tidings.model.laws import Deterministic, Exponential, Law, Uniform, law_document
from tidings.model.routes import route
from tidings.model.system import System
from tidings.theory.queues.flows import flows

TOPICS = 4
ATTRIBUTES_PER_TOPIC = 5
BROKERS = 20
PUBLISHERS = 8
SUBSCRIBERS = 100
LIFETIME_S = 1.0
MATCHING_S = 1e-3  # a stored subscription
VALUES = 10  # of each attribute
CONTENTS_PER_TOPIC = 30
_TRIAL_RATE_PER_S = 1e-3  # so low that no broker is overloaded and loads are proportional to it


def random_system(
    seed: int,
    *,
    publishing: str,
    matching: str,
    rate_per_s: float,
    delays: LinkDelays = wide_area,
) -> System:
    """A system of the paper's experiments, in which every publisher publishes ``rate_per_s``."""
    random = np.random.default_rng(seed)
    # Delays have numbers of their own, so that another source of them changes nothing else.
    links = _tree(random, delays, np.random.default_rng([seed, 1]))
    contents = _contents(random)
    every = law_document(_law(publishing, INTERVALS, 1.0 / rate_per_s))
    service: Any = law_document(_law(matching, MATCHINGS, MATCHING_S))
    return reading.from_document(
        {
            "tidings": 1,
            "description": f"random system {seed} of the content-timeliness experiments",
            "lifetime": LIFETIME_S,
            "brokers": {
                _broker(number): {"service": {**service, "per": "subscription"}}
                for number in range(BROKERS)
            },
            "links": links,
            "publishers": {
                f"p{number + 1}": {
                    "at": _broker(int(random.integers(BROKERS))),
                    "every": every,
                    "content": _ranked(contents, random),
                }
                for number in range(PUBLISHERS)
            },
            "subscribers": {
                f"s{number + 1:03d}": {
                    "at": _broker(int(random.integers(BROKERS))),
                    "wants": _subscription(contents, random),
                }
                for number in range(SUBSCRIBERS)
            },
        },
        "a random system",
    )


def rate_for_load(seed: int, load: float, delays: LinkDelays = wide_area) -> float:
    """Events a second of each publisher that keep the busiest broker busy for a share ``load``.

    The same for all interval and matching laws, as only their means matter here.
    """
    if not 0.0 < load < 1.0:
        raise InvalidInputError(f"the load is {load}; wants a share between 0 and 1")
    trial = random_system(
        seed,
        publishing="exponential",
        matching="exponential",
        rate_per_s=_TRIAL_RATE_PER_S,
        delays=delays,
    )
    return _TRIAL_RATE_PER_S * load / float(flows(trial, route(trial)).loads.max())


def _law(family: str, known: tuple[str, ...], mean_s: float) -> Law:
    if family not in known:
        raise InvalidInputError(f"there is no law '{family}' here; wants one of {', '.join(known)}")
    if family == "deterministic":
        return Deterministic(value_s=mean_s)
    if family == "uniform":
        return Uniform(low_s=0.0, high_s=2.0 * mean_s)
    return Exponential(mean_s=mean_s)


def _tree(
    random: np.random.Generator, delays: LinkDelays, random_delays: np.random.Generator
) -> list[dict[str, Any]]:
    return [
        {
            "between": [_broker(int(random.integers(number))), _broker(number)],
            "delay": law_document(delays(random_delays)),
        }
        for number in range(1, BROKERS)
    ]


def _broker(number: int) -> str:
    return f"b{number + 1:02d}"


def _attributes(topic: int) -> list[str]:
    first = topic * ATTRIBUTES_PER_TOPIC
    return [f"a{first + position + 1:02d}" for position in range(ATTRIBUTES_PER_TOPIC)]


def _contents(random: np.random.Generator) -> list[dict[str, Any]]:
    """Distinct events of every topic: the attributes of their topic have values, the rest none."""
    events: dict[tuple[int, ...], dict[str, Any]] = {}
    for topic in range(TOPICS):
        while len(events) < (topic + 1) * CONTENTS_PER_TOPIC:
            values = random.choice(VALUES, size=ATTRIBUTES_PER_TOPIC, p=zipf(VALUES)) + 1
            event = dict(zip(_attributes(topic), map(int, values), strict=True))
            events[(topic, *map(int, values))] = {"topic": f"t{topic + 1}", **event}
    return list(events.values())


def _ranked(contents: list[dict[str, Any]], random: np.random.Generator) -> list[dict[str, Any]]:
    shares = zipf(len(contents))
    order = random.permutation(len(contents))
    return [
        {"p": float(share), "event": contents[int(index)]}
        for share, index in zip(shares, order, strict=True)
    ]


def _subscription(
    contents: list[dict[str, Any]], random: np.random.Generator
) -> dict[str, int | str]:
    while True:
        topic = int(random.choice(TOPICS, p=zipf(TOPICS)))
        names = random.choice(_attributes(topic), size=int(random.integers(1, 3)), replace=False)
        values = random.choice(VALUES, size=len(names), p=zipf(VALUES)) + 1
        wants: dict[str, int | str] = {"topic": f"t{topic + 1}"}
        wants |= {str(name): int(value) for name, value in zip(names, values, strict=True)}
        if any(
            all(event.get(name) == value for name, value in wants.items()) for event in contents
        ):
            return wants
