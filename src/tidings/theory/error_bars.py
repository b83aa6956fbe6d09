"""How sure a prediction is, given how sure the parameters are that it was made from.

First-order propagation: each parameter θ with standard error s is moved by s up and down (as far as
it can be) and the system predicted again; with independent parameters

    se(f)² = Σ (s · (f(θ_high) − f(θ_low))/(θ_high − θ_low))².

Parameters that concern one subscriber each, as those of its own link, are moved together: nobody
else's share depends on them. A number that is known but not at both ends, or is there that of other
streams, as the mean delay where one standard error overloads a broker on the way of some of them,
has an infinite error. Correlation between parameters is not known and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tidings.model.record_tables import names
from tidings.model.system import System
from tidings.model.uncertainty import Uncertain, uncertain_parameters, with_values

Floats = NDArray[np.float64]
Progress = Callable[[str], None]

LOST_STREAMS = "lost_streams"  # of those each subscriber wants, lost to overload: how many
BATCHES = 8  # parts of drawn contents that are compared

ASSUMED = (
    "standard errors from those of the parameters, to first order, as if these were independent; "
    "how often contents are published is taken as known, and delays of links not to change waits"
)


class Numbers(NamedTuple):
    """What error bars are given for: by name a number for every subscriber, or every broker."""

    subscribers: dict[str, Floats]
    brokers: dict[str, Floats]


# What is predicted again, of another system; whether the queues of this one are kept.
Predict = Callable[[System, bool], Numbers]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBars:
    """Standard errors of predicted numbers, and how they came about."""

    errors: Numbers
    parameters: int
    predictions: int  # that it took
    left_out: tuple[str, ...]  # paths whose influence is not known
    overloading: dict[int, str]  # brokers that one standard error overloads or not, the first path


def groups(
    system: System, moves: Callable[[Uncertain], bool] = lambda _: True
) -> list[tuple[Uncertain, ...]]:
    """Parameters to be moved together: each alone, those of single subscribers all at once.

    ``moves`` says whether anything depends on a parameter.
    """
    alone: list[tuple[Uncertain, ...]] = []
    by_field: dict[str, list[Uncertain]] = {}
    for one in filter(moves, uncertain_parameters(system)[0]):
        if one.section == "subscribers":
            by_field.setdefault(one.field, []).append(one)
        else:
            alone.append((one,))
    return alone + [tuple(group) for group in by_field.values()]


def error_bars(
    system: System,
    known: Numbers,
    moved: Sequence[tuple[Uncertain, ...]],
    predict: Predict,
    progress: Progress,
) -> ErrorBars:
    """Standard errors of what is ``known`` of a system, by two predictions for each group.

    One where an end is the value itself, as of a link that loses nothing.
    """
    place_of = {name: index for index, name in enumerate(names(system.subscribers))}
    squares = Numbers(
        *(
            {name: np.where(np.isnan(each), np.nan, 0.0) for name, each in part.items()}
            for part in known
        )
    )
    overloading: dict[int, str] = {}
    predictions = 0
    for number, group in enumerate(moved):
        progress(f"error bars, {number} of {len(moved)}")
        ends = []
        for values in ({one: one.low for one in group}, {one: one.high for one in group}):
            if all(one.value == value for one, value in values.items()):
                ends.append(known)
                continue
            queues_stay = all(one.field.endswith("delay") for one in group)
            ends.append(predict(with_values(system, values), queues_stay))
            predictions += 1
        _add(squares.subscribers, [end.subscribers for end in ends], _scale(group, place_of))
        for end in ends:
            others = end.subscribers[LOST_STREAMS] != known.subscribers[LOST_STREAMS]
            mean = squares.subscribers["delay_mean_s"]
            mean[others & ~np.isnan(mean)] = np.inf
        if group[0].section == "subscribers":
            continue  # brokers do not depend on them
        _add(squares.brokers, [end.brokers for end in ends], _scale(group, {"": 0}))
        for broker in np.flatnonzero(np.isinf(squares.brokers["wait_mean_s"])).tolist():
            overloading.setdefault(broker, group[0].path)
    return ErrorBars(
        errors=Numbers(
            *({name: np.sqrt(square) for name, square in part.items()} for part in squares)
        ),
        parameters=sum(len(group) for group in moved),
        predictions=predictions,
        left_out=tuple(uncertain_parameters(system)[1]),
        overloading=overloading,
    )


def _add(squares: dict[str, Floats], ends: Sequence[dict[str, Floats]], scale: Floats) -> None:
    """Add what the change between two ends makes of every number's squared error."""
    low, high = ends
    for name, square in squares.items():
        with np.errstate(invalid="ignore"):
            moved = (scale > 0.0) & (high[name] != low[name])  # infinite at both ends: surely
            change = np.where(moved, (high[name] - low[name]) * scale, 0.0)
        unknown = np.isnan(change) & ~np.isnan(square)
        square += np.where(unknown, np.inf, change**2)


def batch_errors(predict_batch: Callable[[int, int], Numbers]) -> Numbers:
    """Standard errors from drawn contents: the spread of predictions from parts of the draws.

    ``predict_batch(k, n)`` predicts from the k-th of n parts; the mean of n parts varies by the
    root of n less than they do.
    """
    found = [predict_batch(part, BATCHES) for part in range(BATCHES)]
    return Numbers(
        *(
            {name: _spread(np.stack([part[name] for part in parts])) for name in parts[0]}
            for parts in zip(*found, strict=True)
        )
    )


def _spread(values: Floats) -> Floats:
    """The standard error of the mean over parts, [part, number]; NaN where fewer than two know."""
    known = np.isfinite(values).sum(axis=0)
    finite = np.where(np.isfinite(values), values, np.nan)
    mean = np.nansum(finite, axis=0) / np.maximum(known, 1)
    square = np.nansum((finite - mean) ** 2, axis=0) / np.maximum(known - 1, 1)
    return np.where(known > 1, np.sqrt(square / np.maximum(known, 1)), np.nan)


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
    found: Floats = np.zeros(len(place_of))
    found[[place_of[one.owner] for one in group]] = scales
    return found
