"""The law of the time a path takes, whatever the path is made of.

The certain part is a shift, taken off exactly. The form of the random rest is chosen by what it is:

- nothing random: a step; a single delay with a closed form: that, to rounding;
- phase-type delays of no more than ``MOST_PHASES`` phases together: one Markov chain, to rounding;
- laws with corners or steps (constant or uniform services, histograms) that too few smooth delays
  round off: a lattice law, every delay rounded to the nearest point, so fine that the bound of its
  error (``pieces``) is what is wanted; where there is no such bound, two lattice laws, rounded down
  and up, that enclose the truth;
- everything else: transform values at inversion nodes, with the error seen between two rules times
  a caution (an estimate of the error, no proven bound, as all others are); where that is more than
  wanted (narrow laws) a longer series, then the lattice is tried too and the best
  one is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from tidings.theory.inversion import (
    FEWER_TERMS,
    TERMS,
    NodeValues,
    inverted_cdf,
    series_cdf,
    series_rule,
)
from tidings.theory.lattice import NOISE, Lattice, bracket
from tidings.theory.phase_type import ROUNDING, Chain, chain_cdf, chain_in_series
from tidings.theory.pieces import rounding_error
from tidings.theory.stages import Complexes, Delay, Floats, Pieced, Stage, law_error

MOST_PHASES = 16
SMOOTH_ENOUGH = 5.0  # orders of smoothness from which inversion is better than a lattice
WANTED_ERROR = 5e-7  # of rounded laws; refined until it is reached, or the lattice is full
ENCLOSED_ERROR = 5e-4  # the same, of laws that are rounded down and up: far dearer
_FIRST_POINTS, _MOST_POINTS = 1 << 12, 1 << 17
_MOST_VALUES, _MOST_FORMS = 1 << 23, 1 << 15  # remembered before all is forgotten


class Estimate(NamedTuple):
    """A number and how far off it can be: a bound, for inverted laws an estimate of one."""

    value: Floats
    error: Floats


class Randomness(Protocol):
    """The law of a sum of delays, asked at times above 0."""

    def cdf(self, t_s: Floats) -> Estimate:
        """P[sum ≤ t] with its error, for t > 0."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedForm:
    """A single delay that knows its own CDF."""

    delay: Delay

    def cdf(self, t_s: Floats) -> Estimate:
        """P[X ≤ t] as the law gives it."""
        value = self.delay.cdf(t_s)
        assert value is not None
        return Estimate(value, np.full(value.shape, ROUNDING))


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkovChain:
    """Phase-type delays in series."""

    chain: Chain

    def cdf(self, t_s: Floats) -> Estimate:
        """P[sum ≤ t] by matrix exponentials."""
        return Estimate(*chain_cdf(self.chain, t_s))


@dataclass(frozen=True, slots=True, kw_only=True)
class Enclosed:
    """Delays of any kind between two lattice laws."""

    delays: tuple[Delay, ...]
    workshop: Workshop
    most_points: int = _MOST_POINTS

    def cdf(self, t_s: Floats) -> Estimate:
        """P[sum ≤ t] on lattices that end at a power of two, fine enough for the wanted error."""
        value, error = np.empty(t_s.shape), np.empty(t_s.shape)
        level = _levels(self.delays, t_s)
        for each in np.unique(level):
            mine = level == each
            points = min(_FIRST_POINTS, self.most_points)
            while True:
                lattice = self.workshop.lattice(int(each), points)
                early, late = self.workshop.images(self.delays, lattice)
                value[mine], error[mine] = bracket(lattice, early, late, t_s[mine])
                if error[mine].max() <= ENCLOSED_ERROR or points >= self.most_points:
                    break
                points *= 4
        return Estimate(value, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounded:
    """Delays made of pieces with densities, each rounded to the nearest point of a lattice."""

    delays: tuple[Delay, ...]
    pieced: tuple[Pieced, ...]  # the same delays
    workshop: Workshop
    most_points: int = _MOST_POINTS

    def cdf(self, t_s: Floats) -> Estimate:
        """P[sum ≤ t] on lattices that end at a power of two, so fine that the bound is wanted."""
        value, error = np.empty(t_s.shape), np.empty(t_s.shape)
        level = _levels(self.delays, t_s)
        parts = [delay.pieces for delay in self.pieced]
        for each in np.unique(level):
            mine = level == each
            points = min(_FIRST_POINTS >> 2, self.most_points)
            while (bound := rounding_error(parts, 2.0**each / points)) > WANTED_ERROR:
                if points >= self.most_points:
                    break
                points *= 2
            lattice = self.workshop.lattice(int(each), points)
            value[mine] = self._values(lattice, t_s[mine])
            error[mine] = bound + NOISE
        coarse = error > ENCLOSED_ERROR
        if np.any(coarse):
            other = Enclosed(delays=self.delays, workshop=self.workshop)
            value[coarse], error[coarse] = _better(
                Estimate(value[coarse], error[coarse]), other.cdf(t_s[coarse])
            )
        return Estimate(np.clip(value, 0.0, 1.0), error)

    def _values(self, lattice: Lattice, t_s: Floats) -> Floats:
        """Straight between the points k + ½; what is a single piece, exactly."""
        below = self.workshop.sums(self.pieced, lattice)
        place = t_s / lattice.step_s - 0.5
        at = np.clip(np.floor(place), -1, lattice.points - 1).astype(np.int64)
        middles_s = lattice.step_s * (np.stack([at, at + 1]) + 0.5)
        reached = np.stack([below[np.maximum(at, 0)], below[at + 1]])
        several = reached - self._few(np.maximum(middles_s, 0.0))
        several[0, at < 0] = 0.0
        part = place - at
        found: Floats = (1.0 - part) * several[0] + part * several[1] + self._few(t_s)
        return found

    def _few(self, t_s: Floats) -> Floats:
        """P[sum ≤ t, and there is at most one piece]."""
        none = [delay.pieces.none for delay in self.pieced]
        found: Floats = np.full(t_s.shape, math.prod(none))
        for index, delay in enumerate(self.pieced):
            others = math.prod(none[:index]) * math.prod(none[index + 1 :])
            if others > 0.0:
                found += others * delay.alone(t_s)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Inverted:
    """Smooth delays, by their transforms."""

    delays: tuple[Delay, ...]
    workshop: Workshop

    def cdf(self, t_s: Floats) -> Estimate:
        """P[sum ≤ t] by inversion, or from the lattice where that is surer."""
        value, error = inverted_cdf(self.workshop.nodes, self.delays, t_s)
        for surer in (self._by_series, self._by_lattice):
            unsure = error > WANTED_ERROR
            if np.any(unsure):
                known = Estimate(value[unsure], error[unsure])
                value[unsure], error[unsure] = _better(known, surer(t_s[unsure]))
        return Estimate(value, error)

    def _by_series(self, t_s: Floats) -> Estimate:
        return Estimate(*series_cdf(self.workshop.series, self.delays, t_s))

    def _by_lattice(self, t_s: Floats) -> Estimate:
        return on_lattice(self.delays, self.workshop).cdf(t_s)


@dataclass(frozen=True, kw_only=True)
class Workshop:
    """What the laws of one prediction share: node values and lattice images, each made once."""

    nodes: NodeValues = field(default_factory=lambda: NodeValues((TERMS, FEWER_TERMS)))
    series: NodeValues = field(default_factory=lambda: NodeValues(nodes=series_rule()[0]))
    _lattices: dict[tuple[int, int], Lattice] = field(default_factory=dict)
    _images: dict[tuple[Delay, Lattice], tuple[Complexes, Complexes]] = field(default_factory=dict)
    _rounded: dict[tuple[Pieced, Lattice], Complexes] = field(default_factory=dict)
    _sums: dict[tuple[tuple[Pieced, ...], Lattice], Floats] = field(default_factory=dict)
    _chains: dict[Delay, Chain | None] = field(default_factory=dict)
    _forms: dict[tuple[Delay, ...], Randomness] = field(default_factory=dict)

    def lattice(self, level: int, points: int) -> Lattice:
        """The lattice of so many points up to 2^level seconds."""
        key = (level, points)
        if key not in self._lattices:
            self._lattices[key] = Lattice(step_s=2.0**level / points, points=points)
        return self._lattices[key]

    def images(self, delays: tuple[Delay, ...], lattice: Lattice) -> tuple[Complexes, Complexes]:
        """The images of the sum of the delays, made earlier and made later."""
        early: Complexes = np.ones(lattice.points + 1, dtype=np.complex128)
        late = early.copy()
        for delay in delays:
            key = (delay, lattice)
            found = self._images.get(key)
            if found is None:
                if len(self._images) * lattice.points > _MOST_VALUES:
                    self._images.clear()
                found = self._images[key] = delay.on_lattice(lattice)
            early *= found[0]
            late *= found[1]
        return early, late

    def sums(self, delays: tuple[Pieced, ...], lattice: Lattice) -> Floats:
        """The CDF at the lattice's points of the sum of the delays, each of them rounded."""
        key = (delays, lattice)
        found = self._sums.get(key)
        if found is None:
            image: Complexes = np.ones(lattice.points + 1, dtype=np.complex128)
            for delay in delays:
                image *= self._image(delay, lattice)
            if len(self._sums) * lattice.points > _MOST_VALUES:
                self._sums.clear()
            found = self._sums[key] = lattice.cumulative(image)
        return found

    def _image(self, delay: Pieced, lattice: Lattice) -> Complexes:
        key = (delay, lattice)
        found = self._rounded.get(key)
        if found is None:
            if len(self._rounded) * lattice.points > _MOST_VALUES:
                self._rounded.clear()
            found = self._rounded[key] = delay.rounded(lattice)
        return found

    def randomness(self, delays: tuple[Delay, ...]) -> Randomness:
        """The law of the sum of the delays, in the form that suits them; delays in any order."""
        key = tuple(sorted(delays, key=id))
        found = self._forms.get(key)
        if found is None:
            if len(self._forms) > _MOST_FORMS:
                self._forms.clear()
            found = self._forms[key] = _form(key, self)
        return found

    def chain(self, delay: Delay) -> Chain | None:
        """The phases of a delay, if it has them."""
        if delay not in self._chains:
            self._chains[delay] = delay.chain()
        return self._chains[delay]


def _form(delays: tuple[Delay, ...], workshop: Workshop) -> Randomness:
    if has_closed_form(delays):
        return ClosedForm(delay=delays[0])
    chains = [workshop.chain(delay) for delay in delays]
    known = [chain for chain in chains if chain is not None]
    if len(known) == len(chains) and sum(len(chain[0]) for chain in known) <= MOST_PHASES:
        return MarkovChain(chain=chain_in_series(known))
    if is_rough(delays):
        return on_lattice(delays, workshop)
    return Inverted(delays=delays, workshop=workshop)


def on_lattice(
    delays: tuple[Delay, ...], workshop: Workshop, most_points: int = _MOST_POINTS
) -> Rounded | Enclosed:
    """The law of a sum on a lattice: rounded where the error is known beforehand, else enclosed."""
    pieced = tuple(delay for delay in delays if isinstance(delay, Pieced))
    known = len(pieced) == len(delays)
    if known and math.isfinite(rounding_error([delay.pieces for delay in pieced], 1.0)):
        return Rounded(delays=delays, pieced=pieced, workshop=workshop, most_points=most_points)
    return Enclosed(delays=delays, workshop=workshop, most_points=most_points)


def _levels(delays: tuple[Delay, ...], t_s: Floats) -> Floats:
    """Times far below the mean share the lattice of the mean, since little lies there."""
    mean_s = sum(delay.mean_s for delay in delays)
    level: Floats = np.ceil(np.log2(np.maximum(t_s, 0.125 * mean_s)))
    return level


def _better(one: Estimate, other: Estimate) -> Estimate:
    """At every time the estimate with the smaller error."""
    chosen = other.error < one.error
    return Estimate(
        np.where(chosen, other.value, one.value), np.where(chosen, other.error, one.error)
    )


def has_closed_form(delays: tuple[Delay, ...]) -> bool:
    """Whether the sum is a single delay that knows its own CDF."""
    return len(delays) == 1 and delays[0].cdf(np.zeros(1)) is not None


def is_rough(delays: tuple[Delay, ...]) -> bool:
    """Whether the sum has corners that inversion would smear."""
    kinked = any(delay.kinked for delay in delays)
    return kinked and sum(delay.order for delay in delays) < SMOOTH_ENOUGH


@dataclass(frozen=True, slots=True, kw_only=True)
class PathLaw:
    """The defective law of a path's delay: its mass is the share of events that survive."""

    mass: float
    shift_s: float
    mean_s: float  # of what survives
    atom: float  # share of what survives that takes the shift and nothing more
    randomness: Randomness | None  # None: nothing beyond the shift
    parts_error: float  # what the laws of the delays themselves can be off, together

    def cdf(self, t_s: float | Floats) -> Estimate:
        """The share of events that survive and take at most t, and how far that can be off."""
        times = np.asarray(t_s, dtype=np.float64)
        rest_s = np.atleast_1d(remaining(times, self.shift_s))
        value = np.where(rest_s >= 0.0, self.atom, 0.0)
        error = np.where(rest_s == 0.0, ROUNDING, 0.0)
        inside = (rest_s > 0.0) & np.isfinite(rest_s)
        if self.randomness is not None and np.any(inside):
            value[inside], error[inside] = self.randomness.cdf(rest_s[inside])
        error[(rest_s >= 0.0) & np.isfinite(rest_s)] += self.parts_error
        value[rest_s == np.inf] = 1.0
        shape = times.shape
        return Estimate((self.mass * value).reshape(shape), (self.mass * error).reshape(shape))

    def quantile(self, share: float) -> float:
        """The least delay that a share of the surviving events does not exceed, in seconds."""
        if self.mass == 0.0:
            return math.nan
        if self.randomness is None or share <= self.atom:
            return self.shift_s
        low, high = 0.0, max(self.mean_s - self.shift_s, 1e-300)
        while float(self.cdf(self.shift_s + high).value) < share * self.mass:
            low, high = high, 2.0 * high
        for _ in range(100):
            middle = 0.5 * (low + high)
            if float(self.cdf(self.shift_s + middle).value) < share * self.mass:
                low = middle
            else:
                high = middle
            if high - low <= 1e-13 * high:
                break
        return self.shift_s + high


def remaining(t_s: Floats, shift_s: float | Floats) -> Floats:
    """What is left of t after the shift; what rounding alone has made late is not late.

    Shifts are sums of many numbers, so that 0.1 + 0.2 must not miss a lifetime of 0.3.
    """
    rest: Floats = t_s - shift_s
    return np.where(np.abs(rest) <= 1e-14 * shift_s, 0.0, rest)


def path_law(stage: Stage, workshop: Workshop) -> PathLaw:
    """The law of a path, given as the one stage that its stages make in series."""
    return PathLaw(
        mass=stage.survives,
        shift_s=stage.shift_s,
        mean_s=stage.mean_s,
        atom=math.prod(delay.atom for delay in stage.delays),
        randomness=workshop.randomness(stage.delays) if stage.delays else None,
        parts_error=law_error(stage.delays),
    )
