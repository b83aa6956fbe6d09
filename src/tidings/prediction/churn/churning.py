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

from tidings.model.laws import Exponential, Law
from tidings.model.record_tables import column, names
from tidings.model.system import System
from tidings.prediction.churn.staying import Staying
from tidings.prediction.churn.tilting import Tilted
from tidings.prediction.churn.weighing import Weighed
from tidings.prediction.path_laws import Workshop, is_rough, path_law
from tidings.prediction.stages import NOTHING, Delay, Floats, Stage

NOT_KNOWN, UNSUBSCRIBED = "not_known", "unsubscribed"
APPROXIMATIONS = (
    "a subscription must be known to the publisher's broker when an event is published, "
    "messages of subscriptions cross links as events do but are never lost and never queue",
    "moments of publication taken as spread evenly over a stay; a new subscription finds nothing "
    "left of the one before; covering by others' subscriptions left out",
    "brokers as busy as if everybody were subscribed all the time",
)


def soon_back(system: System, delay_mean_s: Floats) -> list[str]:
    """A warning of subscribers that are back before brokers have forgotten them.

    ``delay_mean_s`` is the mean delay of what each is told; a subscription takes about as long.
    """
    stays, away = (column(system.subscribers, name) for name in ("stays", "away"))
    comes = stays.where(lambda law: law is not None)
    gone_s = np.array([0.0 if law is None else law.mean_s for law in away.values])[away.codes]
    soon = comes[gone_s[comes] < 2.0 * delay_mean_s[comes]]
    if not soon.size:
        return []
    listed = ", ".join(names(system.subscribers)[index] for index in soon[:4])
    more = f" and {soon.size - 4} more" if soon.size > 4 else ""
    return [
        f"{listed}{more}: back so soon ('away') that brokers still know the subscription before, "
        "which draws events meanwhile; the shares are lower bounds, simulation counts that in"
    ]


@dataclass(frozen=True, kw_only=True)
class Churn:
    """Makes the stages of one prediction, each weighted delay once."""

    workshop: Workshop = field(default_factory=Workshop)
    _tilted: dict[tuple[Delay, float], Tilted] = field(default_factory=dict)

    def stage(self, way: Stage, spreading: Stage, stays: Law, entry: Stage = NOTHING) -> Stage:
        """The way of what is notified; the rest of what survives it is lost for want of a
        subscription.

        ``entry`` is the beginning of the way, up to the broker where that is found out.
        """
        if way.survives == 0.0:
            return way
        staying = Staying(stays=stays, spreading=spreading, workshop=self.workshop)
        known = float(staying.share(np.zeros(1))[0])
        if isinstance(stays, Exponential) and not is_rough(way.delays):
            tilted = tuple(self._tilt(delay, 1.0 / stays.mean_s) for delay in way.delays)
            start = float(staying.share(np.array([way.shift_s]))[0])
            notified = start * float(np.prod([delay.mass for delay in tilted]))
            return _kept(way, entry, (known, notified), tilted)
        if not way.delays:
            notified = float(staying.share(np.array([way.shift_s]))[0])
            return _kept(way, entry, (known, notified), ())
        weighed = Weighed(way=way, law=path_law(way, self.workshop), staying=staying)
        delays = (weighed,) if weighed.mass > 0.0 else ()
        return _kept(way, entry, (known, weighed.mass), delays)

    def _tilt(self, delay: Delay, per_s: float) -> Tilted:
        key = (delay, per_s)
        if key not in self._tilted:
            self._tilted[key] = Tilted(delay=delay, per_s=per_s)
        return self._tilted[key]


def _kept(
    way: Stage, entry: Stage, shares: tuple[float, float], delays: tuple[Delay, ...]
) -> Stage:
    """What is left of a way, with all losses by their first cause.

    ``shares`` are of a stay: that in which the subscription is known to the first broker,
    E[(T − S)⁺]/E[T], and that in which what is published is notified, which is less.
    """
    known, notified = shares
    before = {cause: entry.lost.get(cause, 0.0) for cause in way.lost}
    lost = {cause: before[cause] + known * (way.lost[cause] - before[cause]) for cause in before}
    lost[NOT_KNOWN] = entry.survives * (1.0 - known)
    lost[UNSUBSCRIBED] = way.survives * max(known - notified, 0.0)
    return Stage(survives=way.survives * notified, lost=lost, shift_s=way.shift_s, delays=delays)
