"""Ways whose brokers keep an event until the next broker has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from scipy import sparse

from tidings.theory.faults.buffer_delays import TabulatedWait, buffer_delay
from tidings.theory.faults.components import Components, Path
from tidings.theory.faults.merging import put_together
from tidings.theory.faults.passages import is_tractable
from tidings.theory.faults.processes import Bools, Process, plain, plain_up
from tidings.theory.faults.static_ways import HOME_DOWN
from tidings.theory.faults.waiting import Hop, Wait, up_start, wait
from tidings.theory.stages import NOTHING, Delay, Stage, in_series


def hops(components: Components, path: Path) -> list[Hop]:
    """What each hop of a way needs: both its brokers and its link up.

    Where brokers forget subscriptions, the sending one must have them, and the last one before it
    hands the event over. The receiving one takes whatever it gets.
    """
    needs = components.of_path(path)
    processes = components.processes
    found: list[Hop] = []
    for first in range(0, len(needs) - 1, 2):
        hop = {
            each: processes[each].up for element in needs[first + 1 : first + 3] for each in element
        }
        found.append(hop | {each: processes[each].able for each in needs[first]})
    if any(processes[each].ready is not None for each in needs[-1]):
        found.append({each: processes[each].able for each in needs[-1]})
    return found


def home_up(components: Components, path: Path) -> Stage:
    """An event is lost for good if its home broker is down when it is published."""
    share = components.all_up(components.of_broker[path.brokers[0]])
    return Stage(survives=share, lost={HOME_DOWN: 1.0 - share}) if share < 1.0 else NOTHING


def acknowledged(pieces: Sequence[Stage]) -> list[Stage]:
    """The stages of a way whose links lose nothing by chance: it is sent again at once."""
    found = []
    for piece in pieces:
        again = piece.lost.get("link", 0.0)
        lost = {cause: share for cause, share in piece.lost.items() if cause != "link"}
        found.append(replace(piece, survives=piece.survives + again, lost=lost) if again else piece)
    return found


def buffered_way(
    components: Components, path: Path, pieces: Sequence[Stage], waiting: Wait | TabulatedWait
) -> Stage:
    """The stages of a way and the wait in its buffers: a_b0 · P[wait + all else ≤ t]."""
    found = in_series(home_up(components, path), reduce(in_series, acknowledged(pieces)))
    delay = buffer_delay(waiting)
    if delay is None:
        return found
    return kept_before(found, delay)


def kept_before(way: Stage, delay: Delay) -> Stage:
    """A way and a wait in its buffers: what waits and is late then has expired there."""
    unkept = Stage(survives=way.survives * delay.atom, shift_s=way.shift_s, delays=way.delays)
    return replace(way, delays=(delay, *way.delays), unkept=unkept)


class StationaryWait(NamedTuple):
    """The wait of an event whose home is up, and what was simplified to get at it."""

    wait: Wait
    simplified: tuple[str, ...]


def stationary_wait(components: Components, path: Path) -> StationaryWait:
    """The wait of an event whose home is up, as exactly as it can be had in seconds."""
    home = components.of_broker[path.brokers[0]]

    return _waited(components, lambda parts: hops(parts, path), home)


def told_wait(components: Components, path: Path) -> Wait:
    """The wait of a message that is sent at any moment, as who needs it at the end notices it.

    First its home must be up, then for each hop its link and the broker at its end at the same
    moment; but not the last broker, for nothing is matched there as long as that is down.
    """
    *needs, _ = components.of_path(path)
    parts = [sum(needs[max(n - 1, 0) : n + 1], ()) for n in range(0, len(needs), 2)]
    parts += [needs[-1]] if needs else []
    if not any(parts):
        return Wait(initial=np.zeros(0), generator=sparse.csr_array((0, 0)))

    def asked(simpler: Components) -> list[Hop]:
        return [{each: simpler.processes[each].up for each in part} for part in parts if part]

    return _waited(components, asked, ()).wait


def _waited(
    components: Components, asked: Callable[[Components], list[Hop]], home: Sequence[int]
) -> StationaryWait:
    """The wait over what is asked of components, which are made simpler as far as needed.

    The processes of ``home`` are known to be up.
    """
    parts = components
    simplified: tuple[str, ...] = ()
    for how, simpler in _SIMPLER.items():
        if not is_tractable(parts.processes, asked(parts), home):
            changed = tuple(map(simpler, components.processes))
            if changed != components.processes:
                parts, simplified = replace(components, processes=changed), (how,)
    processes, needed, first = parts.processes, asked(parts), tuple(sorted(home))
    if not is_tractable(processes, needed, first):
        simplified = *simplified, _TOGETHER
        processes, needed, first = put_together(processes, needed, first)
        if not is_tractable(processes, needed, first):
            simplified = *simplified, _APART
            processes, needed, first = put_together(*_apart(parts, asked(parts)), home)
    return StationaryWait(wait(processes, needed, up_start(processes, first)), simplified)


_TOGETHER = "what is needed together taken as one, as states are too many"
_APART = "failure groups taken as independent from hop to hop"


def _each(simpler: Callable[[Process], Process]) -> Callable[[Process], Process]:
    """Made simpler where it has more than one phase up or down, and no subscriptions to lose."""
    return lambda each: simpler(each) if each.ready is None and len(each.up) > 2 else each


_SIMPLER: dict[str, Callable[[Process], Process]] = {
    "times up taken as exponential, as states are too many": _each(plain_up),
    "times up and down taken as exponential, as states are too many": _each(plain),
}


def _apart(components: Components, needed: list[Hop]) -> tuple[tuple[Process, ...], list[Hop]]:
    """Every hop after the first with failure groups of its own, as if met for the first time."""
    processes = list(components.processes)
    found = [needed[0]]
    for hop in needed[1:]:
        fresh: dict[int, Bools] = {}
        for each, phases in hop.items():
            if each in components.shared:
                processes.append(components.processes[each])
                fresh[len(processes) - 1] = phases
            else:
                fresh[each] = phases
        found.append(fresh)
    return tuple(processes), found
