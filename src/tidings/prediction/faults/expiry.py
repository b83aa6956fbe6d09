"""What becomes of events on ways with buffers that drop what expires in them.

An event that would have been in time but for its waits in buffers, and is not, has expired in a
buffer. One that would have been late without any such wait is late.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidings.prediction.lifetimes import Lifetime, left_of, on_time
from tidings.prediction.path_laws import Estimate, PathLaw, Workshop, path_law
from tidings.prediction.stages import Floats, Stage

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_DECADES = 12  # below the end of the times looked at
_PANELS = 3 * _DECADES


class Fate(NamedTuple):
    """Of the events that survive a way: shares in time and expired, mean delay of the rest."""

    on_time: Estimate
    expired: float
    mean_s: float  # of what is delivered, late or not


def fate(stage: Stage, lifetime: Lifetime, workshop: Workshop) -> Fate:
    """On time, expired in a buffer, and the mean delay of what is delivered, in seconds."""
    law = path_law(stage, workshop)
    in_time = on_time(stage, law, lifetime)
    if stage.unbuffered is None:
        return Fate(in_time, 0.0, stage.mean_s)
    otherwise = path_law(stage.unbuffered, workshop)
    would_be = float(on_time(stage.unbuffered, otherwise, lifetime).value)
    expired = max(would_be - float(in_time.value), 0.0)
    delivered = stage.survives - expired
    if delivered <= 0.0:
        return Fate(in_time, expired, math.nan)
    late_s = stage.unbuffered.mean_s * otherwise.mass - _part_of_mean(otherwise, lifetime)
    total_s = _part_of_mean(law, lifetime) + max(late_s, 0.0)
    return Fate(in_time, expired, total_s / delivered)


def _part_of_mean(law: PathLaw, lifetime: Lifetime) -> float:
    """E[X; X ≤ L], in seconds: what the events in time contribute to the mean delay.

    For a certain lifetime D it is D F(D) − ∫ F up to D, by Gauss's rule in panels that grow by a
    constant factor, as queues take milliseconds and repairs hours.
    """
    end_s = lifetime.certain_s if not lifetime.random else math.inf
    if end_s == math.inf and not lifetime.random:
        return law.mean_s * law.mass
    if end_s == math.inf:
        end_s = law.shift_s + 60.0 * max(law.mean_s - law.shift_s, 1e-9)
    rest_s = end_s - law.shift_s
    if rest_s <= 0.0:
        return end_s * float(law.cdf(end_s).value) if rest_s == 0.0 else 0.0
    edges_s = law.shift_s + rest_s * np.concatenate(
        [[0.0], np.geomspace(10.0**-_DECADES, 1.0, _PANELS)]
    )
    if lifetime.random:
        return _over_cells(law, lifetime, edges_s)
    half_s = np.diff(edges_s)[:, None] / 2.0
    times_s = edges_s[:-1, None] + half_s * (1.0 + _NODES)
    inside = law.cdf(times_s.ravel()).value.reshape(times_s.shape)
    area = float((half_s * _WEIGHTS * inside).sum())
    return end_s * float(law.cdf(end_s).value) - area


def _over_cells(law: PathLaw, lifetime: Lifetime, edges_s: Floats) -> float:
    """∫ t P[L ≥ t] dF(t), a small cell at a time."""
    fine_s = np.concatenate([np.linspace(a, b, 9)[:-1] for a, b in zip(edges_s, edges_s[1:])])
    below = law.cdf(fine_s).value
    middle_s = 0.5 * (fine_s[1:] + fine_s[:-1])
    at_start = law.shift_s * float(below[0]) * float(left_of(lifetime, np.array([law.shift_s]))[0])
    return at_start + float(np.diff(below) @ (middle_s * left_of(lifetime, middle_s)))
