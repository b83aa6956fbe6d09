"""The fifteen brokers as a system of contents and filters, for the event simulator.

A workload says with which probability an event goes on over an edge; a system says which contents
who wants. The same routing comes about when every event carries what decides about each edge, and
every broker has a subscriber who wants what should come there: forwarding is then a matter of
filters, as in any other system. Decisions are *independent* (an attribute for each edge) or hang
*together* (one number for all: what goes down an unlikely edge goes down all likelier ones).
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from studies.performance_methodology.case_study import (
    BROKERS,
    LEAVES,
    ROOT,
    SERVICE_S,
    Scenario,
    way_between,
    way_up,
)
from tidings.model.laws import Exponential, Law, law_document
from tidings.model.reading import from_document
from tidings.model.system import System

DECISIONS = ("independent", "together")
NETWORK, MESSAGE_BYTES = "lan", 1000


def case_system(
    scenario: Scenario,
    *,
    decisions: str = DECISIONS[0],
    service: Law | None = None,
    every: Law | None = None,
    network_bytes_per_s: float | None = None,
    delivering: bool = True,
) -> System:
    """The scenario as a system; the measured subscriber ``s`` is behind a broker of its own.

    With a speed, brokers send to each other over one half-duplex network that all of them share.
    Without ``delivering`` ``s`` is at its leaf, and the fifteen brokers are all there are.
    """
    served = law_document(service or Exponential(mean_s=SERVICE_S))
    interval = law_document(every or Exponential(mean_s=1.0 / scenario.rate_per_s))
    leaf = _broker(scenario.subscriber)
    brokers = list(map(_broker, BROKERS))
    ends = [[_broker(broker // 2), _broker(broker)] for broker in BROKERS if broker != ROOT]
    shared = {} if network_bytes_per_s is None else {"network": NETWORK}
    networks = {NETWORK: {"bandwidth": network_bytes_per_s, "duplex": "half"}} if shared else {}
    links: list[dict[str, Any]] = [{"between": each, **shared} for each in ends]
    last = leaf
    if delivering:
        last = "delivery"
        brokers.append(last)
        links.append({"between": [leaf, last]})
    return from_document(
        {
            "tidings": 1,
            **({"networks": networks, "size": MESSAGE_BYTES} if shared else {}),
            "brokers": {name: {"service": served} for name in brokers},
            "links": links,
            "publishers": {
                _publisher(home): {
                    "at": _broker(home),
                    "every": interval,
                    "content": _content(scenario, home, decisions),
                }
                for home in LEAVES
            },
            "subscribers": {
                **{
                    f"s{broker}": {
                        "at": _broker(broker),
                        "wants": _wants(scenario, broker, decisions),
                    }
                    for broker in BROKERS
                },
                "s": {"at": last, "wants": _wants(scenario, scenario.subscriber, decisions)},
            },
        }
    )


def _broker(number: int) -> str:
    return f"b{number}"


def _publisher(home: int) -> str:
    return f"p{home - LEAVES[0] + 1}"


def _edges_down(home: int, broker: int) -> list[int]:
    """The edges that lead down on the way to a broker, by the broker they lead to."""
    return [each for each in way_between(home, broker) if each not in way_up(home)]


def _content(scenario: Scenario, home: int, decisions: str) -> Any:
    if decisions == "together":
        levels = sorted({_reached(scenario, home, broker) for broker in BROKERS} | {0.0})
        return [
            {"p": high - low, "event": {"from": _publisher(home), "level": high}}
            for low, high in itertools.pairwise(levels)
        ]
    edges = [each for each in BROKERS if each not in way_up(home)]
    return {
        "independent": {
            "from": {_publisher(home): 1.0},
            **{f"edge {each}": _coin(scenario.down(each)) for each in edges},
        }
    }


def _coin(share: float) -> list[dict[str, Any]]:
    sides = ((share, True), (1.0 - share, False))
    return [{"p": p, "value": value} for p, value in sides if p > 0.0]


def _reached(scenario: Scenario, home: int, broker: int) -> float:
    """The probability that an event comes to a broker."""
    return math.prod(scenario.down(each) for each in _edges_down(home, broker))


def _wants(scenario: Scenario, broker: int, decisions: str) -> list[dict[str, Any]]:
    """What should come to a broker, publisher by publisher."""
    found = []
    for home in LEAVES:
        wanted: dict[str, Any] = {"from": _publisher(home)}
        if decisions == "together":
            wanted["level"] = {"at_most": _reached(scenario, home, broker)}
        else:
            wanted |= {f"edge {each}": True for each in _edges_down(home, broker)}
        found.append(wanted)
    return found
