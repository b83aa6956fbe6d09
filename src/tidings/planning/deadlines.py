"""The shortest lifetimes that subscribers can be promised, at given on-time shares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.errors import InvalidInputError
from tidings.model.arrays import Floats
from tidings.model.json_text import plain
from tidings.model.laws import Deterministic
from tidings.model.outcome import Outcome
from tidings.model.progress import Progress
from tidings.model.shown import Shown
from tidings.model.system import System
from tidings.planning.change_kinds import Change
from tidings.planning.changes import changed
from tidings.planning.choices import ALL
from tidings.planning.evidence import (
    MEETS,
    MISSES,
    OPEN,
    Play,
    Target,
    better,
    errors,
    foretell,
    played,
    surely_reached,
)
from tidings.planning.evidence import verdict as judged

LEVELS = (0.95, 0.99, 0.999)
CLOSE = 1e-3  # relative: how near the shortest lifetime is to that given, which is the longer one
LEAST_S, MOST_STEPS = 1e-6, 60
ROUNDING = 1e-9  # of a share: less is no difference between a share and a level
# Promises are made longer by steps that double, so often, and threefold at most; at once threefold
# where a simulated share is as far short as this.
FIRST_STEP, MOST_PLAYED, LONGEST, FAR_SHORT = 0.01, 8, 3.0, 0.02


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Deadlines(Shown):
    """By subscriber and level, the shortest lifetime; infinite where no lifetime is long enough."""

    _table = "table"

    table: pd.DataFrame  # subscriber, broker, best (its share if nothing expired), one for a level
    levels: tuple[float, ...]
    verdicts: tuple[str, ...]  # of each level: whether everybody can be promised it

    def columns(self) -> tuple[str, ...]:
        """Name the columns that are shown: a time for each level."""
        return ("subscriber", *map(column, self.levels), "broker", "best")

    @property
    def verdict(self) -> str:
        """Whether everybody can be promised every level."""
        return next((each for each in (MISSES, OPEN) if each in self.verdicts), MEETS)

    @property
    def possible(self) -> bool:
        """Whether everybody can be promised every level, as far as there is evidence."""
        return self.verdict == MEETS

    def to_document(self) -> dict[str, Any]:
        """Give the lifetimes as plain data; null where none is long enough."""
        document = {
            "levels": self.levels,
            "verdicts": self.verdicts,
            "possible": self.possible,
            "subscribers": self.table.to_dict("records"),
        }
        return dict(plain(document))


def column(level: float) -> str:
    """Name the column of a level: ``p99.9_s``.

    >>> column(0.999)
    'p99.9_s'
    """
    return f"p{100 * level:g}_s"


def _is_share(level: object) -> bool:
    return isinstance(level, int | float) and 0.0 < level < 1.0


def shortest_lifetimes(
    system: System,
    levels: Sequence[float] = LEVELS,
    *,
    play: Play | None = None,
    progress: Progress = lambda _: None,
) -> Deadlines:
    """Find per subscriber the least age, in seconds, that this share of its events stays below.

    Everybody's own lifetime is moved at once, for it concerns nobody else, by bisection from the
    predicted delay quantiles: the time given meets the level by prediction, one shorter by
    ``CLOSE`` does not. Promises that are not sure to be kept are made longer, by ever longer steps;
    with ``play`` those that the prediction leaves open are played through.
    """
    if not levels or any(not _is_share(level) for level in levels):
        raise InvalidInputError(f"levels are {list(levels)}; wants shares between 0 and 1")
    endless = changed(system, [Change("lifetime", ALL)])
    progress("without lifetimes")
    best = foretell(endless)
    table = best.subscribers[["subscriber", "broker", "on_time"]].rename(
        columns={"on_time": "best"}
    )
    guess_s = np.nan_to_num(best.subscribers["delay_p99_s"].to_numpy(), nan=1.0)
    share = best.subscribers["on_time"].to_numpy()
    verdicts: dict[float, str] = {}
    times_s = np.zeros_like(guess_s)
    for number, level in enumerate(sorted(levels), start=1):
        which = f"{100 * level:g} % ({number} of {len(levels)} levels)"
        wanted = level - ROUNDING
        reachable = share >= wanted
        surely_missed = not (share + errors(best) >= wanted).all()

        def shares(times_s: Floats, which: str = which) -> Floats:
            progress(f"{which}, about {np.median(times_s):.3g} s")
            outcome = foretell(promised(endless, times_s))
            on_time: Floats = outcome.subscribers["on_time"].to_numpy()
            return on_time

        least_s = _least(shares, wanted, np.maximum(guess_s, LEAST_S), reachable)
        times_s = np.maximum(least_s, times_s)  # a lower level may have been made longer
        verdict = OPEN
        if OPEN not in verdicts.values():  # who gets too little for a lower one does for this
            progress(f"{which}, proved")
            times_s, verdict = _kept(endless, wanted, times_s, play)
        verdicts[level] = MISSES if surely_missed else verdict
        table[column(level)] = times_s
    return Deadlines(
        table=table[[*table.columns[:3], *map(column, levels)]].reset_index(drop=True),
        levels=tuple(levels),
        verdicts=tuple(verdicts[level] for level in levels),
    )


def _kept(system: System, level: float, times_s: Floats, play: Play | None) -> tuple[Floats, str]:
    """Lengthen times, in seconds, until all are surely long enough; tell whether all of them are.

    If they never are, give those that were tried last.
    """
    possible = np.isfinite(times_s)
    if not possible.any():
        return times_s, OPEN

    def tried(times_s: Floats) -> tuple[str, Outcome]:
        plan = _asking(promised(system, times_s), level, possible)
        predicted, seen = foretell(plan), None
        verdict = judged(plan, Target(), predicted)
        if play is not None and verdict == OPEN:
            seen = played(plan, Target(), predicted, play)
            verdict = judged(plan, Target(), predicted, seen)
        return verdict, predicted if seen is None else better(predicted, seen)

    longer_s, step = times_s, FIRST_STEP
    verdict, seen = tried(longer_s)
    short = possible & ~surely_reached(seen, level)
    if (seen.subscribers["on_time"].to_numpy()[short] < level - FAR_SHORT).any():
        longest = np.where(short, LONGEST * times_s, times_s)
        best, _ = tried(longest)
        if best != MEETS:
            longer_s, verdict, short = longest, best, np.zeros_like(short)
    for _ in range(MOST_PLAYED - 1):
        if verdict == MEETS or not short.any():
            break
        longer_s, step = np.where(short, longer_s * (1.0 + step), longer_s), 2.0 * step
        verdict, seen = tried(longer_s)
        short = possible & ~surely_reached(seen, level)
    # Longer times were not tried.
    return longer_s, MEETS if verdict == MEETS and possible.all() else OPEN


def _asking(system: System, level: float, possible: NDArray[np.bool_]) -> System:
    """Set a level as the target of those subscribers that can be promised it."""
    own = (
        replace(each, target=level if can else None)
        for each, can in zip(system.subscribers, possible, strict=True)
    )
    return replace(system, subscribers=tuple(own))


def promised(system: System, times_s: Floats) -> System:
    """Set these lifetimes of the subscribers, in seconds; infinite: none."""
    own = tuple(
        replace(each, lifetime=Deterministic(value_s=float(time_s)) if time_s < np.inf else None)
        for each, time_s in zip(system.subscribers, times_s, strict=True)
    )
    return replace(system, subscribers=own)


def _least(
    shares: Callable[[Floats], Floats], level: float, guess_s: Floats, reachable: NDArray[np.bool_]
) -> Floats:
    """Find the least times, in seconds, at which shares reach a level; infinite where never.

    The search is for all subscribers at once.
    """
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
