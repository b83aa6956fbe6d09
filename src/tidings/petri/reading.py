"""Nets from files and to files, as YAML or JSON; reading finds all problems at once.

What must hold across a whole net is checked on the document: names that are known, service for
every colour that comes, transitions that can ever fire. A name counts as known when it stands
there, and what could not be read is left to the problem noted already.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidings.errors import InvalidNetError
from tidings.model import records, yaml_text
from tidings.model.document import Place as At
from tidings.model.laws import law_schema
from tidings.model.writing import write_file
from tidings.petri.net import FORMAT_VERSION, RECORDS, Net

Cell = tuple[str, str]  # place (by its path in nested nets) and colour
SEPARATOR = "/"  # joins the names of a subnet and of its places


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mode:
    """A mode as the checks see it: cells with counts, and where it stands."""

    at: At
    transition: At
    take: tuple[tuple[Cell, int], ...]
    put: tuple[Cell, ...]


def check_net(net: At) -> None:
    """Note every problem between the parts of a net, at its place."""
    if net.inside("tidings_net").value not in (FORMAT_VERSION, None):
        net.inside("tidings_net").report(
            f"{FORMAT_VERSION}", fix=f"this version of Tidings reads format {FORMAT_VERSION}"
        )
    for section in ("places", "transitions"):
        if net.inside(section).value == {}:
            net.inside(section).report(f"at least one of the {section}")
    colours = _texts(net.inside("colours").value)
    for index, colour in enumerate(colours):
        if colour in colours[:index]:
            net.inside("colours", index).report("each colour once", saw=f"'{colour}' again")
    before = len(net.problems)
    modes: list[_Mode] = []
    tokens: dict[Cell, int] = {}
    _check_level(net, "", colours, modes, tokens)
    if len(net.problems) == before:  # else it is not known what is connected
        _check_flow(net, modes, tokens)


def _texts(value: Any) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _names(at: At) -> list[str]:
    return [str(name) for name in at.value] if isinstance(at.value, Mapping) else []


def _check_level(
    net: At, prefix: str, colours: Sequence[str], modes: list[_Mode], tokens: dict[Cell, int]
) -> None:
    """Check the places and transitions of a net or subnet, and what is nested in it."""
    places = _names(net.inside("places"))
    for name in places:
        place = net.inside("places", name)
        if SEPARATOR in name:
            place.report(f"a name without '{SEPARATOR}' (that joins subnets and their places)")
        _check_place(place, prefix + name, colours, tokens)
        inner = place.inside("subnet")
        if isinstance(inner.value, Mapping):
            _check_subnet(place, inner)
            _check_level(inner, f"{prefix}{name}{SEPARATOR}", colours, modes, tokens)
    for name in _names(net.inside("transitions")):
        transition = net.inside("transitions", name)
        _check_timing(transition)
        for mode in _each(transition.inside("modes")):
            take = list(_arcs(mode.inside("take"), net, prefix, places, colours))
            put = list(_arcs(mode.inside("put"), net, prefix, places, colours, put=True))
            modes.append(
                _Mode(
                    at=mode,
                    transition=transition,
                    take=tuple(take),
                    put=tuple(cell for cell, count in put if count > 0),
                )
            )


def _each(at: At) -> Iterator[At]:
    for index in range(len(at.value) if isinstance(at.value, list) else 0):
        yield at.inside(index)


def _check_place(at: At, name: str, colours: Sequence[str], tokens: dict[Cell, int]) -> None:
    if not isinstance(at.value, Mapping):
        return
    for field in (("tokens",), ("queue", "services"), ("queue", "priorities")):
        for colour in _names(at.inside(*field)):
            _known_colour(at.inside(*field, colour), colour, colours)
    held = at.inside("tokens").value
    if isinstance(held, Mapping) and at.value.get("subnet") is None:
        for colour, count in held.items():
            if isinstance(count, int):
                tokens[_inner(at, name, "first"), str(colour)] = count


def _check_subnet(place: At, inner: At) -> None:
    for field in ("queue", "tokens"):
        if place.inside(field).value is not None:
            place.inside(field).report("none beside 'subnet'; its own places have them")
    known = _names(inner.inside("places"))
    for end in ("first", "last"):
        chosen = inner.inside(end)
        if isinstance(chosen.value, str) and chosen.value not in known:
            chosen.report(f"one of its places {', '.join(known) or '(there are none)'}")


def _check_timing(at: At) -> None:
    """Check that modes of a transition are all immediate or all timed.

    Only timed ones may take nothing. Weights are of immediate ones; what has none is dead.
    """
    modes = [mode for mode in _each(at.inside("modes")) if isinstance(mode.value, Mapping)]
    timed = [mode.value.get("after") is not None for mode in modes]
    if any(timed) and not all(timed):
        at.report("modes that all have a time 'after', or none", saw="some of them")
    for mode, has_time in zip(modes, timed, strict=True):
        if not has_time and not mode.value.get("take"):
            mode.report(
                "'take' some tokens, or a time 'after'; without both it would fire forever",
                saw="neither",
            )
    if not any(timed):
        for part in (at, *modes):
            if part.inside("weight").value == 0:
                part.inside("weight").report(
                    "above 0: with a weight of 0 it never fires; leave it out"
                )


def _known_colour(at: At, colour: Any, colours: Sequence[str]) -> bool:
    if isinstance(colour, str) and colour in colours:
        return True
    if isinstance(colour, str) and colours:
        at.report(f"one of the colours {', '.join(colours)}", saw=f"the colour '{colour}'")
    return False


def _arcs(
    at: At,
    net: At,
    prefix: str,
    places: Sequence[str],
    colours: Sequence[str],
    put: bool = False,
) -> Iterator[tuple[Cell, int]]:
    """Yield the cells of a mode's arcs with counts, as far as they are valid; 0 if never put."""
    for arc in _each(at):
        place, colour = arc.inside("place").value, arc.inside("colour").value
        known = isinstance(place, str) and place in places
        if isinstance(place, str) and not known:
            listed = ", ".join(places[:8]) + (", …" if len(places) > 8 else "")
            arc.inside("place").report(f"one of the places {listed}", saw=f"the place '{place}'")
        if not _known_colour(arc.inside("colour"), colour, colours) or not known:
            continue
        if not put and arc.inside("share").value is not None:
            arc.inside("share").report("no 'share' on tokens taken; only tokens put may have one")
        target = net.inside("places", place)
        count = arc.inside("count").value
        count = count if isinstance(count, int) else 1
        if arc.inside("share").value == 0:
            count = 0
        yield (_inner(target, prefix + place, "first" if put else "last"), colour), count


def _inner(place: At, name: str, end: str) -> str:
    """Name the place itself, or of a subnet its first or last place, and so on inwards."""
    inner = place.inside("subnet")
    chosen = inner.inside(end).value
    if not isinstance(inner.value, Mapping) or not isinstance(chosen, str):
        return name
    return _inner(inner.inside("places", chosen), f"{name}{SEPARATOR}{chosen}", end)


# ---- what can ever happen ----------------------------------------------------------------------


def _check_flow(net: At, modes: Sequence[_Mode], tokens: Mapping[Cell, int]) -> None:
    """Follow tokens from where they begin: everything that can fire, and what it needs there."""
    fed = set(tokens)  # cells that ever hold a token
    refilled: set[Cell] = set()  # cells that get more than they begin with
    alive: set[int] = set()
    grows = True
    while grows:
        grows = False
        for index, mode in enumerate(modes):
            if index in alive:
                continue
            if all(
                cell in fed and (cell in refilled or tokens[cell] >= count)
                for cell, count in mode.take
            ):
                alive.add(index)
                fed.update(mode.put)
                refilled.update(mode.put)
                grows = True
    _report_dead(modes, alive, fed)
    for place, colour in sorted(fed):
        _check_service(net, place, colour)


def _report_dead(modes: Sequence[_Mode], alive: set[int], fed: set[Cell]) -> None:
    by_transition: dict[str, list[int]] = {}
    for index, mode in enumerate(modes):
        by_transition.setdefault(str(mode.transition), []).append(index)
    for members in by_transition.values():
        dead = [index for index in members if index not in alive]
        for index in dead:
            mode = modes[index]
            missing = next((cell for cell, _ in mode.take if cell not in fed), None)
            why = (
                f"'{missing[0]}' never holds a token of the colour '{missing[1]}'"
                if missing
                else "it takes more tokens at once than there ever are"
            )
            whole = len(dead) == len(members)
            at = mode.transition if whole else mode.at
            what = "transition" if whole else "mode"
            at.report(f"a {what} that can fire", saw=f"one that can never fire: {why}")
            if whole:
                break


def _check_service(net: At, name: str, colour: str) -> None:
    """Check that whatever colour comes to a queue has a service time there."""
    at = net
    for step, part in enumerate(name.split(SEPARATOR)):
        at = at.inside("places", part) if step == 0 else at.inside("subnet", "places", part)
    queue = at.inside("queue")
    if not isinstance(queue.value, Mapping) or queue.inside("service").value is not None:
        return
    services = queue.inside("services")
    if isinstance(services.value, Mapping) and colour not in services.value:
        services.report(
            f"a service time of the colour '{colour}', which comes here",
            saw=f"those of {', '.join(map(str, services.value)) or 'none'}",
        )


def load_net(path: str | os.PathLike[str]) -> Net:
    """Read a net from a YAML or JSON file; raises :class:`InvalidNetError` with every problem."""
    return _finish(yaml_text.read(Path(path)), str(path))


def loads_net(text: str, name: str = "the text") -> Net:
    """Read a net from a YAML or JSON text.

    >>> loads_net("{tidings_net: 1, colours: [job], places: {cpu: {}}, transitions: {}}")
    Traceback (most recent call last):
        ...
    tidings.errors.InvalidNetError: the text: 1 problem
      line 1, transitions: got {}; wants at least one of the transitions
    """
    return _finish(yaml_text.parse(text), name)


def checked(net: Net) -> Net:
    """Check a net built in Python: give it if nothing is wrong, else report all, as for a file."""
    return _finish(At(net_document(net)), "the net")


def net_from_document(document: Mapping[str, Any], name: str = "the document") -> Net:
    """Read a net from plain values, as YAML gives them."""
    return _finish(At(dict(document)), name)


def _finish(place: At, name: str) -> Net:
    if place.value is not None or not place.problems:
        parts = records.read_fields(Net, place)
        if isinstance(place.value, Mapping):
            check_net(place)
        if not place.problems:
            return Net(**parts)
    count = len(set(place.problems))
    raise InvalidNetError(f"{name}: {count} problem{'s' if count > 1 else ''}", place.problems)


def net_document(net: Net) -> dict[str, Any]:
    """Write the canonical document of a net, as plain values."""
    return records.record_document(net)


def dumps_net(net: Net) -> str:
    """Write the canonical YAML text of a net; reading it gives the same net."""
    return yaml_text.dump(net_document(net))


def save_net(net: Net, path: str | os.PathLike[str]) -> None:
    """Write a net as YAML (which is JSON too, where the file is named so)."""
    write_file(path, dumps_net(net).encode())


def net_schema() -> dict[str, Any]:
    """Make the JSON Schema (draft 2020-12) of a net file.

    What lies between fields the reader checks.
    """
    schema = records.record_schema(Net)
    schema["properties"]["tidings_net"] = {"const": FORMAT_VERSION, "description": "format version"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Tidings queueing Petri net",
        **schema,
        "$defs": {
            "Law": law_schema(),
            **{record.__name__: records.record_schema(record) for record in RECORDS},
        },
    }
