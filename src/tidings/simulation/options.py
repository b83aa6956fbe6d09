"""How long, how often and how precisely to simulate; light to import, for help shows it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from tidings.errors import InvalidInputError

if TYPE_CHECKING:
    from tidings.model.arrays import Floats

# From the on-time share of each subscriber, as it is known so far, to the half-width (95 %) that is
# wanted of it; infinity for rows that do not matter.
Wanted: TypeAlias = "Callable[[Floats], Floats]"

MOST_COPIES = 1_000_000
USUAL_SECONDS = 60.0  # CPU seconds that a default window is chosen for


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """How long and how often to simulate."""

    seed: int = 1
    replications: int = 10  # at least so many; with a precision more, up to max_replications
    duration_s: float | None = None  # measured time of each replication, or ...
    events: int | None = None  # ... events published in it, on average
    warmup_s: float | None = None  # left out before; found by pilot runs if not given
    precision: float | Wanted | None = None  # wanted half-width (95 %) of on-time shares
    split: bool = False  # count few misses by splitting, where that gets further in the same time
    seconds: float | None = None  # CPU seconds of all replications together; no limit if left out
    max_replications: int = 1_000
    max_copies: int = MOST_COPIES  # of events in the system at once; above it, it is unstable

    def __post_init__(self) -> None:
        if self.duration_s is not None and self.events is not None:
            raise InvalidInputError("give a duration or a number of events, not both")
        for name in (
            "replications",
            "duration_s",
            "events",
            "precision",
            "seconds",
            "max_copies",
            "max_replications",
        ):
            value = getattr(self, name)
            if value is None or callable(value):
                continue
            if not (value > 0 and math.isfinite(value)):
                raise InvalidInputError(f"{name} is {value}; wants a number above 0")
        if self.warmup_s is not None and not 0 <= self.warmup_s < math.inf:
            raise InvalidInputError(f"warmup_s is {self.warmup_s}; wants 0 or more")

    @property
    def first_replications(self) -> int:
        """Count the replications before the precision is looked at; the cap holds for them too."""
        if self.precision is None:
            return self.replications
        return min(self.replications, self.max_replications)

    @property
    def planned_seconds(self) -> float:
        """Give the CPU seconds that the length of replications is chosen for."""
        return self.seconds if self.seconds is not None else USUAL_SECONDS

    def wanted(self, shares: Floats) -> Floats:
        """Give the half-width (95 %) wanted of each on-time share; infinity: it does not matter."""
        import numpy as np

        if callable(self.precision):
            return self.precision(shares)
        return np.full(shares.shape, math.inf if self.precision is None else self.precision)


class SimulationChanges(TypedDict, total=False):
    """The options of a simulation by name; tests hold them to :class:`SimulationOptions`."""

    seed: int
    replications: int
    duration_s: float | None
    events: int | None
    warmup_s: float | None
    precision: float | Wanted | None
    split: bool
    seconds: float | None
    max_replications: int
    max_copies: int
