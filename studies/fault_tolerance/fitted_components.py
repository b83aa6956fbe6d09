"""How single components of real traces are fitted: their availability, and what is said to fit.

``python -m studies.fault_tolerance.fitted_components PATH ...`` reads traces as ``--uptimes`` does,
fits every component with enough periods as ``characterise`` does, and prints a row per trace.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from studies.fault_tolerance.uptime_traces import Uptimes, read_uptimes
from tidings.characterisation.fit.failures import fit_failures
from tidings.characterisation.fit.parameters import FittedPeriods
from tidings.model.arrays import Floats
from tidings.model.delay_grid import BINS_PER_DECADE, LOWEST_S
from tidings.model.laws import Law

COLUMNS = ("component", "seen", "fitted", "up", "family", "verdict", "distance")


def component_fits(trace: Uptimes) -> pd.DataFrame:
    """Fit every component of a trace: availability seen and fitted, and its two laws, a row each.

    ``distance`` is Kolmogorov's from the whole periods themselves.
    """
    rows = trace.periods.assign(
        component=trace.periods["scope"] + " " + trace.periods["component"].astype(str)
    )
    first = ~rows.duplicated("component")
    rows = rows.assign(begun=rows["begun"] & ~first)
    fitted, _ = fit_failures(_cells(rows[rows["begun"] | rows["ended"]]))
    table = [
        (name, _share_up(part), each.failure.availability, *row)
        for name, part in rows[rows["component"].isin(list(fitted))].groupby("component")
        for each in [fitted[str(name)]]
        for row in _laws(part, {True: each.up, False: each.down})
    ]
    return pd.DataFrame(table, columns=list(COLUMNS))


def _cells(rows: pd.DataFrame) -> pd.DataFrame:
    """Periods as Spark counts them."""
    bins = np.ceil(np.log10(rows["length_s"] / LOWEST_S) * BINS_PER_DECADE - 1e-9).astype(int)
    keys = ["component", "up", "begun", "ended", "bin"]
    lengths = rows.assign(bin=bins).groupby(keys)["length_s"]
    named = {"count": "count", "total_s": "sum", "lowest_s": "min", "highest_s": "max"}
    return lengths.agg(**named).reset_index()


def _share_up(part: pd.DataFrame) -> float:
    return float(part.loc[part["up"], "length_s"].sum() / part["length_s"].sum())


def _laws(part: pd.DataFrame, fits: dict[bool, FittedPeriods]) -> Iterator[tuple[object, ...]]:
    for up, each in fits.items():
        whole = part[(part["up"] == up) & part["begun"] & part["ended"]]
        times_s = np.sort(whole["length_s"].to_numpy(np.float64))
        yield up, each.family, each.verdict, kolmogorov(times_s, each.law)


def kolmogorov(times_s: Floats, law: Law) -> float:
    """Compute the Kolmogorov distance of a law from sorted times, on both sides of every step."""
    before = np.searchsorted(times_s, times_s, side="left") / times_s.size
    after = np.searchsorted(times_s, times_s, side="right") / times_s.size
    below = np.abs(law.cdf(np.nextafter(times_s, 0.0)) - before)
    return float(max(below.max(), np.abs(law.cdf(times_s) - after).max()))


def summary(name: str, fits: pd.DataFrame) -> str:
    """Say in a line how a trace is fitted."""
    each = fits.drop_duplicates("component")
    off = (each["fitted"] - each["seen"]).abs()
    fitting = fits[fits["verdict"] == "fits"]
    kinds = ", ".join(
        f"{count} {family}" for family, count in fits["family"].value_counts().items()
    )
    farthest = f", at a distance of {fitting['distance'].max():.3f} at most" if len(fitting) else ""
    return (
        f"{name}: {len(each)} components; availability off by {off.mean():.2g} on average, "
        f"{(off <= 0.005).mean():.1%} within 0.005; {kinds}; {len(fitting)} said to fit{farthest}"
    )


if __name__ == "__main__":
    for place in sys.argv[1:]:
        for uptimes in read_uptimes(Path(place), ["HakaiInstitute/hakai-datasets-upptime"]):
            print(summary(uptimes.name, component_fits(uptimes)))  # noqa: T201
