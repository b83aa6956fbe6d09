"""The fifteen brokers over one network that all of them share: where copies of an event do meet.

In a tree of brokers no two copies of an event ever come to the same queue, so it does not matter
whether next brokers are decided about one by one or together. On a shared network it does: copies
are sent at the same moment and wait for each other. Where edges are decided about one by one, a net
that does so is right. Where they hang together, a net is right in which every class of contents is
a colour of its own, with nothing left to chance; nets that know only which sets of next brokers
occur, or not even that, and operational analysis are held against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from studies.performance_methodology.case_study import Scenario, case_workload
from studies.performance_methodology.systems import (
    MESSAGE_BYTES,
    NETWORK,
    case_system,
)
from tidings.model.system_workload import workload_of
from tidings.model.workload import Workload
from tidings.operational.analysing import analyse
from tidings.petri.generating import generate_net
from tidings.petri.outcome import NetOutcome
from tidings.petri.simulating import simulate_net

Row = dict[str, Any]

BUSY = 0.6  # of the shared network
OPERATIONAL, ALONE, JOINT, BY_CONTENT = (
    "operational",
    "net, edges by themselves",
    "net, joint",
    "net, by content",
)
TRUTHS = {"independent": ALONE, "together": BY_CONTENT}  # by how edges are decided


def network_speed_bytes_per_s(scenario: Scenario) -> float:
    """How fast the network must be to be busy for that share of the time."""
    sent = analyse(case_workload(scenario, delivering=False)).connections["sent_per_s"]
    return MESSAGE_BYTES * float(sent.sum()) / BUSY


def shared_network(scenario: Scenario, *, seed: int, replications: int) -> Iterator[Row]:
    """By how edges are decided and by engine: wait for the network, latency to the subscriber."""
    speed = network_speed_bytes_per_s(scenario)
    system = case_system(scenario, decisions="together", network_bytes_per_s=speed)
    by_type = workload_of(system)
    nets = {
        ALONE: generate_net(by_type, forwarding="independent"),
        JOINT: generate_net(by_type),
        BY_CONTENT: generate_net(workload_of(system, by="content")),
    }
    found = {OPERATIONAL: _operational(by_type)}
    for engine, net in nets.items():
        solved = simulate_net(net, seed=seed, replications=replications, quantiles=False)
        found[engine] = _simulated(solved, MESSAGE_BYTES / speed)
    shown = {"independent": (OPERATIONAL, ALONE), "together": tuple(found)}
    for decisions, engines in shown.items():
        for engine in engines:
            yield {
                "scenario": scenario.name,
                "decisions": decisions,
                "engine": engine,
                **found[engine],
            }


def _operational(load: Workload) -> Row:
    found = analyse(load)
    here = found.flows[found.flows["centre"] == NETWORK]
    waits_s = here["response_mean_s"] - here["service_mean_s"]
    rows = found.deliveries[found.deliveries["broker"] == "delivery"]
    return {
        "wait_s": float(np.average(waits_s, weights=here["rate_per_s"])),
        "wait_se_s": 0.0,
        "latency_s": float(np.average(rows["latency_mean_s"], weights=rows["arrivals_per_s"])),
        "latency_se_s": 0.0,
    }


def _simulated(found: NetOutcome, service_s: float) -> Row:
    """The mean wait for the network, and the mean age of what leaves the last place."""
    network, last = found.place(f"network {NETWORK}"), found.place("delivery")
    return {
        "wait_s": float(network["residence_mean_s"]) - service_s,
        "wait_se_s": float(network["residence_mean_se_s"]),
        "latency_s": float(last["age_mean_s"]),
        "latency_se_s": float(last["age_mean_se_s"]),
    }
