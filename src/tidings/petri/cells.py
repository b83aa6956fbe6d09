"""The cells of a flat net: places and colours that may meet, and who takes from them.

A cell is *plain* if whatever takes from it is immediate, and takes one token of it and nothing
else. What happens to a token there is then a matter of fixed probabilities, whatever else is held
in the net.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from tidings.petri.net import Mode, Net, Place, Queue

Cell = tuple[str, str]  # place and colour


@dataclass(frozen=True, kw_only=True)
class Cells:
    """A flat net, by its cells; positions of cells, modes and transitions are those in it."""

    net: Net

    @cached_property
    def places(self) -> dict[str, Place]:
        """The places by name."""
        return {place.name: place for place in self.net.places}

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
        """The modes that a token of a plain cell fires, and with which probability each."""
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
        """The queue of a cell's place."""
        return self.places[cell[0]].queue

    def tokens(self, cell: Cell) -> int:
        """How many tokens a cell has in the beginning."""
        return dict(self.places[cell[0]].tokens).get(cell[1], 0)
