"""Delays as those see them who stay a time of any law.

Of the events that take D, the share w(D) is notified (``staying``). With F the law of D, what
arrives by t is ∫ w dF up to t = w(t) F(t) + ∫ v F up to t, so that no density is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from tidings.theory.churn.running import RunningIntegral, panel_edges
from tidings.theory.churn.staying import corners_s, far_s
from tidings.theory.lattice import Lattice
from tidings.theory.path_laws import PathLaw
from tidings.theory.stages import Chain, Complexes, Floats, Stage


class Weighing(Protocol):
    """A weight of delays that falls from 1 or less to 0."""

    def share(self, t_s: Floats) -> Floats:
        """w(t)."""
        ...

    def slope(self, t_s: Floats) -> Floats:
        """v(t) = −w′(t), per second."""
        ...

    @property
    def error(self) -> float:
        """How far weights can be off."""
        ...

    @property
    def last_s(self) -> float:
        """From when on it is 0, in seconds; perhaps infinite."""
        ...

    @property
    def corners_s(self) -> list[float]:
        """Times at which v may jump or bend."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Weighed:
    """The random part of a whole way, weighted by the share w that is notified."""

    way: Stage
    law: PathLaw
    staying: Weighing

    @cached_property
    def _area(self) -> RunningIntegral:
        """∫ v F from the shift of the way on."""
        shift_s = self.way.shift_s
        end_s = min(far_s(self.way), self.staying.last_s - shift_s)
        bends_s = [each - shift_s for each in self.staying.corners_s] + corners_s(self.way)
        return RunningIntegral(
            of=lambda t_s: self.staying.slope(shift_s + t_s) * self._below(t_s),
            edges_s=panel_edges(end_s, bends_s),
        )

    @property
    def _end_s(self) -> float:
        """When everything has arrived that does, counted from the shift."""
        return float(self._area.edges_s[-1])

    def _below(self, t_s: Floats) -> Floats:
        """F of what survives, from the shift on."""
        return self.law.cdf(self.way.shift_s + t_s).value / self.law.mass

    def _arrived(self, t_s: Floats) -> Floats:
        """∫ w dF, up to each time from the shift on."""
        share = self.staying.share(self.way.shift_s + t_s)
        return self._area.up_to(t_s) + share * self._below(t_s)

    @cached_property
    def mass(self) -> float:
        """E[w(D)]: the share of what survives that is notified."""
        return float(self._arrived(np.array([self._end_s]))[0])

    def cdf(self, t_s: Floats) -> Floats:
        """P[D − shift ≤ t], of what arrives."""
        times_s = np.asarray(t_s, dtype=np.float64)
        inside_s = np.clip(times_s, 0.0, self._end_s).ravel()
        found = np.clip(self._arrived(inside_s) / self.mass, 0.0, 1.0).reshape(times_s.shape)
        return np.where(times_s < 0.0, 0.0, found)

    @cached_property
    def cdf_error(self) -> float:
        """What the law of the way and the table of stays can be off, in all."""
        worst = float(self.law.cdf(self.way.shift_s + self._area.edges_s).error.max())
        return (worst / self.law.mass + self.staying.error) / self.mass

    @cached_property
    def _known(self) -> Floats:
        """The CDF at the nodes of the panels."""
        return self.cdf(self._area.nodes_s)

    @cached_property
    def mean_s(self) -> float:
        """Mean of what arrives, in seconds, the shift not counted."""
        return float(((1.0 - self._known) * self._area.weights_s).sum())

    @cached_property
    def variance_s2(self) -> float:
        """Variance of what arrives, in seconds squared."""
        squares = 2.0 * self._area.nodes_s * (1.0 - self._known) * self._area.weights_s
        return max(float(squares.sum()) - self.mean_s**2, 0.0)

    @cached_property
    def atom(self) -> float:
        """P[D = shift], of what arrives."""
        return float(self.cdf(np.zeros(1))[0])

    @property
    def order(self) -> float:
        """As smooth as the way."""
        return sum(delay.order for delay in self.way.delays)

    @property
    def kinked(self) -> bool:
        """Whether it may have corners: stays may bring some."""
        return True

    def chain(self) -> Chain | None:
        """None: it is asked by its CDF."""
        return None

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)] = ∫ z exp(−zt) P[X ≤ t] dt + the end, by the same panels; for moderate z."""
        times_s = self._area.nodes_s.ravel()
        below = (self._known * self._area.weights_s).ravel()
        flat = np.atleast_1d(z).ravel()
        inner = np.array([each * np.sum(np.exp(-each * times_s) * below) for each in flat])
        found: Complexes = (inner + np.exp(-flat * self._end_s)).reshape(np.shape(z))
        return found

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Images of the delay made earlier and made later."""
        return lattice.enclosing(self.cdf)
