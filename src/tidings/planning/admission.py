"""May another subscriber be admitted, and where, so that it and everybody else get their targets.

What one of a kind does to everybody is predicted once for each broker, and kept: a question is then
a look into a table. Who joins where its events are already changes nothing, and the tables grow by
a column; any other join has the system predicted anew, and the tables are made again when they are
next asked for. So every answer is that of the whole prediction of the system as it is now.

A subscriber changes what others get only where it brings events to brokers that did not have them
before. So one prediction answers for all brokers that have all it wants already, as long as it
finds, and it is looked at, that nothing else has changed; each other broker takes one of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.errors import InvalidInputError
from tidings.model.arrays import Bools, Floats, Ints
from tidings.model.json_text import plain
from tidings.model.progress import Progress
from tidings.model.routes import Routes, route
from tidings.model.shown import Shown
from tidings.model.system import Subscriber, System
from tidings.planning.evidence import MEETS, MISSES, OPEN, Evidence, Play, Target, foretell, weigh

NOTHING = 1e-9  # a change that is rounding: transforms are inverted in parts of other sizes
_BUSY = ("arrivals_per_s", "utilisation", "wait_mean_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedState:
    """A system as it is predicted: what everybody gets in time, and how busy brokers are."""

    shares: Floats  # [subscriber]
    brokers: pd.DataFrame

    def is_that_of(self, other: PredictedState) -> bool:
        """Test whether another state is the same for all subscribers that this one knows."""
        pairs = [(self.shares, other.shares[: len(self.shares)])]
        pairs += [(self.brokers[name], other.brokers[name]) for name in _BUSY]
        return all(np.allclose(*p, rtol=NOTHING, atol=NOTHING, equal_nan=True) for p in pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What a newcomer gets at a broker, and what everybody else loses by it."""

    share: float
    losses: Floats  # [subscriber]
    quiet: bool = False  # whether nothing at all has changed but that it is there


def state(system: System) -> PredictedState:
    """Predict the state of a system: shares of its subscribers, work of its brokers."""
    outcome = foretell(system)
    return PredictedState(shares=outcome.subscribers["on_time"].to_numpy(), brokers=outcome.brokers)


def newcomer_like(system: System, name: str, count: int = 1) -> Subscriber:
    """Make a newcomer that wants and behaves as a subscriber of the system does, with its link."""
    like = next((each for each in system.subscribers if each.name == name), None)
    if like is None:
        raise InvalidInputError(
            f"there is no subscriber '{name}'; --like wants the name of an existing one"
        )
    return replace(like, name=f"newcomer like {name}", count=count)


def joined(system: System, newcomers: Iterable[Subscriber]) -> System:
    """Add newcomers to a system, under names that are not taken."""
    taken = {each.name for each in system.subscribers}
    named = []
    for each in newcomers:
        name, number = each.name, 1
        while name in taken:
            number += 1
            name = f"{each.name} {number}"
        taken.add(name)
        named.append(replace(each, name=name))
    return replace(system, subscribers=(*system.subscribers, *named))


def quiet_effects(
    newcomer: Subscriber, brokers: Sequence[str], system: System, before: PredictedState
) -> dict[str, Effect]:
    """Predict effects at brokers that have the events already, by one prediction for all of them.

    There are none where even so something else has changed: brokers count heads, or those whose
    events they are come and go.
    """
    if not brokers:
        return {}
    after = state(joined(system, [replace(newcomer, at=name) for name in brokers]))
    if not before.is_that_of(after):
        return {}
    losses, known = np.zeros(len(before.shares)), len(before.shares)
    return {
        name: Effect(share=float(share), losses=losses, quiet=True)
        for name, share in zip(brokers, after.shares[known:], strict=True)
    }


def effect_at(broker: str, newcomer: Subscriber, system: System, before: PredictedState) -> Effect:
    """Predict the effect at one broker, by a prediction of its own."""
    after = state(joined(system, [replace(newcomer, at=broker)]))
    losses = before.shares - after.shares[:-1]
    return Effect(
        share=float(after.shares[-1]), losses=np.where(np.abs(losses) <= NOTHING, 0.0, losses)
    )


def reached_brokers(system: System, newcomer: Subscriber) -> set[str]:
    """List the brokers that all events which a newcomer wants come to already."""
    # Interest counts heads, so twice that with one newcomer less that with two is that without,
    # in classes of contents that tell apart what the newcomer wants.
    at = system.brokers[0].name
    one, two = (route(joined(system, [replace(newcomer, at=at, count=n)])) for n in (1, 2))
    interest = 2 * one.interest - two.interest
    wanted = one.wanted_by(len(system.subscribers))
    sources = {
        (int(one.home_of_publisher[row.publisher]), row.content_class)
        for row in one.rows
        if wanted[row.content_class] and row.probability > 0.0
    }
    common = set(range(len(system.brokers)))
    for home, content_class in sources:
        common &= _reached(one, interest[:, content_class], home, content_class)
    return {system.brokers[index].name for index in common}


def _reached(routes: Routes, interest: Ints, home: int, content_class: int) -> set[int]:
    """Find the brokers that events of a class reach from a broker.

    They follow arcs behind which at least one subscriber wants them.
    """
    tree = routes.trees[routes.tree_of_class[content_class]]
    seen, ahead = {home}, [home]
    while ahead:
        for arc in tree.outgoing[ahead.pop()]:
            target = routes.arcs[arc].target
            if target not in seen and interest[arc] > 0:
                seen.add(target)
                ahead.append(target)
    return seen


MOST_PLAYED = 5  # places, best first, until the simulation speaks for one


@dataclass(frozen=True, slots=True, kw_only=True)
class NewcomerPlace:
    """What becomes of a newcomer at a broker, and of everybody else."""

    broker: str
    target: float  # what the newcomer should get in time
    share: float  # what it would get
    margin: float  # of the last who must get its target, the newcomer included: share less target
    who: str  # that one
    admits: bool  # as predicted
    evidence: Evidence | None = None  # where the system with the newcomer there was looked at

    def to_document(self) -> dict[str, Any]:
        """Give this broker's entry as plain data."""
        names = ("broker", "share", "margin", "who", "admits")
        seen = self.evidence
        return {
            **{name: getattr(self, name) for name in names},
            "verdict": seen.verdict if seen else MEETS if self.admits else MISSES,
            "simulated": seen.simulated.to_document() if seen and seen.simulated else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Admission(Shown):
    """The answer to one question: whether, where, and what it would be elsewhere."""

    _table = "places"
    _columns = ("broker", "share", "margin", "who", "verdict")

    subscriber: str
    count: int
    target: float
    places: tuple[NewcomerPlace, ...]  # best first
    choice: NewcomerPlace | None  # the best that admits; None: the newcomer must be turned away

    @property
    def verdict(self) -> str:
        """Whether the newcomer may come: open where nothing is proved for it or against it."""
        if self.choice is not None:
            return MEETS
        seen = (place.evidence for place in self.places if place.admits)
        return OPEN if any(each is None or each.verdict == OPEN for each in seen) else MISSES

    def to_document(self) -> dict[str, Any]:
        """Give the answer as plain data for JSON."""
        chosen = self.choice.to_document() if self.choice else {}
        document = {
            "subscriber": self.subscriber,
            "count": self.count,
            "target": self.target,
            "admitted": self.choice is not None,
            "broker": chosen.get("broker"),
            "verdict": self.verdict,
            "simulated": chosen.get("simulated"),
            "places": [place.to_document() for place in self.places],
        }
        return dict(plain(document))


@dataclass(kw_only=True)
class _Kind:
    """What one more of a kind does, by broker: its own share, and what everybody loses."""

    reached: tuple[str, ...]  # the brokers that have its events already
    shares: Floats  # [broker]
    losses: Floats  # [broker, subscriber]
    known: Bools  # [broker]
    quiet: Bools  # [broker] whether nothing changes by it

    def learn(self, at: int, effect: Effect) -> None:
        """Keep what is known of a broker now."""
        self.shares[at], self.losses[at] = effect.share, effect.losses
        self.known[at], self.quiet[at] = True, effect.quiet

    def grow(self) -> None:
        """Add a subscriber that changed nothing.

        What others take from it is still to be predicted.
        """
        self.losses = np.column_stack([self.losses, np.zeros(len(self.losses))])
        self.known &= self.quiet


@dataclass(kw_only=True)
class Admissions:
    """The desk at which newcomers ask: a system, its targets, and what is known of newcomers."""

    system: System
    target: Target
    progress: Progress = lambda _: None
    _kinds: dict[Subscriber, _Kind] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._predict()

    def prepare(self, newcomer: Subscriber, brokers: Sequence[str] = ()) -> None:
        """Predict what one of this kind does where its events are already, and at these brokers."""
        table = self._table(newcomer)
        one, index = (
            replace(newcomer, count=self._kind_of(newcomer).count),
            self.system.broker_index,
        )
        missing = [name for name in brokers or table.reached if not table.known[index[name]]]
        if not missing:
            return
        there = [name for name in missing if name in table.reached]
        self.progress(f"{newcomer.name} where its events are")
        effects = quiet_effects(one, there, self.system, self._before)
        for number, name in enumerate(missing, start=1):
            if name not in effects:
                self.progress(f"{newcomer.name} at {name}, {number} of {len(missing)}")
                effects[name] = effect_at(name, one, self.system, self._before)
            table.learn(index[name], effects[name])

    def ask(self, newcomer: Subscriber, *, target: float, brokers: Sequence[str] = ()) -> Admission:
        """Decide whether a newcomer (or ``count`` of them) may come, and at which of the brokers.

        Where none is named, those that have its events already come first, for there it takes
        nothing from anybody; all others are looked at only where none of these admits it.
        """
        places = self._places(newcomer, target, brokers or self._table(newcomer).reached)
        if not brokers and not any(place.admits for place in places):
            places = self._places(newcomer, target, tuple(self.system.broker_index))
        return Admission(
            subscriber=newcomer.name,
            count=newcomer.count,
            target=target,
            places=places,
            choice=places[0] if places and places[0].admits else None,
        )

    def _places(
        self, newcomer: Subscriber, target: float, brokers: Sequence[str]
    ) -> tuple[NewcomerPlace, ...]:
        """Assess a newcomer at each of these brokers, best first."""
        if not brokers:
            return ()
        self.prepare(newcomer, brokers)
        kind, index = self._table(newcomer), self.system.broker_index
        allowed = np.array([index[name] for name in brokers], dtype=np.int64)
        last, margins = self._last(self._margins(kind.losses[allowed]), newcomer.count)
        places = []
        for at, who, others in zip(allowed.tolist(), last.tolist(), margins.tolist(), strict=True):
            share = float(kind.shares[at])
            own = np.inf if np.isnan(share) else share - target  # who wants nothing misses nothing
            places.append(
                NewcomerPlace(
                    broker=self.system.brokers[at].name,
                    target=target,
                    share=share,
                    margin=min(own, others),
                    who="the new subscriber" if own <= others else self._names[who],
                    admits=min(own, others) >= 0.0,
                )
            )
        places.sort(key=lambda place: (not place.admits, -place.share, place.broker))
        return tuple(places)

    def prove(self, newcomer: Subscriber, answer: Admission, play: Play | None) -> Admission:
        """Check the answer by simulation: take the best broker that it does not speak against."""
        places = list(answer.places)
        for number, place in enumerate(places[:MOST_PLAYED]):
            if not place.admits:
                break
            self.progress(f"{newcomer.name} at {place.broker}, simulated")
            evidence = weigh(self._judged(newcomer, place), self.target, play)
            places[number] = replace(place, evidence=evidence)
            if evidence.meets:
                return replace(answer, places=tuple(places), choice=places[number])
        return replace(answer, places=tuple(places), choice=None)

    def admit(self, newcomer: Subscriber, place: NewcomerPlace) -> None:
        """Take a newcomer in; later answers are those of the system with it."""
        known = self._kinds.get(self._kind_of(newcomer))
        self.system = joined(self.system, [_placed(newcomer, place)])
        at = self.system.broker_index[place.broker]
        if known is None or not known.quiet[at] or self._subscriptions_meet:
            self._kinds = {}
            self._predict()
            return
        for each in self._kinds.values():
            each.grow()
        shares = np.append(self._before.shares, known.shares[at])
        self._look(replace(self._before, shares=shares))

    def confirm(self) -> bool:
        """Predict the system anew with all who were admitted; whether targets are met.

        What is known of newcomers is forgotten, and predicted when it is next asked for.
        """
        self._kinds = {}
        self._predict()
        content = self._heads[self._before.shares >= self._wanted].sum()
        return self.target.is_met(content / max(1, self._heads.sum()))

    def _predict(self) -> None:
        self._look(state(self.system))

    def _look(self, before: PredictedState) -> None:
        """Take note of what everybody gets as it is, and should get."""
        self._before, self._wanted = before, self.target.shares(self.system)
        self._names = [each.name for each in self.system.subscribers]
        asked = ~np.isnan(self._wanted) & ~np.isnan(before.shares)
        heads = np.array([each.count for each in self.system.subscribers], dtype=np.int64)
        self._heads = np.where(asked, heads, 0)

    def _table(self, newcomer: Subscriber) -> _Kind:
        """Give what is known of newcomers of this kind, one row per broker."""
        kind, count = self._kind_of(newcomer), len(self.system.brokers)
        if kind not in self._kinds:
            reached = reached_brokers(self.system, newcomer)
            self._kinds[kind] = _Kind(
                reached=tuple(name for name in self.system.broker_index if name in reached),
                shares=np.full(count, np.nan),
                losses=np.zeros((count, len(self._names))),
                known=np.zeros(count, dtype=np.bool_),
                quiet=np.zeros(count, dtype=np.bool_),
            )
        return self._kinds[kind]

    def _kind_of(self, newcomer: Subscriber) -> Subscriber:
        """Reduce a newcomer to what its kind has in common.

        That is all but names, homes, and mostly numbers.
        """
        count = newcomer.count if self._heads_matter(newcomer) else 1
        return replace(newcomer, name="newcomer", at="", count=count, group=None, target=None)

    @property
    def _subscriptions_meet(self) -> bool:
        """Whether one subscription may do something for another: bring it back, draw its events."""
        changing = any(each.stays is not None for each in self.system.subscribers)
        return changing or self.system.recovery is not None

    def _heads_matter(self, newcomer: Subscriber) -> bool:
        """Test whether two of a kind do more than one: they come and go, or brokers count them."""
        services = [each.service for broker in self.system.brokers for each in broker.stations]
        counted = any(each is not None and each.per_subscription for each in services)
        return counted or newcomer.connectivity is not None or newcomer.stays is not None

    def _margins(self, losses: Floats) -> Floats:
        """Compute how far each is above its target, as [broker, subscriber].

        Infinite for who has no target, or is below it already and loses nothing.
        """
        left = self._before.shares - self._wanted - losses
        # Whoever is below the target already is not let down by a newcomer that costs nothing.
        left = np.where((left < 0.0) & (losses <= 0.0), np.inf, left)
        return np.where(np.isnan(left), np.inf, left)

    def _last(self, margins: Floats, newcomers: int) -> tuple[NDArray[np.int64], Floats]:
        """Find, by broker, the last of those who must get their target, and its margin.

        They are taken best off first. Newcomers get theirs, or do not come.
        """
        places, everybody = np.arange(len(margins)), newcomers + self._heads.sum()
        # Nobody else has to, where newcomers are as many as are asked for.
        if not self._heads.any() or newcomers / everybody >= self.target.of:
            return np.zeros(len(margins), np.int64), np.full(len(margins), np.inf)
        if self.target.of == 1.0:  # everybody, so that nobody need be put in order
            last = np.argmin(margins, axis=1)
            return last, margins[places, last]
        order = np.argsort(-margins, axis=1, kind="stable")
        content = newcomers + np.cumsum(self._heads[order], axis=1)
        enough = content / everybody >= self.target.of
        last = order[places, np.argmax(enough, axis=1)]
        return last, margins[places, last]

    def _judged(self, newcomer: Subscriber, place: NewcomerPlace) -> System:
        """Add a newcomer to the system; those it does not let down get target 0."""
        kind, at = self._table(newcomer), self.system.broker_index[place.broker]
        spared = np.isinf(self._margins(kind.losses[[at]])[0]) & ~np.isnan(self._wanted)
        everyone = (
            replace(each, target=0.0) if off else each
            for each, off in zip(self.system.subscribers, spared, strict=True)
        )
        system = replace(self.system, subscribers=tuple(everyone))
        return joined(system, [_placed(newcomer, place)])


def _placed(newcomer: Subscriber, place: NewcomerPlace) -> Subscriber:
    return replace(newcomer, at=place.broker, target=place.target)
