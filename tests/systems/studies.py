"""Systems that the project has already: its examples and those of its studies."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import tidings as td
from studies.combined.systems import PARTS, everything, only
from studies.content_timeliness.other_traffic import (
    EXPONENTIAL,
    PERIODIC,
    SCENARIOS,
    Scenario,
    system_of,
)
from systems.describing import COARSE, Case
from tidings.model.laws import Deterministic, Weibull
from tidings.model.system import System

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TREE = 401


def _examples() -> list[Case]:
    files = {"city": "city.yaml"} | {
        f"testbed, {name}": f"testbed/{name}.yaml"
        for name in ("failing", "mobile", "storing", "visiting")
    }
    brief = {**COARSE, "duration_s": 5_000.0, "warmup_s": 100.0}
    runs = {"city": {**COARSE, "duration_s": 20_000.0, "warmup_s": 100.0}}
    return [
        *(
            Case(
                name=name,
                kind="example",
                make=partial(td.load, EXAMPLES / file),
                run=runs.get(name, brief),
            )
            for name, file in files.items()
        ),
        Case(name="market and weather", kind="example", make=td.market_and_weather, run=COARSE),
        Case(name="market and weather, fitted", kind="fitted", make=_fitted, run=COARSE),
    ]


def _fitted() -> System:
    """The sample system as if measured: every service and rate within a twentieth."""
    system = td.market_and_weather()
    services = (
        (f"brokers.{each.name}.service", 0.05 * each.service.law.mean_s)
        for each in system.brokers
        if each.service is not None
    )
    rates = ((f"publishers.{p.name}.rate", 0.05 * p.rate_per_s) for p in system.publishers)
    return replace(system, standard_errors=(*services, *rates))


def _combined() -> list[Case]:
    """Everything at once, and some pairs of effects."""
    chosen: dict[str, tuple[str, ...]] = {
        "all": tuple(PARTS),
        "all but churn": tuple(part for part in PARTS if part != "churn"),
        "all but failures": tuple(part for part in PARTS if part != "failures"),
        "queues, failures": ("queues", "failures"),
        "queues, on/off publishers": ("queues", "on/off publishers"),
        "queues, on/off subscribers": ("queues", "on/off subscribers"),
        "queues, churn": ("queues", "churn"),
        "failures, churn": ("failures", "churn"),
        "failures, on/off subscribers": ("failures", "on/off subscribers"),
    }
    run = {**COARSE, "duration_s": 10_000.0, "warmup_s": 1_000.0, "max_replications": 60}
    found = [
        Case(name=f"combined, {name}", kind="combined", make=partial(_parts, parts), run=run)
        for name, parts in chosen.items()
    ]
    stored = partial(_parts, chosen["queues, failures"], "buffering")
    name = "combined, queues, failures, buffering"
    return [*found, Case(name=name, kind="combined", make=stored, run=run)]


def _parts(parts: tuple[str, ...], scheme: str = "periodic") -> System:
    return only(everything(1, scheme=scheme), parts)


def _trees() -> list[Case]:
    """Trees and lines of the study of where queue models hold."""
    chosen = (
        ("exponential / exponential", 0.75),
        ("exponential / exponential", 0.9),
        ("exponential / uniform", 0.6),
        ("exponential / uniform", 0.75),
        ("periodic / uniform", 0.75),
        ("uniform / exponential", 0.6),
        ("bursty (c² = 6) / uniform", 0.75),
        ("bursty (c² = 6) / exponential, ρ = .4", 0.4),
        ("bursts of 10 / exponential", 0.75),
        ("exponential / lognormal (c² = 2)", 0.75),
        ("periodic / uniform, jitter .1", 0.75),
        ("periodic / uniform, 2 in a line", 0.75),
        ("bursty (c² = 4) / uniform, alone", 0.75),
        ("periodic / constant, 10 at one", 0.75),
    )
    by_name = {(each.name, each.load): each for each in SCENARIOS}
    found = [_tree(by_name[each]) for each in chosen]
    heavy = Weibull(scale_s=1.0, shape=0.4)
    idle = {
        "exponential / constant": PERIODIC,
        "exponential / exponential": EXPONENTIAL,
        "exponential / uniform": by_name["exponential / uniform", 0.3].service,
        "exponential / Weibull (shape .4)": heavy.scaled(1.0 / heavy.mean_s),
    }
    return found + [
        _tree(Scenario(name=name, every=EXPONENTIAL, service=service, load=0.3), 0.25)
        for name, service in idle.items()
    ]


def _tree(scenario: Scenario, lifetime_s: float | None = None) -> Case:
    def make() -> System:
        system = system_of(TREE, scenario)
        if lifetime_s is None:
            return system
        return replace(system, lifetime=Deterministic(value_s=lifetime_s))

    periodic = isinstance(scenario.every, Deterministic)
    return Case(
        name=f"where it holds, {scenario.name}, {scenario.load:g} busy",
        kind="tree",
        make=make,
        run={
            **COARSE,
            "duration_s": 1_500.0 if periodic else 4_000.0,
            "warmup_s": 300.0,
            "max_replications": 2_000,
        },
    )


def cases() -> list[Case]:
    """All of them."""
    return [*_examples(), *_combined(), *_trees()]
