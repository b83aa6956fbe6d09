"""Systems whose brokers and links fail, under every recovery scheme."""

from __future__ import annotations

from functools import partial
from typing import Any

from studies.fault_tolerance.random_systems import random_system
from systems.describing import COARSE, Case, Document, case, exponential, line
from systems.small_failing import path, square

POISSON = exponential(0.2)
BRIEF = {"duration_s": 50_000.0, "warmup_s": 1_000.0}  # 500 cycles of 100 s
_FAILING: Document = {"availability": 0.95, "period": 200.0}


def _squares() -> list[Case]:
    """Two ways between two brokers, everything failing."""
    found = [
        Case(
            name=f"failing square, {scheme}",
            kind="failing",
            make=partial(square, f"scheme: {scheme}", lifetime=lifetime),
            run=BRIEF,
        )
        for scheme, lifetime in (
            ("periodic", "1h"),
            ("buffering", "60s"),
            ("bypass", "1h"),
            ("bypass-buffering", "20s"),
        )
    ]
    recoveries = {
        "without recovery": "scheme: none",
        "periodic, refreshed": "scheme: periodic, refresh: 20s",
        "periodic, noticed late": "scheme: periodic, detection: 5s",
        "buffering, refreshed": "scheme: buffering, refresh: 20s",
        "periodic, forgotten": "scheme: periodic, refresh: 20s, timeout: 60s",
    }
    lines = [
        Case(
            name=f"failing line, {name}",
            kind="failing",
            make=partial(path, (0.95, 0.9, 0.95), (0.95, 1), recovery, lifetime="60s"),
            run=BRIEF,
        )
        for name, recovery in recoveries.items()
    ]
    return [*found, *lines]


def _queueing() -> list[Case]:
    """Brokers that queue as well as fail."""
    failing = {"service": exponential(0.1), "failure": _FAILING}
    found = []
    for scheme, lifetimes in (("periodic", [0.3, 0.5, 0.7]), ("buffering", [0.5, 8.0, 12.0])):
        document = line([failing] * 3, POISSON, lifetimes, recovery={"scheme": scheme})
        found.append(case(f"failing queues in a line, {scheme}", "failing", document, **BRIEF))
    laws = {"up": {"weibull": {"mean": 190.0, "shape": 0.7}}, "down": 10.0}
    odd = line([{}, {"failure": laws}, {}], POISSON, 5.0, recovery={"scheme": "buffering"})
    grouped = line([{}] * 3, POISSON, 5.0, recovery={"scheme": "periodic"})
    grouped["failure_groups"] = {"site": {"members": ["b1", "b1--b2"], "failure": _FAILING}}
    return [
        *found,
        case("failures that are not exponential", "failing", odd, **BRIEF),
        case("broker and link that fail together", "failing", grouped, **BRIEF),
    ]


def _backlogs() -> list[Case]:
    """A broker kept events for while it was down, so busy while it is up."""
    found = []
    for busy in (0.5, 0.7, 0.9):
        brokers: list[Document] = [
            {},
            {
                "service": exponential(0.9 * busy),
                "failure": {"availability": 0.9, "period": 1_000.0},
            },
        ]
        document = line(brokers, exponential(1.0), 60.0, recovery={"scheme": "buffering"})
        run = {**COARSE, "duration_s": 200_000.0, "warmup_s": 5_000.0}
        found.append(case(f"backlogs after repairs, {busy:g} busy", "failing", document, **run))
    return found


def _ring(load: float) -> Document:
    """Six brokers in a ring with a chord, a publisher and a subscriber at each; detours.

    Every broker serves every event once while nothing is down.
    """
    service_s = 0.2
    names = [f"b{number}" for number in range(6)]
    ends = [[names[i], names[(i + 1) % 6]] for i in range(6)] + [["b0", "b3"]]
    crashes, cuts = {"mtbf": "1d", "mttr": "5min"}, {"mtbf": "1d", "mttr": "10min"}
    return {
        "lifetime": "5s",
        "recovery": {"scheme": "bypass"},
        "routing": {"root": "b0"},
        "brokers": {
            name: {"service": exponential(service_s), "failure": crashes} for name in names
        },
        "links": [{"between": pair, "failure": cuts} for pair in ends],
        "publishers": {
            f"p{number}": {
                "at": name,
                "every": {"rate": load / service_s / 6},
                "content": {"event": {"topic": "a"}},
            }
            for number, name in enumerate(names)
        },
        "subscribers": {
            f"s{number}": {"at": name, "wants": {}} for number, name in enumerate(names)
        },
    }


def _rings() -> list[Case]:
    run: dict[str, Any] = {**COARSE, "duration_s": 5 * 86_400.0, "warmup_s": 3_600.0}
    return [
        case(f"ring of six with a chord, bypass, {load:g} busy", "failing", _ring(load), **run)
        for load in (0.3, 0.48)
    ]


def _of_the_paper() -> list[Case]:
    """Random systems of the fault-tolerance study; fewer events, for it is failures that count."""
    chosen = (
        ("tree", "low-end", "periodic"),
        ("tree", "high-end", "buffering"),
        ("graph, own trees", "low-end", "buffering"),
        ("graph, own trees", "low-end", "bypass"),
        ("graph, one tree", "low-end", "bypass-buffering"),
    )
    run = {**COARSE, "duration_s": 14 * 86_400.0, "warmup_s": 0.0}
    return [
        Case(
            name=f"fault tolerance, {topology}, {machines}, {scheme}",
            kind="failing",
            make=partial(
                random_system, 3, topology=topology, machines=machines, scheme=scheme, every_s=600.0
            ),
            run=run,
        )
        for topology, machines, scheme in chosen
    ]


def cases() -> list[Case]:
    """All of them."""
    return [*_squares(), *_queueing(), *_backlogs(), *_rings(), *_of_the_paper()]
