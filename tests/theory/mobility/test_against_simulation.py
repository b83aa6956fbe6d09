"""Mobile peers combined with losses, filters, lifetimes, buffers and failures: both engines."""

from __future__ import annotations

import pytest

from tidings.model.reading import loads
from tidings.model.standard_errors import share_se
from tidings.simulation.run import simulate
from tidings.theory.predicting import predict

TEXT = """
tidings: 1
lifetime: 4s
RECOVERY
brokers:
  hub: {service: {exponential: 20ms}}
  east: {service: {exponential: 20ms}FAILURE}
links: [{between: [hub, east], delay: {exponential: 100ms}, reliability: 0.95}]
publishers:
  one:
    at: hub
    every: {exponential: 1s}
    content: [{p: 0.6, event: {topic: a}}, {p: 0.4, event: {topic: c}}]
    CONNECTIVITY
  two: {at: hub, every: {exponential: 500ms}, content: {event: {topic: b}}}
subscribers:
  plain: {at: east, wants: {topic: a}}
  away:
    at: east
    wants: [{topic: a}, {topic: b}]
    connectivity: {on: {exponential: 6s}, off: {exponential: 3s}, service: {exponential: 150ms}}
    link: {reliability: 0.9, delay: 50ms}
  slow:
    at: hub
    wants: {topic: b}
    connectivity: {on: {gamma: {mean: 4s, shape: 2}}, off: {exponential: 2s}, service: 100ms}
    processing: {exponential: 200ms}
  small:
    at: hub
    wants: {topic: b}
    connectivity:
      {on: {exponential: 2s}, off: {exponential: 1s}, service: {exponential: 250ms}, buffer: 3}
"""
MOBILE = (
    "connectivity: {on: {exponential: 5s}, off: {exponential: 4s}, service: {exponential: 200ms}}"
)
FAILING = ", failure: {mtbf: 300s, mttr: 15s}"
# What docs/mobile-peers.md states that predictions may be off by; what is not named is exact.
STREAMS = 0.01  # behind a publisher that comes and goes
OWN_QUEUE = 0.02  # a queue of its own behind a centre
CRASHES = 0.01  # on top, with brokers that fail
CASES = {
    "always there": ({}, {"slow": OWN_QUEUE}),
    "a mobile publisher": (
        {"CONNECTIVITY": MOBILE},
        {"plain": STREAMS, "away": STREAMS, "slow": OWN_QUEUE},
    ),
    "and a broker that fails": (
        {"CONNECTIVITY": MOBILE, "FAILURE": FAILING, "RECOVERY": "recovery: {scheme: periodic}"},
        {"plain": STREAMS + CRASHES, "away": STREAMS + CRASHES, "slow": OWN_QUEUE},
    ),
}


def system_with(changes):
    text = TEXT
    for word in ("CONNECTIVITY", "FAILURE", "RECOVERY"):
        text = text.replace(word, changes.get(word, ""))
    return loads(text)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", CASES)
def test_predicted_and_simulated_shares_agree(name):
    changes, stated = CASES[name]
    system = system_with(changes)
    predicted, ignoring = (
        predict(each, delays=False).subscribers.set_index("subscriber")
        for each in (system, system_with({}))
    )
    outcome = simulate(system, seed=3, replications=40, duration_s=15_000.0, warmup_s=500.0)
    simulated = outcome.subscribers.set_index("subscriber")
    for who, found in simulated.iterrows():
        noise = found["on_time_se"]
        assert noise < 0.004
        allowed = 4.5 * noise + stated.get(who, 0.0)
        assert abs(predicted.loc[who, "on_time"] - found["on_time"]) < allowed, who
        if changes and who == "plain":  # sharp enough to notice what was added
            assert abs(ignoring.loc[who, "on_time"] - found["on_time"]) > 3 * allowed
        for share in ("delivered", "lost_overflow", "lost_link"):
            hits = found[share] * found["events"]
            own = float(share_se(hits, found["events"]))
            # Losses in a row make counts vary more than single ones do; no more than lateness does.
            assert abs(predicted.loc[who, share] - found[share]) < 4.5 * max(own, noise), who
