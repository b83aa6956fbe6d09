"""How sure a prediction is, given how sure the parameters are that it was made from.

First-order propagation: each parameter θ with standard error s is moved by s up and down (as far as
it can be) and the system predicted again; with independent parameters

    se(f)² = Σ (s · (f(θ_high) − f(θ_low))/(θ_high − θ_low))².

Parameters that concern one subscriber each, as those of its own link, are moved together: nobody
else's share depends on them. Correlation between parameters is not known and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidings.model.record_tables import names
from tidings.model.system import System
from tidings.model.uncertainty import Uncertain, uncertain_parameters, with_values

Floats = NDArray[np.float64]
# What is predicted again: by name a number for every subscriber.
Predict = Callable[[System], dict[str, Floats]]
Progress = Callable[[str], None]

BATCHES = 8  # parts of drawn contents that are compared

ASSUMED = (
    "standard errors from those of the parameters, to first order, as if these were independent; "
    "how often contents are published is taken as known"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBars:
    """Standard errors of predicted numbers, and how they came about."""

    errors: dict[str, Floats]  # by name of the number, a standard error for every subscriber
    parameters: int
    predictions: int  # that it took
    left_out: tuple[str, ...]  # paths whose influence is not known


def groups(system: System) -> list[tuple[Uncertain, ...]]:
    """Parameters to be moved together: each alone, those of single subscribers all at once."""
    alone: list[tuple[Uncertain, ...]] = []
    by_field: dict[str, list[Uncertain]] = {}
    for one in uncertain_parameters(system)[0]:
        if one.section == "subscribers":
            by_field.setdefault(one.field, []).append(one)
        else:
            alone.append((one,))
    return alone + [tuple(group) for group in by_field.values()]


def error_bars(system: System, predict: Predict, progress: Progress) -> ErrorBars:
    """Standard errors of all that ``predict`` gives, by two predictions for each parameter."""
    moved = groups(system)
    place_of = {name: index for index, name in enumerate(names(system.subscribers))}
    squares: dict[str, Floats] = {}
    for number, group in enumerate(moved):
        progress(f"error bars, {number} of {len(moved)}")
        low = predict(with_values(system, {one: one.low for one in group}))
        high = predict(with_values(system, {one: one.high for one in group}))
        scale = _scale(group, place_of)
        for name, value in low.items():
            change = (high[name] - value) * scale
            # A number that does not exist at either end cannot be told to vary.
            squares[name] = squares.get(name, 0.0) + np.nan_to_num(change) ** 2
    return ErrorBars(
        errors={name: np.sqrt(square) for name, square in squares.items()},
        parameters=sum(len(group) for group in moved),
        predictions=2 * len(moved),
        left_out=tuple(uncertain_parameters(system)[1]),
    )


def batch_errors(predict_batch: Callable[[int, int], dict[str, Floats]]) -> dict[str, Floats]:
    """Standard errors from drawn contents: the spread of predictions from parts of the draws.

    ``predict_batch(k, n)`` predicts from the k-th of n parts; the mean of n parts varies by the
    root of n less than they do.
    """
    found = [predict_batch(part, BATCHES) for part in range(BATCHES)]
    errors: dict[str, Floats] = {}
    for name in found[0]:
        values = np.stack([each[name] for each in found])
        known = np.isfinite(values).sum(axis=0)
        mean = np.nansum(values, axis=0) / np.maximum(known, 1)
        square = np.nansum((values - mean) ** 2, axis=0) / np.maximum(known - 1, 1)
        errors[name] = np.where(known > 1, np.sqrt(square / np.maximum(known, 1)), np.nan)
    return errors


def together(*parts: dict[str, Floats]) -> dict[str, Floats]:
    """Independent errors of the same numbers added up: the root of the sum of their squares."""
    names_of = dict.fromkeys(name for part in parts for name in part)
    return {
        name: np.sqrt(sum(np.square(part[name]) for part in parts if name in part))
        for name in names_of
    }


def _scale(group: Sequence[Uncertain], place_of: dict[str, int]) -> Floats:
    """s/(θ_high − θ_low) by subscriber: the same for all, or that of each one's own parameter."""
    scales = np.array([one.standard_error / (one.high - one.low) for one in group])
    if group[0].section != "subscribers":
        return np.broadcast_to(scales, (len(place_of),))
    found = np.zeros(len(place_of))
    found[[place_of[one.owner] for one in group]] = scales
    return found
