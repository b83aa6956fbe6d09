"""Delay quantiles of every subscriber, and their whole delay laws as rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tidings.model.delay_grid import EDGES_S
from tidings.model.outcome import QUANTILES
from tidings.model.system import System
from tidings.theory.audiences import Floats, Ints
from tidings.theory.bundles import NodeTransforms
from tidings.theory.delay_tables import (
    CommonGrid,
    Extent,
    Mixtures,
    PathTable,
    Tables,
    common_grid,
    mixtures,
)
from tidings.theory.shares import Journeys, Shares
from tidings.theory.stage_columns import stage_columns

_EDGES_S = EDGES_S[::2]
_ENDS = (0.001, 0.999)  # of the delivered events: the part of the law that is written down


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayColumns:
    """Quantiles by subscriber, and rows of the delay laws, as columns of result tables."""

    tables: Tables  # by which single ways were tabulated
    quantiles: dict[str, Floats]
    laws: dict[str, list[object]] = field(
        default_factory=lambda: {"subscriber": [], "delay_s": [], "arrived": []}
    )


def delay_columns(
    system: System, journeys: Journeys, results: list[Shares], *, whole_laws: bool
) -> DelayColumns:
    """Delays of what is delivered to every subscriber, in seconds; NaN where nothing is."""
    named = list(QUANTILES)
    extent = _extent(results)
    tables = Tables(extent.times_s(), journeys.workshop)
    unknown = {name: np.full(len(system.subscribers), np.nan) for name in named}
    found = DelayColumns(tables=tables, quantiles=unknown)
    coarse = Tables(extent.times_s(coarse=True), journeys.workshop)
    nodes = NodeTransforms(bundles=journeys.bundles, z=coarse.z)
    together = _Together(tables=coarse, journeys=journeys, nodes=nodes)
    asked = [*QUANTILES.values(), *(_ENDS if whole_laws else ())]
    for result in results:
        weights, rows = _delivered(result)
        if rows.size == 0:
            continue
        times_s = np.full((len(result.audience.filters), len(asked)), np.nan)
        if result.few or whole_laws:
            reaching = np.flatnonzero(result.delivered > 0)
            all_stages = result.stages
            stages = [all_stages[index] for index in reaching]
            shares = weights[rows][:, reaching].toarray()
            mixed = mixtures(tables, stages, shares, result.cuts(reaching))
            times_s[rows] = mixed.quantiles(asked)
            if whole_laws:
                _add_laws(found, system, result, (rows, mixed, times_s[:, len(named) :]))
        else:
            times_s[rows] = together.quantiles(result, weights[rows], asked)
        for position, name in enumerate(named):
            mine = times_s[result.audience.filter_of, position]
            found.quantiles[name][result.audience.subscribers] = mine
    return found


def _extent(results: list[Shares]) -> Extent:
    extent = Extent()
    for result in results:
        extent.include(result.ways.take(np.flatnonzero(result.delivered > 0)))
        if np.any(result.expired):
            others = [stage.unkept for stage in result.stages if stage.unkept is not None]
            extent.include(stage_columns([each for each in others if each.survives > 0.0]))
    return extent


@dataclass(frozen=True, slots=True, kw_only=True)
class _Together:
    """The laws of all ways to an audience at once."""

    tables: Tables
    journeys: Journeys
    nodes: NodeTransforms

    def quantiles(self, result: Shares, weights: sparse.csr_array, shares: list[float]) -> Floats:
        """Quantiles of what each filter is delivered, in seconds."""
        ways = self.journeys.streams.ways[result.used]
        _, first, way_of = np.unique(ways, return_index=True, return_inverse=True)
        table = weights.tocoo()
        filter_, stream = table.coords
        shape = (table.shape[0], first.size)
        by_way = sparse.coo_array((table.data, (filter_, way_of[stream])), shape=shape).tocsr()
        return self._grid(result, first).quantiles(by_way, shares)

    def _grid(self, result: Shares, first: Ints) -> CommonGrid:
        """The laws of the ways of some of the audience's streams."""
        used, exit_ = result.used[first], result.audience.exit
        trees = self.journeys.streams.trees[used]
        transforms = np.empty((used.size, self.tables.z.size), dtype=np.complex128)
        last = self.journeys.ways.over_channel(exit_.channel)
        for tree in np.unique(trees):
            mine = np.flatnonzero(trees == tree)
            bundle = self.journeys.bundles.bundle(exit_.broker, int(tree))
            entries = self.journeys.entries(used[mine])
            transforms[mine] = self.nodes.of_ways(bundle, entries, last)
        ways = result.ways.take(first)
        below, slope, atoms = self.tables.stack_bundle(transforms, ways)
        paths = PathTable(
            tables=self.tables, shifts_s=ways.shift_s, below=below, slope=slope, atoms=atoms
        )
        return common_grid(paths)


def _add_laws(
    found: DelayColumns,
    system: System,
    result: Shares,
    mixed: tuple[NDArray[np.int64], Mixtures, Floats],
) -> None:
    rows, laws, ends_s = mixed
    known = {
        int(row): _law(result, int(row), laws.only(position), ends_s[row])
        for position, row in enumerate(rows)
    }
    members = zip(result.audience.subscribers, result.audience.filter_of, strict=True)
    for subscriber, which in members:
        if int(which) in known:
            times_s, arrived = known[int(which)]
            name = system.subscribers[int(subscriber)].name
            found.laws["subscriber"].extend([name] * times_s.size)
            found.laws["delay_s"].extend(times_s.tolist())
            found.laws["arrived"].extend(arrived.tolist())


def _law(result: Shares, row: int, law: Mixtures, ends_s: Floats) -> tuple[Floats, Floats]:
    """Delays, and the share of the events one filter wants that has arrived by then."""
    first, last = np.searchsorted(_EDGES_S, ends_s)
    edges_s = _EDGES_S[max(first - 1, 0) : last + 1]
    weights = result.wanted[[row]].toarray()[0]
    weights /= weights.sum()
    lifetimes_s = np.unique(result.lifetimes_s[weights > 0])
    lifetimes_s = lifetimes_s[np.isfinite(lifetimes_s)]
    times_s: Floats = np.unique(np.concatenate([edges_s, lifetimes_s]))
    arrived: Floats = (weights @ result.delivered) * law.cdf(times_s[None, :])[0]
    if lifetimes_s.size == 1 and np.isfinite(result.lifetimes_s[weights > 0]).all():
        # All its events live equally long: the on-time share is a point of the law, known better.
        at_s, share = lifetimes_s[0], float(weights @ result.on_time)
        arrived = np.where(times_s < at_s, np.minimum(arrived, share), np.maximum(arrived, share))
        arrived[times_s == at_s] = share
    return times_s, arrived


def _delivered(result: Shares) -> tuple[sparse.csr_array, Ints]:
    """[filter, stream] what is delivered per second; the filters that anything is delivered to."""
    weights = (result.wanted @ sparse.diags_array(result.delivered)).tocsr()
    return weights, np.flatnonzero(weights.sum(axis=1) > 0)
