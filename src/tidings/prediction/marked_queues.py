r"""What each stream finds at a busy server: the MMAP/G/1 queue, first come first served.

The streams of a server are Markovian arrival processes: matrices D₀ (changes of phase without an
arrival) and D₁ (with one), both 1/s. Of the sum of all, with service transform h, the work V that a
moment finds (and so what an arrival waits) has the transform, by phase,

.. math:: W(z) = z (1 - \rho)\, g\, \bigl(z I + D_0 + D_1 h(z)\bigr)^{-1},

g being the phases at which the server is idle: g K = 0 for K = D₀ + D₁ G, G = h(−K). An event of
the stream with arrivals D₁ᵒ and rate λₒ waits W(z) D₁ᵒ 1/λₒ. Exact for independent services of
any law; a Poisson stream has one phase, and if all are, this is Pollaczek and Khinchine's formula.

Lucantoni, "New results on the single server queue with a batch Markovian arrival process", 1991.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidings.model.arrays import Complexes, Floats
from tidings.model.laws import Law, phases
from tidings.prediction.delays import Delays, Grid, from_transform, law_values

MOST_PHASES = 24  # of all streams of a server together
MOST_ERLANG = 8  # phases of a smooth stream: c² of 1/8 and below are taken alike
_MOST_ROUNDS = 20_000
_SETTLED = 1e-13
_BLOCK = 1 << 22  # numbers solved for at once


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A Markovian arrival process: D₀ and D₁, 1/s."""

    silent: Floats
    arriving: Floats
    rate_per_s: float

    @property
    def size(self) -> int:
        """How many phases it has."""
        return len(self.silent)


def poisson_stream(rate_per_s: float) -> Stream:
    """Build the stream of independent arrivals at a constant rate."""
    return Stream(np.array([[-rate_per_s]]), np.array([[rate_per_s]]), rate_per_s)


def renewal_stream(rate_per_s: float, scv: float, law: Law | None = None) -> Stream:
    """Build a stream of independent intervals: of a law, or by rate and c² alone.

    A phase-type law of few phases is taken as it is. Others become two exponential phases (c² > 1),
    which leave one number to choose: the law's transform at the rate, so that short intervals come
    out right, or equal weights in the mean without a law. For c² < 1: a mixture of two Erlang laws.
    """
    chain = None if law is None else phases(law)
    if chain is not None and chain.initial.size <= MOST_ERLANG and chain.initial.sum() > 1 - 1e-12:
        initial, generator = chain.initial, chain.generator
    elif abs(scv - 1.0) < 1e-9:
        return poisson_stream(rate_per_s)
    elif scv > 1.0:
        initial, generator = _two_phases(1.0 / rate_per_s, scv, law)
    else:
        initial, generator = _erlang_mixture(1.0 / rate_per_s, scv)
    exits = -generator.sum(axis=1)
    return Stream(generator, np.outer(exits, initial), rate_per_s)


def _two_phases(mean_s: float, scv: float, law: Law | None) -> tuple[Floats, Floats]:
    if law is None:
        p = 0.5 * (1.0 + math.sqrt((scv - 1.0) / (scv + 1.0)))
        return np.array([p, 1.0 - p]), np.diag([-2.0 * p / mean_s, -2.0 * (1.0 - p) / mean_s])
    wanted = float(law.transform(np.array([1.0 / mean_s])).real[0])
    # With probability p the short phase, of mean x: the other two numbers follow from two moments.
    shares = 1.0 / (1.0 + np.geomspace(1e-6, 1e3, 2000))  # of the long phase
    spread = np.sqrt(0.5 * (scv - 1.0) * (1.0 - shares) / shares)
    short = 1.0 - np.sqrt(0.5 * (scv - 1.0) * shares / (1.0 - shares))
    long = 1.0 + spread
    values = (1.0 - shares) / (1.0 + short) + shares / (1.0 + long)
    off = np.where(short > 1e-6, np.abs(values - wanted), np.inf)
    best = int(np.argmin(off))
    p = float(shares[best])
    rates = 1.0 / (mean_s * np.array([short[best], long[best]]))
    return np.array([1.0 - p, p]), np.diag(-rates)


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


def superposed(streams: Sequence[Stream]) -> tuple[Floats, list[Floats]]:
    """Combine independent streams: D₀ of all, and D₁ of each, over their joint phases."""
    sizes = [stream.size for stream in streams]
    total = math.prod(sizes)
    silent = np.zeros((total, total))
    arriving = []
    for index, stream in enumerate(streams):
        before, after = math.prod(sizes[:index]), math.prod(sizes[index + 1 :])
        silent += np.kron(np.kron(np.eye(before), stream.silent), np.eye(after))
        arriving.append(np.kron(np.kron(np.eye(before), stream.arriving), np.eye(after)))
    return silent, arriving


def waits(grid: Grid, streams: Sequence[Stream], service: Law) -> list[Delays]:
    """Compute what an event of each stream waits before its service, in seconds; load below 1."""
    silent, arriving = superposed(streams)
    together = sum(arriving[1:], arriving[0])
    load = sum(stream.rate_per_s for stream in streams) * service.mean_s
    idle = (1.0 - load) * _idle_phases(silent, together, service)
    marks = np.stack(
        [
            each.sum(axis=1) / stream.rate_per_s
            for each, stream in zip(arriving, streams, strict=True)
        ]
    )
    served = law_values(grid, service)
    values = _values(grid.z, silent, together, served, idle) @ marks.T
    means_s = _means_s((silent, together), service, idle, marks)
    return [
        from_transform(grid, values[:, index], mean_s=float(means_s[index]), atom=float(atom))
        for index, atom in enumerate(marks @ idle)
    ]


def _values(
    z: Complexes, silent: Floats, together: Floats, served: Complexes, idle: Floats
) -> Complexes:
    """W(z), [node, phase]."""
    size = len(silent)
    if size == 1:
        found: Complexes = (z * idle / (z + silent[0, 0] + together[0, 0] * served))[:, None]
        return found
    values = np.empty((z.size, size), dtype=np.complex128)
    block = max(1, _BLOCK // size**2)
    for begin in range(0, z.size, block):
        part = slice(begin, begin + block)
        matrix = (
            silent.T + together.T * served[part, None, None] + z[part, None, None] * np.eye(size)
        )
        values[part] = z[part, None] * np.linalg.solve(matrix, idle[None, :, None])[..., 0]
    return values


def _idle_phases(silent: Floats, together: Floats, service: Law) -> Floats:
    """g: the phases at which the server is idle, with sum 1."""
    size = len(silent)
    if size == 1:
        return np.ones(1)
    busy = np.eye(size)  # G, the phases after a busy period by those before
    for _ in range(_MOST_ROUNDS):
        rates, vectors = np.linalg.eig(silent + together @ busy)
        served = service.transform(np.maximum(-rates.real, 0.0) - 1j * rates.imag)
        after = ((vectors * served) @ np.linalg.inv(vectors)).real
        moved = float(np.abs(after - busy).max())
        busy = after
        if moved <= _SETTLED:
            break
    return stationary(silent + together @ busy)


def stationary(generator: Floats) -> Floats:
    """Compute the stationary phases of a Markov chain from its generator (1/s)."""
    size = len(generator)
    equations = np.vstack([generator.T, np.ones(size)])
    solution = np.linalg.lstsq(equations, np.append(np.zeros(size), 1.0), rcond=None)[0]
    shares: Floats = np.maximum(solution, 0.0)
    total: float = shares.sum()
    return np.divide(shares, total)


def _means_s(chain: tuple[Floats, Floats], service: Law, idle: Floats, marks: Floats) -> Floats:
    """−W′(0) by stream, in seconds: terms in z and z² of W(z)(zI + D₀ + D₁h) = z(1 − ρ)g."""
    silent, together = chain
    mean_s, size = service.mean_s, len(silent)
    steady = stationary(silent + together) if size > 1 else np.ones(1)
    square_s2 = mean_s**2 * (1.0 + service.scv)
    towards = idle - steady + mean_s * steady @ together
    drift = np.ones(size) - mean_s * together.sum(axis=1)
    equations = np.column_stack([silent + together, drift]).T
    known = np.append(towards, -0.5 * square_s2 * float((steady @ together).sum()))
    # The last equation is in seconds, the others in events per second: of one size.
    slope: Floats = np.linalg.lstsq(equations, known, rcond=None)[0]
    return np.maximum(-marks @ slope, 0.0)
