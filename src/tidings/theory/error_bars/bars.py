"""Standard errors of a result that come from those of the parameters, and remarks on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tidings.model.arrays import Floats
from tidings.model.remarks import Remark
from tidings.model.system import System

Numbers = dict[str, Floats]  # by name of a column


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """Standard errors of columns of the result, and what they came from."""

    subscribers: Numbers = field(default_factory=dict)
    brokers: Numbers = field(default_factory=dict)
    parameters: int = 0
    left_out: tuple[str, ...] = ()  # paths whose influence is not known
    overloading: dict[int, str] = field(default_factory=dict)  # broker: the first path that may
    seconds: float | None = None  # that error bars would take, where they were left out

    def remarks(self, system: System) -> Iterator[Remark]:
        """Give what the reader of error bars must know."""
        for broker, path in self.overloading.items():
            yield Remark(
                kind="nearly overloaded",
                what="a broker is close to overload: a change of one parameter by its "
                "standard error would overload it",
                where=(system.brokers[broker].name, path),
                do="measure that parameter for longer",
            )
        if self.left_out:
            yield Remark(
                kind="standard errors left out",
                what="error bars are too short: standard errors of some parameters are not counted",
                where=self.left_out[:5],
                size=float(len(self.left_out)),
                unit="parameters",
                do="expect larger errors, or correct these names in 'standard_errors' of the "
                "system file",
            )
        if self.seconds is not None:
            yield Remark(
                kind="error bars left out",
                what="error bars were skipped because they would take long",
                size=self.seconds,
                unit="CPU seconds",
                do="use --error-bars to compute them anyway",
            )
