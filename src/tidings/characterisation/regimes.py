"""Stretches of time in which publishers keep their rates, where they do not throughout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special, stats

from tidings.characterisation.cells import BATCHES
from tidings.characterisation.gathering import Progress
from tidings.characterisation.job import Characterisation, characterise
from tidings.characterisation.stationarity import DRIFTS
from tidings.model.system import System
from tidings.traces.reading import Traces
from tidings.traces.window import TraceWindow

MOST_REGIMES = 6
LEAST_BATCHES = 2  # of a regime
_SURPRISE = 1e-4  # chance of a steady system to be parted

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """A stretch of time, and what its traces alone tell."""

    window: TraceWindow
    found: Characterisation


def characterise_regimes(
    traces: Traces,
    whole: Characterisation,
    *,
    base: System | None = None,
    settle_s: float = 0.0,
    progress: Progress | None = None,
) -> tuple[Regime, ...]:
    """A system for every stretch of time in which rates stay; none where they stay throughout.

    ``whole`` is what all of the traces tell. Nothing need settle but at the end of the last one.
    """
    tell = progress or (lambda stage: None)
    windows = find_regimes(whole, traces.window)
    if len(windows) < 2:
        return ()
    found = []
    for number, window in enumerate(windows, start=1):
        tell(f"regime {number} of {len(windows)}")
        part = characterise(
            replace(traces, window=window),
            base=base,
            settle_s=settle_s if number == len(windows) else 0.0,
        )
        found.append(Regime(window=window, found=part))
    return tuple(found)


def find_regimes(whole: Characterisation, window: TraceWindow) -> tuple[TraceWindow, ...]:
    """The windows that the publishers whose rates drift part the observed time into."""
    drifting = whole.stationarity.loc[whole.stationarity["verdict"] == DRIFTS, "publisher"]
    counts = counts_of(whole.rates[whole.rates["publisher"].isin(drifting)], _scvs(whole))
    width_ns = -(-(window.until_ns - window.from_ns) // BATCHES)
    starts = parted(counts)
    edges = [window.from_ns + start * width_ns for start in starts] + [window.until_ns]
    return tuple(TraceWindow(from_ns=begin, until_ns=end) for begin, end in pairwise(edges))


def _scvs(whole: Characterisation) -> dict[str, float]:
    names = {f"publishers.{name}.rate": str(name) for name in whole.stationarity["publisher"]}
    return {names[path]: law.sample.scv for path, law in whole.laws.items() if path in names}


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
        rows.append(ordered["per_s"].to_numpy(np.float64) * part_s / max(scv, 0.01))
    return np.array(rows).reshape(len(rows), BATCHES)


def parted(counts: Floats) -> list[int]:
    """Where regimes begin: the likeliest parting, if each of its cuts is surely no chance.

    The logarithm of the likelihood of Poisson counts, greatest for the rate n/m over m parts, is
    n ln(n/m) but for a constant. A cut is worth it if twice the gain exceeds what steady publishers
    reach once in 10⁴ times at the best of all places, by a χ² law with a degree of freedom each.

    >>> parted(np.array([[100.0] * 20 + [300.0] * 12]))
    [0, 20]
    """
    publishers, parts = counts.shape
    if publishers == 0:
        return [0]
    sums = np.concatenate([np.zeros((publishers, 1)), counts.cumsum(axis=1)], axis=1)
    gain = np.full((parts + 1, parts + 1), -np.inf)  # of a regime from one part until another
    for begin in range(parts):
        for end in range(begin + LEAST_BATCHES, parts + 1):
            total = sums[:, end] - sums[:, begin]
            gain[begin, end] = float(special.xlogy(total, total / (end - begin)).sum())
    cost = float(stats.chi2.isf(_SURPRISE / parts, publishers)) / 2.0
    best = gain[0].copy()
    cuts: list[list[list[int]]] = [[[0] for _ in range(parts + 1)]]
    found, chosen = best[parts], [0]
    for number in range(1, MOST_REGIMES):
        with_one_more = best[:, None] + gain
        before = with_one_more.argmax(axis=0)
        best = with_one_more[before, np.arange(parts + 1)]
        cuts.append([[*cuts[-1][before[end]], int(before[end])] for end in range(parts + 1)])
        if best[parts] - number * cost > found:
            found, chosen = best[parts] - number * cost, cuts[-1][parts]
    return chosen
