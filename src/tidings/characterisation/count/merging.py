"""Parts of a store laid out along one time, and put together to one part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from tidings.characterisation.count.store import (
    Seam,
    StorePart,
    load_partial,
    new_folder_name,
    save_partial,
    stretches_of,
    window_of,
)
from tidings.characterisation.fit.collected import wanted_throughout
from tidings.characterisation.fit.queues import coarser_ends
from tidings.characterisation.fit.subscribers import changed_subscribers, find_subscribers
from tidings.characterisation.statistics import (
    BATCHES,
    SAMPLE,
    STATISTICS,
    Partial,
    adjoining,
    batch_widths,
    batches_of,
    in_stretch,
    merge_rows,
    merged,
    shifted,
)
from tidings.errors import InvalidTracesError
from tidings.model.delay_grid import bin_of

SCALES = (
    "scales"  # how events fall into windows, which end where batches do: cannot be put together
)
_GUESTS = "guests"
_COPIES = "duplicates"  # which some tables have where there are any


def laid_out(
    store: Path, parts: Sequence[StorePart], seams: Sequence[Seam], steps: pd.DataFrame | None
) -> Iterator[Partial]:
    """Yield the statistics of some parts and seams, batches numbered from the first part on.

    ``steps`` are all steps of subscriptions, counted: they tell who was there throughout a part.
    """
    numbers = {part.folder: number for number, part in enumerate(parts)}
    stretch_of = {
        part.folder: number
        for number, stretch in enumerate(stretches_of(parts))
        for part in stretch
    }
    owner = {part.folder: part.folder for part in parts} | {
        each.folder: each.before for each in seams
    }
    tables = {part.folder: part.tables for part in parts}
    loaded = {folder: load_partial(store / folder, tables.get(folder)) for folder in owner}
    _check_columns(store, loaded)
    loaded |= _with_those_who_stayed(loaded, parts, steps)
    for folder, part in owner.items():
        yield in_stretch(shifted(loaded[folder], BATCHES * numbers[part]), stretch_of[part])


def without(partial: Partial, name: str) -> Partial:
    """Drop one statistic from those counted."""
    return replace(
        partial, tables={each: rows for each, rows in partial.tables.items() if each != name}
    )


def put_together(
    store: Path, parts: Sequence[StorePart], seams: Sequence[Seam], steps: pd.DataFrame | None
) -> tuple[StorePart, tuple[Seam, ...]]:
    """Write parts without a gap, and the seams between them, as one; gives it, and all seams.

    Sums are those of the parts. A batch of the new part is several of theirs. What lies on the
    seams at its ends is the same, of its batches.
    """
    folders = {part.folder: number for number, part in enumerate(parts)}
    inner = [each for each in seams if each.before in folders and each.after in folders]
    widths = [width for part in parts for width in batch_widths(part.lengths_ns)]
    goes_to = batches_of([part.lengths_ns for part in parts])
    counted = merged(list(laid_out(store, parts, inner, steps)), goes_to)
    tables = {name: _coarsened(name, frame, goes_to) for name, frame in counted.tables.items()}
    if steps is not None and _GUESTS not in tables:
        churners = changed_subscribers(steps, window_of(parts))
        tables[_GUESTS] = pd.DataFrame({"subscriber": churners}, dtype=object)
    folder = new_folder_name()
    save_partial(store / folder, replace(counted, tables=tables))
    part = StorePart(
        folder=folder,
        from_ns=parts[0].from_ns,
        until_ns=parts[-1].until_ns,
        source=parts[-1].source,
        tables=tuple(dict.fromkeys(name for each in parts for name in each.tables)),
        batches_ns=tuple(
            sum(width for width, to in zip(widths, goes_to, strict=True) if to == number)
            for number in range(BATCHES)
        ),
    )
    kept = []
    for each in seams:
        if each.before in folders and each.after in folders:
            continue
        if each.before in folders:
            number = folders[each.before]
            own = goes_to[BATCHES * number : BATCHES * (number + 1)]
            each = _renumbered(store, each, [*own, *range(BATCHES, 2 * BATCHES)])
            each = replace(each, before=folder)
        elif each.after in folders:
            own = [BATCHES + to for to in goes_to[:BATCHES]]
            each = _renumbered(store, each, [*range(BATCHES), *own])
            each = replace(each, after=folder)
        kept.append(each)
    return part, tuple(kept)


def _renumbered(store: Path, seam: Seam, goes_to: Sequence[int]) -> Seam:
    """Write a seam again whose batches have become others, those of ``goes_to``."""
    counted = load_partial(store / seam.folder)
    tables = {
        name: merge_rows(name, [_in_batches(frame, goes_to)]) if "batch" in frame else frame
        for name, frame in counted.tables.items()
    }
    folder = new_folder_name()
    save_partial(store / folder, replace(counted, tables=tables))
    return replace(seam, folder=folder)


def _in_batches(frame: pd.DataFrame, goes_to: Sequence[int]) -> pd.DataFrame:
    return frame.assign(batch=frame["batch"].map(dict(enumerate(goes_to))))


def _coarsened(name: str, frame: pd.DataFrame, goes_to: Sequence[int]) -> pd.DataFrame:
    """Reduce a statistic to fewer batches: what bridged two that are one now is within it."""
    if not STATISTICS[name].stitched:
        return frame
    rows = frame.drop(columns="stretch", errors="ignore")
    if name == "intervals":
        rows = rows[rows["statistic"] != SCALES]
        bridges = _bridges(frame[frame["statistic"] == "ends"], goes_to)
        return merge_rows(name, [_in_batches(rows, goes_to), bridges])[list(rows.columns)]
    if name == "levels":
        return coarser_ends(_in_batches(rows, goes_to))
    return _runs(rows, goes_to)


def _bridges(ends: pd.DataFrame, goes_to: Sequence[int]) -> pd.DataFrame:
    """List intervals that bridge two batches which become one: last event to first of the next."""
    bridges = []
    for publisher, rows in ends.groupby("publisher"):
        ordered = rows.sort_values("batch")
        new = ordered["batch"].map(dict(enumerate(goes_to))).to_numpy()
        first, last = (ordered[each].to_numpy(dtype=np.int64) for each in ("first_ns", "last_ns"))
        one = (new[1:] == new[:-1]) & adjoining(ordered)
        times_s = ((first[1:] - last[:-1]) / 1e9)[one]
        ended = first[1:][one]
        bridges += [(publisher, *each) for each in zip(times_s, ended, ended, strict=True)]
    rows = pd.DataFrame(bridges, columns=["publisher", "time_s", "first_ns", "last_ns"])
    if rows.empty:
        return rows
    times = rows.pop("time_s").to_numpy(dtype=np.float64)
    logs = np.log(times, out=np.full(len(times), np.nan), where=times > 0)
    values = {
        "count": np.ones(len(times), dtype=np.int64), "total_s": times, "squares": times**2,
        "logs": logs, "squared_logs": logs**2, "lowest_s": times, "highest_s": times,
    }  # fmt: skip
    assert set(values) == {each.split()[0] for each in SAMPLE.split(", ")}
    return rows.assign(statistic="intervals", bin=bin_of(times), **values)


def _runs(rows: pd.DataFrame, goes_to: Sequence[int]) -> pd.DataFrame:
    """Count losses in a row, with the steps from one batch to the next where both become one."""
    runs = []
    link, sums = ["source", "target"], ["following", "lost", "after_loss", "lost_after_loss"]
    for _, own in rows.groupby(link):
        ordered = _in_batches(own.sort_values("batch"), goes_to).reset_index(drop=True)
        one = (ordered["batch"] == ordered["batch"].shift()).to_numpy()
        before = np.roll(ordered["last_lost"].to_numpy(dtype=bool), 1) & one
        after = ordered["first_lost"].to_numpy(dtype=bool) & one
        steps = dict(zip(sums, (one, after, before, before & after), strict=True))
        more = ordered.assign(**{each: ordered[each] + steps[each] for each in sums})
        cells = more.groupby([*link, "batch"], sort=False)
        added = cells[[*sums, "duplicates"]].sum()
        ends = pd.concat([cells["first_lost"].first(), cells["last_lost"].last()], axis="columns")
        runs.append(pd.concat([added, ends], axis="columns").reset_index())
    return pd.concat(runs, ignore_index=True)[list(rows.columns)] if runs else rows


def _with_those_who_stayed(
    loaded: Mapping[str, Partial], parts: Sequence[StorePart], rows: pd.DataFrame | None
) -> dict[str, Partial]:
    """Add to each part what those wanted in it who came or went in others only.

    ``rows`` are all steps of subscriptions, counted. Whoever came or went in none of the time up to
    the end of a part had in it the subscriptions that had begun by its beginning.
    """
    if rows is None:
        return {}
    window = window_of(parts)
    churners = set(changed_subscribers(rows, window))
    steps = rows[(rows["action"] == "subscribe") & rows["subscriber"].isin(churners)]
    with_stayers = {}
    for part in parts:
        counted = loaded[part.folder]
        others = churners - set(counted.tables.get(_GUESTS, rows.head(0))["subscriber"])
        begun = steps[(steps["first_ns"] <= part.from_ns) & steps["subscriber"].isin(others)]
        there = find_subscribers(begun, None, window).subscribers if len(begun) else ()
        with_stayers[part.folder] = wanted_throughout(
            counted, {each.name: each.wants for each in there}
        )
    return with_stayers


def _check_columns(store: Path, loaded: Mapping[str, Partial]) -> None:
    """Raise where a table has other columns in one part than in another, but for copies."""
    columns: dict[str, set[str]] = {}
    for folder, part in loaded.items():
        for name, table in part.tables.items():
            own = set(table.columns) - {_COPIES}
            if columns.setdefault(name, own) != own:
                raise InvalidTracesError(
                    f"{store / folder}: got the table {name} with other columns than in other "
                    "parts; wants the same: add the traces of that time again"
                )
