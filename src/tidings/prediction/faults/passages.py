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
from functools import cached_property

import numpy as np

from tidings.prediction.faults.processes import Process
from tidings.prediction.faults.waiting import Crossing, Hop, Start, phases_of, tracked
from tidings.prediction.inversion import euler_rule
from tidings.prediction.lattice import Lattice
from tidings.prediction.stages import Chain, Complexes, Delay, Floats

_BLOCK = 1 << 18  # complex numbers handled at once
_HALF_CIRCLE = 8  # points around 0, for moments
_CLOSE, _MOST_CIRCLES = 1e-7, 8
_LATTICE_TIMES, _LATTICE_TERMS = 96, 10
WORST_MODES = 1e9  # condition of a process's modes: beyond that they cannot be told apart
MOST_WORK = 600_000  # multiplications for one node
MOST_STATES = 1 << 15  # of one hop
MOST_DENSE_STATES = 300  # of all hops, that are put into one matrix


def is_tractable(processes: Sequence[Process], hops: Sequence[Hop], start: Start) -> bool:
    """Whether the wait over some hops can be worked out in seconds."""
    followed = tracked(hops, start)
    if sum(phases_of(processes, each) for each in followed) <= MOST_DENSE_STATES:
        return True
    used = set(start.processes).union(*followed)
    return all(processes[each].modes.condition < WORST_MODES for each in used) and all(
        phases_of(processes, each) <= MOST_STATES and _work(processes, each, hop) <= MOST_WORK
        for each, hop in zip(followed, hops, strict=True)
    )


def _work(processes: Sequence[Process], followed: Sequence[int], hop: Hop) -> float:
    """Multiplications for one node of one hop, roughly: a small system for each mode beside it."""
    beside = phases_of(processes, [each for each in followed if each not in hop])
    meets = math.prod(int(hop[each].sum()) for each in followed if each in hop)
    return float(beside * (phases_of(processes, list(hop)) + meets**3))


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossingWait:
    """The wait of an event that crosses hops, of those that wait a share ``held``."""

    crossing: Crossing
    held: float
    kinked: bool = False

    @property
    def atom(self) -> float:
        """P[X = 0]."""
        return max(1.0 - self.held, 0.0)

    @property
    def order(self) -> float:
        """0 beside an atom, else 1."""
        return 0.0 if self.atom > 0.0 else 1.0

    @property
    def mean_s(self) -> float:
        """E[X], in seconds."""
        return self._moments[0]

    @property
    def variance_s2(self) -> float:
        """Var X, in seconds squared."""
        mean_s, square_s2 = self._moments
        return square_s2 - mean_s**2

    @cached_property
    def _moments(self) -> tuple[float, float]:
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

    def chain(self) -> Chain | None:
        """None: too many phases to put them in series with others."""
        return None

    def cdf(self, t_s: Floats) -> Floats | None:
        """None: the path law inverts the transform, with a bound of its error."""
        return None

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
        return tracked(self.crossing.hops, self.crossing.start)

    def _crossed(self, z: Complexes) -> Complexes:
        """E[exp(−zX)] of all that start, whatever share of them waits."""
        processes, start = self.crossing.processes, self.crossing.start
        sizes = [len(processes[each].up) for each in start.processes]
        shares = start.shares.reshape(sizes).astype(np.complex128)
        weights: Complexes = np.broadcast_to(shares, (z.size, *sizes))
        known = start.processes
        for hop, followed in zip(self.crossing.hops, self._followed, strict=True):
            weights = _met_next(processes, weights, known, followed)
            weights = _passed(processes, weights, (followed, hop), z)
            known = followed
        passed: Complexes = weights.reshape(z.size, -1).sum(axis=1)
        return passed + (1.0 - float(start.shares.sum()))

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
    """Weights of joint phases of the wanted processes: what is not known is stationary."""
    dropped = tuple(1 + place for place, each in enumerate(known) if each not in wanted)
    weights = weights.sum(axis=dropped) if dropped else weights
    for place, each in enumerate(wanted):
        if each not in known:
            weights = np.moveaxis(
                np.multiply.outer(weights, processes[each].stationary), -1, 1 + place
            )
    return weights


def _passed(
    processes: Sequence[Process],
    weights: Complexes,
    of_hop: tuple[Sequence[int], Hop],
    z: Complexes,
) -> Complexes:
    """Weights of the joint phases in which the hop's needs are first met."""
    followed, hop = of_hop
    order = sorted(followed, key=lambda each: each in hop)
    beside = [each for each in order if each not in hop]
    needed = order[len(beside) :]
    weights = weights.transpose([0, *(1 + followed.index(each) for each in order)])
    gaps: Complexes = z
    for place, each in enumerate(order):
        modes = processes[each].modes
        weights = _along(weights, 1 + place, modes.right)
        gaps = np.subtract.outer(gaps, modes.values)
    weights = weights / gaps
    both = 1.0 / gaps  # becomes R[M, M]: for each needed process two axes, from and to
    for place, each in enumerate(needed):
        modes, meets = processes[each].modes, hop[each]
        weights = _along(weights, 1 + len(beside) + place, modes.left[:, meets])
        pairs = modes.right[meets].T[:, :, None] * modes.left[:, None, meets]
        both = np.tensordot(both, pairs, axes=(1 + len(beside), 0))
    lead = weights.shape[: 1 + len(beside)]
    count = math.prod(weights.shape[len(lead) :])
    first = range(len(lead), both.ndim, 2)
    turned = both.transpose([*range(len(lead)), *(1 + axis for axis in first), *first])
    matrix = turned.reshape(*lead, count, count)
    solved = np.linalg.solve(matrix, weights.reshape(*lead, count, 1))
    entered: Complexes = np.asarray(solved, np.complex128).reshape(weights.shape)
    for place, each in enumerate(beside):
        entered = _along(entered, 1 + place, processes[each].modes.left)
    for place, each in enumerate(needed):
        entered = _along(entered, 1 + len(beside) + place, np.eye(hop[each].size)[hop[each]])
    return entered.transpose([0, *(1 + order.index(each) for each in followed)])


def _along(weights: Complexes, axis: int, matrix: Floats | Complexes) -> Complexes:
    """Row vectors along an axis, each times a matrix."""
    found: Complexes = np.moveaxis(np.moveaxis(weights, axis, -1) @ matrix, -1, axis)
    return found
