"""Several ways of which one is used: a weighted sum of stages, as one stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidings.theory.lattice import Lattice
from tidings.theory.stages import Chain, Complexes, Delay, Floats, Stage


@dataclass(frozen=True, kw_only=True, eq=False)
class Mixture:
    """The delay of one of several sums of delays, each with its share and a shift of its own."""

    shares: tuple[float, ...]
    shifts_s: tuple[float, ...]
    parts: tuple[tuple[Delay, ...], ...]

    @property
    def mean_s(self) -> float:
        """E[X], in seconds."""
        return float(np.dot(self.shares, self._means_s))

    @property
    def variance_s2(self) -> float:
        """Var X, in seconds squared."""
        inner = [sum(delay.variance_s2 for delay in part) for part in self.parts]
        spread = np.square(self._means_s) + inner
        return float(np.dot(self.shares, spread)) - self.mean_s**2

    @property
    def _means_s(self) -> Floats:
        inner = [sum(delay.mean_s for delay in part) for part in self.parts]
        return np.array(self.shifts_s) + inner

    @property
    def _atoms(self) -> list[float]:
        """Of each part, at its shift."""
        return [float(np.prod([delay.atom for delay in part])) for part in self.parts]

    @property
    def atom(self) -> float:
        """P[X = 0]."""
        here = zip(self.shares, self.shifts_s, self._atoms, strict=True)
        return sum(share * atom for share, shift_s, atom in here if shift_s == 0.0)

    @property
    def order(self) -> float:
        """That of the roughest part."""
        return min(sum(delay.order for delay in part) for part in self.parts)

    @property
    def kinked(self) -> bool:
        """Whether a part has corners, or begins with a step later than at 0."""
        steps = any(s > 0.0 and a > 0.0 for s, a in zip(self.shifts_s, self._atoms, strict=True))
        return steps or any(delay.kinked for part in self.parts for delay in part)

    def chain(self) -> Chain | None:
        """None: parts may be shifted."""
        return None

    def cdf(self, t_s: Floats) -> Floats | None:
        """Steps, where nothing is random but which part it is; else None."""
        if any(self.parts):
            return None
        times = np.asarray(t_s)[..., None]
        found: Floats = (times >= np.array(self.shifts_s)) @ np.array(self.shares)
        return found

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)]."""
        total: Complexes = np.zeros(z.shape, np.complex128)
        for share, shift_s, part in zip(self.shares, self.shifts_s, self.parts, strict=True):
            term = np.asarray(share * np.exp(-z * shift_s), np.complex128)
            for delay in part:
                term = term * delay.transform(z)
            total = total + term
        return total

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Images of the mixture made earlier and made later."""
        early: Complexes = np.zeros(lattice.points + 1, np.complex128)
        late = early.copy()
        for share, shift_s, part in zip(self.shares, self.shifts_s, self.parts, strict=True):
            steps = lattice.step_s * np.arange(lattice.points + 2)
            below = (steps >= shift_s).astype(np.float64)
            first, second = lattice.image(below[1:]), lattice.image(below[:-1])
            for delay in part:
                one, other = delay.on_lattice(lattice)
                first, second = first * one, second * other
            early += share * first
            late += share * second
        return early, late


def one_of(ways: Sequence[tuple[float, Stage]], lost: dict[str, float]) -> Stage:
    """The stage of an event that takes each way with its probability, or is lost before."""
    survives = sum(share * way.survives for share, way in ways)
    causes = dict(lost)
    for share, way in ways:
        for cause, part in way.lost.items():
            causes[cause] = causes.get(cause, 0.0) + share * part
    used = [(share * way.survives, way) for share, way in ways if share * way.survives > 0.0]
    if not used:
        return Stage(survives=0.0, lost=causes)
    shift_s = min(way.shift_s for _, way in used)
    unkept = None
    if any(way.unkept is not None for _, way in used):
        unkept = one_of([(share, way.unkept or way) for share, way in ways], lost)
    return Stage(
        survives=survives,
        lost=causes,
        shift_s=shift_s,
        delays=_delays(used, shift_s),
        unkept=unkept,
    )


def _delays(used: list[tuple[float, Stage]], shift_s: float) -> tuple[Delay, ...]:
    first = used[0][1]
    if all(way.shift_s == shift_s and way.delays == first.delays for _, way in used):
        return first.delays
    total = sum(share for share, _ in used)
    return (
        Mixture(
            shares=tuple(share / total for share, _ in used),
            shifts_s=tuple(way.shift_s - shift_s for _, way in used),
            parts=tuple(way.delays for _, way in used),
        ),
    )
