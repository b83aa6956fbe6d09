"""Fit how long components are up and down; what observation cuts off counts too."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tidings.characterisation.fit.duration_laws import fit, likeliest
from tidings.characterisation.fit.durations import (
    ENOUGH_PERIODS,
    LEAST_PERIODS,
    TRIED_FAMILIES,
    Durations,
    durations_of,
    measure,
)
from tidings.characterisation.fit.parameters import FittedPeriods, Parameter
from tidings.model.arrays import Floats
from tidings.model.behaviour import Failure
from tidings.model.laws import Deterministic, Exponential, Law
from tidings.model.naming import few

DIFFERENT_LENGTHS = 4  # bins of whole times up, without which equal ones prove nothing
CONSTANT = 1e-12  # squared coefficient of variation, below which lengths do not differ
FAR_LIKELIER = 10.0  # in AIC: what is next to never seen of periods that are exponential


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedFailure:
    """How long a component is up and down."""

    up: FittedPeriods
    down: FittedPeriods

    @property
    def failure(self) -> Failure:
        """As a system has it."""
        return Failure(up=self.up.law, down=self.down.law)

    def parameters(self, path: str) -> list[Parameter]:
        """Both means, under the path of the component."""
        return [
            self.up.parameter(f"{path}.failure.mtbf"),
            self.down.parameter(f"{path}.failure.mttr"),
        ]


def fit_periods(seen: Durations) -> FittedPeriods:
    """The law of some periods, by maximum likelihood; those cut off count as at least as long.

    Exponential, its mean all time seen by the ends seen, unless there are enough whole periods and
    another family is far likelier: its AIC less by :data:`FAR_LIKELIER`.
    """
    total_s = float(seen.lengths_s @ seen.counts)
    plain = Exponential(mean_s=total_s / seen.whole)
    if seen.whole < ENOUGH_PERIODS:
        distance = measure(seen).distance(plain.cdf)
        said = f"assumed exponential: fewer than {ENOUGH_PERIODS} complete periods"
        return _fitted(plain, "exponential", seen.whole, distance, said)
    if (length_s := _common_length_s(seen)) is not None:
        same = Deterministic(value_s=length_s)
        return _fitted(same, "deterministic", seen.whole, 0.0, "all the same")
    first, *others = (fit(name, seen) for name in TRIED_FAMILIES)
    best = likeliest(others)
    chosen = best if best.aic < first.aic - FAR_LIKELIER else first
    law = plain if chosen is first else chosen.free_law
    said = "far likelier than exponential" if chosen is best else "no family is far likelier"
    return _fitted(law, chosen.family, seen.whole, chosen.distance, said)


def _common_length_s(seen: Durations) -> float | None:
    """The length of all whole periods, in seconds; None where they differ, or others were longer.

    To such periods no family but a constant has a likeliest law: the narrower, the likelier.
    """
    lengths_s, counts = seen.lengths_s[seen.ended], seen.counts[seen.ended]
    mean_s = float(np.average(lengths_s, weights=counts))
    spread = float(np.average((lengths_s / mean_s - 1.0) ** 2, weights=counts))
    longest_s = float(seen.lengths_s.max())
    same = spread < CONSTANT and longest_s <= mean_s * (1.0 + math.sqrt(CONSTANT))
    return mean_s if same else None


def _fitted(law: Law, family: str, whole: int, distance: float, verdict: str) -> FittedPeriods:
    """With the standard error that the mean of so many whole periods of the law has."""
    return FittedPeriods(
        law=law,
        family=family,
        count=whole,
        mean_se_s=law.mean_s * math.sqrt(law.scv / whole),
        distance=distance,
        verdict=verdict,
    )


def fit_failures(rows: pd.DataFrame) -> tuple[dict[str, FittedFailure], list[str]]:
    """Fit times up and down of every component; a note names those that changed too rarely."""
    failures: dict[str, FittedFailure] = {}
    thin = []
    periods = rows[rows["component"].notna() & (rows["count"] > 0)]
    for name, part in periods.groupby("component"):
        seen = {up: durations_of(part[part["up"].astype(bool) == up]) for up in (True, False)}
        if min(each.whole for each in seen.values()) < LEAST_PERIODS:
            thin.append(str(name))
        else:
            failures[str(name)] = FittedFailure(
                up=fit_periods(seen[True]), down=fit_periods(seen[False])
            )
    if not thin:
        return failures, []
    return failures, [
        f"{few(thin)} changed state too rarely to fit up and down times (fewer than "
        f"{LEAST_PERIODS} complete periods of each); taken from the base system, or "
        "assumed never to fail"
    ]


def failing_together(rows: pd.DataFrame, names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Which of these components were only ever down together: their periods are the same ones.

    As many of each length, and the same sums: to the nanosecond that is no chance, unless periods
    hardly differ in length (:data:`DIFFERENT_LENGTHS`), as those of timetables.
    """
    periods = rows[rows["component"].isin(set(names)) & (rows["count"] > 0)]
    alike: dict[bytes, list[tuple[str, Floats]]] = {}
    for name, part in periods.groupby("component"):
        cells = part.sort_values(["up", "ended", "bin"])
        whole = cells[cells["up"].astype(bool) & cells["ended"].astype(bool)]
        if len(whole) >= DIFFERENT_LENGTHS:
            key = cells[["up", "ended", "bin", "count"]].to_numpy(np.int64).tobytes()
            alike.setdefault(key, []).append((str(name), cells["total_s"].to_numpy(np.float64)))
    groups = []
    for candidates in alike.values():
        first_s = candidates[0][1]
        same = [name for name, sums_s in candidates if np.allclose(sums_s, first_s, 1e-9, 0.0)]
        if len(same) > 1:
            groups.append(tuple(same))
    return tuple(groups)


def ever_down(rows: pd.DataFrame | None) -> frozenset[str]:
    """The components that were seen down at some time."""
    if rows is None:
        return frozenset()
    down = rows["up"].eq(False)  # rows of no state at all have none
    return frozenset(map(str, rows.loc[down & rows["component"].notna(), "component"]))
