"""Laws that the literature fitted to a public trace of failures, fitted again to the same trace.

The Failure Trace Archive gives periods up and down of many machines, and the literature laws fitted
to them by plain maximum likelihood: all periods count as whole, those without length are left out.
A number that is published is ours if both are the same to two decimals, which is how they are
published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from studies.fault_tolerance.uptime_traces import Uptimes, read_uptimes
from tidings.errors import InvalidInputError
from tidings.model.plain_files import open_plain
from tidings.model.study import Finding, Grid, Section, Study

PUBLISHED = "published_fits.csv"
COLUMNS = ("trace", "state", "dist", "p1", "p2", "p1_name", "p2_name")
STATES = {"available": True, "unavailable": False}
_WORDS = (
    "Hours. Plain maximum likelihood over all periods that have a length; the scale and shape of "
    "exponential, Weibull and gamma laws, mean and standard deviation of the logarithms of a "
    "log-normal one."
)
_SAYS = "the law fitted to these periods has these parameters"

Floats = NDArray[np.float64]


def fit_exponential(hours: Floats) -> dict[str, float]:
    """The mean."""
    return {"mean_h": float(hours.mean())}


def fit_weibull(hours: Floats) -> dict[str, float]:
    """Shape and scale."""
    shape, _, scale = stats.weibull_min.fit(hours, floc=0)
    return {"shape": float(shape), "scale_h": float(scale)}


def fit_lognormal(hours: Floats) -> dict[str, float]:
    """Mean and standard deviation of the logarithms.

    >>> found = fit_lognormal(np.exp([1.0, 3.0]))
    >>> round(found["mu_log_h"], 12), round(found["sigma"], 12)
    (2.0, 1.0)
    """
    logs = np.log(hours)
    return {"mu_log_h": float(logs.mean()), "sigma": float(logs.std())}


def fit_gamma(hours: Floats) -> dict[str, float]:
    """Shape and scale."""
    shape, _, scale = stats.gamma.fit(hours, floc=0)
    return {"shape": float(shape), "scale_h": float(scale)}


FITS: Mapping[str, Callable[[Floats], dict[str, float]]] = {
    "exponential": fit_exponential,
    "weibull": fit_weibull,
    "lognormal": fit_lognormal,
    "gamma": fit_gamma,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Refit:
    """One number: whose, as published, and as fitted here."""

    trace: str
    state: str
    family: str
    parameter: str
    published: float
    ours: float

    @property
    def agrees(self) -> bool:
        """Whether both are the same to two decimals."""
        return round(self.ours, 2) == round(self.published, 2)


def refit(folder: Path) -> tuple[Refit, ...]:
    """Every number that is published of the traces in a folder, beside ours.

    The folder holds traces (``NAME_events.parquet``) and ``published_fits.csv``. Laws of traces
    that are not there, and of families that we do not fit, are passed over.
    """
    published = _read_published(folder / PUBLISHED)
    found = []
    for trace in read_uptimes(folder):
        rows = published[(published["trace"] == trace.name) & published["dist"].isin(list(FITS))]
        found += [each for row in rows.to_dict("records") for each in _refit(trace, row)]
    if not found:
        raise InvalidInputError(f"{folder}: {PUBLISHED} tells nothing of the traces that are here")
    return tuple(found)


def _refit(trace: Uptimes, row: Mapping[str, object]) -> list[Refit]:
    lengths_s, _ = trace.lengths(up=STATES[str(row["state"])])
    fitted = FITS[str(row["dist"])](lengths_s / 3600.0)
    return [
        Refit(
            trace=trace.name,
            state=str(row["state"]),
            family=str(row["dist"]),
            parameter=str(row[f"{place}_name"]),
            published=float(str(row[place])),
            ours=fitted[str(row[f"{place}_name"])],
        )
        for place in ("p1", "p2")
        if str(row[f"{place}_name"]) in fitted
    ]


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


def study(found: tuple[Refit, ...]) -> Study:
    """What came of it, to look at."""
    table = pd.DataFrame(
        [
            (one.trace, one.state, one.family, one.parameter, one.published, one.ours, one.agrees)
            for one in found
        ],
        columns=["trace", "state", "family", "parameter", "published", "ours", "agrees"],
    )
    rows = tuple(
        (one.trace, one.state, one.family, one.parameter, f"{one.published:.2f}", f"{one.ours:.2f}")
        for one in found
    )
    laws = [
        Finding(
            section="published fits",
            says=_SAYS,
            case=f"{trace}, {state}, {family}",
            found="; ".join(f"{row.parameter} {row.ours:.2f}" for row in part.itertuples()),
            holds=bool(part["agrees"].all()),
        )
        for (trace, state, family), part in table.groupby(["trace", "state", "family"], sort=False)
    ]
    columns = ("trace", "state", "family", "parameter", "published", "ours")
    grid = Grid(title="Laws of times up and down, in hours", columns=columns, rows=rows, names=4)
    return Study(
        paper="published-fits",
        title="Published laws of failures, fitted again",
        summary=f"{len(found)} published numbers, {int(table['agrees'].sum())} of them ours to two "
        "decimals.",
        settings={"laws": "by maximum likelihood, in hours, to two decimals"},
        choices=("Periods without length are left out.",),
        findings=tuple(laws),
        sections=(Section(title="Published and ours", words=_WORDS, exhibits=(grid,)),),
        tables={"fits": table},
        plan={},
    )
