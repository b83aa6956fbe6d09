"""Whether publishers keep their rates while they are watched: one rate is fitted to each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from tidings.characterisation.statistics import BATCHES

STATIONARITY_COLUMNS = (
    "publisher", "events", "least_per_s", "most_per_s", "dispersion", "p_value", "verdict",
)  # fmt: skip
STEADY, DRIFTS, CANNOT_TELL = "steady", "drifts", "cannot tell"
LEAST_PER_BATCH = 5.0  # events; with fewer, counts are too lumpy for the test
_SURPRISE = 1e-4  # chance of a steady publisher to be told as one that drifts


def even_batches_s(window_s: float) -> NDArray[np.float64]:
    """How long each part of a window was watched, in seconds, where all were as long."""
    return np.full(BATCHES, window_s / BATCHES)


def stationarity(
    batches: pd.DataFrame, scvs: Mapping[str, float], lengths_s: NDArray[np.float64]
) -> pd.DataFrame:
    """A test of every publisher's rate, over parts of the window of these lengths.

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
    """The test of one publisher's rate, from events in parts of time of these relative lengths.

    >>> drift_test(np.array([5.0, 25.0]), np.array([1.0, 2.0]), 0.5).dispersion  # of 10 and 20
    7.5
    """
    expected = counts.sum() * lengths / lengths.sum()
    scv = scv if math.isfinite(scv) and scv > 0 else 1.0
    total = float(((counts - expected) ** 2 / (scv * expected)).sum())
    degrees = len(counts) - 1
    return DriftTest(total / degrees, float(stats.chi2.sf(total, degrees)))


def rates_over_time(batches: pd.DataFrame, lengths_s: NDArray[np.float64]) -> pd.DataFrame:
    """Events per second of every publisher in each part of the window, by its middle in seconds."""
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
    """Events of every publisher by part of the window."""
    for publisher, part in known.groupby("publisher"):
        counts = np.zeros(BATCHES)
        np.add.at(counts, part["batch"].to_numpy(dtype=np.int64), part["rows"].to_numpy(np.float64))
        yield str(publisher), counts


def drift_notes(tested: pd.DataFrame) -> list[str]:
    """What must be said where rates do not stay."""
    drifting = worst_drift(tested)
    if drifting is None:
        return []
    return [
        f"the rate of {drifting.who} does not stay: {drifting.how_far}; one rate is fitted, so "
        "that busy times are worse than predicted. Characterise such times apart (--regimes)"
    ]


class WorstDrift(NamedTuple):
    """Whose rates drift, the worst by name, and how far that one does."""

    who: str
    how_far: str


def worst_drift(tested: pd.DataFrame) -> WorstDrift | None:
    """Who drifts, in words; None: nobody surely does."""
    drifting = tested[tested["verdict"] == DRIFTS].sort_values("dispersion", ascending=False)
    if drifting.empty:
        return None
    worst = drifting.iloc[0]
    more = f" and {len(drifting) - 1} more" if len(drifting) > 1 else ""
    return WorstDrift(
        f"{worst['publisher']}{more}",
        f"from {worst['least_per_s']:.3g} to {worst['most_per_s']:.3g} events/s over parts of the "
        "window",
    )
