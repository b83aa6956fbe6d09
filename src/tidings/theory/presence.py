"""Who is subscribed, and how likely it is that somebody behind an arc is: what goes over it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tidings.model.record_tables import column
from tidings.model.routes import Routes, behind_arcs
from tidings.model.system import System
from tidings.theory.churn.drawing import present_share

Floats = NDArray[np.float64]

_NOBODY = 1e-9  # of a sum of logarithms: what rounding leaves of none
_SIGNATURE_SEED, _ALIKE = 20, 1e-6


def lasting(system: System) -> NDArray[np.bool_]:
    """Which subscribers are there to stay, [subscriber]."""
    stays = column(system.subscribers, "stays")
    return np.array([law is None for law in stays.values], dtype=bool)[stays.codes]


def open_shares(system: System, routes: Routes) -> Floats:
    """[arc, class]: the share of time in which somebody behind the arc is subscribed to the class.

    One less the product of who is not; a subscription takes as long to be forgotten as to spread,
    so that it counts where it is known as long as it is held.
    """
    present = _present(system)
    stay = present == 1.0
    found: Floats = (routes.interest > 0).astype(np.float64)
    if stay.all():
        return found
    count = column(system.subscribers, "count")
    each = np.array(count.values, dtype=np.float64)[count.codes]
    nobody = np.exp(_behind(system, routes, each * np.log1p(-np.where(stay, 0.0, present))))
    for_ever = _behind(system, routes, np.where(stay, each, 0.0)) > 0.5
    return np.where(for_ever, found, found * (1.0 - nobody))


def same_audience(system: System, routes: Routes) -> NDArray[np.int64]:
    """[arc, class]: equal numbers for classes that the same of those who come and go want there."""
    marks = np.random.default_rng(_SIGNATURE_SEED).random(len(system.subscribers))
    marks = np.where(_present(system) == 1.0, 0.0, 1.0 + marks)
    found: NDArray[np.int64] = np.rint(_behind(system, routes, marks) / _ALIKE).astype(np.int64)
    return found


def _present(system: System) -> Floats:
    """[subscriber]: the share of time in which it is subscribed."""
    stays, away = (column(system.subscribers, name) for name in ("stays", "away"))
    pairs = np.stack([stays.codes, away.codes])
    kinds, kind_of = np.unique(pairs, axis=1, return_inverse=True)
    shares = [present_share(stays.values[one], away.values[other]) for one, other in kinds.T]
    found: Floats = np.array(shares, dtype=np.float64)[kind_of.ravel()]
    return found


def _behind(system: System, routes: Routes, weights: Floats) -> Floats:
    """[arc, class]: the sum of weights [subscriber] of those behind the arc who want the class."""
    table = (weights, (routes.home_of_subscriber, routes.filter_of_subscriber))
    shape = (len(system.brokers), routes.wants.shape[1])
    local = sparse.coo_array(table, shape=shape).tocsr() @ routes.wants.T.astype(np.float64)
    found = behind_arcs(routes.trees, routes.arcs, routes.tree_of_class, np.asarray(local))
    return np.where(np.abs(found) < _NOBODY, 0.0, found)
