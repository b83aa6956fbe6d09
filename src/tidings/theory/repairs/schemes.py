"""The recovery schemes: what becomes of events between the brokers of a system that fails.

Queues are taken as if nothing failed: what a repair sets free at once, what crashes keep from
brokers behind, and the load of detours are left to the regimes of measured errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tidings.model.arrays import Floats, Ints
from tidings.theory.delay.delays import Delays, from_law, nothing, stack
from tidings.theory.delay.grids import Grid
from tidings.theory.delay.paths import Paths
from tidings.theory.feature_names import FAILING
from tidings.theory.queues.flows import Flows
from tidings.theory.repairs.components import HOME_DOWN, PATH_DOWN, Path, paths_to
from tidings.theory.repairs.losses import (
    Loss,
    after_loss,
    exposed,
    forgotten_along,
    in_order,
    of_row,
    up_along,
)

if TYPE_CHECKING:
    from tidings.theory.repairs.failing import Repairs

_ROUNDING = 1e-12  # of a share


class Tails(NamedTuple):
    """From after the service of a first broker that is up to after that of the last one."""

    whole: Delays  # nothing expires
    unkept: Delays  # of that, what no buffer holds


@dataclass(frozen=True, kw_only=True)
class FailingPaths:
    """Paths of a system that fails, put together from the stages of one that does not."""

    paths: Paths
    rates: Flows
    repairs: Repairs
    kept: bool = True  # with what waits in buffers
    _tails: dict[tuple[int, int, tuple[int, ...]], Tails] = field(default_factory=dict)

    @property
    def grid(self) -> Grid:
        """Times at which distributions are known."""
        return self.paths.grid

    def without_buffers(self) -> FailingPaths:
        """Take only the events that never wait in a buffer."""
        return replace(self, kept=False)

    def from_publishers(
        self, publishers: Ints, home: int, tree: int, grid: Grid | None = None
    ) -> Delays:
        """Compute delays from publishers to after the home's service, [publisher].

        They are known at the times of a grid.
        """
        routes = self.paths.routes
        starts, place = np.unique(routes.home_of_publisher[publishers], return_inverse=True)
        key = (home, tree, tuple(starts.tolist()))
        if key not in self._tails:
            if any(other[0] != home for other in self._tails):
                self._tails.clear()  # homes are asked for one after the other
            self._tails[key] = self._put_together(home, tree, key[2])
        tails = self._tails[key][0 if self.kept else 1]
        first = self._at_first.take(publishers).series(tails.take(place))
        needs = self.repairs.components.of_broker
        up = [self.repairs.components.all_up(needs[start]) for start in starts]
        return after_loss(first.on(grid or self.grid), np.array(up)[place], HOME_DOWN)

    def features(self, publishers: Ints, home: int, tree: int) -> Floats:
        """Compute what measured errors may depend on, [publisher, feature of failing]."""
        repairs, homes = self.repairs, self.paths.routes.home_of_publisher[publishers]
        paths = paths_to(self.paths.routes, home, tree, np.unique(homes).tolist())
        rows = np.zeros((homes.size, len(FAILING)))
        for row, start in enumerate(homes.tolist()):
            needs = repairs.components.of_path(paths[start])
            everything = {each for needed in needs for each in needed}
            rows[row] = (
                1.0,
                float(repairs.bypassing),
                float(repairs.buffering),
                1.0 - repairs.components.all_up(everything),
                self._struck(paths[start]),
                float(repairs.simplified or (start, home, tree) in repairs.rough),
            )
        return rows

    def _struck(self, path: Path) -> float:
        """Compute the expected number of failures of what serves or carries an event.

        Only what comes after its first broker counts.
        """
        parts = self.repairs.components
        elements = zip(self._stays_s(path), parts.of_path(path)[1:], strict=True)
        return sum(stay_s * parts.fails_per_s(needed) for stay_s, needed in elements)

    def _stays_s(self, path: Path) -> list[float]:
        """List the mean times at every element of a path but the first broker, in seconds."""
        return [
            float(stay.shift_s[arc] + stay.mean_s[arc])
            for arc in path.arcs
            for stay in (self._over_arc, self._behind_arc)
        ]

    def _put_together(self, home: int, tree: int, starts: Sequence[int]) -> Tails:
        paths = paths_to(self.paths.routes, home, tree, starts)
        plain = self.paths.tails(home, tree).take(self.paths.tail_rows(starts))
        if self.repairs.bypassing:
            return self._bypassing(paths, plain, home, tree)
        if self.repairs.scheme == "buffering":
            return self._buffering(paths, plain, home, tree)
        rows = self._with_losses(plain, [self._static(path) for path in paths.values()])
        return Tails(rows, rows)

    # ---- stages ----------------------------------------------------------------------------------

    def _rates(self, needs: Sequence[tuple[int, ...]]) -> Floats:
        if self.repairs.published:  # whose paths take no time
            return np.zeros(len(needs))
        return np.array([self.repairs.components.fails_per_s(each) for each in needs])

    @cached_property
    def _at_first(self) -> Delays:
        """[publisher]: until its home broker has stored or sent the event."""
        homes = self.paths.routes.home_of_publisher
        stages = self.paths.at_broker.take(np.arange(homes.size))
        needs = [self.repairs.components.of_broker[home] for home in homes]
        return self.paths.entry.series(exposed(stages, self._rates(needs), HOME_DOWN))

    @cached_property
    def _over_arc(self) -> Delays:
        stages = self.paths.over_arc
        if self.repairs.buffering or not self.paths.routes.arcs:
            return stages
        needs = [self.repairs.components.of_link[arc >> 1] for arc in range(len(stages))]
        return exposed(stages, self._rates(needs), PATH_DOWN)

    @cached_property
    def _behind_arc(self) -> Delays:
        """[arc]: at the broker that it leads to, also where nothing comes over it as a rule."""
        arcs = self.paths.routes.arcs
        if not arcs:
            return nothing(self.paths.grid)
        stages = stack([self._at_arc(arc) for arc in range(len(arcs))])
        if self.repairs.buffering:
            return stages
        needs = [self.repairs.components.of_broker[arc.target] for arc in arcs]
        return exposed(stages, self._rates(needs), PATH_DOWN)

    def _at_arc(self, arc: int) -> Delays:
        """Compute the delay at the broker behind an arc, as what usually comes over the arc has it.

        Where nothing does, it is as all that comes to the broker has it.
        """
        rates, source = self.rates, self.paths.publishers + arc
        if rates.source_rates[source] > 0.0:
            return self.paths.at_broker.take([source])
        broker = rates.into[source]
        others = np.flatnonzero((rates.into == broker) & (rates.source_rates > 0.0))
        if others.size:
            shares = rates.source_rates[others] / rates.source_rates[others].sum()
            return self.paths.at_broker.take(others).mix(shares[None, :])
        stages = [from_law(self.paths.grid, law) for law in rates.services[broker]]
        return reduce(Delays.series, stages, nothing(self.paths.grid))

    def _stage_losses(self, path: Path) -> list[Loss]:
        """List the losses of every link and broker of a path after the first broker."""
        losses = []
        for arc in path.arcs:
            losses += [of_row(self._over_arc, arc), of_row(self._behind_arc, arc)]
        return losses

    def _along(self, path: Path) -> Delays:
        """Combine all stages of a path but the first broker into one delay."""
        hops = (self._hops.take([arc]) for arc in path.arcs)
        return reduce(Delays.series, hops, nothing(self.paths.grid))

    @cached_property
    def _hops(self) -> Delays:
        """[arc]: over it and at the broker behind it."""
        return self._over_arc.series(self._behind_arc)

    @staticmethod
    def _with_losses(delays: Delays, losses: Sequence[Loss]) -> Delays:
        causes = dict.fromkeys(cause for _, lost in losses for cause in lost)
        return replace(
            delays,
            survival=np.array([share for share, _ in losses]),
            lost={c: np.array([lost.get(c, 0.0) for _, lost in losses]) for c in causes},
        )

    # ---- schemes ---------------------------------------------------------------------------------

    def _static(self, path: Path) -> Loss:
        """Compute losses without buffers: where anything on the path is down, or has forgotten."""
        stays_s = [0.0] * (2 * len(path.arcs)) if self.repairs.published else self._stays_s(path)
        checks = up_along(self.repairs.components, path, stays_s)
        stages = self._stage_losses(path)
        tables: list[Loss] = [(1.0, {})] * (len(checks) + 1)
        if self.repairs.scheme == "none":
            tables = forgotten_along(self.repairs.components, path)
        losses = tables[:1]
        for check, table, stage in zip(checks, tables[1:], stages, strict=True):
            losses += [check, table, stage]
        return in_order(losses)

    def _buffering(self, paths: dict[int, Path], plain: Delays, home: int, tree: int) -> Tails:
        waits = self.repairs.waits_to(home, tree, paths)
        losses = [in_order(self._stage_losses(path)) for path in paths.values()]
        rows = self._with_losses(plain, losses)
        unkept = replace(rows, survival=rows.survival * waits.atom)
        return Tails(rows.series(waits), unkept)

    def _bypassing(self, paths: dict[int, Path], plain: Delays, home: int, tree: int) -> Tails:
        whole, unkept = [], []
        for row, (start, path) in enumerate(paths.items()):
            mine = plain.take([row])
            if self.repairs.reachability.is_only_path(path):
                tails = self._on_only_path(path, mine, home, tree)
            elif self.repairs.scheme == "bypass":
                tails = self._going_round(path)
            else:
                tails = self._round_or_waiting(path, mine, (start, home, tree))
            whole.append(tails.whole)
            unkept.append(tails.unkept)
        return Tails(stack(whole), stack(unkept))

    def _on_only_path(self, path: Path, plain: Delays, home: int, tree: int) -> Tails:
        if self.repairs.buffering:
            return self._buffering({path.brokers[0]: path}, plain, home, tree)
        rows = self._with_losses(plain, [self._static(path)])
        return Tails(rows, rows)

    def _taken(self, path: Path) -> list[tuple[float, Path]]:
        """List the paths that events take, with shares; this one alone if all are equivalent."""
        if not self._differ:
            return [(1.0, path)]
        return self.repairs.detours(path).likeliest()

    @cached_property
    def _differ(self) -> bool:
        """Whether it makes a difference which path an event takes."""
        stages = self._hops
        counts = (
            (stages.survival < 1.0 - _ROUNDING) | (stages.shift_s > 0.0) | (stages.mean_s > 0.0)
        )
        return bool(np.any(counts) or np.any(self.repairs.reliability < 1.0))

    def _going_round(self, path: Path) -> Tails:
        taken = self._taken(path)
        delays = stack([self._along(each) for _, each in taken])
        row = delays.mix(np.array([[share for share, _ in taken]]))
        row = after_loss(row, self.repairs.reached(path), PATH_DOWN)
        return Tails(row, row)

    def _round_or_waiting(self, path: Path, plain: Delays, key: tuple[int, int, int]) -> Tails:
        """Combine delays of whatever path is up at once, else of the usual one with its buffers.

        A copy that goes round is not acknowledged: one that is lost by chance waits, too.
        """
        taken = self._taken(path)
        chances = [self._chance(path, each) for _, each in taken]
        around = [(s, c) for (s, each), c in zip(taken, chances, strict=True) if each != path]
        sent = sum(share for share, _ in around)
        survives = sum(share * chance for share, chance in around) / sent if sent > 0.0 else 1.0
        waits = self._wait_when_cut_off(path, survives, key)
        shares = np.array([s * c for (s, _), c in zip(taken, chances, strict=True)])
        at_once = float(waits.atom[0])
        rows = stack([self._along(each) for _, each in taken])
        unkept = rows.mix(at_once * shares[None, :] / shares.sum())
        if at_once >= 1.0:
            return Tails(unkept, unkept)
        held = self._along(path).series(_given_held(waits))
        weights = np.append(at_once * shares / shares.sum(), 1.0 - at_once)
        return Tails(stack([rows, held]).mix(weights[None, :]), unkept)

    def _chance(self, usual: Path, path: Path) -> float:
        """Compute P[no link loses a copy by chance from where a path leaves the usual one]."""
        if path == usual:
            return 1.0
        pairs = enumerate(zip(usual.arcs, path.arcs, strict=False))
        same = next((at for at, (one, other) in pairs if one != other), len(usual.arcs))
        return float(np.prod(self.repairs.reliability[list(path.arcs[same:])]))

    def _wait_when_cut_off(self, path: Path, survives: float, key: tuple[int, int, int]) -> Delays:
        """Compute the wait given the real partition at publication.

        Where that is not known, it is as the usual path alone has it.
        """
        repairs = self.repairs
        if not any(repairs.components.of_path(path)):  # nothing on it fails
            return nothing(self.paths.grid)
        if not repairs.published:
            exact = repairs.wait_when_cut_off(path, survives)
            if exact is not None:
                return exact
            repairs.rough.add(key)
        start, home, tree = key
        alone = repairs.waits_to(home, tree, {start: path})
        usual = float(alone.atom[0])
        at_once = usual + max(self.repairs.reached(path) - usual, 0.0) * survives
        return _with_atom(alone, at_once)


def _given_held(waits: Delays) -> Delays:
    """Compute the wait of those that wait at all."""
    return _with_atom(waits, 0.0)


def _with_atom(waits: Delays, atom: float) -> Delays:
    """Change the share that does not wait to ``atom``; those that wait do so as before.

    With atom r_A/a_b0 this is the published wait of bypass with buffering.
    """
    before = waits.atom[:, None]
    factor = (1.0 - atom) / np.where(before < 1.0, 1.0 - before, 1.0)
    return replace(
        waits,
        values=atom + (waits.values - before) * factor,
        mean_s=waits.mean_s * factor[:, 0],
        atom=np.full(len(waits), atom),
    )
