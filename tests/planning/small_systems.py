"""Small systems for questions of planning."""

from __future__ import annotations

from tidings.model import reading
from tidings.model.system import System

INVERTED = 2e-6  # of a share: what the inversion of smooth transforms leaves

TWO = """
tidings: 1
lifetime: 1s
recovery: {scheme: periodic}
brokers:
  hub: {service: {exponential: 100ms}}
  east: {service: {exponential: 50ms}, failure: {mtbf: 900s, mttr: 100s}}
links:
  - {between: [hub, east], delay: {exponential: 200ms}, reliability: 0.9}
publishers:
  p: {at: hub, every: {exponential: 200ms}, content: {event: {topic: a}}}
  q: {at: east, every: {exponential: 1s}, lifetime: 2s, content: {event: {topic: b}}}
subscribers:
  near: {at: hub, wants: {topic: a}, group: desk}
  far: {at: east, wants: {topic: a}, lifetime: 3s}
  moving:
    {at: east, wants: {topic: b}, connectivity: {on: {exponential: 9s}, off: {exponential: 1s}}}
  both: {at: hub, wants: {}, count: 2}
"""
QUEUE = """
tidings: 1
lifetime: 1s
brokers: {hub: {service: {exponential: 100ms}}}
publishers: {p: {at: hub, every: {exponential: 200ms}, content: {event: {topic: a}}}}
subscribers: {s: {at: hub, wants: {topic: a}}}
"""
CROWD = """
tidings: 1
lifetime: 300ms
brokers: {hub: {}, edge: {service: {exponential: 100ms}}}
links: [{between: [hub, edge]}]
publishers:
  p: {at: hub, every: {exponential: 300ms}, content: {event: {topic: a}}}
  q: {at: hub, every: {exponential: 300ms}, content: {event: {topic: b}}}
subscribers:
  sa: {at: edge, wants: {topic: a}}
  sb: {at: edge, wants: {topic: b}}
"""


def two_brokers() -> System:
    """Two brokers, one of which fails, with a lossy link between them."""
    return reading.loads(TWO)


def one_queue() -> System:
    """One M/M/1 queue, half full; on time: 1 − exp(−(μ − λ) τ)."""
    return reading.loads(QUEUE)
