"""What a broker's work costs, in virtual time: one server, first come first served."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tidings.model.laws import Law

_AT_ONCE = 1024


def draws(law: Law, generator: np.random.Generator) -> Callable[[], float]:
    """A function that gives independent draws of a law, in seconds, one a call."""
    held: list[float] = []

    def draw() -> float:
        if not held:
            held.extend(np.asarray(law.sample(generator, _AT_ONCE), dtype=np.float64).tolist())
        return held.pop()

    return draw


@dataclass(slots=True, kw_only=True)
class Station:
    """A broker's queue. Departures follow from arrivals and services alone, never from timers."""

    service: Callable[[], float]
    free_s: float = 0.0  # when the work accepted so far is done

    def serve(self, arrival_s: float) -> tuple[float, float]:
        """When the work on an event that arrives now begins and ends.

        >>> station = Station(service=lambda: 2.0)
        >>> station.serve(1.0), station.serve(2.0), station.serve(9.0)
        ((1.0, 3.0), (3.0, 5.0), (9.0, 11.0))
        """
        begin_s = max(arrival_s, self.free_s)
        self.free_s = begin_s + self.service()
        return begin_s, self.free_s
