"""The sojourn at an ON/OFF centre whose times are more regular than phases: its work on a lattice.

Let V be the work that waits, in seconds of service. OFF, it grows by what arrives; ON, it is worked
off as well. The length of a period does not depend on V, so V at an age of ON is the same for ON
periods of all lengths, and V at the beginnings of ON is a Markov chain: ages of ON are gone through
step by step, OFF is one convolution, and the stationary law solves a linear equation.

An event that finds the work V and brings its own needs w seconds of ON. It takes w and as many OFF
periods as ON periods end within w; in an OFF period, also what is left of that.

ON, OFF and service may have any laws; each of their times is shared by the points of the lattice
next to it, so that means are kept. Time goes on by half a step of work, a whole one of arrivals,
half a step of work, which leaves an error of the second order in the step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import fft
from scipy.sparse import linalg

from tidings.model.laws import Deterministic, Empirical, Law, left_share
from tidings.theory.mobility.centre import OnOff

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]

_STEPS = (128, 96, 64, 48, 32, 24, 16, 12)  # per mean ON, the finest that the work leaves room for
_MOST_WORK = 6144  # points
_MOST_PERIOD = 2048  # points
_MOST_TOGETHER = 400_000  # ages of ON times points of work: more take seconds
_COARSE = 12  # steps per mean ON with which the reach of the work is looked for
_LEFT_OUT = 1e-9  # of a period, beyond its last point
_BEYOND = 1e-7  # of the work, in the last eighth of the lattice
_SOLVED = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """An ON/OFF queue on a lattice of ``step_s`` seconds, for time and for work alike.

    ``on`` are probabilities of ON by *pairs* of steps, ``off`` and ``service`` by steps. Images are
    transforms of twice as many points as the work has.
    """

    step_s: float
    points: int  # of work
    on: Floats
    off: Floats
    service: Complexes  # image of one service
    arriving: Complexes  # image of the work that arrives in one step
    returning: Complexes  # image of the work that arrives in one OFF period

    def added(self, work: Floats, image: Complexes) -> Floats:
        """The law of the work when more has come; what is beyond the lattice is at its end."""
        size = 2 * self.points
        found: Floats = fft.irfft(fft.rfft(work, size) * image, size)[..., : self.points]
        found[..., -1] += work.sum(axis=-1) - found.sum(axis=-1)
        return found

    def later(self, work: Floats) -> Floats:
        """The law of the work after two steps of ON."""
        return _worked(self.added(_worked(work), self.arriving**2))

    def gone(self, work: Floats) -> Floats:
        """The law of the work at the end of ON, from that at its beginning."""
        total: Floats = self.on[0] * work
        for share in self.on[1:]:
            work = self.later(work)
            total = total + share * work
        return total


@lru_cache(maxsize=64)
def backlog_sojourn(centre: OnOff, rate_per_s: float) -> Empirical | None:
    """The sojourn with Poisson arrivals, in bins of a step; load below 1, services above 0 s.

    None where the times differ by too much for one lattice.
    """
    reach_s = _reach_s(centre, rate_per_s)
    if reach_s is None:
        return None
    for steps in _STEPS:
        grid = _grid(centre, rate_per_s, steps, reach_s)
        if grid is not None:
            return _in_bins(_sojourn(centre, grid), grid.step_s, _at_once(centre, rate_per_s, grid))
    return None


def _reach_s(centre: OnOff, rate_per_s: float) -> float | None:
    """How much work there may be, in seconds of service: found on a coarse lattice."""
    reach_s = 4.0 * (centre.on.mean_s + centre.service.mean_s)
    while True:
        grid = _grid(centre, rate_per_s, _COARSE, reach_s)
        if grid is None:
            return None
        if _beginning(grid)[-(grid.points // 8) :].sum() < _BEYOND:
            return reach_s
        reach_s *= 1.5


def _grid(centre: OnOff, rate_per_s: float, steps: int, reach_s: float) -> Grid | None:
    """The queue with so many pairs of steps per mean ON; None if that takes too many points."""
    step_s = centre.on.mean_s / (2.0 * steps)
    points = fft.next_fast_len(math.ceil(reach_s / step_s), real=True)
    if points > _MOST_WORK:
        return None
    on, off = _shared(centre.on, 2.0 * step_s), _shared(centre.off, step_s)
    service = _shared(centre.service, step_s)
    if on is None or off is None or service is None or on.size * points > _MOST_TOGETHER:
        return None
    image: Complexes = fft.rfft(service[: 2 * points], 2 * points)
    arriving: Complexes = np.exp(rate_per_s * step_s * (image - 1.0))
    returning = np.zeros_like(arriving)
    for share in off[::-1]:
        returning = returning * arriving + share
    return Grid(
        step_s=step_s,
        points=points,
        on=on,
        off=off,
        service=image,
        arriving=arriving,
        returning=returning,
    )


def _shared(law: Law, step_s: float) -> Floats | None:
    """Probabilities of 0, 1, … steps, each time shared by the two next to it; the mean is kept."""
    last = 8
    while law.mean_s * left_share(law, np.array([last * step_s]))[0] > _LEFT_OUT * step_s:
        last *= 2
        if last > _MOST_PERIOD:
            return None
    over = law.mean_s / step_s * left_share(law, step_s * np.arange(last + 2.0))
    masses: Floats = np.clip(np.diff(1.0 + np.diff(over), prepend=0.0), 0.0, None)
    masses[masses < 1e-15] = 0.0
    found: Floats = np.trim_zeros(masses, "b") / masses.sum()
    return found


def _worked(work: Floats) -> Floats:
    """One step of work done."""
    found: Floats = np.append(work[1:], 0.0)
    found[0] += work[0]
    return found


def _beginning(grid: Grid) -> Floats:
    """The stationary law of the work at the beginnings of ON."""
    start = np.zeros(grid.points)
    start[0] = 1.0
    start = grid.added(start, grid.returning)

    def unsettled(work: Floats) -> Floats:
        found: Floats = work - grid.added(grid.gone(work), grid.returning) + work.sum() * start
        return found

    cycle = linalg.LinearOperator((grid.points,) * 2, matvec=unsettled, dtype=np.float64)
    found, _ = linalg.gmres(cycle, start, x0=start, rtol=_SOLVED, restart=40, maxiter=10)
    settled: Floats = np.clip(grid.added(grid.gone(found), grid.returning), 0.0, None)
    settled /= settled.sum()
    return settled


def _sojourn(centre: OnOff, grid: Grid) -> Floats:
    """Probabilities of a sojourn of 0, 1, … steps."""
    begun = _beginning(grid)
    ends = _ends_within(grid)
    met_on, ended = _met_on(grid, begun)
    met_off = _met_off(grid, ended)
    longest = grid.points + grid.off.size
    waits = np.zeros((len(ends) + 1, longest))  # by OFF periods to come in whole, then by steps
    for left, work in enumerate(met_on, start=1):
        rest = min(2 * left, grid.points) - 1  # of ON, in steps: events come amid two of them
        work = (1.0 - centre.away) * work
        work[rest] *= 0.5  # done just as ON ends: in time or not, each as often
        waits[0, : rest + 1] += work[: rest + 1]
        waits[1:, rest : grid.points] += ends[:, : grid.points - rest] * work[rest:]
    for left, work in enumerate(met_off):
        waits[:-1, left : left + grid.points] += centre.away * ends * work
    size = fft.next_fast_len(longest + len(ends) * (grid.off.size - 1), real=True)
    absence, total = fft.rfft(grid.off, size), np.zeros(size // 2 + 1, dtype=np.complex128)
    for shares in waits[::-1]:
        total = total * absence + fft.rfft(shares, size)
    found: Floats = np.clip(fft.irfft(total, size), 0.0, None)
    return found


def _ends_within(grid: Grid) -> Floats:
    """P[m ON periods end before so many steps of ON, from the start of one on], by m and steps.

    What ends just then has ended before in half of the cases.
    """
    size = fft.next_fast_len(2 * grid.points, real=True)
    by_step = np.zeros(2 * grid.on.size - 1)
    by_step[::2] = grid.on
    image = fft.rfft(by_step[:size], size)
    law = np.zeros(size)
    law[0] = 1.0
    found, before = [], np.ones(grid.points)
    while before[-1] > _LEFT_OUT:
        law = fft.irfft(fft.rfft(law, size) * image, size)
        law[grid.points :] = 0.0
        after = np.cumsum(law)[: grid.points] - 0.5 * law[: grid.points]
        found.append(before - after)
        before = after
    return np.array(found)


def _met_on(grid: Grid, work: Floats) -> tuple[Floats, Floats]:
    """Work of events that come in ON, their own with it, by what is left of ON; V as ON ends.

    Rows are 1, 2, … pairs of steps left, the present one with them.
    """
    met, total = [], grid.on[0] * work
    for share in grid.on[1:]:
        met.append(grid.added(_worked(work), grid.arriving * grid.service))
        work = grid.later(work)
        total = total + share * work
    lengths = grid.on[1:]
    left = np.arange(lengths.size)
    longer = left[:, None] + left[None, :]
    shares = np.where(longer < lengths.size, lengths[np.minimum(longer, lengths.size - 1)], 0.0)
    return shares @ np.array(met) / shares.sum(), total


def _met_off(grid: Grid, work: Floats) -> Floats:
    """Work of events that come in OFF, their own with it, by the steps that are left of OFF."""
    size = 2 * grid.points
    image = fft.rfft(work, size) * grid.service
    met = []
    for _ in grid.off:
        met.append(fft.irfft(image, size)[: grid.points])
        image = image * grid.arriving
    left = np.arange(grid.off.size)
    longer = left[:, None] + left[None, :]
    shares = np.where(longer < left.size, grid.off[np.minimum(longer, left.size - 1)], 0.0)
    shares[0] *= 0.5  # the ends of a period count half
    shares[:, 0] *= 0.5
    shares[0, 0] = 0.0
    found: Floats = shares @ np.array(met) / shares.sum()
    return found


def _at_once(centre: OnOff, rate_per_s: float, grid: Grid) -> tuple[float, float]:
    """A constant service in seconds, and the probability that an event takes no more than that.

    The peer is ON, nothing waits, and enough is left of ON; where all of ON alike is idle, that is
    so of a share 1 − λD s of ON, of which the lattice tells the ages. None of other services.
    """
    if not isinstance(centre.service, Deterministic):
        return 0.0, 0.0
    work, idle = _beginning(grid), []
    for _ in grid.on[1:]:
        work = grid.later(work)
        idle.append(work[0])
    lengths_s = 2.0 * grid.step_s * np.arange(1, grid.on.size)
    ages_s = lengths_s  # ``later`` than the beginning by so much
    enough = lengths_s[:, None] - ages_s[None, :] >= centre.service.value_s
    staying = np.cumsum(grid.on[:0:-1])[::-1]  # P[ON lasts at least to this age]
    whole = float(staying @ np.array(idle))
    prompt = float(grid.on[1:] @ enough @ np.array(idle))
    share = (1.0 - centre.away) * (1.0 - centre.load(rate_per_s))
    return centre.service.value_s, share * min(prompt / whole, 1.0) if whole > 0.0 else 0.0


def _in_bins(shares: Floats, step_s: float, at_once: tuple[float, float]) -> Empirical:
    """Each point spread over its step, 0 apart: the mean is kept; ``at_once`` is an atom."""
    kept = shares[: np.flatnonzero(shares > 1e-13)[-1] + 1].copy()
    atom_s, atom = at_once
    below = min(int(atom_s / step_s), kept.size - 2)
    part = atom_s / step_s - below  # where the lattice has it: shared by two points
    atom = min(atom, *(kept[below + i] / x for i, x in ((0, 1.0 - part), (1, part)) if x > 1e-9))
    kept[below] -= atom * (1.0 - part)
    kept[below + 1] -= atom * part
    edges_s = np.concatenate([[0.0, 0.0], step_s * (np.arange(kept.size) + 0.5)])
    weights = np.concatenate([kept[:1], [0.0], kept[1:]])
    if atom > 0.0:
        edges_s, weights = _with_atom(edges_s, weights, atom_s, atom)
    return Empirical(edges_s=tuple(edges_s), weights=tuple(weights / weights.sum()))


def _with_atom(edges_s: Floats, weights: Floats, at_s: float, atom: float) -> tuple[Floats, Floats]:
    """The bins, that around ``at_s`` parted by an atom there."""
    bin_ = int(np.searchsorted(edges_s, at_s, side="right")) - 1
    low_s, high_s = edges_s[bin_], edges_s[bin_ + 1]
    lower = weights[bin_] * (at_s - low_s) / (high_s - low_s)
    parts = [lower, atom, weights[bin_] - lower]
    return (
        np.concatenate([edges_s[: bin_ + 1], [at_s, at_s], edges_s[bin_ + 1 :]]),
        np.concatenate([weights[:bin_], parts, weights[bin_ + 1 :]]),
    )
