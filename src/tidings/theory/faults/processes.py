"""What goes up and down by itself, as a stationary Markov chain of phases.

Exponential times have one phase each; a phase-type law brings its own. Everything that fails is put
together from such processes, each independent of all the others: a component is up when all the
processes that it depends on are up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize

from tidings.model.behaviour import Failure

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Complexes = NDArray[np.complex128]
Chain = tuple[Floats, Floats]  # initial shares and generator (1/s) of a phase-type law


_FEW_TIMES = 4
_NOTHING = 1e-14  # of the fastest rate: rounding
_WELL_APART, _SINGULAR = 1e3, 1e14  # conditions: rounding grows by so much


class Modes(NamedTuple):
    """A generator in its own coordinates: right · diag(values) · left, the slowest first."""

    values: Complexes  # 1/s
    right: Complexes
    left: Complexes
    condition: float  # by how much rounding grows


@dataclass(frozen=True, kw_only=True, eq=False)
class Process:
    """A stationary chain: rates between phases (1/s), and in which of them it is up."""

    generator: Floats
    stationary: Floats
    up: Bools
    ready: Bools | None = None  # of a broker: up with its subscriptions; None: whenever it is up

    @property
    def able(self) -> Bools:
        """The phases in which it takes events on."""
        return self.up if self.ready is None else self.ready

    @property
    def availability(self) -> float:
        """The long-run share of time in which it is up."""
        return float(self.stationary[self.up].sum())

    @cached_property
    def breaks_per_s(self) -> float:
        """How often it goes down, per second of all time."""
        breaking = self.generator[np.ix_(self.up, ~self.up)].sum(axis=1)
        return float(self.stationary[self.up] @ breaking)

    @cached_property
    def found_up(self) -> Floats:
        """Shares of the phases, given that it is up."""
        shares: Floats = np.where(self.up, self.stationary, 0.0) / self.availability
        return shares

    @cached_property
    def modes(self) -> Modes:
        """The modes in which its phases settle."""
        return modes_of(self.generator)

    @cached_property
    def slowest_repair_per_s(self) -> float:
        """The rate at which the longest times down end; infinite for what is never down."""
        down = self.generator[np.ix_(~self.up, ~self.up)]
        return float(np.min(-np.linalg.eigvals(down).real, initial=math.inf))

    def stays_up(self, times_s: ArrayLike) -> Floats:
        """P[up at 0 and without a break until each time]."""
        inside = self.generator[np.ix_(self.up, self.up)]
        found: Floats = self.stationary[self.up] @ exponentials(inside, times_s).sum(axis=-1).T
        return found

    def up_twice(self, times_s: ArrayLike) -> Floats:
        """P[up at 0 and up at each time], whatever happens in between."""
        later = exponentials(self.generator, times_s)[..., self.up].sum(axis=-1)
        found: Floats = np.where(self.up, self.stationary, 0.0) @ later.T
        return found


def exponentials(rates: Floats, times_s: ArrayLike) -> Floats:
    """exp(rates · t) at each time, [time, from, to]; many times by modes that are well apart."""
    times = np.asarray(times_s, np.float64)
    if times.size > _FEW_TIMES:
        modes = modes_of(rates)
        if modes.condition < _WELL_APART:
            decays = np.exp(np.multiply.outer(times, modes.values))
            return np.asarray(((modes.right * decays[..., None, :]) @ modes.left).real)
    found: Floats = linalg.expm(np.multiply.outer(times, rates))
    return found


def modes_of(generator: Floats) -> Modes:
    """The modes of a generator."""
    values, right = np.linalg.eig(generator)
    order = np.argsort(-values.real)
    values, right = values[order].astype(np.complex128), right[:, order].astype(np.complex128)
    values[np.abs(values) < _NOTHING * np.abs(generator).max()] = 0.0  # what lasts, lasts
    condition = float(np.linalg.cond(right))
    left = np.linalg.inv(right) if condition < _SINGULAR else np.full_like(right, np.nan)
    return Modes(values, right, left, condition)


def alternating(up: Chain, down: Chain) -> Process:
    """The process that is up for one phase-type time and down for another, in turn.

    >>> process = alternating((np.ones(1), np.array([[-1.0]])), (np.ones(1), np.array([[-9.0]])))
    >>> process.stationary.round(12).tolist()  # nine tenths of the time up
    [0.9, 0.1]
    """
    (up_start, up_rates), (down_start, down_rates) = up, down
    count = len(up_start) + len(down_start)
    generator = np.zeros((count, count))
    is_up = np.arange(count) < len(up_start)
    generator[np.ix_(is_up, is_up)] = up_rates
    generator[np.ix_(is_up, ~is_up)] = np.outer(-up_rates.sum(axis=1), down_start)
    generator[np.ix_(~is_up, ~is_up)] = down_rates
    generator[np.ix_(~is_up, is_up)] = np.outer(-down_rates.sum(axis=1), up_start)
    # Time spent in each phase during one time up and one time down.
    spent_s = np.concatenate(
        [np.linalg.solve(-up_rates.T, up_start), np.linalg.solve(-down_rates.T, down_start)]
    )
    return Process(generator=generator, stationary=spent_s / spent_s.sum(), up=is_up)


def exponential(failure: Failure) -> Process:
    """The process with the mean times up and down of a failure, both taken as exponential.

    >>> from tidings.model.laws import Exponential
    >>> half = exponential(Failure(up=Exponential(mean_s=5.0), down=Exponential(mean_s=5.0)))
    >>> half.availability
    0.5
    """
    mean_up, mean_down = failure.up.mean_s, failure.down.mean_s
    return alternating(
        (np.ones(1), np.array([[-1.0 / mean_up]])), (np.ones(1), np.array([[-1.0 / mean_down]]))
    )


def plain_up(process: Process) -> Process:
    """The process with the same times down, and exponential times up of the same mean."""
    up, down = process.up, ~process.up
    falling = process.stationary[up] @ process.generator[np.ix_(up, down)]
    mean_up_s = process.availability / process.breaks_per_s
    repair = process.generator[np.ix_(down, down)]
    return alternating(
        (np.ones(1), np.array([[-1.0 / mean_up_s]])), (falling / falling.sum(), repair)
    )


def plain(process: Process) -> Process:
    """The process with exponential times up and down of the same means."""
    up_per_s = process.breaks_per_s / process.availability
    down_per_s = process.breaks_per_s / (1.0 - process.availability)
    return alternating(
        (np.ones(1), np.array([[-up_per_s]])), (np.ones(1), np.array([[-down_per_s]]))
    )


def steady(availability: float) -> Process:
    """A process of which only the share of time up is known."""
    return Process(
        generator=np.zeros((2, 2)),
        stationary=np.array([availability, 1.0 - availability]),
        up=np.array([True, False]),
    )


def with_table(process: Process, per_s: float) -> Process:
    """The process of a broker that has lost its subscriptions whenever it has been down.

    It gets them back at a constant rate while it is up (0: never by itself). Phases are: up with
    its subscriptions, up without, down.
    """
    ups, downs = np.flatnonzero(process.up), np.flatnonzero(~process.up)
    count = ups.size
    size = 2 * count + downs.size
    ready, bare, down = slice(0, count), slice(count, 2 * count), slice(2 * count, size)
    rates = np.zeros((size, size))
    rates[ready, ready] = rates[bare, bare] = process.generator[np.ix_(ups, ups)]
    rates[ready, down] = rates[bare, down] = process.generator[np.ix_(ups, downs)]
    rates[down, bare] = process.generator[np.ix_(downs, ups)]
    rates[down, down] = process.generator[np.ix_(downs, downs)]
    rates[bare, ready] += per_s * np.eye(count)
    rates[bare, bare] -= per_s * np.eye(count)
    up = process.stationary[ups]
    without: Floats = up
    if per_s > 0.0 and downs.size:
        lost = process.generator[np.ix_(ups, ups)] - per_s * np.eye(count)
        entering = process.stationary[downs] @ rates[down, bare]
        without = np.asarray(np.linalg.solve(-lost.T, entering), np.float64)
    return Process(
        generator=rates,
        stationary=np.concatenate([up - without, without, process.stationary[downs]]),
        up=np.arange(size) < 2 * count,
        ready=np.arange(size) < count,
    )


def keeps_table(process: Process, times_s: ArrayLike, helped_per_s: float) -> Floats:
    """P[up with its subscriptions] at each time after a refresh that whoever was up has got.

    Between refreshes others bring the subscriptions back at a rate; without that it is the
    probability of having been up since the refresh.
    """
    if helped_per_s == 0.0:
        return process.stays_up(times_s)
    helped = with_table(process, helped_per_s)
    count = int(process.up.sum())
    start = np.concatenate(
        [process.stationary[process.up], np.zeros(count), process.stationary[~process.up]]
    )
    found: Floats = start @ exponentials(helped.generator, times_s)[..., :count].sum(axis=-1).T
    return found


def forgetting(process: Process, refresh_s: float, helped_per_s: float = 0.0) -> Process:
    """The process of a broker that after a repair has no subscriptions until the next refresh.

    That wait is taken as exponential, with the rate that gives the exact share of time in which the
    broker is ready: the mean over U, uniform between refreshes, of P[up with them at U].
    """
    nodes, weights = np.polynomial.legendre.leggauss(16)
    times_s = 0.5 * refresh_s * (1.0 + nodes)
    wanted = 0.5 * float(weights @ keeps_table(process, times_s, helped_per_s))

    def missing(log_per_s: float) -> float:
        candidate = with_table(process, math.exp(log_per_s))
        return float(candidate.stationary[candidate.able].sum()) - wanted

    middle = math.log(2.0 / refresh_s + helped_per_s)
    root = optimize.brentq(missing, middle - 9.0, middle + 9.0, xtol=1e-13)
    return with_table(process, math.exp(root))
