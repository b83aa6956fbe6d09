r"""Subscriptions that come and go: which events a subscriber gets that is there only for a time.

A subscriber stays for a time T and wants what is published meanwhile. Its subscription needs a time
to spread to where the events are, an event a time X to arrive. Published at a uniform moment of the
stay, an event is notified if the subscription was known when it came to the broker where the two
meet, U after subscribing, and the subscriber is still there when it arrives:

.. math:: P[\text{notified} \mid X = x] = E[(T - U - x)^+]/E[T] = E[S(x + U)],

S being the survival of the equilibrium (residual) stay. That is a weight on the path's delay. The
two meet at the furthest broker of the path that others draw the event to; U is the time by which
the subscription comes there later than the event.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from tidings.model import topology
from tidings.model.arrays import Floats
from tidings.model.laws import Law, left_share
from tidings.model.record_tables import column
from tidings.model.routes import Routes, behind_arcs
from tidings.model.system import System
from tidings.prediction.delays import Delays, stack
from tidings.prediction.paths import Paths

_NODES = 24  # equally likely values of how late a subscription comes
_FINER = 4  # times as many values of the delays that it is the difference of
_NEVER = 1e-6  # chance of a place to meet at that is left out
_NOBODY = 1e-9  # of a sum of logarithms: what rounding leaves of none


def present_share(stays: Law | None, away: Law | None) -> float:
    """Compute the share of time in which a subscriber that comes and goes is subscribed."""
    if stays is None or away is None:
        return 1.0
    return stays.mean_s / (stays.mean_s + away.mean_s)


@dataclass(frozen=True, kw_only=True)
class Churn:
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
        table = (each * logs, (self.routes.home_of_subscriber, self.routes.filter_of_subscriber))
        shape = (len(self.system.brokers), self.routes.wants.shape[1])
        wants = self.routes.wants.T.astype(np.float64)
        local = np.asarray(sparse.coo_array(table, shape=shape).tocsr() @ wants)
        routes = self.routes
        behind = behind_arcs(routes.trees, routes.arcs, routes.tree_of_class, local)
        return np.where(np.abs(behind) < _NOBODY, 0.0, behind)

    @cached_property
    def open_shares(self) -> Floats:
        """[arc, class]: the share of time in which somebody behind the arc is subscribed."""
        return -np.expm1(self._log_absent)

    def drawn(self, arcs: list[int], content_class: int, present: float) -> Floats:
        """[broker of a path]: how likely it is the furthest that others draw an event to."""
        own = math.log1p(-present) if present < 1.0 else 0.0
        others = [1.0]
        for arc in arcs:
            reached = -math.expm1(min(float(self._log_absent[arc, content_class]) - own, 0.0))
            others.append(min(reached, others[-1]))
        return np.diff(-np.array([*others, 0.0]))


def weighed_by_stay(
    path: Delays, spreading: Delays, before: Delays, stays: Law, chances: Floats
) -> Delays:
    """Weigh one path's delay by who has subscribed in time and is still there.

    ``spreading`` and ``before`` are the ways of subscription and event to the brokers where they
    may meet, a row each with these chances.
    """
    meeting = np.flatnonzero(chances > _NEVER)
    late_s = _later(spreading.take(meeting), before.take(meeting)).ravel()
    weights = np.repeat(chances[meeting], _NODES) / _NODES

    def still_there(t_s: Floats) -> Floats:
        times = np.asarray(t_s)
        share: Floats = left_share(stays, times[..., None] + late_s) @ weights
        return share

    known = float(still_there(np.zeros(1))[0])
    weighed = path.weigh(still_there, "unsubscribed")
    unknown = path.survival * (1.0 - known)
    gone = np.maximum(weighed.lost["unsubscribed"] - unknown, 0.0)
    return replace(weighed, lost={**weighed.lost, "unsubscribed": gone, "not_known": unknown})


def _later(spreading: Delays, before: Delays) -> Floats:
    """[place, value]: (subscription − event)⁺ where they meet, equally likely values in seconds."""
    count, places = _FINER * _NODES, len(before)
    shares = list((np.arange(count) + 0.5) / count)
    each = np.eye(places)
    one, other = (
        delays.shift_s[:, None] + replace(delays, shift_s=np.zeros(places)).quantiles(each, shares)
        for delays in (spreading, before)
    )
    gaps = np.maximum(one[:, :, None] - other[:, None, :], 0.0).reshape(places, -1)
    later: Floats = np.sort(gaps, axis=1).reshape(places, _NODES, -1).mean(axis=2)
    return later


def spread_and_before(
    paths: Paths, ends: tuple[Delays, Delays], arcs: list[int], first: int
) -> tuple[Delays, Delays]:
    """[broker of a path]: how long a subscription from its end takes there, and an event.

    ``ends`` are the delays from the publisher to its broker and between the subscriber and its own;
    ``first`` is the source by which the event enters. Subscriptions cross links alone and are never
    lost.
    """
    entry, last = ends
    before = [entry.series(paths.at_broker.take([first]))]
    for arc in arcs:
        hop = paths.over_arc.take([arc]).series(paths.at_broker.take([paths.publishers + arc]))
        before.append(before[-1].series(hop))
    spreading = [replace(last, survival=np.ones(1), lost={})]
    for arc in reversed(arcs):
        link = paths.over_arc.take([arc ^ 1])
        spreading.append(spreading[-1].series(replace(link, survival=np.ones(1), lost={})))
    lossless = [replace(each, survival=np.ones(1), lost={}) for each in before]
    return stack(spreading[::-1]), stack(lossless)


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
