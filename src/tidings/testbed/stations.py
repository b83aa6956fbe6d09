"""What a broker's work costs, in virtual time: one server, first come first served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from tidings.model.behaviour import Connectivity
from tidings.model.laws import Law

_AT_ONCE = 1024


def draws(law: Law, generator: np.random.Generator) -> Callable[[], float]:
    """Make a function that draws from a distribution, in seconds: one independent value a call."""
    held: list[float] = []

    def draw() -> float:
        if not held:
            held.extend(np.asarray(law.sample(generator, _AT_ONCE), dtype=np.float64).tolist())
        return held.pop()

    return draw


@dataclass(slots=True, kw_only=True)
class BrokerStation:
    """A broker's queue. Departures follow from arrivals and services alone, never from timers."""

    service: Callable[[], float]
    free_s: float = 0.0  # when the work accepted so far is done

    def serve(self, arrival_s: float) -> tuple[float, float]:
        """Compute when the work on an event that arrives now begins and ends, in seconds.

        >>> station = BrokerStation(service=lambda: 2.0)
        >>> station.serve(1.0), station.serve(2.0), station.serve(9.0)
        ((1.0, 3.0), (3.0, 5.0), (9.0, 11.0))
        """
        begin_s = max(arrival_s, self.free_s)
        self.free_s = begin_s + self.service()
        return begin_s, self.free_s


_CYCLES_BEFORE = 20.0  # so long before the run periods begin, so that it starts in no special state

Period = tuple[float, float]


@dataclass(slots=True, kw_only=True)
class PeerGate:
    """A queue that is served only while its peer is connected; times in seconds from the start.

    As with a broker's station, what is handed over when follows from arrivals, services and periods
    alone, never from timers. What a period interrupts goes on in the next.
    """

    service: Callable[[], float]
    periods: Iterator[Period]  # connected, in order, without end
    seen: list[Period] = field(default_factory=list)  # those drawn so far
    free_s: float = -np.inf  # when the work accepted so far is done

    def period(self, number: int) -> Period:
        """Give the period of a number, drawn when it is first asked for."""
        while len(self.seen) <= number:
            self.seen.append(next(self.periods))
        return self.seen[number]

    def serve(self, arrival_s: float) -> float:
        """Compute when, in seconds, an event that arrives now has been handed over.

        >>> gate = PeerGate(service=lambda: 2.0, periods=iter([(0.0, 3.0), (10.0, 20.0)]))
        >>> gate.serve(2.0), gate.serve(2.5)
        (11.0, 13.0)
        """
        now_s, left_s, number = max(arrival_s, self.free_s), self.service(), 0
        while True:
            begin_s, end_s = self.period(number)
            now_s = max(now_s, begin_s)
            if now_s + left_s <= end_s:
                self.free_s = now_s + left_s
                return self.free_s
            left_s -= max(0.0, end_s - now_s)
            now_s, number = max(now_s, end_s), number + 1


def gate(connectivity: Connectivity, seeds: tuple[int, ...]) -> PeerGate:
    """Make the queue of a peer; it has been coming and going for ever when the run begins."""
    assert connectivity.on is not None  # periods from traces are refused before
    assert connectivity.off is not None
    spent = connectivity.service
    return PeerGate(
        service=(lambda: 0.0)
        if spent is None
        else draws(spent, np.random.default_rng([*seeds, 1])),
        periods=periods(connectivity.on, connectivity.off, np.random.default_rng([*seeds, 2])),
    )


def periods(on: Law, off: Law, generator: np.random.Generator) -> Iterator[Period]:
    """Yield begin and end, in seconds, of times ON that reach into the run, without end.

    The run begins in no special state.
    """
    draw_on, draw_off = draws(on, generator), draws(off, generator)
    now_s = -(on.mean_s + off.mean_s) * (_CYCLES_BEFORE + generator.random())
    while True:
        begin_s = now_s + draw_off()
        now_s = begin_s + draw_on()
        if now_s > 0.0:
            yield max(begin_s, 0.0), now_s
