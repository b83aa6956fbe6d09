"""Waits in buffers as delays of a path: dense or by counting jumps where cheap, else crossed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import linalg, sparse
from scipy.interpolate import PchipInterpolator
from scipy.sparse.linalg import splu

from tidings.model.laws import ended_share
from tidings.theory.faults.passages import (
    MOST_DENSE_STATES,
    CrossingWait,
    is_tractable,
    sparsely_on_lattice,
)
from tidings.theory.faults.waiting import Wait
from tidings.theory.lattice import Lattice
from tidings.theory.partial_delays import TwoMoments
from tidings.theory.stages import Chain, Complexes, Delay, Floats

SMALL = 24  # states
_WORTH_COUNTING = 500  # jumps of a large chain; beyond that, rates differ too much to count them
_WORK = 200_000_000  # jumps times rates, up to which a smaller chain may jump more often
_FIRST_LOOK = 125  # jumps after which, and after twice as many, it is seen whether that will do
_FEW, _TABLE = 16, 240  # times that are asked for exactly, and those of a table for more
_LEFT = 1e-13  # share of events that may still wait after the last jump counted
_BLOCK = 1 << 20  # (time, jump) pairs handled at once


def buffer_delay(wait: Wait | TabulatedWait) -> Delay | None:
    """The wait as a delay of a path, or None where there is none."""
    if isinstance(wait, TabulatedWait):
        return wait if wait.left[0] > 0.0 else None
    if float(wait.initial.sum()) == 0.0:
        return None
    if wait.initial.size > SMALL:
        counted = CountedJumps(wait=wait)
        if counted.ends:
            return counted
    if wait.initial.size > MOST_DENSE_STATES:
        way = wait.crossing
        if way is not None and is_tractable(way.processes, way.hops, way.start.processes):
            return CrossingWait(crossing=way, held=float(wait.initial.sum()))
        return SolvedWait(wait=wait)
    return DenseWait(initial=wait.initial, generator=wait.generator.toarray(), atom=wait.atom)


@dataclass(frozen=True, kw_only=True, eq=False)
class DenseWait(TwoMoments):
    """The wait of a small chain, by matrices."""

    initial: Floats
    generator: Floats
    atom: float
    kinked: bool = False

    @property
    def order(self) -> float:
        """0 beside an atom, else 1."""
        return 0.0 if self.atom > 0.0 else 1.0

    @cached_property
    def moments(self) -> tuple[float, float]:
        """E[X] in seconds and E[X²] in seconds squared."""
        once = np.linalg.solve(-self.generator, np.ones(self.initial.size))
        twice = np.linalg.solve(-self.generator, once)
        return float(self.initial @ once), float(2.0 * self.initial @ twice)

    def chain(self) -> Chain | None:
        """The chain itself."""
        return self.initial, self.generator

    def cdf(self, t_s: Floats) -> Floats | None:
        """P[X ≤ t]: a few times to rounding, many from a table that is good to about 1e-6."""
        times_s = np.asarray(t_s, np.float64)
        if self.initial.size <= SMALL or times_s.size <= _FEW:
            return ended_share(self.initial, self.generator, times_s)
        logs, below = self._table
        inside = np.clip(np.log(np.maximum(times_s, 1e-300)), logs[0], logs[-1])
        early = times_s < math.exp(logs[0])
        rise = np.where(early, times_s / math.exp(logs[0]), 1.0)
        found: Floats = self.atom + (PchipInterpolator(logs, below)(inside) - self.atom) * rise
        return np.where(times_s < 0.0, 0.0, np.clip(found, 0.0, 1.0))

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Logarithms of times, and P[X ≤ t]; before the first of them it rises like t."""
        fastest = float(-self.generator.diagonal().min())
        last_s = self.mean_s + 60.0 * math.sqrt(self.variance_s2)
        times_s = np.geomspace(min(1e-3 / fastest, 1e-6 * last_s), last_s, _TABLE)
        return np.log(times_s), ended_share(self.initial, self.generator, times_s)

    @cached_property
    def _triangle(self) -> tuple[Complexes, Complexes, Complexes]:
        """Schur's form: rates as a triangle, what enters it, what leaves it."""
        triangle, turn = linalg.schur(self.generator, output="complex")
        leaving = -self.generator.sum(axis=1)
        return triangle, self.initial @ turn, turn.conj().T @ leaving

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)] = atom + initial (z − generator)⁻¹ leaving, by back substitution."""
        triangle, entering, leaving = self._triangle
        nodes = np.asarray(z, np.complex128)
        solved = np.empty((leaving.size, nodes.size), np.complex128)
        for row in range(leaving.size - 1, -1, -1):
            known = leaving[row] + triangle[row, row + 1 :] @ solved[row + 1 :]
            solved[row] = known / (nodes.ravel() - triangle[row, row])
        value: Complexes = (entering @ solved).reshape(nodes.shape)
        return value + self.atom

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Images of the wait made earlier and made later."""
        return lattice.enclosing(self.cdf)


class _LargeWait(TwoMoments):
    """What large chains have in common: their moments, and no phases to speak of."""

    wait: Wait
    kinked = False

    @property
    def atom(self) -> float:
        """P[X = 0]."""
        return self.wait.atom

    @property
    def order(self) -> float:
        """0 beside an atom, else 1."""
        return 0.0 if self.atom > 0.0 else 1.0

    @cached_property
    def moments(self) -> tuple[float, float]:
        """E[X] in seconds and E[X²] in seconds squared."""
        solve = splu(sparse.csc_array(-self.wait.generator)).solve
        once = solve(np.ones(self.wait.initial.size))
        return float(self.wait.initial @ once), float(2.0 * self.wait.initial @ solve(once))

    def chain(self) -> Chain | None:
        """None: too many phases to put them in series with others."""
        return None


def _is_slow(remains: list[float], most: int) -> bool:
    """Whether, at the rate of late, what remains will not be gone within so many jumps."""
    begin, end = remains[len(remains) // 2], remains[-1]
    if end <= 0.0:
        return False
    fall = math.log(begin / end) / (len(remains) - len(remains) // 2)
    return math.log(end / (_LEFT * remains[0])) > fall * (most - len(remains))


def _poisson_reach(mean: float) -> int:
    """How far from its mean a Poisson number may be; beyond lies less than rounding."""
    return math.ceil(9.0 * math.sqrt(mean)) + 40


def _poisson_mean(of: Floats, means: Floats) -> Floats:
    """E[of[N]] for Poisson N of each mean; beyond its end ``of`` stays as it is.

    Probabilities are made from the likeliest number outwards, each from its neighbour, and made to
    sum to one: none overflows, and all are right to rounding.

    >>> float(_poisson_mean(np.arange(100.0), np.array([7.0]))[0]).__round__(12)
    7.0
    """
    reach = _poisson_reach(float(means.max(initial=0.0)))
    likeliest, away = np.floor(means)[:, None], np.arange(1, reach + 1)
    mean = np.maximum(means, np.finfo(np.float64).tiny)[:, None]
    above = np.cumprod(mean / (likeliest + away), axis=1)
    below = np.cumprod(np.maximum(likeliest - away + 1.0, 0.0) / mean, axis=1)
    shares = np.concatenate((below[:, ::-1], np.ones_like(likeliest), above), axis=1)
    numbers = likeliest + np.arange(-reach, reach + 1)
    values = of[np.clip(numbers, 0, of.size - 1).astype(np.int64)]
    found: Floats = (shares * values).sum(axis=1) / shares.sum(axis=1)
    return found


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedJumps(_LargeWait):
    """The wait of a large chain: jumps come at a constant rate, and some jump ends it.

    With e_k the probability that jump k is the last one and Λ the rate of jumps,
    P[X ≤ t] = atom + Σ e_k P[k jumps by t], and the transform is atom + Σ e_k (Λ/(Λ + z))^k.
    """

    wait: Wait

    @property
    def ends(self) -> bool:
        """Whether so few jumps are to be counted that it is worth it."""
        _, remains = self._counted
        return bool(remains[-1] <= _LEFT * remains[0])

    @cached_property
    def _counted(self) -> tuple[float, Floats]:
        """The rate of jumps (1/s) and the probability of still waiting after jump 0, 1, …"""
        rates = self.wait.generator
        per_s = float(-rates.diagonal().min())
        jump = sparse.csr_array((sparse.eye_array(rates.shape[0]) + rates / per_s).T)
        left = self.wait.initial.copy()
        remains = [float(left.sum())]
        look, most = _FIRST_LOOK, max(_WORTH_COUNTING, _WORK // jump.nnz)
        while remains[-1] > _LEFT * remains[0] and len(remains) <= most:
            left = jump @ left
            remains.append(float(left.sum()))
            if len(remains) == look:
                look *= 2
                if _is_slow(remains, most):
                    break
        return per_s, np.array(remains)

    @property
    def _last_jump(self) -> tuple[float, Floats]:
        """The rate of jumps (1/s) and the probability that the wait ends with jump 1, 2, …"""
        per_s, remains = self._counted
        return per_s, np.maximum(-np.diff(remains), 0.0)

    @cached_property
    def moments(self) -> tuple[float, float]:
        """With N jumps: E[X] = E[N]/Λ and E[X²] = (E[N²] + E[N])/Λ²."""
        per_s, remains = self._counted
        jumps = float(remains.sum())
        pairs = 2.0 * float(np.arange(remains.size) @ remains)
        return jumps / per_s, (pairs + 2.0 * jumps) / per_s**2

    def cdf(self, t_s: Floats) -> Floats | None:
        """P[X ≤ t], what has not ended with the last jump counted left out."""
        per_s, ends = self._last_jump
        times = np.asarray(t_s, dtype=np.float64)
        flat = times.ravel()
        ended = np.concatenate(([0.0], np.cumsum(ends)))
        value = np.empty(flat.size)
        most = ended.size + 2.0 * _poisson_reach(ended.size)  # jumps: by then all have ended
        means = np.clip(per_s * flat, 0.0, most)
        step = max(1, _BLOCK // (2 * _poisson_reach(most) + 1))
        for begin in range(0, flat.size, step):
            value[begin : begin + step] = _poisson_mean(ended, means[begin : begin + step])
        found: Floats = np.where(flat >= 0.0, self.atom + value, 0.0).reshape(times.shape)
        return np.minimum(found, 1.0)

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)]."""
        per_s, ends = self._last_jump
        ratio = per_s / (per_s + z)
        value: Complexes = np.zeros(z.shape, dtype=np.complex128)
        for end in ends[::-1]:
            value = (value + end) * ratio
        return value + self.atom

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Images of the wait made earlier and made later."""
        return lattice.enclosing(self.cdf)


@dataclass(frozen=True, kw_only=True, eq=False)
class SolvedWait(_LargeWait):
    """The wait of a large chain that is not made of hops: by its transform only."""

    wait: Wait

    def cdf(self, t_s: Floats) -> Floats | None:
        """None: the path law inverts the transform, with a bound of its error."""
        return None

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)] = atom + initial (z − generator)⁻¹ leaving, solved for each z."""
        nodes = np.asarray(z, np.complex128)
        rates = sparse.csc_array(self.wait.generator, dtype=np.complex128)
        leaving = np.maximum(-self.wait.generator.sum(axis=1), 0.0).astype(np.complex128)
        unit = sparse.eye_array(rates.shape[0], format="csc", dtype=np.complex128)
        value: Complexes = np.array(
            [self.wait.initial @ splu(node * unit - rates).solve(leaving) for node in nodes.ravel()]
        )
        found: Complexes = value.reshape(nodes.shape) + self.atom
        return found

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Images of the wait made earlier and made later, from values at fewer times."""
        return sparsely_on_lattice(self, lattice)


@dataclass(frozen=True, kw_only=True, eq=False)
class TabulatedWait:
    """A wait known by P[X > t] at regular times: straight between them, exponential after."""

    step_s: float
    left: Floats  # P[X > 0], P[X > step], …
    tail_per_s: float
    kinked: bool = False

    @property
    def atom(self) -> float:
        """P[X = 0]."""
        return max(1.0 - float(self.left[0]), 0.0)

    @property
    def order(self) -> float:
        """0 beside an atom, else 1."""
        return 0.0 if self.atom > 0.0 else 1.0

    def given_waiting(self) -> TabulatedWait:
        """The wait of those that wait at all."""
        return replace(self, left=self.left / self.left[0])

    def with_held(self, held: float) -> TabulatedWait:
        """The same law of those that wait, where it is known better how many do."""
        if held <= 0.0:
            return replace(self, left=np.zeros(1))
        return replace(self, left=self.left * (held / self.left[0]))

    @property
    def _end_s(self) -> float:
        return self.step_s * (self.left.size - 1)

    @property
    def mean_s(self) -> float:
        """E[X] = ∫ P[X > t] dt, in seconds."""
        inside = self.step_s * float(self.left.sum() - 0.5 * (self.left[0] + self.left[-1]))
        return inside + float(self.left[-1]) / self.tail_per_s

    @property
    def variance_s2(self) -> float:
        """Var X, in seconds squared, by E[X²] = 2 ∫ t P[X > t] dt."""
        begin_s = self.step_s * np.arange(self.left.size - 1)
        first, last = self.left[:-1], self.left[1:]
        inside = begin_s * (first + last) / 2.0 + self.step_s * (first + 2.0 * last) / 6.0
        tail_s = 1.0 / self.tail_per_s
        beyond = float(self.left[-1]) * (self._end_s + tail_s) * tail_s
        return 2.0 * (self.step_s * float(inside.sum()) + beyond) - self.mean_s**2

    def chain(self) -> Chain | None:
        """None: it has no phases."""
        return None

    def cdf(self, t_s: Floats) -> Floats | None:
        """P[X ≤ t]."""
        times_s = np.asarray(t_s, np.float64)
        known_s = self.step_s * np.arange(self.left.size)
        beyond = np.exp(-self.tail_per_s * np.maximum(times_s - self._end_s, 0.0))
        found: Floats = 1.0 - np.interp(times_s, known_s, self.left) * beyond
        return np.where(times_s < 0.0, 0.0, found)

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)]."""
        factor = np.exp(-z * self.step_s)
        masses = -np.diff(self.left)
        inside = np.polynomial.polynomial.polyval(factor, masses) * (1.0 - factor)
        beyond = self.left[-1] * np.exp(-z * self._end_s) / (1.0 + z / self.tail_per_s)
        found: Complexes = self.atom + inside / (z * self.step_s) + beyond
        return found

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Images of the wait made earlier and made later."""
        return lattice.enclosing(self.cdf)
