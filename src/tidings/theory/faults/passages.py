"""The wait over hops of many joint phases, by its transform and without their chain.

The processes of a hop are independent, so what they would do if nobody looked is known by the modes
of each alone: with R(z) = (z − Q)⁻¹ over joint phases, R is a product in the modes, divided by
z − Σ eigenvalues. The wait ends when the joint phase first is in the set M of those that meet the
hop's needs. Whoever is in M at some time has come there once for the first time, so that
E[exp(−zX); comes by m] solves a system as small as M: x R[·, M] = f R[M, M]. Processes that are
followed and not needed stay in their modes, each of which only moves z.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from tidings.theory.faults.processes import Process
from tidings.theory.faults.waiting import Crossing, Hop, phases_of, tracked
from tidings.theory.inversion import euler_rule
from tidings.theory.lattice import Lattice
from tidings.theory.partial_delays import KnownByTransform, TwoMoments
from tidings.theory.stages import Complexes, Delay, Floats

_BLOCK = 1 << 16  # complex numbers handled at once
_BUNCH = 1 << 16  # numbers in a table of several processes put together
_HALF_CIRCLE = 8  # points around 0, for moments
_CLOSE, _MOST_CIRCLES = 1e-7, 8
_LATTICE_TIMES, _LATTICE_TERMS = 96, 10
WORST_MODES = 1e9  # condition of a process's modes: beyond that they cannot be told apart
# What one node may cost, all hops together: some 5 ms. A prediction with quantiles asks for about
# four thousand nodes of a way, so the longest wait takes some twenty seconds.
MOST_WORK = 1 << 16
_SOLVED = 1 / 16  # what one multiplication of a small system costs beside one joint phase
MOST_STATES = 1 << 15  # of one hop
MOST_DENSE_STATES = 300  # of all hops, that are put into one matrix


def is_tractable(processes: Sequence[Process], hops: Sequence[Hop], first: Sequence[int]) -> bool:
    """Whether the wait over some hops can be worked out in seconds; ``first`` is known then."""
    followed = [tuple(first), *tracked(hops, first)]
    if sum(phases_of(processes, each) for each in followed) <= MOST_DENSE_STATES:
        return True
    used = set().union(*followed)
    if any(phases_of(processes, each) > MOST_STATES for each in followed):
        return False
    work = sum(_work(processes, each, hop) for each, hop in zip(followed[1:], hops, strict=True))
    return work <= MOST_WORK and all(processes[each].modes.condition < WORST_MODES for each in used)


def _work(processes: Sequence[Process], followed: Sequence[int], hop: Hop) -> float:
    """What one node of one hop costs: all joint phases, and a small system for each mode beside."""
    beside = phases_of(processes, [each for each in followed if each not in hop])
    meets = math.prod(int(hop[each].sum()) for each in followed if each in hop)
    return float(beside * (phases_of(processes, list(hop)) + _SOLVED * meets**3))


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossingWait(TwoMoments, KnownByTransform):
    """The wait of an event that crosses hops, of those that wait a share ``held``."""

    crossing: Crossing
    held: float

    @property
    def atom(self) -> float:
        """P[X = 0]."""
        return max(1.0 - self.held, 0.0)

    @property
    def order(self) -> float:
        """0 beside an atom, else 1."""
        return 0.0 if self.atom > 0.0 else 1.0

    @cached_property
    def moments(self) -> tuple[float, float]:
        """E[X] and E[X²] from values of the transform on a circle around 0, as small as it takes.

        With n points on a circle of radius r the error is that of the n-th power of r, in units of
        the slowest rate at which waits end; the half circle below is the mirror image.
        """
        points = np.exp(1j * math.pi * (np.arange(_HALF_CIRCLE) + 0.5) / _HALF_CIRCLE)
        used = set().union(*self._followed)
        radius = 0.2 * min(self.crossing.processes[each].slowest_repair_per_s for each in used)
        found = (math.inf, math.inf)
        for _ in range(_MOST_CIRCLES):
            values = self.transform(radius * points)
            first = float((values / points).real.mean()) / radius
            second = float((values / points**2).real.mean()) / radius**2
            before, found = found, (-first, 2.0 * second)
            if np.allclose(found, before, rtol=_CLOSE, atol=0.0):
                break
            radius *= 0.5
        return found

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)]."""
        nodes = np.asarray(z, np.complex128)
        largest = max(
            _largest(self.crossing.processes, each, hop)
            for each, hop in zip(self._followed, self.crossing.hops, strict=True)
        )
        step = max(_BLOCK // largest, 1)
        flat = nodes.ravel()
        parts = [self._crossed(flat[begin : begin + step]) for begin in range(0, flat.size, step)]
        alone = self.crossing.held
        found = 1.0 - self.held + (np.concatenate(parts) - (1.0 - alone)) * (self.held / alone)
        return np.asarray(found.reshape(nodes.shape), np.complex128)

    @cached_property
    def _followed(self) -> list[tuple[int, ...]]:
        return tracked(self.crossing.hops, self.crossing.start.processes)

    def _crossed(self, z: Complexes) -> Complexes:
        """E[exp(−zX)] of all that start, whatever share of them waits."""
        processes, start = self.crossing.processes, self.crossing.start
        weights, known = self._start_in_modes, start.processes
        for passage in self._passages:
            weights = _met_next(processes, weights, known, passage.followed)
            weights = passage.passed(weights, z)
            known = passage.left
        return weights.reshape(z.size) + (1.0 - float(start.shares.sum()))

    @cached_property
    def _passages(self) -> list[_Passage]:
        crossing, later = self.crossing, [*self._followed[1:], ()]
        return [
            _passage(crossing.processes, hop, followed, after)
            for hop, followed, after in zip(crossing.hops, self._followed, later, strict=True)
        ]

    @cached_property
    def _start_in_modes(self) -> Complexes:
        """The shares of what is known at the start, in modes; they are the same for every z."""
        processes, start = self.crossing.processes, self.crossing.start
        sizes = [len(processes[each].up) for each in start.processes]
        weights = start.shares.reshape(1, *sizes).astype(np.complex128)
        for place, each in enumerate(start.processes):
            weights = _along(weights, 1 + place, processes[each].modes.right)
        return weights

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Images of the wait made earlier and made later, from values at fewer times."""
        return sparsely_on_lattice(self, lattice)


def sparsely_on_lattice(delay: Delay, lattice: Lattice) -> tuple[Complexes, Complexes]:
    """Images of a delay whose transform is dear, from values at a few times."""
    times_s = lattice.step_s * np.geomspace(0.5, lattice.points + 2, _LATTICE_TIMES)
    nodes, weights = euler_rule(_LATTICE_TERMS)
    density = delay.transform(nodes / times_s[:, None]) / (nodes / times_s[:, None])
    known = np.clip(density.real @ weights / times_s, delay.atom, 1.0)
    steps_s = lattice.step_s * np.arange(1, lattice.points + 2)
    below = np.interp(np.log(steps_s), np.log(times_s), np.maximum.accumulate(known))
    below = np.concatenate([[delay.atom], below])
    return lattice.image(below[1:]), lattice.image(below[:-1])


def _largest(processes: Sequence[Process], followed: Sequence[int], hop: Hop) -> int:
    """How many numbers the largest table of a hop has, for one node."""
    found = 1
    for each in followed:
        phases = len(processes[each].up)
        found *= max(phases, int(hop[each].sum()) ** 2) if each in hop else phases
    return found


def _met_next(
    processes: Sequence[Process], weights: Complexes, known: Sequence[int], wanted: Sequence[int]
) -> Complexes:
    """Weights of joint modes of the wanted processes: what is not known is stationary."""
    for place in range(len(known) - 1, -1, -1):
        if known[place] not in wanted:
            weights = _forgotten(processes[known[place]], weights, 1 + place)
    for place, each in enumerate(wanted):
        if each not in known:
            stationary = processes[each].stationary @ processes[each].modes.right
            weights = np.moveaxis(np.multiply.outer(weights, stationary), -1, 1 + place)
    return weights


def _forgotten(process: Process, weights: Complexes, axis: int) -> Complexes:
    """Weights of the joint modes of all processes but one, whatever that does."""
    found: Complexes = np.tensordot(weights, process.modes.left.sum(axis=1), axes=(axis, 0))
    return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Passage:
    """One hop in modes. The processes it needs are put together as far as tables stay small."""

    processes: Sequence[Process]
    hop: Hop
    followed: tuple[int, ...]
    left: tuple[int, ...]  # of these, what is followed later
    beside: tuple[int, ...]  # of these, what the hop does not need
    needed: tuple[int, ...]
    decays: Complexes  # [mode of each beside …, joint mode of each bunch of the needed …]
    bunches: list[Complexes]  # of each: its joint modes to the phases that meet the needs
    pairs: list[Complexes]  # the same, from and to: [joint mode, from, to]

    def passed(self, weights: Complexes, z: Complexes) -> Complexes:
        """Weights, in modes, of what is followed later when the hop's needs are first met."""
        order = [1 + self.followed.index(each) for each in (*self.beside, *self.needed)]
        gaps: Complexes = np.asarray(np.subtract.outer(z, self.decays), np.complex128)
        both: Complexes = np.reciprocal(gaps)  # becomes R[M, M]
        ordered = weights.transpose([0, *order])
        weights = ordered.reshape(len(weights), *self.decays.shape) * both
        lead = weights.shape[: 1 + len(self.beside)]
        for place in range(len(self.bunches) - 1, -1, -1):
            weights = _along(weights, len(lead) + place, self.bunches[place])
            both = np.tensordot(both, self.pairs[place], axes=(len(lead) + place, 0))
        count = math.prod(weights.shape[len(lead) :])
        # The last bunch was the first to be put in: its axes are the first of the pairs.
        first = range(both.ndim - 2, len(lead) - 1, -2)
        turned = both.transpose([*range(len(lead)), *(1 + axis for axis in first), *first])
        matrix = turned.reshape(*lead, count, count)
        right = weights.reshape(*lead, count, 1)
        solved = right / matrix if count == 1 else np.linalg.solve(matrix, right)
        meets = [int(self.hop[each].sum()) for each in self.needed]
        return self._onwards(np.asarray(solved, np.complex128).reshape(*lead, *meets))

    def _onwards(self, entered: Complexes) -> Complexes:
        """Weights of what is left, in modes, from modes beside and phases that meet the needs."""
        order = (*self.beside, *self.needed)
        for axis in range(len(order), 0, -1):
            each = order[axis - 1]
            modes = self.processes[each].modes
            if each in self.left and each in self.hop:
                entered = _along(entered, axis, modes.right[self.hop[each]])
            elif each in self.hop:
                entered = entered.sum(axis=axis)
            elif each not in self.left:
                entered = _forgotten(self.processes[each], entered, axis)
        kept = [each for each in order if each in self.left]
        return entered.transpose([0, *(1 + kept.index(each) for each in self.left)])


def _passage(
    processes: Sequence[Process], hop: Hop, followed: tuple[int, ...], later: Sequence[int]
) -> _Passage:
    """What there is to know of one hop, whatever z is."""
    beside = tuple(each for each in followed if each not in hop)
    needed = tuple(each for each in followed if each in hop)
    decays = [processes[each].modes.values for each in beside]
    bunches: list[Complexes] = []
    pairs: list[Complexes] = []
    for each in needed:
        modes, meets = processes[each].modes, hop[each]
        leaves = modes.left[:, meets]
        both = modes.right[meets].T[:, :, None] * leaves[:, None, :]
        if pairs and pairs[-1].size * both.size <= _BUNCH:
            decays[-1] = np.add.outer(decays[-1], modes.values).ravel()
            bunches[-1] = np.asarray(np.kron(bunches[-1], leaves), np.complex128)
            pairs[-1] = np.asarray(np.kron(pairs[-1], both), np.complex128)
        else:
            decays.append(modes.values)
            bunches.append(leaves)
            pairs.append(both)
    return _Passage(
        processes=processes,
        hop=hop,
        followed=followed,
        left=tuple(each for each in followed if each in later),
        beside=beside,
        needed=needed,
        decays=reduce(np.add.outer, decays, np.zeros((), np.complex128)),
        bunches=bunches,
        pairs=pairs,
    )


def _along(weights: Complexes, axis: int, matrix: Floats | Complexes) -> Complexes:
    """Row vectors along an axis, each times a matrix."""
    found: Complexes = np.moveaxis(np.tensordot(weights, matrix, axes=(axis, 0)), -1, axis)
    return found
