"""What causes cost where theory has no answer for the system as it is."""

from __future__ import annotations

import math

import pytest

import tidings as td
from tidings.model.causes import Cause, total_costs

SYSTEM = """
tidings: 1
lifetime: 100ms
brokers: {{hub: {{service: {{exponential: 8ms}}}}}}
publishers:
  steady: {{at: hub, every: {{exponential: 25ms}}, content: {{event: {{topic: a}}}}}}
  uneven: {{at: hub, {uneven}, content: {{event: {{topic: b}}}}}}
subscribers:
  all: {{at: hub, wants: {{}}{group}}}
  some: {{at: hub, wants: {{topic: a}}}}
"""
AT_RANDOM = "every: {exponential: 50ms}"
IN_BATCHES = "publishes: {every: {exponential: 400ms}, batch: {8: 1.0}}"


def system_with(uneven=AT_RANDOM, group=""):
    return td.loads(SYSTEM.format(uneven=uneven, group=group))


def calm_share(*, lifetime_s=0.1):
    """P[T ≤ t] = 1 − exp(−(μ − λ)t) of M/M/1: what is on time with the same rates at random."""
    return 1.0 - math.exp(-(125.0 - 60.0) * lifetime_s)


@pytest.mark.slow
def test_bursts_cost_what_the_same_events_at_random_would_gain():
    outcome = td.predict(system_with(IN_BATCHES), seconds=5.0)
    (cause, cost), *_ = total_costs(outcome)
    assert cause == Cause("bursts", "uneven")
    # The cost is the closed form less what was simulated, however precise that is.
    assert outcome.on_time + cost == pytest.approx(calm_share(), abs=2e-4)
    assert cost > 0.05


@pytest.mark.slow
def test_a_starved_group_costs_what_its_subscriber_would_gain_without_it():
    group = ", processing: {exponential: 30ms}, consumers: {count: 2}"
    outcome = td.predict(system_with(group=group), seconds=5.0)
    (cause, cost), *_ = total_costs(outcome)
    assert cause == Cause("own queue", "all")
    rows = outcome.subscribers.set_index("subscriber")
    own = outcome.causes.set_index(["subscriber", "cause"])["cost"]
    gained = rows.loc["all", "on_time"] + own["all", "own queue"]
    assert gained == pytest.approx(calm_share(), abs=2e-4)
    assert ("some", "own queue") not in own.index
    assert cost > 0.05


@pytest.mark.slow
def test_bursts_of_several_are_put_down_to_none_of_them():
    text = SYSTEM.format(uneven=IN_BATCHES, group="")
    both = text.replace(
        "every: {exponential: 25ms}", "publishes: {every: {exponential: 200ms}, batch: {8: 1.0}}"
    )
    outcome = td.predict(td.loads(both), seconds=5.0)
    assert not (outcome.causes["cause"] == "bursts").any()
