"""Systems whose brokers queue and nothing else: single queues, lines, and streams that meet."""

from __future__ import annotations

from typing import Any

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

POISSON = exponential(0.1)  # ten a second


def _singles() -> list[Case]:
    """Single queues, most with a known answer."""
    plain: dict[str, tuple[Any, Any, Any]] = {
        "M/M/1 .1 busy": (POISSON, exponential(0.01), 0.02),
        "M/M/1 .5 busy": (POISSON, exponential(0.05), 0.1),
        "M/M/1 .5 busy, one miss in 1000": (POISSON, exponential(0.05), 0.69),
        "M/D/1 .7 busy": (POISSON, 0.07, 0.2),
        "D/M/1 .7 busy": (0.1, exponential(0.07), 0.15),
        "M/U/1 .6 busy": (POISSON, {"uniform": [0.0, 0.12]}, 0.15),
        "M/G/1 lognormal .7 busy": (POISSON, {"lognormal": {"mean": 0.07, "scv": 2.0}}, 0.3),
        "M/G/1 Weibull .3 busy": (POISSON, weibull(0.03), 0.1),
        "H/M/1 .6 busy": (hyperexponential(0.1, 4.0), exponential(0.06), 0.2),
        "E/H/1 .6 busy": (
            {"erlang": {"mean": 0.1, "shape": 3}},
            hyperexponential(0.06, 4.0),
            0.2,
        ),
        "M/M/1, lifetimes that vary": (POISSON, exponential(0.06), exponential(0.15)),
    }
    found = [case(name, "plain", single(*parts)) for name, parts in plain.items()]
    busy = single(POISSON, exponential(0.09), 0.7)
    return [*found, case("M/M/1 .9 busy", "busy", busy, events=200_000)]


def _lines() -> list[Case]:
    """Lines of brokers: exact ones, and those that keep the pace or the bursts of a stream."""
    exact = line([{"service": exponential(0.06)}] * 3, POISSON, [0.15, 0.3, 0.45])
    found = [case("three M/M/1 in a line, .6 busy", "plain", exact)]
    for brokers, lifetime_s in ((2, 0.061), (3, 0.0915), (4, 0.125)):
        constant = line([{"service": 0.03}] * brokers, POISSON, lifetime_s)
        found.append(case(f"Poisson through {brokers} constant services", "line", constant))
    for brokers in (4, 6, 10):
        lifetimes = [0.06 * (number + 1) for number in range(brokers)]
        bursts = line([{"service": exponential(0.03)}] * brokers, _BURSTY, lifetimes)
        found.append(case(f"hyperexponential through {brokers}", "line", bursts))
    heavy = line([{"service": weibull(0.03)}] * 3, POISSON, [0.05, 0.1, 0.15])
    return [*found, case("Poisson through 3 Weibull services", "line", heavy, events=200_000)]


_BURSTY = hyperexponential(0.1, 10.0)
_VERY_BURSTY = {"hyperexponential": [{"p": 0.95, "mean": "5ms"}, {"p": 0.05, "mean": "1.905s"}]}


def _at_one(laws: list[Any], service: Any, lifetime: Any) -> Document:
    """Publishers of several laws at one broker, and a subscriber of each."""
    names = [f"p{number}" for number in range(len(laws))]
    return {
        "lifetime": lifetime,
        "brokers": {"hub": {"service": service}},
        "publishers": {
            name: {"at": "hub", "every": every, "content": {"event": {"from": name}}}
            for name, every in zip(names, laws, strict=True)
        },
        "subscribers": {f"of {name}": {"at": "hub", "wants": {"from": name}} for name in names},
    }


def _meetings() -> list[Case]:
    """Streams that meet at one broker, each of which finds a wait of its own."""
    unlike = _at_one([{"rate": "45/s"}, _VERY_BURSTY], exponential("10ms"), "50ms")
    paced = _at_one([0.2, exponential(0.2)], exponential(0.06), 0.15)
    bursty = _at_one([hyperexponential(0.4, 10.0)] * 4, exponential(0.06), 0.3)
    mixed = _at_one([hyperexponential(0.4, s) for s in (2.0, 6.0, 20.0)], exponential(0.08), 0.4)
    return [
        case("two unlike streams at one broker", "streams", unlike, events=200_000),
        case("a paced and a Poisson stream at one broker", "streams", paced),
        case("four bursty publishers at one broker", "streams", bursty, events=200_000),
        case("three unlike bursty publishers at one broker", "streams", mixed, events=200_000),
    ]


def _star(load: float, lifetime_s: float) -> Document:
    """A hub and three leaves, a Poisson publisher at each; what a leaf's own subscribers get.

    Everything crosses every broker, so all are as busy.
    """
    service_s = load / 9.0
    leaves = ("east", "north", "west")
    return {
        "lifetime": lifetime_s,
        "brokers": {
            name: {"service": {"uniform": [0.0, 2.0 * service_s]}} for name in ("hub", *leaves)
        },
        "links": [{"between": ["hub", leaf]} for leaf in leaves],
        "publishers": {
            f"p {leaf}": {"at": leaf, "every": {"rate": rate}, "content": {"event": {"of": leaf}}}
            for leaf, rate in zip(leaves, (1.0, 3.0, 5.0), strict=True)
        },
        "subscribers": {
            **{f"own {leaf}": {"at": leaf, "wants": {"of": leaf}} for leaf in leaves},
            **{f"all {leaf}": {"at": leaf, "wants": {}} for leaf in leaves},
        },
    }


def _behind(load: float, own: float, far: float) -> Document:
    """Four brokers in a line, and a rare Poisson publisher at the last; lifetimes in services.

    What comes down the line is paced by the services before; what is published there is not.
    """
    service_s = load / 10.0
    broker = {"service": {"uniform": [0.5 * service_s, 1.5 * service_s]}}
    document = line([broker] * 4, {"rate": 9.0}, None)
    document["publishers"]["p"]["content"] = {"event": {"of": "p"}}
    rare = {"at": "b3", "every": {"rate": 1.0}, "content": {"event": {"of": "rare"}}}
    document["publishers"]["rare"] = rare
    document["subscribers"] = {
        "own": {"at": "b3", "wants": {"of": "rare"}, "lifetime": own * service_s},
        "far": {"at": "b3", "wants": {"of": "p"}, "lifetime": far * service_s},
    }
    return document


def _stars() -> list[Case]:
    parts = ((0.3, 0.05), (0.5, 0.1), (0.75, 0.25))
    stars = [
        case(f"Poisson star of uniform services, {load:g} busy", "streams", _star(load, lifetime_s))
        for load, lifetime_s in parts
    ]
    behind = [
        case(f"rare stream behind a line, {load:g} busy", "streams", _behind(load, own, far))
        for load, own, far in ((0.3, 1.5, 6.0), (0.5, 1.5, 6.0), (0.75, 2.0, 9.0))
    ]
    return [*stars, *behind]


def _others() -> list[Case]:
    """What else the format says of brokers, links and contents."""
    lossy = line([{}] * 3, POISSON, 0.3, link={"delay": exponential(0.1), "reliability": 0.9})
    stations = line(
        [{"cpu": {"service": exponential(0.03)}, "out": {"service": 0.04}}] * 2, POISSON, [0.1, 0.2]
    )
    stored = line(
        [{"service": {**exponential(0.01), "per": "subscription"}}] * 3, POISSON, [0.05, 0.1, 0.15]
    )
    slow = line([{"service": exponential(0.03)}], POISSON, 0.2)
    slow["subscribers"]["s0"]["processing"] = exponential(0.06)
    return [
        case("losses and delays, no queue", "plain", lossy),
        case("two stations in a broker", "plain", stations),
        case("service by subscriptions stored", "plain", stored),
        case("a subscriber's own queue", "plain", slow),
        case("a tree for each topic", "plain", _TREES),
    ]


_TREES: Document = {
    "lifetime": "300ms",
    "routing": {"root": "b0", "by": "topic", "roots": {"a": "b0", "b": "b2"}},
    "brokers": {f"b{number}": {"service": exponential("40ms")} for number in range(4)},
    "links": [
        {"between": [f"b{number}", f"b{(number + 1) % 4}"], "delay": "20ms"} for number in range(4)
    ],
    "publishers": {
        "p": {
            "at": "b0",
            "every": POISSON,
            "content": [{"p": 0.5, "event": {"topic": topic}} for topic in "ab"],
        }
    },
    "subscribers": {
        f"{topic} at b{number}": {"at": f"b{number}", "wants": {"topic": topic}}
        for topic in "ab"
        for number in (1, 2, 3)
    },
}


def _unknown_to_theory() -> list[Case]:
    """What theory refuses as yet."""
    hub = {"service": exponential(0.07)}
    laws: dict[str, Document] = {
        "two servers": {"service": exponential(0.15), "servers": 2},
        "a broker that keeps five at most": {**hub, "buffer": 5},
        "by priority": {**hub, "discipline": "priority"},
        "processor sharing": {**hub, "discipline": "processor-sharing"},
    }
    found = [case(name, "refused", line([broker], POISSON, 0.15)) for name, broker in laws.items()]
    dropped = line([hub, hub], POISSON, 0.2, expired="at hop")
    daily = single(None, exponential(0.05), 0.1)
    daily["publishers"]["p"] = {
        "at": "b0",
        "rates": {"slot": "100s", "per_s": [2.0, 10.0, 18.0, 5.0]},
        "content": {"event": {"topic": "a"}},
    }
    return [
        *found,
        case("expired events dropped at each hop", "refused", dropped),
        case("rates by time of day", "refused", daily, duration_s=4_000.0),
    ]


def cases() -> list[Case]:
    """All of them."""
    return [
        *_singles(),
        *_lines(),
        *_meetings(),
        *_stars(),
        *_others(),
        *_unknown_to_theory(),
    ]
