"""A stage of an event's way: a defective law of delays, and how stages follow each other.

The mass of a stage is the probability that the event survives it; what is lost is kept by cause. Of
the delay, what is certain is a *shift*, summed exactly; what is random is a tuple of independent
*delays*, of which only numbers are asked here (moments, transform, phases, lattice).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tidings.model.behaviour import Channel
from tidings.model.laws import (
    Deterministic,
    Empirical,
    Exponential,
    Gamma,
    HyperExponential,
    Law,
    LogNormal,
    PhaseType,
    Uniform,
    Weibull,
    left_share,
    phases,
    unshifted,
)
from tidings.theory.lattice import Lattice
from tidings.theory.pieces import Pieces, law_pieces

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]
Chain = tuple[Floats, Floats]  # initial shares and generator (1/s) of a phase-type law

_VERY_SMOOTH = 8.0  # order given to laws whose density has every derivative


class Delay(Protocol):
    """A random delay, its certain part taken off. Delays are the same only if one object."""

    @property
    def mean_s(self) -> float:
        """E[X], in seconds."""
        ...

    @property
    def variance_s2(self) -> float:
        """Var X, in seconds squared."""
        ...

    @property
    def atom(self) -> float:
        """P[X = 0]."""
        ...

    @property
    def order(self) -> float:
        """How fast the transform falls: like 1/|z|^order. The orders of a sum's parts add up."""
        ...

    @property
    def kinked(self) -> bool:
        """Whether the law has steps or corners at delays above 0."""
        ...

    def chain(self) -> Chain | None:
        """The delay as a phase-type law, exactly, or None."""
        ...

    def cdf(self, t_s: Floats) -> Floats | None:
        """P[X ≤ t] in closed form, or None where there is none."""
        ...

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)]."""
        ...

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Images of the delay made earlier and made later, both whole steps of the lattice."""
        ...


@runtime_checkable
class Pieced(Protocol):
    """A delay made of pieces with densities: its rounding error is known beforehand."""

    @property
    def pieces(self) -> Pieces:
        """How many, and how steep."""
        ...

    def alone(self, t_s: Floats) -> Floats:
        """P[there is one piece, and it is at most t]."""
        ...

    def rounded(self, lattice: Lattice) -> Complexes:
        """The image of the delay, every piece rounded (or, without bounds, shared) to points."""
        ...


@runtime_checkable
class Computed(Protocol):
    """A delay whose CDF is not exact to rounding."""

    @property
    def cdf_error(self) -> float:
        """How far the CDF can be off."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LawDelay:
    """A random delay that follows a law of the model, its shift taken off."""

    law: Law
    atom: float
    order: float
    kinked: bool
    cdf_error: float = 0.0  # where the law itself was worked out

    @property
    def mean_s(self) -> float:
        """E[X], in seconds."""
        return self.law.mean_s

    @property
    def variance_s2(self) -> float:
        """Var X, in seconds squared."""
        return self.law.scv * self.law.mean_s**2

    def chain(self) -> Chain | None:
        """The law's phases, if it has them."""
        found = phases(self.law)
        return None if found is None else (found.initial, found.generator)

    def cdf(self, t_s: Floats) -> Floats | None:
        """P[X ≤ t]."""
        return self.law.cdf(t_s)

    def transform(self, z: Complexes) -> Complexes:
        """E[exp(−zX)]."""
        return self.law.transform(z)

    def on_lattice(self, lattice: Lattice) -> tuple[Complexes, Complexes]:
        """Images of the delay made earlier and made later."""
        return lattice.enclosing(self.law.cdf)

    @property
    def pieces(self) -> Pieces:
        """One; none with the probability of 0."""
        return law_pieces(self.law)

    def alone(self, t_s: Floats) -> Floats:
        """P[0 < X ≤ t]."""
        found: Floats = self.law.cdf(t_s) - self.atom
        return found

    def rounded(self, lattice: Lattice) -> Complexes:
        """Rounded to the nearest point; shared between two where the density has no bounds."""
        if self.pieces.bounded:
            return lattice.rounded(self.law.cdf)
        return lattice.shared(lambda t_s: self.law.mean_s * left_share(self.law, t_s))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage:
    """What becomes of an event on a piece of its way.

    >>> first = Stage(survives=0.9, lost={"link": 0.1}, shift_s=1.0)
    >>> both = in_series(first, Stage(survives=0.5, lost={"overload": 0.5}, shift_s=2.0))
    >>> both.survives, both.lost, both.shift_s
    (0.45, {'link': 0.1, 'overload': 0.45}, 3.0)
    """

    survives: float = 1.0
    lost: Mapping[str, float] = field(default_factory=dict)  # shares by cause, each by its first
    shift_s: float = 0.0
    delays: tuple[Delay, ...] = ()
    # The part that never waits in a buffer; of the rest, what is late is dropped. None: all of it.
    unkept: Stage | None = None

    @property
    def mean_s(self) -> float:
        """Mean delay of what survives, in seconds."""
        return self.shift_s + sum(delay.mean_s for delay in self.delays)


NOTHING = Stage()


def law_error(delays: tuple[Delay, ...]) -> float:
    """How far the CDF of a sum can be off since those of its parts are: no further than they."""
    return sum((each.cdf_error for each in delays if isinstance(each, Computed)), 0.0)


def in_series(first: Stage, second: Stage) -> Stage:
    """One stage after the other: masses multiply, delays add up, the first loss counts."""
    lost = dict(first.lost)
    for cause, share in second.lost.items():
        lost[cause] = lost.get(cause, 0.0) + first.survives * share
    return Stage(
        survives=first.survives * second.survives,
        lost=lost,
        shift_s=first.shift_s + second.shift_s,
        delays=first.delays + second.delays,
        unkept=_unkept(first, second),
    )


def lossless(stage: Stage) -> Stage:
    """The same stage for what is sent again until it arrives: its delay alone."""
    return Stage(shift_s=stage.shift_s, delays=stage.delays)


def _unkept(first: Stage, second: Stage) -> Stage | None:
    if first.unkept is None and second.unkept is None:
        return None
    return in_series(first.unkept or first, second.unkept or second)


def law_stage(law: Law, *, cdf_error: float = 0.0) -> Stage:
    """A stage that loses nothing and takes a time of this law, which may be off by an error."""
    base, shift_s = _without_start(*unshifted(law))
    if isinstance(base, Deterministic):
        return Stage(shift_s=shift_s + base.value_s)
    order, kinked = _smoothness(base)
    atom = float(base.cdf(0.0))
    delay = LawDelay(law=base, atom=atom, order=order, kinked=kinked, cdf_error=cdf_error)
    return Stage(shift_s=shift_s, delays=(delay,))


def _without_start(law: Law, shift_s: float) -> tuple[Law, float]:
    """A law that begins later than 0 as a shift and a law that begins at 0."""
    match law:
        case Uniform() if law.low_s > 0:
            return Uniform(low_s=0.0, high_s=law.high_s - law.low_s), shift_s + law.low_s
        case Empirical():
            first = next(index for index, weight in enumerate(law.weights) if weight > 0)
            start_s = law.edges_s[first]
            if start_s > 0:
                edges_s = tuple(edge_s - start_s for edge_s in law.edges_s[first:])
                return Empirical(edges_s=edges_s, weights=law.weights[first:]), shift_s + start_s
    return law, shift_s


def channel_stage(channel: Channel) -> Stage:
    """A link: loses 1 − reliability, takes its delay."""
    found = law_stage(channel.delay)
    lost = 1.0 - channel.reliability
    return Stage(
        survives=channel.reliability,
        lost={"link": lost} if lost > 0 else {},
        shift_s=found.shift_s,
        delays=found.delays,
    )


def _smoothness(law: Law) -> tuple[float, bool]:
    match law:
        case Exponential() | HyperExponential():
            return 1.0, False
        case Gamma() | Weibull():
            return min(law.shape, _VERY_SMOOTH), False
        case LogNormal():
            return _VERY_SMOOTH, False
        case PhaseType():
            return (1.0 if law.cdf(0.0) == 0.0 else 0.0), False
        case Uniform():
            return 1.0, True
        case Empirical():
            steps = any(
                low == high and weight > 0
                for low, high, weight in zip(
                    law.edges_s[:-1], law.edges_s[1:], law.weights, strict=True
                )
            )
            return (0.0 if steps else 1.0), True
    return 0.0, True  # a law we know nothing of may have steps anywhere
