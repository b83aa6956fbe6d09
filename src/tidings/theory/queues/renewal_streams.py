"""Streams of independent intervals as Markovian arrival processes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidings.model.arrays import Floats
from tidings.model.laws import Law, phases

MOST_PHASES = 24  # of all streams of a server together
MOST_ERLANG = 8  # phases of a smooth stream: c² of 1/8 and below are taken alike


@dataclass(frozen=True, slots=True, eq=False)
class ArrivalProcess:
    """A Markovian arrival process: D₀ and D₁, 1/s."""

    silent: Floats
    arriving: Floats
    rate_per_s: float

    @property
    def size(self) -> int:
        """How many phases it has."""
        return len(self.silent)


def poisson_stream(rate_per_s: float) -> ArrivalProcess:
    """Build the stream of independent arrivals at a constant rate."""
    return ArrivalProcess(np.array([[-rate_per_s]]), np.array([[rate_per_s]]), rate_per_s)


def renewal_stream(
    rate_per_s: float, scv: float, law: Law | None = None, scale_s: float | None = None
) -> ArrivalProcess:
    """Build a stream of independent intervals: of a law, or by rate and c² alone.

    A phase-type law of few phases is taken as it is. Any other becomes a mixture of an exponential
    and an Erlang time with its mean, its c², and its transform at 1/``scale_s``: short intervals
    must come out right on the scale that a queue feels (by default the mean interval). Without a
    law: two exponential phases of equal weight in the mean, or a mixture of two Erlang times.
    """
    mean_s = 1.0 / rate_per_s
    chain = None if law is None or not is_phased(law) else phases(law)
    if chain is not None:
        initial, generator = chain.initial, chain.generator
    elif law is None and abs(scv - 1.0) < 1e-9:
        return poisson_stream(rate_per_s)
    elif law is not None and scv > 1e-3:
        initial, generator = _mixture(law, scale_s or mean_s)
    elif scv > 1.0:
        p = 0.5 * (1.0 + math.sqrt((scv - 1.0) / (scv + 1.0)))
        initial = np.array([p, 1.0 - p])
        generator = np.diag([-2.0 * p / mean_s, -2.0 * (1.0 - p) / mean_s])
    else:
        initial, generator = _erlang_mixture(mean_s, scv)
    exits = -generator.sum(axis=1)
    return ArrivalProcess(generator, np.outer(exits, initial), rate_per_s)


def is_phased(law: Law) -> bool:
    """Tell whether a law is taken as it is: phase-type with few phases, never 0, not shifted."""
    chain = phases(law)
    if chain is None or chain.shift_s > 0.0 or chain.initial.size > MOST_ERLANG:
        return False
    return float(chain.initial.sum()) > 1.0 - 1e-12


def _mixture(law: Law, scale_s: float) -> tuple[Floats, Floats]:
    """Fit a mixture to three numbers of a distribution: its mean, c² and transform at one value.

    With probability p the mixture is an exponential time, else an Erlang time. The transform is
    that at 1/``scale_s``.
    """
    wanted = float(law.transform(np.array([1.0 / scale_s])).real[0])
    z = law.mean_s / scale_s  # in mean intervals, as all that follows
    shares = 1.0 / (1.0 + np.geomspace(1e-4, 1e4, 400))
    count, p = np.meshgrid(np.arange(1.0, MOST_ERLANG), shares, indexing="ij")
    # p a + (1 − p) b = 1 and 2 p a² + (1 − p)(1 + 1/k) b² = 1 + c²: a quadratic in b.
    more = 1.0 + 1.0 / count
    square = 2.0 * (1.0 - p) ** 2 / p + (1.0 - p) * more
    line, rest = -4.0 * (1.0 - p) / p, 2.0 / p - 1.0 - law.scv
    root = np.sqrt(np.maximum(line**2 - 4.0 * square * rest, 0.0))
    best: tuple[float, int, float, float, float] = (math.inf, 1, 0.5, 1.0, 1.0)
    for sign in (1.0, -1.0):
        erlang = (-line + sign * root) / (2.0 * square)
        exponential = (1.0 - (1.0 - p) * erlang) / p
        value = p / (1.0 + z * exponential) + (1.0 - p) * (1.0 + z * erlang / count) ** -count
        real = (line**2 >= 4.0 * square * rest) & (erlang > 1e-6) & (exponential > 1e-6)
        off = np.where(real, np.abs(value - wanted), np.inf)
        at = np.unravel_index(int(np.argmin(off)), off.shape)
        if off[at] < best[0]:
            shape = (float(p[at]), float(exponential[at]), float(erlang[at]))
            best = (float(off[at]), int(count[at]), *shape)
    _, phases_count, share, short, long = best
    if not math.isfinite(best[0]):
        return _erlang_mixture(law.mean_s, law.scv)
    rate = phases_count / (long * law.mean_s)
    generator = np.diag(np.full(phases_count + 1, -rate))
    generator[0, 0] = -1.0 / (short * law.mean_s)
    for place in range(1, phases_count):
        generator[place, place + 1] = rate
    initial = np.zeros(phases_count + 1)
    initial[0], initial[1] = share, 1.0 - share
    return initial, generator


def _erlang_mixture(mean_s: float, scv: float) -> tuple[Floats, Floats]:
    count = min(max(2, math.ceil(1.0 / max(scv, 1e-9) - 1e-9)), MOST_ERLANG)
    least = max(scv, 1.0 / count)
    # Tijms: with probability p one phase less.
    p = (count * least - math.sqrt(count * (1.0 + least) - count**2 * least)) / (1.0 + least)
    rate = (count - p) / mean_s
    generator = np.diag(np.full(count, -rate)) + np.diag(np.full(count - 1, rate), 1)
    initial = np.zeros(count)
    initial[0], initial[1] = 1.0 - p, p
    return initial, generator
