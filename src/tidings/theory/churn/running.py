"""Integrals from 0 up to any time, of a function that is dear to ask: Gauss's rule in panels.

The function is asked at the nodes of the panels and nowhere else: within a panel it is taken as the
polynomial through these, in Legendre's polynomials, whose integrals are known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial.legendre import legvander
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_ORDER = 8
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(_ORDER)
_DEGREES = np.arange(_ORDER)
# [node, degree]: what a value at a node adds to the coefficient of each polynomial.
_FITTING = legvander(_NODES, _ORDER - 1) * _WEIGHTS[:, None] * (2 * _DEGREES + 1) / 2.0
_PANELS, _NARROWEST = 48, 1e-7  # that grow by a constant factor, from so small a part of the whole
_EVEN_PANELS = 160  # and as many of equal size, for what bends in between


def panel_edges(end_s: float, corners_s: Iterable[float] = ()) -> Floats:
    """Where panels from 0 to an end begin and end; corners of the function begin one, too."""
    if not end_s > 0.0 or not math.isfinite(end_s):
        return np.zeros(1)
    parts = [
        end_s * np.geomspace(_NARROWEST, 1.0, _PANELS),
        np.linspace(0.0, end_s, _EVEN_PANELS),
        np.array([each for each in corners_s if 0.0 < each < end_s]),
    ]
    edges_s: Floats = np.unique(np.concatenate(parts))
    return edges_s


@dataclass(frozen=True, kw_only=True)
class RunningIntegral:
    """∫ f from 0 to any time, in seconds times whatever f is; past the last edge nothing is added.

    >>> squares = RunningIntegral(of=lambda t: t**2, edges_s=panel_edges(3.0))
    >>> [round(float(each), 12) for each in squares.up_to(np.array([0.0, 1.5, 3.0, 4.0]))]
    [0.0, 1.125, 9.0, 9.0]
    """

    of: Callable[[Floats], Floats]
    edges_s: Floats

    @cached_property
    def nodes_s(self) -> Floats:
        """The nodes of all panels, [panel, node]."""
        nodes: Floats = self.edges_s[:-1, None] + self._half * (1.0 + _NODES)
        return nodes

    @property
    def _half(self) -> Floats:
        return 0.5 * np.diff(self.edges_s)[:, None]

    @property
    def weights_s(self) -> Floats:
        """What each node counts for, in seconds."""
        weights: Floats = self._half * _WEIGHTS
        return weights

    @cached_property
    def _at_nodes(self) -> Floats:
        return np.asarray(self.of(self.nodes_s.ravel())).reshape(self.nodes_s.shape)

    @cached_property
    def _at_edges(self) -> Floats:
        pieces = (self._at_nodes * self.weights_s).sum(axis=1)
        return np.concatenate([[0.0], np.cumsum(pieces)])

    @property
    def total(self) -> float:
        """The integral over all panels."""
        return float(self._at_edges[-1])

    def up_to(self, t_s: Floats) -> Floats:
        """The integral up to each time."""
        if self.edges_s.size < 2:
            return np.zeros(t_s.shape)
        inside = np.clip(t_s, 0.0, self.edges_s[-1]).ravel()
        at = np.searchsorted(self.edges_s[1:-1], inside, side="right")
        half = self._half[at, 0]
        areas = _areas((inside - self.edges_s[at]) / half - 1.0)
        part = half * (areas * (self._at_nodes @ _FITTING)[at]).sum(axis=1)
        return np.asarray(self._at_edges[at] + part).reshape(t_s.shape)


def _areas(x: Floats) -> Floats:
    """∫ from −1 to x of each Legendre polynomial, [x, degree]: (P_{k+1} − P_{k−1})/(2k + 1)."""
    values = legvander(x, _ORDER)
    before = np.concatenate([-np.ones((x.size, 1)), values[:, : _ORDER - 1]], axis=1)
    found: Floats = (values[:, 1:] - before) / (2 * _DEGREES + 1)
    return found
