"""Laws of the time a Markov chain takes to end: hyperexponential and general phase-type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tidings.errors import Problem
from tidings.model.arrays import Complexes
from tidings.model.laws.absorption import ended_share, leaving, time_to_end
from tidings.model.laws.law import (
    WEIGHT_SLACK,
    Law,
    Reals,
    Size,
    as_floats,
    as_nodes,
    as_shares,
    as_times,
    check,
    check_number,
    invert,
    number_problems,
    weight_problems,
)
from tidings.model.laws.simple import Deterministic, Exponential, Gamma, unshifted

LONGEST_MEAN_S = 1e150  # its square is still a number
MOST_PHASES = 256  # an Erlang law of a larger shape is not spelt out as phases
_BLOCK = 1 << 16  # matrix entries handled at once


@dataclass(frozen=True, slots=True, kw_only=True)
class HyperExponential:
    """With probability ``weights[i]`` exponential with mean ``means_s[i]``."""

    weights: tuple[float, ...]
    means_s: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", as_floats(self.weights))
        object.__setattr__(self, "means_s", as_floats(self.means_s))
        counts = (len(self.weights), len(self.means_s))
        uneven = Problem(
            at="HyperExponential",
            saw=f"{counts[0]} weights and {counts[1]} means",
            want="as many weights as means",
        )
        check(
            weight_problems("HyperExponential.weights", self.weights),
            *(number_problems("HyperExponential.means_s", mean_s) for mean_s in self.means_s),
            [uneven] if counts[0] != counts[1] else [],
        )

    @property
    def mean_s(self) -> float:
        """Σ wᵢ mᵢ, in seconds."""
        return float(_shares(self.weights) @ np.array(self.means_s))

    @property
    def scv(self) -> float:
        """2 Σ wᵢ mᵢ² / mean² − 1: at least 1."""
        return float(2.0 * (_shares(self.weights) @ np.square(self.means_s)) / self.mean_s**2 - 1.0)

    def cdf(self, t_s: npt.ArrayLike) -> Reals:
        """Compute P[X ≤ t] = Σ wᵢ (1 − exp(−t/mᵢ))."""
        times = np.maximum(as_times(t_s), 0.0)
        share = np.zeros_like(times)  # added up in one order for every time, so that it never falls
        for weight, mean_s in zip(_shares(self.weights), self.means_s, strict=True):
            share = share - weight * np.expm1(-times / mean_s)
        return np.minimum(share, 1.0)

    def quantile(self, u: npt.ArrayLike) -> Reals:
        """Find the least time whose CDF, as computed, reaches u, in seconds; infinite at u = 1.

        Rounding makes the CDF waver by 1e-16: none of ``LOOK_BACK`` numbers before reaches u.
        """
        return _quantile(self, as_shares(u))

    def transform(self, z: npt.ArrayLike) -> Complexes:
        """Compute E[exp(−zX)] = Σ wᵢ/(1 + z mᵢ), for Re z > −1/max mᵢ."""
        nodes = as_nodes(z)[..., None]
        value: Complexes = (1.0 / (1.0 + nodes * np.array(self.means_s))) @ _shares(self.weights)
        return value

    def sample(self, rng: np.random.Generator, size: Size) -> Reals:
        """Draw independent samples, in seconds."""
        branch = rng.choice(len(self.weights), size, p=_shares(self.weights))
        return np.array(self.means_s)[branch] * rng.exponential(1.0, size)

    def scaled(self, factor: float) -> HyperExponential:
        """Give the distribution of factor · X."""
        check_number("factor", factor)
        return HyperExponential(
            weights=self.weights, means_s=tuple(factor * mean_s for mean_s in self.means_s)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseType:
    """The time until a Markov chain with transition rates ``generator`` (1/s) leaves its phases.

    P[X > t] = initial · exp(generator · t) · 1. What ``initial`` lacks to 1 is an atom at 0. A row
    of the generator sums to minus the rate at which its phase ends the whole.

    >>> law = PhaseType(initial=(1.0, 0.0), generator=((-2.0, 2.0), (0.0, -2.0)))  # Erlang of 2
    >>> law.mean_s, law.scv
    (1.0, 0.5)
    """

    initial: tuple[float, ...]
    generator: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "initial", as_floats(self.initial))
        object.__setattr__(self, "generator", tuple(as_floats(row) for row in self.generator))
        check(initial_problems(self.initial), generator_problems(self.generator, len(self.initial)))

    @property
    def mean_s(self) -> float:
        """The sum of initial · (−generator)⁻¹, in seconds."""
        return float(self._moments()[0])

    @property
    def scv(self) -> float:
        """From E[X²] = 2 · initial · generator⁻² · 1."""
        mean_s, square_s2 = self._moments()
        return max(square_s2 / mean_s**2 - 1.0, 0.0) if mean_s > 0 else 0.0

    def cdf(self, t_s: npt.ArrayLike) -> Reals:
        """Compute P[X ≤ t] = 1 − initial · exp(generator · t) · 1, to rounding."""
        return ended_share(_initial(self), np.array(self.generator), t_s)

    def quantile(self, u: npt.ArrayLike) -> Reals:
        """Find the least time whose CDF, as computed, reaches u, in seconds; infinite at u = 1.

        Rounding makes the CDF waver by 1e-16: none of ``LOOK_BACK`` numbers before reaches u.
        """
        return _quantile(self, as_shares(u))

    def transform(self, z: npt.ArrayLike) -> Complexes:
        """Compute E[exp(−zX)] = atom + initial (z − generator)⁻¹ exit rates."""
        nodes = as_nodes(z)
        flat = nodes.ravel()
        start, rates = _initial(self), np.array(self.generator)
        leaving = np.maximum(-rates.sum(axis=1), 0.0)
        value = np.empty(flat.shape, dtype=np.complex128)
        step = max(1, _BLOCK // rates.size)
        for begin in range(0, flat.size, step):
            part = flat[begin : begin + step, None, None]
            solved = np.linalg.solve(part * np.eye(len(start)) - rates, leaving[:, None])
            value[begin : begin + step] = solved[..., 0] @ start
        value += 1.0 - start.sum()
        return value.reshape(nodes.shape)

    def sample(self, rng: np.random.Generator, size: Size) -> Reals:
        """Draw independent samples by walking the chain, in seconds."""
        total_s = np.zeros(size)
        flat = total_s.reshape(-1)
        start, stay_s, jumps = walk(self)
        phase = np.searchsorted(start, rng.random(flat.size), side="right")
        alive = np.flatnonzero(phase < len(start))
        while alive.size:
            at = phase[alive]
            flat[alive] += stay_s[at] * rng.exponential(1.0, alive.size)
            phase[alive] = (rng.random(alive.size)[:, None] >= jumps[at]).sum(axis=1)
            alive = alive[phase[alive] < len(start)]
        return total_s

    def scaled(self, factor: float) -> PhaseType:
        """Give the distribution of factor · X."""
        check_number("factor", factor)
        generator = tuple(tuple(rate / factor for rate in row) for row in self.generator)
        return PhaseType(initial=self.initial, generator=generator)

    def _moments(self) -> tuple[float, float]:
        rates = np.array(self.generator)
        once = time_to_end(rates, np.ones(len(rates)))
        twice = time_to_end(rates, once)
        start = _initial(self)
        return float(start @ once), float(2.0 * (start @ twice))


class Phases(NamedTuple):
    """A phase-type law as arrays, plus a constant: ``shift_s`` + PH(``initial``, ``generator``)."""

    initial: Reals
    generator: Reals  # 1/s
    shift_s: float


class Walk(NamedTuple):
    """How to walk a chain: cumulative start, mean stay and cumulative jump shares of each phase.

    A uniform number at or above the last entry of a row ends the walk.
    """

    start: Reals
    stay_s: Reals
    jumps: Reals


def walk(law: PhaseType) -> Walk:
    """Make the chain of a phase-type distribution in the form in which it is sampled."""
    rates = np.array(law.generator)
    stay_s = -1.0 / np.diag(rates)
    to = rates * stay_s[:, None]
    np.fill_diagonal(to, 0.0)
    return Walk(np.cumsum(_initial(law)), stay_s, np.cumsum(to, axis=1))


def phases(law: Law) -> Phases | None:
    """Write a distribution as phases plus a shift, exactly; None if it is of no such family.

    A constant has no phases and only a shift. An Erlang law of shape above ``MOST_PHASES`` gives
    None: its matrix would cost more than it helps.

    >>> phases(Exponential(mean_s=0.5))
    Phases(initial=array([1.]), generator=array([[-2.]]), shift_s=0.0)
    """
    base, shift_s = unshifted(law)
    match base:
        case Deterministic():
            return Phases(np.empty(0), np.empty((0, 0)), shift_s + base.value_s)
        case Exponential():
            return Phases(np.ones(1), np.array([[-1.0 / base.mean_s]]), shift_s)
        case HyperExponential():
            rates = np.diag(-1.0 / np.array(base.means_s))
            return Phases(_shares(base.weights), rates, shift_s)
        case Gamma() if float(base.shape).is_integer() and base.shape <= MOST_PHASES:
            count = int(base.shape)
            rate = count / base.mean_s
            chain = rate * (np.eye(count, k=1) - np.eye(count))
            return Phases(np.eye(count)[0], chain, shift_s)
        case PhaseType():
            return Phases(_initial(base), np.array(base.generator), shift_s)
    return None


def _shares(weights: Sequence[float]) -> Reals:
    """Normalise weights that sum to 1 but for rounding."""
    values = np.array(weights, dtype=np.float64)
    values /= values.sum()
    return values


def _initial(law: PhaseType) -> Reals:
    """Give the initial shares; a sum within rounding of 1 is meant to be 1, not an atom."""
    values = np.array(law.initial)
    return values / values.sum() if abs(values.sum() - 1.0) <= WEIGHT_SLACK else values


def _quantile(law: HyperExponential | PhaseType, u: Reals) -> Reals:
    atom = float(law.cdf(0.0))
    inside = (u > atom) & (u < 1.0)
    time = np.where(u == 1.0, np.inf if atom < 1.0 else 0.0, 0.0)
    if np.any(inside):
        time[inside] = invert(law.cdf, u[inside], law.mean_s)
    return time


def initial_problems(initial: Sequence[float]) -> Iterator[Problem]:
    """Yield problems of the shares of chains that begin in each phase."""
    at = "PhaseType.initial"
    for share in initial:
        yield from number_problems(at, share, positive=False)
    if not initial or sum(initial) > 1.0 + WEIGHT_SLACK:
        saw = f"{len(initial)} shares that sum to {sum(initial):.12g}"
        yield Problem(at=at, saw=saw, want="at least one share, and a sum of at most 1")


def generator_problems(generator: Sequence[Sequence[float]], count: int) -> Iterator[Problem]:
    """Yield problems of a generator that is not one of ``count`` phases that ends for sure."""
    at = "PhaseType.generator"
    problems = [each for row, _ in enumerate(generator) for each in row_problems(generator, row)]
    problems += size_problems(len(generator), count)
    yield from problems
    if problems or not count:
        return
    rates = np.array(generator)
    stay = np.diag(rates)
    ends = leaving(rates) > 1e-12 * -stay
    for _ in range(count):
        ends = ends | ((rates - np.diag(stay)) @ ends.astype(np.float64) > 0)
    if not np.all(ends):
        yield Problem(
            at=at,
            saw="phases that are never left",
            want="a rate out of every phase, so that the time ends",
        )
    elif not (slowest_s := float(time_to_end(rates, np.ones(count)).max())) <= LONGEST_MEAN_S:
        saw = f"a chain that takes {slowest_s:.3g} s to end"
        yield Problem(at=at, saw=saw, want=f"at most {LONGEST_MEAN_S:g} s on average")


def size_problems(rows: int, phases: int) -> Iterator[Problem]:
    """Yield a problem if there are not as many rows as phases."""
    if rows != phases:
        want = f"{phases} rows of {phases} rates, as many as initial shares"
        yield Problem(at="PhaseType.generator", saw=f"{rows} rows", want=want)


def row_problems(generator: Sequence[Sequence[float]], row: int) -> Iterator[Problem]:
    """Yield problems of one row: its length, its diagonal, the rates beside it, its sum."""
    at, rates, count = f"PhaseType.generator[{row + 1}]", generator[row], len(generator)
    if len(rates) != count:
        yield Problem(at=at, saw=f"{len(rates)} rates", want=f"{count} rates, as there are rows")
        return
    stay = rates[row]
    if not np.all(np.isfinite(rates)) or stay >= 0:
        want = "finite rates with a negative diagonal"
        yield Problem(at=at, saw=f"{stay:g} on the diagonal", want=want)
    low = min((rate for other, rate in enumerate(rates) if other != row), default=0.0)
    if low < 0:
        yield Problem(at=at, saw=f"{low:g} between phases", want="0 or more beside the diagonal")
    if stay < 0 and -sum(rates) < WEIGHT_SLACK * stay:
        yield Problem(at=at, saw=f"a sum of {sum(rates):g}", want="a row that sums to at most 0")


def equilibrium(law: PhaseType) -> Reals:
    """Compute the shares of time spent in each phase.

    They are the probabilities that a random moment finds the chain there.
    """
    spent_s = np.linalg.solve(-np.array(law.generator).T, _initial(law))
    shares: Reals = np.maximum(spent_s, 0.0) / np.maximum(spent_s, 0.0).sum()
    return shares
