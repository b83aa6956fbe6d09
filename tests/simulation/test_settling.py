"""Queues near full load: how long they remember that they started empty, and what errors say."""

from __future__ import annotations

import math

import numpy as np
import pytest

from exact_queues import m_m_c
from tidings.model.reading import loads
from tidings.simulation.network import compile_system
from tidings.simulation.run import simulate
from tidings.simulation.settling import dispersion, find_slow_queues

PUBLISHERS = {
    "plain": "{at: hub, every: {exponential: 10ms}, content: {event: {k: 1}}}",
    "bursts": "{at: hub, publishes: {bursts: [{rate: 400/s, on: 50ms, off: 150ms}]}, "
    "content: {event: {k: 1}}}",
    "both": "{at: hub, publishes: {rate: 50/s, bursts: [{rate: 400/s, on: 50ms, off: 150ms}]}, "
    "content: {event: {k: 1}}}",
    "batches": "{at: hub, publishes: {every: {exponential: 50ms}, batch: {1: 0.5, 9: 0.5}}, "
    "content: {event: {k: 1}}}",
    "mixed": "{at: hub, every: {hyperexponential: [{p: 0.1, mean: 70ms}, {p: 0.9, mean: 4ms}]}, "
    "content: {event: {k: 1}}}",
    "clock": "{at: hub, publishes: {period: 10ms}, content: {event: {k: 1}}}",
}


def busy(load, *, servers=1, lifetime_s=1.0):
    return loads(
        f"""
        tidings: 1
        lifetime: {lifetime_s}
        brokers: {{hub: {{service: {{exponential: 10ms}}, servers: {servers}}}}}
        publishers:
          p: {{at: hub, every: {{rate: {100 * servers * load}/s}}, content: {{event: {{k: 1}}}}}}
        subscribers: {{s: {{at: hub, wants: {{k: 1}}}}}}
        """
    )


@pytest.mark.parametrize("load", [0.95, 0.99, 0.999])
def test_a_queue_with_one_server_forgets_its_start_as_is_known_exactly(load):
    [queue] = find_slow_queues(compile_system(busy(load)))
    exact_s = 0.01 / (1.0 - math.sqrt(load)) ** 2
    assert queue.relaxation_s == pytest.approx(
        exact_s, rel=2.0 * (1.0 - load)
    )  # its limit is exact


@pytest.mark.parametrize("name", PUBLISHERS)
def test_the_dispersion_of_a_publisher_is_that_of_its_counts(name):
    system = loads(
        f"""
        tidings: 1
        brokers: {{hub: {{}}}}
        publishers: {{p: {PUBLISHERS[name]}}}
        subscribers: {{s: {{at: hub, wants: {{k: 1}}}}}}
        """
    )
    counts = []
    simulate(
        system,
        warmup_s=5.0,
        duration_s=50.0,
        replications=400,
        counted=lambda each: counts.append(each.published[0]),
    )
    mean, spread = np.mean(counts), np.var(counts, ddof=1)
    error = spread * math.sqrt(2.0 / 399.0)
    assert abs(spread - dispersion(system.publishers[0]) * mean) < 4.0 * error + 1.0  # one event


@pytest.mark.parametrize(("load", "seeds"), [(0.99, 4), (0.998, 1)])
def test_shares_near_full_load_lie_within_their_errors(load, seeds):
    lifetime_s = 1.0 / (400.0 * (1.0 - load))
    system = busy(load, servers=4, lifetime_s=lifetime_s)
    true = m_m_c(4, load, 0.01, lifetime_s)
    for seed in range(1, seeds + 1):
        found = simulate(system, seed=seed).subscribers.iloc[0]
        assert abs(found["on_time"] - true) < 1.5 * found["error"]  # of four, at 95 %
        assert found["error"] < 0.3


def test_what_a_short_run_misses_is_in_its_error_and_told():
    outcome = simulate(busy(0.995, lifetime_s=2.0), warmup_s=0.0, events=20_000, replications=30)
    [row] = outcome.subscribers.itertuples()
    true = -math.expm1(-0.5 * 2.0)
    assert row.on_time - true > 5.0 * row.on_time_se  # far too good
    assert row.error > row.on_time - true
    [remark] = [each for each in outcome.remarks if each.kind == "slow to settle"]
    assert remark.where == ("broker 'hub'",)


def test_other_loads_have_no_such_error():
    outcome = simulate(busy(0.8), seed=2)
    assert not [each for each in outcome.remarks if each.kind == "slow to settle"]


def test_only_those_behind_a_slow_queue_have_larger_errors():
    system = loads(
        """
        tidings: 1
        lifetime: 1s
        brokers:
          quick: {service: {exponential: 1ms}}
          slow: {service: {exponential: 10ms}}
          behind: {}
        links: [{between: [quick, slow]}, {between: [slow, behind]}]
        publishers:
          few: {at: quick, every: {rate: 10/s}, content: {event: {k: 1}}}
          many: {at: slow, every: {rate: 99.9/s}, content: {event: {k: 2}}}
        subscribers:
          before: {at: quick, wants: {k: 1}}
          after: {at: behind, wants: {k: 2}}
        """
    )
    outcome = simulate(system, warmup_s=0.0, events=20_000)
    rows = outcome.subscribers.set_index("subscriber")
    assert rows.loc["before", "error"] < 0.01
    assert rows.loc["after", "error"] > 0.3


def test_a_queue_in_which_nothing_takes_time_has_nothing_to_forget():
    system = loads(
        """
        tidings: 1
        lifetime: 1s
        brokers: {hub: {service: 0s}}
        publishers: {p: {at: hub, every: 1s, content: {event: {k: 1}}}}
        subscribers: {s: {at: hub, wants: {k: 1}, processing: 0s}}
        """
    )
    [row] = simulate(system, warmup_s=0.0, events=100).subscribers.itertuples()
    assert row.on_time == 1.0
    assert row.error < 0.01
