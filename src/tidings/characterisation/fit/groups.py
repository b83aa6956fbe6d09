"""Subscribers that take their time, and consumer groups, from what was handled when and by whom."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce

import numpy as np
import pandas as pd
from scipy import stats

from tidings.characterisation.fit.choosing import COMPETING, Chosen, find_choice
from tidings.characterisation.fit.laws import FittedLaw, fit_law
from tidings.characterisation.fit.parameters import Parameter, law_parameter
from tidings.characterisation.fit.samples import Sample, sample_from_rows
from tidings.characterisation.statistics import BATCHES, sums_at
from tidings.model.arrays import Floats
from tidings.model.consumers import CHOICES, Consumers, Member, Partitions
from tidings.model.naming import few
from tidings.model.standard_errors import batch_share_se
from tidings.model.system import Subscriber, System

SURELY = 1e-3  # members differ, and partitions, if chance makes it look so less often than this
_ENOUGH = 30  # events of a member, below which its own time is not told
_CLOCK_S = 1e-9
_STRAYS = 0.02  # share of a partition's events that others may handle before it has moved
_TOLD = "Tell {what} in a base system (--base) if you know"


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedGroups:
    """Subscribers as they handle events, the parameters of that, and what must be said."""

    subscribers: tuple[Subscriber, ...]
    parameters: tuple[Parameter, ...] = ()
    notes: tuple[str, ...] = ()


def who_handle(handlings: pd.DataFrame | None) -> frozenset[str]:
    """List the subscribers that are known to handle events, by a member or for some time."""
    if handlings is None:
        return frozenset()
    return frozenset(map(str, handlings["subscriber"].dropna()))


def with_groups(
    subscribers: tuple[Subscriber, ...],
    handlings: pd.DataFrame | None,
    pickups: pd.DataFrame | None,
    base: System | None,
) -> FittedGroups:
    """Let subscribers handle events as was seen; others stay as they are."""
    if handlings is None:
        return FittedGroups(subscribers=subscribers)
    rows_of = dict(list(handlings.groupby("subscriber")))
    known = {each.name: each for each in base.subscribers} if base else {}
    changed: list[Subscriber] = []
    parameters: list[Parameter] = []
    whose: dict[str, list[str]] = {}  # of every note
    for each in subscribers:
        if each.name not in rows_of:
            changed.append(each)
            continue
        seen = _Seen.of(rows_of[each.name], _rows_of(pickups, each.name))
        given = known[each.name].consumers if each.name in known else None
        fitted = _Fit(subscriber=each, seen=seen, given=given).fitted()
        changed += fitted.subscribers
        parameters += fitted.parameters
        for note in fitted.notes:
            whose.setdefault(note, []).append(each.name)
    notes = [f"consumers of {few(names)}: {note}" for note, names in whose.items()]
    return FittedGroups(
        subscribers=tuple(changed), parameters=tuple(parameters), notes=tuple(notes)
    )


def _rows_of(pickups: pd.DataFrame | None, name: str) -> pd.DataFrame:
    if pickups is None:
        return pd.DataFrame(columns=["others", "rows", "batches"])
    return pickups[pickups["subscriber"] == name]


def natural(name: str) -> list[tuple[int, int, str]]:
    """Make the key by which names are in the order of the numbers in them.

    >>> sorted(["worker 10", "worker 9", "b"], key=natural)
    ['b', 'worker 9', 'worker 10']
    """
    pieces = re.split(r"([0-9]+)", name)
    return [(1, int(one), "") if one.isdecimal() else (0, 0, one) for one in pieces]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What was counted of one subscriber: times by member, events by member, part and batch."""

    members: tuple[str, ...]  # none where nobody told
    times: tuple[Sample, ...]  # of each; of everybody where there are no members
    events: Floats  # [member, batch]
    parts: tuple[str, ...]
    by_part: Floats  # [part, member, batch]
    rows: int
    again: int
    pickups: Mapping[int, int]  # taken up at once, by how many others were busy
    batches: int  # that members handled as one

    @classmethod
    def of(cls, rows: pd.DataFrame, pickups: pd.DataFrame) -> _Seen:
        """Read it from its rows of the statistic."""
        shares, times = (rows[rows["statistic"] == name] for name in ("shares", "times"))
        members = tuple(sorted(map(str, shares["member"].dropna().unique()), key=natural))
        parts = tuple(sorted(map(str, shares["part"].dropna().unique()), key=natural))
        named = shares[shares["member"].notna()]
        member = named["member"].map({name: at for at, name in enumerate(members)})
        events = sums_at(named, "rows", (len(members), BATCHES), member, named["batch"])
        parted = shares[shares["part"].notna()]
        part = parted["part"].map({name: at for at, name in enumerate(parts)})
        owner = parted["member"].map({name: at for at, name in enumerate(members)})
        owner = owner.fillna(len(members))  # in a place of its own where nobody told
        shape = (len(parts), len(members) + 1, BATCHES)
        return cls(
            members=members,
            times=tuple(
                sample_from_rows(times[times["member"] == name] if name else times)
                for name in members or ("",)
            ),
            events=events,
            parts=parts,
            by_part=sums_at(parted, "rows", shape, part, owner, parted["batch"]),
            rows=int(shares["rows"].sum()),
            again=int(shares["again"].sum()),
            pickups=dict(
                zip(pickups["others"].astype(int), pickups["rows"].astype(int), strict=True)
            ),
            batches=int(pickups["batches"].sum()),
        )

    @property
    def pooled(self) -> Sample:
        """The times of all members together."""
        return _pooled(self.times)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """One subscriber, what was seen of it, and what is given of it as a group."""

    subscriber: Subscriber
    seen: _Seen
    given: Consumers | None

    @property
    def _path(self) -> str:
        return f"subscribers.{self.subscriber.name}"

    def fitted(self) -> FittedGroups:
        """Fit times, members, partitions, and who gets what."""
        if self.seen.pooled.count == 0:
            note = "when events began to be handled is not recorded; members "
            note += "are left out" if self.given is None else "are taken from the base system"
            return FittedGroups(subscribers=(self.subscriber,), notes=(note,))
        own = self._own_laws()
        rest = [
            times
            for name, times in zip(self.seen.members or ("",), self.seen.times, strict=True)
            if name not in own
        ]
        parameters = [
            law_parameter(f"{self._path}.consumers.members.{name}.processing", each)
            for name, each in own.items()
        ]
        law = None
        if any(each.count for each in rest):
            shared = fit_law(_pooled(rest))
            law = shared.law
            parameters.insert(0, law_parameter(f"{self._path}.processing", shared))
        consumers = self.given
        notes: list[str] = []
        if self.seen.members or self.given is not None:
            partitions, shares, notes = self._partitions()
            consumers, said = self._consumers(own, partitions)
            parameters += shares
            notes = [*said, *notes, *self._said_of_batches(), *self._said_of_again()]
        changed = replace(self.subscriber, processing=law, consumers=consumers)
        return FittedGroups(
            subscribers=(changed,), parameters=tuple(parameters), notes=tuple(notes)
        )

    def _own_laws(self) -> dict[str, FittedLaw]:
        """Fit the times of each member, if their means surely differ."""
        known = {
            name: times
            for name, times in zip(self.seen.members, self.seen.times, strict=False)
            if times.count >= _ENOUGH
        }
        if not surely_differ(list(known.values())):
            return {}
        return {name: fit_law(times) for name, times in known.items()}

    def _partitions(self) -> tuple[Partitions | None, list[Parameter], list[str]]:
        """Find which share of the events each partition has, and who handles it."""
        parts, given = self.seen.parts, None if self.given is None else self.given.partitions
        if not parts:
            return given, [], []
        counts = self.seen.by_part.sum(axis=1)  # [part, batch]
        total = counts.sum()
        errors = batch_share_se(counts, np.broadcast_to(counts.sum(axis=0), counts.shape))
        parameters = [
            Parameter(
                path=f"{self._path}.consumers.partitions.shares.{part}",
                estimate=float(count / total),
                standard_error=float(error),
                count=int(count),
                unit="",
            )
            for part, count, error in zip(parts, counts.sum(axis=1), errors, strict=True)
        ]
        uneven = float(stats.chisquare(counts.sum(axis=1)).pvalue) < SURELY
        owners, notes = self._owners()
        partitions = Partitions(
            count=len(parts),
            shares=tuple(float(each) for each in counts.sum(axis=1) / total) if uneven else (),
            owners=owners,
            rebalance_s=0.0 if given is None else given.rebalance_s,
        )
        if given is None:
            notes.append(
                "how long members stand still when one comes or goes is not in the traces; it is "
                f"taken as 0. {_TOLD.format(what='rebalance')}"
            )
        return partitions, parameters, notes

    def _owners(self) -> tuple[tuple[str, ...], list[str]]:
        """Find the member that handled most of each partition; none where nobody told."""
        by_member = self.seen.by_part.sum(axis=2)[:, :-1]  # without what nobody told of
        if by_member.size == 0 or (by_member.sum(axis=1) == 0).any():
            return (), []
        most = by_member.argmax(axis=1)
        moved = [
            part
            for part, mine, at in zip(self.seen.parts, by_member, most, strict=True)
            if mine[at] < (1.0 - _STRAYS) * mine.sum()
        ]
        notes = []
        if moved:
            notes.append(
                f"partitions {few(moved)} were handled by several members; each is "
                "taken as owned by the one that handled most of it. Characterise the time between "
                "two rebalances apart where that matters"
            )
        return tuple(self.seen.members[at] for at in most), notes

    def _consumers(
        self, own: Mapping[str, FittedLaw], partitions: Partitions | None
    ) -> tuple[Consumers, list[str]]:
        """Make the group of the members that were seen, its settings as given or by default."""
        settings = self.given or Consumers()
        notes: list[str] = []
        if self.given is None:
            chosen = None
            if partitions is None and len(self.seen.members) > 1:
                chosen = find_choice(self.seen.events, self.seen.pickups)
                settings = replace(settings, **asdict(chosen or COMPETING))
            notes = self._untold(chosen, partitions)
        members = self._members(own)
        if partitions is not None:  # owners get their events, and pauses come with crashes
            settings = replace(settings, choose=CHOICES[0], refill=None)
            if not any(each.failure for each in members):
                partitions = replace(partitions, rebalance_s=0.0)
        return replace(
            settings,
            count=1 if members else max(len(self.seen.members), settings.count),
            members=members,
            partitions=partitions,
        ), notes

    def _members(self, own: Mapping[str, FittedLaw]) -> tuple[Member, ...]:
        """List members by name where they differ or own partitions; else they are only counted."""
        given = {} if self.given is None else {each.name: each for each in self.given.each()}
        names = self.seen.members
        if self.given is not None and not own and given.keys() >= set(names):
            # A base system knows them, and how they crash.
            return tuple(replace(each, processing=None) for each in self.given.members)
        counted = [str(number) for number in range(1, len(names) + 1)]
        if not own and (not self.seen.parts or list(names) == counted):
            return ()
        return tuple(
            replace(
                given.get(name, Member(name=name)),
                processing=own[name].law if name in own else None,
            )
            for name in names
        )

    def _untold(self, chosen: Chosen | None, partitions: Partitions | None) -> list[str]:
        """Say what of a group's settings traces do not tell."""
        notes = [
            "ack_wait, deliveries and limits of queues are not in the traces; nothing is delivered "
            f"again and nothing is full. {_TOLD.format(what='consumers')}"
        ]
        if chosen is None and partitions is None and len(self.seen.members) > 1:
            notes.append(
                "the traces do not tell how members come by their events; they are taken to share "
                "one queue, each asking for one event at a time, which is the quickest way. "
                f"{_TOLD.format(what='choose and prefetch')}"
            )
        return notes

    def _said_of_batches(self) -> list[str]:
        if not self.seen.batches or (self.given is not None and self.given.fetch is not None):
            return []
        return [
            "some events were begun and ended together; the fitted system takes so long for each "
            f"of them, one after the other, which is too long. {_TOLD.format(what='fetch')}"
        ]

    def _said_of_again(self) -> list[str]:
        if not self.seen.again or (self.given is not None and self.given.acknowledges):
            return []
        share = 100.0 * self.seen.again / self.seen.rows
        return [
            f"{share:.2g} % of what was handled had been handled before; the fitted system handles "
            "each event once, so that its members are idle for as much more. "
            f"{_TOLD.format(what='ack_wait')}"
        ]


def surely_differ(samples: Sequence[Sample]) -> bool:
    r"""Test whether the means of some samples differ by more than chance explains.

    With means m and their standard errors s, \(\sum (m_i - \bar m)^2 / s_i^2\) with the mean
    weighted by \(1/s^2\) is chi-squared with one degree of freedom less than there are samples.

    >>> from tidings.characterisation.fit.samples import sample_of
    >>> slow, fast = sample_of([1.0, 1.1] * 50), sample_of([0.8, 0.9] * 50)
    >>> surely_differ([slow, fast]), surely_differ([slow, slow])
    (True, False)
    """
    if len(samples) < 2:
        return False
    means = np.array([each.mean_s for each in samples])
    weights = 1.0 / np.array([max(each.mean_se_s, _CLOCK_S) for each in samples]) ** 2
    middle = (weights * means).sum() / weights.sum()
    excess = float((weights * (means - middle) ** 2).sum())
    return float(stats.chi2.sf(excess, len(samples) - 1)) < SURELY


def _pooled(samples: Sequence[Sample]) -> Sample:
    return reduce(Sample.merged, samples)
