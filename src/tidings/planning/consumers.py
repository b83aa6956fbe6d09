"""How many members a consumer group needs, and with which settings no event is handled twice."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from tidings.errors import InvalidInputError, UnstableError
from tidings.model.consumers import MOST_MEMBERS, Consumers
from tidings.model.json_text import plain
from tidings.model.progress import Progress
from tidings.model.system import Subscriber, System
from tidings.planning.capacity import Capacity, Option
from tidings.planning.change_kinds import Change
from tidings.planning.changes import changed, sentence
from tidings.planning.evidence import Evidence, Play, Target, foretell, weigh
from tidings.simulation.network import compile_system

TWICE = 0.001  # share of events handled more than once from which settings are looked for
LONGEST = 0.999  # share of handlings that an acknowledgement should wait for
MOST_TIMES = 16  # as many members as carry the load, at most, are tried


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


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConsumersPlan(Capacity):
    """The least members that meet the target, and settings that were looked at before."""

    settings: tuple[Setting, ...]  # empty where nothing is handled twice
    changes: tuple[Change, ...]  # that lead to the plan

    def to_document(self) -> dict[str, Any]:
        """Give the answer as plain data for JSON."""
        document = Capacity.to_document(self)
        settings = [plain(asdict(each) | {"change": each.words}) for each in self.settings]
        group = {"group": document.pop("broker")}
        changes = list(map(sentence, self.changes))
        return group | document | {"changes": changes, "settings": settings}


def plan_group(
    system: System,
    target: Target,
    group: str | None = None,
    *,
    play: Play | None = None,
    progress: Progress = lambda _: None,
) -> ConsumersPlan:
    """Find the least members of a group that meet the target.

    Where events are handled twice, settings that end it come first: more members do not.
    """
    name = _found(system, group).name
    settings = _settings(system, name, progress)
    changes = tuple(each.change for each in settings if each.chosen and each.change)
    settled = changed(system, changes)
    least, most = _range(settled, name)
    seen: dict[int, Option] = {}

    def meets(members: int) -> bool:
        progress(f"{members} members")
        try:
            plan = changed(settled, [Change("members", name, members)])
            evidence: Evidence = weigh(plan, target, play)
        except UnstableError:  # by what is delivered again
            return False
        seen[members] = Option(size=members, evidence=evidence)
        return evidence.meets

    size = _least(meets, least, most)
    if not seen:
        raise UnstableError(f"the group '{name}' cannot keep up with any number of members tried")
    members = size or max(seen)
    changes = (*changes, Change("members", name, members))
    return ConsumersPlan(
        what="members",
        broker=name,
        settings=settings,
        options=tuple(seen[each] for each in sorted(seen)),
        choice=None if size is None else seen[size],
        changes=changes,
        plan=changed(system, changes),
    )


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


def _range(system: System, name: str) -> tuple[int, int]:
    """Compute the least number of members that carries the load, and the most that is tried."""
    compiled = compile_system(system)
    at = [each.subscriber.name for each in compiled.groups].index(name)
    group, rate_per_s = compiled.groups[at], float(compiled.group_arrivals[at])
    partitions = group.consumers.partitions
    least = math.floor(rate_per_s * len(group.members) / group.able_per_s) + 1
    most = min(MOST_TIMES * least, MOST_MEMBERS)
    if partitions is not None:
        most = min(most, partitions.count)  # further members have nothing to do
    return min(least, most), most


def _least(meets: Callable[[int], bool], least: int, most: int) -> int | None:
    """Find the least number that meets the target: longer and longer steps, then between."""
    low, members, step = least - 1, least, 1
    while not meets(members):
        if members >= most:
            return None
        low, members, step = members, min(most, members + step), 2 * step
    while members - low > 1:
        middle = (low + members) // 2
        low, members = (low, middle) if meets(middle) else (middle, members)
    return members


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
    """Predict the shares of a group's events handled again and on time; 1 and 0 if unstable."""
    try:
        rows = foretell(system).subscribers.set_index("subscriber")
    except UnstableError:
        return 1.0, 0.0
    return float(rows.loc[name, "handled_again"]), float(rows.loc[name, "on_time"])


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
    fits = math.floor((shortest_s - trip_s) / (1.1 * longest_s))
    if fits >= 1 and (consumers.held == 0 or fits < consumers.held):
        yield Change("prefetch", subscriber.name, fits)
