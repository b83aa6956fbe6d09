"""How many members and partitions a consumer group needs, with settings that repeat no work."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from tidings.errors import InvalidInputError, UnstableError
from tidings.model.consumers import Consumers
from tidings.model.json_text import plain
from tidings.model.progress import Progress
from tidings.model.system import Subscriber, System
from tidings.planning.capacity import FASTEST, Capacity, Option, narrowed
from tidings.planning.change_kinds import Change, times
from tidings.planning.changes import changed, sentence, sentences
from tidings.planning.evidence import Evidence, Play, Target, foretell, weigh
from tidings.planning.group_work import Bound, GroupWork

TWICE = 0.001  # share of events handled more than once from which settings are looked for
LONGEST = 0.999  # share of handlings that an acknowledgement should wait for
CLOSE_SPEED = 0.05  # relative: how near the least speed of members is to that given

Changes = tuple[Change, ...]  # made together


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One way to share events out, and what becomes of them."""

    change: Change | None  # None: as it is
    handled_again: float  # share of the group's events
    on_time: float
    chosen: bool = False

    @property
    def words(self) -> str:
        """The change as a sentence."""
        return "as it is" if self.change is None else sentence(self.change)


@dataclass(frozen=True, slots=True, kw_only=True)
class Help:
    """Changes beyond a plan's own settings that meet the target, with the least members for it."""

    changes: tuple[Change, ...]
    evidence: Evidence

    @property
    def words(self) -> str:
        """The changes as a sentence."""
        return sentences(self.changes)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConsumersPlan(Capacity):
    """The least members that meet the target, and settings that were looked at before.

    Where no members do with the partitions that there are, those with more partitions, and what
    else would help: other keys, faster members; nothing where these would not, as where events are
    late before they come to the group.
    """

    settings: tuple[Setting, ...]  # empty where nothing is handled twice
    changes: tuple[Change, ...]  # that lead to the plan
    bound: Bound | None = None  # why no more members were tried; None where nothing is in the way
    helps: tuple[Help, ...] = ()

    def to_document(self) -> dict[str, Any]:
        """Give the answer as plain data for JSON."""
        document = Capacity.to_document(self)
        settings = [plain(asdict(each) | {"change": each.words}) for each in self.settings]
        group = {"group": document.pop("broker")}
        helps = [
            {"changes": list(map(sentence, each.changes)), **plain(each.evidence.to_document())}
            for each in self.helps
        ]
        return (
            group
            | document
            | {
                "changes": list(map(sentence, self.changes)),
                "settings": settings,
                "bound": None if self.bound is None else plain(asdict(self.bound)),
                "helps": helps,
            }
        )


def plan_group(
    system: System,
    target: Target,
    group: str | None = None,
    *,
    play: Play | None = None,
    progress: Progress = lambda _: None,
) -> ConsumersPlan:
    """Find the least members of a group that meet the target.

    Where events are handled twice, settings that end it come first: more members do not. Where a
    partition bounds what members can do, more partitions are tried with more members.
    """
    name = _found(system, group).name
    settings = _settings(system, name, progress)
    first = tuple(each.change for each in settings if each.chosen and each.change)
    search = _Search(system=system, name=name, target=target, play=play, progress=progress)
    work = GroupWork.of(changed(system, first), name)
    tried = search.members(first, work.sizes())
    found, bound = tried, None
    helps: tuple[Help, ...] = ()
    if tried.choice is None and search.members_matter(first, work):
        bound = work.bound
        found = tried.or_else(search.partitions(first, work.sizes_with_partitions()))
        helps = tuple(search.helps(first, work))
    if not found.options:
        raise UnstableError(f"the group '{name}' cannot keep up with any number of members tried")
    return ConsumersPlan(
        what="members",
        broker=name,
        settings=settings,
        options=found.options,
        choice=found.choice,
        changes=found.changes,
        plan=changed(system, found.changes),
        bound=bound,
        helps=helps,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sized:
    """Numbers of members that were looked at, and the changes to the least that meets the target.

    Where none does, those to the largest.
    """

    options: tuple[Option, ...]
    choice: Option | None
    changes: tuple[Change, ...]

    def or_else(self, more: _Sized) -> _Sized:
        """Go on with other sizes, larger ones; where these do not help, stay with the changes."""
        chosen = self if more.choice is None else more
        options = (*self.options, *more.options)
        return _Sized(options=options, choice=more.choice, changes=chosen.changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """Looks for the least that meets a target, in one group of a system."""

    system: System
    name: str
    target: Target
    play: Play | None
    progress: Progress

    def members(self, first: Changes, sizes: Sequence[int]) -> _Sized:
        """Find the least of these numbers of members, after the changes that come first."""
        return self._least(sizes, lambda size: (*first, Change("members", self.name, size)))

    def partitions(self, first: Changes, sizes: Sequence[int]) -> _Sized:
        """Find the least of these numbers of members that each have a partition."""
        return self._least(
            sizes,
            lambda size: (
                *first,
                Change("partitions", self.name, size),
                Change("members", self.name, size),
            ),
        )

    def members_matter(self, first: Changes, work: GroupWork) -> bool:
        """Test whether members that take hardly any time would meet the target."""
        members = Change("members", self.name, work.sizes()[-1])
        return self._meets((*first, times("processing", self.name, 1.0 / FASTEST), members))

    def helps(self, first: Changes, work: GroupWork) -> Iterator[Help]:
        """Yield what helps beyond members and partitions, proven by simulation where there is one.

        That is keys that are spread evenly, and members that are faster.
        """
        shared = work.partitions
        if shared is not None and (shared.shares or shared.owners):
            even = (*first, Change("keys", self.name, "even"))
            other = GroupWork.of(changed(self.system, even), self.name)
            found = self.members(even, other.sizes())
            if found.choice is None:
                found = found.or_else(self.partitions(even, other.sizes_with_partitions()))
            yield from self._proven(found)
        yield from self._proven(self._faster(first, work.sizes()[-1]))

    def _faster(self, first: Changes, members: int) -> _Sized:
        """Find how much faster members must be where all have something to do, then how many."""

        def change(speed: float) -> Changes:
            return (*first, times("processing", self.name, float(f"{1.0 / speed:.2g}")))

        def meets(speed: float) -> bool:
            return self._meets((*change(speed), Change("members", self.name, members)))

        quick = change(narrowed(meets, 1.0, FASTEST, close=CLOSE_SPEED))
        sizes = GroupWork.of(changed(self.system, quick), self.name).sizes()
        return self.members(quick, [each for each in sizes if each <= members])

    def _proven(self, found: _Sized) -> Iterator[Help]:
        """Yield what was found, played in any case; nothing where that speaks against it."""
        if found.choice is None:
            return
        plan = changed(self.system, found.changes)
        evidence = weigh(plan, self.target, self.play, always=True)
        if evidence.meets:
            yield Help(changes=found.changes, evidence=evidence)

    def _meets(self, changes: Changes) -> bool:
        evidence = self._weighed(changes)
        return evidence is not None and evidence.meets

    def _weighed(self, changes: Changes) -> Evidence | None:
        """Weigh the system after some changes; None where what is delivered again piles up."""
        self.progress(sentences(changes))
        try:
            return weigh(changed(self.system, changes), self.target, self.play)
        except UnstableError:
            return None

    def _least(self, sizes: Sequence[int], changes: Callable[[int], Changes]) -> _Sized:
        """Find the least of some sizes, by longer and longer steps, then between."""
        seen: dict[int, Option] = {}

        def meets(at: int) -> bool:
            evidence = self._weighed(changes(sizes[at]))
            if evidence is None:
                return False
            seen[sizes[at]] = Option(size=sizes[at], evidence=evidence)
            return evidence.meets

        at = _least_index(meets, len(sizes))
        size = sizes[at] if at is not None else max(seen, default=None)
        return _Sized(
            options=tuple(seen[each] for each in sorted(seen)),
            choice=None if at is None else seen[sizes[at]],
            changes=() if size is None else changes(size),
        )


def _least_index(meets: Callable[[int], bool], count: int) -> int | None:
    """Find the first of so many that meets: longer and longer steps, then between."""
    low, at, step = -1, 0, 1
    while at < count and not meets(at):
        if at == count - 1:
            return None
        low, at, step = at, min(count - 1, at + step), 2 * step
    while at - low > 1:
        middle = (low + at) // 2
        low, at = (low, middle) if meets(middle) else (middle, at)
    return at if count else None


def _found(system: System, name: str | None) -> Subscriber:
    """Find the consumer group that is asked for; the only one, where none is named."""
    groups = [each for each in system.subscribers if each.consumers is not None]
    chosen = [each for each in groups if name in (None, each.name)]
    listed = ", ".join(each.name for each in groups[:6]) or "none"
    if len(chosen) != 1:
        saw = f"there is no consumer group '{name}'" if name else "no consumer group is named"
        raise InvalidInputError(
            f"{saw}; there are {listed} (subscribers with 'consumers'); name one with --group"
        )
    consumers = chosen[0].consumers
    assert consumers is not None
    if len(consumers.members) > 1:
        raise InvalidInputError(
            f"the members of '{chosen[0].name}' are not alike; 'plan consumers' finds a number of "
            "members that are: give 'count', or one member with a count"
        )
    return chosen[0]


def _settings(system: System, name: str, progress: Progress) -> tuple[Setting, ...]:
    """Try other settings where present ones make events be handled twice; choose the best one."""
    subscriber = _found(system, name)
    consumers = subscriber.consumers
    assert consumers is not None
    if not consumers.acknowledges:
        return ()
    tried: list[Setting] = []
    for change in (None, *_remedies(subscriber, consumers)):
        progress(sentence(change) if change else "the present settings")
        again, on_time = _redelivered(changed(system, [change] if change else []), name)
        tried.append(Setting(change=change, handled_again=again, on_time=on_time))
        if change is None and again < TWICE:
            return ()
    best = min(tried, key=lambda each: (round(each.handled_again, 3), -round(each.on_time, 3)))
    return tuple(replace(each, chosen=each is best and each is not tried[0]) for each in tried)


def _redelivered(system: System, name: str) -> tuple[float, float]:
    """Predict the shares of a group's events handled again and on time; 1 and 0 if unstable.

    Of a group that has collapsed no share is known that is handled again: nothing else is done.
    """
    try:
        rows = foretell(system).subscribers.set_index("subscriber")
    except UnstableError:
        return 1.0, 0.0
    again, on_time = (float(rows.loc[name, each]) for each in ("handled_again", "on_time"))
    return (1.0 if math.isnan(again) else again), on_time


def _remedies(subscriber: Subscriber, consumers: Consumers) -> Iterator[Change]:
    """Yield changes with which hardly any event is overdue before its turn comes."""
    laws = [each.processing or subscriber.processing for each in consumers.each()]
    longest_s = max(law.quantile(LONGEST) for law in laws if law is not None)
    trip_s = 2.0 * subscriber.link.delay.quantile(LONGEST)
    held = consumers.held or consumers.in_flight
    if held is not None and not consumers.backoff_s:
        wait_s = 1.1 * (held * longest_s + trip_s)
        yield Change("ack_wait", subscriber.name, float(f"{wait_s:.3g}"))
    shortest_s = min(consumers.backoff_s, default=consumers.ack_wait_s or math.inf)
    fits = max(math.floor((shortest_s - trip_s) / (1.1 * longest_s)), 1)
    if consumers.held == 0 or fits < consumers.held:
        yield Change("prefetch", subscriber.name, fits)
