"""Count new days and add them to a store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.characterisation.count.carrying import PastChanges
from tidings.characterisation.count.gathering import Decided, gather
from tidings.characterisation.count.periods import (
    PERIODS,
    table_of,
)
from tidings.characterisation.count.reported import count_ends
from tidings.characterisation.count.seams import End, beginning_of, end_of, seam, settled
from tidings.characterisation.count.store import (
    CHANGES,
    Catalogue,
    Seam,
    StorePart,
    load_partial,
    locked,
    new_folder_name,
    read_catalogue,
    save_partial,
    save_rows,
    write_catalogue,
)
from tidings.characterisation.statistics import NEEDED, Partial
from tidings.errors import InvalidTracesError
from tidings.model.progress import Progress
from tidings.model.system import System
from tidings.model.units import moment
from tidings.traces.parsing_once import parsed_once
from tidings.traces.places import require_tables
from tidings.traces.reading import Traces

MARGIN_S = 600.0  # by default; longer than events travel
_BEGINNING, _END = "beginning", "end"
_STEPS = ("subscribe", "unsubscribe")


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
    seconds before every time at which nobody watched, as :func:`characterise` does. Where only a
    share of all events was recorded, it is the same in all parts of a store.
    """
    tell = progress or (lambda stage: None)
    require_tables(traces.source, NEEDED, traces.tables)
    with locked(store, alone=True):
        catalogue = read_catalogue(store) or Catalogue(
            margin_s=margin_s or MARGIN_S, sampled=traces.sampled
        )
        if margin_s not in (None, catalogue.margin_s):
            raise InvalidTracesError(
                f"{store} keeps {catalogue.margin_s:g} s at the ends of its parts, but "
                f"--margin is {margin_s:g} s. Leave --margin out, or start a new store"
            )
        others = _others(catalogue, traces, store)
        if others or catalogue.carried:
            check_sampled(traces.source, traces.sampled, store, catalogue)
        earlier = replace(catalogue, parts=tuple(others))
        with parsed_once(traces) as kept:
            part = _count_part(kept, store, earlier, base, tell)
        parts = tuple(sorted((*others, part), key=lambda each: each.from_ns))
        session = traces.tables["hops"].sparkSession
        whole = replace(catalogue, parts=parts, settle_s=settle_s, sampled=traces.sampled)
        work = _Work(session=session, store=store, catalogue=whole, tell=tell)
        write_catalogue(store, replace(whole, seams=work.seams(), periods=work.periods()))


def check_sampled(source: str, sampled: float, store: Path, catalogue: Catalogue) -> None:
    """Raise where another share of all events was recorded than in the parts of a store."""
    if sampled != catalogue.sampled:
        raise InvalidTracesError(
            f"{source}: {sampled:g} of all events were recorded, but {catalogue.sampled:g} of them "
            f"in the parts of {store}; wants traces of the same share, or a new store"
        )


def _others(catalogue: Catalogue, traces: Traces, store: Path) -> list[StorePart]:
    """List the parts that stay; raise if the new one overlaps any of them, or what is carried."""
    new, carried = traces.window, catalogue.carried
    if carried is not None and new.from_ns < carried.until_ns:
        raise InvalidTracesError(
            f"{traces.source} begins at {moment(new.from_ns)}, but the parts of {store} up to "
            f"{moment(carried.until_ns)} have been put together; add later traces, or use a new "
            "store"
        )
    others = [part for part in catalogue.parts if part.window != new]
    for part in others:
        if part.from_ns < new.until_ns and new.from_ns < part.until_ns:
            raise InvalidTracesError(
                f"{traces.source} ({moment(new.from_ns)} to {moment(new.until_ns)}) overlaps "
                f"{part.source} in {store} ({moment(part.from_ns)} to {moment(part.until_ns)}); "
                "to replace that part use exactly its window, otherwise one that does not overlap"
            )
    return others


def _count_part(
    traces: Traces, store: Path, catalogue: Catalogue, base: System | None, tell: Progress
) -> StorePart:
    """Count some traces, and write what was counted and the rows at both ends."""
    before = [part for part in catalogue.parts if part.until_ns <= traces.window.from_ns]
    session = traces.tables["hops"].sparkSession
    past = _past(session, store, catalogue, before)
    decided = Decided(
        every_link=True,
        subscriptions=_past(session, store, catalogue, catalogue.parts).subscriptions(),
        steps=past.steps(),
    )
    given, traces = traces, _with_states(traces, past)
    counted = gather(traces, traces.window, tell, base, decided)
    _check_order(traces, counted, [part for part in catalogue.parts if part not in before], store)
    tables = {name: frame for name, frame in counted.tables.items() if name not in PERIODS}
    if "levels" in traces.tables:
        tell("counters of queues")
        tables["levels"] = count_ends(traces)
    folder = new_folder_name()
    tell("keeping the ends")
    save_partial(store / folder, replace(counted, tables=tables))
    save_rows(store / folder / _BEGINNING, beginning_of(traces, counted, catalogue.margin_s))
    save_rows(store / folder / _END, end_of(traces, counted, catalogue.margin_s))
    # Changes are few, and what one of them begins may last for many days: kept as they are.
    kept = {of for of in map(table_of, PERIODS) if of in given.tables}
    changes = {name: given.tables[name] for name in sorted(kept)}
    if "subscriptions" in changes:
        changes["subscriptions"] = changes["subscriptions"].where(F.col("action").isin(*_STEPS))
    save_rows(store / folder / CHANGES, changes)
    return StorePart(
        folder=folder,
        from_ns=traces.window.from_ns,
        until_ns=traces.window.until_ns,
        source=traces.source,
        tables=tuple(given.tables),
    )


def _with_states(traces: Traces, past: PastChanges) -> Traces:
    """Add the states in which components were when the part began: outages may last."""
    before = past.states(traces.window.from_ns)
    if before is None:
        return traces
    own = traces.tables.get("states")
    states = before if own is None else own.unionByName(before, allowMissingColumns=True)
    return replace(traces, tables={**traces.tables, "states": states})


def _past(
    session: SparkSession, store: Path, catalogue: Catalogue, parts: Sequence[StorePart]
) -> PastChanges:
    """Make the record of changes in some parts, and in those that are carried."""
    return PastChanges(
        session=session,
        store=store,
        carried=catalogue.carried,
        parts=catalogue.uncarried(parts),
    )


def _check_order(traces: Traces, counted: Partial, later: Sequence[StorePart], store: Path) -> None:
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
                f"{part.source} was added before {traces.source}, which is earlier and "
                f"contains subscriptions of '{min(met)}', who subscribes and leaves; add "
                "parts in the order of time, to a new store"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What is done with Spark on the rows that a store has kept."""

    session: SparkSession
    store: Path
    catalogue: Catalogue
    tell: Progress

    def seams(self) -> tuple[Seam, ...]:
        """Give all seams between the parts; count those that are not known yet."""
        settle_s = self.catalogue.settle_s
        old = {(each.before, each.after, each.settle_s): each for each in self.catalogue.seams}
        seams = []
        for part, after in pairwise((*self.catalogue.parts, None)):
            assert part is not None
            if after is not None and after.from_ns == part.until_ns:
                key: tuple[str, str | None, float] = (part.folder, after.folder, 0.0)
                seams.append(old.get(key) or self._new_seam(part, after))
            elif settle_s:
                key = (part.folder, None, settle_s)
                seams.append(old.get(key) or self._new_seam(part, None, settle_s))
        return tuple(seams)

    def _new_seam(self, part: StorePart, after: StorePart | None, settle_s: float = 0.0) -> Seam:
        name = new_folder_name()

        def tell(stage: str) -> None:
            self.tell(f"the seam, {stage}")

        last = self._end(part, _END)
        if after is None:
            save_partial(self.store / name, settled(last, settle_s, tell))
            return Seam(folder=name, before=part.folder, settle_s=settle_s)
        save_partial(self.store / name, seam(last, self._end(after, _BEGINNING), tell))
        return Seam(folder=name, before=part.folder, after=after.folder)

    def _end(self, part: StorePart, which: str) -> End:
        place = self.store / part.folder
        so_far = [each for each in self.catalogue.parts if each.from_ns <= part.from_ns]
        past = self._past(so_far)
        return End(
            tables=self._rows(place / which),
            window=part.window,
            counted=load_partial(place, part.tables),
            steps=past.steps(),
            subscriptions=past.subscriptions(),
        )

    def _past(self, parts: Sequence[StorePart]) -> PastChanges:
        return _past(self.session, self.store, self.catalogue, parts)

    def _rows(self, place: Path) -> dict[str, DataFrame]:
        return {
            each.name: self.session.read.parquet(f"file://{each.resolve()}")
            for each in sorted(place.iterdir())
        }

    def periods(self) -> str | None:
        """Write the periods of components and peers, over all changes; give their folder.

        None where there are no such periods.
        """
        tables = self._past(self.catalogue.parts).periods()
        if not tables:
            return None
        folder = new_folder_name()
        save_partial(self.store / folder, Partial(tables=tables))
        return folder
