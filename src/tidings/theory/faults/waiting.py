"""How long an event waits in the buffers of its way until everything it needs has been up.

An event goes on from a broker as soon as all that the hop needs is up at the same moment. While it
waits, the processes of the hop are one Markov chain, which ends when they are all up; the event
then meets the next hop, of which some processes may be known already (the receiving broker's phase,
a failure group met before) and the others are stationary. Hops whose needs are met at once take no
time. So the whole wait is phase-type with an atom at 0, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tidings.theory.faults.processes import Bools, Floats, Process

Hop = Mapping[int, Bools]  # the processes that a hop needs, and in which phases


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The processes known when an event is published, and the shares of their joint phases."""

    processes: tuple[int, ...]
    shares: Floats  # the last process varies fastest; they sum to 1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Crossing:
    """What a wait is made of: hops to be crossed, from a start, and the share that waits at all."""

    processes: tuple[Process, ...]
    hops: tuple[Hop, ...]
    start: Start
    held: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wait:
    """A phase-type wait: what ``initial`` lacks to 1 is no wait at all."""

    initial: Floats
    generator: sparse.csr_array  # 1/s
    crossing: Crossing | None = None  # that it comes from, with the same law of those that wait

    def scaled(self, factor: float) -> Wait:
        """The same law of those that wait, where so many times as many do."""
        return replace(self, initial=self.initial * factor)

    @property
    def atom(self) -> float:
        """P[no wait]."""
        return max(1.0 - float(self.initial.sum()), 0.0)


def up_start(processes: Sequence[Process], needed: Sequence[int]) -> Start:
    """What is known when an event has just been published: its home broker is up."""
    known = tuple(sorted(needed))
    shares = reduce(np.multiply.outer, [processes[each].found_up for each in known], np.ones(()))
    return Start(processes=known, shares=shares.ravel())


def phases_of(processes: Sequence[Process], chosen: Sequence[int]) -> int:
    """How many joint phases some processes have."""
    return math.prod(len(processes[each].up) for each in chosen)


def tracked(hops: Sequence[Hop], first: Sequence[int]) -> list[tuple[int, ...]]:
    """The processes that the chain of each hop must follow.

    Those the hop needs, and those met before that a later hop will need again; ``first`` are known
    at the start.
    """
    found: list[tuple[int, ...]] = []
    known = set(first)
    for number, hop in enumerate(hops):
        later = set().union(*hops[number:])
        known = (known & later) | set(hop)
        found.append(tuple(sorted(known)))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Journey:
    """The states in which an event waits, hop by hop, and what leads into and between them."""

    followed: list[tuple[int, ...]]  # of each hop: the processes of its joint phases
    waiting: list[Bools]  # of each hop: the joint phases in which its needs are not met
    entering: list[sparse.csr_array]  # of each hop: joint phase → waiting state, where it leads
    generator: sparse.csr_array  # between waiting states, 1/s; what rows lack to 0 ends the wait

    def initial(self, processes: Sequence[Process], start: Start) -> Floats:
        """The shares of the waiting states of an event that starts now."""
        first = _met_next(processes, start.processes, self.followed[0])
        found: Floats = np.asarray(start.shares @ first @ self.entering[0]).ravel()
        return found


def journey(processes: Sequence[Process], hops: Sequence[Hop], start: Start) -> Journey:
    """All states in which an event waits on its way over some hops.

    The states of a hop are all joint phases of the processes it must follow, so their number
    doubles with each; look at ``tracked`` first where many are shared.
    """
    followed = tracked(hops, start.processes)
    waiting = [~_met(processes, each, hop) for each, hop in zip(followed, hops, strict=True)]
    offsets = np.concatenate([[0], np.cumsum([int(each.sum()) for each in waiting])])
    total = int(offsets[-1])
    # From the last hop to the first: into which waiting states each joint phase leads at once.
    entering = [sparse.csr_array((1, total))]
    after: tuple[int, ...] = ()
    rows = []
    for number in range(len(hops) - 1, -1, -1):
        onwards = _met_next(processes, followed[number], after) @ entering[-1]
        selected = sparse.diags_array((~waiting[number]).astype(np.float64)) @ onwards
        places = np.flatnonzero(waiting[number])
        stays = sparse.csr_array(
            (np.ones(places.size), (places, offsets[number] + np.arange(places.size))),
            shape=(waiting[number].size, total),
        )
        entering.append(sparse.csr_array(selected + stays))
        rates = joint_rates(processes, followed[number])
        rows.append(rates[places] @ entering[-1])
        after = followed[number]
    return Journey(
        followed=followed,
        waiting=waiting,
        entering=entering[:0:-1],
        generator=sparse.csr_array(sparse.vstack(rows[::-1])),
    )


def wait(processes: Sequence[Process], hops: Sequence[Hop], start: Start) -> Wait:
    """The wait over all hops, from a start. Exact."""
    if not hops:
        return Wait(initial=np.empty(0), generator=sparse.csr_array((0, 0)))
    found = journey(processes, hops, start)
    initial = found.initial(processes, start)
    held = float(initial.sum())
    crossing = Crossing(processes=tuple(processes), hops=tuple(hops), start=start, held=held)
    return Wait(initial=initial, generator=found.generator, crossing=crossing)


def _met(processes: Sequence[Process], followed: Sequence[int], hop: Hop) -> Bools:
    """In which joint phases a hop's needs are met."""
    everything = [hop.get(each, np.ones(len(processes[each].up), np.bool_)) for each in followed]
    found: Bools = reduce(np.logical_and.outer, everything, np.ones((), np.bool_)).ravel()
    return found


def joint_rates(processes: Sequence[Process], followed: Sequence[int]) -> sparse.csr_array:
    """The rates between the joint phases of some processes, 1/s; the last varies fastest."""
    found = sparse.csr_array((1, 1))
    for each in followed:
        rates = sparse.csr_array(processes[each].generator)
        mine, others = sparse.eye_array(rates.shape[0]), sparse.eye_array(found.shape[0])
        found = sparse.kron(found, mine) + sparse.kron(others, rates)
    return sparse.csr_array(found)


def _met_next(
    processes: Sequence[Process], known: Sequence[int], wanted: Sequence[int]
) -> sparse.csr_array:
    """From joint phases of the known processes to those of the wanted ones, [known, wanted].

    What is known and not wanted is forgotten; what is wanted and not known is stationary.
    """
    sizes = [len(processes[each].up) for each in known]
    rows = np.arange(math.prod(sizes))
    phase = dict(zip(known, np.unravel_index(rows, sizes) if sizes else (), strict=True))
    columns: NDArray[np.int64] = np.zeros((rows.size, 1), dtype=np.int64)
    shares = np.ones(1)
    for each in wanted:
        count = len(processes[each].up)
        columns = columns * count
        if each in phase:
            columns = columns + phase[each][:, None]
        else:
            columns = (columns[:, :, None] + np.arange(count)).reshape(rows.size, -1)
            shares = np.multiply.outer(shares, processes[each].stationary).ravel()
    return sparse.csr_array(
        (
            np.tile(shares, rows.size),
            (np.repeat(rows, columns.shape[1]), columns.ravel()),
        ),
        shape=(rows.size, phases_of(processes, wanted)),
    )
