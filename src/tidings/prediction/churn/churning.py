"""A way to a subscriber whose subscriptions come and go, as one stage.

A subscriber stays a time T, then goes. An event published while it stays is notified if its
subscription has reached the publisher's broker by then (that takes S) and if the event arrives
before the subscriber goes (that takes D). For moments of publication spread evenly over the stay
the share notified is E[(T − S − D)⁺]/E[T]. What is notified and in time contains the same D, so
that the way itself is weighted: by exp(−θD) for exponential stays, delay by delay; else as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidings.errors import UnsupportedError
from tidings.model.features import FEATURES
from tidings.model.laws import Exponential, Law
from tidings.model.record_tables import column, names
from tidings.model.system import System
from tidings.prediction.churn.staying import Staying
from tidings.prediction.churn.tilting import Tilted
from tidings.prediction.churn.weighing import Weighed
from tidings.prediction.path_laws import Workshop, is_rough, path_law
from tidings.prediction.stages import Delay, Stage

CAUSE = "not_subscribed"
APPROXIMATIONS = (
    "a subscription must be known to the publisher's broker when an event is published, "
    "messages of subscriptions cross links as events do but are never lost and never queue",
    "moments of publication taken as spread evenly over a stay; a new subscription finds nothing "
    "left of the one before; covering by others' subscriptions left out",
    "brokers as busy as if everybody were subscribed all the time",
)


@dataclass(frozen=True, kw_only=True)
class Churn:
    """Makes the stages of one prediction, each weighted delay once."""

    workshop: Workshop = field(default_factory=Workshop)
    _tilted: dict[tuple[Delay, float], Tilted] = field(default_factory=dict)

    def stage(self, way: Stage, spreading: Stage, stays: Law) -> Stage:
        """The way of what is notified; the rest of what survives it is lost for want of a
        subscription.
        """
        if way.survives == 0.0:
            return way
        staying = Staying(stays=stays, spreading=spreading, workshop=self.workshop)
        if isinstance(stays, Exponential) and not is_rough(way.delays):
            tilted = tuple(self._tilt(delay, 1.0 / stays.mean_s) for delay in way.delays)
            start = float(staying.share(np.array([way.shift_s]))[0])
            notified = start * float(np.prod([delay.mass for delay in tilted]))
            return _kept(way, notified, tilted)
        if not way.delays:
            return _kept(way, float(staying.share(np.array([way.shift_s]))[0]), ())
        weighed = Weighed(way=way, law=path_law(way, self.workshop), staying=staying)
        return _kept(way, weighed.mass, (weighed,) if weighed.mass > 0.0 else ())

    def _tilt(self, delay: Delay, per_s: float) -> Tilted:
        key = (delay, per_s)
        if key not in self._tilted:
            self._tilted[key] = Tilted(delay=delay, per_s=per_s)
        return self._tilted[key]


def _kept(way: Stage, notified: float, delays: tuple[Delay, ...]) -> Stage:
    lost = dict(way.lost)
    lost[CAUSE] = lost.get(CAUSE, 0.0) + way.survives * (1.0 - notified)
    return Stage(survives=way.survives * notified, lost=lost, shift_s=way.shift_s, delays=delays)


def check_churn(system: System) -> bool:
    """Whether subscriptions come and go; refused by name with what it is not worked out for."""
    comes = _has(system, "stays")
    if not comes.any():
        return False
    mobile = comes & (_has(system, "connectivity") | _has(system, "processing"))
    refused = {
        "failures": comes if any(FEATURES["failures"](system)) else None,
        "connectivity or a queue of the subscriber's own": mobile if mobile.any() else None,
    }
    for what, where in refused.items():
        if where is not None:
            named = names(system.subscribers)
            listed = ", ".join(f"subscribers.{named[index]}" for index in np.flatnonzero(where)[:4])
            raise UnsupportedError(
                f"prediction does not handle subscription churn together with {what}: {listed}. "
                "Take 'stays' or the other out of the file."
            )
    return True


def _has(system: System, field: str) -> NDArray[np.bool_]:
    """Which subscribers have a value in an optional field."""
    found = column(system.subscribers, field)
    return np.array([value is not None for value in found.values], dtype=bool)[found.codes]
