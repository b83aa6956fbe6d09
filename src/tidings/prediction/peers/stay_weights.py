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

from dataclasses import replace

import numpy as np

from tidings.model.arrays import Floats
from tidings.model.laws import Law, left_share
from tidings.prediction.delay.delays import Delays, stack
from tidings.prediction.delay.paths import Paths

_NODES = 24  # equally likely values of how late a subscription comes
_FINER = 4  # times as many values of the delays that it is the difference of
_NEVER = 1e-6  # chance of a place to meet at that is left out


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
