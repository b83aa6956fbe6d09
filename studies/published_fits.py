"""Laws that the literature fitted to a public trace of failures, fitted again to the same trace.

The Failure Trace Archive gives periods up and down of many machines, and the literature laws fitted
to them by plain maximum likelihood: all periods count as whole, those without length are left out.
A number that is published is ours if both are the same to two decimals, which is how they are
published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from studies.fault_tolerance.uptime_traces import Uptimes, read_uptimes
from studies.harness import Experiment, Texts
from studies.settings.published_fits import Settings
from tidings.errors import InvalidInputError
from tidings.model.arrays import Floats
from tidings.model.plain_files import open_plain
from tidings.model.progress import Progress
from tidings.model.study import Study

PUBLISHED = "published_fits.csv"
COLUMNS = ("trace", "state", "dist", "p1", "p2", "p1_name", "p2_name")
STATES = {"available": True, "unavailable": False}
TEXTS = Texts("published-fits")


def fit_exponential(hours: Floats) -> dict[str, float]:
    """Fit the mean, in hours."""
    return {"mean_h": float(hours.mean())}


def fit_weibull(hours: Floats) -> dict[str, float]:
    """Fit shape and scale, in hours."""
    shape, _, scale = stats.weibull_min.fit(hours, floc=0)
    return {"shape": float(shape), "scale_h": float(scale)}


def fit_lognormal(hours: Floats) -> dict[str, float]:
    """Fit mean and standard deviation of the logarithms of hours.

    >>> fitted = fit_lognormal(np.exp([1.0, 3.0]))
    >>> round(fitted["mu_log_h"], 12), round(fitted["sigma"], 12)
    (2.0, 1.0)
    """
    logs = np.log(hours)
    return {"mu_log_h": float(logs.mean()), "sigma": float(logs.std())}


def fit_gamma(hours: Floats) -> dict[str, float]:
    """Fit shape and scale, in hours."""
    shape, _, scale = stats.gamma.fit(hours, floc=0)
    return {"shape": float(shape), "scale_h": float(scale)}


FITS: Mapping[str, Callable[[Floats], dict[str, float]]] = {
    "exponential": fit_exponential,
    "weibull": fit_weibull,
    "lognormal": fit_lognormal,
    "gamma": fit_gamma,
}


def refit(folder: Path) -> pd.DataFrame:
    """Set every number that is published of the traces in a folder beside ours.

    The folder holds traces (``NAME_events.parquet``) and ``published_fits.csv``. Laws of traces
    that are not there, and of families that we do not fit, are passed over.
    """
    published = _read_published(folder / PUBLISHED)
    known = published[published["dist"].isin(list(FITS))]
    fits = pd.DataFrame(
        [
            each
            for trace in read_uptimes(folder)
            for row in known[known["trace"] == trace.name].to_dict("records")
            for each in _refit(trace, row)
        ]
    )
    if fits.empty:
        raise InvalidInputError(f"{folder}: {PUBLISHED} tells nothing of the traces that are here")
    return fits


def _refit(trace: Uptimes, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    lengths_s, _ = trace.lengths(up=STATES[row["state"]])
    fitted = FITS[row["dist"]](lengths_s / 3600.0)
    for place in ("p1", "p2"):
        name, published = str(row[f"{place}_name"]), float(row[place])
        if name in fitted:
            yield {
                "trace": trace.name,
                "state": row["state"],
                "family": row["dist"],
                "parameter": name,
                "published": published,
                "ours": fitted[name],
                "agrees": round(fitted[name], 2) == round(published, 2),
            }


def _read_published(path: Path) -> pd.DataFrame:
    want = f"a CSV file with the columns {', '.join(COLUMNS)}"
    try:
        with open_plain(path, follow=True) as file:
            rows = pd.read_csv(file)
    except (OSError, ValueError) as problem:
        raise InvalidInputError(f"{path}: cannot be read ({problem}); wants {want}") from problem
    if not set(COLUMNS) <= set(rows.columns) or not rows["state"].isin(list(STATES)).all():
        raise InvalidInputError(f"{path}: got {', '.join(map(str, rows.columns))}; wants {want}")
    return rows


def run(settings: Settings, progress: Progress) -> Study:
    """Fit all laws again, and hold them against the published ones."""
    progress("fitting")
    fits = refit(settings.traces)
    laws = fits.groupby(["trace", "state", "family"], sort=False)
    return TEXTS.study(
        summary=f"{len(fits)} published numbers, {int(fits['agrees'].sum())} of them ours to two "
        "decimals.",
        findings=(
            TEXTS.claim(
                "law",
                bool(part["agrees"].all()),
                law=", ".join(law),
                fitted="; ".join(f"{row.parameter} {row.ours:.2f}" for row in part.itertuples()),
            )
            for law, part in laws
        ),
        sections=(TEXTS.section("both", TEXTS.grid("both", fits)),),
        tables={"fits": fits},
        plan={},
    )


EXPERIMENT = Experiment(texts=TEXTS, settings=Settings, run=run)
