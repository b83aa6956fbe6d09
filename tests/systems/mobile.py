"""Systems of which publishers or subscribers come and go, and events wait for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from studies.mobile_onoff.scenarios import TABLE_3, scenario_system
from systems.describing import (
    Case,
    Document,
    case,
    exponential,
    hyperexponential,
    line,
    single,
    weibull,
)
from tidings.model.laws import Deterministic
from tidings.model.system import System

LONG = {"duration_s": 20_000.0, "warmup_s": 2_000.0}


def _periods(on: Any, off: Any, service: Any, **more: Any) -> Document:
    return {"on": on, "off": off, "service": service, **more}


def _to(subscriber: Document, every: Any, lifetime: Any, service: Any = None) -> Document:
    """A broker without a queue, unless it has a service, and a subscriber that comes and goes."""
    document = line([{} if service is None else {"service": service}], every, lifetime)
    document["subscribers"]["s0"]["connectivity"] = subscriber
    return document


def _subscribers() -> list[Case]:
    usual = _periods(exponential(20.0), exponential(10.0), exponential(0.2))
    regular = _periods(5.0, 5.0, 0.4)
    heavy = _periods(weibull(50.0), exponential(50.0), exponential(0.3))
    small = _periods(exponential(2.0), exponential(1.0), exponential(0.25), buffer=3)
    at_once = {"on": exponential(20.0), "off": exponential(10.0)}
    behind = _to(usual, exponential(0.5), 2.0, exponential(0.25))
    own = _to(usual, exponential(0.5), 3.0)
    own["subscribers"]["s0"]["processing"] = exponential(0.2)
    paced = {
        f"periodic to ON 5 s/OFF 5 s constant, every {every:g} s": _to(regular, every, 7.0)
        for every in (1.0, 1.3)
    }
    systems = {
        "Poisson to ON/OFF": _to(usual, exponential(0.5), 2.0),
        "Poisson to ON/OFF at once": _to(at_once, exponential(0.5), 2.0),
        "Poisson to ON/OFF that keeps three": _to(small, exponential(0.5), 1.0),
        "Poisson through a queue to ON/OFF": behind,
        "Poisson to ON/OFF with its own queue": own,
        "bursts to ON/OFF": _to(usual, hyperexponential(0.5, 6.0), 2.0),
        **paced,
        "Weibull ON of 50 s": _to(heavy, exponential(2.0), 90.0),
    }
    longer = {"Weibull ON of 50 s": {"duration_s": 200_000.0, "warmup_s": 50_000.0}}
    return [
        case(name, "mobile", document, **(LONG | longer.get(name, {})))
        for name, document in systems.items()
    ]


def _publishers() -> list[Case]:
    found = []
    for law, hand_over in (("exponential", exponential(0.15)), ("constant", 0.15)):
        document = single(exponential(1.0), hand_over, 0.48)
        document["publishers"]["p"]["connectivity"] = _periods(
            exponential(50.0), exponential(50.0), hand_over
        )
        name = f"ON/OFF publisher as fast as its broker, {law}"
        found.append(case(name, "mobile", document, duration_s=50_000.0, warmup_s=2_000.0))
    return found


BOTH: Document = {
    "lifetime": "4s",
    "brokers": {
        "hub": {"service": exponential("20ms")},
        "east": {"service": exponential("20ms")},
    },
    "links": [{"between": ["hub", "east"], "delay": exponential("100ms"), "reliability": 0.95}],
    "publishers": {
        "one": {
            "at": "hub",
            "every": exponential("1s"),
            "content": {"event": {"topic": "a"}},
            "connectivity": _periods(exponential("5s"), exponential("4s"), exponential("200ms")),
        },
        "two": {"at": "hub", "every": exponential("500ms"), "content": {"event": {"topic": "b"}}},
    },
    "subscribers": {
        "plain": {"at": "east", "wants": {"topic": "a"}},
        "away": {
            "at": "east",
            "wants": {},
            "connectivity": _periods(exponential("6s"), exponential("3s"), exponential("150ms")),
            "link": {"reliability": 0.9, "delay": "50ms"},
        },
        "slow": {
            "at": "hub",
            "wants": {"topic": "b"},
            "connectivity": _periods(
                {"gamma": {"mean": "4s", "shape": 2}}, exponential("2s"), "100ms"
            ),
            "processing": exponential("200ms"),
        },
    },
}


def _both() -> list[Case]:
    """Publishers and subscribers that come and go, with queues, losses and failures."""
    hub, east = BOTH["brokers"]["hub"], BOTH["brokers"]["east"]
    crashing = {**east, "failure": {"mtbf": "300s", "mttr": "15s"}}
    failing = {
        **BOTH,
        "brokers": {"hub": hub, "east": crashing},
        "recovery": {"scheme": "periodic"},
    }
    run = {"duration_s": 15_000.0, "warmup_s": 500.0}
    return [
        case("mobile publisher and subscribers", "mobile", BOTH, **run),
        case("mobile peers of a broker that fails", "mobile", failing, **run),
    ]


def _of_the_paper() -> list[Case]:
    """Scenarios of the study of mobile peers, with lifetimes about which their delays lie."""
    lifetimes_s = {"metro, evening": 60.0, "degraded network": 2.5, "subscriber alone, .1/s": 900.0}
    found = []
    for scenario in TABLE_3:
        if scenario.name not in lifetimes_s:
            continue

        def make(scenario=scenario) -> System:
            lifetime = Deterministic(value_s=lifetimes_s[scenario.name])
            return replace(scenario_system(scenario, 4), lifetime=lifetime)

        cycle_s = sum(scenario.subscriber)
        run = {"duration_s": 400.0 * cycle_s + 5_000.0, "warmup_s": 20.0 * cycle_s}
        found.append(Case(name=f"mobile, {scenario.name}", kind="mobile", make=make, run=run))
    return found


def cases() -> list[Case]:
    """All of them."""
    return [*_subscribers(), *_publishers(), *_both(), *_of_the_paper()]
