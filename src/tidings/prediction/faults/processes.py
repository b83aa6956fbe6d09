"""What goes up and down by itself, as a stationary Markov chain of phases.

Exponential times have one phase each; a phase-type law brings its own. Everything that fails is put
together from such processes, each independent of all the others: a component is up when all the
processes that it depends on are up.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from tidings.model.behaviour import Failure
from tidings.model.laws import Exponential

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Chain = tuple[Floats, Floats]  # initial shares and generator (1/s) of a phase-type law


@dataclass(frozen=True, kw_only=True, eq=False)
class Process:
    """A stationary chain: rates between phases (1/s), and in which of them it is up."""

    generator: Floats
    stationary: Floats
    up: Bools

    @property
    def availability(self) -> float:
        """The long-run share of time in which it is up."""
        return float(self.stationary[self.up].sum())

    @cached_property
    def found_up(self) -> Floats:
        """Shares of the phases, given that it is up."""
        shares: Floats = np.where(self.up, self.stationary, 0.0) / self.availability
        return shares

    def stays_up(self, time_s: float) -> float:
        """P[up at 0 and without a break until ``time_s``]."""
        inside = self.generator[np.ix_(self.up, self.up)]
        start = self.stationary[self.up]
        return float(start @ linalg.expm(inside * time_s).sum(axis=1))

    def up_twice(self, time_s: float) -> float:
        """P[up at 0 and up at ``time_s``], whatever happens in between."""
        later = np.where(self.up, self.stationary, 0.0) @ linalg.expm(self.generator * time_s)
        return float(later[self.up].sum())


def alternating(up: Chain, down: Chain) -> Process:
    """The process that is up for one phase-type time and down for another, in turn.

    >>> process = alternating((np.ones(1), np.array([[-1.0]])), (np.ones(1), np.array([[-9.0]])))
    >>> process.stationary.tolist()  # nine tenths of the time up
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

    >>> half = exponential(Failure(up=Exponential(mean_s=5.0), down=Exponential(mean_s=5.0)))
    >>> half.availability
    0.5
    """
    mean_up, mean_down = failure.up.mean_s, failure.down.mean_s
    return alternating(
        (np.ones(1), np.array([[-1.0 / mean_up]])), (np.ones(1), np.array([[-1.0 / mean_down]]))
    )


def joint_generator(processes: list[Process]) -> Floats:
    """The rates of several independent processes side by side; the last one varies fastest."""
    found = np.zeros((1, 1))
    for process in processes:
        count = len(process.generator)
        found = np.kron(found, np.eye(count)) + np.kron(np.eye(len(found)), process.generator)
    return found
