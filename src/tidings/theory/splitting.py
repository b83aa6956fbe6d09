"""Which stream feeds which: how much of every stream into a broker goes on over every arc.

The *sources* of a system are its publishers and then its arcs, each seen where it arrives, its own
losses taken off. Traffic that crosses a broker in two directions is split by where it comes from,
not by the toss of a coin; only filters and losses thin a source like a coin.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.theory.flows import Flows
from tidings.theory.mobility.publishing import reaching_shares

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Splits:
    """Events per second by source; arc i is source ``publishers`` + i."""

    publishers: int
    rates: Floats  # [source]: what arrives
    into: Ints  # [source]: the broker it arrives at
    out_of: Ints  # [arc]: the broker it leaves
    handed: sparse.csr_array  # [arc, source]: what arrives over the arc that the source brought
    copied: sparse.csr_array  # [arc, other arc]: what arrives over both, copied by their broker
    leaving: Floats  # [broker]: what gets through it

    @property
    def arc_rates(self) -> Floats:
        """What arrives over each arc."""
        return self.rates[self.publishers :]

    @property
    def arc_shares(self) -> Floats:
        """[arc]: its share of all that gets through the broker it leaves, its losses taken off."""
        return _ratio(self.arc_rates, self.leaving[self.out_of])

    def arriving_shares(self, brokers: int) -> sparse.csr_array:
        """[broker, source]: which part of what arrives at a broker each source brings."""
        total: Floats = np.zeros(brokers)
        np.add.at(total, self.into, self.rates)
        places = (self.into, np.arange(self.rates.size))
        shares = sparse.coo_array(
            (_ratio(self.rates, total[self.into]), places), shape=(brokers, self.rates.size)
        )
        return shares.tocsr()

    def brought(self) -> sparse.csr_array:
        """[arc, source]: which part of what goes over an arc each source brings."""
        over = _ratio(np.ones_like(self.arc_rates), self.arc_rates)
        return (sparse.diags_array(over) @ self.handed).tocsr()

    def fed_back(self) -> sparse.csr_array:
        """[arc, other arc]: how strongly copies hold up what comes to the arc from the other's end.

        2 λ_both q/λ_arc, q the share of what leaves the other arc's end that goes back and on over
        the arc.
        """
        table = self.copied.tocoo()
        if not table.nnz:
            return self.copied
        arc, other = table.coords
        into = self.into[self.publishers + other]
        goes_on = np.asarray(self.handed[arc, self.publishers + (other ^ 1)]).ravel()
        strength = 2.0 * table.data * _ratio(goes_on, self.leaving[into])
        return sparse.coo_array(
            (_ratio(strength, self.arc_rates[arc]), (arc, other)), shape=table.shape
        ).tocsr()

    def memory(self) -> sparse.csr_array:
        """[arc, source]: how much of a source's dispersion beyond Poisson an arc inherits.

        A source of rate λ, of which the share p goes on, is thinned to dispersion p I + 1 − p, and
        the streams of an arc count by their rates: (p λ/λ_arc) · p.
        """
        table = self.handed.tocoo()
        arc, source = table.coords
        kept = table.data**2 / (self.arc_rates[arc] * self.rates[source])
        return sparse.coo_array((kept, (arc, source)), shape=table.shape).tocsr()


def splits(system: System, routes: Routes, flows: Flows) -> Splits:
    """How the streams of a system divide, from its rates."""
    brought = brought_by_class(system, routes, flows)
    reliability = np.array([arc.channel.reliability for arc in routes.arcs])
    targets = np.array([arc.target for arc in routes.arcs], dtype=np.int64)
    into = np.concatenate([routes.home_of_publisher, targets])
    out_of = np.array([arc.source for arc in routes.arcs], dtype=np.int64)
    first_arc = len(system.publishers)
    parts: list[tuple[Ints, Ints, Floats]] = []
    copies: list[tuple[Ints, Ints, Floats]] = []
    whole = brought_if_open(flows, brought)
    for broker in np.unique(out_of):
        sources, arcs = np.flatnonzero(into == broker), np.flatnonzero(out_of == broker)
        goes_on = flows.open_to[arcs]
        rates = goes_on @ whole[sources].T
        rates[sources[None, :] - first_arc == (arcs ^ 1)[:, None]] = 0.0  # never back
        rates *= flows.passes[broker] * reliability[arcs, None]
        row, column = np.nonzero(rates)
        parts.append((arcs[row], sources[column], rates[row, column]))
        both = _on_both(goes_on, whole[sources].sum(axis=0), whole[first_arc + (arcs ^ 1)])
        both *= flows.passes[broker] * np.outer(reliability[arcs], reliability[arcs])
        row, column = np.nonzero(both)
        copies.append((arcs[row], arcs[column], both[row, column]))
    shape = (len(routes.arcs), into.size)
    return Splits(
        publishers=first_arc,
        rates=brought.sum(axis=1),
        into=into,
        out_of=out_of,
        handed=_joined(parts, shape),
        copied=_joined(copies, (len(routes.arcs), len(routes.arcs))),
        leaving=flows.arrivals * flows.passes,
    )


def _on_both(goes_on: Floats, brought: Floats, back: Floats) -> Floats:
    """[arc, other arc]: events per second that a broker copies to both, never back to an end.

    ``goes_on`` [arc, class], ``brought`` in all [class], ``back`` over the arcs [arc, class].
    """
    own = (goes_on * back) @ goes_on.T
    found: Floats = np.maximum((goes_on * brought) @ goes_on.T - own - own.T, 0.0)
    np.fill_diagonal(found, 0.0)
    return found


def brought_by_class(system: System, routes: Routes, flows: Flows) -> Floats:
    """Events per second of each class that every source brings, [source, class]."""
    published = routes.rates(np.array([each.rate_per_s for each in system.publishers]))
    kept = reaching_shares(system.publishers)
    reliability = np.array([arc.channel.reliability for arc in routes.arcs])
    return np.vstack([published * kept[:, None], flows.offered * reliability[:, None]])


def brought_if_open(flows: Flows, brought: Floats) -> Floats:
    """What every source would bring, [source, class], if its arc were open to it all the time.

    Whoever is behind the next arc is behind the one before it, too: while the next is open, so is
    that.
    """
    found = brought.copy()
    arcs = found[-len(flows.open_to) :] if len(flows.open_to) else found[:0]
    np.divide(arcs, flows.open_to, out=arcs, where=flows.open_to > 0.0)
    return found


def _joined(parts: list[tuple[Ints, Ints, Floats]], shape: tuple[int, int]) -> sparse.csr_array:
    if not parts:
        return sparse.csr_array(shape)
    row, column, rate = (np.concatenate(each) for each in zip(*parts, strict=True))
    return sparse.coo_array((rate, (row, column)), shape=shape).tocsr()


def _ratio(part: Floats, whole: Floats) -> Floats:
    found: Floats = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    return found
