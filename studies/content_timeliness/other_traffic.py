"""Where the queue models hold: traffic that the paper did not try, predicted against simulated.

Random trees with unequal or equal publishers and brokers, regular and bursty streams, services of
many laws, links that jitter, from idle to busy; and lines of brokers with few publishers. How
``law`` fits a wait was chosen by looking at the trees of seeds 201 and 202 (and 301, taken apart),
its echoes, skewness and order by those of 11 to 14; ``SEEDS`` are others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from studies.harness import Texts
from studies.points import errors, points_of, scatter, side_by_side
from tidings.model import reading
from tidings.model.laws import (
    Deterministic,
    Exponential,
    Gamma,
    HyperExponential,
    Law,
    LogNormal,
    Uniform,
    law_document,
)
from tidings.model.progress import Progress
from tidings.model.routes import route
from tidings.model.study import Study
from tidings.model.system import System
from tidings.prediction.predict import predict
from tidings.simulation.run import simulate
from tidings.theory.queues.flows import flows

BROKERS, PUBLISHERS, SUBSCRIBERS = 12, 8, 30
LIFETIME_S = 1.0
INTERVAL_S = 1.0
TOPICS = "abcdefgh"
SEEDS = (401, 402)
_TRIAL_SERVICE_S = 1e-3
_LONGEST_LINK_S = 0.05

PERIODIC = Deterministic(value_s=1.0)
EXPONENTIAL = Exponential(mean_s=1.0)
UNIFORM = Uniform(low_s=0.0, high_s=2.0)
REGULAR = Gamma(mean_s=1.0, shape=4.0)  # c² = ¼
UNEVEN_SERVICE = LogNormal(mean_s=1.0, scv=2.0)


def bursty(scv: float) -> HyperExponential:
    """Mean 1 and this c² above 1, both halves of the events' time alike (balanced means).

    >>> law = bursty(4.0)
    >>> round(law.mean_s, 12), round(law.scv, 12)
    (1.0, 4.0)
    """
    share = 0.5 * (1.0 + ((scv - 1.0) / (scv + 1.0)) ** 0.5)
    return HyperExponential(
        weights=(share, 1.0 - share), means_s=(0.5 / share, 0.5 / (1.0 - share))
    )


def bursts(length: float, pause: float) -> HyperExponential:
    """Poisson while ON, nothing while OFF: so many events in a burst, a pause of many intervals.

    Mean 1; ``pause`` is the mean time OFF in intervals within a burst.
    """
    stop = 1.0 / length  # probability that a burst ends after an event
    # An interrupted Poisson stream is a renewal stream with hyperexponential intervals.
    rate, off = 1.0, 1.0 / pause
    ending = rate * stop / (1.0 - stop)
    total, product = rate + ending + off, rate * off
    root = (total**2 - 4.0 * product) ** 0.5
    fast, slow = 0.5 * (total + root), 0.5 * (total - root)
    share = (rate - slow) / (fast - slow)
    mean = share / fast + (1.0 - share) / slow
    return HyperExponential(
        weights=(share, 1.0 - share), means_s=(1.0 / (fast * mean), 1.0 / (slow * mean))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Traffic of one kind: laws of mean 1 for intervals and services, and what else is special."""

    name: str
    every: Law
    service: Law
    load: float = 0.75  # of the busiest broker
    unequal: bool = False  # publishers' rates and brokers' services from half to one and a half
    jitter_s: float = 0.0  # mean of an exponential delay that every link adds
    line: int = 0  # so many brokers in a line, to whose first all publish; 0: a random tree
    publishers: int = PUBLISHERS  # of a line


_TWO_IN_LINE: dict[str, Any] = {"line": 4, "publishers": 2}
_ALONE: dict[str, Any] = {"line": 1, "publishers": 1}


def _scenarios() -> tuple[Scenario, ...]:
    families: dict[str, Law] = {
        "exponential": EXPONENTIAL,
        "periodic": PERIODIC,
        "uniform": UNIFORM,
    }
    grid = [
        Scenario(name=f"{one} / {other}", every=every, service=service, load=load)
        for load in (0.3, 0.6, 0.75, 0.9)
        for one, every in families.items()
        for other, service in (("exponential", EXPONENTIAL), ("uniform", UNIFORM))
    ]
    more: list[tuple[str, Law, Law, dict[str, Any]]] = [
        ("uniform / exponential, unequal", UNIFORM, EXPONENTIAL, {"unequal": True}),
        ("periodic / uniform, unequal", PERIODIC, UNIFORM, {"unequal": True}),
        ("gamma / gamma (c² = ¼), unequal", REGULAR, REGULAR, {"unequal": True}),
        ("periodic / constant, unequal", PERIODIC, PERIODIC, {"unequal": True}),
        ("periodic / uniform, jitter .1", PERIODIC, UNIFORM, {"jitter_s": 0.1}),
        ("uniform / exponential, jitter .1", UNIFORM, EXPONENTIAL, {"jitter_s": 0.1}),
        ("periodic / uniform, jitter 1", PERIODIC, UNIFORM, {"jitter_s": 1.0}),
        ("exponential / lognormal (c² = 2)", EXPONENTIAL, UNEVEN_SERVICE, {}),
        ("periodic / lognormal (c² = 2)", PERIODIC, UNEVEN_SERVICE, {}),
        ("bursty (c² = 2) / exponential", bursty(2.0), EXPONENTIAL, {}),
        ("bursty (c² = 2) / uniform", bursty(2.0), UNIFORM, {}),
        ("bursty (c² = 6) / exponential, ρ = .4", bursty(6.0), EXPONENTIAL, {"load": 0.4}),
        ("bursty (c² = 6) / exponential", bursty(6.0), EXPONENTIAL, {}),
        ("bursty (c² = 6) / uniform", bursty(6.0), UNIFORM, {}),
        ("bursts of 10 / exponential", bursts(10.0, 20.0), EXPONENTIAL, {}),
        ("bursts of 10 / uniform", bursts(10.0, 20.0), UNIFORM, {}),
        ("periodic / uniform, 2 in a line", PERIODIC, UNIFORM, _TWO_IN_LINE),
        ("periodic / uniform, 8 in a line", PERIODIC, UNIFORM, {"line": 4}),
        ("periodic / exponential, 2 in a line", PERIODIC, EXPONENTIAL, _TWO_IN_LINE),
        ("uniform / uniform, 2 in a line", UNIFORM, UNIFORM, _TWO_IN_LINE),
        ("uniform / constant, alone", UNIFORM, PERIODIC, {**_ALONE, "load": 0.9}),
        ("bursty (c² = 4) / uniform, alone", bursty(4.0), UNIFORM, _ALONE),
        ("periodic / constant, 10 at one", PERIODIC, PERIODIC, {"line": 1, "publishers": 10}),
    ]
    return (
        *grid,
        *(Scenario(name=name, every=e, service=s, **rest) for name, e, s, rest in more),
    )


SCENARIOS = _scenarios()


def tree(seed: int, scenario: Scenario) -> System:
    """A random tree under this traffic; the seed alone decides on its structure."""
    rng = np.random.default_rng(seed)
    speeds = rng.uniform(0.5, 1.5, PUBLISHERS)
    slowness = rng.uniform(0.5, 1.5, BROKERS)
    if not scenario.unequal:
        speeds[:], slowness[:] = 1.0, 1.0
    links = [
        (int(rng.integers(number)), number, float(rng.uniform(0.0, _LONGEST_LINK_S)))
        for number in range(1, BROKERS)
    ]
    homes = rng.integers(BROKERS, size=PUBLISHERS)
    shares = rng.dirichlet(np.full(len(TOPICS), 0.7), size=PUBLISHERS)
    wants = [
        (int(rng.integers(BROKERS)), rng.choice(list(TOPICS), rng.integers(1, 4), replace=False))
        for _ in range(SUBSCRIBERS)
    ]

    def system(service_s: float) -> System:
        return reading.from_document(
            {
                "tidings": 1,
                "lifetime": LIFETIME_S,
                "brokers": {
                    f"b{i}": {"service": law_document(scenario.service.scaled(service_s * slow))}
                    for i, slow in enumerate(slowness.tolist())
                },
                "links": [
                    {"between": [f"b{one}", f"b{two}"], "delay": _delay(fixed_s, scenario)}
                    for one, two, fixed_s in links
                ],
                "publishers": {
                    f"p{i}": {
                        "at": f"b{homes[i]}",
                        "every": law_document(scenario.every.scaled(INTERVAL_S * speed)),
                        "content": [
                            {"p": p, "event": {"topic": topic}}
                            for topic, p in zip(TOPICS, shares[i].tolist(), strict=True)
                        ],
                    }
                    for i, speed in enumerate(speeds.tolist())
                },
                "subscribers": {
                    f"s{i}": {"at": f"b{at}", "wants": {"topic": topics.tolist()}}
                    for i, (at, topics) in enumerate(wants)
                },
            },
            "a random tree",
        )

    trial = system(_TRIAL_SERVICE_S)
    busiest = float(flows(trial, route(trial)).loads.max())
    return system(_TRIAL_SERVICE_S * scenario.load / busiest)


def _delay(fixed_s: float, scenario: Scenario) -> Any:
    if scenario.jitter_s == 0.0:
        return law_document(Deterministic(value_s=fixed_s))
    return {"exponential": scenario.jitter_s, "shift": fixed_s}


_LINE_SERVICE_S, _LINE_LINK_S = 0.1, 0.05
_LINE_LIFETIMES_S = {1: 0.2, 4: 0.9}  # by brokers; about which delays lie


def line(scenario: Scenario) -> System:
    """Brokers in a line under this traffic, a subscriber of everything at each."""
    interval_s = scenario.publishers * _LINE_SERVICE_S / scenario.load
    brokers = [f"b{i}" for i in range(scenario.line)]
    service = law_document(scenario.service.scaled(_LINE_SERVICE_S))
    every = law_document(scenario.every.scaled(interval_s))
    content = {"event": {"topic": "a"}}
    return reading.from_document(
        {
            "tidings": 1,
            "lifetime": _LINE_LIFETIMES_S[scenario.line],
            "brokers": {name: {"service": service} for name in brokers},
            "links": [{"between": list(ends), "delay": _LINE_LINK_S} for ends in pairwise(brokers)],
            "publishers": {
                f"p{i}": {"at": "b0", "every": every, "content": content}
                for i in range(scenario.publishers)
            },
            "subscribers": {f"s{i}": {"at": at, "wants": {}} for i, at in enumerate(brokers)},
        },
        "a line of brokers",
    )


def system_of(seed: int, scenario: Scenario) -> System:
    """The system of a scenario: its line, or a random tree."""
    return line(scenario) if scenario.line else tree(seed, scenario)


DURATION_S = {False: 4_000.0, True: 1_500.0}  # by whether publishing is periodic
REPLICATIONS = {False: 12, True: 40}
WARMUP_S = 300.0
MODELS = ("law", "gg1", "mm1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is simulated; None: by whether publishing is periodic."""

    seeds: tuple[int, ...] = SEEDS
    replications: int | None = None
    duration_s: float | None = None


def simulate_all(
    effort: Effort, progress: Progress, scenarios: tuple[Scenario, ...] = SCENARIOS
) -> pd.DataFrame:
    """Simulate and predict every scenario and system: a point for each subscriber and model."""
    parts: list[pd.DataFrame] = []
    for place, scenario in enumerate(scenarios, start=1):
        progress(f"{place} of {len(scenarios)}: {scenario.name}")
        for seed in effort.seeds:
            parts += _points(scenario, seed, effort)
    return pd.concat(parts, ignore_index=True)


def _points(scenario: Scenario, seed: int, effort: Effort) -> Iterator[pd.DataFrame]:
    system = system_of(seed, scenario)
    periodic = isinstance(scenario.every, Deterministic)
    actual = simulate(
        system,
        seed=seed,
        replications=effort.replications or REPLICATIONS[periodic],
        duration_s=effort.duration_s or DURATION_S[periodic],
        warmup_s=WARMUP_S,
    )
    where = {"scenario": scenario.name, "load": scenario.load}
    for model in MODELS:
        predicted = predict(system, model=model, delays=False, causes=False, by="theory")
        yield points_of(predicted, actual).assign(**where, model=model, seed=seed)


def table(points: pd.DataFrame) -> pd.DataFrame:
    """Compute errors by scenario, load and model."""
    return errors(points, ("scenario", "load", "model"))


def study(texts: Texts, points: pd.DataFrame, effort: Effort) -> Study:
    """Show the errors, and law's predictions against what was simulated."""
    rows = table(points)
    cells = side_by_side(rows, "{mean_absolute:.4f} ({maximum:.3f})")
    shown = texts.grid("other traffic", *cells)
    best = points[points["model"] == "law"].groupby(["scenario", "load"], sort=False)
    plots = (scatter(f"law: {name}, ρ = {load:g}", group) for (name, load), group in best)
    return Study(
        paper=texts.name,
        title="Where the queue models hold: traffic that the paper did not try",
        summary=f"Random trees {', '.join(map(str, effort.seeds))} of {BROKERS} brokers, "
        f"{PUBLISHERS} publishers and {SUBSCRIBERS} subscribers, predicted and simulated. Errors "
        "are of on-time shares: 0.01 is one percentage point.",
        settings={},
        choices=(texts.all["other traffic"],),
        findings=(),
        sections=(texts.section("other errors", shown), texts.section("other scatters", *plots)),
        tables={"points": points, "where_it_holds": rows},
        plan=asdict(effort),
    )
