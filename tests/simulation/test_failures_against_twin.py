"""With failures, too, the kernel's counts equal those of a simulator written to be obvious."""

from __future__ import annotations

import pytest

import naive_failures
from twin_agreement import agree

SYSTEM = """
tidings: 1
lifetime: {exponential: 600ms}
recovery: {RECOVERY}
routing: {root: west, by: topic, roots: {stock: hub, fx: far}}
failure_groups:
  site: {members: [west, hub--east], failure: {mtbf: 9s, mttr: 1s}}
brokers:
  hub:
    service: {exponential: 6ms}
    cpu: {service: {exponential: 5ms}}
    failure: {mtbf: 3s, mttr: 400ms}
  east:
    service: {uniform: [0ms, 9ms]}
    failure: {up: {weibull: {mean: 3s, shape: 0.6}}, down: 300ms}
  west: {failure: {mtbf: 4s, mttr: 500ms}}
  far: {service: {gamma: {mean: 5ms, shape: 2.5}}SERVERS}
links:
  - between: [hub, east]
    delay: {exponential: 50ms}
    reliability: 0.95
    failure: {mtbf: 2s, mttr: 300ms}
  - {between: [hub, west], delay: {uniform: [1ms, 4ms]}, back: {reliability: 0.9}}
  - {between: [west, far], delay: {exponential: 2ms}, failure: {mtbf: 2s, mttr: 1s}}
  - {between: [east, far], delay: {exponential: 4ms}, reliability: 0.99}
publishers:
  p:
    at: east
    every: {exponential: 20ms}
    content: [{p: 0.7, event: {topic: stock}}, {p: 0.3, event: {topic: fx}, lifetime: 80ms}]
  q:
    at: far
    every: {uniform: [10ms, 50ms]}
    link: {delay: {exponential: 3ms}, reliability: 0.97}
    content: [{p: 0.5, event: {topic: stock}}, {p: 0.5, event: {topic: fx}}]
subscribers:
  all: {at: hub, wants: {}}
  stocks: {at: west, wants: {topic: stock}}
  fx: {at: far, wants: {topic: fx}}
  shaky: {at: far, wants: {}, link: {reliability: 0.8, delay: {exponential: 10ms}}}
"""
RECOVERIES = {
    "at once": "scheme: periodic",
    "refreshed": "scheme: periodic, refresh: 700ms",
    "timed out": "scheme: periodic, refresh: 700ms, timeout: 1s",
    "kept": "scheme: buffering",
}


@pytest.mark.parametrize("name", RECOVERIES)
@pytest.mark.parametrize("replication", [0, 1])
def test_counts_equal_those_of_the_obvious_twin(name, replication):
    text = SYSTEM.replace("RECOVERY", RECOVERIES[name])
    text = text.replace("SERVERS", "" if name == "kept" else ", servers: 2")
    lost = agree(
        text, naive_failures.simulate, replication=replication, duration_s=40.0, least_wanted=500
    )
    causes = ("expired_in_buffer",) if name == "kept" else ("path_down", "link")
    causes += ("not_restored",) if "refresh" in RECOVERIES[name] else ()
    assert all(lost[cause].sum() > 0 for cause in ("broker_down", *causes))
