r"""Populations that keep growing while a net is run, told from those that only fluctuate.

A run is looked at in legs of equal length. In a steady state a place's population changes by
nothing on average from leg to leg; whatever it gains in one it loses in others, so that taking the
changes as independent makes their mean look less sure than it is. A population that grows by a
constant number in each leg stands out as the square root of their number. Only places of which the
traffic equations do not show that they are stable are looked at.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from tidings.errors import UnstableError
from tidings.model.arrays import Bools, Floats
from tidings.petri.cells import NetCells
from tidings.petri.compiling import CompiledNet
from tidings.petri.traffic import NetTraffic

LEGS = 10  # of each run
LEVEL = 1e-6  # how often, at most, a net in a steady state may be called growing
LEAST_GAIN = 10.0  # tokens in a run; less may be a matter of where in a cycle runs begin and end


def may_grow(cells: NetCells, traffic: NetTraffic) -> Bools:
    """Find the cells of a net without overload that nothing shows to be stable."""
    if all(mode.take and _puts_no_more(cells, number) for number, mode in enumerate(cells.modes)):
        return np.zeros(len(cells.all), dtype=bool)
    unknown = np.isnan(traffic.rates_per_s)
    held = ~np.array(cells.is_plain, dtype=bool)
    beside = {place for (place, _), open_end in zip(cells.all, unknown, strict=True) if open_end}
    queued = [cells.queue_of(cell) is not None and cell[0] in beside for cell in cells.all]
    return unknown | held | np.array(queued, dtype=bool)


def _puts_no_more(cells: NetCells, number: int) -> bool:
    mode = cells.modes[number]
    return sum(arc.count for arc in mode.put) <= sum(arc.count for arc in mode.take)


class Growth:
    """The changes of all populations, leg by leg, of any number of runs of one length."""

    def __init__(self, compiled: CompiledNet, chosen: Bools) -> None:
        self._cells, self._chosen = compiled.cells, chosen
        size = len(compiled.cells.all)
        self._count, self._sum, self._squares = 0, np.zeros(size), np.zeros(size)
        self.last = np.zeros(size)  # population at the end of the latest run

    def add(self, present: Floats) -> None:
        """Add the populations of one run, at the beginning and after each leg: [moment, cell]."""
        changes = np.diff(present, axis=0)
        self._count += len(changes)
        self._sum += changes.sum(axis=0)
        self._squares += (changes**2).sum(axis=0)
        self.last = present[-1]

    def grows(self) -> Bools:
        """Find the cells whose population grows for certain."""
        n = self._count
        if n < 3:
            return np.zeros_like(self._chosen)
        mean = self._sum / n
        variance = np.maximum(self._squares - n * mean**2, 0.0) / (n - 1)
        gains = self._chosen & (mean * LEGS >= LEAST_GAIN)
        error = np.sqrt(variance / n)
        t = np.divide(mean, error, out=np.full(mean.shape, np.inf), where=error > 0.0)
        growing: Bools = gains & (special.stdtr(n - 1, -t) < LEVEL / max(1, self._chosen.sum()))
        return growing

    def refuse(self, length_s: float) -> None:
        """Raise UnstableError with the place that grows most, if any does, in runs so long."""
        growing = self.grows()
        if not growing.any():
            return
        worst = int(np.argmax(np.where(growing, self._sum, -np.inf)))
        place, colour = self._cells.all[worst]
        rate = self._sum[worst] / self._count * LEGS / length_s
        raise UnstableError(
            f"tokens of the colour '{colour}' at the place '{place}' grow by {rate:.3g} "
            f"per simulated second, to {int(self.last[worst]):,} at the end of a run: the "
            "net is unstable. Let something take them as fast as they arrive, or let "
            "fewer arrive"
        )
