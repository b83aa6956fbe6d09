"""What was counted of one part of a time: tables that add up to those of the whole.

Every statistic is a table of keys, of sums over rows, and of extremes. Sums are added and extremes
compared, so that the statistics of days put together are those of all days at once: whole numbers
exactly, sums of seconds to rounding. What lies on the seam between two days is counted apart
(:mod:`tidings.characterisation.seams`) and added like another day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.characterisation.cells import BATCHES

# Which columns of a table say what a row is about. All others are sums, unless their names say that
# they are extremes. The content of a key is the text that it stands for.
KEYS: dict[str, tuple[str, ...]] = {
    "publications": (
        "statistic", "reason", "publisher", "broker", "content", "content_key", "lifetime_bin",
        "batch",
    ),
    "bad_contents": ("content",),
    "intervals": ("statistic", "publisher", "bin", "batch", "stretch"),
    "hops": ("statistic", "reason", "broker", "came_from", "bin", "batch"),
    "deliveries": ("statistic", "reason", "subscriber", "publisher", "batch", "bin"),
    "probes": ("reason", "source", "target", "bin"),
    "crossings": ("reason", "source", "target", "bin"),
    "subscriptions": ("reason", "subscriber", "broker", "action", "filter"),
    "sightings": ("statistic", "reason", "publisher", "content_key", "source", "target"),
    "loss_runs": ("source", "target", "batch", "stretch"),
    "clocks": ("source", "target"),
    "states": ("reason", "component", "up", "ended", "bin"),
    "sessions": ("reason", "path", "connected", "ended", "bin"),
    "stays": ("path", "connected", "ended", "bin"),
    "utilisation": ("reason",),
}  # fmt: skip
_LEAST = ("lowest_s", "first_", "least_")
_MOST = ("highest_s", "last_", "most_")
_LIFETIMES = ("least_lifetime_ns", "most_lifetime_ns")
# Tables in which a seam may take cells away, and the columns that tell whether one is empty.
CHANGED_BY_SEAMS = (
    "publications", "bad_contents", "intervals", "hops", "deliveries", "crossings", "sightings",
)  # fmt: skip
_EMPTIED = tuple(name for name in CHANGED_BY_SEAMS if name != "intervals")
COUNTS = (
    "rows", "events", "count", "lost", "early", "duplicates", "wanted", "delivered", "on_time",
    "sizes", "waited",
)  # fmt: skip
# Whose batches are put together: of the others, neighbours must be known to be stitched.
_COARSENED = ("publications", "hops", "deliveries")
_STITCHED = ("intervals", "loss_runs")


@dataclass(frozen=True, slots=True, kw_only=True)
class Partial:
    """The tables of statistics by name, and what was decided on the way.

    ``silent`` are brokers whose starts of service were reconstructed, ``folded`` the attributes by
    which contents were told apart, if by some only.
    """

    tables: Mapping[str, pd.DataFrame]
    silent: frozenset[str] = frozenset()
    folded: tuple[str, ...] | None = None
    notes: tuple[str, ...] = field(default=())


def merge_rows(name: str, frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Tables of one statistic as one; cells in which nothing is left are dropped.

    >>> day = pd.DataFrame({"source": ["a"], "target": ["b"], "count": [2], "least_s": [0.5]})
    >>> merge_rows("clocks", [day, day.assign(least_s=0.25)]).to_dict("records")
    [{'source': 'a', 'target': 'b', 'count': 4, 'least_s': 0.25}]
    """
    columns = list(dict.fromkeys(column for frame in frames for column in frame.columns))
    filled = [frame.dropna(axis="columns", how="all") for frame in frames if len(frame)]
    if not filled:
        return frames[0]
    rows = pd.concat(filled, ignore_index=True).reindex(columns=columns)
    keys = [key for key in KEYS[name] if key in columns]
    if name == "publications":
        # Rows of one exact lifetime stay apart; of anything else but contents nobody asks for it.
        rows.loc[rows["statistic"] != "contents", list(_LIFETIMES)] = np.nan
        keys += _LIFETIMES
    values = [column for column in columns if column not in keys]
    least = [column for column in values if column.startswith(_LEAST)]
    most = [column for column in values if column.startswith(_MOST)]
    sums = [column for column in values if column not in (*least, *most)]
    cells = rows.groupby(keys, dropna=False, sort=False)
    added = [cells[sums].sum(min_count=1), cells[least].min(), cells[most].max()]
    together = pd.concat(added, axis="columns").reset_index()[columns]
    counts = [column for column in sums if column in COUNTS]
    if name not in _EMPTIED:
        return together
    return together[(together[counts].fillna(0) != 0).any(axis="columns")].reset_index(drop=True)


def difference(name: str, whole: pd.DataFrame, *parts: pd.DataFrame) -> pd.DataFrame:
    """What a whole has beyond some parts of it: its sums less theirs; may be below zero.

    Extremes are those of the whole: no part can have others.
    """
    taken = []
    for part in parts:
        sums = [
            column
            for column in part.columns
            if column not in KEYS[name] and not column.startswith((*_LEAST, *_MOST))
        ]
        taken.append(part.assign(**{column: -part[column] for column in sums}))
    return merge_rows(name, [whole, *taken])


def shifted(partial: Partial, batches: int) -> Partial:
    """The same with its batches numbered from another one on."""
    tables = {
        name: frame.assign(batch=frame["batch"] + batches) if "batch" in frame else frame
        for name, frame in partial.tables.items()
    }
    return replace(partial, tables=tables)


def in_stretch(partial: Partial, stretch: int) -> Partial:
    """The same as of a stretch of time, between which and the next nobody watched."""
    tables = {
        name: frame.assign(stretch=stretch) if name in _STITCHED else frame
        for name, frame in partial.tables.items()
    }
    return replace(partial, tables=tables)


def in_stretches(partial: Partial) -> Partial:
    """The same, of a window whose batches have gaps between every 32 of them and the next."""
    tables = {
        name: frame.assign(stretch=frame["batch"] // BATCHES) if name in _STITCHED else frame
        for name, frame in partial.tables.items()
    }
    return replace(partial, tables=tables)


def adjoining(rows: pd.DataFrame) -> NDArray[np.bool_]:
    """Whether each row but the first is of the same stretch of time as the one before it."""
    stretch = rows.get("stretch", pd.Series(0, index=rows.index)).to_numpy()
    found: NDArray[np.bool_] = stretch[1:] == stretch[:-1]
    return found


def merged(partials: Sequence[Partial], batch_of: Sequence[int]) -> Partial:
    """All of them as one; ``batch_of`` says into which batch of the whole each of theirs goes."""
    tables = {}
    for name in dict.fromkeys(name for each in partials for name in each.tables):
        frames = [each.tables[name] for each in partials if name in each.tables]
        if name in _COARSENED:
            frames = [_coarsened(frame, batch_of) for frame in frames]
        if name in KEYS:
            tables[name] = merge_rows(name, frames)
    folded = [set(each.folded) for each in partials if each.folded is not None]
    return Partial(
        tables=tables,
        silent=frozenset[str]().union(*(each.silent for each in partials)),
        folded=tuple(sorted(set.intersection(*folded))) if folded else None,
        notes=tuple(dict.fromkeys(note for each in partials for note in each.notes)),
    )


def batches_of(lengths_ns: Sequence[int]) -> list[int]:
    """Into which of 32 batches of all time observed each batch of each part goes, by its beginning.

    >>> batches_of([64, 64])[:6], len(batches_of([64, 64]))
    ([0, 0, 1, 1, 2, 2], 64)
    """
    whole, found, before = sum(lengths_ns), [], 0
    for length_ns in lengths_ns:
        width = -(-length_ns // BATCHES)
        wide = -(-whole // BATCHES)
        found += [min((before + n * width) // wide, BATCHES - 1) for n in range(BATCHES)]
        before += length_ns
    return found


def batch_lengths_s(lengths_ns: Sequence[int], counted_ns: Sequence[int]) -> tuple[float, ...]:
    """How many seconds of each of those 32 batches were counted, of parts of such lengths.

    Of a part, publications are counted in its first ``counted_ns``: those at the end may be left to
    settle. Batches of the whole consist of whole ones of its parts, so that they differ in length
    where parts do.

    >>> batch_lengths_s([64_000_000_000, 32_000_000_000], [64_000_000_000, 31_500_000_000])[-3:]
    (3.0, 3.0, 2.5)
    """
    found_ns = [0] * BATCHES
    goes_to = iter(batches_of(lengths_ns))
    for length_ns, until_ns in zip(lengths_ns, counted_ns, strict=True):
        width = -(-length_ns // BATCHES)
        for begin in range(0, BATCHES * width, width):
            found_ns[next(goes_to)] += max(0, min(begin + width, until_ns) - begin)
    return tuple(each / 1e9 for each in found_ns)


def _coarsened(frame: pd.DataFrame, batch_of: Sequence[int]) -> pd.DataFrame:
    return frame.assign(batch=frame["batch"].map(dict(enumerate(batch_of))))
