"""The shortest lifetimes that subscribers can be promised, at given on-time shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.errors import InvalidInputError
from tidings.model.laws import Deterministic
from tidings.model.outcome_files import plain
from tidings.model.system import System
from tidings.planning.changes import changed
from tidings.planning.scenarios import foretell
from tidings.prediction.predicting import predict

LEVELS = (0.95, 0.99, 0.999)
CLOSE = 1e-3  # relative: how near the shortest lifetime is to that given, which is the longer one
LEAST_S, MOST_STEPS = 1e-6, 60

Floats = NDArray[np.float64]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """By subscriber and level, the shortest lifetime; infinite where no lifetime is long enough."""

    table: pd.DataFrame  # subscriber, broker, best (its share if nothing expired), one for a level
    levels: tuple[float, ...]

    @property
    def possible(self) -> bool:
        """Whether everybody can be promised every level."""
        times = self.table[[column(level) for level in self.levels]].to_numpy()
        return bool(np.isfinite(times).all())

    def to_document(self) -> dict[str, Any]:
        """The lifetimes as plain data; null where none is long enough."""
        rows = self.table.to_dict("records")
        return dict(plain({"levels": self.levels, "possible": self.possible, "subscribers": rows}))


def column(level: float) -> str:
    """The column of a level: ``p99.9_s``.

    >>> column(0.999)
    'p99.9_s'
    """
    return f"p{100 * level:g}_s"


def shortest_lifetimes(
    system: System,
    levels: Sequence[float] = LEVELS,
    *,
    progress: Progress = lambda _: None,
) -> Deadlines:
    """For every subscriber the least age that this share of its events stays below, in seconds.

    Everybody's own lifetime is moved at once, for it concerns nobody else, by bisection from the
    predicted delay laws: the time given meets the level by prediction, one shorter by ``CLOSE``
    does not.
    """
    if any(not 0.0 < level < 1.0 for level in levels):
        raise InvalidInputError(f"levels are {list(levels)}; wants shares between 0 and 1")
    endless = changed(system, ["lifetime all none"])
    progress("without lifetimes")
    best = predict(endless, delays=True, error_bars=False)
    table = best.subscribers[["subscriber", "broker", "on_time"]].rename(
        columns={"on_time": "best"}
    )
    for level in levels:
        guess_s = np.nan_to_num(best.subscribers["delay_p99_s"].to_numpy(), nan=1.0)
        reachable = best.subscribers["on_time"].to_numpy() >= level

        def shares(times_s: Floats, level: float = level) -> Floats:
            progress(f"{100 * level:g} %, about {np.median(times_s):.3g} s")
            return _shares(endless, times_s)

        table[column(level)] = _least(shares, level, np.maximum(guess_s, LEAST_S), reachable)
    return Deadlines(table=table.reset_index(drop=True), levels=tuple(levels))


def _shares(system: System, times_s: Floats) -> Floats:
    own = tuple(
        replace(each, lifetime=Deterministic(value_s=float(time_s)))
        for each, time_s in zip(system.subscribers, times_s, strict=True)
    )
    found: Floats = foretell(replace(system, subscribers=own)).subscribers["on_time"].to_numpy()
    return found


def _least(
    shares: Callable[[Floats], Floats], level: float, guess_s: Floats, reachable: NDArray[np.bool_]
) -> Floats:
    """The least times at which shares reach a level, for all at once; infinite where never."""
    low, high = np.zeros_like(guess_s), np.full_like(guess_s, np.inf)
    at = guess_s.copy()
    for _ in range(MOST_STEPS):
        enough = shares(at) >= level
        high = np.where(enough, np.minimum(high, at), high)
        low = np.where(enough, low, np.maximum(low, at))
        open_ = reachable & ~(high <= np.maximum(low * (1 + CLOSE), LEAST_S))
        if not open_.any():
            break
        # Twice as long until it is enough, half until it is not, then between the two.
        between = np.where(low > 0.0, np.sqrt(low * np.where(np.isinf(high), 1.0, high)), high / 2)
        at = np.where(open_, np.where(np.isinf(high), 2 * low, between), at)
    return np.where(reachable, high, np.inf)
