"""Laws fitted to times of which some are cut off, and how well they fit.

Every family is fitted twice by maximum likelihood: freely, which is what the literature quotes, and
with the mean of the measured law kept, which is what a system needs if only the *shape* of its
times is to differ. A time t that was cut off counts as P[X > t].
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import optimize, special, stats

from tidings.characterisation.fit.durations import Durations, measure
from tidings.model.arrays import Floats
from tidings.model.laws import Exponential, HyperExponential, Law, LogNormal, Weibull

_LEAST_SHAPE, _MOST_SHAPE = 0.1, 5.0
_MOST_RATIO = 1e6  # of the two means of a mixture
_ONE_LAW = 1e-3  # of the mean that a second law changes; less is none
_LEAST_TAIL, _MOST_TAIL = 1.2, 50.0  # exponents of a Pareto law whose mean is kept: it has one
_FAR = 40.0  # of a logit or logarithm that is looked at
_FARTHEST = 20.0  # of a free shape: times that hardly differ would have it go on for ever


class Fittable(Protocol):
    """What likelihood asks of a law."""

    def logpdf(self, t: Floats) -> Floats:
        """Compute the logarithm of the density."""
        ...

    def logsf(self, t: Floats) -> Floats:
        """Compute the logarithm of P[X > t]."""
        ...

    def cdf(self, t: Floats) -> Floats:
        """Compute P[X ≤ t]."""
        ...

    def mean(self) -> float:
        """Compute E[X]; may be infinite."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoSpeeds:
    """A mixture of two exponential laws, as likelihood asks for it."""

    short_s: float
    long_s: float
    share: float  # of the long one

    def logpdf(self, t: Floats) -> Floats:
        """Compute the logarithm of the density."""
        short = math.log1p(-self.share) - math.log(self.short_s) - t / self.short_s
        long = math.log(self.share) - math.log(self.long_s) - t / self.long_s
        density: Floats = np.logaddexp(short, long)
        return density

    def logsf(self, t: Floats) -> Floats:
        """Compute the logarithm of P[X > t]."""
        short, long = math.log1p(-self.share), math.log(self.share)
        survival: Floats = np.logaddexp(short - t / self.short_s, long - t / self.long_s)
        return survival

    def cdf(self, t: Floats) -> Floats:
        """Compute P[X ≤ t]."""
        share: Floats = -np.expm1(self.logsf(t))
        return share

    def mean(self) -> float:
        """Compute E[X]."""
        return self.short_s + self.share * (self.long_s - self.short_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Laws by a scale and shapes, these as any real numbers: where to begin, and what they mean."""

    start: tuple[float, ...]  # shapes from which the likeliest are sought
    at: Callable[[float, Sequence[float]], Fittable]
    law: Callable[[float, Sequence[float]], Law]  # for a system
    describe: Callable[[float, Sequence[float], Callable[[float], str]], str]
    bounds: tuple[tuple[float, float], ...]  # of shapes, where the mean is kept

    @property
    def parameters(self) -> int:
        """How many numbers are fitted."""
        return 1 + len(self.start)


def _mixture(scale_s: float, shapes: Sequence[float]) -> TwoSpeeds:
    """Make a mixture of two exponential distributions.

    ``scale_s`` is the mean of the short one; the shapes say how much longer the other is, and how
    often.
    """
    ratio = 1.0 + math.exp(min(shapes[0], math.log(_MOST_RATIO)))
    share = float(special.expit(np.clip(shapes[1], -_FAR, _FAR)))
    share = min(max(share, 1e-12), 1.0 - 1e-12)
    return TwoSpeeds(short_s=scale_s, long_s=ratio * scale_s, share=share)


def _is_one_law(mixture: TwoSpeeds) -> bool:
    """Test whether nothing is gained by a second distribution.

    Times are then no more variable than by one.
    """
    second = min(mixture.share, 1.0 - mixture.share) * (mixture.long_s - mixture.short_s)
    return second < _ONE_LAW * mixture.mean()


def _mixture_law(scale_s: float, shapes: Sequence[float]) -> Law:
    mixture = _mixture(scale_s, shapes)
    if _is_one_law(mixture):
        return Exponential(mean_s=mixture.mean())
    return HyperExponential(
        weights=(1.0 - mixture.share, mixture.share), means_s=(mixture.short_s, mixture.long_s)
    )


def _describe_mixture(scale_s: float, shapes: Sequence[float], time: Callable[[float], str]) -> str:
    mixture = _mixture(scale_s, shapes)
    if _is_one_law(mixture):
        return f"mean {time(mixture.mean())}: a second component does not help"
    return f"mean {time(mixture.short_s)}, but {mixture.share:.2g} of them {time(mixture.long_s)}"


def _tail(shapes: Sequence[float]) -> float:
    """Compute the exponent of a Pareto distribution; at its largest it is all but exponential."""
    return math.exp(min(shapes[0], math.log(_MOST_TAIL)))


def pareto_phases(scale_s: float, tail: float) -> HyperExponential:
    """Write a Pareto distribution, P[X > t] = (1 + t/scale)^−tail, as a mixture of exponentials.

    It is one whose rates follow a gamma law of shape ``tail``; the integral over them is summed up
    evenly in the logarithm of the rate, as far down as it matters to the mean, scale/(tail − 1),
    which is kept.
    """
    step = 1.2 / math.sqrt(tail)
    logs = np.arange(math.log(tail + 10.0 * math.sqrt(tail) + 10.0), -_FAR, -step)
    shares = np.exp(tail * logs - np.exp(logs) - special.gammaln(tail)) * step
    means_s = scale_s * np.exp(-logs)
    matters = (shares > 1e-7) | (shares * means_s > 1e-4 * float(shares @ means_s))
    shares, means_s = shares[matters] / shares[matters].sum(), means_s[matters]
    means_s *= scale_s / (tail - 1.0) / float(shares @ means_s)
    return HyperExponential(weights=tuple(shares / shares.sum()), means_s=tuple(means_s))


FAMILIES = {
    "exponential": Family(
        start=(),
        at=lambda scale, _: stats.expon(scale=scale),
        law=lambda scale, _: Exponential(mean_s=scale),
        describe=lambda scale, _, time: f"mean {time(scale)}",
        bounds=(),
    ),
    "weibull": Family(
        start=(0.0,),
        at=lambda scale, shapes: stats.weibull_min(math.exp(shapes[0]), scale=scale),
        law=lambda scale, shapes: Weibull(scale_s=scale, shape=math.exp(shapes[0])),
        describe=lambda scale, shapes, time: (
            f"shape {math.exp(shapes[0]):.2f}, scale {time(scale)}"
        ),
        bounds=((math.log(_LEAST_SHAPE), math.log(_MOST_SHAPE)),),
    ),
    "lognormal": Family(
        start=(0.0,),
        at=lambda scale, shapes: stats.lognorm(math.exp(shapes[0]), scale=scale),
        law=lambda scale, shapes: LogNormal(
            mean_s=scale * math.exp(0.5 * math.exp(2.0 * shapes[0])),
            scv=math.expm1(math.exp(2.0 * shapes[0])),
        ),
        describe=lambda scale, shapes, time: (
            f"sigma {math.exp(shapes[0]):.2f}, median {time(scale)}"
        ),
        bounds=((math.log(_LEAST_SHAPE), math.log(_MOST_SHAPE)),),
    ),
    "hyperexponential": Family(
        start=(1.5, -1.0),
        at=_mixture,
        law=_mixture_law,
        describe=_describe_mixture,
        bounds=((-3.0, math.log(_MOST_RATIO)), (-12.0, 12.0)),
    ),
    "pareto": Family(
        start=(1.0,),
        at=lambda scale, shapes: stats.lomax(_tail(shapes), scale=scale),
        law=lambda scale, shapes: pareto_phases(scale, _tail(shapes)),
        describe=lambda scale, shapes, time: f"exponent {_tail(shapes):.2f}, scale {time(scale)}",
        bounds=((math.log(_LEAST_TAIL), math.log(_MOST_TAIL)),),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A family on a sample: the likeliest law, and the likeliest of those with the mean kept."""

    family: str
    parameters: str  # of the free fit, in words
    aic: float  # of the free fit
    distance: float  # of the free fit
    free: Fittable
    scale_s: float  # of the free fit, as are the shapes
    shapes: tuple[float, ...]
    law: Law  # the mean kept
    kept_distance: float


def in_hours(time_s: float) -> str:
    """Write a time, given in seconds, in hours, three digits."""
    return f"{time_s / 3600:.3g} h"


def in_seconds(time_s: float) -> str:
    """Write a time in seconds, three digits."""
    return f"{time_s:.3g} s"


def fit(name: str, seen: Durations, time: Callable[[float], str] = in_hours) -> Fitted:
    """Fit a family's likeliest distribution, freely and with the measured mean kept.

    ``time`` writes times.
    """
    family, measured = FAMILIES[name], measure(seen)
    likeliest_s = float(seen.lengths_s @ seen.counts) / seen.whole  # of an exponential law
    free = _least(
        lambda at: _cost(seen, family.at(math.exp(at[0]), at[1:])),
        [math.log(likeliest_s), *family.start],
        [(-math.inf, math.inf), *((-_FARTHEST, _FARTHEST) for _ in family.start)],
    )
    chosen = family.at(math.exp(free[0]), free[1:])
    law, _ = with_mean(name, seen, measured.mean_s)
    return Fitted(
        family=name,
        parameters=family.describe(math.exp(free[0]), free[1:], time),
        aic=2.0 * (_cost(seen, chosen) + family.parameters),
        distance=measured.distance(chosen.cdf),
        free=chosen,
        scale_s=math.exp(free[0]),
        shapes=tuple(free[1:]),
        law=law,
        kept_distance=measured.distance(law.cdf),
    )


def with_mean(name: str, seen: Durations, mean_s: float) -> tuple[Law, float]:
    """Fit a family's likeliest distribution of a mean, in seconds.

    Its Bayesian information criterion comes with it.
    """
    family = FAMILIES[name]

    def scale_s(shapes: Sequence[float]) -> float:
        return mean_s / float(family.at(1.0, shapes).mean())

    def cost(shapes: Sequence[float]) -> float:
        return _cost(seen, family.at(scale_s(shapes), shapes))

    shapes = _least(cost, list(family.start), family.bounds)
    criterion = 2.0 * cost(shapes) + len(shapes) * math.log(seen.whole)
    return family.law(scale_s(shapes), shapes), criterion


def _cost(seen: Durations, law: Fittable) -> float:
    """Compute minus the logarithm of the likelihood of periods, whole and cut off."""
    ended = seen.ended
    whole = seen.counts[ended] @ law.logpdf(seen.lengths_s[ended])
    return -float(whole + seen.counts[~ended] @ law.logsf(seen.lengths_s[~ended]))


def likeliest(fits: Sequence[Fitted]) -> Fitted:
    """Choose the fit that explains the times best, by its AIC."""
    return min(fits, key=lambda each: each.aic)


def _least(
    cost: Callable[[Sequence[float]], float],
    start: list[float],
    bounds: Sequence[tuple[float, float]] | None = None,
) -> list[float]:
    """Find where a cost is least; nothing to seek without a start."""
    if not start:
        return []
    optimum = optimize.minimize(
        cost,
        start,
        method="Nelder-Mead",
        bounds=bounds,
        options={"xatol": 1e-5, "fatol": 1e-6, "maxiter": 2000},
    )
    return [float(each) for each in optimum.x]
