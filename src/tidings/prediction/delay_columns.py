"""Delay quantiles of every subscriber, and their whole delay laws as rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidings.model.delay_grid import EDGES_S
from tidings.model.outcome import QUANTILES
from tidings.model.system import System
from tidings.prediction.audiences import Floats
from tidings.prediction.delay_tables import Mixtures, Tables, mixtures
from tidings.prediction.shares import Shares

_EDGES_S = EDGES_S[::2]
_ENDS = (0.001, 0.999)  # of the delivered events: the part of the law that is written down


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayColumns:
    """Quantiles by subscriber, and rows of the delay laws, as columns of result tables."""

    quantiles: dict[str, Floats]
    laws: dict[str, list[object]] = field(
        default_factory=lambda: {"subscriber": [], "delay_s": [], "arrived": []}
    )


def delay_columns(
    system: System, tables: Tables, results: list[Shares], *, whole_laws: bool
) -> DelayColumns:
    """Delays of what is delivered to every subscriber, in seconds; NaN where nothing is."""
    names = list(QUANTILES)
    found = DelayColumns(
        quantiles={name: np.full(len(system.subscribers), np.nan) for name in names}
    )
    asked = [*QUANTILES.values(), *(_ENDS if whole_laws else ())]
    for result in results:
        rows, mixed = _delivered(tables, result)
        if mixed is None:
            continue
        times_s = np.full((len(result.wanted), len(asked)), np.nan)
        times_s[rows] = mixed.quantiles(asked)
        for position, name in enumerate(names):
            mine = times_s[result.audience.filter_of, position]
            found.quantiles[name][result.audience.subscribers] = mine
        if whole_laws:
            _add_laws(found, system, result, (rows, mixed, times_s[:, len(names) :]))
    return found


def _add_laws(
    found: DelayColumns,
    system: System,
    result: Shares,
    mixed: tuple[NDArray[np.int64], Mixtures, Floats],
) -> None:
    rows, laws, ends_s = mixed
    known = {
        int(row): _law(result, int(row), laws.only(position), ends_s[row])
        for position, row in enumerate(rows)
    }
    members = zip(result.audience.subscribers, result.audience.filter_of, strict=True)
    for subscriber, which in members:
        if int(which) in known:
            times_s, arrived = known[int(which)]
            name = system.subscribers[int(subscriber)].name
            found.laws["subscriber"].extend([name] * times_s.size)
            found.laws["delay_s"].extend(times_s.tolist())
            found.laws["arrived"].extend(arrived.tolist())


def _law(result: Shares, row: int, law: Mixtures, ends_s: Floats) -> tuple[Floats, Floats]:
    """Delays, and the share of the events one filter wants that has arrived by then."""
    first, last = np.searchsorted(_EDGES_S, ends_s)
    edges_s = _EDGES_S[max(first - 1, 0) : last + 1]
    weights = result.wanted[row] / result.wanted[row].sum()
    lifetimes_s = np.unique(result.lifetimes_s[weights > 0])
    lifetimes_s = lifetimes_s[np.isfinite(lifetimes_s)]
    times_s: Floats = np.unique(np.concatenate([edges_s, lifetimes_s]))
    arrived: Floats = (weights @ result.delivered) * law.cdf(times_s[None, :])[0]
    if lifetimes_s.size == 1 and np.isfinite(result.lifetimes_s[weights > 0]).all():
        # All its events live equally long: the on-time share is a point of the law, known better.
        at_s, share = lifetimes_s[0], float(weights @ result.on_time)
        arrived = np.where(times_s < at_s, np.minimum(arrived, share), np.maximum(arrived, share))
        arrived[times_s == at_s] = share
    return times_s, arrived


def _delivered(tables: Tables, result: Shares) -> tuple[NDArray[np.int64], Mixtures | None]:
    """The filters that anything is delivered to, and the delay laws of what is."""
    reaching = result.delivered > 0.0
    weights = result.wanted[:, reaching] * result.delivered[reaching]
    rows = np.flatnonzero(weights.any(axis=1))
    if rows.size == 0:
        return rows, None
    stages = [result.stages[index] for index in np.flatnonzero(reaching)]
    return rows, mixtures(tables, stages, weights[rows], result.cuts(reaching))
