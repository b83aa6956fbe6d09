"""What one replication counted, from the kernel's cells to subscribers and pairs; exact integers.

A *unit* is a set of subscribers that saw exactly the same: all plain ones of one home and filter,
or those that share a receiver; or those of one count who are followed one by one, whose counts are
added up. For every unit, wanted = on time + late + losses by cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.memory import World
from tidings.model import delay_grid
from tidings.model.arrays import Floats, Ints
from tidings.model.outcome import REDELIVERED
from tidings.simulation.kernel_layout import (
    BY_BROKER_DOWN,
    BY_DEAD_LETTER,
    BY_EXPIRY,
    BY_EXPIRY_IN_BUFFER,
    BY_LINK,
    BY_NOT_KNOWN,
    BY_NOT_RESTORED,
    BY_OVERFLOW,
    BY_OVERLOAD,
    BY_PATH_DOWN,
    BY_UNSUBSCRIBED,
    KERNEL_CAUSES,
)

if TYPE_CHECKING:
    from tidings.simulation.network import CompiledSystem

Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """The units of a system, and which cells and receipts make up their counts."""

    of_subscriber: Ints
    receiver: Ints  # of each unit; −1: plain
    followed: Ints  # of each unit: how many receivers' counts are added up, from this one on
    broker: Ints
    curves: tuple[Ints, ...]  # of each unit: its histograms
    entry_cell: Ints  # cells whose events a unit wants, by ...
    entry_pair: Ints  # ... the pair that they belong to
    pair_unit: Ints
    pair_publisher: Ints

    @property
    def count(self) -> int:
        """How many units there are."""
        return int(self.receiver.size)


def find_units(compiled: CompiledSystem) -> Units:
    """Group a system's subscribers into units."""
    routes = compiled.routes
    known: dict[tuple[int, int, int], int] = {}
    first = np.unique(compiled.whose, return_index=True)[1]
    followed = np.bincount(compiled.whose)
    of_subscriber = np.zeros(first.size, dtype=np.int64)
    several: dict[int, int] = {}  # units of more than one receiver, and of how many
    keys = zip(
        compiled.receiver_of[first].tolist(),
        routes.home_of_subscriber[first].tolist(),
        routes.filter_of_subscriber[first].tolist(),
        strict=True,
    )
    for index, key in enumerate(keys):
        of_subscriber[index] = known.setdefault(key, len(known))
        if followed[index] > 1:
            several[int(of_subscriber[index])] = int(followed[index])
    publishers = np.array([row.publisher for row in routes.rows])[compiled.cells.row]
    units, cells, curves = [], [], []
    for unit, (key, mine) in enumerate(zip(known, _cells_wanted(compiled, known), strict=True)):
        receiver, home, wanted = key
        units.append(np.full(mine.size, unit, dtype=np.int64))
        cells.append(mine)
        met = compiled.curve_table[home, routes.wants[:, wanted]]
        own = compiled.curves + receiver + np.arange(several.get(unit, 1))
        curves.append(own if receiver >= 0 else np.unique(met))
    entry_unit, entry_cell = np.concatenate(units), np.concatenate(cells)
    pairs, entry_pair = np.unique(
        entry_unit * len(compiled.system.publishers) + publishers[entry_cell], return_inverse=True
    )
    return Units(
        of_subscriber=of_subscriber,
        receiver=np.array([key[0] for key in known], dtype=np.int64),
        followed=np.array([several.get(unit, 1) for unit in range(len(known))], dtype=np.int64),
        broker=np.array([key[1] for key in known], dtype=np.int64),
        curves=tuple(curves),
        entry_cell=entry_cell,
        entry_pair=entry_pair.astype(np.int64),
        pair_unit=pairs // len(compiled.system.publishers),
        pair_publisher=pairs % len(compiled.system.publishers),
    )


def _cells_wanted(
    compiled: CompiledSystem, units: Iterable[tuple[int, int, int]]
) -> Iterator[Ints]:
    """Yield the cells at each unit's home whose class its filter wants."""
    routes, at = compiled.routes, compiled.cells.broker
    classes = np.array([row.content_class for row in routes.rows])[compiled.cells.row]
    order = np.argsort(at, kind="stable")
    starts = np.searchsorted(at[order], np.arange(len(compiled.system.brokers) + 1))
    for _, home, wanted in units:
        here = order[starts[home] : starts[home + 1]]
        yield here[routes.wants[classes[here], wanted]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What one replication counted; sums of delays in seconds."""

    published: Ints  # by row of contents
    wanted: Ints  # by pair, as are the next three
    delivered: Ints
    late: Floats  # by weight, as are losses
    delay_sum_s: Floats
    pair_lost: Floats  # [pair, cause]
    lost: Floats  # [unit, cause]
    redelivered: Floats  # [unit; REDELIVERED]
    curves: Ints  # [histogram, bin]: of plain deliveries, then of each receiver
    lowest_s: Floats  # the least and the greatest delay in each of these bins, if any is
    highest_s: Floats
    station_counts: Floats  # [station; arrivals, served, busy, wait]
    blocked: Floats  # [limit; events that waited for a place in it, for how many seconds in all]
    channel_counts: Floats  # [channel; sent, lost, delay]
    most_copies: int
    duplicates: int  # second copies at brokers with subscribers for them, filtered there
    acknowledgements: int  # of events that a broker has taken over from the one before
    refreshes: int  # bundles of subscriptions sent over a link
    subscribes: int  # subscriptions sent over a link between brokers, one by one
    unsubscribes: int  # and taken back

    @property
    def on_time(self) -> Floats:
        """By pair: what was wanted and neither late nor lost."""
        return self.wanted - self.late - self.pair_lost.sum(axis=1)


_BY_RECEIPT = {
    BY_LINK: "lost",
    BY_OVERFLOW: "dropped",
    BY_EXPIRY: "expired",
    BY_BROKER_DOWN: "broker_down",
    BY_PATH_DOWN: "path_down",
    BY_EXPIRY_IN_BUFFER: "expired_in_buffer",
    BY_NOT_RESTORED: "not_restored",
    BY_NOT_KNOWN: "not_known",
    BY_UNSUBSCRIBED: "unsubscribed",
    BY_DEAD_LETTER: "dead_letter",
    BY_OVERLOAD: "overloaded",
}
STATION_FIELDS = ("arrivals", "served", "busy", "wait")
CHANNEL_FIELDS = ("sent", "lost", "delay_sum")
BLOCKED_FIELDS = ("blocked", "blocked_sum")


def count_world(world: World, compiled: CompiledSystem, units: Units) -> Counts:
    """Gather what a finished world has counted."""
    cells, publishers = world.tables["cells"], len(compiled.system.publishers)
    published = world.tables["rows"].published.copy()
    followers = units.followed[units.pair_unit]
    wanted = _by_pair(published[compiled.cells.row], units) * followers
    before = _losses(world, compiled)
    pair_lost = np.zeros((units.pair_unit.size, len(KERNEL_CAUSES)))
    for cause, values in enumerate(before[units.entry_cell].T):
        pair_lost[:, cause] = _total(units.entry_pair, values, units.pair_unit.size) * followers
    receiver = units.receiver[units.pair_unit]
    followed = receiver >= 0
    at = receiver[followed] * publishers + units.pair_publisher[followed]
    receipts = _Receipts(world.tables["receipts"], at, followers[followed], publishers)
    churners = followed.copy()
    churners[followed] = compiled.tables["receivers"]["churner"][receiver[followed]] >= 0
    pair_lost[churners] = 0  # all that a churner misses is in its receipts
    wanted[churners] = receipts["wanted"][churners[followed]]
    for cause, name in _BY_RECEIPT.items():
        pair_lost[followed, cause] += receipts[name]
    sums = {}
    for name in ("delivered", "late", "delay_sum"):
        sums[name] = _by_pair(cells[name], units)
        sums[name][followed] = receipts[name]
    redelivered = np.zeros((units.pair_unit.size, len(REDELIVERED)))
    for column, name in enumerate(REDELIVERED):
        redelivered[followed, column] = receipts[name]
    stations, channels = world.tables["stations"], world.tables["channels"]
    limits = world.tables["limits"]
    return Counts(
        published=published,
        wanted=wanted,
        delivered=sums["delivered"],
        late=sums["late"],
        delay_sum_s=sums["delay_sum"],
        pair_lost=pair_lost,
        lost=_by_unit(pair_lost, units),
        redelivered=_by_unit(redelivered, units),
        curves=_curves(world, "value"),
        lowest_s=_curves(world, "lowest"),
        highest_s=_curves(world, "highest"),
        station_counts=np.column_stack([stations[name].astype(float) for name in STATION_FIELDS]),
        channel_counts=np.column_stack([channels[name].astype(float) for name in CHANNEL_FIELDS]),
        blocked=np.column_stack([limits[name].astype(float) for name in BLOCKED_FIELDS]),
        most_copies=len(world.tables["copies"]),
        duplicates=int(world.record[0].duplicates),
        acknowledgements=int(world.record[0].acknowledgements),
        refreshes=int(world.record[0].refreshes),
        subscribes=int(world.record[0].subscribes),
        unsubscribes=int(world.record[0].unsubscribes),
    )


class _Receipts:
    """What receivers have counted, by pair: the sum of all whose counts are added up."""

    def __init__(self, receipts: Any, at: Ints, followers: Ints, publishers: int) -> None:
        self._receipts, self._starts = receipts, np.cumsum(followers) - followers
        number = np.arange(int(followers.sum())) - np.repeat(self._starts, followers)
        self._at = np.repeat(at, followers) + number * publishers

    def __getitem__(self, name: str) -> Numbers:
        values: Numbers = self._receipts[name][self._at]
        return np.add.reduceat(values, self._starts) if self._starts.size else values


def _total(where: Ints, values: Numbers, size: int) -> Numbers:
    """Sum values by where they belong; whole numbers stay whole (below 2⁵³)."""
    sums = np.bincount(where, weights=values, minlength=size)
    return sums.astype(values.dtype)


def _by_unit(columns: Floats, units: Units) -> Floats:
    """Sum over the pairs of each unit, column by column."""
    return np.column_stack([_total(units.pair_unit, each, units.count) for each in columns.T])


def _by_pair(values: Numbers, units: Units) -> Numbers:
    return _total(units.entry_pair, values[units.entry_cell], units.pair_unit.size)


def _losses(world: World, compiled: CompiledSystem) -> Floats:
    """Count losses for the subscribers of each [cell, cause], wherever on the way they arose."""
    causes = int(compiled.numbers["cause_count"])
    losses = compiled.cells.summed_along_paths(world.tables["losses"].value.reshape(-1, causes))
    if compiled.faults.matter:
        losses += world.tables["losses_here"].value.reshape(-1, causes)
    return losses


def _curves(world: World, field: str) -> Numbers:
    plain, own = (world.tables[name][field] for name in ("curves", "receiver_curves"))
    return np.concatenate([plain, own]).reshape(-1, delay_grid.BINS)
