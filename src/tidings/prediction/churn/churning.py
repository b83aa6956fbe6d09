"""A way to a subscriber whose subscriptions come and go, as one stage.

A subscriber stays a time T, then goes. An event published while it stays is notified if its
subscription is known where the event is matched (``meeting``) and if the event arrives before the
subscriber goes (that takes D). For moments of publication spread evenly over the stay the share
notified is E[(T − (S − E)⁺ − D)⁺]/E[T]. What is notified and in time contains the same D, so that
the way itself is weighted: by exp(−θD) for exponential stays, delay by delay; else as a whole.
Where E is random, which of the notified events are the quick ones is taken as for its mean.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tidings.model.laws import Exponential, Law
from tidings.model.record_tables import column, names
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.prediction.churn.meeting import Meeting
from tidings.prediction.churn.staying import Staying
from tidings.prediction.churn.tilting import Tilted
from tidings.prediction.churn.weighing import Weighed
from tidings.prediction.path_laws import Workshop, is_rough, path_law
from tidings.prediction.stages import Delay, Floats, Stage, in_series

NOT_KNOWN, UNSUBSCRIBED = "not_known", "unsubscribed"
APPROXIMATIONS = (
    "messages of subscriptions cross links as events do but are never lost and never queue",
    "moments of publication taken as spread evenly over a stay; a new subscription finds nothing "
    "left of the one before; what others that come and go draw left out",
    "where the time until an event is matched is random, shares delivered follow its law; which of "
    "these are in time is taken as for its mean (too high by at most about the share not known)",
    "brokers and mobile subscribers as busy as if everybody were subscribed all the time",
    "how long a subscriber stays taken as independent of what is down and of who is connected; a "
    "new subscription that finds a broker down with a refresh taken as one that lasts",
)


def soon_back(system: System, delay_mean_s: Floats) -> list[str]:
    """A warning of subscribers that are back before brokers have forgotten them.

    ``delay_mean_s`` is the mean delay of what each is told; a subscription takes about as long.
    """
    stays, away = (column(system.subscribers, name) for name in ("stays", "away"))
    comes = stays.where(lambda law: law is not None)
    gone_s = np.array([0.0 if law is None else law.mean_s for law in away.values])[away.codes]
    soon = comes[gone_s[comes] < 2.0 * delay_mean_s[comes]]
    return _warned(
        system,
        soon,
        "back so soon ('away') that brokers still know the subscription before, "
        "which draws events meanwhile; the shares are lower bounds, simulation counts that in",
    )


def drawn_by_guests(system: System, routes: Routes, lost_not_known: Floats) -> list[str]:
    """A warning of subscribers that want what others want who come and go, too.

    What these draw while they are there can only make up for what is lost for not being known.
    """
    stays, counts = column(system.subscribers, "stays"), column(system.subscribers, "count")
    comes = stays.where(lambda law: law is not None)
    everyone = np.array(counts.values, dtype=np.float64)[counts.codes[comes]]
    filters, size = routes.filter_of_subscriber[comes], routes.wants.shape[1]
    guests = routes.wants @ np.bincount(filters, weights=everyone, minlength=size)
    shared = ((guests > 1.0).astype(np.int64) @ routes.wants.astype(np.int64)) > 0
    alike = comes[shared[filters] & (lost_not_known[comes] > 0.0)]
    most = float(lost_not_known[alike].max(initial=0.0))
    return _warned(
        system,
        alike,
        "others that come and go want some of the same and draw it while they are there, which is "
        "left out; the shares delivered are lower bounds, too low by no more than what is lost as "
        f"not known (up to {most:.2g}), simulation counts that in",
    )


def _warned(system: System, whom: NDArray[np.int64], said: str) -> list[str]:
    if not whom.size:
        return []
    listed = ", ".join(names(system.subscribers)[index] for index in whom[:4])
    more = f" and {whom.size - 4} more" if whom.size > 4 else ""
    return [f"{listed}{more}: {said}"]


@dataclass(frozen=True, kw_only=True)
class Churn:
    """Makes the stages of one prediction, each weighted delay once."""

    workshop: Workshop = field(default_factory=Workshop)
    _tilted: dict[tuple[Delay, float], Tilted] = field(default_factory=dict)

    def stage(self, way: Stage, stays: Law, meeting: Meeting) -> Stage:
        """The way of what is notified; the rest of what survives it is lost for want of a
        subscription.
        """
        if way.survives == 0.0:
            return way
        staying = Staying(
            stays=stays,
            spreading=meeting.spreading,
            workshop=self.workshop,
            ahead_s=meeting.before.mean_s,
        )
        notified, delays = self._weighted(way, staying)
        known = float(staying.share(np.zeros(1))[0])
        if meeting.by_chance:
            by_chance = meeting.notified(stays, self.workshop)
            if meeting.failing:  # what chance does there, it does here
                plain, _ = self._weighted(in_series(meeting.before, meeting.after), staying)
                by_chance *= notified / plain if plain > 0.0 else 1.0
            notified = by_chance
            known = 1.0 - meeting.missed_s(stays, self.workshop) / stays.mean_s
        kept = _kept(way, meeting.before, (max(known, notified), notified), delays)
        if way.unkept is None:
            return kept
        return replace(kept, unkept=self.stage(way.unkept, stays, meeting))

    def _weighted(self, way: Stage, staying: Staying) -> tuple[float, tuple[Delay, ...]]:
        """Which share is notified, and the delays of that."""
        stays = staying.stays
        if isinstance(stays, Exponential) and not is_rough(way.delays):
            tilted = tuple(self._tilt(delay, 1.0 / stays.mean_s) for delay in way.delays)
            start = float(staying.share(np.array([way.shift_s]))[0])
            return start * float(np.prod([delay.mass for delay in tilted])), tilted
        if not way.delays:
            return float(staying.share(np.array([way.shift_s]))[0]), ()
        weighed = Weighed(way=way, law=path_law(way, self.workshop), staying=staying)
        return weighed.mass, (weighed,) if weighed.mass > 0.0 else ()

    def _tilt(self, delay: Delay, per_s: float) -> Tilted:
        key = (delay, per_s)
        if key not in self._tilted:
            self._tilted[key] = Tilted(delay=delay, per_s=per_s)
        return self._tilted[key]


def _kept(
    way: Stage, entry: Stage, shares: tuple[float, float], delays: tuple[Delay, ...]
) -> Stage:
    """What is left of a way, with all losses by their first cause.

    ``shares`` are of a stay: that in which what is published finds the subscription known,
    E[(T − (S − E)⁺)⁺]/E[T], and that in which what is published is notified, which is less.
    """
    known, notified = shares
    before = {cause: entry.lost.get(cause, 0.0) for cause in way.lost}
    lost = {cause: before[cause] + known * (way.lost[cause] - before[cause]) for cause in before}
    lost[NOT_KNOWN] = entry.survives * (1.0 - known)
    lost[UNSUBSCRIBED] = way.survives * max(known - notified, 0.0)
    return Stage(survives=way.survives * notified, lost=lost, shift_s=way.shift_s, delays=delays)
