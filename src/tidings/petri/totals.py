"""Counts of replications of a net added up, with standard errors over the replications."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tidings.kernels.ratios import Ratio
from tidings.model import delay_grid
from tidings.model.arrays import Bools, Floats
from tidings.model.delay_grid import Histogram
from tidings.petri.compiling import CompiledNet
from tidings.petri.outcome import QUANTILES, NetOutcome, queueing_places

RARE = 0.01  # of the departures of the busiest cell; a precision does not wait for fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class NetCounts:
    """What one replication counted in its window; arrays over cells, then over queues."""

    length_s: float
    arrivals: Floats
    departures: Floats
    residence_s: Floats
    aged: Floats  # departures of tokens that have an age
    age_s: Floats
    population_s: Floats  # token seconds
    busy_s: Floats  # server seconds, of queues
    residence_bins: Any
    age_bins: Any
    fired: Floats  # of modes
    present: Floats  # [moment, cell]: tokens at the beginning and after each leg


class NetTotals:
    """Counts of many replications added up, with standard errors over the replications."""

    def __init__(self, compiled: CompiledNet, *, quantiles: bool) -> None:
        cells, queues = len(compiled.cells.all), len(compiled.queue_names)
        self.compiled, self.replications = compiled, 0
        self.throughput, self.population = Ratio(cells), Ratio(cells)
        self.residence, self.age = Ratio(cells), Ratio(cells)
        self.utilisation = Ratio(queues)
        self.stay, self.age_at = Ratio(queues), Ratio(queues)  # of tokens of all colours
        number = {name: at for at, name in enumerate(compiled.queue_names)}
        self._queue_of = np.array([number.get(place, -1) for place, _ in compiled.cells.all])
        self.fired = np.zeros(len(compiled.cells.modes))
        shape = (cells, delay_grid.BINS) if quantiles else (0, 0)
        self._bins = {name: _empty_bins(shape) for name in ("residence", "age")}

    def add(self, counts: NetCounts) -> None:
        """Add one replication."""
        self.replications += 1
        cells = np.ones(len(self.compiled.cells.all))
        self.throughput.add(counts.departures, counts.length_s * cells)
        self.population.add(counts.population_s, counts.length_s * cells)
        self.residence.add(counts.residence_s, counts.departures)
        self.age.add(counts.age_s, counts.aged)
        self.stay.add(self._by_queue(counts.residence_s), self._by_queue(counts.departures))
        self.age_at.add(self._by_queue(counts.age_s), self._by_queue(counts.aged))
        servers = np.array(
            [each.counted_servers for each in self.compiled.cells.queues.values()], float
        )
        self.utilisation.add(counts.busy_s, counts.length_s * servers)
        self.fired += counts.fired
        for name, bins in (("residence", counts.residence_bins), ("age", counts.age_bins)):
            value, lowest, highest = self._bins[name]
            if value.size:
                table = bins.reshape(value.shape)
                some = table["value"] > 0
                value += table["value"]
                np.minimum(lowest, np.where(some, table["lowest"], np.inf), out=lowest)
                np.maximum(highest, np.where(some, table["highest"], 0.0), out=highest)

    def _by_queue(self, values: Floats) -> Floats:
        """Add up values of cells over the colours of each queueing place."""
        queued = self._queue_of >= 0
        sums: Floats = np.zeros(self.utilisation.x.size)
        np.add.at(sums, self._queue_of[queued], values[queued])
        return sums

    def relative_half_width(self) -> float:
        """Give half the widest confidence interval of mean residence times, as a share of them.

        Of cells that matter: those where tokens stay at all, and not next to never come.
        """
        return self.residence.relative_half_width(self.frequent())

    def frequent(self) -> Bools:
        """Find the cells where tokens stay, and that they leave often enough to wait for."""
        left = self.residence.w
        often: Bools = (self.residence.x > 0.0) & (left > RARE * left.max(initial=0.0))
        return often

    def rare(self) -> Bools:
        """Find the cells where tokens stay, but next to never come."""
        seldom: Bools = (self.residence.x > 0.0) & ~self.frequent()
        return seldom

    def outcome(self, provenance: dict[str, Any]) -> NetOutcome:
        """Give everything as tables."""
        cells = self.compiled.cells
        table = pd.DataFrame(
            {
                "place": [cell[0] for cell in cells.all],
                "colour": [cell[1] for cell in cells.all],
                **_columns("throughput", self.throughput, "_per_s"),
                **_columns("population", self.population, ""),
                **_columns("residence_mean", self.residence, "_s"),
                **self._quantiles("residence"),
                **_columns("age_mean", self.age, "_s"),
                **self._quantiles("age"),
            }
        )
        places = queueing_places(cells, table).assign(
            # Of an infinite server: how many are busy, on average.
            utilisation=self.utilisation.value,
            utilisation_se=self.utilisation.standard_error,
            **_columns("residence_mean", self.stay, "_s"),
            **_columns("age_mean", self.age_at, "_s"),
        )
        return NetOutcome(cells=table, places=places, provenance=provenance)

    def _quantiles(self, name: str) -> dict[str, list[float]]:
        value, lowest, highest = self._bins[name]
        if not value.size:
            return {}
        times_s = [
            Histogram(counts=counts, lowest_s=low, highest_s=high).quantiles(list(QUANTILES))
            for counts, low, high in zip(value, lowest, highest, strict=True)
        ]
        return {
            f"{name}_p{round(100 * share)}_s": [each[at] for each in times_s]
            for at, share in enumerate(QUANTILES)
        }


def _empty_bins(shape: tuple[int, int]) -> tuple[Floats, Floats, Floats]:
    return np.zeros(shape), np.full(shape, np.inf), np.zeros(shape)


def _columns(name: str, ratio: Ratio, unit: str) -> dict[str, Floats]:
    return {f"{name}{unit}": ratio.value, f"{name}_se{unit}": ratio.standard_error}
