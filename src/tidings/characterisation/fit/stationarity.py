"""Test whether publishers keep their rates, and part the time where they do not.

One rate is fitted to each publisher; regimes are stretches of time, or hours of the day, in which
rates stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special, stats

from tidings.characterisation.statistics import BATCHES, sums_at
from tidings.model.arrays import Floats

STATIONARITY_COLUMNS = (
    "publisher", "events", "least_per_s", "most_per_s", "dispersion", "p_value", "verdict",
)  # fmt: skip
STEADY, DRIFTS, CANNOT_TELL = "steady", "drifts", "unknown"
LEAST_PER_BATCH = 5.0  # events; with fewer, counts are too lumpy for the test
_SURPRISE = 1e-4  # chance of steady publishers to seem to drift, or to be parted
MOST_REGIMES = 6
LEAST_BATCHES = 2  # of a regime
LEAST_SCV = 0.01


def even_batches_s(window_s: float) -> NDArray[np.float64]:
    """Give how long each part of a window was watched, in seconds, where all were as long."""
    return np.full(BATCHES, window_s / BATCHES)


def stationarity(
    batches: pd.DataFrame, scvs: Mapping[str, float], lengths_s: NDArray[np.float64]
) -> pd.DataFrame:
    """Test every publisher's rate, over parts of the window of these lengths, in seconds.

    Events of a renewal process with intervals of squared coefficient of variation c² come in counts
    of variance c² · mean, so that over m parts Σ (nᵢ − eᵢ)²/(c² eᵢ) follows a χ² law with m − 1
    degrees of freedom, if the rate stays: of all events, eᵢ is the share that the part's length has
    of all time. ``dispersion`` is that sum by its degrees of freedom.
    Reads ``publisher``, ``batch`` and ``rows``.
    """
    rows = []
    watched = lengths_s > 0
    known = batches[batches["batch"].notna()]
    for publisher, counts in _counts(known):
        test = drift_test(counts[watched], lengths_s[watched], scvs.get(publisher, math.nan))
        thin = counts.mean() < LEAST_PER_BATCH
        verdict = CANNOT_TELL if thin else DRIFTS if test.drifts else STEADY
        per_s = counts[watched] / lengths_s[watched]
        rows.append(
            (publisher, int(counts.sum()), per_s.min(), per_s.max(),
             test.dispersion, test.p_value, verdict)
        )  # fmt: skip
    return pd.DataFrame(rows, columns=list(STATIONARITY_COLUMNS))


class DriftTest(NamedTuple):
    """How much more counts vary than those of a rate that stays, and the chance of as much."""

    dispersion: float
    p_value: float

    @property
    def drifts(self) -> bool:
        """Whether it is surely no chance."""
        return self.p_value < _SURPRISE


def drift_test(counts: NDArray[np.float64], lengths: NDArray[np.float64], scv: float) -> DriftTest:
    """Test one publisher's rate, from events in parts of time of these relative lengths.

    >>> drift_test(np.array([5.0, 25.0]), np.array([1.0, 2.0]), 0.5).dispersion  # of 10 and 20
    7.5
    """
    expected = counts.sum() * lengths / lengths.sum()
    scv = scv if math.isfinite(scv) and scv > 0 else 1.0
    total = float(((counts - expected) ** 2 / (scv * expected)).sum())
    degrees = len(counts) - 1
    return DriftTest(total / degrees, float(stats.chi2.sf(total, degrees)))


def rates_over_time(batches: pd.DataFrame, lengths_s: NDArray[np.float64]) -> pd.DataFrame:
    """Compute every publisher's events per second by part of the window.

    A part is given by its middle, in seconds.
    """
    watched = lengths_s > 0
    long_s = lengths_s[watched]
    middles_s = long_s.cumsum() - long_s / 2.0
    frames = [
        pd.DataFrame({"publisher": publisher, "at_s": middles_s, "per_s": counts[watched] / long_s})
        for publisher, counts in _counts(batches[batches["batch"].notna()])
    ]
    empty = pd.DataFrame({"publisher": [], "at_s": [], "per_s": []})
    return pd.concat(frames, ignore_index=True) if frames else empty


def _counts(known: pd.DataFrame) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Yield the events of every publisher by part of the window."""
    for publisher, part in known.groupby("publisher"):
        yield str(publisher), sums_at(part, "rows", (BATCHES,), part["batch"])


def drift_notes(tested: pd.DataFrame) -> list[str]:
    """Say what must be said where rates do not stay."""
    drifting = worst_drift(tested)
    if drifting is None:
        return []
    return [
        f"the rate of {drifting.who} changes over time: {drifting.how_far}; only one rate "
        "is fitted, so busy times are worse than predicted. Fit such times separately "
        "(--regimes)"
    ]


class WorstDrift(NamedTuple):
    """Whose rates drift, the worst by name, and how far that one does."""

    who: str
    how_far: str


def worst_drift(tested: pd.DataFrame) -> WorstDrift | None:
    """Say who drifts, in words; None: nobody surely does."""
    drifting = tested[tested["verdict"] == DRIFTS].sort_values(
        "dispersion", ascending=False, kind="stable"
    )
    if drifting.empty:
        return None
    worst = drifting.iloc[0]
    more = f" and {len(drifting) - 1} more" if len(drifting) > 1 else ""
    return WorstDrift(
        f"{worst['publisher']}{more}",
        f"from {worst['least_per_s']:.3g} to {worst['most_per_s']:.3g} events/s over parts of the "
        "window",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Where regimes begin, and by how much that is likelier than none, less what cuts cost."""

    starts: tuple[int, ...]
    worth: float


def parted(counts: Floats) -> Cuts:
    """Find where regimes begin: the likeliest parting, if each of its cuts is surely no chance.

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
    """Find at which hours of the day regimes begin, as :func:`parted`; no hour is first or last.

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
    """Find the parting that is likeliest after its costs, by going through all of them."""
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
    """Count events by publisher and part of time, as so many independent ones: [publisher, part].

    Counts of a renewal process with intervals of squared coefficient of variation c² vary like
    c² times Poisson ones, so that n of them tell as much as n/c² independent events.
    """
    rows = []
    for name, part in rates.groupby("publisher"):
        ordered = part.sort_values("at_s", kind="stable")
        part_s = 2.0 * float(ordered["at_s"].iloc[0])  # the middle of the first part
        scv = scvs.get(str(name), 1.0)
        rows.append(ordered["per_s"].to_numpy(np.float64) * part_s / max(scv, LEAST_SCV))
    return np.array(rows).reshape(len(rows), BATCHES)
