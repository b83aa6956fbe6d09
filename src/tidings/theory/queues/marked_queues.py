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

import numpy as np

from tidings.model.arrays import Complexes, Floats
from tidings.model.laws import Law
from tidings.theory.delay.delays import Delays, Tabulated, from_transform, tabulated
from tidings.theory.delay.grids import Grid
from tidings.theory.queues.renewal_streams import ArrivalProcess

_MOST_ROUNDS = 20_000
_SETTLED, _NEARLY_SETTLED = 1e-13, 1e-10
_BLOCK = 1 << 22  # numbers solved for at once


def superposed(streams: Sequence[ArrivalProcess]) -> tuple[Floats, list[Floats]]:
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


def waits(grid: Grid, streams: Sequence[ArrivalProcess], law: Law) -> list[Delays]:
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
    """Compute W(z), [node, phase]."""
    size = len(silent)
    if size == 1:
        values: Complexes = (z * idle / (z + silent[0, 0] + together[0, 0] * served))[:, None]
        return values
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
    """Compute g: the phases at which the server is idle, with sum 1."""
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
    """Compute the mean wait −W′(0) by stream, in seconds.

    It follows from the terms in z and z² of W(z)(zI + D₀ + D₁h) = z(1 − ρ)g.
    """
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
