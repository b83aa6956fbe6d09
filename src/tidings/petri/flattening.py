"""Nets inside nets made into one: the places of a subnet get the subnet's name before theirs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tidings.petri.checks import SEPARATOR
from tidings.petri.net import Arc, Net, Place, Transition


def flatten(net: Net) -> Net:
    """The same net without subnets; a place ``cpu`` of the subnet ``hub`` becomes ``hub/cpu``."""
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

    def moved(arcs: tuple[Arc, ...], names: dict[str, str]) -> tuple[Arc, ...]:
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
    """A place's own name, or of a subnet the full name of its ``first`` or ``last`` place."""
    if place.subnet is None:
        return place.name
    chosen = getattr(place.subnet, end)
    inner = next(each for each in place.subnet.places if each.name == chosen)
    return f"{place.name}{SEPARATOR}{end_of(inner, end)}"
