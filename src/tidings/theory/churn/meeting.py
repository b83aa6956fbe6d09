"""Where an event meets the subscription it needs: at the broker that must know it by then.

A subscription takes S there from its subscriber. An event takes E from its publication until it is
matched there, and R from there to the subscriber. Published τ after the subscribe it is notified if
τ + E ≥ S and τ + E + R is less than the stay T, hence with τ spread evenly over the stay

    d = E[(T − (S − E)⁺ − E − R)⁺]/E[T] = E[(T − max(S, E) − R)⁺]/E[T].

That broker is the publisher's or, if lasting subscribers draw the event further, the last one of
the way that it comes to anyway.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tidings.model.laws import Law
from tidings.theory.churn.running import RunningIntegral, panel_edges
from tidings.theory.churn.staying import Staying, corners_s, far_s
from tidings.theory.path_laws import Workshop, path_law
from tidings.theory.stages import NOTHING, Floats, Stage, in_series, law_stage, lossless


@dataclass(frozen=True, kw_only=True)
class Meeting:
    """The ways to the broker where a subscription must be known, and the way on from there."""

    spreading: Stage  # S
    before: Stage = NOTHING  # E, with what is lost on it
    after: Stage = NOTHING  # R
    failing: bool = False  # whether the way may take longer than before and after, or fail

    @property
    def by_chance(self) -> bool:
        """Whether events of different E find the subscription known or not."""
        in_time = not self.spreading.delays and self.spreading.shift_s <= self.before.shift_s
        return bool(self.before.delays) and not in_time

    def notified(self, stays: Law, workshop: Workshop) -> float:
        """E[(T − max(S, E) − R)⁺]/E[T] = ∫ v(t) P[S ≤ t] P[E ≤ t] dt, v = P[T − R > t]/E[T]."""
        start_s = max(self.spreading.shift_s, self.before.shift_s)
        staying = Staying(stays=stays, spreading=lossless(self.after), workshop=workshop)
        laws = [path_law(lossless(each), workshop) for each in (self.spreading, self.before)]
        ends_s = [each.shift_s + far_s(each) for each in (self.spreading, self.before)]
        end_s = min(max(ends_s), staying.last_s)
        if end_s <= start_s:
            return float(staying.share(np.array([start_s]))[0])

        def met(t_s: Floats) -> Floats:
            known, matched = (law.cdf(start_s + t_s).value for law in laws)
            return staying.slope(start_s + t_s) * known * matched

        area = RunningIntegral(of=met, edges_s=panel_edges(end_s - start_s, self._bends_s(staying)))
        return area.total + float(staying.share(np.array([end_s]))[0])

    def _bends_s(self, staying: Staying) -> list[float]:
        start_s = max(self.spreading.shift_s, self.before.shift_s)
        found = list(staying.corners_s)
        for each in (self.spreading, self.before):
            found += [each.shift_s + corner_s for corner_s in corners_s(each)]
        return [each - start_s for each in found]

    def missed_s(self, stays: Law, workshop: Workshop) -> float:
        """E[min(T, (S − E)⁺)] = ∫ P[S > t] P[E ≤ t < E + T] dt: how long events of a stay pass
        the broker where they are matched while the subscription is not known there yet.
        """
        start_s, end_s = self.before.shift_s, self.spreading.shift_s + far_s(self.spreading)
        left = in_series(lossless(self.before), law_stage(stays))
        parts = (self.spreading, lossless(self.before), left)
        known, matched, gone = (path_law(lossless(each), workshop) for each in parts)
        bends_s = [each.shift_s + c for each in parts for c in (0.0, *corners_s(each))]

        def unmet(t_s: Floats) -> Floats:
            here = matched.cdf(start_s + t_s).value - gone.cdf(start_s + t_s).value
            return (1.0 - known.cdf(start_s + t_s).value) * np.maximum(here, 0.0)

        edges_s = panel_edges(end_s - start_s, [each - start_s for each in bends_s])
        return RunningIntegral(of=unmet, edges_s=edges_s).total
