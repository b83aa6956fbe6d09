"""Another simulator, written by others for queues alone, plays the same models: Ciw.

Customers of twelve independent runs of it give shares with standard errors.
"""

from __future__ import annotations

import ciw
import numpy as np
import pytest

from tidings.model.reading import loads
from tidings.simulation.run import simulate

LIFETIME_S, LENGTH_S, WARMUP_S, RUNS = 0.03, 90.0, 10.0, 12
pytestmark = pytest.mark.statistical


def of_ciw(arrivals, services, *, servers=1, **more):
    """On-time share of each class of customers, and its standard error; the turned away are not."""
    network = ciw.create_network(
        arrival_distributions={kind: [law] for kind, law in arrivals.items()},
        service_distributions={kind: [services] for kind in arrivals},
        number_of_servers=[servers],
        **more,
    )
    kind_of = {"node_class": ciw.PSNode} if servers == float("inf") else {}
    shares = {kind: [] for kind in arrivals}
    for seed in range(RUNS):
        ciw.seed(seed)
        simulated = ciw.Simulation(network, **kind_of)
        simulated.simulate_until_max_time(LENGTH_S)
        records = [
            each for each in simulated.get_all_records()
            if WARMUP_S < each.arrival_date < LENGTH_S - 5.0
        ]  # fmt: skip
        for kind, found in shares.items():
            mine = [each for each in records if each.customer_class == kind]
            found.append(np.mean([_is_on_time(each) for each in mine]))
    return {
        kind: (np.mean(found), np.std(found, ddof=1) / np.sqrt(RUNS))
        for kind, found in shares.items()
    }


def _is_on_time(record):
    if record.record_type == "rejection":
        return False
    return record.exit_date - record.arrival_date <= LIFETIME_S


def of_tidings(broker, every):
    publishers = "".join(
        f"  p{kind}: {{at: hub, every: {law}, content: {{event: {{k: {kind}}}}}}}\n"
        for kind, law in every.items()
    )
    subscribers = "".join(f"  s{kind}: {{at: hub, wants: {{k: {kind}}}}}\n" for kind in every)
    system = loads(
        f"tidings: 1\nlifetime: {LIFETIME_S}s\nevent_type: k\nbrokers: {{hub: {{{broker}}}}}\n"
        f"publishers:\n{publishers}subscribers:\n{subscribers}"
    )
    rows = simulate(system, seed=3, replications=20, events=200_000).subscribers
    return dict(
        zip(every, zip(rows["on_time"], rows["on_time_se"], strict=True), strict=True)
    )  # fmt: skip


def assert_same(ours, theirs):
    for kind, (share, error) in ours.items():
        other, of_other = theirs[kind]
        together = np.hypot(error, of_other)
        assert together < 0.01  # sharp enough to tell
        assert abs(share - other) < 4.0 * together, (kind, share, other, together)


@pytest.mark.nightly  # test_consumers and test_against_theory ask closed forms and an obvious loop
@pytest.mark.parametrize("servers", [1, 4])
def test_bursty_arrivals_and_uniform_services_at_several_servers(servers):
    """GI/G/c: gamma arrivals with a squared coefficient of variation of two, 0.8 busy."""
    mean_s = 0.0125 / servers
    arrivals = {"a": ciw.dists.Gamma(0.5, 2.0 * mean_s)}
    theirs = of_ciw(arrivals, ciw.dists.Uniform(0.005, 0.015), servers=servers)
    ours = of_tidings(
        f"service: {{uniform: [5ms, 15ms]}}, servers: {servers}",
        {"a": f"{{gamma: {{mean: {mean_s}s, scv: 2}}}}"},
    )
    assert_same(ours, theirs)


@pytest.mark.nightly  # test_disciplines asks the same of closed forms
def test_two_priorities():
    arrivals = {"a": ciw.dists.Exponential(40.0), "b": ciw.dists.Exponential(40.0)}
    theirs = of_ciw(
        arrivals, ciw.dists.Exponential(100.0), priority_classes={"a": 0, "b": 1}
    )  # fmt: skip
    ours = of_tidings(
        "service: {exponential: 10ms}, discipline: priority, priorities: {a: 1}",
        {"a": "{rate: 40/s}", "b": "{rate: 40/s}"},
    )
    assert_same(ours, theirs)


def test_a_bounded_queue_turns_events_away():
    arrivals = {"a": ciw.dists.Exponential(90.0)}
    theirs = of_ciw(arrivals, ciw.dists.Uniform(0.005, 0.015), queue_capacities=[3])
    ours = of_tidings("service: {uniform: [5ms, 15ms]}, buffer: 3", {"a": "{rate: 90/s}"})
    assert_same(ours, theirs)


@pytest.mark.nightly  # test_disciplines asks the same of closed forms
def test_processor_sharing():
    arrivals = {"a": ciw.dists.Exponential(70.0)}
    theirs = of_ciw(
        arrivals, ciw.dists.Uniform(0.005, 0.015), servers=float("inf"), ps_thresholds=[1]
    )
    ours = of_tidings(
        "service: {uniform: [5ms, 15ms]}, discipline: processor-sharing", {"a": "{rate: 70/s}"}
    )
    assert_same(ours, theirs)
