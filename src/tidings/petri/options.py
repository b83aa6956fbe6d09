"""How a net is made and simulated: light to import, so that help can show what is usual."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tidings.errors import InvalidInputError

FORWARDING = ("joint", "independent")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetOptions:
    """How long and how often to simulate a net."""

    seed: int = 1
    replications: int = 10  # at least so many; with a precision more, up to max_replications
    duration_s: float | None = None  # measured time of each replication
    warmup_s: float | None = None  # left out before; found by pilot runs if not given
    precision: float | None = None  # wanted half-width (95 %) of mean residence times, as a share
    seconds: float | None = None  # CPU seconds of all replications together; no limit if left out
    max_replications: int = 1_000
    max_tokens: int = 1_000_000  # in the net at once; above it, a population keeps growing
    quantiles: bool = True

    def __post_init__(self) -> None:
        above_0 = ("replications", "duration_s", "precision", "seconds", "max_replications")
        for name in (*above_0, "max_tokens"):
            value = getattr(self, name)
            if value is not None and not (value > 0 and math.isfinite(value)):
                raise InvalidInputError(f"{name} is {value}; wants a number above 0")
        if self.warmup_s is not None and not 0 <= self.warmup_s < math.inf:
            raise InvalidInputError(f"warmup_s is {self.warmup_s}; wants 0 or more")
