"""Waits in buffers of brokers that after a crash know no subscriptions until the next refresh.

Such a broker keeps what it has; what it gets from others it takes, and keeps too. All brokers and
links from where the event is to its end are one chain; every ``every_s`` seconds a refresh comes
from the end and goes as far as all is up. At the moment at which it reaches the broker that has
the event, all behind that is up and knows the subscription, and the event goes through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse, stats

from tidings.prediction.faults.buffer_delays import TabulatedWait
from tidings.prediction.faults.buffered_ways import hops
from tidings.prediction.faults.components import Components, Path
from tidings.prediction.faults.processes import Floats, Process, forgetting, with_table
from tidings.prediction.faults.refresh_axes import Axis, LastingAxis, LinkAxis, at_refresh, moved_on
from tidings.prediction.faults.waiting import Journey, Start, Wait, journey

MOST_STATES = 6_000
_MOMENTS, _MOST_MOMENTS = 16, 64  # of an interval between refreshes, for publications
_LONG_REPAIRS = 20.0  # intervals; where repairs take longer, refreshes might as well be random
_LEFT = 1e-3  # share of the waits that the table leaves to its exponential tail
_MOST_INTERVALS = 400
_UNSEEN = 1e-13


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshes:
    """How often a home refreshes a way, how, and how often others do it as well."""

    every_s: float
    helped_per_s: tuple[float, ...]  # of each broker of the way
    any_way: bool = False  # whether refreshes go round what is down


def forgetful(components: Components, path: Path, refreshes: Refreshes) -> Components:
    """The components with brokers of a way that lose their subscriptions when they fail.

    What brings them back between refreshes are others; the refreshes themselves are not in it.
    """
    return _with_tables(components, path, refreshes, with_table)


def forgetful_on_average(components: Components, path: Path, refreshes: Refreshes) -> Components:
    """The same, with refreshes as waits of each broker that are independent and exponential."""
    return _with_tables(
        components, path, refreshes, lambda each, per_s: forgetting(each, refreshes.every_s, per_s)
    )


def _with_tables(
    components: Components,
    path: Path,
    refreshes: Refreshes,
    table: Callable[[Process, float], Process],
) -> Components:
    processes = list(components.processes)
    for broker, per_s in zip(path.brokers, refreshes.helped_per_s, strict=True):
        for each in set(components.of_broker[broker]) - components.shared:
            processes[each] = table(components.processes[each], per_s)
    return replace(components, processes=tuple(processes))


def refreshed_wait(
    components: Components, path: Path, refreshes: Refreshes, waits: Floats | None = None
) -> TabulatedWait | Wait | None:
    """The wait of an event whose home is up; None where there are too many states to follow.

    ``waits`` is, where an event may go other ways, the probability that it has to wait for its
    usual one, by joint phase of the way's processes as :func:`forgetful` gives them.
    """
    elements = [(place, each[0]) for place, each in enumerate(components.of_path(path)) if each]
    if components.fail_together(path) or not elements:
        return None
    axes = _axes(components, elements, refreshes)
    if math.prod(axis.states for axis in axes) > MOST_STATES:
        return None
    known = forgetful(components, path, refreshes)
    begin = _Beginning(axes=axes, elements=elements, refreshes=refreshes, waits=waits)
    going = journey(known.processes, hops(known, path), begin.at(0.0))
    renewal = _renewal(known.processes, going, elements, any_way=refreshes.any_way)

    def initial(since_s: float) -> Floats:
        return going.initial(known.processes, begin.at(since_s))

    longest_s = max(_mean_down_s(components.processes[each]) for _, each in elements)
    if longest_s > _LONG_REPAIRS * refreshes.every_s:
        return _with_random_refreshes(initial, going, renewal, refreshes.every_s)
    return _tabulated(initial, going.generator, renewal, refreshes.every_s)


def _axes(
    components: Components, elements: Sequence[tuple[int, int]], refreshes: Refreshes
) -> list[Axis]:
    return [
        LinkAxis(components.processes[each])
        if place % 2
        else LastingAxis(components.processes[each], refreshes.helped_per_s[place // 2])
        for place, each in elements
    ]


def _mean_down_s(process: Process) -> float:
    """The mean time of a repair, in seconds."""
    breaking = process.generator[np.ix_(process.up, ~process.up)].sum(axis=1)
    breaks_per_s = float(process.stationary[process.up] @ breaking)
    return (1.0 - process.availability) / breaks_per_s if breaks_per_s > 0.0 else 0.0


class _Beginning:
    """The joint phases of a way so long after a refresh, given that the home broker is up."""

    def __init__(
        self,
        *,
        axes: list[Axis],
        elements: Sequence[tuple[int, int]],
        refreshes: Refreshes,
        waits: Floats | None,
    ) -> None:
        self.axes, self.waits = axes, waits
        self.after = at_refresh(axes, refreshes.every_s, any_way=refreshes.any_way)
        self.home_may_fail = elements[0][0] == 0
        numbers = [each for _, each in elements]
        self.order = sorted(range(len(numbers)), key=numbers.__getitem__)
        self.processes = tuple(sorted(numbers))

    def at(self, since_s: float) -> Start:
        """The shares of those joint phases in which an event has to wait, or of all."""
        shares = moved_on(self.after, [axis.later(since_s) for axis in self.axes])
        if self.home_may_fail:
            shares = shares * self.axes[0].is_up.reshape(-1, *[1] * (shares.ndim - 1))
            shares = shares / shares.sum()
        flat = shares.transpose(self.order).ravel()
        return Start(
            processes=self.processes, shares=flat if self.waits is None else flat * self.waits
        )


def _renewal(
    processes: Sequence[Process],
    going: Journey,
    elements: Sequence[tuple[int, int]],
    *,
    any_way: bool,
) -> sparse.csr_array:
    """What a refresh makes of waiting states, [waiting state, waiting state]."""
    rows = []
    for followed, waiting, entering in zip(
        going.followed, going.waiting, going.entering, strict=True
    ):
        sizes = [len(processes[each].up) for each in followed]
        places = np.flatnonzero(waiting)
        phase = dict(zip(followed, np.unravel_index(places, sizes), strict=True))
        coming = np.ones(places.size, np.bool_)
        for place, each in reversed(elements):
            if each not in phase:
                continue  # the event has passed it
            process, mine = processes[each], phase[each]
            up = process.up[mine]
            if place % 2 == 0:
                ready = int(process.able.sum())
                reached = coming & up
                phase[each] = np.where(reached & (mine >= ready), mine - ready, mine)
            if not any_way or place == elements[-1][0]:
                coming = coming & up
        after = np.ravel_multi_index([phase[each] for each in followed], sizes)
        rows.append(entering[after])
    return sparse.csr_array(sparse.vstack(rows))


def _with_random_refreshes(
    initial: Callable[[float], Floats], going: Journey, renewal: sparse.csr_array, every_s: float
) -> Wait:
    """Refreshes at random moments, with the same mean time to the next."""
    moments_s = every_s * (np.arange(_MOMENTS) + 0.5) / _MOMENTS
    shares = np.mean([initial(since_s) for since_s in moments_s], axis=0)
    stays = sparse.eye_array(shares.size)
    rates = going.generator + (renewal - stays) * (2.0 / every_s)
    return Wait(initial=shares, generator=sparse.csr_array(rates))


class _Evolution:
    """Shares of waiting states, and what is left of each of them, as time goes by."""

    def __init__(self, generator: sparse.csr_array) -> None:
        self.per_s = float(-generator.diagonal().min(initial=-1e-12))
        unit = sparse.eye_array(generator.shape[0])
        self.forwards = sparse.csr_array(unit + generator / self.per_s)
        self.backwards = sparse.csr_array(self.forwards.T)

    def shares(self, rows: Floats, time_s: float) -> Floats:
        """Rows of shares, so much later."""
        return self._summed(self.backwards, rows.T, time_s).T

    def left(self, values: Floats, time_s: float) -> Floats:
        """The mean of some values so much later, by the state now."""
        return self._summed(self.forwards, values, time_s)

    def _summed(self, jump: sparse.csr_array, begin: Floats, time_s: float) -> Floats:
        """Σ P[k jumps] jumpᵏ, jumps at a constant rate."""
        mean = self.per_s * time_s
        weights = stats.poisson.pmf(np.arange(int(stats.poisson.isf(_UNSEEN, mean)) + 2), mean)
        now, total = begin, weights[0] * begin
        for weight in weights[1:]:
            now = jump @ now
            total = total + weight * now
        return total


def _tabulated(
    initial: Callable[[float], Floats],
    generator: sparse.csr_array,
    renewal: sparse.csr_array,
    every_s: float,
) -> TabulatedWait:
    """P[wait > t] at regular moments, for events published in the middle between these.

    In half steps: an event published (j + ½) steps after a refresh meets the next one in the
    middle of a step, and so all others.
    """
    chain = _Evolution(generator)
    count = min(max(_MOMENTS, math.ceil(chain.per_s * every_s)), _MOST_MOMENTS)
    half_s = 0.5 * every_s / count
    seen = [np.ones(generator.shape[0])]
    for _ in range(2 * count - 1):
        seen.append(chain.left(seen[-1], half_s))
    remains = np.array(seen).T  # of each state, so many half steps later if no refresh comes
    rows = np.array([initial((2 * place + 1) * half_s) for place in range(count)])
    lines = [[row @ remains[:, : 2 * (count - place) - 1]] for place, row in enumerate(rows)]
    refreshed = np.empty_like(rows)
    for elapsed in range(1, 2 * count):
        rows = chain.shares(rows, half_s)
        if elapsed % 2:
            place = count - (elapsed + 1) // 2
            refreshed[place] = rows[place] @ renewal
    begun = float(sum(line[0][0] for line in lines))
    for _ in range(_MOST_INTERVALS):
        for line, block in zip(lines, refreshed @ remains, strict=True):
            line.append(block)
        refreshed = chain.shares(refreshed, every_s) @ renewal
        if float(refreshed.sum()) <= _LEFT * begun:
            break
    length = min(sum(part.size for part in line) for line in lines)
    left = np.mean([np.concatenate(line)[:length:2] for line in lines], axis=0)
    falls = math.log(max(left[-1 - count], 1e-300) / max(left[-1], 1e-300)) if left[-1] > 0 else 1.0
    return TabulatedWait(step_s=2.0 * half_s, left=left, tail_per_s=max(falls, 1e-6) / every_s)
