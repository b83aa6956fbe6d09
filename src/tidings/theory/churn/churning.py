"""A way to a subscriber whose subscriptions come and go, as one stage.

A subscriber stays a time T, then goes. An event published while it stays is notified if its
subscription is known where the event is matched (``meeting``) and if the event arrives before the
subscriber goes (that takes D). For moments of publication spread evenly over the stay the share
notified is E[(T − (S − E)⁺ − D)⁺]/E[T]. What is notified and in time contains the same D, so that
the way itself is weighted: by exp(−θD) for exponential stays, delay by delay; else as a whole.
Where E is random, which of the notified events are the quick ones follows for exponential stays
(``matching``), and is taken as for the mean of E for others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tidings.model.laws import Exponential, Law
from tidings.model.record_tables import Coded, column, names
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.theory.churn.matching import InVain, Met, NotKnown
from tidings.theory.churn.meeting import Meeting
from tidings.theory.churn.staying import MixedStaying, Staying, mixed
from tidings.theory.churn.tilting import Tilted
from tidings.theory.churn.weighing import Weighed
from tidings.theory.faults.static_ways import HOME_DOWN
from tidings.theory.path_laws import Workshop, is_rough, path_law
from tidings.theory.stages import NOTHING, Delay, Floats, Stage, in_series, lossless
from tidings.theory.stated_errors import Stated

NOT_KNOWN, UNSUBSCRIBED = "not_known", "unsubscribed"
_NEXT_TO_NOTHING = 1e-9  # of what arrives, far below what is wanted of laws
_LITTLE = 0.005  # of what arrives: how late so little is changes shares by far less, and is dear
_FEW_DELAYS = 4.0  # within which guests come and go too fast for what they draw to be exact
APPROXIMATIONS = (
    "messages of subscriptions cross links as events do but are never lost and never queue",
    "moments of publication taken as spread evenly over a stay; a new subscription finds nothing "
    "left of the one before, but for those who are back at once",
    "what others draw that come and go counted as if each were there or not while an event passes "
    "(exact where stays and times away are long beside delays)",
    "where the time until an event is matched is random, shares delivered follow its law, and for "
    "exponential stays so does which of these are in time (but for what is matched in vain where "
    "that is below half a percent); for others, or where buffers change the way, that is taken as "
    "for its mean (too high by at most about the share not known)",
    "brokers as busy as events find them on average over who is subscribed, arrivals as even as "
    "that; mobile subscribers as busy as while they are subscribed",
    "how long a subscriber stays taken as independent of what is down and of who is connected; a "
    "new subscription that finds a broker down with a refresh taken as one that lasts",
)
AMONG_FAILURES = (
    "what is published while a new subscription waits for a repair told as lost to what is down "
    "('path_down', 'broker_down'); simulations tell it as 'not_known'"
)


def soon_back(system: System, delay_mean_s: Floats) -> list[str]:
    """A warning of subscribers that are back before brokers have forgotten them.

    ``delay_mean_s`` is the mean delay of what each is told; a subscription takes about as long.
    """
    stays, away = (column(system.subscribers, name) for name in ("stays", "away"))
    comes = stays.where(lambda law: law is not None)
    gone_s = _means_s(away)[comes]
    soon = comes[(gone_s > 0.0) & (gone_s < 2.0 * delay_mean_s[comes])]
    return _warned(
        system,
        soon,
        "back so soon ('away') that brokers still know the subscription before, "
        "which draws events meanwhile; the shares are lower bounds, simulation counts that in",
        None,
    )


def drawn_by_guests(system: System, routes: Routes, delay_mean_s: Floats) -> list[str]:
    """A warning of subscribers that share what they want with others who come and go fast.

    Fast is within few of the mean delays of what each is told: events find others gone, or come,
    on their way.
    """
    stays, away, counts = (column(system.subscribers, name) for name in ("stays", "away", "count"))
    comes = stays.where(lambda law: law is not None)
    least_s = np.minimum(_means_s(stays), _means_s(away))[comes]
    fast = (least_s > 0.0) & (least_s < _FEW_DELAYS * delay_mean_s[comes])
    everyone = np.array(counts.values, dtype=np.float64)[counts.codes[comes]]
    filters, size = routes.filter_of_subscriber[comes], routes.wants.shape[1]
    guests = routes.wants @ np.bincount(filters, weights=everyone, minlength=size)
    hasty = routes.wants @ np.bincount(filters, weights=fast, minlength=size)
    doubtful = ((guests > 1.0) & (hasty > 0.0)).astype(np.int64)
    alike = comes[(doubtful @ routes.wants.astype(np.int64) > 0)[filters]]
    return _warned(
        system,
        alike,
        f"others that come and go within {_FEW_DELAYS:g} delays want some of the same; what they "
        "draw is counted as if events took no time, and shares seen simulated were up to 0.03 "
        "higher",
        0.03,
    )


def _means_s(laws: Coded) -> Floats:
    """The mean of each record's law, in seconds; 0 where there is none."""
    means_s = [0.0 if law is None else law.mean_s for law in laws.values]
    return np.array(means_s, dtype=np.float64)[laws.codes]


def _warned(system: System, whom: NDArray[np.int64], said: str, error: float | None) -> list[str]:
    if not whom.size:
        return []
    listed = ", ".join(names(system.subscribers)[index] for index in whom[:4])
    more = f" and {whom.size - 4} more" if whom.size > 4 else ""
    return [Stated(f"{listed}{more}: {said}", error)]


@dataclass(frozen=True, kw_only=True)
class Churn:
    """Makes the stages of one prediction, each weighted delay once."""

    workshop: Workshop = field(default_factory=Workshop)
    _tilted: dict[tuple[Delay, float], Tilted] = field(default_factory=dict)

    def stage(self, way: Stage, stays: Law, meetings: Sequence[tuple[float, Meeting]]) -> Stage:
        """The way of what is notified; the rest of what survives it is lost for want of a
        subscription.

        Where events meet the subscription each with its probability, one of these it is.
        """
        if way.survives == 0.0:
            return way
        stayings = [self._staying(stays, meeting) for _, meeting in meetings]
        chances = [chance for chance, _ in meetings]
        parts = [
            _kept(way, meeting.before, self._shares(way, staying, meeting))
            for (_, meeting), staying in zip(meetings, stayings, strict=True)
        ]
        lost = {
            cause: sum(p * each.lost[cause] for p, each in zip(chances, parts, strict=True))
            for cause in parts[0].lost
        }
        delays = self._delays(way, list(zip(meetings, parts, strict=True)), stayings)
        return Stage(
            survives=sum(p * each.survives for p, each in zip(chances, parts, strict=True)),
            lost=lost,
            shift_s=way.shift_s,
            delays=delays,
            unkept=None if way.unkept is None else self.stage(way.unkept, stays, meetings),
        )

    def _delays(
        self,
        way: Stage,
        met: list[tuple[tuple[float, Meeting], Stage]],
        stayings: Sequence[Staying],
    ) -> tuple[Delay, ...]:
        """The delays of what is notified; for exponential stays also where E is random."""
        by_chance = [meeting for (_, meeting), _ in met if meeting.by_chance]
        exactly = isinstance(stayings[0].stays, Exponential) and all(
            _without(way.delays, meeting.before.delays) is not None for meeting in by_chance
        )
        if not exactly or not by_chance:
            chances = [chance for (chance, _), _ in met]
            return self._weighted(way, mixed(chances, stayings))[1]
        weights = [chance * kept.survives for (chance, _), kept in met]
        vain = [self._in_vain(way, meeting, stayings[0].stays) for (_, meeting), _ in met]
        arriving = sum(w / (1.0 - part) for w, (part, _) in zip(weights, vain, strict=True))
        found = tuple(
            (w * part / (1.0 - part) / arriving, each)
            for w, (part, each) in zip(weights, vain, strict=True)
            if each is not None and w > 0.0
        )
        _, tilted = self._weighted(way, self._at_once(stayings[0].stays))
        return (Met(arriving=tilted, vain=found, workshop=self.workshop),) if found else tilted

    def _in_vain(self, way: Stage, meeting: Meeting, stays: Law) -> tuple[float, InVain | None]:
        """Which part of what arrives during a stay was matched before the subscription was known,
        and its delay; None where that is next to nothing, or all.
        """
        if not meeting.by_chance:
            return 0.0, None
        at_once, before = self._at_once(stays), lossless(meeting.before)
        not_known = NotKnown(
            spreading=meeting.spreading, per_s=1.0 / stays.mean_s, workshop=self.workshop
        )
        first = Weighed(way=before, law=path_law(before, self.workshop), staying=not_known)
        left = _without(way.delays, before.delays)
        assert left is not None
        kept, rest = self._weighted(Stage(delays=left), at_once)
        all_that_arrives, _ = self._weighted(
            Stage(shift_s=before.shift_s, delays=way.delays), at_once
        )
        part = first.mass * kept / all_that_arrives
        if not _LITTLE < part < 1.0 - _NEXT_TO_NOTHING:
            return 0.0, None
        return part, InVain(first=first, rest=rest, workshop=self.workshop)

    def _at_once(self, stays: Law) -> Staying:
        """A subscription that is known at once."""
        return Staying(stays=stays, spreading=NOTHING, workshop=self.workshop)

    def _staying(self, stays: Law, meeting: Meeting) -> Staying:
        return Staying(
            stays=stays,
            spreading=meeting.spreading,
            workshop=self.workshop,
            ahead_s=meeting.before.mean_s,
        )

    def _shares(self, way: Stage, staying: Staying, meeting: Meeting) -> tuple[float, float]:
        """The share of a stay in which what is published finds the subscription known,
        E[(T − (S − E)⁺)⁺]/E[T], and that in which what is published is notified, which is less.
        """
        notified, _ = self._weighted(way, staying)
        known = float(staying.share(np.zeros(1))[0])
        if meeting.by_chance:
            stays = staying.stays
            by_chance = meeting.notified(stays, self.workshop)
            if meeting.failing:  # what chance does there, it does here
                plain, _ = self._weighted(in_series(meeting.before, meeting.after), staying)
                by_chance *= notified / plain if plain > 0.0 else 1.0
            notified = by_chance
            known = 1.0 - meeting.missed_s(stays, self.workshop) / stays.mean_s
        return max(known, notified), notified

    def _weighted(
        self, way: Stage, staying: Staying | MixedStaying
    ) -> tuple[float, tuple[Delay, ...]]:
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


def _without(delays: tuple[Delay, ...], some: tuple[Delay, ...]) -> tuple[Delay, ...] | None:
    """What is left of some delays without others; None where these are not all among them."""
    left = list(delays)
    for each in some:
        place = next((at for at, delay in enumerate(left) if delay is each), None)
        if place is None:
            return None
        del left[place]
    return tuple(left)


def _kept(way: Stage, entry: Stage, shares: tuple[float, float]) -> Stage:
    """What is left of a way, with all losses by their first cause; its delays are not told.

    ``shares`` are of a stay: in which what is published finds the subscription known, and in which
    what is published is notified. An event meets its publisher's broker, up or down, before any
    subscription.
    """
    known, notified = shares
    before = {cause: entry.lost.get(cause, 0.0) for cause in way.lost}
    before |= {cause: share for cause, share in way.lost.items() if cause == HOME_DOWN}
    lost = {cause: before[cause] + known * (way.lost[cause] - before[cause]) for cause in before}
    lost[NOT_KNOWN] = (1.0 - sum(before.values())) * (1.0 - known)
    lost[UNSUBSCRIBED] = way.survives * max(known - notified, 0.0)
    return Stage(survives=way.survives * notified, lost=lost)
