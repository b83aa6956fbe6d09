"""May another subscriber be admitted, and where, so that it and everybody else get their targets.

What one of a kind does to everybody is predicted once for each broker, and kept: a question is then
a look into a table. Who joins where one of its kind is already changes nothing, and the tables grow
by a column; any other join has the system predicted anew, and the tables are made again when they
are next asked for. So every answer is that of the whole prediction of the system as it is now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tidings.model.outcome import Outcome
from tidings.model.outcome_files import plain
from tidings.model.system import Subscriber, System
from tidings.planning.evidence import MEETS, MISSES, OPEN, Evidence, Play, prove
from tidings.planning.newcomers import Effect, effects_of, joined
from tidings.planning.scenarios import foretell
from tidings.planning.targets import Floats, Target

MOST_PLAYED = 5  # places, best first, until the simulation speaks for one

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What becomes of a newcomer at a broker, and of everybody else."""

    broker: str
    target: float  # what the newcomer should get in time
    share: float  # what it would get
    margin: float  # of the last who must get its target, the newcomer included: share less target
    who: str  # that one
    admits: bool  # as predicted
    evidence: Evidence | None = None  # where the system with the newcomer there was looked at

    def to_document(self) -> dict[str, Any]:
        """The place as plain data."""
        names = ("broker", "share", "margin", "who", "admits")
        seen = self.evidence
        return {
            **{name: getattr(self, name) for name in names},
            "verdict": seen.verdict if seen else MEETS if self.admits else MISSES,
            "simulated": seen.simulated.to_document() if seen and seen.simulated else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """The answer to one question: whether, where, and what it would be elsewhere."""

    subscriber: str
    count: int
    target: float
    places: tuple[Place, ...]  # best first
    choice: Place | None  # the best that admits; None: the newcomer must be turned away

    @property
    def verdict(self) -> str:
        """Whether the newcomer may come: open where only the prediction is for it."""
        if self.choice is not None:
            return MEETS
        return OPEN if any(place.admits for place in self.places) else MISSES

    def to_document(self) -> dict[str, Any]:
        """The answer as plain data for JSON."""
        chosen = self.choice.to_document() if self.choice else {}
        return dict(
            plain(
                {
                    "subscriber": self.subscriber,
                    "count": self.count,
                    "target": self.target,
                    "admitted": self.choice is not None,
                    "broker": chosen.get("broker"),
                    "verdict": self.verdict,
                    "simulated": chosen.get("simulated"),
                    "places": [place.to_document() for place in self.places],
                }
            )
        )


@dataclass(kw_only=True)
class _Kind:
    """What one more of a kind does, by broker: its own share, and what everybody loses."""

    shares: Floats  # [broker]
    losses: Floats  # [broker, subscriber]
    known: NDArray[np.bool_]  # [broker]

    def learn(self, at: int, effect: Effect) -> None:
        """Keep what is known of a broker now."""
        self.shares[at], self.losses[at], self.known[at] = effect.share, effect.losses, True


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
        """Predict what one of this kind does at brokers (all, if none is named), once for each."""
        kind = self._kind_of(newcomer)
        size = len(self.system.brokers), len(self._names)
        if kind not in self._kinds:
            self._kinds[kind] = _Kind(
                shares=np.full(size[0], np.nan),
                losses=np.zeros(size),
                known=np.zeros(size[0], bool),
            )
        table, index = self._kinds[kind], self.system.broker_index
        missing = [name for name in brokers or index if not table.known[index[name]]]
        if missing:
            one = replace(newcomer, count=kind.count)
            found = effects_of(one, missing, self.system, self._before, self.progress)
            for name, effect in found.items():
                table.learn(index[name], effect)

    def ask(self, newcomer: Subscriber, *, target: float, brokers: Sequence[str] = ()) -> Admission:
        """Whether a newcomer (or ``count`` of them) may come, at which of the brokers."""
        self.prepare(newcomer, brokers)
        kind = self._kinds[self._kind_of(newcomer)]
        index = self.system.broker_index
        allowed = np.array([index[name] for name in brokers or index], dtype=np.int64)
        last, margins = self._last(self._margins(kind.losses[allowed]), newcomer.count)
        places = []
        for at, who, others in zip(allowed.tolist(), last.tolist(), margins.tolist(), strict=True):
            share = float(kind.shares[at])
            own = np.inf if np.isnan(share) else share - target  # who wants nothing misses nothing
            places.append(
                Place(
                    broker=self.system.brokers[at].name,
                    target=target,
                    share=share,
                    margin=min(own, others),
                    who="the newcomer" if own <= others else self._names[who],
                    admits=min(own, others) >= 0.0,
                )
            )
        places.sort(key=lambda place: (not place.admits, -place.share, place.broker))
        return Admission(
            subscriber=newcomer.name,
            count=newcomer.count,
            target=target,
            places=tuple(places),
            choice=places[0] if places and places[0].admits else None,
        )

    def prove(self, newcomer: Subscriber, answer: Admission, play: Play | None) -> Admission:
        """The answer by evidence: the best place that the simulation does not speak against."""
        places = list(answer.places)
        for number, place in enumerate(places[:MOST_PLAYED]):
            if not place.admits:
                break
            self.progress(f"{newcomer.name} at {place.broker}, simulated")
            evidence = prove(self._judged(newcomer, place), self.target, play)
            places[number] = replace(place, evidence=evidence)
            if evidence.meets:
                return replace(answer, places=tuple(places), choice=places[number])
        return replace(answer, places=tuple(places), choice=None)

    def admit(self, newcomer: Subscriber, place: Place) -> None:
        """Take a newcomer in; later answers are those of the system with it."""
        twin = self._twin(newcomer, place.broker)
        known = self._kinds.get(self._kind_of(newcomer))
        self.system = joined(self.system, [_placed(newcomer, place)])
        at = self.system.broker_index[place.broker]
        if twin is None or known is None or not known.known[at] or known.losses[at].any():
            self._kinds = {}
            self._predict()
            return
        for each in self._kinds.values():
            each.losses = np.column_stack([each.losses, each.losses[:, twin]])
        rows = self._before.subscribers
        guest = self.system.subscribers[-1]
        row = rows.iloc[[twin]].assign(subscriber=guest.name, count=guest.count)
        self._look(replace(self._before, subscribers=pd.concat([rows, row], ignore_index=True)))

    def confirm(self) -> bool:
        """Predict the system anew with all who were admitted; whether targets are met.

        What is known of newcomers is forgotten, and predicted when it is next asked for.
        """
        self._kinds = {}
        self._predict()
        return self.target.is_met(self.target.satisfied(self.system, self._before))

    def _predict(self) -> None:
        self._look(foretell(self.system))

    def _look(self, before: Outcome) -> None:
        """Take note of what everybody gets as it is, and should get."""
        self._before = before
        self._shares: Floats = before.subscribers["on_time"].to_numpy()
        self._wanted = self.target.shares(self.system)
        self._names = [each.name for each in self.system.subscribers]
        asked = ~np.isnan(self._wanted) & ~np.isnan(self._shares)
        self._heads = np.where(asked, before.subscribers["count"].to_numpy(), 0)

    def _kind_of(self, newcomer: Subscriber) -> Subscriber:
        """What newcomers of one kind have in common: all but names, homes, and mostly numbers."""
        count = newcomer.count if self._heads_matter(newcomer) else 1
        return replace(newcomer, name="newcomer", at="", count=count, group=None, target=None)

    def _heads_matter(self, newcomer: Subscriber) -> bool:
        """Whether two of a kind do more than one: they come and go, or brokers count them."""
        services = [each.service for broker in self.system.brokers for each in broker.stations]
        counted = any(each is not None and each.per_subscription for each in services)
        return counted or newcomer.connectivity is not None or newcomer.stays is not None

    def _twin(self, newcomer: Subscriber, broker: str) -> int | None:
        """A subscriber of the same kind at a broker, to whom nothing new comes with another."""
        if self._heads_matter(newcomer):
            return None
        kind = self._kind_of(newcomer)
        there = (i for i, each in enumerate(self.system.subscribers) if each.at == broker)
        return next((i for i in there if self._kind_of(self.system.subscribers[i]) == kind), None)

    def _margins(self, losses: Floats) -> Floats:
        """[place, subscriber] what everybody would have above their target; infinite if none."""
        left = self._shares - self._wanted - losses
        # Whoever is below the target already is not let down by a newcomer that costs nothing.
        left = np.where((left < 0.0) & (losses <= 0.0), np.inf, left)
        return np.where(np.isnan(left), np.inf, left)

    def _last(self, margins: Floats, newcomers: int) -> tuple[NDArray[np.int64], Floats]:
        """By place the last of those who must get their target, best off first, and its margin.

        Newcomers get theirs, or do not come.
        """
        places = np.arange(len(margins))
        if not self._heads.any():
            return np.zeros(len(margins), np.int64), np.full(len(margins), np.inf)
        order = np.argsort(-margins, axis=1, kind="stable")
        content = newcomers + np.cumsum(self._heads[order], axis=1)
        enough = content / (newcomers + self._heads.sum()) >= self.target.of
        last = order[places, np.argmax(enough, axis=1)]
        return last, margins[places, last]

    def _judged(self, newcomer: Subscriber, place: Place) -> System:
        """The system with a newcomer, in which whom it does not let down asks for nothing."""
        kind, at = self._kinds[self._kind_of(newcomer)], self.system.broker_index[place.broker]
        spared = np.isinf(self._margins(kind.losses[[at]])[0]) & ~np.isnan(self._wanted)
        everyone = (
            replace(each, target=0.0) if off else each
            for each, off in zip(self.system.subscribers, spared, strict=True)
        )
        system = replace(self.system, subscribers=tuple(everyone))
        return joined(system, [_placed(newcomer, place)])


def _placed(newcomer: Subscriber, place: Place) -> Subscriber:
    return replace(newcomer, at=place.broker, target=place.target)
