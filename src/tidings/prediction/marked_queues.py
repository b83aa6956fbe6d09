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
from tidings.prediction.delays import Delays, Tabulated, from_transform, tabulated
from tidings.prediction.grids import Grid

MOST_PHASES = 24  # of all streams of a server together
MOST_ERLANG = 8  # phases of a smooth stream: c² of 1/8 and below are taken alike
_MOST_ROUNDS = 20_000
_SETTLED, _NEARLY_SETTLED = 1e-13, 1e-10
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


def renewal_stream(
    rate_per_s: float, scv: float, law: Law | None = None, scale_s: float | None = None
) -> Stream:
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
    return Stream(generator, np.outer(exits, initial), rate_per_s)


def is_phased(law: Law) -> bool:
    """Tell whether a law is taken as it is: phase-type with few phases, never 0."""
    chain = phases(law)
    few = chain is not None and chain.initial.size <= MOST_ERLANG
    return few and chain is not None and float(chain.initial.sum()) > 1.0 - 1e-12


def _mixture(law: Law, scale_s: float) -> tuple[Floats, Floats]:
    """With probability p an exponential time, else an Erlang time: three numbers of a law."""
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


def waits(grid: Grid, streams: Sequence[Stream], law: Law) -> list[Delays]:
    """Compute what an event of each stream waits before its service, in seconds; load below 1."""
    silent, arriving = superposed(streams)
    together = sum(arriving[1:], arriving[0])
    service = tabulated(grid, law)
    load = sum(stream.rate_per_s for stream in streams) * service.mean_s
    idle = (1.0 - load) * _idle_phases(silent, together, service)
    marks = np.stack(
        [
            each.sum(axis=1) / stream.rate_per_s
            for each, stream in zip(arriving, streams, strict=True)
        ]
    )
    served = service.transform(grid.z)
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


def _idle_phases(silent: Floats, together: Floats, service: Law | Tabulated) -> Floats:
    """g: the phases at which the server is idle, with sum 1."""
    size = len(silent)
    if size == 1:
        return np.ones(1)
    busy = np.eye(size)  # G, the phases after a busy period by those before
    moved = math.inf
    for _ in range(_MOST_ROUNDS):
        rates, vectors = np.linalg.eig(silent + together @ busy)
        served = service.transform(np.maximum(-rates.real, 0.0) - 1j * rates.imag)
        after = ((vectors * served) @ np.linalg.inv(vectors)).real
        before, moved = moved, float(np.abs(after - busy).max())
        busy = after
        if moved <= _SETTLED or (moved <= _NEARLY_SETTLED and moved >= before):  # rounding is left
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


def _means_s(
    chain: tuple[Floats, Floats], service: Law | Tabulated, idle: Floats, marks: Floats
) -> Floats:
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
