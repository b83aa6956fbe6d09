"""Where rates change: the likeliest parting of counts, if each cut is surely no chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special, stats

from tidings.characterisation.statistics import BATCHES
from tidings.model.arrays import Floats

MOST_REGIMES = 6
LEAST_BATCHES = 2  # of a regime
LEAST_SCV = 0.01
_SURPRISE = 1e-4  # chance of a steady system to be parted


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Where regimes begin, and by how much that is likelier than none, less what cuts cost."""

    starts: tuple[int, ...]
    worth: float


def parted(counts: Floats) -> Cuts:
    """Where regimes begin: the likeliest parting, if each of its cuts is surely no chance.

    The logarithm of the likelihood of Poisson counts, greatest for the rate n/m over m parts, is
    n ln(n/m) but for a constant. A cut is worth it if twice the gain exceeds what steady publishers
    reach once in 10⁴ times at the best of all places, by a χ² law with a degree of freedom each.

    >>> parted(np.array([[100.0] * 20 + [300.0] * 12])).starts
    (0, 20)
    """
    publishers, parts = counts.shape
    if publishers == 0:
        return Cuts(starts=(0,), worth=0.0)
    cost = float(stats.chi2.isf(_SURPRISE / parts, publishers)) / 2.0
    return _likeliest(counts, np.ones(parts), LEAST_BATCHES, cost)


def parted_ring(counts: Floats, watched_s: Floats) -> Cuts:
    """The same for hours of the day, which have no first and no last: at which hours they begin.

    Of two regimes, both beginnings can be chosen: there are n(n − 1)/2 places for them.

    >>> busy = np.array([[30.0] * 8 + [90.0] * 10 + [30.0] * 6])
    >>> parted_ring(busy, np.full(24, 7200.0)).starts
    (8, 18)
    """
    publishers, parts = counts.shape
    if publishers == 0:
        return Cuts(starts=(0,), worth=0.0)
    places = parts * (parts - 1) / 2
    cost = float(stats.chi2.isf(_SURPRISE / places, publishers)) / 2.0
    best = Cuts(starts=(0,), worth=0.0)
    for first in range(parts):
        turned = _likeliest(np.roll(counts, -first, axis=1), np.roll(watched_s, -first), 1, cost)
        if turned.worth > best.worth:
            starts = sorted((first + start) % parts for start in turned.starts)
            best = Cuts(starts=tuple(starts), worth=turned.worth)
    return best


def _likeliest(counts: Floats, widths: Floats, least: int, cost: float) -> Cuts:
    """The parting that is likeliest after its costs, by going through all of them."""
    publishers, parts = counts.shape
    sums = np.concatenate([np.zeros((publishers, 1)), counts.cumsum(axis=1)], axis=1)
    until = np.concatenate([[0.0], widths.cumsum()])
    gain = np.full((parts + 1, parts + 1), -np.inf)  # of a regime from one part until another
    for begin in range(parts):
        for end in range(begin + least, parts + 1):
            total = sums[:, end] - sums[:, begin]
            rate = total / (until[end] - until[begin])
            gain[begin, end] = float(special.xlogy(total, rate).sum())
    best = gain[0].copy()
    cuts: list[list[list[int]]] = [[[0] for _ in range(parts + 1)]]
    steady = best[parts]
    worth, chosen = 0.0, [0]
    for number in range(1, MOST_REGIMES):
        with_one_more = best[:, None] + gain
        before = with_one_more.argmax(axis=0)
        best = with_one_more[before, np.arange(parts + 1)]
        cuts.append([[*cuts[-1][before[end]], int(before[end])] for end in range(parts + 1)])
        if best[parts] - steady - number * cost > worth:
            worth, chosen = best[parts] - steady - number * cost, cuts[-1][parts]
    return Cuts(starts=tuple(chosen), worth=float(worth))


def counts_of(rates: pd.DataFrame, scvs: Mapping[str, float]) -> Floats:
    """Events by publisher and part of the time, as so many independent ones: [publisher, part].

    Counts of a renewal process with intervals of squared coefficient of variation c² vary like
    c² times Poisson ones, so that n of them tell as much as n/c² independent events.
    """
    rows = []
    for name, part in rates.groupby("publisher"):
        ordered = part.sort_values("at_s")
        part_s = 2.0 * float(ordered["at_s"].iloc[0])  # the middle of the first part
        scv = scvs.get(str(name), 1.0)
        rows.append(ordered["per_s"].to_numpy(np.float64) * part_s / max(scv, LEAST_SCV))
    return np.array(rows).reshape(len(rows), BATCHES)
