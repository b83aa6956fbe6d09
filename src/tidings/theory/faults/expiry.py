"""What becomes of events on ways with buffers that drop what expires in them.

An event that had to wait in a buffer and is not in time has expired in a buffer: it is dropped,
there or later. One that never waited is late.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from tidings.theory.inversion import euler_rule
from tidings.theory.lifetimes import Lifetime, left_of, on_time
from tidings.theory.path_laws import Estimate, PathLaw, Workshop, has_closed_form, path_law
from tidings.theory.stages import Delay, Floats, Stage

_TERMS = 12  # of the inversion rule: good to about 1e-7
_CELLS = 120  # into which time is cut for random lifetimes
_NARROWEST = 1e-9  # of the longest time looked at, the first cell
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(6)
_PANELS = 40


class Fate(NamedTuple):
    """Of the events that survive a way: shares in time and expired, mean delay of the rest."""

    on_time: Estimate
    expired: float
    mean_s: float  # of what is delivered, late or not


def fate(stage: Stage, lifetime: Lifetime, workshop: Workshop) -> Fate:
    """On time, expired in a buffer, and the mean delay of what is delivered, in seconds."""
    law = path_law(stage, workshop)
    in_time = on_time(stage, law, lifetime)
    unkept = stage.unkept
    if unkept is None:
        return Fate(in_time, 0.0, stage.mean_s)
    late, late_s = _late(unkept, lifetime, workshop) if unkept.survives > 0.0 else (0.0, 0.0)
    expired = max(stage.survives - float(in_time.value) - late, 0.0)
    delivered = stage.survives - expired
    if delivered <= 0.0:
        return Fate(in_time, expired, math.nan)
    in_time_s = _part_of_mean(stage, law, lifetime)
    return Fate(in_time, expired, (in_time_s + late_s) / delivered)


def _late(stage: Stage, lifetime: Lifetime, workshop: Workshop) -> tuple[float, float]:
    """P[X > L] and E[X; X > L], in seconds."""
    law = path_law(stage, workshop)
    late = stage.survives - float(on_time(stage, law, lifetime).value)
    late_s = law.mean_s * law.mass - _part_of_mean(stage, law, lifetime)
    return max(late, 0.0), max(late_s, 0.0)


def _part_of_mean(stage: Stage, law: PathLaw, lifetime: Lifetime) -> float:
    """E[X; X ≤ L], in seconds: what the events in time contribute to the mean delay."""
    if lifetime.random:
        return _over_cells(stage, law, lifetime)
    if lifetime.certain_s == math.inf:
        return law.mean_s * law.mass
    return float(mean_up_to_s(stage, law, np.array([lifetime.certain_s]))[0])


def mean_up_to_s(stage: Stage, law: PathLaw, t_s: Floats) -> Floats:
    """E[X; X ≤ t] = t F(t) − ∫ F up to t, in seconds."""
    rest_s = np.maximum(t_s - stage.shift_s, 0.0)
    area_s = rest_s.copy()
    inside = rest_s > 0.0
    if stage.delays and np.any(inside):
        area = _closed_area if has_closed_form(stage.delays) else _inverted_area
        area_s[inside] = area(stage.delays, rest_s[inside])
    return np.asarray(t_s * law.cdf(t_s).value - stage.survives * area_s)


def _closed_area(delays: tuple[Delay, ...], t_s: Floats) -> Floats:
    """∫ P[X ≤ s] ds up to t, by Gauss's rule in panels that grow by a constant factor."""
    edges = np.concatenate([[0.0], np.geomspace(_NARROWEST, 1.0, _PANELS)])
    half = 0.5 * np.diff(edges)[:, None]
    places = (edges[:-1, None] + half * (1.0 + _NODES)).ravel()
    below = delays[0].cdf(np.outer(t_s, places))
    assert below is not None
    return np.asarray(t_s * (below @ (half * _WEIGHTS).ravel()))


def _inverted_area(delays: tuple[Delay, ...], t_s: Floats) -> Floats:
    """The same by its transform X*(z)/z²."""
    nodes, weights = euler_rule(_TERMS)
    z = nodes / t_s[:, None]
    transform = 1.0 / z**2
    for delay in delays:
        transform = transform * delay.transform(z)
    return np.asarray(transform.real @ weights / t_s)


def _over_cells(stage: Stage, law: PathLaw, lifetime: Lifetime) -> float:
    """∫ P[L ≥ t] dE[X; X ≤ t], a small cell of time after the other."""
    end_s = 60.0 * max(law.mean_s - law.shift_s, 1e-9)
    cuts_s = law.shift_s + end_s * np.geomspace(_NARROWEST, 1.0, _CELLS)
    parts_s = np.diff(mean_up_to_s(stage, law, cuts_s), prepend=0.0)
    middles_s = np.concatenate([cuts_s[:1], np.sqrt(cuts_s[1:] * cuts_s[:-1])])
    return float(parts_s @ left_of(lifetime, middles_s))
