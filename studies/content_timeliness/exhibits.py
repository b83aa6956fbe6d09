"""The content-timeliness experiments as a study: claims, tables side by side, scatter plots."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from studies.content_timeliness.claims import findings
from studies.content_timeliness.experiment import LOADS, Results
from studies.content_timeliness.random_systems import CHOICES, PAPER
from tidings.model.study import Curves, Grid, Points, Scatter, Section, Study
from tidings.prediction.published import QUEUE_MODELS

PHASES = (
    "A run is simulated several times, with other phases of its publishers, and its shares are "
    "taken over all of them: publishers of equal period keep their phases for ever, and one phase "
    "alone says little of a model. With --seeds 1 --duration 10000s it is one run, as in the paper."
)
_READING = (
    "Settings are publishing interval / matching. Noise is the mean absolute error that a perfect "
    "prediction would show, because the simulation is a sample. Signed errors are predicted minus "
    "actual; at or below is the share of subscribers whose prediction is at most the actual share."
)

Row = Mapping[str, Any]


def study(results: Results) -> Study:
    """The experiments, ready to be shown."""
    plan = results.plan
    return Study(
        paper="content-timeliness",
        title="Content-based timeliness: the paper's experiments, run again",
        summary=(
            f"{plan.systems} random {'system' if plan.systems == 1 else 'systems'}, each simulated "
            f"{plan.replications} times for {plan.duration_s:g} s in every setting and under every "
            f"load; {len(results.points):,} points. Errors are of on-time shares: 0.01 is one "
            "percentage point."
        ),
        settings=PAPER,
        choices=(*CHOICES, PHASES, *results.notes),
        findings=tuple(findings(results.points, results.by_setting, results.by_skewness)),
        sections=(_models(plan.models), *_loads(results), *_skewness(results)),
        tables={
            "points": results.points,
            "by_setting": results.by_setting,
            "by_skewness": results.by_skewness,
        },
        plan=plan.to_document(),
    )


def _models(models: tuple[str, ...]) -> Section:
    rows = tuple((name, QUEUE_MODELS[name]) for name in models)
    grid = Grid(title="", columns=("model", "what it assumes"), rows=rows, names=2)
    return Section(title="The models", exhibits=(grid,))


def _loads(results: Results) -> Iterator[Section]:
    for load, errors in results.by_setting.groupby("load", sort=False):
        busy = f"{load} load, busiest broker at {100 * LOADS[str(load)]:.0f} %"
        points = results.points
        precise = points[(points["load"] == load) & (points["alpha"] == 1.0)]
        yield Section(
            title=f"{busy[0].upper()}{busy[1:]}",
            words=_READING,
            exhibits=(
                side_by_side(errors, f"Mean absolute error (largest), {busy}", _size, noise=True),
                side_by_side(errors, f"Mean signed error (at or below), {load} load", _side),
                *_scatters(precise),
            ),
        )


def _size(row: Row) -> str:
    return f"{row['mean_absolute']:.4f} ({row['maximum']:.3f})"


def _side(row: Row) -> str:
    return f"{row['mean_signed']:+.4f} ({row['at_most_actual']:.2f})"


def side_by_side(
    errors: pd.DataFrame, title: str, write: Callable[[Row], str], *, noise: bool = False
) -> Grid:
    """A row for each setting, a column for each model."""
    models = list(dict.fromkeys(errors["model"]))
    rows = []
    for setting, group in errors.groupby(["publishing", "matching"], sort=False):
        by_model = {row["model"]: row for row in group.to_dict("records")}
        level = (f"{group['noise'].iloc[0]:.4f}",) if noise else ()
        rows.append((*map(str, setting), *level, *(write(by_model[model]) for model in models)))
    columns = ("publishing", "matching", *(("noise",) if noise else ()), *models)
    return Grid(title=title, columns=columns, rows=tuple(rows), names=2)


def _scatters(points: pd.DataFrame) -> Iterator[Scatter]:
    models = list(dict.fromkeys(points["model"]))
    for (model, *setting), group in points.groupby(["model", "publishing", "matching"], sort=False):
        clouds: dict[str, Points] = {
            f"system {seed}": tuple(zip(each["predicted"], each["actual"], strict=True))
            for seed, each in group.groupby("seed", sort=False)
        }
        yield Scatter(
            title=f"{model}: {' / '.join(setting)}", clouds=clouds, series=models.index(model)
        )


def _skewness(results: Results) -> Iterator[Section]:
    errors = results.by_skewness
    if errors["alpha"].nunique() < 2:
        return
    models = list(dict.fromkeys(errors["model"]))
    grouped = errors.pivot_table(
        index=["load", "alpha"], columns="model", values="mean_absolute", sort=False
    )
    rows = tuple(
        (str(load), f"{alpha:g}", *(f"{values[model]:.4f}" for model in models))
        for (load, alpha), values in grouped.iterrows()
    )
    grid = Grid(
        title="Mean absolute error from contents C^α",
        columns=("load", "α", *models),
        rows=rows,
        caption="publishing and matching exponential",
    )
    plots = (
        Curves(
            title=f"{load} load",
            lines={
                str(model): tuple(zip(each["alpha"], each["mean_absolute"], strict=True))
                for model, each in group.groupby("model", sort=False)
            },
            x_label="skewness α",
            y_label="mean absolute error",
        )
        for load, group in errors.groupby("load", sort=False)
    )
    yield Section(
        title="Predicted from skewed contents",
        words="The prediction believes in contents of probability C^α, normalised, while the "
        "simulation follows C. Everything is exponential here.",
        exhibits=(grid, *plots),
    )
