"""One self-contained HTML page about a paper's experiments: claims, errors, scatter plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tidings.model.writing import write_file
from tidings.reporting import figures, wording
from tidings.reporting.templates import asset, fill


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """What a page tells of: the points of a study and what follows from them.

    ``points`` has the columns seed, load, publishing, matching, model, alpha, predicted and actual;
    ``by_setting`` and ``by_skewness`` have errors over groups of them. ``document`` is the study as
    plain data: paper_settings, choices, notes, plan, models and claims.
    """

    title: str
    points: pd.DataFrame
    by_setting: pd.DataFrame
    by_skewness: pd.DataFrame
    document: Mapping[str, Any]


def render_reproduction(study: Reproduction) -> str:
    """The page as HTML text."""
    loads = list(dict.fromkeys(study.by_setting["load"]))
    document = study.document
    return fill(
        "reproduction.html.jinja",
        title=study.title,
        loads=[_load(study, load) for load in loads],
        claims=document["claims"],
        models=document["models"],
        paper=document["paper_settings"],
        plan=document["plan"],
        systems=wording.plural(document["plan"]["systems"], "random system"),
        choices=[*document["choices"], *document["notes"]],
        points=len(study.points),
        style=asset("page.css") + asset("reproduction.css"),
    )


def write_reproduction(study: Reproduction, path: str | Path) -> Path:
    """Write the page to a file, whole or not at all; answers where it is."""
    target = Path(path)
    write_file(target, render_reproduction(study).encode("utf-8"))
    return target


def _load(study: Reproduction, load: str) -> dict[str, Any]:
    errors = study.by_setting[study.by_setting["load"] == load]
    precise = study.points[(study.points["load"] == load) & (study.points["alpha"] == 1.0)]
    models = list(dict.fromkeys(errors["model"]))
    return {
        "name": load,
        "utilisation": float(precise["utilisation"].iloc[0]),
        "models": models,
        "rows": _rows(errors, models),
        "plots": {model: _plots(precise[precise["model"] == model], model) for model in models},
        "skewness": _skewness(study.by_skewness, load),
    }


def _rows(errors: pd.DataFrame, models: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each setting, with the errors of every model."""
    found = []
    for setting, group in errors.groupby(["publishing", "matching"], sort=False):
        by_model = {row["model"]: row for row in group.to_dict("records")}
        found.append(
            {
                "setting": " / ".join(setting),
                "noise": float(group["noise"].iloc[0]),
                "errors": [by_model[model] for model in models],
            }
        )
    return found


def _plots(points: pd.DataFrame, model: str) -> list[tuple[str, str]]:
    found = []
    for setting, group in points.groupby(["publishing", "matching"], sort=False):
        name = " / ".join(setting)
        clouds = {
            f"system {seed}": list(zip(each["predicted"], each["actual"], strict=True))
            for seed, each in group.groupby("seed", sort=False)
        }
        title = f"{model}, {name}: predicted against actual on-time shares"
        found.append((name, figures.scatter(title, clouds, model)))
    return found


def _skewness(by_skewness: pd.DataFrame, load: str) -> str | None:
    rows = by_skewness[by_skewness["load"] == load]
    if rows["alpha"].nunique() < 2:
        return None
    curves = {
        str(model): list(zip(each["alpha"], each["mean_absolute"], strict=True))
        for model, each in rows.groupby("model", sort=False)
    }
    title = f"mean absolute error against skewness, {load} load"
    return figures.lines(title, curves, "skewness α", "mean absolute error")
