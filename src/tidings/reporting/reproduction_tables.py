"""A paper's experiments as tables for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from rich.console import RenderableType
from rich.text import Text

from tidings.reporting.terminal import Column, FittingTable


def error_tables(by_setting: pd.DataFrame, utilisation: Mapping[str, float]) -> list[FittingTable]:
    """For every load, the models' errors side by side: how large, and to which side."""
    found = []
    for load, rows in by_setting.groupby("load", sort=False):
        busy = f"{load} load, busiest broker at {100 * utilisation[str(load)]:.0f} %"
        found.append(
            _side_by_side(
                rows,
                f"Mean absolute error (largest), {busy}",
                lambda row: f"{row['mean_absolute']:.4f} ({row['maximum']:.3f})",
                noise=True,
            )
        )
        found.append(
            _side_by_side(
                rows,
                f"Mean signed error (share of predictions at most the actual value), {load} load",
                lambda row: f"{row['mean_signed']:+.4f} ({row['at_most_actual']:.2f})",
            )
        )
    return found


def skewness_table(by_skewness: pd.DataFrame) -> FittingTable:
    """Mean absolute errors of predictions from skewed contents."""
    groups = [(key, each) for key, each in by_skewness.groupby(["load", "alpha"], sort=False)]
    models = list(dict.fromkeys(by_skewness["model"]))
    columns = [
        Column(title="load", cells=[str(load) for (load, _), _ in groups], left=True),
        Column(title="α", cells=[f"{alpha:g}" for (_, alpha), _ in groups]),
        *(_cells(groups, model, lambda row: f"{row['mean_absolute']:.4f}") for model in models),
    ]
    return FittingTable(
        title="Mean absolute error from contents C^α",
        columns=columns,
        caption="publishing and matching exponential",
    )


def claims_text(claims: Sequence[Mapping[str, Any]]) -> RenderableType:
    """The paper's claims, and what was found of them."""
    text = Text()
    for claim in claims:
        text.append("holds     " if claim["holds"] else "does not  ", _COLOUR[claim["holds"]])
        text.append(f"section {claim['section']}, {claim['load']} load: {claim['says']}\n")
        text.append(f"          found: {claim['found']}\n")
    return text


_COLOUR = {True: "green", False: "red"}


def _side_by_side(
    rows: pd.DataFrame, title: str, write: Any, *, noise: bool = False
) -> FittingTable:
    groups = [(key, each) for key, each in rows.groupby(["publishing", "matching"], sort=False)]
    columns = [
        Column(title="publishing", cells=[str(key[0]) for key, _ in groups], left=True),
        Column(title="matching", cells=[str(key[1]) for key, _ in groups], left=True),
    ]
    if noise:
        levels = [f"{each['noise'].iloc[0]:.4f}" for _, each in groups]
        columns.append(Column(title="noise", cells=levels, spare=1))
    columns += [_cells(groups, model, write) for model in dict.fromkeys(rows["model"])]
    return FittingTable(title=title, columns=columns)


def _cells(groups: Sequence[tuple[Any, pd.DataFrame]], model: str, write: Any) -> Column:
    cells = []
    for _, each in groups:
        mine = each[each["model"] == model].to_dict("records")
        cells.append(write(mine[0]) if mine else "")
    return Column(title=model, cells=cells)
