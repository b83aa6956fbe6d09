"""The cells of a flat net: places and colours that may meet, and who takes from them.

A cell is *plain* if whatever takes from it is immediate, and takes one token of it and nothing
else. What happens to a token there is then a matter of fixed probabilities, whatever else is held
in the net.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from tidings.petri.net import Mode, Net, Place, Queue, TokenArc, Transition
from tidings.petri.reading import SEPARATOR


def flatten(net: Net) -> Net:
    """Remove subnets from a net; a place ``cpu`` of the subnet ``hub`` becomes ``hub/cpu``."""
    return replace(
        net,
        places=tuple(_places(net.places, "")),
        transitions=tuple(_transitions(net.places, net.transitions, "")),
    )


def _places(places: tuple[Place, ...], prefix: str) -> Iterator[Place]:
    for place in places:
        name = prefix + place.name
        if place.subnet is None:
            yield replace(place, name=name)
        else:
            yield from _places(place.subnet.places, name + SEPARATOR)


def _transitions(
    places: tuple[Place, ...], transitions: tuple[Transition, ...], prefix: str
) -> Iterator[Transition]:
    firsts = {place.name: prefix + end_of(place, "first") for place in places}
    lasts = {place.name: prefix + end_of(place, "last") for place in places}

    def moved(arcs: tuple[TokenArc, ...], names: dict[str, str]) -> tuple[TokenArc, ...]:
        return tuple(replace(arc, place=names[arc.place]) for arc in arcs)

    for transition in transitions:
        modes = tuple(
            replace(mode, take=moved(mode.take, lasts), put=moved(mode.put, firsts))
            for mode in transition.modes
        )
        yield replace(transition, name=prefix + transition.name, modes=modes)
    for place in places:
        if place.subnet is not None:
            inner = f"{prefix}{place.name}{SEPARATOR}"
            yield from _transitions(place.subnet.places, place.subnet.transitions, inner)


def end_of(place: Place, end: str) -> str:
    """Give a place's own name, or of a subnet the full name of its ``first`` or ``last`` place."""
    if place.subnet is None:
        return place.name
    chosen = getattr(place.subnet, end)
    inner = next(each for each in place.subnet.places if each.name == chosen)
    return f"{place.name}{SEPARATOR}{end_of(inner, end)}"


Cell = tuple[str, str]  # place and colour


@dataclass(frozen=True, kw_only=True)
class NetCells:
    """A flat net, by its cells; positions of cells, modes and transitions are those in it."""

    net: Net

    @cached_property
    def places(self) -> dict[str, Place]:
        """The places by name."""
        return {place.name: place for place in self.net.places}

    @cached_property
    def queues(self) -> dict[str, Queue]:
        """The queues, by the names of their places, in the order of places."""
        return {each.name: each.queue for each in self.net.places if each.queue is not None}

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """All modes, transition after transition."""
        return tuple(mode for each in self.net.transitions for mode in each.modes)

    @cached_property
    def transition_of(self) -> tuple[int, ...]:
        """The transition of every mode."""
        return tuple(number for number, each in enumerate(self.net.transitions) for _ in each.modes)

    @cached_property
    def first_mode(self) -> tuple[int, ...]:
        """The first mode of every transition, and behind them how many modes there are."""
        return (0, *accumulate(len(each.modes) for each in self.net.transitions))

    @cached_property
    def all(self) -> tuple[Cell, ...]:
        """Every cell that holds tokens in the beginning, or that a mode takes from or puts to."""
        used: dict[Cell, None] = {}
        for place in self.net.places:
            used.update(((place.name, colour), None) for colour, _ in place.tokens)
        for mode in self.modes:
            used.update(((arc.place, arc.colour), None) for arc in mode.take + mode.put)
        order = {place.name: number for number, place in enumerate(self.net.places)}
        colours = {colour: number for number, colour in enumerate(self.net.colours)}
        return tuple(sorted(used, key=lambda cell: (order[cell[0]], colours[cell[1]])))

    @cached_property
    def index(self) -> dict[Cell, int]:
        """Position of every cell."""
        return {cell: index for index, cell in enumerate(self.all)}

    @cached_property
    def takers(self) -> tuple[tuple[int, ...], ...]:
        """The modes that take from each cell."""
        modes_of: list[list[int]] = [[] for _ in self.all]
        for number, mode in enumerate(self.modes):
            for cell in dict.fromkeys((arc.place, arc.colour) for arc in mode.take):
                modes_of[self.index[cell]].append(number)
        return tuple(map(tuple, modes_of))

    @cached_property
    def givers(self) -> tuple[tuple[int, ...], ...]:
        """The modes that put into each cell."""
        modes_of: list[list[int]] = [[] for _ in self.all]
        for number, mode in enumerate(self.modes):
            for cell in dict.fromkeys((arc.place, arc.colour) for arc in mode.put):
                modes_of[self.index[cell]].append(number)
        return tuple(map(tuple, modes_of))

    @cached_property
    def is_plain(self) -> tuple[bool, ...]:
        """Whether each cell is plain."""
        return tuple(
            all(self._takes_one(number) for number in takers) and bool(self._shares(takers))
            for takers in self.takers
        )

    def _takes_one(self, number: int) -> bool:
        mode = self.modes[number]
        return mode.after is None and len(mode.take) == 1 and mode.take[0].count == 1

    @cached_property
    def _choices(self) -> tuple[tuple[tuple[int, float], ...], ...]:
        """Of plain cells: the modes, and with which probability a token fires each."""
        choices = []
        for takers, plain in zip(self.takers, self.is_plain, strict=True):
            choices.append(tuple(self._shares(takers)) if plain else ())
        return tuple(choices)

    def choices(self, cell: int) -> tuple[tuple[int, float], ...]:
        """Give the modes that a token of a plain cell fires, and with which probability each."""
        return self._choices[cell]

    def _shares(self, takers: tuple[int, ...]) -> list[tuple[int, float]]:
        transitions = self.net.transitions
        able = [number for number in takers if self.modes[number].weight > 0.0]
        by_transition: dict[int, list[int]] = {}
        for number in able:
            if transitions[self.transition_of[number]].weight > 0.0:
                by_transition.setdefault(self.transition_of[number], []).append(number)
        highest = max((transitions[each].priority for each in by_transition), default=0)
        first = [each for each in by_transition if transitions[each].priority == highest]
        total = sum(transitions[each].weight for each in first)
        shares = []
        for each in first:
            numbers = by_transition[each]
            inside = sum(self.modes[number].weight for number in numbers)
            part = transitions[each].weight / total
            shares += [(number, part * self.modes[number].weight / inside) for number in numbers]
        return shares

    def queue_of(self, cell: Cell) -> Queue | None:
        """Give the queue of a cell's place."""
        return self.queues.get(cell[0])

    def tokens(self, cell: Cell) -> int:
        """Count the tokens that a cell has in the beginning."""
        return dict(self.places[cell[0]].tokens).get(cell[1], 0)
