"""New days added to a store of statistics, and the system that all of them together tell of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.characterisation.assembling import check_base
from tidings.characterisation.cells import BATCHES
from tidings.characterisation.collecting import statistics_of
from tidings.characterisation.connectivity import peer_periods
from tidings.characterisation.folding import asked_attributes
from tidings.characterisation.gathering import Decided, gather
from tidings.characterisation.job import NEEDED, Characterisation, check_tables, fit
from tidings.characterisation.partials import (
    Partial,
    batch_lengths_s,
    batches_of,
    in_stretch,
    merge_rows,
    merged,
    shifted,
)
from tidings.characterisation.seams import End, beginning_of, end_of, seam, settled
from tidings.characterisation.standing import wanted_throughout
from tidings.characterisation.states import state_periods
from tidings.characterisation.stays import stay_periods
from tidings.characterisation.store import (
    Catalogue,
    Part,
    Seam,
    load_partial,
    locked,
    new_folder_name,
    read_catalogue,
    save_partial,
    save_rows,
    write_catalogue,
)
from tidings.characterisation.stored_values import check_whole
from tidings.characterisation.subscribers import changed_subscribers, find_subscribers
from tidings.errors import InvalidTracesError, TidingsError
from tidings.model.progress import Progress
from tidings.model.system import System
from tidings.traces.actions import bring_here
from tidings.traces.places import require_tables
from tidings.traces.reading import Traces
from tidings.traces.window import TraceWindow

MARGIN_S = 600.0  # by default; longer than events travel
_BEGINNING, _END, _ROWS = "beginning", "end", "changes"
# Changes are few, and what one of them begins may last for many days: kept as they are.
_CHANGES = {
    "states": ("states", state_periods),
    "sessions": ("sessions", peer_periods),
    "stays": ("subscriptions", stay_periods),
}
_STEPS = ("subscribe", "unsubscribe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulated:
    """What :func:`tidings.characterisation.job.fit` asks of traces, for those of a whole store."""

    tables: tuple[str, ...]
    window: TraceWindow
    source: str
    notes: tuple[str, ...] = ()


def add_traces(
    traces: Traces,
    store: Path,
    *,
    base: System | None = None,
    settle_s: float = 0.0,
    margin_s: float | None = None,
    progress: Progress | None = None,
) -> None:
    """Count some traces and add them to a store; those of the same window are replaced.

    ``margin_s`` seconds at either end of every part are kept, so that events published in one part
    and received in the next are known; a store has one margin. ``settle_s`` leaves out the last
    seconds before every time at which nobody watched, as :func:`characterise` does.
    """
    tell = progress or (lambda stage: None)
    require_tables(traces.source, NEEDED, traces.tables)
    with locked(store, alone=True):
        found = read_catalogue(store) or Catalogue(margin_s=margin_s or MARGIN_S)
        if margin_s not in (None, found.margin_s):
            raise InvalidTracesError(
                f"{store} keeps {found.margin_s:g} s at the ends of its parts; got a margin of "
                f"{margin_s:g} s. Leave the margin out, or begin another store"
            )
        others = _others(found, traces, store)
        part = _count_part(traces, store, replace(found, parts=tuple(others)), base, tell)
        parts = tuple(sorted((*others, part), key=lambda each: each.from_ns))
        session = traces.tables["hops"].sparkSession
        work = _Work(session=session, store=store, parts=parts, tell=tell)
        write_catalogue(
            store,
            replace(
                found,
                parts=parts,
                settle_s=settle_s,
                seams=work.seams(found.seams, settle_s),
                periods=work.periods(),
            ),
        )


def characterise_store(store: Path, base: System | None = None) -> Characterisation:
    """What all parts of a store together tell: the system, the outcome, and how far to trust both.

    Needs no Spark: everything has been counted. A store may come from somebody else: what of it
    cannot be put together is refused, whatever it makes of the arithmetic.
    """
    if base is not None:
        check_base(base)
    with locked(store, alone=False):
        catalogue = read_catalogue(store)
        if catalogue is None or not catalogue.parts:
            raise InvalidTracesError(
                f"{store}: got no store; wants a folder to which traces were added"
            )
        try:
            return _characterised(store, catalogue, base)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as problem:
            if isinstance(problem, TidingsError):
                raise
            raise InvalidTracesError(
                f"{store}: got statistics that do not fit together "
                f"({type(problem).__name__}: {problem}); wants those that were counted: add the "
                "traces again"
            ) from problem


def _characterised(store: Path, catalogue: Catalogue, base: System | None) -> Characterisation:
    counted = _whole(store, catalogue)
    stretches = _stretches(catalogue.parts)
    tables = tuple(dict.fromkeys(name for part in catalogue.parts for name in part.tables))
    check_tables(str(store), tables, base)
    window = _window_of(catalogue.parts)
    measured = window.shortened(catalogue.settle_s)
    more_ns = round(catalogue.settle_s * 1e9) * (len(stretches) - 1)
    measured = replace(measured, unobserved_ns=measured.unobserved_ns + more_ns)
    _check_folding(counted, store, base, window)
    said = (
        []
        if len(stretches) == 1
        else [f"nobody watched between {len(stretches)} stretches of time"]
    )
    observed = Accumulated(tables=tables, window=window, source=str(store), notes=tuple(said))
    batches_s = _batches_s(catalogue.parts, stretches, catalogue.settle_s)
    seen = replace(statistics_of(counted), batches_s=batches_s)
    return fit(observed, seen, measured, base)


# ---- counting ------------------------------------------------------------------------------------


def _others(found: Catalogue, traces: Traces, store: Path) -> list[Part]:
    """The parts that stay; none of them may overlap with the new one."""
    new = traces.window
    others = [part for part in found.parts if part.window != new]
    for part in others:
        if part.from_ns < new.until_ns and new.from_ns < part.until_ns:
            raise InvalidTracesError(
                f"{traces.source} runs from {new.from_ns} to {new.until_ns} ns, and overlaps with "
                f"{part.source} in {store}, which runs from {part.from_ns} to {part.until_ns} ns; "
                "wants the same window, to replace it, or another time"
            )
    return others


def _count_part(
    traces: Traces, store: Path, found: Catalogue, base: System | None, tell: Progress
) -> Part:
    """Count some traces, and write what was counted and the rows at both ends."""
    known = _subscriptions(store, found.parts)
    before = [part for part in found.parts if part.until_ns <= traces.window.from_ns]
    steps = _steps_of(traces.tables["hops"].sparkSession, store, before)
    decided = Decided(every_link=True, subscriptions=known, steps=steps)
    counted = gather(traces, traces.window, tell, base, decided)
    _check_order(traces, counted, [part for part in found.parts if part not in before], store)
    tables = {name: frame for name, frame in counted.tables.items() if name not in _CHANGES}
    folder = new_folder_name()
    tell("keeping the ends")
    save_partial(store / folder, replace(counted, tables=tables))
    save_rows(store / folder / _BEGINNING, beginning_of(traces, counted, found.margin_s))
    save_rows(store / folder / _END, end_of(traces, counted, found.margin_s))
    kept = {table for table, _ in _CHANGES.values()} & traces.tables.keys()
    changes = {name: traces.tables[name] for name in sorted(kept)}
    if "subscriptions" in changes:
        changes["subscriptions"] = changes["subscriptions"].where(F.col("action").isin(*_STEPS))
    save_rows(store / folder / _ROWS, changes)
    return Part(
        folder=folder,
        from_ns=traces.window.from_ns,
        until_ns=traces.window.until_ns,
        source=traces.source,
        tables=tuple(traces.tables),
    )


def _subscriptions(store: Path, parts: Sequence[Part]) -> pd.DataFrame | None:
    """The steps of subscriptions of some parts, counted."""
    tables = [load_partial(store / part.folder, part.tables).tables for part in parts]
    found = [each["subscriptions"] for each in tables if "subscriptions" in each]
    return merge_rows("subscriptions", found) if found else None


def _steps_of(session: SparkSession, store: Path, parts: Sequence[Part]) -> DataFrame | None:
    """The steps of subscriptions that some parts have kept."""
    places = [store / part.folder / _ROWS / "subscriptions" for part in parts]
    kept = [f"file://{place.resolve()}" for place in places if place.exists()]
    return session.read.parquet(*kept) if kept else None


def _check_order(traces: Traces, counted: Partial, later: Sequence[Part], store: Path) -> None:
    """Raise where later parts were counted without knowing who was subscribed when they began."""
    steps = counted.tables.get("subscriptions")
    if steps is None:
        return
    for part in later:
        churners = load_partial(store / part.folder, part.tables).tables.get(
            "guests", steps.head(0)
        )
        met = set(churners["subscriber"]) & set(steps["subscriber"])
        met |= set(counted.tables["guests"]["subscriber"])
        if met:
            raise InvalidTracesError(
                f"{part.source} was added before {traces.source}, which is earlier and tells of "
                f"subscriptions of '{min(met)}', who comes and goes; wants the order of time: "
                "begin another store"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What is done with Spark on the rows that a store has kept."""

    session: SparkSession
    store: Path
    parts: Sequence[Part]
    tell: Progress

    def seams(self, known: Sequence[Seam], settle_s: float) -> tuple[Seam, ...]:
        """All seams between the parts; those that are known are not counted again."""
        old = {(each.before, each.after, each.settle_s): each for each in known}
        found = []
        for part, after in pairwise((*self.parts, None)):
            assert part is not None
            if after is not None and after.from_ns == part.until_ns:
                key: tuple[str, str | None, float] = (part.folder, after.folder, 0.0)
                found.append(old.get(key) or self._new_seam(part, after))
            elif settle_s:
                key = (part.folder, None, settle_s)
                found.append(old.get(key) or self._new_seam(part, None, settle_s))
        return tuple(found)

    def _new_seam(self, part: Part, after: Part | None, settle_s: float = 0.0) -> Seam:
        name = new_folder_name()

        def tell(stage: str) -> None:
            self.tell(f"the seam, {stage}")

        last = self._end(part, _END)
        if after is None:
            save_partial(self.store / name, settled(last, settle_s, tell))
            return Seam(folder=name, before=part.folder, settle_s=settle_s)
        save_partial(self.store / name, seam(last, self._end(after, _BEGINNING), tell))
        return Seam(folder=name, before=part.folder, after=after.folder)

    def _end(self, part: Part, which: str) -> End:
        place = self.store / part.folder
        so_far = [each for each in self.parts if each.from_ns <= part.from_ns]
        return End(
            tables=self._rows(place / which),
            window=part.window,
            counted=load_partial(place, part.tables),
            steps=_steps_of(self.session, self.store, so_far),
            subscriptions=_subscriptions(self.store, so_far),
        )

    def _rows(self, place: Path) -> dict[str, DataFrame]:
        return {
            each.name: self.session.read.parquet(f"file://{each.resolve()}")
            for each in sorted(place.iterdir())
        }

    def periods(self) -> str | None:
        """Periods of components and peers, counted anew over all changes; where they are."""
        tables = {}
        for name, (table, count) in _CHANGES.items():
            frames = []
            for stretch in _stretches(self.parts):
                places = [self.store / part.folder / _ROWS / table for part in stretch]
                kept = [f"file://{place.resolve()}" for place in places if place.exists()]
                if kept:
                    changes = self.session.read.parquet(*kept)
                    frames.append(bring_here(count(changes, _window_of(stretch)), name))
            if frames:
                tables[name] = merge_rows(name, frames)
        if not tables:
            return None
        folder = new_folder_name()
        save_partial(self.store / folder, Partial(tables=tables))
        return folder


# ---- putting together ----------------------------------------------------------------------------


def _stretches(parts: Sequence[Part]) -> list[list[Part]]:
    """Parts that follow each other without a gap, together."""
    found = [[parts[0]]]
    for before, part in pairwise(parts):
        if part.from_ns == before.until_ns:
            found[-1].append(part)
        else:
            found.append([part])
    return found


def _window_of(parts: Sequence[Part]) -> TraceWindow:
    """From the beginning of the first to the end of the last, and what of it nobody watched."""
    watched_ns = sum(part.until_ns - part.from_ns for part in parts)
    from_ns, until_ns = parts[0].from_ns, parts[-1].until_ns
    return TraceWindow(
        from_ns=from_ns, until_ns=until_ns, unobserved_ns=until_ns - from_ns - watched_ns
    )


def _batches_s(
    parts: Sequence[Part], stretches: Sequence[Sequence[Part]], settle_s: float
) -> tuple[float, ...]:
    """How many seconds each batch of all parts has, without what is left to settle."""
    last = {stretch[-1].folder for stretch in stretches}
    lengths_ns = [part.until_ns - part.from_ns for part in parts]
    counted_ns = [
        length - round(settle_s * 1e9) * (part.folder in last)
        for part, length in zip(parts, lengths_ns, strict=True)
    ]
    return batch_lengths_s(lengths_ns, counted_ns)


def _whole(store: Path, found: Catalogue) -> Partial:
    """The statistics of all parts, and of the seams between them, as one."""
    numbers = {part.folder: number for number, part in enumerate(found.parts)}
    stretch_of = {
        part.folder: number
        for number, stretch in enumerate(_stretches(found.parts))
        for part in stretch
    }
    owner: Mapping[str, str] = {
        **{part.folder: part.folder for part in found.parts},
        **{each.folder: each.before for each in found.seams},
    }
    tables = {part.folder: part.tables for part in found.parts}
    loaded = {folder: load_partial(store / folder, tables.get(folder)) for folder in owner}
    _check_columns(store, loaded)
    loaded |= _with_those_who_stayed(loaded, found.parts)
    partials = [
        in_stretch(shifted(loaded[folder], BATCHES * numbers[part]), stretch_of[part])
        for folder, part in owner.items()
    ]
    if found.periods is not None:
        every = {name for part in found.parts for name in part.tables}
        partials.append(load_partial(store / found.periods, every, periods=True))
    whole = merged(partials, batches_of([part.until_ns - part.from_ns for part in found.parts]))
    try:
        check_whole(whole.tables, _window_of(found.parts))
    except ValueError as problem:
        raise InvalidTracesError(
            f"{store}: its statistics cannot be ({problem}); add the traces again, to a new store"
        ) from problem
    return whole


def _check_columns(store: Path, loaded: Mapping[str, Partial]) -> None:
    """Raise where a table has other columns in one part than in another."""
    columns: dict[str, set[str]] = {}
    for folder, part in loaded.items():
        for name, table in part.tables.items():
            if columns.setdefault(name, set(table.columns)) != set(table.columns):
                raise InvalidTracesError(
                    f"{store / folder}: got the table {name} with other columns than in other "
                    "parts; wants the same: add the traces of that time again"
                )


def _with_those_who_stayed(
    loaded: Mapping[str, Partial], parts: Sequence[Part]
) -> dict[str, Partial]:
    """The parts, each with what those wanted in it who came or went in others only."""
    tables = [loaded[part.folder].tables for part in parts]
    steps = [each["subscriptions"] for each in tables if "subscriptions" in each]
    if not steps:
        return {}
    rows, window = merge_rows("subscriptions", steps), _window_of(parts)
    churners = set(changed_subscribers(rows, window))
    wants = {each.name: each.wants for each in find_subscribers(rows, None, window).subscribers}
    begun = rows[rows["action"] == "subscribe"].groupby("subscriber")["first_ns"].min()
    found = {}
    for part in parts:
        counted = loaded[part.folder]
        others = churners - set(counted.tables.get("guests", rows.head(0))["subscriber"])
        there = {n: wants[n] for n in sorted(others) if n in wants and begun[n] <= part.from_ns}
        found[part.folder] = wanted_throughout(counted, there)
    return found


def _check_folding(counted: Partial, store: Path, base: System | None, window: TraceWindow) -> None:
    """Raise where contents were told apart by less than filters ask for by now."""
    if counted.folded is None:
        return
    steps: pd.DataFrame | None = counted.tables.get("subscriptions")
    wanted = find_subscribers(steps, base, window).subscribers
    missing = sorted(set(asked_attributes(each.wants for each in wanted)) - set(counted.folded))
    if missing:
        raise InvalidTracesError(
            f"{store}: contents of an earlier part were told apart by {', '.join(counted.folded)} "
            f"alone, and filters now ask for {', '.join(missing)} too; add the earlier parts again"
        )
