"""What is asked of a system: on-time shares that subscribers should get."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tidings.errors import InvalidInputError
from tidings.model.arrays import Floats
from tidings.model.outcome import Outcome
from tidings.model.record_tables import column
from tidings.model.system import System


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """An on-time share for everybody who has no target of their own in the system.

    It is met when at least ``of`` of all subscribers (a share of heads, not of events) get theirs.
    """

    share: float | None = None
    of: float = 1.0

    def __post_init__(self) -> None:
        for name, value in (("share", self.share), ("of", self.of)):
            if value is not None and not 0.0 <= value <= 1.0:
                raise InvalidInputError(f"the target's {name} is {value}; wants a share, 0 to 1")

    def wanted(self, system: System) -> Floats:
        """What each subscriber should get, as :meth:`shares`; refuses where nobody should."""
        shares = self.shares(system)
        if np.isnan(shares).all():
            raise InvalidInputError(
                "there is no target to check; give --target, or set a 'target' for "
                "subscribers in the system file"
            )
        return shares

    def shares(self, system: System) -> Floats:
        """What each subscriber should get; NaN for those of whom nothing is asked."""
        common = math.nan if self.share is None else self.share
        own = [each.target for each in system.subscribers]
        return np.array([common if each is None else each for each in own], dtype=np.float64)

    def satisfied(self, system: System, outcome: Outcome, lower: float | Floats = 0.0) -> float:
        """The share of subscribers, of those of whom something is asked, that get their target.

        ``lower`` asks what it would be if shares on time (all, or each) were so much lower.
        """
        return self.satisfied_by(system, outcome.subscribers["on_time"].to_numpy() - lower)

    def satisfied_by(self, system: System, shares: Floats) -> float:
        """The same by on-time shares [subscriber]; NaN for those who want nothing published."""
        wanted, counts = self.wanted(system), column(system.subscribers, "count")
        heads = np.array(counts.values)[counts.codes]
        # Who wants nothing that is published is not let down.
        asked = ~np.isnan(wanted) & ~np.isnan(shares)
        if not asked.any():
            return 1.0
        return float(heads[asked & (shares >= wanted)].sum() / heads[asked].sum())

    def is_met(self, satisfied: float) -> bool:
        """Whether this share of content subscribers is enough."""
        return satisfied >= self.of
