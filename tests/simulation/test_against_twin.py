"""The kernel's counts must equal, to the last one, those of a simulator written to be obvious."""

from __future__ import annotations

import pytest

import naive_simulator
from twin_agreement import agree

CONTENTS = """
    content:
      - {p: 0.5, event: {topic: stock, price: 12}}
      - {p: 0.3, event: {topic: stock, price: 40}, lifetime: 80ms}
      - {p: 0.2, event: {topic: fx}}
"""
TREE = """
links:
  - {between: [hub, east], delay: {exponential: 5ms}, reliability: 0.95}
  - {between: [hub, west], delay: {uniform: [1ms, 4ms]}, back: {reliability: 0.9}}
  - {between: [west, far], delay: {exponential: 2ms}}
"""
PEERS = f"""
publishers:
  p:
    at: east
    every: {{exponential: 20ms}}
{CONTENTS}
  q:
    at: far
    every: {{uniform: [10ms, 50ms]}}
    link: {{delay: {{exponential: 3ms}}, reliability: 0.97}}
{CONTENTS}
subscribers:
  all: {{at: hub, wants: {{}}}}
  cheap: {{at: west, wants: {{topic: stock, price: {{below: 20}}}}}}
  cheap-too: {{at: west, wants: {{topic: stock, price: {{below: 20}}}}, count: 3}}
  fx: {{at: far, wants: {{topic: fx}}}}
  hasty: {{at: east, wants: {{topic: stock}}, lifetime: 25ms}}
  shaky: {{at: far, wants: {{}}, link: {{reliability: 0.8, delay: {{exponential: 10ms}}}}}}
  moody: {{at: hub, wants: {{topic: stock}}, lifetime: {{exponential: 30ms}}}}
"""
BROKERS = """
brokers:
  hub: {service: {exponential: 6ms}, cpu: {service: {exponential: 1ms}}}
  east: {service: {uniform: [0ms, 9ms]}}
  west: {}
  far: {service: {gamma: {mean: 5ms, shape: 2.5}}}
"""
SMALL_BUFFERS = """
brokers:
  hub: {service: {exponential: 12ms}, buffer: 2}
  east: {service: {exponential: 22ms}, servers: 2, buffer: 1}
  west: {service: {exponential: 1ms}}
  far: {service: {exponential: 14ms}, servers: 3, buffer: 0}
"""
BY_TOPIC = """
routing: {root: west, by: topic, roots: {stock: hub, fx: far}}
"""
MORE_LINKS = TREE + "  - {between: [east, far], delay: {exponential: 4ms}, reliability: 0.99}\n"
HEAD = "tidings: 1\nlifetime: {exponential: 60ms}\n"
SYSTEMS = {
    "queues, losses, delays": HEAD + BROKERS + TREE + PEERS,
    "small buffers": HEAD + SMALL_BUFFERS + TREE + PEERS,
    "expired at hop": HEAD + "expired: at hop\n" + BROKERS + TREE + PEERS,
    "expired in queue": HEAD + "expired: in queue\n" + SMALL_BUFFERS + TREE + PEERS,
    "a tree per topic": HEAD + BY_TOPIC + BROKERS + MORE_LINKS + PEERS,
    "every subscription costs": HEAD
    + BROKERS.replace("{uniform: [0ms, 9ms]}", "{exponential: 0.6ms, per: subscription}")
    + TREE
    + PEERS,
}


MUST_MEET = {
    "queues, losses, delays": "link",
    "small buffers": "overflow",
    "expired at hop": "expired",
    "expired in queue": "expired",
}


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("replication", [0, 1])
def test_counts_equal_those_of_the_obvious_twin(name, replication):
    lost = agree(
        SYSTEMS[name],
        naive_simulator.simulate,
        replication=replication,
        duration_s=30.0,
        least_wanted=100,
    )
    assert name not in MUST_MEET or lost[MUST_MEET[name]].min() > 0
