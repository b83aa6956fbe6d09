"""What the streams of a network have to do with each other, and in which order their events come.

Each is worked out from stations under supposed waits, for all brokers or arcs at once:
``echoes`` between neighbours and of copies, skewness (``departures``) and order (``direction``).
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tidings.theory.direction import Order
from tidings.theory.echoes import Beyond, HeldBack, both_ways, echo
from tidings.theory.splitting import Splits
from tidings.theory.stations import Station, Third, busiest
from tidings.theory.time_grid import TimeGrid

Floats = NDArray[np.float64]

_FAINT = 1e-4  # an echo that is not listened to


@dataclass(frozen=True, kw_only=True)
class Dependence:
    """How streams are wired, and how long an event takes to the next broker and back."""

    split: Splits
    arriving: sparse.csr_array  # [broker, source]: shares
    round_trips_s: Floats  # [arc]
    grid: TimeGrid

    @cached_property
    def copies(self) -> sparse.csr_array:
        """[arc, other arc]: how strongly copies over the other arc are heard over the arc."""
        strength = self.split.fed_back().tocoo()
        heard = strength.data >= _FAINT
        row, column = strength.coords
        return sparse.csr_array(
            (strength.data[heard], (row[heard], column[heard])), shape=strength.shape
        )

    @cached_property
    def strengths(self) -> Floats:
        """[arc]: 2qκ of the echo that the broker it leaves hears from the one it goes to."""
        shares = self.split.arc_shares
        found: Floats = 2.0 * shares * shares[np.arange(shares.size) ^ 1]
        return found

    def _held_back(self, arc: int, stations: list[list[Station]]) -> HeldBack | None:
        """What an event more over an arc holds back; of several stations the busiest counts."""
        there = int(self.split.into[self.split.publishers + arc])
        near, far = busiest(stations[int(self.split.out_of[arc])]), busiest(stations[there])
        if near is None or far is None:
            return None
        delay_s = float(self.round_trips_s[arc])
        return both_ways(near.passage, far.passage, delay_s, self.grid.times_s)

    def echoes(self, arriving: Floats, beyond: Floats, stations: list[list[Station]]) -> Floats:
        """[broker, time]: what is added to I where traffic goes both ways, to first order."""
        sent = self.split.brought() @ beyond
        found: Floats = np.zeros_like(arriving)
        for arc in np.flatnonzero(self.strengths >= _FAINT).tolist():
            held = self._held_back(arc, stations)
            if held is None:
                continue
            here = int(self.split.out_of[arc])
            near = busiest(stations[here])
            assert near is not None
            own = Beyond(arriving=arriving[here], sent=sent[arc], serving=near.serving)
            found[here] += self.strengths[arc] * echo(held, own)
        return found

    def echoes_of_copies(self, stations: list[list[Station]]) -> Floats:
        """[arc, time]: what is added to I of what leaves over an arc, over that I; 0 or below."""
        lagging = np.zeros((self.split.out_of.size, self.grid.points))
        staying = np.zeros_like(lagging)
        for arc in np.unique(self.copies.indices).tolist():
            held = self._held_back(arc, stations)
            if held is not None:
                lagging[arc], staying[arc] = held.lagging, held.staying
        share = self.split.arc_shares[:, None]
        found: Floats = -share * (self.copies @ lagging) - (1.0 - share) * (self.copies @ staying)
        return np.maximum(found, -1.0)

    def thirds(self, arriving: Floats, stations: list[list[Station]]) -> list[Third]:
        """[broker]: third cumulants of what arrives.

        Of a stream with the share q of what leaves a broker it is q³ times that of all.
        """
        count, shares = self.split.publishers, self.split.arc_shares
        leaving = np.zeros_like(arriving)
        orders = defaultdict(list)
        for broker, own in enumerate(stations):
            if own:
                leaving[broker] = own[-1].skew(arriving[broker])
        of_source = np.zeros((count + shares.size, self.grid.points))
        of_source[count:] = shares[:, None] ** 2 * leaving[self.split.out_of]
        for arc, there in enumerate(self.split.out_of.tolist()):
            order = stations[there][-1].order if stations[there] else None
            if order is not None and order.third * shares[arc] > 0.0:
                felt = Order(third=order.third * float(shares[arc]) ** 3, unit_s=order.unit_s)
                orders[int(self.split.into[count + arc])].append(felt)
        skews = self.arriving @ of_source
        return [
            Third(skew=skews[broker], orders=tuple(orders[broker]))
            for broker in range(len(stations))
        ]
