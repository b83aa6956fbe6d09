"""What is carried over from old parts of a store, so that adding a new one does not read them.

Let S(X) be the statistics of periods of the changes X, and s those that still stand at the end of X
(:mod:`tidings.characterisation.count.standing`). For later changes Y

    S(X \N{UNION} Y) = [S(X) \N{MINUS SIGN} S(s)] + S(s \N{UNION} Y),

so that the bracket, which is what is over, and the rows s are all that has to be kept.
Subscriptions that have not ended are kept as rows for those who count events by them, and all steps
so far as a statistic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.characterisation.count.periods import PERIODS, table_of
from tidings.characterisation.count.standing import STANDING, standing_states, standing_steps
from tidings.characterisation.count.store import (
    CHANGES,
    CarriedOver,
    Catalogue,
    StorePart,
    counted_subscriptions,
    extremes,
    load_partial,
    new_folder_name,
    save_partial,
    save_rows,
    stretches_of,
    window_of,
)
from tidings.characterisation.statistics import COUNTS, Partial, difference, merge_rows
from tidings.traces.actions import bring_here
from tidings.traces.window import TraceWindow

_ROWS, _STEPS = "standing", "steps"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastChanges:
    """All that a store knows of changes: what is carried, and the parts after that."""

    session: SparkSession
    store: Path
    carried: CarriedOver | None
    parts: Sequence[StorePart]  # later than what is carried

    def steps(self) -> DataFrame | None:
        """Read the steps of subscriptions that may matter to later events; None: there are none."""
        changes = self._changes(self.parts, "subscriptions")
        return self._together([*self._standing(_STEPS), *changes])

    def subscriptions(self) -> pd.DataFrame | None:
        """Read the counts of all steps of subscriptions so far."""
        return counted_subscriptions(self.store, self.parts, self.carried)

    def periods(self) -> dict[str, pd.DataFrame]:
        """Count periods of components and peers, over all changes so far."""
        return {
            name: merge_rows(name, frames) for name in PERIODS if (frames := self._counted(name))
        }

    def states(self, at_ns: int) -> DataFrame | None:
        """Find the states of components at a moment, as if changed then.

        None where nobody watched until that moment.
        """
        stretches = self._stretches()
        if not stretches or stretches[-1][0].until_ns != at_ns:
            return None
        window, stands, parts = stretches[-1]
        changes = self._together(self._rows("states", stands, parts))
        if changes is None:
            return None
        return standing_states(changes, window).withColumn("at_ns", F.lit(at_ns))

    def carry(self, margin_s: float) -> CarriedOver:
        """Write down what later parts need of all this; gives where."""
        stretches = self._stretches()
        (window, _, _), folder = stretches[-1], new_folder_name()
        over, rows = {}, {}
        for name, stand in STANDING.items():
            *before, last = self._counted(name) or [None]
            changes = self._together(self._rows(name, *stretches[-1][1:]))
            if last is None or changes is None:
                if last is not None:
                    over[name] = merge_rows(name, [*before, last])
                continue
            rows[name] = stand(changes, window)
            still = bring_here(PERIODS[name](rows[name], window), name)
            over[name] = merge_rows(name, [*before, _without(name, last, still)])
        steps = self.steps()
        if steps is not None:
            rows[_STEPS] = standing_steps(steps, window.until_ns - round(margin_s * 1e9))
        counted = self.subscriptions()
        if counted is not None:
            over["subscriptions"] = counted
        save_partial(self.store / folder, Partial(tables=over))
        save_rows(self.store / folder / _ROWS, rows)
        tables = [*(self.carried.tables if self.carried else ()), *_tables_of(self.parts)]
        return CarriedOver(
            folder=folder,
            from_ns=window.from_ns,
            until_ns=window.until_ns,
            tables=tuple(dict.fromkeys(tables)),
        )

    def _counted(self, name: str) -> list[pd.DataFrame]:
        """Count periods: those that are over, then those of each time without a gap.

        The last table is that of the last such time.
        """
        frames = []
        if self.carried is not None:
            known = load_partial(self.store / self.carried.folder, only=name).tables
            frames += [known[name]] if name in known else []
        for window, stands, parts in self._stretches():
            changes = self._together(self._rows(name, stands, parts))
            if changes is not None:
                frames.append(bring_here(PERIODS[name](changes, window), name))
        return frames

    def _stretches(self) -> list[tuple[TraceWindow, bool, Sequence[StorePart]]]:
        """List the times without a gap: when, whether what is carried stands in it, which parts."""
        later = stretches_of(self.parts) if self.parts else []
        stretches: list[tuple[TraceWindow, bool, Sequence[StorePart]]] = [
            (window_of(stretch), False, stretch) for stretch in later
        ]
        if self.carried is None:
            return stretches
        begin_ns, until_ns = self.carried.from_ns, self.carried.until_ns
        if not later or later[0][0].from_ns != until_ns:
            return [(TraceWindow(from_ns=begin_ns, until_ns=until_ns), True, ()), *stretches]
        window = TraceWindow(from_ns=begin_ns, until_ns=later[0][-1].until_ns)
        return [(window, True, later[0]), *stretches[1:]]

    def _rows(self, name: str, stands: bool, parts: Sequence[StorePart]) -> list[DataFrame]:
        return [*(self._standing(name) if stands else ()), *self._changes(parts, table_of(name))]

    def _standing(self, name: str) -> list[DataFrame]:
        if self.carried is None:
            return []
        place = self.store / self.carried.folder / _ROWS / name
        return [self.session.read.parquet(f"file://{place.resolve()}")] if place.exists() else []

    def _changes(self, parts: Sequence[StorePart], table: str) -> list[DataFrame]:
        places = [self.store / part.folder / CHANGES / table for part in parts]
        kept = [f"file://{place.resolve()}" for place in places if place.exists()]
        return [self.session.read.parquet(*kept)] if kept else []

    def _together(self, frames: Sequence[DataFrame]) -> DataFrame | None:
        if not frames:
            return None
        return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)


def down_since(store: Path, catalogue: Catalogue) -> dict[str, int]:
    """Find the components that are down at the end of a store, and since when, in nanoseconds.

    Read here, without Spark: of a store that is carried on, these are the changes of a few parts.
    """
    parts = catalogue.uncarried(catalogue.parts)
    latest = stretches_of(parts)[-1] if parts else []
    places = [store / part.folder / CHANGES / "states" for part in latest]
    carried = catalogue.carried
    if carried is not None and (not latest or latest[0].from_ns == carried.until_ns):
        places.insert(0, store / carried.folder / _ROWS / "states")
    files = [file for place in places for file in sorted(place.glob("*.parquet"))]
    if not files:
        return {}
    rows = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    known = rows["component"].fillna("").str.strip() != ""
    rows = rows[known & rows["state"].isin(["up", "down"]) & (rows["at_ns"] >= 0)]
    rows = rows.sort_values(["component", "at_ns", "state"])
    begins = rows[rows["state"] != rows.groupby("component")["state"].shift()]
    last = begins.groupby("component").last()
    down = last[last["state"] == "down"]
    return {str(name): int(at_ns) for name, at_ns in down["at_ns"].items()}


def is_in_order(
    store: Path, parts: Sequence[StorePart], carried: CarriedOver | None = None
) -> bool:
    """Test whether all changes that parts keep lie in their own time; before the first, any may."""
    until_ns = None if carried is None else carried.until_ns
    for part in parts:
        follows, until_ns = part.from_ns == until_ns, part.until_ns
        for place in sorted((store / part.folder / CHANGES).glob("*")):
            for least, most in extremes(place, "at_ns"):
                if most >= part.until_ns or (follows and least < part.from_ns):
                    return False
    return True


def _tables_of(parts: Sequence[StorePart]) -> list[str]:
    return [name for part in parts for name in part.tables]


def _without(name: str, whole: pd.DataFrame, part: pd.DataFrame) -> pd.DataFrame:
    """Subtract a part from a whole statistic; each cell is wholly in the part or wholly outside."""
    rest = difference(name, whole, part)
    counts = rest[[column for column in COUNTS if column in rest.columns]]
    return rest[(counts.fillna(0) != 0).any(axis="columns")].reset_index(drop=True)
