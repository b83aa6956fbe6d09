"""Counts of many replications added up, with standard errors over the replications."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidings.kernels.ratios import Ratio
from tidings.model import delay_grid
from tidings.model.arrays import Bools, Floats, Ints
from tidings.model.delay_grid import Histogram
from tidings.model.outcome import REDELIVERED
from tidings.simulation.kernel_layout import KERNEL_CAUSES

if TYPE_CHECKING:
    from tidings.simulation.network import CompiledSystem
    from tidings.simulation.splitting import Splitting
    from tidings.simulation.tally import Counts, Units
    from tidings.simulation.windows import Span

# What deliveries cost in messages between brokers: those of events (each attempt one), of brokers
# that have taken an event over, of subscriptions sent again (a home's for one tree over one link),
# of those that come and of those that go, all of these, and copies that were filtered out at the
# last broker.
COSTS = (
    "transmissions",
    "acknowledgements",
    "refreshes",
    "subscribes",
    "unsubscribes",
    "messages",
    "duplicates",
)
FEWEST_MISSES = 30.0  # that an error relative to them is believed after
FEWEST_WITH_MISSES = 5  # replications with misses from which on their spread tells how sure that is


class Totals:
    """Everything counted so far, over all replications."""

    def __init__(
        self,
        compiled: CompiledSystem,
        units: Units,
        length_s: float,
        span: Span | None = None,
        *,
        splitting: Splitting | None = None,
    ) -> None:
        self.compiled, self.units, self.length_s, self.span = compiled, units, length_s, span
        self.splitting = splitting
        self._missing = np.zeros(units.count)  # replications in which anything was missed
        self.replications = 0
        self.published = 0
        self.costs = Ratio(len(COSTS))  # for each delivery
        heads = np.bincount(
            units.of_subscriber,
            weights=[each.count for each in compiled.asked.subscribers],
            minlength=units.count,
        )
        self._heads: Floats = heads / units.followed
        pairs, stations = units.pair_unit.size, len(compiled.tables["stations"])
        self.on_time = Ratio(units.count)
        self.delay = Ratio(units.count)
        self.pair_on_time = Ratio(pairs)
        self.pair_delay = Ratio(pairs)
        self.pair_lost = np.zeros((pairs, len(KERNEL_CAUSES)))
        self.lost = np.zeros((units.count, len(KERNEL_CAUSES)))
        self.redelivered = np.zeros((units.count, len(REDELIVERED)))
        self.blocked = np.zeros((len(compiled.tables["limits"]), 2))
        histograms = compiled.curves + len(compiled.tables["receivers"])
        self._histograms = np.zeros((histograms, delay_grid.BINS))
        self._lowest_s = np.full(self._histograms.shape, np.inf)
        self._highest_s = np.zeros(self._histograms.shape)
        self.utilisation = Ratio(stations)
        self.wait = Ratio(stations)
        self.service = Ratio(stations)
        channels = len(compiled.tables["channels"])
        self.sent = np.zeros(channels)
        self.lost_on = Ratio(channels)
        self.delay_on = Ratio(channels)

    @property
    def measured_s(self) -> float:
        """How much time was measured in all replications together, in seconds."""
        return self.replications * self.length_s

    @property
    def standard_errors(self) -> Floats:
        """Of each unit's on-time share; at least those of independent trials.

        Misses that splitting counts come by many more trials; so where these misses are many,
        replications alone tell.
        """
        floored = self.on_time.share_standard_error
        if self.splitting is None:
            return floored
        return np.where(self._have_misses, self.on_time.standard_error, floored)

    @property
    def _have_misses(self) -> Bools:
        """Of which units so much is missed that replications show how sure that is.

        The error that is seen is no more than a few dozen independent misses leave, and there were
        some in every replication.
        """
        error, missed = self.on_time.standard_error, 1.0 - self.on_time.value
        many: Bools = error**2 * FEWEST_MISSES <= missed**2
        return many & (self._missing == self.replications)

    def are_known(self, units: Ints) -> bool:
        """Test whether replications show how sure the misses of all these units are."""
        return bool(self._have_misses[units].all())

    @property
    def seen_widths(self) -> Floats:
        """Half the 95 % interval of each unit's on-time share, by which series are compared.

        Of misses that are split as replications differ, however few there are.
        """
        errors = None if self.splitting is None else self.on_time.standard_error
        return self.on_time.half_widths(errors=errors)

    @property
    def half_widths(self) -> Floats:
        """Half the 95 % interval of each unit's on-time share; NaN where it is not known.

        Events of one outage, or of one long queue, share their fate. So where none missed, or all,
        or some in few replications, what proves that are not the events but the turns of what
        fails and the times that a queue grew long: by the rule of three, 3 over their number.
        """
        widths = self.on_time.half_widths(errors=self.standard_errors)
        if self.replications < 2:
            return widths
        alike = (self.on_time.x == 0.0) | (self.on_time.x == self.on_time.w)
        few = (alike | (self._missing < FEWEST_WITH_MISSES)) & ~np.isnan(widths)
        seen = np.minimum(self._missing, self.replications)
        together = np.fmax(self._together, (1.0 - self.on_time.value) / np.fmax(seen, 1.0))
        least = np.fmin((3.0 + 2.0 * np.sqrt(np.where(alike, 0.0, seen))) * together, 1.0)
        widths = np.where(few, np.fmax(widths, least), widths)
        if self.span is None:
            return widths
        turns = min(1.0, 3.0 / self.span.trials(self.measured_s))
        return np.where(alike & ~np.isnan(widths), np.fmax(widths, turns), widths)

    @property
    def _together(self) -> Floats:
        """Which share of a unit's events shares its fate, at the broker of its paths that is worst.

        Long waits come in clusters of 1/(1 − ρ)² events, as in M/M/1 (its extremal index).
        """
        compiled = self.compiled
        spare = np.fmax(1.0 - self.utilisation.value, 0.01)
        served = np.fmax(self.wait.w, 1.0)
        at_broker = np.zeros(len(compiled.system.brokers))
        owner = np.asarray(compiled.tables["stations"]["place"])
        brokers = owner < at_broker.size  # others are of peers
        each = np.nan_to_num(1.0 / (spare**2 * served))
        np.maximum.at(at_broker, owner[brokers], each[brokers])
        cells = compiled.cells
        along = at_broker[cells.broker]
        behind = cells.parent
        while np.any(behind >= 0):
            along = np.where(behind >= 0, np.fmax(along, at_broker[cells.broker[behind]]), along)
            behind = np.where(behind >= 0, cells.parent[behind], -1)
        worst = 1.0 / np.fmax(self.on_time.w, 1.0)
        entries = self.units.pair_unit[self.units.entry_pair]
        np.maximum.at(worst, entries, along[self.units.entry_cell])
        return worst

    def delays(self, unit: int) -> Histogram:
        """Count the events that reached a unit in each bin of the delay grid.

        Also give how late they were at least and at most, in seconds.
        """
        mine = self.units.curves[unit]
        return Histogram(
            counts=self._histograms[mine].sum(axis=0),
            lowest_s=self._lowest_s[mine].min(axis=0, initial=np.inf),
            highest_s=self._highest_s[mine].max(axis=0, initial=0.0),
        )

    def add(self, counts: Counts) -> None:
        """Add one more replication."""
        units = self.units
        self.replications += 1
        self.published += int(counts.published.sum())
        wanted, delivered, on_time, delay = (
            np.bincount(units.pair_unit, weights=values, minlength=units.count)
            for values in (counts.wanted, counts.delivered, counts.on_time, counts.delay_sum_s)
        )
        self.costs.add(self._costs(counts), np.full(len(COSTS), self._heads @ delivered))
        self.on_time.add(on_time, wanted)
        self._missing += on_time < wanted
        self.delay.add(delay, delivered)
        self.pair_on_time.add(counts.on_time, counts.wanted)
        self.pair_delay.add(counts.delay_sum_s, counts.delivered)
        self.pair_lost += counts.pair_lost
        self.lost += counts.lost
        self.redelivered += counts.redelivered
        self.blocked += counts.blocked
        self._histograms += counts.curves
        least_s = np.where(counts.curves > 0, counts.lowest_s, np.inf)
        np.minimum(self._lowest_s, least_s, out=self._lowest_s)
        np.maximum(self._highest_s, counts.highest_s, out=self._highest_s)
        _, served, busy, wait = counts.station_counts.T
        servers = np.asarray(self.compiled.tables["stations"]["servers"], dtype=np.float64)
        limited = np.append(~self.compiled.stations.unlimited, np.ones(servers.size, dtype=bool))
        self.utilisation.add(busy * limited[: servers.size], self.length_s * servers)
        self.wait.add(wait, served)
        self.service.add(busy, served)
        sent, lost_on, delay_on = counts.channel_counts.T
        self.sent += sent
        self.lost_on.add(lost_on, sent)
        self.delay_on.add(delay_on, sent - lost_on)

    def _costs(self, counts: Counts) -> list[float]:
        """Count what one replication cost, in the order of COSTS."""
        sent = float(counts.channel_counts[: len(self.compiled.routes.arcs), 0].sum())
        known = [sent] + [getattr(counts, name) for name in COSTS[1:5]]
        return [float(each) for each in (*known, sum(known), counts.duplicates)]
