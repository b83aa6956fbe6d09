"""What small changes of stages make of shares on time and of mean delays.

The transform of a path is the product of those of its stages, and its distribution at a time is
linear in that product. Where a change turns the transform B of a stage into B (1 + b), the share
of a stream changes by Re Σ u(z) Σ b(z), the second sum over the stages of its path: one product
of matrices for all streams and changes, instead of one prediction for each change.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from tidings.model import topology
from tidings.model.arrays import Bools, Complexes, Floats, Ints
from tidings.prediction.arriving import Leaving
from tidings.prediction.delays import Delays
from tidings.prediction.distributions import Distributions
from tidings.prediction.network import Network
from tidings.prediction.paths import Paths
from tidings.prediction.repairs.schemes import FailingPaths


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one cause makes of one stage, to first order."""

    stage: int
    cause: int
    values: Complexes  # [time · node]: relative change of the transform
    survival: float = 0.0  # relative change of the share that survives
    shift_s: float = 0.0
    mean_s: float = 0.0
    held: float = 0.0  # relative change of the share that waits for no repair


def change(stage: int, cause: int, before: Delays, after: Delays) -> Change:
    """Compare one delay with what it becomes."""
    one, other = before.values[0], after.values[0]
    least = np.abs(one) > 0.0
    return Change(
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

    each: Sequence[Change]
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
        """[4, change]: of the surviving share, shift, mean, and share that waits for no repair.

        Shares are relative, times in seconds.
        """
        rows = [(each.survival, each.shift_s, each.mean_s, each.held) for each in self.each]
        return np.array(rows, dtype=np.float64).reshape(-1, 4).T

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
    def count(self) -> int:
        """How many stages there are."""
        return self.wait + self.processes


def stage_order(network: Network) -> StageOrder:
    """Number the stages of a network."""
    processes = 0 if network.failing is None else len(network.failing.processes)
    return StageOrder(len(network.system.publishers), len(network.routes.arcs), processes)


def stages_to(network: Network, home: int, tree: int) -> Bools:
    """[broker, stage]: which stages events meet from a broker on to the home broker."""
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
    """[row, stage]: which stages the streams of an audience meet."""
    came, network = leaving.came, leaving.came.network
    publishers = came.publishers[leaving.rows]
    trees = came.streams.trees[came.used[leaving.rows]]
    homes, order = network.routes.home_of_publisher, stage_order(network)
    met = np.zeros((publishers.size, order.count), dtype=np.bool_)
    for tree in np.unique(trees):
        rows = np.flatnonzero(trees == tree)
        met[rows] = stages_to(network, came.home, int(tree))[homes[publishers[rows]]]
    row = np.arange(publishers.size)
    met[row, publishers] = met[row, order.entry + publishers] = True
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


def response(leaving: Leaving, paths: Paths | FailingPaths, changes: Changes) -> Response:
    """Compute by how much parameters change what the streams of an audience do."""
    delays = leaving.delays(paths, leaving.rows)
    arrivals = delays.distributions
    on_time = leaving.by_lifetime(arrivals.on_time)
    met = stages_of_streams(leaving)[:, changes.stages]
    near = np.flatnonzero(np.any(met, axis=0))
    here = met[:, near]
    survival, shift_s, mean_s, held = (here * each for each in changes.others[:, near])
    of_values = np.zeros(here.shape)
    earlier = np.zeros(on_time.size)  # what a share loses by a second less
    step_s = float(np.abs(shift_s).max(initial=0.0))
    for code, lifetimes_s in leaving.lifetimes_s.items():
        rows = np.flatnonzero(leaving.lifetime_codes == code)
        if near.size:
            weights = _weights(arrivals, lifetimes_s, rows)
            used = np.flatnonzero(np.any(weights != 0.0, axis=0))  # times around lifetimes
            weights = weights[:, used] * delays.values[np.ix_(rows, used)]
            of_values[rows] = (weights @ changes.values[np.ix_(near, used)].T).real
        if step_s > 0.0:
            moved = arrivals.on_time(lifetimes_s - step_s, rows)
            earlier[rows] = (moved - on_time[rows]) / step_s
    shares = here * of_values * arrivals.survival[:, None]
    shares += on_time[:, None] * survival + earlier[:, None] * shift_s
    delay_s = arrivals.shift_s + arrivals.mean_s
    if isinstance(paths, FailingPaths) and paths.repairs.buffering:
        kept, delay_s = _delivered(leaving, paths, arrivals, on_time)
        survival = survival + (1.0 - kept)[:, None] * held
        mean_s = np.where(held != 0.0, kept[:, None] * mean_s, mean_s)
    by_parameter = changes.by_parameter[near]
    return Response(
        on_time=on_time,
        survival=arrivals.survival,
        delay_s=delay_s,
        on_time_by=shares @ by_parameter,
        survival_by=survival @ by_parameter,
        delay_by_s=(shift_s + mean_s) @ by_parameter,
    )


def _delivered(
    leaving: Leaving, paths: FailingPaths, arrivals: Distributions, on_time: Floats
) -> tuple[Floats, Floats]:
    """Compute, by stream, which share of what waits for repairs is delivered, and its mean delay.

    Buffers drop what has expired. The delay, in seconds, is that of all that is delivered, the
    waits of some taken as those of all.
    """
    unkept = leaving.distributions(paths.without_buffers())
    waiting = np.maximum(arrivals.survival - unkept.survival, 1e-300)
    kept = np.clip((on_time - leaving.by_lifetime(unkept.on_time)) / waiting, 0.0, 1.0)
    extra_s = np.maximum(arrivals.mean_s - unkept.mean_s, 0.0)
    return kept, arrivals.shift_s + unkept.mean_s + kept * extra_s


def _weights(arrivals: Distributions, lifetimes_s: Floats, rows: Ints) -> Complexes:
    """[row, time · node]: what the transform at each node counts in the share within lifetimes."""
    grid = arrivals.grid
    rest_s = lifetimes_s - arrivals.shift_s[rows, None]
    first_s, last_s = grid.times_s[0], grid.times_s[-1]
    place = np.log(np.clip(rest_s, first_s, last_s) / first_s) / grid.step
    at = np.minimum(place.astype(np.int64), grid.times_s.size - 2)
    x = place - at
    inside = (rest_s > 0.0) & (rest_s < last_s)
    part = np.where(inside, np.clip(rest_s / first_s, 0.0, 1.0), 0.0) / lifetimes_s.size
    below, slope = np.zeros((2, rows.size, grid.times_s.size))
    row = np.arange(rows.size)[:, None]
    rising = x * x * (3.0 - 2.0 * x)
    np.add.at(below, (row, at), part * (1.0 - rising))
    np.add.at(below, (row, at + 1), part * rising)
    np.add.at(slope, (row, at), part * x * (1.0 - x) ** 2)
    np.add.at(slope, (row, at + 1), part * x * x * (x - 1.0))
    of_below, of_slope = grid.rules
    nodes = below[:, :, None] * of_below + slope[:, :, None] * of_slope
    return nodes.reshape(rows.size, -1)
