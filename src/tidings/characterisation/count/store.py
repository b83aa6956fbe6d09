"""Statistics of many days kept on disk, so that a new day is added without reading the old ones.

A store is a folder. ``store.json`` names what belongs to it: of every part of the time (a day,
usually) a folder with its statistics and its first and last rows, of every seam between two parts a
folder with what lies on it, and perhaps one with what was carried over from old parts. Whatever is
new is written under names that were not used before; then ``store.json`` is replaced in one step.
So a run that is killed leaves the store as it was, and what it had written is cleared away by the
next one. All of it is on the disk before ``store.json`` says so: a power cut is no worse than a
kill.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet
from pyspark.sql import DataFrame

from tidings.characterisation.count.stored_values import check_there, check_values
from tidings.characterisation.statistics import BATCHES, Partial, merge_rows
from tidings.errors import InvalidTracesError, StoreInUseError
from tidings.model import json_text
from tidings.model.plain_files import check_below, open_plain, read_text
from tidings.model.writing import keep_below, write_file
from tidings.traces.actions import run_action
from tidings.traces.window import TraceWindow

STORE_FILE = "store.json"
CHANGES = "changes"  # of components, peers and subscriptions, as they are: folder in a part
_VERSION = 5
_LONGEST_S, _LATEST_NS = 1e12, 1 << 63  # of times in a catalogue
_DECIDED = "decided.json"
_OURS = "counted-"  # how the names of our folders begin
_NAME = re.compile(rf"{_OURS}[0-9a-f]{{16}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePart:
    """One part of the time: when it was observed, where it was read, which tables it had.

    ``batches_ns`` are the lengths of its batches where it was put together from shorter parts; else
    they are equal.
    """

    folder: str
    from_ns: int
    until_ns: int
    source: str
    tables: tuple[str, ...]
    batches_ns: tuple[int, ...] = ()

    @property
    def lengths_ns(self) -> int | tuple[int, ...]:
        """How long it is, or each of its batches where these differ."""
        return self.batches_ns or self.until_ns - self.from_ns

    @property
    def window(self) -> TraceWindow:
        """When it was observed."""
        return TraceWindow(from_ns=self.from_ns, until_ns=self.until_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seam:
    """What lies between two parts, or at the end of one after which there is none."""

    folder: str
    before: str  # the folders of the parts
    after: str | None = None
    settle_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedOver:
    """What later parts need to know of all parts up to a moment: nothing else is read of these.

    ``from_ns`` is since when it was watched without a gap, ``tables`` those of all these parts.
    """

    folder: str
    from_ns: int
    until_ns: int
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """What belongs to a store: parts in the order of time, seams, periods of components and peers.

    ``margin_s`` is how much of every part is kept at either end: longer than any event travels.
    ``carried`` is what stood at the end of the older parts, some of which may have been dropped.
    ``sampled`` is the share of all events that was recorded, of all parts the same.
    """

    margin_s: float
    settle_s: float = 0.0
    sampled: float = 1.0
    parts: tuple[StorePart, ...] = ()
    seams: tuple[Seam, ...] = ()
    periods: str | None = None
    carried: CarriedOver | None = None

    @property
    def folders(self) -> set[str]:
        """All that belong to it."""
        parts = {each.folder for each in self.parts} | {each.folder for each in self.seams}
        carried = {self.carried.folder} if self.carried else set()
        return parts | carried | ({self.periods} if self.periods else set())

    def uncarried(self, parts: Sequence[StorePart]) -> list[StorePart]:
        """Select those of some parts that are later than what is carried."""
        until_ns = self.carried.until_ns if self.carried else -1
        return [part for part in parts if part.until_ns > until_ns]


def is_store(place: str | Path) -> bool:
    """Test whether a folder is a store."""
    return os.path.lexists(Path(place) / STORE_FILE)


def read_catalogue(store: Path) -> Catalogue | None:
    """Read what belongs to a store; None where there is none yet."""
    path = store / STORE_FILE
    if not os.path.lexists(path):
        return None
    want = "a file that 'tidings characterise --into' wrote"
    try:
        document = json_text.parse(read_text(path))
        if document.pop("version") != _VERSION:
            raise ValueError("another version")
        parts = tuple(StorePart(**_with_tuples(each)) for each in document["parts"])
        seams = tuple(Seam(**each) for each in document["seams"])
        carried_document = document.get("carried")
        carried = (
            None if carried_document is None else CarriedOver(**_with_tuples(carried_document))
        )
        catalogue = Catalogue(**{**document, "parts": parts, "seams": seams, "carried": carried})
        _check_values(catalogue)
        _check_folders(store, catalogue)
    except OSError as problem:
        raise InvalidTracesError(
            f"{problem.filename or path}: got {problem.strerror}; wants {want}"
        ) from problem
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise InvalidTracesError(f"{path}: not readable ({problem}); wants {want}") from problem
    return catalogue


def _with_tuples(document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(each) if isinstance(each, list) else each for name, each in document.items()
    }


def _check_values(catalogue: Catalogue) -> None:
    """Raise where a catalogue has other values than one that was written."""
    seconds = [catalogue.margin_s, catalogue.settle_s, *(each.settle_s for each in catalogue.seams)]
    for value in seconds:
        if not isinstance(value, int | float) or not 0.0 <= value <= _LONGEST_S:
            raise ValueError(f"{value!r} where a number of seconds is wanted")
    if type(catalogue.sampled) not in (int, float) or not 0 < catalogue.sampled <= 1:
        raise ValueError(f"{catalogue.sampled!r} where a share of all events is wanted")
    for part in catalogue.parts:
        _check_times(part)
        if not all(isinstance(each, str) for each in (part.source, *part.tables)):
            raise ValueError(f"{part.source!r} and {part.tables} where names are wanted")
        widths = part.batches_ns
        if widths and not (
            len(widths) == BATCHES
            and all(type(each) is int and each >= 0 for each in widths)
            and sum(widths) == part.until_ns - part.from_ns
        ):
            raise ValueError(f"{widths} where the lengths of {BATCHES} batches are wanted")
    if catalogue.carried is not None:
        _check_times(catalogue.carried)
        if not all(isinstance(each, str) for each in catalogue.carried.tables):
            raise ValueError(f"{catalogue.carried.tables} where names are wanted")
    if not (catalogue.periods is None or isinstance(catalogue.periods, str)):
        raise ValueError(
            f"it names the folder {catalogue.periods!r}, which does not belong to a store"
        )


def _check_times(of: StorePart | CarriedOver) -> None:
    times_ns = (of.from_ns, of.until_ns)
    whole = all(type(each) is int and abs(each) < _LATEST_NS for each in times_ns)
    if not whole or of.from_ns > of.until_ns:
        raise ValueError(f"{times_ns} where a beginning and an end in nanoseconds are wanted")


def _check_folders(store: Path, catalogue: Catalogue) -> None:
    """Raise where a catalogue names anything but folders of its own store, or these hold links."""
    after = {each.after for each in catalogue.seams} - {None}
    for name in catalogue.folders | {each.before for each in catalogue.seams} | after:
        if not _NAME.fullmatch(str(name)):
            raise ValueError(f"it names the folder {str(name)!r}, which does not belong to a store")
        folder = store / str(name)
        if folder.is_symlink():
            raise ValueError(f"its folder {name} is a link")
        if folder.exists():
            check_below(folder)  # Spark follows whatever is there


def write_catalogue(store: Path, catalogue: Catalogue) -> None:
    """Make this what belongs to the store, in one step; then clear away what no longer does."""
    document = {"version": _VERSION, **asdict(catalogue)}
    for name in catalogue.folders - _named_before(store):
        keep_below(store / name)  # before anything says that it is there
    write_file(store / STORE_FILE, json.dumps(document, indent=1).encode())
    for path in store.iterdir():
        if _NAME.fullmatch(path.name) and path.name not in catalogue.folders:
            shutil.rmtree(path, ignore_errors=True)  # a link is left alone


def _named_before(store: Path) -> set[str]:
    """List the folders that belonged to the store so far; none where that cannot be read."""
    try:
        known = read_catalogue(store)
    except InvalidTracesError:
        known = None
    return set() if known is None else known.folders


@contextmanager
def locked(store: Path, *, alone: bool) -> Iterator[None]:
    """Lock a store: nobody else changes it meanwhile; ``alone``, nobody else reads it either.

    The folder itself is locked: who only reads leaves nothing in it. The lock ends with the
    process, however that ends.
    """
    if not alone and not store.is_dir():
        raise InvalidTracesError(
            f"{store}: nothing there; wants a folder written by characterise --into"
        )
    with ExitStack() as at_the_end:
        held = _opened(store)
        at_the_end.callback(os.close, held)
        try:
            fcntl.flock(held, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError as problem:
            said = f"{store}: another run is using this store; try again when it has ended"
            raise StoreInUseError(said) from problem
        yield


def _opened(store: Path) -> int:
    """Open the folder of a store, made where there is none yet."""
    try:
        store.mkdir(parents=True, exist_ok=True)
        return os.open(store, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as problem:
        raise InvalidTracesError(
            f"{store}: a store cannot be created here ({problem.strerror})"
        ) from problem


def new_folder_name() -> str:
    """Make a name that no folder of a store has had."""
    return f"{_OURS}{secrets.token_hex(8)}"


def save_partial(folder: Path, counted: Partial) -> None:
    """Write the tables of some statistics, and what was decided."""
    folder.mkdir(parents=True)
    types = {}
    for name, frame in counted.tables.items():
        frame.to_parquet(folder / f"{name}.parquet", index=False)
        types[name] = _types(pyarrow.parquet.read_schema(folder / f"{name}.parquet"))
    decided = {
        "tables": types,
        "silent": sorted(counted.silent),
        "folded": counted.folded,
        "notes": list(counted.notes),
    }
    (folder / _DECIDED).write_text(json.dumps(decided), encoding="utf-8")


def load_partial(
    folder: Path,
    of: Collection[str] | None = None,
    *,
    periods: bool = False,
    only: str | None = None,
) -> Partial:
    """Read statistics of a store; raise where tables are missing, added or not as written.

    ``of`` are the tables of the traces that were counted, or of which ``periods`` were; None: those
    on a seam, which has what it has. ``only`` one statistic may be asked for, if it is there.
    """
    try:
        decided = json_text.parse(read_text(folder / _DECIDED))
        tables, types = {}, {}
        for each in sorted(folder.glob(f"{only or '*'}.parquet")):
            with open_plain(each) as file:
                table = pyarrow.parquet.read_table(file)
            tables[each.stem], types[each.stem] = table.to_pandas(), _types(table.schema)
        wanted = decided.get("tables", types)  # earlier versions did not write them down
        if only is not None:
            wanted = {name: each for name, each in wanted.items() if name == only}
        if types != wanted:
            raise ValueError(_differing(types, wanted))
        if of is not None:
            check_there(of, tables, periods=periods)
        check_values(tables)
        folded = decided["folded"]
        return Partial(
            tables=tables,
            silent=frozenset(_names(decided["silent"])),
            folded=None if folded is None else _names(folded),
            notes=_names(decided["notes"]),
        )
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as problem:
        raise InvalidTracesError(
            f"{folder}: cannot be read ({problem}); add the traces of that time again"
        ) from problem


def _names(texts: Any) -> tuple[str, ...]:
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise ValueError(f"got {texts!r} where texts are wanted")
    return tuple(texts)


def _types(schema: pyarrow.Schema) -> dict[str, str]:
    return {field.name: str(field.type) for field in schema}


def _differing(types: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Describe the first of the tables that are not those that were written."""
    names = [name for name in {**wanted, **types} if types.get(name) != wanted.get(name)]
    saw, want = types.get(names[0], "none"), wanted.get(names[0], "none")
    return f"got the table {names[0]} with {saw}; wants {want}, as written"


def save_rows(folder: Path, frames: Mapping[str, DataFrame]) -> None:
    """Write rows as they are, one file a table: they are few."""
    for name, frame in frames.items():
        place = f"file://{(folder / name).resolve()}"
        run_action(partial(frame.coalesce(1).write.parquet, place), f"the table {name}")


def counted_subscriptions(
    store: Path, parts: Sequence[StorePart], carried: CarriedOver | None = None
) -> pd.DataFrame | None:
    """Count the steps of subscriptions of some parts, and of what was carried from others."""
    folders = [*([carried.folder] if carried else []), *(part.folder for part in parts)]
    tables = [load_partial(store / each, only="subscriptions").tables for each in folders]
    steps = [each["subscriptions"] for each in tables if "subscriptions" in each]
    return merge_rows("subscriptions", steps) if steps else None


def extremes(folder: Path, column: str) -> list[tuple[int, int]]:
    """Find the least and the greatest value of a column in every group of rows that has any."""
    ends = []
    for file in folder.glob("*.parquet"):
        footer = pyarrow.parquet.read_metadata(file)
        at = footer.schema.names.index(column)
        for group in range(footer.num_row_groups):
            known = footer.row_group(group).column(at).statistics
            if known is not None and known.has_min_max:
                ends.append((known.min, known.max))
    return ends


def stretches_of(parts: Sequence[StorePart]) -> list[list[StorePart]]:
    """Group parts that follow each other without a gap."""
    stretches = [[parts[0]]]
    for before, part in pairwise(parts):
        if part.from_ns == before.until_ns:
            stretches[-1].append(part)
        else:
            stretches.append([part])
    return stretches


def window_of(parts: Sequence[StorePart]) -> TraceWindow:
    """Make the window from the first part's beginning to the last one's end.

    It says how much of that nobody watched.
    """
    watched_ns = sum(part.until_ns - part.from_ns for part in parts)
    from_ns, until_ns = parts[0].from_ns, parts[-1].until_ns
    return TraceWindow(
        from_ns=from_ns, until_ns=until_ns, unobserved_ns=until_ns - from_ns - watched_ns
    )
