"""What a net with exponential times may do next, marking by marking: the states of its chain.

A marking says of every queue which tokens are served and which wait in which order, and of every
other cell how many tokens are held. It follows the same rules as the simulator: tokens that were
put arrive one after the other, then whatever is immediate fires, then clocks run on.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from tidings.errors import UnsupportedError
from tidings.model.laws import Exponential, Law
from tidings.petri.cells import NetCells
from tidings.petri.net import Queue

MOST_STEPS = 10_000  # that follow at once from one event

Line = tuple[tuple[int, ...], tuple[int, ...]]  # cells of tokens in service, and waiting


@dataclass(frozen=True, slots=True)
class Marking:
    """Where all tokens are, between two moments at which something happens."""

    lines: tuple[Line, ...]  # of queues
    held: tuple[int, ...]  # of cells; 0 where nothing is ever held


_Moment = tuple[Marking, tuple[int, ...], tuple[int, ...]]  # tokens to arrive, tokens served


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that may happen: how often, where it leads, and who arrives where on the way."""

    rate_per_s: float
    targets: dict[Marking, float]
    arrivals: dict[int, float]  # mean tokens that come to each cell


@dataclass(frozen=True, kw_only=True)
class Markings:
    """The rules of one flat net; refuses times that are not exponential."""

    cells: NetCells

    def __post_init__(self) -> None:
        for place, colour in self.cells.all:
            queue = self.cells.queues.get(place)
            if queue is not None:
                _exponential(queue.law_of(colour), f"the service of '{colour}' at '{place}'")
        for number, mode in enumerate(self.cells.modes):
            if mode.after is not None:
                name = self.cells.net.transitions[self.cells.transition_of[number]].name
                _exponential(mode.after, f"the time of '{name}'")

    @cached_property
    def queues(self) -> tuple[Queue, ...]:
        """The queues, in the order of places."""
        return tuple(self.cells.queues.values())

    @cached_property
    def queue_of(self) -> tuple[int, ...]:
        """The queue of every cell; −1 where its place has none."""
        names = list(self.cells.queues)
        return tuple(names.index(place) if place in names else -1 for place, _ in self.cells.all)

    @cached_property
    def first(self) -> dict[Marking, float]:
        """How the net may begin."""
        tokens = [
            at for at, cell in enumerate(self.cells.all) for _ in range(self.cells.tokens(cell))
        ]
        empty = Marking(tuple(((), ()) for _ in self.queues), (0,) * len(self.cells.all))
        return self._settled(empty, tuple(tokens), ()).targets

    def events(self, marking: Marking) -> Iterator[Event]:
        """Yield everything that may happen next."""
        for number, ((serving, waiting), queue) in enumerate(
            zip(marking.lines, self.queues, strict=True)
        ):
            for cell, count in Counter(serving).items():
                rate = count / self._mean_s(queue, cell)
                if queue.discipline == "processor-sharing":
                    rate *= min(len(serving), queue.servers) / len(serving)
                after = _completed(queue, self._priorities, (serving, waiting), cell)
                lines = (*marking.lines[:number], after, *marking.lines[number + 1 :])
                following = self._settled(Marking(lines, marking.held), (), (cell,))
                yield Event(rate_per_s=rate, targets=following.targets, arrivals=following.arrivals)
        for number, mode in enumerate(self.cells.modes):
            if mode.after is not None and self._can_fire(number, marking):
                following = self._fired(number, marking)
                rate = 1.0 / mode.after.mean_s
                yield Event(rate_per_s=rate, targets=following.targets, arrivals=following.arrivals)

    # ---- what follows at once ------------------------------------------------------------------

    def _fired(self, number: int, marking: Marking) -> _Following:
        following = _Following()
        taken = self._taken(number, marking)
        for share, put in self._puts(number):
            following.add(self._settled(taken, put, ()), share)
        return following

    def _settled(
        self, marking: Marking, agenda: tuple[int, ...], ready: tuple[int, ...]
    ) -> _Following:
        """Compute where tokens that arrive, or have been served, lead, until only time goes on."""
        following = _Following()
        waiting: list[tuple[float, _Moment]] = [(1.0, (marking, agenda, ready))]
        for _ in range(MOST_STEPS):
            if not waiting:
                return following
            share, moment = waiting.pop()
            now, left, done = moment
            if left and not done:
                following.arrivals[left[0]] = following.arrivals.get(left[0], 0.0) + share
            onwards = list(self._step(moment))
            waiting += [(share * part, after) for part, after in onwards]
            if not onwards:
                following.targets[now] = following.targets.get(now, 0.0) + share
        raise UnsupportedError(
            f"more than {MOST_STEPS:,} immediate steps follow one event; this net cannot "
            "be solved exactly. Leave --exact out to simulate it"
        )

    def _step(self, moment: _Moment) -> Iterator[tuple[float, _Moment]]:
        """Yield what follows next and at once, with its probabilities; nothing if nothing does."""
        now, left, done = moment
        if done and not self.cells.is_plain[done[0]]:
            yield 1.0, (_with_held(now, done[0], 1), left, done[1:])
        elif done:
            for number, part in self.cells.choices(done[0]):
                for share, put in self._puts(number):
                    yield part * share, (now, left + put, done[1:])
        elif left:
            yield 1.0, self._arrived(now, left)
        else:
            for number, part in self._immediate(now):
                for share, put in self._puts(number):
                    yield part * share, (self._taken(number, now), put, ())

    def _arrived(self, now: Marking, left: tuple[int, ...]) -> _Moment:
        """Give what follows after the first of some tokens has come to its place."""
        cell, rest = left[0], left[1:]
        queue = self.queue_of[cell]
        if queue < 0:
            return now, rest, (cell,)
        line = _joined(self.queues[queue], now.lines[queue], cell)
        lines = (*now.lines[:queue], line, *now.lines[queue + 1 :])
        return Marking(lines, now.held), rest, ()

    def _immediate(self, marking: Marking) -> Iterator[tuple[int, float]]:
        """Yield the modes over held tokens that may fire now, with their probabilities."""
        able: dict[int, list[int]] = {}
        for number, mode in enumerate(self.cells.modes):
            transition = self.cells.transition_of[number]
            if mode.after is None and mode.weight > 0.0 and self._can_fire(number, marking):
                able.setdefault(transition, []).append(number)
        transitions = self.cells.net.transitions
        highest = max((transitions[each].priority for each in able), default=0)
        chosen = [each for each in able if transitions[each].priority == highest]
        total = sum(transitions[each].weight for each in chosen)
        for each in chosen:
            inside = sum(self.cells.modes[number].weight for number in able[each])
            for number in able[each]:
                part = self.cells.modes[number].weight / inside
                yield number, part * (transitions[each].weight / total if total else 1.0)

    def _needed(self, number: int) -> Counter[int]:
        needed: Counter[int] = Counter()
        for arc in self.cells.modes[number].take:
            needed[self.cells.index[arc.place, arc.colour]] += arc.count
        return needed

    def _can_fire(self, number: int, marking: Marking) -> bool:
        return all(marking.held[cell] >= count for cell, count in self._needed(number).items())

    def _taken(self, number: int, marking: Marking) -> Marking:
        for cell, count in self._needed(number).items():
            marking = _with_held(marking, cell, -count)
        return marking

    def _puts(self, number: int) -> Iterator[tuple[float, tuple[int, ...]]]:
        """Yield what a mode may put, with its probability: each arc by itself."""
        arcs = self.cells.modes[number].put
        sides = [
            ((arc.share, True), (1.0 - arc.share, False)) if arc.share < 1.0 else ((1.0, True),)
            for arc in arcs
        ]
        for chosen in itertools.product(*sides):
            share = 1.0
            put: tuple[int, ...] = ()
            for arc, (part, happens) in zip(arcs, chosen, strict=True):
                share *= part
                cell = self.cells.index[arc.place, arc.colour]
                put += (cell,) * arc.count if happens else ()
            if share > 0.0:
                yield share, put

    def _mean_s(self, queue: Queue, cell: int) -> float:
        law = queue.law_of(self.cells.all[cell][1])
        assert law is not None
        return law.mean_s

    @cached_property
    def _priorities(self) -> tuple[int, ...]:
        priorities = []
        for cell in self.cells.all:
            queue = self.cells.queue_of(cell)
            priorities.append(0 if queue is None else dict(queue.priorities).get(cell[1], 0))
        return tuple(priorities)


class _Following:
    """Markings with their probabilities, and mean arrivals on the way to them."""

    def __init__(self) -> None:
        self.targets: dict[Marking, float] = {}
        self.arrivals: dict[int, float] = {}

    def add(self, other: _Following, share: float) -> None:
        """Add what follows with a probability."""
        for marking, part in other.targets.items():
            self.targets[marking] = self.targets.get(marking, 0.0) + share * part
        for cell, mean in other.arrivals.items():
            self.arrivals[cell] = self.arrivals.get(cell, 0.0) + share * mean


def _with_held(marking: Marking, cell: int, more: int) -> Marking:
    held = list(marking.held)
    held[cell] += more
    return Marking(marking.lines, tuple(held))


def _joined(queue: Queue, line: Line, cell: int) -> Line:
    serving, waiting = line
    unlimited = queue.discipline in ("infinite-server", "processor-sharing")
    if unlimited or len(serving) < queue.servers:
        return tuple(sorted((*serving, cell))), waiting
    return serving, (*waiting, cell)


def _completed(queue: Queue, priorities: tuple[int, ...], line: Line, cell: int) -> Line:
    """Give the line after a token in service is done: the next one is begun."""
    serving, waiting = list(line[0]), list(line[1])
    serving.remove(cell)
    if waiting:
        first = 0
        if queue.discipline == "priority":
            first = max(range(len(waiting)), key=lambda at: (priorities[waiting[at]], -at))
        serving.append(waiting.pop(first))
    return tuple(sorted(serving)), tuple(waiting)


def _exponential(law: Law | None, what: str) -> None:
    if not isinstance(law, Exponential):
        raise UnsupportedError(
            f"{what} is not exponential; only nets with exponential times can be solved "
            "exactly. Leave --exact out to simulate it"
        )
