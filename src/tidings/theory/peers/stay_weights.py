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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tidings.model.arrays import Floats, Ints
from tidings.model.laws import Law, left_share
from tidings.theory.delay.delays import Delays, stack
from tidings.theory.delay.paths import Paths

_NODES = 24  # equally likely values of how late a subscription comes
_FINER = 4  # times as many values of the delays that it is the difference of
_NEVER = 1e-6  # chance of a place to meet at that is left out


@dataclass(frozen=True, kw_only=True, eq=False)
class Meeting:
    """Where a subscription and the events of one stream may meet, and how much later it comes."""

    arcs: Sequence[int]  # of the path of events
    chances: Floats  # [broker of the path]: of meeting there
    spreading: Delays  # [broker of the path]: of the subscription
    before: Delays  # of events
    stays: Law

    @cached_property
    def places(self) -> Ints:
        """Brokers of the path where they do meet at times."""
        return np.flatnonzero(self.chances > _NEVER)

    @cached_property
    def late_s(self) -> Floats:
        """[place · value]: (subscription − event)⁺ where they meet, equally likely at a place."""
        each = (self.spreading, self.before)
        one, other = (equally_likely(delays.take(self.places), _FINER * _NODES) for delays in each)
        gaps = np.maximum(one[:, :, None] - other[:, None, :], 0.0).reshape(self.places.size, -1)
        rising = np.sort(gaps, axis=1).reshape(self.places.size, _NODES, -1)
        late_s: Floats = rising.mean(axis=2).ravel()
        return late_s

    @cached_property
    def weights(self) -> Floats:
        """[place · value]: how likely each of these is."""
        return np.repeat(self.chances[self.places], _NODES) / _NODES

    def still_there(self, times_s: Floats) -> Floats:
        """Compute how likely the event is known of in time and meets somebody, so long after."""
        times = np.asarray(times_s)
        share: Floats = left_share(self.stays, times[..., None] + self.late_s) @ self.weights
        return share


def equally_likely(delays: Delays, count: int) -> Floats:
    """Compute equally likely values of each delay, in seconds, rising, [delay, value]."""
    fine_s = delays.grid.fine_s
    rows = np.arange(len(delays))
    below = delays.distributions.random_at(np.tile(fine_s, (rows.size, 1)), rows)
    below[:, 0] = delays.atom
    shares = (np.arange(count) + 0.5) / count
    random_s = [np.interp(shares, below[row], fine_s) for row in rows]
    return delays.shift_s[:, None] + np.reshape(random_s, (rows.size, count))


def weighed_by_stay(path: Delays, meeting: Meeting) -> Delays:
    """Weigh one path's delay by who has subscribed in time and is still there."""
    known = float(meeting.still_there(np.zeros(1))[0])
    weighed = path.weigh(meeting.still_there, "unsubscribed")
    unknown = path.survival * (1.0 - known)
    gone = np.maximum(weighed.lost["unsubscribed"] - unknown, 0.0)
    return replace(weighed, lost={**weighed.lost, "unsubscribed": gone, "not_known": unknown})


def spread_and_before(
    paths: Paths, ends: tuple[Delays, Delays], arcs: list[int], first: int
) -> tuple[Delays, Delays]:
    """Compute how long a subscription from a path's end takes to each broker, and an event.

    Both are [broker of a path]. ``ends`` are the delays from the publisher to its broker and
    between the subscriber and its own; ``first`` is the source by which the event enters.
    Subscriptions cross links alone and are never lost.
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
