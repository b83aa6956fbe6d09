"""Subscriptions that come and go: who is subscribed when, and how far others draw events."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from tidings.model import topology
from tidings.model.arrays import Floats, Ints
from tidings.model.laws import Law
from tidings.model.record_tables import column
from tidings.model.routes import Routes, behind_arcs
from tidings.model.system import System

_NOBODY = 1e-9  # of a sum of logarithms: what rounding leaves of none


def present_share(stays: Law | None, away: Law | None) -> float:
    """Compute the share of time in which a subscriber that comes and goes is subscribed."""
    if stays is None or away is None:
        return 1.0
    return stays.mean_s / (stays.mean_s + away.mean_s)


@dataclass(frozen=True, kw_only=True)
class ChurnModel:
    """Who is subscribed when, and how far others draw events."""

    system: System
    routes: Routes

    @cached_property
    def present(self) -> Floats:
        """[subscriber]: the share of time in which it is subscribed."""
        stays, away = (column(self.system.subscribers, name) for name in ("stays", "away"))
        pairs = np.stack([stays.codes, away.codes])
        kinds, kind_of = np.unique(pairs, axis=1, return_inverse=True)
        shares = [present_share(stays.values[one], away.values[other]) for one, other in kinds.T]
        return np.array(shares, dtype=np.float64)[kind_of.ravel()]

    @cached_property
    def _log_absent(self) -> Floats:
        """[arc, class]: log of the share of time in which nobody behind the arc is subscribed."""
        count = column(self.system.subscribers, "count")
        each = np.array(count.values, dtype=np.float64)[count.codes]
        logs = np.where(self.present < 1.0, np.log1p(-np.minimum(self.present, 0.999999)), -1e3)
        homes, filters = self.routes.home_of_subscriber, self.routes.filter_of_subscriber
        behind = self._behind_arcs(each * logs, homes, filters)
        return np.where(np.abs(behind) < _NOBODY, 0.0, behind)

    def _behind_arcs(self, numbers: Floats, homes: Ints, filters: Ints) -> Floats:
        """Sum numbers of the subscribers behind an arc that want a class, [arc, class]."""
        routes = self.routes
        shape = (len(self.system.brokers), routes.wants.shape[1])
        wants = routes.wants.T.astype(np.float64)
        local = np.asarray(
            sparse.coo_array((numbers, (homes, filters)), shape=shape).tocsr() @ wants
        )
        return behind_arcs(routes.trees, routes.arcs, routes.tree_of_class, local)

    def opened_by(self, home: int, wanted: int) -> Floats:
        """Compute what a subscriber adds to the share of time arcs are open, [arc, class].

        The subscriber has one filter. The result is for each unit by which it lowers the logarithm
        of the share of time in which it is not there.
        """
        behind = self._behind_arcs(np.ones(1), np.array([home]), np.array([wanted]))
        return np.exp(self._log_absent) * behind

    @cached_property
    def open_shares(self) -> Floats:
        """[arc, class]: the share of time in which somebody behind the arc is subscribed."""
        return -np.expm1(self._log_absent)

    def drawn(self, arcs: list[int], content_class: int, present: float) -> Floats:
        """Compute how likely a broker of a path is the furthest that others draw an event to.

        The array is [broker of a path].
        """
        own = math.log1p(-present) if present < 1.0 else 0.0
        others = [1.0]
        for arc in arcs:
            reached = -math.expm1(min(float(self._log_absent[arc, content_class]) - own, 0.0))
            others.append(min(reached, others[-1]))
        return np.diff(-np.array([*others, 0.0]))


def path_arcs(routes: Routes, start: int, home: int, tree: int) -> list[int]:
    """List the arcs from one broker to another."""
    onwards = {
        broker: into ^ 1
        for broker, into in topology.walk(routes.trees[tree], routes.arcs, home)
        if into >= 0
    }
    arcs: list[int] = []
    at = start
    while at != home:
        arcs.append(onwards[at])
        at = routes.arcs[arcs[-1]].target
    return arcs
