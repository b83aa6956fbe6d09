"""What causes make of the stages of paths, to first order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from tidings.model import topology
from tidings.model.arrays import Bools, Complexes, Floats, Ints
from tidings.theory.delay.delays import Delays
from tidings.theory.delay.grids import Grid

if TYPE_CHECKING:
    from tidings.theory.network.arriving import Leaving
    from tidings.theory.network.network import Network


@dataclass(frozen=True, slots=True, kw_only=True)
class StageChange:
    """What one cause makes of one stage, to first order."""

    stage: int
    cause: int
    values: Complexes  # [time · node]: relative change of the transform
    survival: float = 0.0  # relative change of the share that survives
    shift_s: float = 0.0
    mean_s: float = 0.0
    held: float = 0.0  # relative change of the share that waits for no repair
    stays: float = 0.0  # relative change of how long subscribers stay


def change(stage: int, cause: int, before: Delays, after: Delays) -> StageChange:
    """Compare one delay with what it becomes."""
    one, other = before.values[0], after.values[0]
    least = np.abs(one) > 0.0
    return StageChange(
        stage=stage,
        cause=cause,
        values=np.where(least, other / np.where(least, one, 1.0) - 1.0, 0.0),
        survival=float(after.survival[0] / before.survival[0] - 1.0),
        shift_s=float(after.shift_s[0] - before.shift_s[0]),
        mean_s=float(after.mean_s[0] - before.mean_s[0]),
    )


@dataclass(frozen=True, kw_only=True)
class Changes:
    """All changes, and how much of each cause there is in a move of each parameter."""

    each: Sequence[StageChange]
    moves: Floats  # [cause, parameter]

    @cached_property
    def stages(self) -> Ints:
        """[change]: the stage that it concerns."""
        return np.array([change.stage for change in self.each], dtype=np.int64)

    @cached_property
    def values(self) -> Complexes:
        """[change, time · node]: of the transform, relative."""
        return np.array([change.values for change in self.each], dtype=np.complex128)

    @cached_property
    def others(self) -> Floats:
        """[5, change]: of the surviving share, shift, mean, share that waits for no repair, stays.

        Shifts and means in seconds, the others relative.
        """
        rows = [
            (each.survival, each.shift_s, each.mean_s, each.held, each.stays) for each in self.each
        ]
        return np.array(rows, dtype=np.float64).reshape(-1, 5).T

    @cached_property
    def by_parameter(self) -> sparse.csr_array:
        """[change, parameter]: how much of it there is in a move of the parameter."""
        causes = np.array([change.cause for change in self.each], dtype=np.int64)
        return sparse.csr_array(self.moves[causes])


@dataclass(frozen=True, slots=True)
class StageOrder:
    """Where the stages of each kind begin: sources at brokers, arcs, entries, what fails."""

    publishers: int
    arcs: int
    processes: int

    @property
    def arc(self) -> int:
        """The first arc, as a stage; sources come before."""
        return self.publishers + self.arcs

    @property
    def entry(self) -> int:
        """The first entry of a publisher."""
        return self.publishers + 2 * self.arcs

    @property
    def loss(self) -> int:
        """The first process that loses what meets it while it is down."""
        return 2 * (self.publishers + self.arcs)

    @property
    def wait(self) -> int:
        """The first process that lets what meets it wait until it is up again."""
        return self.loss + self.processes

    @property
    def exit(self) -> int:
        """From the home broker to the subscriber, its own queue included."""
        return self.wait + self.processes

    @property
    def count(self) -> int:
        """How many stages there are."""
        return self.exit + 1


def stage_order(network: Network) -> StageOrder:
    """Enumerate the stages of a network."""
    processes = 0 if network.failing is None else len(network.failing.processes)
    return StageOrder(len(network.system.publishers), len(network.routes.arcs), processes)


def stages_to(network: Network, home: int, tree: int) -> Bools:
    """Mark which stages events meet from a broker on to the home broker, [broker, stage]."""
    routes, order = network.routes, stage_order(network)
    on_path = np.zeros((len(network.system.brokers), order.count), dtype=np.bool_)
    for broker, into in topology.walk(routes.trees[tree], routes.arcs, home):
        if into >= 0:
            onwards, after = into ^ 1, routes.arcs[into].source
            on_path[broker] = on_path[after]
            on_path[broker, [order.publishers + onwards, order.arc + onwards]] = True
            if network.failing is not None:
                needed = network.failing.of_link[into >> 1] + network.failing.of_broker[after]
                behind = order.wait if network.buffering else order.loss
                on_path[broker, [behind + each for each in needed]] = True
    for broker, own in enumerate(network.failing.of_broker if network.failing else ()):
        for each in own:  # what is up at first is so on the rest of the path, nearly
            on_path[broker, [order.loss + each, order.wait + each]] = True, False
    return on_path


def stages_of_streams(leaving: Leaving) -> Bools:
    """Mark which stages the streams of an audience meet, [row, stage]."""
    came, network = leaving.came, leaving.came.network
    publishers = came.publishers[leaving.rows]
    trees = came.streams.trees[came.used[leaving.rows]]
    homes, order = network.routes.home_of_publisher, stage_order(network)
    met = np.zeros((publishers.size, order.count), dtype=np.bool_)
    for tree in np.unique(trees):
        rows = np.flatnonzero(trees == tree)
        met[rows] = stages_to(network, came.home, int(tree))[homes[publishers[rows]]]
    row = np.arange(publishers.size)
    met[row, publishers] = met[row, order.entry + publishers] = met[:, order.exit] = True
    return met


@dataclass(frozen=True, kw_only=True)
class Response:
    """What the streams of an audience do, and by how much moves of parameters change it."""

    on_time: Floats  # [row]: shares
    survival: Floats  # [row]
    delay_s: Floats  # [row]: mean
    on_time_by: Floats  # [row, parameter]
    survival_by: Floats  # [row, parameter]: relative
    delay_by_s: Floats  # [row, parameter]

    def of_filters(self, wanted: sparse.csr_array, published: Floats) -> tuple[Floats, Floats]:
        """Compute by how much on-time shares and mean delays change, both [filter, parameter].

        ``wanted`` is [filter, row], ``published`` [row, parameter] the relative change of what is
        published.
        """
        total = _or_nan(np.asarray(wanted.sum(axis=1)))[:, None]
        share = (wanted @ self.on_time)[:, None] / total
        on_time = wanted @ (self.on_time_by + published * self.on_time[:, None])
        arriving = wanted @ sparse.diags_array(self.survival)
        arrives = _or_nan(wanted @ self.survival)[:, None]
        delay_s = (arriving @ self.delay_s)[:, None] / arrives
        more = self.survival_by + published
        spent_s = arriving @ (self.delay_by_s + more * self.delay_s[:, None])
        return (
            (on_time - share * (wanted @ published)) / total,
            (spent_s - delay_s * (arriving @ more)) / arrives,
        )


def _or_nan(numbers: Floats) -> Floats:
    """Put NaN in the place of 0, of which there are no shares."""
    return np.where(numbers > 0.0, numbers, np.nan)


def node_weights(grid: Grid, rest_s: Floats, parts: Floats) -> Complexes:
    """Compute what the transform at each node counts in a sum of shares, [row, time · node].

    Of the shares that have arrived by some times, both [row, time], each with a part of the sum.
    """
    first_s, last_s = grid.times_s[0], grid.times_s[-1]
    place = np.log(np.clip(rest_s, first_s, last_s) / first_s) / grid.step
    at = np.minimum(place.astype(np.int64), grid.times_s.size - 2)
    x = place - at
    inside = (rest_s > 0.0) & (rest_s < last_s)
    part = np.where(inside, np.clip(rest_s / first_s, 0.0, 1.0), 0.0) * parts
    below, slope = np.zeros((2, len(rest_s), grid.times_s.size))
    row = np.arange(len(rest_s))[:, None]
    rising = x * x * (3.0 - 2.0 * x)
    np.add.at(below, (row, at), part * (1.0 - rising))
    np.add.at(below, (row, at + 1), part * rising)
    np.add.at(slope, (row, at), part * x * (1.0 - x) ** 2)
    np.add.at(slope, (row, at + 1), part * x * x * (x - 1.0))
    of_below, of_slope = grid.rules
    nodes = below[:, :, None] * of_below + slope[:, :, None] * of_slope
    return nodes.reshape(len(rest_s), -1)
