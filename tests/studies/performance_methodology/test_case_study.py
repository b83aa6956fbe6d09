from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize

from studies.performance_methodology.case_study import (
    BROKERS,
    LEAVES,
    SCENARIOS,
    SERVICE_ALONE_S,
    SERVICE_S,
    case_workload,
    leaves_below,
)
from studies.performance_methodology.systems import DECISIONS, case_system
from tidings.model.laws import Exponential
from tidings.model.system_workload import workload_of
from tidings.operational.analysing import analyse


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: each.name)
def test_the_routing_meets_table_1(scenario):
    assert all(0.0 <= scenario.down(broker) <= 1.0 for broker in BROKERS if broker > 1)
    found = analyse(case_workload(scenario, delivering=False))
    assert found.rates_per_s.sum(axis=0) == pytest.approx(scenario.throughput_per_s, rel=1e-12)
    # Every event passes the root, and its own leaf's parents once.
    assert found.visits[:, 0] == pytest.approx(np.ones(len(LEAVES)), rel=1e-12)


@pytest.mark.parametrize(("stage", "fitted_s"), [(True, SERVICE_S), (False, SERVICE_ALONE_S)])
def test_the_service_times_are_those_that_fit_table_2_best(stage, fitted_s):
    def off(service_s):
        found = []
        for scenario in SCENARIOS:
            service = Exponential(mean_s=float(service_s))
            rows = analyse(case_workload(scenario, service=service, delivering=stage)).deliveries
            end = "delivery" if stage else f"b{scenario.subscriber}"
            latency = rows[rows["broker"] == end]["latency_mean_s"].to_numpy()
            found.append(latency / np.array(scenario.latency_s) - 1.0)
        return float(np.sqrt(np.mean(np.square(found))))

    best = optimize.minimize_scalar(off, bounds=(0.003, 0.005), method="bounded")
    assert best.x == pytest.approx(fitted_s, abs=5e-6)
    assert best.fun == pytest.approx(0.0179 if stage else 0.1528, abs=1e-4)


@pytest.mark.parametrize("decisions", DECISIONS)
def test_contents_and_filters_make_the_same_routing(decisions):
    scenario = SCENARIOS[1]
    by_content = analyse(workload_of(case_system(scenario, decisions=decisions)))
    by_hand = analyse(case_workload(scenario))
    assert by_content.rates_per_s == pytest.approx(by_hand.rates_per_s, rel=1e-9)
    own = by_content.deliveries.set_index(["publisher", "broker"])["latency_mean_s"]
    hand = by_hand.deliveries.set_index(["publisher", "broker"])["latency_mean_s"]
    assert own.loc["p1", "delivery"] == pytest.approx(hand.loc["p1", "delivery"], rel=1e-9)


def test_edges_decided_together_go_down_the_likelier_ones_first():
    load = workload_of(case_system(SCENARIOS[0], decisions="together"))
    root = [joint for joint in load.flows[0].joint if load.nodes[joint.node].name == "b4"]
    assert root  # at a broker with two ways on, sets are known
    for joint in load.flows[7].joint:
        sets = [set(connections) for connections, _ in joint.sets]
        ordered = sorted(sets, key=len)
        assert all(one <= two for one, two in itertools.pairwise(ordered))


def test_leaves_below_are_those_of_the_subtree():
    assert leaves_below(1) == list(LEAVES)
    assert leaves_below(3) == [12, 13, 14, 15]
