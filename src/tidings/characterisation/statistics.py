"""Statistics as records: what each is counted by, and how parts of it add up.

Every statistic is a table of keys, of sums over rows, and of extremes. Sums are added and extremes
compared, so that the statistics of days put together are those of all days at once: whole numbers
exactly, sums of seconds to rounding. What lies on the seam between two days is counted apart
(:mod:`tidings.characterisation.count.seams`) and added like another day.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

NEEDED = ("publications", "hops", "deliveries")  # the tables without which nothing can be fitted
BATCHES = 32  # parts of the window whose differences tell the standard errors
# Lengths of time over which events are counted, each ten times the one before: a millisecond to a
# quarter of an hour. Sums over windows of n², n events in each: how far counts vary.
SCALE_RATIO = 10
SCALES_NS = tuple(SCALE_RATIO**power * 10**6 for power in range(7))
SCALE_SUMS = tuple(f"squares_{power}" for power in range(len(SCALES_NS)))
# Events at whole units of the clock, by the unit in nanoseconds.
WHOLE_NS = {"whole_ms": 10**6, "whole_s": 10**9, "whole_min": 60 * 10**9}
INSTANTS = ("events", "instants", *WHOLE_NS)
WEEK_HOURS = 168  # of which the first of 1970, a Thursday, is number 0
Direction = tuple[str, str]  # source and target of one direction of a link

# Why rows are set aside, beyond what is wrong with a row by itself.
PUBLISHED_OUTSIDE = "published outside the observed window"
ARRIVED_OUTSIDE = "arrived outside the observed window"
CHANGED_OUTSIDE = "changed outside the observed window"
CHANGED_LATER = "changed after the observed window"
CONFLICT = "a different publication has the same id"
UNPUBLISHED = "its publication is missing or was set aside"
TOO_EARLY = "it was received before it was published"
SETTLING = "published in the time left out by --settle"
SENT_IN_OUTAGE = "sent during a recorded outage of the link or of an end of it"
UNASKED = "published while its subscriber had no matching subscription"
BAD_CONTENT = "content is not an event in JSON"
BAD_FILTER = "filter is not a filter in JSON"

# What some rows of a statistic are about, in its column ``statistic``.
WAITING = "waiting"
PUBLISHED, REACHED, LOST, UNFORESEEN, REPEATED = (
    "published", "reached", "lost", "untold", "repeated",
)  # fmt: skip

# A sample of times in sums, per bin of the delay grid; empty where nothing was measured.
SAMPLE = (
    "count bigint, total_s double, squares double, logs double, squared_logs double, "
    "lowest_s double, highest_s double"
)
# Times between two ends by their own clocks: how many ended before they began, the least, and sums.
APPARENT = "early bigint, least_s double, apparent_total_s double, apparent_squares double"
CLOCK_STATISTICS = f"source string, target string, count bigint, {APPARENT}"
# Per (source, target, bin) of the delay, or per reason; ``lost`` is null where nobody can tell.
LINK_STATISTICS = (
    f"reason string, source string, target string, bin int, rows bigint, lost bigint, {SAMPLE}"
)
# The same of what crossed links, with times by the clocks of both ends as they are.
CROSSING_STATISTICS = f"{LINK_STATISTICS}, {APPARENT}"
# Per (source, target, hour of the week): a sample of delays, without their bins.
HOUR_STATISTICS = f"source string, target string, hour int, {SAMPLE}"
SIZE_BYTES_PER_S = 1e6  # samples of message sizes are in seconds at this speed
_OF_LINK = ("source", "target")
EXTREMES = {"min": ("lowest_s", "first_", "least_"), "max": ("highest_s", "last_", "most_")}
COUNTS = (
    "rows", "events", "count", "lost", "early", "duplicates", "wanted", "delivered", "on_time",
    "sizes", "waited", "handled", "again",
)  # fmt: skip
_LIFETIMES = ("least_lifetime_ns", "most_lifetime_ns")


class ObservedWindow(Protocol):
    """The time that was observed, as far as fitting asks for it."""

    @property
    def from_ns(self) -> int:
        """When it begins, in nanoseconds."""
        ...

    @property
    def until_ns(self) -> int:
        """When it ends, in nanoseconds."""
        ...

    @property
    def seconds(self) -> float:
        """For how long it was observed."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """One statistic: which of its columns say what a row is about, and how its parts add up.

    All other columns are sums, unless their names say that they are extremes. ``of`` is the table
    without which it is not counted. Where ``met_at_seams``, rows of two parts meet, which takes
    cells away from both; ``periods`` last longer than parts and are counted over all of them.
    Batches are ``coarsened`` to those of the whole, or kept and ``stitched``, neighbour to
    neighbour. Without keys, it is of its part alone and not put together. What is ``optional`` is
    there only where rows of the tables tell it.
    """

    keys: tuple[str, ...]
    of: str | None = None
    met_at_seams: bool = False
    periods: bool = False
    coarsened: bool = False
    stitched: bool = False
    optional: bool = False

    @property
    def is_emptied(self) -> bool:
        """Whether cells in which nothing is left are dropped: ends of batches have no counts."""
        return self.met_at_seams and not self.stitched


STATISTICS = {
    "publications": Statistic(
        keys=(
            "statistic", "reason", "publisher", "broker", "content", "content_key",
            "lifetime_bin", "batch",
        ),
        met_at_seams=True,
        coarsened=True,
    ),
    "bad_contents": Statistic(keys=("content",), met_at_seams=True),
    "intervals": Statistic(
        keys=("statistic", "publisher", "bin", "batch", "stretch"), met_at_seams=True, stitched=True
    ),
    "hops": Statistic(
        keys=("statistic", "reason", "broker", "came_from", "bin", "batch"),
        met_at_seams=True,
        coarsened=True,
    ),
    "deliveries": Statistic(
        keys=("statistic", "reason", "subscriber", "publisher", "batch", "bin"),
        met_at_seams=True,
        coarsened=True,
    ),
    "handlings": Statistic(
        keys=("statistic", "subscriber", "member", "part", "batch", "bin"),
        met_at_seams=True,
        coarsened=True,
        optional=True,
    ),
    "pickups": Statistic(keys=("subscriber", "others"), optional=True),
    "crossings": Statistic(keys=("reason", *_OF_LINK, "bin"), met_at_seams=True),
    "crossing_hours": Statistic(keys=(*_OF_LINK, "hour"), met_at_seams=True),
    "sightings": Statistic(
        keys=("statistic", "reason", "publisher", "content_key", *_OF_LINK), met_at_seams=True
    ),
    "subscriptions": Statistic(
        keys=("reason", "subscriber", "broker", "action", "filter"), of="subscriptions"
    ),
    "guests": Statistic(keys=(), of="subscriptions"),  # who came or went
    "probes": Statistic(keys=("reason", *_OF_LINK, "bin"), of="probes"),
    "probe_hours": Statistic(keys=(*_OF_LINK, "hour"), of="probes"),
    "loss_runs": Statistic(keys=(*_OF_LINK, "batch", "stretch"), of="probes", stitched=True),
    "clocks": Statistic(keys=_OF_LINK, of="probes"),
    "utilisation": Statistic(keys=("reason",), of="utilisation"),
    "levels": Statistic(
        keys=("queue", "part", "batch", "run", "stretch"), of="levels", stitched=True
    ),
    "states": Statistic(
        keys=("reason", "component", "up", "begun", "ended", "bin"), of="states", periods=True
    ),
    "sessions": Statistic(
        keys=("reason", "path", "connected", "begun", "ended", "bin"), of="sessions", periods=True
    ),
    "stays": Statistic(
        keys=("path", "connected", "begun", "ended", "bin"), of="subscriptions", periods=True
    ),
}  # fmt: skip


def merge_of(column: str) -> str:
    """Tell how values of a column are put together: ``sum``, ``min`` or ``max``."""
    return next((how for how, names in EXTREMES.items() if column.startswith(names)), "sum")


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
    """Merge tables of one statistic; drop cells in which nothing is left.

    >>> day = pd.DataFrame({"source": ["a"], "target": ["b"], "count": [2], "least_s": [0.5]})
    >>> merge_rows("clocks", [day, day.assign(least_s=0.25)]).to_dict("records")
    [{'source': 'a', 'target': 'b', 'count': 4, 'least_s': 0.25}]
    """
    columns = list(dict.fromkeys(column for frame in frames for column in frame.columns))
    filled = [frame.dropna(axis="columns", how="all") for frame in frames if len(frame)]
    if not filled:
        return frames[0]
    rows = pd.concat(filled, ignore_index=True).reindex(columns=columns)
    keys = [key for key in STATISTICS[name].keys if key in columns]
    if name == "publications":
        # Rows of one exact lifetime stay apart; of anything else but contents nobody asks for it.
        rows.loc[rows["statistic"] != "contents", list(_LIFETIMES)] = np.nan
        keys += _LIFETIMES
    values: dict[str, list[str]] = {"sum": [], "min": [], "max": []}
    for column in columns:
        if column not in keys:
            values[merge_of(column)].append(column)
    cells = rows.groupby(keys, dropna=False, sort=False)
    sums = cells[values["sum"]].sum(min_count=1)
    added = [sums, cells[values["min"]].min(), cells[values["max"]].max()]
    together = pd.concat(added, axis="columns").reset_index()[columns]
    if not STATISTICS[name].is_emptied:
        return together
    counts = together[[column for column in values["sum"] if column in COUNTS]]
    return together[(counts.fillna(0) != 0).any(axis="columns")].reset_index(drop=True)


def difference(name: str, whole: pd.DataFrame, part: pd.DataFrame) -> pd.DataFrame:
    """Subtract a part from a whole: its sums less those; may be below zero.

    Extremes are those of the whole: no part can have others.
    """
    keys = STATISTICS[name].keys
    sums = [each for each in part.columns if each not in keys and merge_of(each) == "sum"]
    return merge_rows(name, [whole, part.assign(**{each: -part[each] for each in sums})])


def sums_at(
    rows: pd.DataFrame, column: str, shape: tuple[int, ...], *places: pd.Series
) -> NDArray[np.float64]:
    """Add up values of a column in an array, each at its index; nothing counts as 0.

    >>> rows = pd.DataFrame({"batch": [0, 1, 1], "rows": [1, 2, 3]})
    >>> sums_at(rows, "rows", (3,), rows["batch"])
    array([1., 5., 0.])
    """
    sums = np.zeros(shape)
    at = tuple(place.to_numpy(dtype=np.int64) for place in places)
    np.add.at(sums, at, rows[column].fillna(0.0).to_numpy(dtype=np.float64))
    return sums


def shifted(partial: Partial, batches: int) -> Partial:
    """Enumerate the batches from another one on."""
    tables = {
        name: frame.assign(batch=frame["batch"] + batches) if "batch" in frame else frame
        for name, frame in partial.tables.items()
    }
    return replace(partial, tables=tables)


def in_stretch(partial: Partial, stretch: int | None = None) -> Partial:
    """Mark statistics as of one ``stretch`` of time, between which and the next nobody watched.

    None: of a window whose batches may have gaps between every 32 of them and the next.
    """
    tables = {
        name: frame.assign(stretch=frame["batch"] // BATCHES if stretch is None else stretch)
        if name in STATISTICS and STATISTICS[name].stitched
        else frame
        for name, frame in partial.tables.items()
    }
    return replace(partial, tables=tables)


def adjoining(rows: pd.DataFrame) -> NDArray[np.bool_]:
    """Test whether each row but the first is of the same ``stretch`` as the one before it."""
    stretch = rows.get("stretch", pd.Series(0, index=rows.index)).to_numpy()
    same: NDArray[np.bool_] = stretch[1:] == stretch[:-1]
    return same


def merged(partials: Sequence[Partial], batch_of: Sequence[int]) -> Partial:
    """Merge what was counted; ``batch_of`` says into which batch of the whole each batch goes."""
    tables = {}
    for name in dict.fromkeys(name for each in partials for name in each.tables):
        frames = [each.tables[name] for each in partials if name in each.tables]
        statistic = STATISTICS[name]
        if not statistic.keys:
            continue
        if statistic.coarsened:
            goes_to = dict(enumerate(batch_of))
            frames = [frame.assign(batch=frame["batch"].map(goes_to)) for frame in frames]
        tables[name] = merge_rows(name, frames)
    folded = [set(each.folded) for each in partials if each.folded is not None]
    return Partial(
        tables=tables,
        silent=frozenset[str]().union(*(each.silent for each in partials)),
        folded=tuple(sorted(set.intersection(*folded))) if folded else None,
        notes=tuple(dict.fromkeys(note for each in partials for note in each.notes)),
    )


def batch_widths(length_ns: int | Sequence[int]) -> list[int]:
    """Compute how long each of a part's 32 batches is, in nanoseconds.

    Where they are equal, its own length tells it.

    >>> batch_widths(62)[:2], batch_widths(62)[-2:]
    ([2, 2], [2, 0])
    """
    if not isinstance(length_ns, int):
        return list(length_ns)
    width = -(-length_ns // BATCHES)
    return [max(0, min(width, length_ns - n * width)) for n in range(BATCHES)]


def batches_of(lengths_ns: Sequence[int | Sequence[int]]) -> list[int]:
    """Find into which of 32 batches of all time each batch of each part goes, by its beginning.

    Parts are told by their lengths, or where batches are not alike by those of each of them.

    >>> batches_of([64, 64])[:6], len(batches_of([64, 64]))
    ([0, 0, 1, 1, 2, 2], 64)
    """
    widths = [batch_widths(each) for each in lengths_ns]
    wide, numbers, before = -(-sum(map(sum, widths)) // BATCHES), [], 0
    for width in (width for each in widths for width in each):
        numbers.append(min(before // wide, BATCHES - 1))
        before += width
    return numbers


def batch_lengths_s(
    lengths_ns: Sequence[int | Sequence[int]], counted_ns: Sequence[int]
) -> tuple[float, ...]:
    """Compute how many seconds of each of those 32 batches were counted, of parts of such lengths.

    Of a part, publications are counted in its first ``counted_ns``: those at the end may be left to
    settle. Batches of the whole consist of whole ones of its parts, so that they differ in length
    where parts do.

    >>> batch_lengths_s([64_000_000_000, 32_000_000_000], [64_000_000_000, 31_500_000_000])[-3:]
    (3.0, 3.0, 2.5)
    """
    found_ns = [0] * BATCHES
    goes_to = iter(batches_of(lengths_ns))
    for length_ns, until_ns in zip(lengths_ns, counted_ns, strict=True):
        begin = 0
        for width in batch_widths(length_ns):
            found_ns[next(goes_to)] += max(0, min(begin + width, until_ns) - begin)
            begin += width
    return tuple(each / 1e9 for each in found_ns)
