"""A test on what is known: fit a system to the first part of its traces, predict the rest."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tidings.characterisation.fit.fitted import Characterisation
from tidings.characterisation.job import characterise
from tidings.characterisation.replaying import keep_times
from tidings.errors import InvalidTracesError
from tidings.model.outcome import Outcome
from tidings.model.progress import Progress
from tidings.model.system import System
from tidings.prediction.predict import predict
from tidings.traces.reading import Traces
from tidings.traces.window import TraceWindow
from tidings.validation.comparison import Comparison, compare

TIMES = "times.parquet"
COVERED = 0.9  # share of subscribers within the stated errors from which a test is passed


@dataclass(frozen=True, slots=True, kw_only=True)
class BackTestVerdict:
    """What a back-test comes to: mean on-time shares, and whether errors are what they are said.

    ``within_error`` is the share of subscribers whose two shares differ by no more than the errors
    that both state (95 %).
    """

    predicted: float
    unseen: float
    mean_error: float  # mean of absolute differences, subscriber by subscriber
    worst_error: float
    within_error: float
    subscribers: int

    @property
    def is_covered(self) -> bool:
        """Whether stated errors hold for nine subscribers in ten."""
        return self.within_error >= COVERED

    @property
    def text(self) -> str:
        """The verdict in one line."""
        said = "covered" if self.is_covered else "NOT covered: do not plan with this fit"
        return (
            f"Back-test: {self.predicted:.3f} on time predicted, {self.unseen:.3f} unseen; off by "
            f"{self.mean_error:.3f} on average and {self.worst_error:.3f} at most; within the "
            f"stated errors for {self.within_error:.0%} of {self.subscribers} subscribers: {said}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BackTest:
    """What the first part made us expect of the rest, and what came."""

    first: Characterisation
    predicted: Outcome  # of the system fitted to the first part
    measured: Outcome  # in the rest
    comparison: Comparison  # predicted against measured

    @property
    def verdict(self) -> BackTestVerdict:
        """Predicted, unseen, error, covered or not; of subscribers that have both shares."""
        rows = self.comparison.subscribers
        rows = rows[rows["on_time_difference"].notna()]
        size = rows["on_time_difference"].abs()
        return BackTestVerdict(
            predicted=float(rows["on_time_a"].mean()),
            unseen=float(rows["on_time_b"].mean()),
            mean_error=float(size.mean()),
            worst_error=float(size.max()),
            within_error=float((size <= rows["on_time_error"]).mean()),
            subscribers=len(rows),
        )

    @property
    def steadiness(self) -> Comparison:
        """What was measured in the first part against the rest: no model has a part in it."""
        return compare(self.first.measured, self.measured)

    @property
    def text(self) -> str:
        """What came of it: whether chance explains it, or the model, or that times changed."""
        apart, steady = self.comparison.summary, self.steadiness.summary
        return (
            "fitted to the first part, predicted for the rest: on-time shares are off by "
            f"{apart.mean_absolute:.3g} on average and {apart.maximum:.3g} at most; "
            f"{apart.within_2se:.0%} of {apart.with_se} subscribers agree within two "
            f"standard errors, {apart.within_error:.0%} if stated errors are counted too. "
            "For comparison, measurements of the two parts, without any model, agree "
            f"within two standard errors for {steady.within_2se:.0%}"
        )

    def to_document(self) -> dict[str, Any]:
        """Give the test as plain data for JSON: the comparison, and what explains differences."""
        return {
            "verdict": {**asdict(self.verdict), "covered": self.verdict.is_covered},
            **self.comparison.to_document(),
            "both_parts_within_2se": self.steadiness.summary.within_2se,
        }


def split(window: TraceWindow, share: float) -> tuple[TraceWindow, TraceWindow]:
    """Split a window into its first part and the rest.

    >>> split(TraceWindow(from_ns=0, until_ns=10), 0.7)
    (TraceWindow(from_ns=0, until_ns=7), TraceWindow(from_ns=7, until_ns=10))
    """
    if not 0.1 <= share <= 0.9:
        raise InvalidTracesError(f"the first part is {share:g} of the window; wants 0.1 to 0.9")
    until_ns = window.from_ns + int(share * (window.until_ns - window.from_ns))
    return (
        TraceWindow(from_ns=window.from_ns, until_ns=until_ns),
        TraceWindow(from_ns=until_ns, until_ns=window.until_ns),
    )


def back_test(
    traces: Traces,
    *,
    share: float = 0.5,
    base: System | None = None,
    settle_s: float = 0.0,
    replay: bool = False,
    progress: Progress = lambda stage: None,
) -> BackTest:
    """Predict the rest of some traces from their first part, and compare.

    With ``replay``, recorded publishing times of the first part stand for those of the rest.
    Differences are in units of both sides' standard errors: those of the prediction come from the
    standard errors of the fitted parameters.
    """
    begin, rest = split(traces.window, share)
    first = characterise(
        replace(traces, window=begin), base=base, progress=lambda stage: progress(f"first, {stage}")
    )
    with TemporaryDirectory() as folder:
        if replay:
            progress("publishing times")
            first = keep_times(first, replace(traces, window=begin), Path(folder) / TIMES)
        progress("predicting the rest")
        predicted = predict(first.system)
    second = characterise(
        replace(traces, window=rest),
        base=base,
        settle_s=settle_s,
        progress=lambda stage: progress(f"the rest, {stage}"),
    )
    return BackTest(
        first=first,
        predicted=predicted,
        measured=second.measured,
        comparison=compare(predicted, second.measured),
    )
