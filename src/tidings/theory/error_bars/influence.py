"""What small changes of stages make of shares on time and of mean delays.

The transform of a path is the product of those of its stages, and its distribution at a time is
linear in that product. Where a change turns the transform B of a stage into B (1 + b), the share
of a stream changes by Re Σ u(z) Σ b(z), the second sum over the stages of its path: one product
of matrices for all streams and changes, instead of one prediction for each change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tidings.model.arrays import Complexes, Floats, Ints
from tidings.theory.delay.delays import Delays
from tidings.theory.delay.distributions import Distributions
from tidings.theory.delay.paths import Paths
from tidings.theory.error_bars.changes import (
    Changes,
    Response,
    node_weights,
    stages_of_streams,
)
from tidings.theory.repairs.schemes import FailingPaths

if TYPE_CHECKING:
    from tidings.theory.network.arriving import Leaving


def responses(
    leaving: Leaving, paths: Paths | FailingPaths, groups: Sequence[Changes]
) -> list[Response]:
    """Compute by how much groups of changes alter what the streams of an audience do."""
    delays = leaving.delays(paths, leaving.rows)
    arrivals = delays.distributions
    on_time = leaving.by_lifetime(arrivals.on_time)
    delay_s, kept = arrivals.shift_s + arrivals.mean_s, np.ones(len(delays))
    if isinstance(paths, FailingPaths) and paths.repairs.buffering:
        kept, delay_s = _delivered(leaving, paths, arrivals, on_time)
    met = stages_of_streams(leaving)
    answers = []
    for changes in groups:
        near = np.flatnonzero(np.any(met[:, changes.stages], axis=0))
        here = met[:, changes.stages[near]]
        survival, shift_s, mean_s, held, _ = (here * each for each in changes.others[:, near])
        shares = here * _by_values(leaving, delays, changes.values, near)
        shares += on_time[:, None] * survival
        if np.any(shift_s):
            shares += _by_shift(leaving, arrivals, float(np.abs(shift_s).max()))[:, None] * shift_s
        survival = survival + (1.0 - kept)[:, None] * held
        mean_s = np.where(held != 0.0, kept[:, None] * mean_s, mean_s)
        by_parameter = changes.by_parameter[near]
        answers.append(
            Response(
                on_time=on_time,
                survival=arrivals.survival,
                delay_s=delay_s,
                on_time_by=shares @ by_parameter,
                survival_by=survival @ by_parameter,
                delay_by_s=(shift_s + mean_s) @ by_parameter,
            )
        )
    return answers


def _by_values(leaving: Leaving, delays: Delays, values: Complexes, near: Ints) -> Floats:
    """Compute how much a relative change of transforms would change shares, [row, near change]."""
    arrivals = delays.distributions
    by_values = np.zeros((len(delays), near.size))
    for code, lifetimes_s in leaving.lifetimes_s.items() if near.size else ():
        rows = np.flatnonzero(leaving.lifetime_codes == code)
        rest_s = lifetimes_s - arrivals.shift_s[rows, None]
        parts = np.full(rest_s.shape, 1.0 / lifetimes_s.size)
        weights = node_weights(arrivals.grid, rest_s, parts)
        used = np.flatnonzero(np.any(weights != 0.0, axis=0))  # times around lifetimes
        weights = weights[:, used] * delays.values[np.ix_(rows, used)]
        by_values[rows] = (weights @ values[np.ix_(near, used)].T).real
    return by_values * arrivals.survival[:, None]


def _by_shift(leaving: Leaving, arrivals: Distributions, step_s: float) -> Floats:
    """Compute by how much shares change with every second that all take longer, [row], in 1/s."""
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
