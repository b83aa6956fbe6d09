"""Lines of brokers with one publisher before and one subscriber behind them."""

from __future__ import annotations

import itertools

from tidings.model.reading import loads
from tidings.model.system import System


def line(
    hops: int,
    lifetime_s: float,
    broker: str = "service: {exponential: 10ms}",
    every: str = "{rate: 60/s}",
    subscriber: str = "",
) -> System:
    """Build a line of equal brokers; by default M/M/1 queues at load .6."""
    names = [f"b{index}" for index in range(hops)]
    links = [f"{{between: [{one}, {two}]}}" for one, two in itertools.pairwise(names)]
    return loads(
        f"""
        tidings: 1
        lifetime: {lifetime_s:.9f}s
        brokers: {{{", ".join(f"{name}: {{{broker}}}" for name in names)}}}
        links: [{", ".join(links)}]
        publishers: {{p: {{at: b0, every: {every}, content: {{event: {{k: 1}}}}}}}}
        subscribers: {{s: {{at: {names[-1]}, wants: {{k: 1}}{subscriber}}}}}
        """
    )
