"""What the statistics of a store may be: texts, flags, places in a grid, and sums that can be.

A store may come from anybody, or be damaged. Whoever puts statistics together relies on what
counting gives; here it is looked whether that holds, so that a bad store is refused by name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import pandas as pd

from tidings.characterisation.statistics import COUNTS, STATISTICS
from tidings.traces.window import TraceWindow

TEXTS = {
    "statistic", "reason", "publisher", "broker", "content", "came_from", "subscriber", "source",
    "target", "member", "action", "filter", "component", "path", "queue", "part", "first_dropped",
    "last_dropped",
}  # fmt: skip
FLAGS = {"connected", "begun", "ended", "up", "first_lost", "last_lost"}
GRIDS = {"bin", "lifetime_bin", "batch", "stretch", "run", "hour"}
MOST_PLACES = 10**5  # in any of the grids, which have some hundred
_TOTALS = ("total_s", "squares", "delay_total_s", "wait_total_s", "lifetime_total_s")
_ROUNDING = 1e-6  # of a mean, in sums of which others were taken away


def check_there(tables: Collection[str], counted: Collection[str], *, periods: bool) -> None:
    """Raise ValueError where statistics are missing that traces of these tables have.

    >>> check_there(["hops", "states"], [], periods=True)
    Traceback (most recent call last):
        ...
    ValueError: got none of the statistics states; wants all that were counted
    """
    wanted = [
        name
        for name, each in STATISTICS.items()
        if each.periods == periods and not each.optional and (each.of is None or each.of in tables)
    ]
    missing = [name for name in wanted if name not in counted]
    if missing:
        raise ValueError(
            f"got none of the statistics {', '.join(missing)}; wants all that were counted"
        )


def check_values(tables: Mapping[str, pd.DataFrame]) -> None:
    """Raise ValueError where a column of a statistic is not of the values that counting gives."""
    for name, frame in tables.items():
        for column, cells in frame.items():
            want = None if cells.isna().all() else _unmet(str(column), cells)
            if want is not None:
                raise ValueError(f"{name}, {column}: got other values; wants {want}")


def _unmet(column: str, cells: pd.Series) -> str | None:
    """Say what the cells of a column should be and are not; None: nothing is wrong."""
    kind = pd.api.types.infer_dtype(cells, skipna=True)
    if column in TEXTS:
        return None if kind == "string" else "texts"
    if column in FLAGS:
        return None if kind == "boolean" else "true or false"
    if kind not in ("integer", "floating", "mixed-integer-float"):
        return "numbers"
    numbers = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    known = numbers[~np.isnan(numbers)]
    if not np.isfinite(known).all():
        return "finite numbers"
    in_grid = (known >= 0) & (known < MOST_PLACES) & (known == np.floor(known))
    return "whole numbers from 0 on" if column in GRIDS and not in_grid.all() else None


def check_whole(tables: Mapping[str, pd.DataFrame], window: TraceWindow) -> None:
    """Raise ValueError for impossible sums over a whole store (parts alone may be negative).

    What lies on a seam between two parts may take away from both.
    """
    for name, frame in tables.items():
        impossible = list(_impossible(frame))
        if name == "intervals":
            impossible.append(("first_ns", ~(frame["first_ns"] >= window.from_ns)))
            impossible.append(("last_ns", ~(frame["last_ns"] <= window.until_ns)))
        for column, wrong in impossible:
            if wrong.any():
                cell = frame.loc[wrong, column].iloc[0]
                raise ValueError(f"{name}, {column}: got {cell}, which is not possible")


def _impossible(frame: pd.DataFrame) -> Iterator[tuple[str, pd.Series]]:
    """Yield columns of sums and extremes, and which of their rows contradict others."""
    for column in (*COUNTS, "lowest_s"):
        if column in frame:
            yield column, frame[column] < 0
    for column in _TOTALS:
        if column in frame:
            yield column, frame[column] < -_ROUNDING
    for key in {"path", "component"} & set(frame.columns):
        yield "count", frame[key].notna() & frame["count"].isna()
    if "first_ns" in frame:
        yield "first_ns", frame["first_ns"] > frame["last_ns"]
    if {"lowest_s", "total_s", "count"} <= set(frame.columns):
        counted = frame["count"] > 0
        mean_s, slack_s = frame["total_s"] / frame["count"], _ROUNDING * (1.0 + frame["highest_s"])
        above = mean_s >= frame["lowest_s"] - slack_s
        yield "lowest_s", counted & ~above
        yield "highest_s", counted & ~(mean_s <= frame["highest_s"] + slack_s)
