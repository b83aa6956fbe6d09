"""Fit how long components are up and down; what observation cuts off counts too."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tidings.characterisation.fit.durations import LEAST_PERIODS, cycle_means_s, durations_of
from tidings.characterisation.fit.parameters import FittedPeriods, Parameter
from tidings.characterisation.fit.periods import fit_periods
from tidings.model.arrays import Floats
from tidings.model.behaviour import Failure
from tidings.model.naming import few

DIFFERENT_LENGTHS = 4  # bins of whole times up, without which equal ones prove nothing


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
        """List both means as parameters, under the path of the component."""
        return [
            self.up.parameter(f"{path}.failure.mtbf"),
            self.down.parameter(f"{path}.failure.mttr"),
        ]


def fit_failures(rows: pd.DataFrame) -> tuple[dict[str, FittedFailure], list[str]]:
    """Fit times up and down of every component; a note names those that changed too rarely.

    A component is up for the share of time that it was seen up.
    """
    failures: dict[str, FittedFailure] = {}
    thin = []
    periods = rows[rows["component"].notna() & (rows["count"] > 0)]
    for name, part in periods.groupby("component"):
        seen = {up: durations_of(part[part["up"].astype(bool) == up]) for up in (True, False)}
        if min(each.whole for each in seen.values()) < LEAST_PERIODS:
            thin.append(str(name))
        else:
            up_s, down_s = cycle_means_s(seen[True], seen[False])
            failures[str(name)] = FittedFailure(
                up=fit_periods(seen[True], up_s), down=fit_periods(seen[False], down_s)
            )
    if not thin:
        return failures, []
    return failures, [
        f"{few(thin)} changed state too rarely to fit up and down times (fewer than "
        f"{LEAST_PERIODS} complete periods of each); taken from the base system, or "
        "assumed never to fail"
    ]


def failing_together(rows: pd.DataFrame, names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Find the components that were only ever down together: their periods are the same ones.

    As many of each length, and the same sums: to the nanosecond that is no chance, unless periods
    hardly differ in length (:data:`DIFFERENT_LENGTHS`), as those of timetables.
    """
    periods = rows[rows["component"].isin(set(names)) & rows["begun"].eq(True)]
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
    """List the components that were seen down at some time."""
    if rows is None:
        return frozenset()
    down = rows["up"].eq(False)  # rows of no state at all have none
    return frozenset(map(str, rows.loc[down & rows["component"].notna(), "component"]))
