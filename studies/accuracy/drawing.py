"""Random systems on which the error of theory is measured: every kind of traffic, at every load.

A system is drawn from (seed, number) alone, so that any of them can be looked at again. Nothing is
tuned to what theory does well: topologies, distributions, loads and lifetimes are drawn first, and
the service times are then scaled so that the busiest broker has the load that was drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tidings.model.reading import from_document
from tidings.model.routes import route
from tidings.model.system import System
from tidings.theory.peers.churn import ChurnModel
from tidings.theory.queues.flows import Flows, flows

Rng = np.random.Generator
Document = dict[str, Any]

RATE_PER_S = 20.0  # of all publishers together; the unit of time is arbitrary
LOADS = (0.05, 0.95)
# How often each effect is drawn; what is left has none. Later seeds have more of what is rare.
COMMON = {
    "failing": 0.14,
    "mobile subscriber": 0.07,
    "mobile publisher": 0.07,
    "churning": 0.07,
    "failing and churning": 0.03,
    "stations": 0.03,
}
RARE = {
    "failing, detours": 0.3,
    "failing, mobile subscriber": 0.1,
    "failing, mobile publisher": 0.1,
    "own links": 0.15,
    "own queues": 0.15,
    "stations": 0.2,
}
SHIFTED = {"shifted": 0.7, "own links": 0.1, "own queues": 0.1}
BOUNDED = {"mobile subscriber, bounded": 0.6, "mobile publisher, bounded": 0.4}
MIXED = dict.fromkeys((*COMMON, *RARE, *SHIFTED, *BOUNDED), 0.05)  # all of it, only to be tested on
FIRST_RARE, FIRST_SHIFTED, FIRST_BOUNDED, FIRST_MIXED = 3, 5, 7, 8  # seeds

INTERVALS: dict[str, Callable[[float, Rng], Any]] = {
    "exponential": lambda mean, _: {"exponential": mean},
    "periodic": lambda mean, _: mean,
    "uniform": lambda mean, _: {"uniform": [0.0, 2.0 * mean]},
    "erlang": lambda mean, rng: {"erlang": {"mean": mean, "shape": int(rng.integers(2, 9))}},
    "hyperexponential": lambda mean, rng: _hyperexponential(mean, float(rng.uniform(2.0, 20.0))),
    "weibull": lambda mean, rng: {"weibull": {"mean": mean, "shape": float(rng.uniform(0.4, 0.9))}},
    "lognormal": lambda mean, rng: {
        "lognormal": {"mean": mean, "scv": float(rng.uniform(0.3, 4.0))}
    },
}
SERVICES: dict[str, Callable[[float, Rng], Any]] = {
    **INTERVALS,
    "constant": lambda mean, _: mean,
    "histogram": lambda mean, _: {
        "histogram": {"edges": [0.0, mean, 4.0 * mean], "weights": [5 / 6 - 1 / 12, 1 / 4]}
    },
}


def _hyperexponential(mean: float, scv: float) -> Any:
    """Two phases with balanced means."""
    p = 0.5 * (1.0 + float(np.sqrt((scv - 1.0) / (scv + 1.0))))
    return {
        "hyperexponential": [
            {"p": p, "mean": 0.5 * mean / p},
            {"p": 1.0 - p, "mean": 0.5 * mean / (1.0 - p)},
        ]
    }


def draw_system(seed: int, number: int) -> tuple[System, str]:
    """Draw one system and name its effect ("" where nothing fails, moves or churns)."""
    rng = np.random.default_rng([seed, number])
    effect = _draw_effect(rng, _shares_of(seed))
    brokers, links = _draw_topology(rng)
    publishers, topics = _draw_publishers(rng, brokers, effect)
    subscribers = _draw_subscribers(rng, brokers, publishers, topics, effect)
    document: Document = {
        "tidings": 1,
        "lifetime": 1.0,
        "brokers": {name: {"service": 1e-9} for name in brokers},
        "links": links,
        "publishers": publishers,
        "subscribers": subscribers,
    }
    if effect == "own links":
        _set_own_links(rng, document)
    _set_services(rng, document, effect)
    if effect == "shifted":
        _shift_times(rng, document)
    if effect == "own queues":
        _set_own_queues(rng, document)
    _set_lifetimes(rng, document)
    if "failing" in effect:
        _set_failures(rng, document, effect)
    return from_document(document), effect


def _shares_of(seed: int) -> dict[str, float]:
    if seed >= FIRST_MIXED:
        return MIXED
    if seed >= FIRST_BOUNDED:
        return BOUNDED
    if seed >= FIRST_SHIFTED:
        return SHIFTED
    return RARE if seed >= FIRST_RARE else COMMON


def _draw_effect(rng: Rng, shares_of: dict[str, float]) -> str:
    names = ["", *shares_of]
    shares = [max(1.0 - sum(shares_of.values()), 0.0), *shares_of.values()]
    return str(rng.choice(names, p=shares))


def _draw_topology(rng: Rng) -> tuple[list[str], list[Document]]:
    kind = rng.choice(["one", "line", "star", "tree"], p=[0.15, 0.3, 0.1, 0.45])
    count = 1 if kind == "one" else int(rng.integers(2, 11))
    brokers = [f"b{i}" for i in range(count)]
    parents = {
        "line": lambda i: i - 1,
        "star": lambda i: 0,
        "tree": lambda i: int(rng.integers(0, i)),
    }
    pairs = [] if kind == "one" else [(parents[str(kind)](i), i) for i in range(1, count)]
    return brokers, [_draw_link(rng, brokers[a], brokers[b]) for a, b in pairs]


def _draw_link(rng: Rng, one: str, other: str) -> Document:
    delay_s = float(10 ** rng.uniform(-3.0, -1.0))
    kind = rng.choice(["none", "constant", "exponential", "uniform"])
    delays = {
        "none": 0.0,
        "constant": delay_s,
        "exponential": {"exponential": delay_s},
        "uniform": {"uniform": [0.5 * delay_s, 1.5 * delay_s]},
    }
    lossy = rng.random() < 0.2
    reliability = float(rng.uniform(0.9, 1.0)) if lossy else 1.0
    return {"between": [one, other], "delay": delays[str(kind)], "reliability": reliability}


def _draw_publishers(
    rng: Rng, brokers: list[str], effect: str
) -> tuple[dict[str, Document], list[str]]:
    count = int(rng.integers(1, 9))
    topics = [f"t{i}" for i in range(count)]
    equal = rng.random() < 0.4
    weights = np.ones(count) if equal else rng.lognormal(0.0, 0.8, count)
    rates = RATE_PER_S * weights / weights.sum()
    alike = rng.random() < 0.5
    common = _draw_kind(rng)
    publishers: dict[str, Document] = {}
    for i in range(count):
        kind = common if alike else _draw_kind(rng)
        content = [{"p": 1.0, "event": {"topic": topics[i]}}]
        if rng.random() < 0.3 and count > 1:
            other = topics[int(rng.integers(0, count))]
            if other != topics[i]:
                content = [
                    {"p": 0.6, "event": {"topic": topics[i]}},
                    {"p": 0.4, "event": {"topic": other}},
                ]
        publishers[f"p{i}"] = {
            "at": str(rng.choice(brokers)),
            "every": INTERVALS[kind](1.0 / float(rates[i]), rng),
            "content": content,
        }
        if "mobile publisher" in effect and rng.random() < 0.7:
            publishers[f"p{i}"]["connectivity"] = _draw_connectivity(
                rng, 1.0 / float(rates[i]), effect
            )
    return publishers, topics


def _draw_kind(rng: Rng) -> str:
    if rng.random() < 0.4:
        return "exponential"
    return str(rng.choice(list(INTERVALS)))


def _draw_connectivity(rng: Rng, interval_s: float, effect: str) -> Document:
    """A peer's periods, some to hundreds of its events long, and perhaps a queue of its own."""
    bounded = ["constant", "uniform", "histogram"]
    on_s = interval_s * float(10 ** rng.uniform(0.5, 2.5))
    off_s = on_s * float(10 ** rng.uniform(-1.5, 0.3))
    kinds = ["exponential", "constant", "erlang", "weibull"]
    connectivity: Document = {
        "on": _draw_period(rng, str(rng.choice(kinds)), on_s),
        "off": _draw_period(rng, str(rng.choice(bounded if "bounded" in effect else kinds)), off_s),
    }
    if rng.random() < 0.5:
        room = on_s / (on_s + off_s)
        handover_s = interval_s * room * float(rng.uniform(0.05, 0.8))
        connectivity["service"] = {"exponential": handover_s}
    return connectivity


def _draw_period(rng: Rng, kind: str, mean_s: float) -> Any:
    return SERVICES[kind](mean_s, rng)


def _draw_subscribers(
    rng: Rng,
    brokers: list[str],
    publishers: dict[str, Document],
    topics: list[str],
    effect: str,
) -> dict[str, Document]:
    count = int(rng.integers(2, 9))
    subscribers: dict[str, Document] = {}
    for i in range(count):
        if i == 0:  # one beside a publisher
            at = publishers[str(rng.choice(list(publishers)))]["at"]
        else:
            at = str(rng.choice(brokers))
        wanted = rng.choice(topics, size=int(rng.integers(1, len(topics) + 1)), replace=False)
        wants: Document = {} if rng.random() < 0.2 else {"topic": {"one_of": sorted(wanted)}}
        subscriber: Document = {"at": at, "wants": wants}
        if "mobile subscriber" in effect and rng.random() < 0.6:
            subscriber["connectivity"] = _draw_connectivity(rng, 1.0 / RATE_PER_S, effect)
        if "churning" in effect and rng.random() < 0.6:
            stay_s = float(10 ** rng.uniform(0.0, 2.0))
            kinds = ["exponential", "constant", "erlang"]
            subscriber["stays"] = _draw_period(rng, str(rng.choice(kinds)), stay_s)
            away_s = stay_s * float(10 ** rng.uniform(-1.0, 0.5))
            subscriber["away"] = _draw_period(rng, str(rng.choice(kinds)), away_s)
        subscribers[f"s{i}"] = subscriber
    return subscribers


def _set_services(rng: Rng, document: Document, effect: str) -> None:
    """Give every broker a service, the busiest one the load that is drawn for it."""
    arrivals = np.maximum(_arrivals(document), 1e-9)
    count = arrivals.size
    spread = np.ones(count) if rng.random() < 0.5 else rng.lognormal(0.0, 0.6, count)
    means = spread * float(rng.uniform(*LOADS)) / float(np.max(arrivals * spread))
    alike = rng.random() < 0.6
    common = str(rng.choice(list(SERVICES)))
    for broker, mean_s in zip(document["brokers"].values(), means, strict=True):
        kind = common if alike else str(rng.choice(list(SERVICES)))
        broker["service"] = SERVICES[kind](float(mean_s), rng)
        if effect == "stations":
            broker["disk"] = {"service": SERVICES[kind](0.7 * float(mean_s), rng)}


def _arrivals(document: Document) -> np.ndarray[Any, np.dtype[np.float64]]:
    return _rates(from_document(document)).arrivals


def _rates(system: System) -> Flows:
    routes = route(system)
    return flows(system, routes, ChurnModel(system=system, routes=routes).open_shares)


def _set_lifetimes(rng: Rng, document: Document) -> None:
    """Draw lifetimes around what an event needs, so that shares lie between almost 0 and 1."""
    system = from_document(document)
    rates = _rates(system)
    sojourns_s = [
        sum(law.mean_s * (1.0 + 0.7 * load / (1.0 - load)) for law in laws)
        for laws, load in zip(rates.services, np.minimum(rates.loads, 0.95), strict=True)
    ]
    delays_s = [link.there.delay.mean_s for link in system.links]
    hops = min(len(sojourns_s), 3)
    typical_s = hops * float(np.mean(sojourns_s)) + (hops - 1) * float(np.mean([*delays_s, 0.0]))
    document["lifetime"] = typical_s * float(rng.lognormal(0.5, 0.7))
    for subscriber in document["subscribers"].values():
        if rng.random() < 0.3:
            subscriber["lifetime"] = typical_s * float(rng.lognormal(0.5, 0.9))
        if "connectivity" in subscriber and rng.random() < 0.7:
            off = from_document(document).subscribers
            mean_off_s = max(
                each.connectivity.off.mean_s
                for each in off
                if each.connectivity is not None and each.connectivity.off is not None
            )
            subscriber["lifetime"] = mean_off_s * float(rng.lognormal(0.0, 0.7))


def _shift_times(rng: Rng, document: Document) -> None:
    """Let intervals, services and links take a least time and something random beyond it."""

    def shifted(mean_s: float) -> Document:
        least_s = mean_s * float(rng.uniform(0.05, 0.95))
        kind = str(rng.choice(["exponential", "erlang", "hyperexponential"]))
        return {**SERVICES[kind](mean_s - least_s, rng), "shift": least_s}

    system = from_document(document)
    for publisher in system.publishers:
        if rng.random() < 0.7:
            document["publishers"][publisher.name]["every"] = shifted(1.0 / publisher.rate_per_s)
    for broker in system.brokers:
        if rng.random() < 0.5 and broker.service is not None:
            document["brokers"][broker.name]["service"] = shifted(broker.service.law.mean_s)
    for link, given in zip(system.links, document["links"], strict=True):
        if rng.random() < 0.5 and link.there.delay.mean_s > 0.0:
            given["delay"] = shifted(link.there.delay.mean_s)


def _set_own_links(rng: Rng, document: Document) -> None:
    """Give publishers and subscribers links that take time and lose some."""
    for peer in [*document["publishers"].values(), *document["subscribers"].values()]:
        if rng.random() < 0.7:
            link = _draw_link(rng, "", "")
            peer["link"] = {"delay": link["delay"], "reliability": link["reliability"]}


def _set_own_queues(rng: Rng, document: Document) -> None:
    """Let subscribers take time for each event, so that these may wait for them."""
    shares = rng.uniform(0.1, 0.9, len(document["subscribers"]))
    for subscriber, busy in zip(document["subscribers"].values(), shares, strict=True):
        if rng.random() < 0.7:
            kind = str(rng.choice(list(SERVICES)))
            subscriber["processing"] = SERVICES[kind](float(busy) / RATE_PER_S, rng)


def _set_failures(rng: Rng, document: Document, effect: str) -> None:
    """Failures often enough to be measured: every few hundred to thousand events."""
    detours = "detours" in effect
    schemes = ["bypass", "bypass-buffering"]
    if not detours:
        schemes = ["periodic", "buffering", *schemes]
    document["recovery"] = {"scheme": str(rng.choice(schemes))}
    names = list(document["brokers"])
    parts = [*document["brokers"].values(), *document["links"]]
    for part in parts:
        if rng.random() < 0.6:
            mtbf_s = float(10 ** rng.uniform(1.5, 2.7))
            part["failure"] = {
                "mtbf": mtbf_s,
                "mttr": mtbf_s * float(10 ** rng.uniform(-2.2, -0.5)),
            }
    if len(names) > 3 and "bypass" in document["recovery"]["scheme"]:
        linked = {frozenset(link["between"]) for link in document["links"]}
        tree = [list(link["between"]) for link in document["links"]]
        for _ in range(int(rng.integers(1, 6)) if detours else 1):
            one, other = rng.choice(names, size=2, replace=False)
            if frozenset((str(one), str(other))) not in linked:
                linked.add(frozenset((str(one), str(other))))
                document["routing"] = {"tree": tree}
                document["links"].append(_draw_link(rng, str(one), str(other)))
    if rng.random() < 0.5:
        document["lifetime"] = float(10 ** rng.uniform(0.0, 2.0))
