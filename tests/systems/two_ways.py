"""Two brokers and traffic both ways, small enough to be recorded in no time."""

from __future__ import annotations

SYSTEM = """
tidings: 1
lifetime: 500ms
brokers:
  hub: {service: {exponential: 5ms}}
  edge: {service: {exponential: 5ms}}
links:
  - {between: [hub, edge], delay: {exponential: 20ms}, reliability: 0.99}
publishers:
  ticker: {at: hub, every: {exponential: 20ms}, content: {event: {topic: stock}}}
  mast: {at: edge, every: {exponential: 40ms}, content: {event: {topic: wind}}}
subscribers:
  trader: {at: edge, wants: {topic: stock}, target: 0.9}
  sailor: {at: hub, wants: {topic: wind}, target: 0.9}
"""
