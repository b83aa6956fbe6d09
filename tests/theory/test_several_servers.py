"""Brokers of several servers and competing consumers keep the promise of a prediction.

Theory hands them to the simulator; closed forms say whether what is stated is kept.
"""

from __future__ import annotations

import pytest

from exact_queues import erlang_c, h2_m_c, m_d_c, m_m_c
from tidings.model.reading import loads
from tidings.prediction.predict import predict

SERVICE_S, LOAD, WITHIN = 0.01, 0.9, 0.01
AT_BROKER = "brokers: {hub: {service: LAW, servers: COUNT}}\nsubscribers: {s: {at: hub, wants: {}}}"
IN_GROUP = (
    "brokers: {hub: {}}\nsubscribers: {s: {at: hub, wants: {}, processing: LAW, consumers: COUNT}}"
)


def predicted(where, servers, law, every, lifetime_s):
    text = where.replace("LAW", law).replace("COUNT", str(servers))
    return predict(
        loads(
            f"tidings: 1\nlifetime: {lifetime_s}s\n{text}\n"
            f"publishers: {{p: {{at: hub, every: {every}, content: {{event: {{k: 1}}}}}}}}\n"
        ),
        within=WITHIN,
    ).subscribers.iloc[0]


def assert_kept(row, exact):
    assert row["by"] == "simulation"
    assert row["error"] <= WITHIN
    assert abs(row["on_time"] - exact) < 2.0 * row["error"], (row["on_time"], exact, row["error"])


def mean_wait_s(servers):
    """In M/M/c; its order of size elsewhere."""
    return SERVICE_S * erlang_c(servers, servers * LOAD) / (servers * (1.0 - LOAD))


@pytest.mark.parametrize(
    ("where", "servers"),
    [(AT_BROKER, 2), (AT_BROKER, 64), (IN_GROUP, 8)],
    ids=["2 servers", "64 servers", "8 consumers"],
)
def test_poisson_events_and_exponential_services(where, servers):
    every = f"{{exponential: {SERVICE_S / (servers * LOAD)}s}}"
    lifetime_s = SERVICE_S + 2 * mean_wait_s(servers)
    row = predicted(where, servers, f"{{exponential: {SERVICE_S}s}}", every, lifetime_s)
    assert_kept(row, m_m_c(servers, LOAD, SERVICE_S, lifetime_s))


def test_poisson_events_and_constant_services():
    servers = 8
    every = f"{{exponential: {SERVICE_S / (servers * LOAD)}s}}"
    lifetime_s = SERVICE_S + mean_wait_s(servers)
    row = predicted(AT_BROKER, servers, f"{SERVICE_S}s", every, lifetime_s)
    exact = m_d_c(servers, LOAD, lifetime_s / SERVICE_S - 1.0)
    assert 0.5 < exact < 0.95, "late and on time, both are seen"
    assert_kept(row, exact)


def test_bursty_events():
    """Hyperexponential intervals: every tenth is 30 times as long as the others."""
    servers = 32
    mean_s = SERVICE_S / (servers * LOAD)
    short_s = mean_s / (0.9 + 0.1 * 30)
    every = (
        f"{{hyperexponential: [{{p: 0.9, mean: {short_s}s}}, {{p: 0.1, mean: {30 * short_s}s}}]}}"
    )
    lifetime_s = SERVICE_S + 4 * mean_wait_s(servers)
    row = predicted(AT_BROKER, servers, f"{{exponential: {SERVICE_S}s}}", every, lifetime_s)
    exact = h2_m_c(servers, (0.9, 0.1), (short_s, 30 * short_s), SERVICE_S, lifetime_s)
    assert abs(exact - m_m_c(servers, LOAD, SERVICE_S, lifetime_s)) > 4 * WITHIN
    assert_kept(row, exact)
