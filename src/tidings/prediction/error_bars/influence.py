"""What small changes of stages make of shares on time and of mean delays.

The transform of a path is the product of those of its stages, and its distribution at a time is
linear in that product. Where a change turns the transform B of a stage into B (1 + b), the share
of a stream changes by Re Σ u(z) Σ b(z), the second sum over the stages of its path: one product
of matrices for all streams and changes, instead of one prediction for each change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from tidings.model import topology
from tidings.model.arrays import Bools, Complexes, Floats, Ints
from tidings.prediction.delay.delays import Delays
from tidings.prediction.delay.distributions import Distributions
from tidings.prediction.delay.paths import Paths
from tidings.prediction.error_bars.changes import Changes, stage_order
from tidings.prediction.repairs.schemes import FailingPaths

if TYPE_CHECKING:
    from tidings.prediction.network.arriving import Leaving
    from tidings.prediction.network.network import Network


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
    shares = here * _by_values(leaving, delays, changes.values, near)
    shares += on_time[:, None] * survival
    if np.any(shift_s):
        shares += _by_shift(leaving, arrivals, float(np.abs(shift_s).max()))[:, None] * shift_s
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


def _by_values(leaving: Leaving, delays: Delays, values: Complexes, near: Ints) -> Floats:
    """[row, near change]: by how much a relative change of transforms would change shares."""
    arrivals = delays.distributions
    by_values = np.zeros((len(delays), near.size))
    for code, lifetimes_s in leaving.lifetimes_s.items() if near.size else ():
        rows = np.flatnonzero(leaving.lifetime_codes == code)
        weights = _weights(arrivals, lifetimes_s, rows)
        used = np.flatnonzero(np.any(weights != 0.0, axis=0))  # times around lifetimes
        weights = weights[:, used] * delays.values[np.ix_(rows, used)]
        by_values[rows] = (weights @ values[np.ix_(near, used)].T).real
    return by_values * arrivals.survival[:, None]


def _by_shift(leaving: Leaving, arrivals: Distributions, step_s: float) -> Floats:
    """[row]: by how much shares change with every second that all take longer."""
    later = leaving.by_lifetime(lambda times_s, rows: arrivals.on_time(times_s - step_s, rows))
    return (later - leaving.by_lifetime(arrivals.on_time)) / step_s


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
