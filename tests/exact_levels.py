"""Exact queues as their counters show them: Lindley's recursion with outages, then polls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Served:
    """When events of a queue entered and left, in seconds."""

    entered_s: Floats
    left_s: Floats

    def in_time(self, within_s: float, until_s: float) -> float:
        """The share of those that left by a moment that took at most so long."""
        seen = self.left_s <= until_s
        return float(np.mean((self.left_s - self.entered_s)[seen] <= within_s))

    def polled(self, at_s: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Both counters at some moments."""
        entered = np.searchsorted(self.entered_s, at_s, side="right")
        return entered, np.searchsorted(self.left_s, at_s, side="right")


def with_outages(
    rng: np.random.Generator,
    *,
    events: int,
    rate: float,
    service_s: float,
    up_s: float,
    down_s: float,
) -> Served:
    """One server, gamma intervals of shape 1/2, exponential services and outages.

    Time is counted without outages first: the work goes on where it stopped.
    """
    entered = np.cumsum(rng.gamma(0.5, 2.0 / rate, events))
    services = rng.exponential(service_s, events)
    turns = int(4 * entered[-1] / (up_s + down_s)) + 10
    ups, downs = rng.exponential(up_s, turns), rng.exponential(down_s, turns)
    begins = np.cumsum(ups) + np.concatenate([[0.0], np.cumsum(downs)[:-1]])
    ends = begins + downs
    knots = np.concatenate([[0.0], np.column_stack([begins, ends]).ravel()])
    worked = np.concatenate([[0.0], np.repeat(np.cumsum(ups), 2)])
    arrived = np.interp(entered, knots, worked)  # on the clock of the server that works
    left = np.empty(events)
    free = 0.0
    for index in range(events):
        free = max(arrived[index], free) + services[index]
        left[index] = free
    # The first moment at which so much was worked: before the outage, where one begins there.
    place = np.searchsorted(worked, left, side="left")
    real = knots[place] - (worked[place] - left)
    return Served(entered_s=entered, left_s=real)
