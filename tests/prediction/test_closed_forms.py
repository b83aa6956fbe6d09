"""Queues with a closed form: the prediction keeps its stated error, the simulator its own."""

from __future__ import annotations

import pytest

from exact_queues import m_d_1_k, m_d_c, m_m_1_shared, m_m_c, urgent_of_two
from tidings.model.reading import loads
from tidings.prediction.predict import predict
from tidings.simulation.run import simulate

SERVICE_S, LIFETIME_S = 0.01, 0.03
EXPONENTIAL = f"service: {{exponential: {SERVICE_S}s}}"
# name: the broker, events a second by kind, the share of the first kind on time
QUEUES = {
    "M/M/c": (f"{EXPONENTIAL}, servers: 4", {"a": 340}, m_m_c(4, 0.85, SERVICE_S, LIFETIME_S)),
    "M/D/c": (
        f"service: {SERVICE_S}s, servers: 2",
        {"a": 180},
        m_d_c(2, 0.9, LIFETIME_S / SERVICE_S - 1.0),
    ),
    "M/G/1/K": (f"service: {SERVICE_S}s, buffer: 2", {"a": 90}, m_d_1_k(0.9, 3)),
    "two priorities": (
        f"{EXPONENTIAL}, discipline: priority, priorities: {{a: 1}}",
        {"a": 40, "b": 35},
        urgent_of_two((40, 35), SERVICE_S, LIFETIME_S),
    ),
    "processor sharing": (
        f"{EXPONENTIAL}, discipline: processor-sharing",
        {"a": 70},
        m_m_1_shared(0.7, SERVICE_S, LIFETIME_S),
    ),
}


def system_of(broker, rates):
    publishers = "".join(
        f"  p{kind}: {{at: hub, every: {{rate: {rate}/s}}, content: {{event: {{k: {kind}}}}}}}\n"
        for kind, rate in rates.items()
    )
    subscribers = "".join(f"  s{kind}: {{at: hub, wants: {{k: {kind}}}}}\n" for kind in rates)
    return loads(
        f"tidings: 1\nlifetime: {LIFETIME_S}s\nevent_type: k\nbrokers: {{hub: {{{broker}}}}}\n"
        f"publishers:\n{publishers}subscribers:\n{subscribers}"
    )


@pytest.mark.statistical
@pytest.mark.parametrize("name", QUEUES)
def test_a_prediction_keeps_its_stated_error(name):
    broker, rates, exact = QUEUES[name]
    row = predict(system_of(broker, rates)).subscribers.iloc[0]
    assert 0.4 < exact < 0.97  # late or lost and on time, both are seen
    assert row["error"] <= 0.005
    assert abs(row["on_time"] - exact) < 1.5 * row["error"]  # 95 % of errors are below 1 of it


@pytest.mark.statistical
@pytest.mark.parametrize("name", QUEUES)
def test_the_simulator_agrees_in_standard_errors(name):
    broker, rates, exact = QUEUES[name]
    found = simulate(system_of(broker, rates), seed=5, replications=20, events=150_000)
    row = found.subscribers.iloc[0]
    assert row["on_time_se"] < 0.002
    assert abs(row["on_time"] - exact) < 4.0 * row["on_time_se"]
