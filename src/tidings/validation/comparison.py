"""Two outcomes of the same system, set side by side: a join, differences, a verdict.

Differences are *a minus b*: with ``compare(predicted, measured)`` a positive difference means that
the prediction was too hopeful. Where either side knows its standard error, z is the difference in
units of the combined one, so both sides' noise counts.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.errors import InvalidInputError
from tidings.model.outcome import KEYS, Outcome
from tidings.model.shown import Shown
from tidings.validation.intervals import OF_95, engine_errors

WITHIN = 2.0  # combined standard errors that still count as agreement
ROUNDING = 1e-12  # a difference this small is none, also where the standard error is exactly zero

# What is compared in each table, and the column of its standard error where there is one.
MEASURES: dict[str, dict[str, str | None]] = {
    "subscribers": {
        "on_time": "on_time_se",
        "delivered": None,
        "late": None,
        "wanted_per_s": None,
        "delay_mean_s": "delay_mean_se_s",
        "delay_p95_s": None,
    },
    "pairs": {
        "on_time": "on_time_se",
        "delivered": None,
        "delay_mean_s": None,
    },
    "brokers": {
        "utilisation": "utilisation_se",
        "arrivals_per_s": None,
        "service_mean_s": None,
        "wait_mean_s": "wait_mean_se_s",
    },
    "links": {"lost": None, "events_per_s": None, "delay_mean_s": None},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """How far two outcomes are apart in one measure, in that measure's own unit.

    ``compared`` rows have a number on both sides; ``undefined`` have it on neither (nobody
    publishes what is wanted), ``undefined_in_one`` on one side only. Means count identical
    subscribers each.
    """

    measure: str
    compared: int
    undefined: int
    undefined_in_one: int
    mean_absolute: float
    maximum: float
    mean_signed: float
    with_se: int  # rows for which a standard error is known
    within_2se: float  # share of those that differ by at most two combined standard errors
    with_error: int = 0  # rows of which a side states the error of its engine
    within_error: float = math.nan  # share of those within 95 % of standard and stated errors


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Comparison(Shown):
    """Two outcomes joined row by row.

    For every measure ``m`` a table has ``m_a``, ``m_b``, ``m_difference`` (a − b), ``m_se``
    (combined) and ``m_z``; a table that one side lacks is empty. Of subscribers it also has who
    answered (``by_a``, ``by_b``) and ``on_time_error``: half the 95 % interval of the difference if
    both sides are right about their standard errors and the errors of their engines.
    """

    _table = "subscribers"
    _columns = ("subscriber", "on_time_difference", "broker", "on_time_a", "on_time_b")

    source_a: str
    source_b: str
    subscribers: pd.DataFrame
    pairs: pd.DataFrame
    brokers: pd.DataFrame
    links: pd.DataFrame
    only_a: tuple[str, ...]  # subscribers that are missing in b
    only_b: tuple[str, ...]

    @property
    def summary(self) -> Summary:
        """How far the on-time shares of the subscribers are apart."""
        return self.summarise()

    def summarise(self, table: str = "subscribers", measure: str = "on_time") -> Summary:
        """Summarise how far the two are apart in one measure of one table."""
        if measure not in MEASURES.get(table, {}):
            raise ValueError(f"'{measure}' of '{table}' is not compared; see MEASURES")
        return _summarise(getattr(self, table), measure)

    def worst(self, number: int = 5, measure: str = "on_time") -> pd.DataFrame:
        """List the subscribers that differ most in a measure, the worst first, with both values.

        Columns: subscriber, broker, then of the measure ``_a``, ``_b``, ``_difference``, ``_z``;
        few enough to be printed whole. All others are in ``subscribers``.
        """
        size = self.subscribers[f"{measure}_difference"].abs()
        order = size[size.notna()].sort_values(ascending=False, kind="stable").index[:number]
        of_measure = [f"{measure}_{each}" for each in ("a", "b", "difference", "z")]
        shown = self.subscribers[["subscriber", "broker", *of_measure]]
        return shown.loc[order].reset_index(drop=True)

    def headline(self) -> str:
        """Say how far the two are apart on average, in percentage points."""
        apart = 100 * self.summary.mean_absolute
        return f"{self.source_a.capitalize()} against {self.source_b}: {apart:.2g} points apart"

    def _rows(self) -> pd.DataFrame:
        return self.worst(len(self.subscribers))

    def to_document(self) -> dict[str, Any]:
        """Give the comparison as plain data for JSON; what is not a finite number is null."""
        summaries = {
            table: {measure: _plain(asdict(self.summarise(table, measure))) for measure in measures}
            for table, measures in MEASURES.items()
            if len(getattr(self, table))
        }
        return {
            "version": 1,
            "a": self.source_a,
            "b": self.source_b,
            "difference": "a - b",
            "only_a": list(self.only_a),
            "only_b": list(self.only_b),
            "summary": _plain(asdict(self.summary)),
            "summaries": summaries,
            **{
                table: [_plain(row) for row in getattr(self, table).to_dict("records")]
                for table in MEASURES
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One demand on a comparison: what was seen, what is allowed, and whether that will do."""

    name: str
    value: float
    limit: float
    passed: bool
    text: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verdict(Shown):
    """All checks of a comparison; it passes when each of them does."""

    _table = "checks"
    _columns = ("name", "value", "limit", "passed")

    checks: tuple[Check, ...]

    def headline(self) -> str:
        """Say whether all checks passed."""
        return "Agrees" if self.passed else "Disagrees"

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def to_document(self) -> dict[str, Any]:
        """Give the verdict as plain data for JSON."""
        return {"passed": self.passed, "checks": [_plain(asdict(each)) for each in self.checks]}


def compare(a: Outcome, b: Outcome) -> Comparison:
    """Join two outcomes of the same system on subscribers, pairs, brokers and links."""
    joined = {name: _join(a, b, name) for name in MEASURES}
    names_a, names_b = (list(each.subscribers["subscriber"]) for each in (a, b))
    known_a, known_b = set(names_a), set(names_b)
    return Comparison(
        source_a=a.source,
        source_b=b.source,
        only_a=tuple(name for name in names_a if name not in known_b),
        only_b=tuple(name for name in names_b if name not in known_a),
        **joined,
    )


def validate(
    a: Outcome,
    b: Outcome,
    *,
    max_mae: float | None = 0.02,
    max_error: float | None = None,
    min_within_2se: float | None = None,
    min_within_error: float | None = None,
) -> Verdict:
    """Compare two outcomes, and say whether their on-time shares agree within these limits."""
    return verdict(
        compare(a, b),
        max_mae=max_mae,
        max_error=max_error,
        min_within_2se=min_within_2se,
        min_within_error=min_within_error,
    )


def verdict(
    comparison: Comparison,
    *,
    max_mae: float | None = 0.02,
    max_error: float | None = None,
    min_within_2se: float | None = None,
    min_within_error: float | None = None,
    max_missing: int | None = 0,
) -> Verdict:
    """Decide whether two outcomes agree, by limits on errors of the on-time shares; None: no limit.

    A limit that cannot be checked, such as one in standard errors where nobody knows any, fails.
    """
    summary = comparison.summary
    missing = len(comparison.only_a) + len(comparison.only_b)
    checks = [
        _check("compared", summary.compared, 1, at_least=True, text="subscribers compared"),
        _check("missing", missing, max_missing, text="subscribers in only one of the results"),
        _check("mean_absolute", summary.mean_absolute, max_mae, text="mean absolute error"),
        _check("maximum", summary.maximum, max_error, text="largest error"),
        _check(
            "within_2se",
            summary.within_2se,
            min_within_2se,
            at_least=True,
            text="share within two combined standard errors",
        ),
        _check(
            "within_error",
            summary.within_error,
            min_within_error,
            at_least=True,
            text="share within the stated errors",
        ),
    ]
    return Verdict(checks=tuple(check for check in checks if check is not None))


def _check(
    name: str, value: float, limit: float | None, *, text: str, at_least: bool = False
) -> Check | None:
    if limit is None:
        return None
    # Comparisons with NaN are false, so what could not be computed does not pass.
    passed = value >= limit if at_least else value <= limit
    words = f"{text}: {value:.4g}, wants {'at least' if at_least else 'at most'} {limit:.4g}"
    return Check(name=name, value=float(value), limit=float(limit), passed=passed, text=words)


def _join(a: Outcome, b: Outcome, name: str) -> pd.DataFrame:
    keys = list(KEYS[name])
    left, right = getattr(a, name), getattr(b, name)
    for outcome, table in ((a, left), (b, right)):
        twice = table.loc[table.duplicated(keys), keys]
        if len(twice):
            shown = ", ".join(str(value) for value in twice.iloc[0])
            raise InvalidInputError(
                f"the {outcome.source} outcome has more than one row in '{name}' for {shown}"
            )
    both = left.merge(right, on=keys, suffixes=("_a", "_b"))
    columns: dict[str, Any] = {key: both[key] for key in keys}
    if name == "subscribers":
        columns["broker"] = both["broker_a"].where(both["broker_a"] != "", both["broker_b"])
        columns["count"] = both["count_a"].fillna(both["count_b"]).fillna(1.0)
    for measure, se in MEASURES[name].items():
        columns.update(_differences(both, measure, se))
    if name == "subscribers":
        columns |= {"by_a": both["by_a"], "by_b": both["by_b"], "on_time_error": _allowed(both)}
    return pd.DataFrame(columns)


def _differences(both: pd.DataFrame, measure: str, se: str | None) -> dict[str, Any]:
    first, second = both[f"{measure}_a"].to_numpy(), both[f"{measure}_b"].to_numpy()
    with np.errstate(invalid="ignore"):  # both infinite, as at an overloaded broker: no number
        difference = first - second
    combined = np.full(len(both), np.nan)
    if se is not None:
        parts = np.stack([both[f"{se}_a"].to_numpy(), both[f"{se}_b"].to_numpy()])
        known = ~np.isnan(parts).all(axis=0)
        combined[known] = np.sqrt(np.nansum(parts[:, known] ** 2, axis=0))
    return {
        f"{measure}_a": first,
        f"{measure}_b": second,
        f"{measure}_difference": difference,
        f"{measure}_se": combined,
        f"{measure}_z": _in_standard_errors(difference, combined),
    }


def _allowed(both: pd.DataFrame) -> NDArray[np.float64]:
    """Compute how far on-time shares may be apart (95 %).

    NaN where no side states an engine's error.
    """
    sides = [(both[f"by_{side}"], both[f"error_{side}"]) for side in ("a", "b")]
    stated = np.stack([engine_errors(*side) for side in sides])
    noise = OF_95 * both[["on_time_se_a", "on_time_se_b"]].to_numpy().T
    whole = np.sqrt(np.nansum(stated**2, axis=0) + np.nansum(noise**2, axis=0))
    return np.where(np.isnan(stated).all(axis=0), np.nan, whole)


def _in_standard_errors(
    difference: NDArray[np.float64], combined: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute z: the difference in standard errors.

    Where both sides claim to be exact it is 0 for equal numbers and infinite for others.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        z = difference / combined
    return np.where((combined == 0) & (np.abs(difference) <= ROUNDING), 0.0, z)


def _summarise(joined: pd.DataFrame, measure: str) -> Summary:
    first, second = joined[f"{measure}_a"].isna(), joined[f"{measure}_b"].isna()
    rows = joined[joined[f"{measure}_difference"].notna()]
    difference = rows[f"{measure}_difference"].to_numpy()
    weight = rows["count"].to_numpy() if "count" in rows else np.ones(len(rows))
    z = rows[f"{measure}_z"]
    known = z.notna().to_numpy()
    inside = (z.abs() <= WITHIN).to_numpy()
    allowed = rows.get(f"{measure}_error", pd.Series(np.nan, index=rows.index)).to_numpy()
    stated = ~np.isnan(allowed)
    held = np.abs(difference) <= allowed + ROUNDING
    return Summary(
        measure=measure,
        compared=len(rows),
        undefined=int((first & second).sum()),
        undefined_in_one=int((first ^ second).sum()),
        mean_absolute=_mean(np.abs(difference), weight),
        maximum=float(np.abs(difference).max()) if len(rows) else math.nan,
        mean_signed=_mean(difference, weight),
        with_se=int(known.sum()),
        within_2se=_mean(inside[known].astype(float), weight[known]),
        with_error=int(stated.sum()),
        within_error=_mean(held[stated].astype(float), weight[stated]),
    )


def _mean(values: NDArray[np.float64], weight: NDArray[np.float64]) -> float:
    return float(values @ weight / weight.sum()) if weight.sum() > 0 else math.nan


def _plain(record: dict[str, Any]) -> dict[str, Any]:
    return {
        str(key): None if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in record.items()
    }
