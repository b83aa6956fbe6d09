"""Many stages at once, as columns: what a stage is asked for most, one array each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidings.model.outcome import CAUSES
from tidings.theory.path_laws import SMOOTH_ENOUGH
from tidings.theory.stages import Stage, law_error

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ADDED = ("shift_s", "random_s", "variance_s2", "order", "delays", "kinked", "law_error")


@dataclass(frozen=True, slots=True, kw_only=True)
class StageColumns:
    """The masses and moments of stages; which delays they are made of is not kept."""

    survives: Floats
    lost: Mapping[str, Floats]  # by cause; only causes that occur
    shift_s: Floats
    random_s: Floats  # mean of the random part
    variance_s2: Floats
    atom: Floats  # share of what survives that takes the shift and nothing more
    order: Floats  # of smoothness, as of Delay
    delays: Floats  # how many random delays
    kinked: Floats  # how many of them have corners
    law_error: Floats  # how far the CDF of the delays can be off since their laws are

    @property
    def mean_s(self) -> Floats:
        """Mean delay of what survives, in seconds."""
        mean: Floats = self.shift_s + self.random_s
        return mean

    @property
    def rough(self) -> NDArray[np.bool_]:
        """Whether corners remain that inversion would smear."""
        found: NDArray[np.bool_] = (self.kinked > 0) & (self.order < SMOOTH_ENOUGH)
        return found

    def take(self, chosen: Ints) -> StageColumns:
        """The stages at these positions."""
        return StageColumns(
            survives=self.survives[chosen],
            atom=self.atom[chosen],
            lost={cause: share[chosen] for cause, share in self.lost.items()},
            **{name: getattr(self, name)[chosen] for name in _ADDED},
        )


def stage_columns(stages: Sequence[Stage]) -> StageColumns:
    """The columns of some stages."""
    causes = [cause for cause in CAUSES if any(cause in stage.lost for stage in stages)]
    delays = [stage.delays for stage in stages]
    return StageColumns(
        survives=np.array([stage.survives for stage in stages]),
        lost={
            cause: np.array([stage.lost.get(cause, 0.0) for stage in stages]) for cause in causes
        },
        shift_s=np.array([stage.shift_s for stage in stages]),
        random_s=np.array([sum(each.mean_s for each in own) for own in delays], dtype=np.float64),
        variance_s2=np.array(
            [sum(each.variance_s2 for each in own) for own in delays], dtype=np.float64
        ),
        atom=np.array([math.prod(each.atom for each in own) for own in delays], dtype=np.float64),
        order=np.array([sum(each.order for each in own) for own in delays], dtype=np.float64),
        delays=np.array([len(own) for own in delays], dtype=np.float64),
        kinked=np.array([sum(each.kinked for each in own) for own in delays], dtype=np.float64),
        law_error=np.array([law_error(own) for own in delays], dtype=np.float64),
    )


def columns_in_series(first: StageColumns, second: StageColumns) -> StageColumns:
    """One stage after the other, for each position: as :func:`stages.in_series`."""
    lost: dict[str, Floats] = dict(first.lost)
    nothing = np.zeros(first.survives.shape)
    for cause, share in second.lost.items():
        lost[cause] = lost.get(cause, nothing) + first.survives * share
    return StageColumns(
        survives=first.survives * second.survives,
        atom=first.atom * second.atom,
        lost=lost,
        **{name: getattr(first, name) + getattr(second, name) for name in _ADDED},
    )


def joined_columns(parts: list[StageColumns]) -> StageColumns:
    """The stages of several tables, one after the other."""
    causes = dict.fromkeys(cause for part in parts for cause in part.lost)
    names = [name for name in StageColumns.__slots__ if name != "lost"]
    return StageColumns(
        lost={
            cause: np.concatenate(
                [part.lost.get(cause, np.zeros(part.survives.size)) for part in parts]
            )
            for cause in causes
        },
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names},
    )
