"""Mobile peers combined with losses, filters, lifetimes, buffers and failures: both engines."""

from __future__ import annotations

import pytest

from tidings.model.reading import loads
from tidings.prediction.predicting import predict
from tidings.simulation.run import simulate

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
# What independence of stages, two moments or Poisson streams may cost; nothing: it is exact.
CASES = {
    "always there": ({}, {"slow": 0.016}),
    "a mobile publisher": (
        {"CONNECTIVITY": MOBILE},
        {"plain": 0.006, "away": 0.006, "slow": 0.016},
    ),
    "and a broker that fails": (
        {"CONNECTIVITY": MOBILE, "FAILURE": FAILING, "RECOVERY": "recovery: {scheme: periodic}"},
        {"plain": 0.008, "away": 0.012, "slow": 0.016},
    ),
}


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("name", CASES)
def test_predicted_and_simulated_shares_agree(name):
    changes, allowed = CASES[name]
    text = TEXT
    for word in ("CONNECTIVITY", "FAILURE", "RECOVERY"):
        text = text.replace(word, changes.get(word, ""))
    system = loads(text)
    predicted = predict(system, delays=False).subscribers.set_index("subscriber")
    outcome = simulate(system, seed=3, replications=40, duration_s=15_000.0, warmup_s=500.0)
    simulated = outcome.subscribers.set_index("subscriber")
    for who, found in simulated.iterrows():
        noise = found["on_time_se"]
        assert noise < 0.004
        off = abs(predicted.loc[who, "on_time"] - found["on_time"])
        assert off < 4.5 * noise + allowed.get(who, 0.0), who
        for share in ("delivered", "lost_overflow", "lost_link"):
            assert predicted.loc[who, share] == pytest.approx(found[share], abs=0.003), who
