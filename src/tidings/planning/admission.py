"""May another subscriber be admitted, and where, so that it and everybody else get their targets.

A subscriber changes what others get only where it brings events to brokers that did not have them
before; one who wants at a broker what is already wanted there changes nothing. So what one of a
kind does to everybody is predicted once for each broker, and kept: a question is then a look into a
table, and exact as long as the system is as it was predicted. After admissions that brought new
events somewhere, the losses of all of them are added up (a first-order answer, said to be one)
until :meth:`Admissions.confirm` predicts the system anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.errors import InvalidInputError
from tidings.model.outcome_files import plain
from tidings.model.system import Subscriber, System
from tidings.planning.scenarios import foretell
from tidings.planning.targets import Target

Floats = NDArray[np.float64]
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What becomes of a newcomer at a broker, and of everybody else."""

    broker: str
    share: float  # what the newcomer would get in time
    margin: float  # of whoever falls furthest below its target, the newcomer included, or above
    who: str  # that one
    admits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The answer to one question: whether, where, and what it would be elsewhere."""

    subscriber: str
    count: int
    target: float
    places: tuple[Place, ...]  # best first
    exact: bool  # whether the system is as it was predicted

    @property
    def choice(self) -> Place | None:
        """The best place that admits, or None: the newcomer must be turned away."""
        return next((place for place in self.places if place.admits), None)

    def to_document(self) -> dict[str, Any]:
        """The answer as plain data for JSON."""
        names = ("broker", "share", "margin", "who", "admits")
        places = [{name: getattr(place, name) for name in names} for place in self.places]
        return dict(
            plain(
                {
                    "subscriber": self.subscriber,
                    "count": self.count,
                    "target": self.target,
                    "admitted": self.choice is not None,
                    "broker": self.choice.broker if self.choice else None,
                    "exact": self.exact,
                    "places": places,
                }
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """What one more of a kind does, by broker: its own share, and what everybody loses."""

    shares: Floats  # [broker]
    losses: Floats  # [broker, subscriber]


@dataclass(kw_only=True)
class Admissions:
    """The desk at which newcomers ask: a system, its targets, and what is known of newcomers."""

    system: System
    target: Target
    progress: Progress = lambda _: None
    _kinds: dict[Subscriber, _Kind] = field(default_factory=dict)
    _lost: Floats = field(default_factory=lambda: np.zeros(0))
    _brought: set[tuple[Subscriber, str]] = field(default_factory=set)
    _admitted: list[Subscriber] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._predict()

    def prepare(self, newcomer: Subscriber) -> None:
        """Predict what one of this kind does at every broker; done once for each kind."""
        kind = self._kind_of(newcomer)
        if kind in self._kinds:
            return
        shares, losses = [], []
        twins = self._twins(kind)
        for number, broker in enumerate(self.system.brokers, start=1):
            if broker.name in twins:  # it would get what that one gets, and change nothing
                shares.append(self._shares[twins[broker.name]])
                losses.append(np.zeros(len(self._shares)))
                continue
            self.progress(
                f"{newcomer.name} at {broker.name}, {number} of {len(self.system.brokers)}"
            )
            found = foretell(_joined(self.system, [replace(newcomer, at=broker.name)])).subscribers
            on_time = found["on_time"].to_numpy()
            shares.append(on_time[-1])
            losses.append(self._shares - on_time[:-1])
        self._kinds[kind] = _Kind(shares=np.array(shares), losses=np.array(losses))

    def ask(self, newcomer: Subscriber, *, target: float, brokers: Sequence[str] = ()) -> Admission:
        """Whether a newcomer (or ``count`` of them) may come, at which of the brokers."""
        self.prepare(newcomer)
        kind = self._kinds[self._kind_of(newcomer)]
        allowed = [self.system.broker_index[name] for name in brokers] or range(len(kind.shares))
        margins = self._margins(kind)
        least = np.argmin(margins, axis=1) if margins.shape[1] else np.zeros(len(margins), int)
        places = [self._place(at, kind, margins, int(least[at]), target) for at in allowed]
        places.sort(key=lambda place: (not place.admits, -place.share, place.broker))
        return Admission(
            subscriber=newcomer.name,
            count=newcomer.count,
            target=target,
            places=tuple(places),
            exact=not self._lost.any(),
        )

    def admit(self, newcomer: Subscriber, place: Place) -> None:
        """Take a newcomer in; what it costs the others counts from now on."""
        kind = self._kinds[self._kind_of(newcomer)]
        key = (self._kind_of(newcomer), place.broker)
        # Whoever wants the same there has brought it all already, unless brokers count heads.
        if key not in self._brought or self._heads_count:
            self._lost = self._lost + kind.losses[self.system.broker_index[place.broker]]
            self._brought.add(key)
        self._admitted.append(replace(newcomer, at=place.broker))

    def confirm(self) -> bool:
        """Predict the system anew with all who were admitted; whether everybody gets their target.

        From then on answers are exact again, and kinds are predicted when they are next asked for.
        """
        self.system = _joined(self.system, self._admitted)
        self._admitted, self._brought, self._kinds = [], set(), {}
        self._predict()
        known = ~np.isnan(self._wanted) & ~np.isnan(self._shares)
        return bool((self._shares[known] >= self._wanted[known]).all())

    @property
    def _heads_count(self) -> bool:
        """Whether brokers take longer the more subscriptions they store."""
        services = [s.service for b in self.system.brokers for s in b.stations]
        return any(each is not None and each.per_subscription for each in services)

    def _kind_of(self, newcomer: Subscriber) -> Subscriber:
        """What newcomers of one kind have in common: all but names, homes, and mostly numbers."""
        count = newcomer.count if self._heads_count else 1
        return replace(newcomer, name="newcomer", at="", count=count, group=None, target=None)

    def _twins(self, kind: Subscriber) -> dict[str, int]:
        """By broker a subscriber of the same kind there; none where brokers count heads."""
        if self._heads_count:
            return {}
        everyone = enumerate(self.system.subscribers)
        return {each.at: index for index, each in everyone if self._kind_of(each) == kind}

    def _predict(self) -> None:
        self._wanted = _wanted(self.system, self.target)
        self._shares: Floats = foretell(self.system).subscribers["on_time"].to_numpy()
        self._names = [each.name for each in self.system.subscribers]
        self._lost = np.zeros(len(self._names))

    def _margins(self, kind: _Kind) -> Floats:
        """[broker, subscriber] what everybody would have above their target; infinite if none."""
        left = self._shares - self._wanted - self._lost - kind.losses
        # Whoever is below the target already is not let down by a newcomer that costs nothing.
        left = np.where((left < 0.0) & (kind.losses <= 1e-12), np.inf, left)
        return np.where(np.isnan(left), np.inf, left)

    def _place(self, at: int, kind: _Kind, margins: Floats, least: int, target: float) -> Place:
        share = float(kind.shares[at])
        own = share - target
        others = float(margins[at, least]) if margins.shape[1] else np.inf
        who = "the newcomer" if own <= others else self._names[least]
        margin = min(own, others)
        broker = self.system.brokers[at].name
        return Place(broker=broker, share=share, margin=margin, who=who, admits=margin >= 0.0)


def newcomer_like(system: System, name: str, count: int = 1) -> Subscriber:
    """A newcomer that wants what a subscriber of the system wants, with its link and its ways."""
    like = next((each for each in system.subscribers if each.name == name), None)
    if like is None:
        raise InvalidInputError(f"there is no subscriber '{name}' to be like")
    return replace(like, name=f"newcomer like {name}", count=count)


def _joined(system: System, newcomers: Sequence[Subscriber]) -> System:
    taken = {each.name for each in system.subscribers}
    named = []
    for number, each in enumerate(newcomers, start=1):
        name = each.name if len(newcomers) == 1 else f"{each.name} {number}"
        while name in taken:
            name += " again"
        taken.add(name)
        named.append(replace(each, name=name))
    return replace(system, subscribers=(*system.subscribers, *named))


def _wanted(system: System, target: Target) -> Floats:
    """Everybody's target; NaN for those of whom nothing is asked."""
    common = np.nan if target.share is None else target.share
    own = [common if each.target is None else each.target for each in system.subscribers]
    return np.array(own, dtype=np.float64)
