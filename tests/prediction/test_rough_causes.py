"""What causes cost where theory has no answer for the system as it is."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import tidings as td
from tidings.model.behaviour import Channel
from tidings.model.causes import Cause, total_costs
from tidings.theory.error_table import ErrorTable

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
    (cause, cost, _), *_ = total_costs(outcome)
    assert cause == Cause("bursts", "uneven")
    # The cost is the closed form less what was simulated, however precise that is.
    assert outcome.on_time + cost == pytest.approx(calm_share(), abs=2e-4)
    assert cost > 0.05


@pytest.mark.slow
def test_a_starved_group_costs_what_its_subscriber_would_gain_without_it():
    group = ", processing: {exponential: 30ms}, consumers: {count: 2}"
    outcome = td.predict(system_with(group=group), seconds=5.0)
    (cause, cost, _), *_ = total_costs(outcome)
    assert cause == Cause("own queue", "all")
    rows = outcome.subscribers.set_index("subscriber")
    own = outcome.causes.set_index(["subscriber", "cause"])["cost"]
    gained = rows.loc["all", "on_time"] + own["all", "own queue"]
    assert gained == pytest.approx(calm_share(), abs=2e-4)
    assert ("some", "own queue") not in own.index
    assert cost > 0.05


@pytest.mark.slow
def test_bursts_of_several_are_told_apart():
    text = SYSTEM.format(uneven=IN_BATCHES, group="")
    both = text.replace(
        "every: {exponential: 25ms}", "publishes: {every: {exponential: 50ms}, batch: {2: 1.0}}"
    )
    outcome = td.predict(td.loads(both), seconds=5.0)
    (cause, cost, _), *others = total_costs(outcome)
    assert cause == Cause("bursts", "uneven")
    assert all(each.cost < 0.5 * cost for each in others if each.cause == Cause("bursts", "steady"))


def test_bursts_that_only_matter_together_are_told_of_all():
    clock = "publishes: {period: 1s, clock: noon}"
    sensors = ", ".join(f"s{n}: {{at: hub, {clock}, content: {{event: {{}}}}}}" for n in range(20))
    text = SYSTEM.format(uneven=AT_RANDOM, group="")
    start, end = text.index("publishers:"), text.index("subscribers:")
    system = td.loads(f"{text[:start]}publishers: {{{sensors}}}\n{text[end:]}")
    (cause, *_), *_ = total_costs(td.predict(system, seconds=2.0))
    assert cause == Cause("bursts", "all publishers")


BLOCKING = """
tidings: 1
lifetime: 200ms
brokers: {hub: {BROKER}}
publishers: {p: {at: hub, every: {rate: 20/s}, content: {event: {topic: a}}}}
subscribers:
  slow: {at: hub, wants: {} GROUP}
  other: {at: hub, wants: {}}
"""


def blocking(broker="", group=""):
    return td.loads(BLOCKING.replace("BROKER", broker).replace("GROUP", group))


def test_who_waits_for_the_full_buffer_of_another_is_told_so():
    group = ", processing: {exponential: 40ms}, consumers: {count: 1, buffer: 1, when_full: block}"
    outcome = td.predict(blocking(group=group), within=0.02)
    rows = outcome.subscribers.set_index("subscriber")
    costs = outcome.causes.drop_duplicates("subscriber").set_index("subscriber")
    assert costs.loc["other", "cause"] == "back-pressure"
    assert costs.loc["other", "place"] == "slow"
    assert costs.loc["slow", "cause"] == "own queue"
    # Without the buffer, nothing keeps the other's events: all that it misses is what it costs.
    assert costs.loc["other", "cost"] == pytest.approx(1.0 - rows.loc["other", "on_time"], abs=1e-9)
    assert costs.loc["other", "cost"] > 0.1
    assert Cause("back-pressure", "slow").words == "back-pressure of slow"


def test_a_broker_that_blocks_is_slow_rather_than_full():
    """Where events wait before one server does not matter: as many are late without a limit."""
    broker = "service: {exponential: 40ms}, buffer: 2, when_full: block"
    outcome = td.predict(blocking(broker=broker), within=0.01)
    late = math.exp(-(25.0 - 20.0) * 0.2)
    (cause, cost, _), *_ = total_costs(outcome)
    assert cause == Cause("waiting", "hub")
    assert cost == pytest.approx(late - math.exp(-25.0 * 0.2), abs=2e-3)


THREE = """
tidings: 1
lifetime: 90ms
brokers: {a: {service: {exponential: 5ms}}, b: {service: {exponential: 8ms}}, c: {service: 2ms}}
links: [{between: [a, b], delay: {exponential: 20ms}}, {between: [b, c], delay: 5ms}]
publishers: {p: {at: a, every: {exponential: 10ms}, content: {event: {}}}}
subscribers: {s: {at: c, wants: {}}}
"""


@pytest.mark.parametrize("cause", [Cause("waiting", "b"), Cause("travel", "a → b")])
def test_costs_by_theory_are_those_of_two_simulations_within_their_errors(cause):
    system = td.loads(THREE)
    (cost,) = (each for each in total_costs(td.predict(system, causes=True)) if each.cause == cause)
    if cause.kind == "waiting":
        first, busy, last = system.brokers
        brokers = (first, replace(busy, discipline="infinite-server"), last)
        without = replace(system, brokers=brokers)
    else:
        slow, other = system.links
        without = replace(system, links=(replace(slow, there=Channel()), other))
    runs = [
        td.simulate(each, seed=seed, replications=20, events=10_000).subscribers.iloc[0]
        for seed, each in ((1, without), (2, system))
    ]
    gain = runs[0]["on_time"] - runs[1]["on_time"]
    se = math.hypot(*(run["on_time_se"] for run in runs))
    assert cost.error < 0.1 * cost.cost
    assert cost.cost == pytest.approx(gain, abs=cost.error + 4.0 * se)


def test_what_simulation_sees_of_theory_limits_the_errors_of_its_costs(monkeypatch):
    """Where theory states an error of a half, a simulation beside it proves it to be right."""
    stated = np.array([0.5])
    monkeypatch.setattr(ErrorTable, "tail_errors", lambda *_: stated)
    system = td.loads(THREE)
    alone = td.predict(system, causes=True, by="theory")
    assert alone.causes["error"].min() > 0.2
    both = td.predict(system, causes=True, within=0.01, seconds=2.0)
    apart = abs(alone.on_time - both.on_time) + both.subscribers["error"].iloc[0]
    assert both.causes["error"].max() <= math.sqrt(2.0) * apart + 1e-9
