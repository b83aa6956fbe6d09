"""P[delay ≤ t] of many ways to one home at once, each at a time of its own.

Times are gathered in *panels*, half an octave each. In each, the transforms of ways are carried
through the tree at the inversion nodes of a few Chebyshev times, which gives every way's law there;
between these times a polynomial follows it. Two inversion rules, and how the coefficients of the
polynomial fade, tell how far the values can be off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tidings.theory.bundles import Bundle, Bundles, Entries, NodeTransforms
from tidings.theory.inversion import CAUTION, SERIES_FLOOR, series_rule
from tidings.theory.stages import Complexes, Floats, Stage

_WORTH = 64  # one way alone costs as much as making a panel for so many brokers
_TIMES = 13  # Chebyshev times of a panel
_WIDTH = 2.0**0.5  # of a panel, last time over first
_PLACES: Floats = np.cos(np.pi * np.arange(_TIMES) / (_TIMES - 1))
_MOST_PANELS = 48  # remembered before all are forgotten


def _last_coefficients() -> Floats:
    """[time, 2]: what gives the last two Chebyshev coefficients of values at the times."""
    order = np.arange(_TIMES - 2, _TIMES)
    half = np.ones(_TIMES)
    half[[0, -1]] = 0.5
    found: Floats = np.cos(order * np.arccos(_PLACES)[:, None]) * half[:, None] * 2.0 / (_TIMES - 1)
    return found * np.where(order == _TIMES - 1, 0.5, 1.0)


_LAST_COEFFICIENTS = _last_coefficients()


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """A piece of time: its Chebyshev times, and the transforms at all their nodes in a row."""

    times_s: Floats
    nodes: NodeTransforms


@dataclass(frozen=True, kw_only=True)
class Panels:
    """The panels of one prediction, each made when it is first needed."""

    bundles: Bundles
    _known: dict[int, Panel] = field(default_factory=dict)
    _asked: dict[int, int] = field(default_factory=dict)  # ways, before there was a panel

    def cdf(
        self, bundle: Bundle, entries: Entries, exit_: Stage, rest_s: Floats
    ) -> tuple[Floats, Floats]:
        """P[random part ≤ rest] of each way, and its error bound.

        The bound is infinite where a way was left out, having too little company in its panel.
        """
        value, error = np.zeros(rest_s.size), np.full(rest_s.size, np.inf)
        number = np.floor(np.log(rest_s) / math.log(_WIDTH)).astype(np.int64)
        for each in np.unique(number):
            mine = np.flatnonzero(number == each)
            panel = self._panel(int(each), mine.size)
            if panel is None:
                continue
            chosen = Entries(
                brokers=entries.brokers[mine], links=[entries.links[index] for index in mine]
            )
            transforms = panel.nodes.of_ways(bundle, chosen, exit_)
            value[mine], error[mine] = _interpolated(panel, transforms, rest_s[mine])
        return value, error

    def _panel(self, number: int, ways: int) -> Panel | None:
        """A panel, once enough ways have asked for it; None before."""
        if number not in self._known:
            self._asked[number] = self._asked.get(number, 0) + ways
            if self._asked[number] * _WORTH < len(self.bundles.ways.at_broker):
                return None
            if len(self._known) >= _MOST_PANELS:
                self._known.clear()
            low, high = _WIDTH**number, _WIDTH ** (number + 1)
            times_s: Floats = 0.5 * (low + high) + 0.5 * (high - low) * _PLACES
            z: Complexes = (series_rule()[0] / times_s[:, None]).ravel()
            nodes = NodeTransforms(bundles=self.bundles, z=z)
            self._known[number] = Panel(times_s=times_s, nodes=nodes)
        return self._known[number]


def _interpolated(panel: Panel, transform: Complexes, rest_s: Floats) -> tuple[Floats, Floats]:
    """The law of each way at its own time of the panel, and a bound of the error."""
    _, weights, fewer = series_rule()
    density: Floats = (transform / panel.nodes.z).real.reshape(len(rest_s), _TIMES, -1)
    both = density @ np.stack([weights, fewer], axis=1) / panel.times_s[:, None]
    best, check = both[:, :, 0], both[:, :, 1]
    unsure = np.abs(best - check).max(axis=1)
    value = _barycentric(panel.times_s, best, rest_s)
    fading = np.abs(best @ _LAST_COEFFICIENTS).sum(axis=1)
    error = CAUTION * (unsure + fading) + SERIES_FLOOR
    return np.clip(value, 0.0, 1.0), error


def _barycentric(times_s: Floats, values: Floats, t_s: Floats) -> Floats:
    """Polynomials through values [way, time] at Chebyshev times, each at a time of its own."""
    weights = (-1.0) ** np.arange(times_s.size)
    weights[[0, -1]] *= 0.5
    away = t_s[:, None] - times_s
    here = away == 0.0
    share = weights / np.where(here, 1.0, away)
    found: Floats = np.sum(share * values, axis=1) / np.sum(share, axis=1)
    exact = here.any(axis=1)
    found[exact] = values[exact, here[exact].argmax(axis=1)]
    return found
