"""A law of periods, as fitted: of being up or down, connected or away."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.characterisation.parameters import Parameter
from tidings.model.laws import Law


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPeriods:
    """The law of periods of one kind, how many whole ones tell it, and how well it fits."""

    law: Law
    family: str
    count: int
    mean_se_s: float
    distance: float
    verdict: str

    def parameter(self, path: str) -> Parameter:
        """The mean, with what it was fitted to."""
        return Parameter(
            path=path,
            estimate=self.law.mean_s,
            standard_error=self.mean_se_s,
            count=self.count,
            unit="s",
            family=self.family,
            goodness=self.distance,
            verdict=self.verdict,
        )
