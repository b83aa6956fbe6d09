"""What causes make of the stages of paths, to first order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from tidings.model.arrays import Complexes, Floats, Ints
from tidings.prediction.delay.delays import Delays

if TYPE_CHECKING:
    from tidings.prediction.network.network import Network


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one cause makes of one stage, to first order."""

    stage: int
    cause: int
    values: Complexes  # [time · node]: relative change of the transform
    survival: float = 0.0  # relative change of the share that survives
    shift_s: float = 0.0
    mean_s: float = 0.0
    held: float = 0.0  # relative change of the share that waits for no repair


def change(stage: int, cause: int, before: Delays, after: Delays) -> Change:
    """Compare one delay with what it becomes."""
    one, other = before.values[0], after.values[0]
    least = np.abs(one) > 0.0
    return Change(
        stage=stage,
        cause=cause,
        values=np.where(least, other / np.where(least, one, 1.0) - 1.0, 0.0),
        survival=float(after.survival[0] / before.survival[0] - 1.0),
        shift_s=float(after.shift_s[0] - before.shift_s[0]),
        mean_s=float(after.mean_s[0] - before.mean_s[0]),
    )


@dataclass(frozen=True, kw_only=True)
class Changes:
    """All changes, and how much of each cause there is in a move of each parameter."""

    each: Sequence[Change]
    moves: Floats  # [cause, parameter]

    @cached_property
    def stages(self) -> Ints:
        """[change]: the stage that it concerns."""
        return np.array([change.stage for change in self.each], dtype=np.int64)

    @cached_property
    def values(self) -> Complexes:
        """[change, time · node]: of the transform, relative."""
        return np.array([change.values for change in self.each], dtype=np.complex128)

    @cached_property
    def others(self) -> Floats:
        """[4, change]: of the surviving share, shift, mean, and share that waits for no repair.

        Shares are relative, times in seconds.
        """
        rows = [(each.survival, each.shift_s, each.mean_s, each.held) for each in self.each]
        return np.array(rows, dtype=np.float64).reshape(-1, 4).T

    @cached_property
    def by_parameter(self) -> sparse.csr_array:
        """[change, parameter]: how much of it there is in a move of the parameter."""
        causes = np.array([change.cause for change in self.each], dtype=np.int64)
        return sparse.csr_array(self.moves[causes])


@dataclass(frozen=True, slots=True)
class StageOrder:
    """Where the stages of each kind begin: sources at brokers, arcs, entries, what fails."""

    publishers: int
    arcs: int
    processes: int

    @property
    def arc(self) -> int:
        """The first arc, as a stage; sources come before."""
        return self.publishers + self.arcs

    @property
    def entry(self) -> int:
        """The first entry of a publisher."""
        return self.publishers + 2 * self.arcs

    @property
    def loss(self) -> int:
        """The first process that loses what meets it while it is down."""
        return 2 * (self.publishers + self.arcs)

    @property
    def wait(self) -> int:
        """The first process that lets what meets it wait until it is up again."""
        return self.loss + self.processes

    @property
    def count(self) -> int:
        """How many stages there are."""
        return self.wait + self.processes


def stage_order(network: Network) -> StageOrder:
    """Number the stages of a network."""
    processes = 0 if network.failing is None else len(network.failing.processes)
    return StageOrder(len(network.system.publishers), len(network.routes.arcs), processes)
