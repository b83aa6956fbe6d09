"""How far a prediction and runs on real servers are apart, and whether that is more than chance.

A run and its prediction may be apart though nothing is wrong with either. Runs differ by chance.
Where something fails or is away, that comes in clusters: one outage decides about many events. So
it is not counted event by event, but known from many simulated runs, each as long as a real one.
And what was calibrated has errors of its own, which no repetition averages out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tidings.model.outcome import Outcome
from tidings.model.system import System
from tidings.testbed.runs import StateChange
from tidings.testbed.tables import SO_LATE
from tidings.validation.comparison import Comparison

if TYPE_CHECKING:
    from tidings.testbed.calibrating import Reconnection

RUNS_ALIKE = 200  # simulated, each as long as a real one, to know how much runs differ by chance
NUMBERS = ("on_time", "delay_mean_s")
_SAME = 1e-6  # shares that differ by less, or vary by less from run to run, do not differ
_TIMERS_S = 1e-4  # the same of mean delays: timers of a machine are no surer than that
_MEAN_OF_NORMAL = math.sqrt(2.0 / math.pi)  # E|X| in standard deviations


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """Of one number, by subscriber: its standard errors, in its own unit."""

    of_run: pd.Series  # by chance, from run to run
    of_prediction: pd.Series  # by what was calibrated, the same in all runs
    least: float  # what differs by less does not differ

    def by_chance(self) -> pd.Series:
        """Compute how far one run is off on average if nothing but chance is at work."""
        return _MEAN_OF_NORMAL * self.of_run

    def in_standard_errors(self, off: pd.Series, runs: int = 1) -> pd.Series:
        """Express a mean difference over so many runs in its standard errors.

        >>> one = Apart(of_run=pd.Series([6.0]), of_prediction=pd.Series([4.0]), least=0.0)
        >>> one.in_standard_errors(pd.Series([10.0]), runs=4).tolist()  # √(6²/4 + 4²) = 5
        [2.0]
        """
        whole = np.sqrt(self.of_run**2 / runs + self.of_prediction**2).clip(lower=self.least)
        return off.where(~(off.abs() <= self.least), 0.0) / whole


def apart(
    measured: Outcome, simulated: Outcome | None, unsure: pd.DataFrame | None
) -> tuple[Apart, Apart]:
    """Compute how far on-time shares and mean delays of a run may be off.

    Chance is known from simulated runs; without any, from periods of the measured one. ``unsure``
    are the standard errors of the prediction; None: they do not matter.
    """
    known = measured if simulated is None else simulated
    table = known.subscribers.set_index("subscriber")
    of_run = 1.0 if simulated is None else math.sqrt(RUNS_ALIKE)
    errors = pd.DataFrame(0.0, index=table.index, columns=[*NUMBERS]) if unsure is None else unsure
    return (
        Apart(of_run=of_run * table["on_time_se"], of_prediction=errors["on_time"], least=_SAME),
        Apart(
            of_run=of_run * table["delay_mean_se_s"],
            of_prediction=errors["delay_mean_s"],
            least=_TIMERS_S,
        ),
    )


def mean_tolerance(runs: Sequence[Apart]) -> Apart:
    """Average the tolerances of several runs, by the root of their mean square."""
    squares = pd.concat([each.of_run**2 for each in runs], axis=1).mean(axis=1)
    return Apart(of_run=np.sqrt(squares), of_prediction=runs[0].of_prediction, least=runs[0].least)


MOST_SHARE, MOST_LATENCY = 0.02, 0.05  # a run agrees that is off by no more, mean over subscribers
MOST_ERRORS = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """One run at the system's own load, and how far the prediction was off."""

    measured: Outcome
    against_predicted: Comparison
    against_simulated: Comparison | None  # None: the simulator does not handle the system
    shares_apart: Apart  # how far on-time shares may be off though nothing is wrong
    delays_apart: Apart  # the same of mean delays
    is_steady: bool  # nothing fails or comes and goes: shares and delays themselves must agree
    duration_s: float
    relays_late_s: float  # 99th percentile
    publishers_late_s: float  # the same
    timeline: tuple[StateChange, ...]  # by seconds from the beginning of the window
    doubts: tuple[str, ...]  # why it is not to be believed
    subscription_spread: pd.DataFrame | None  # T_sub by broker; None: nothing comes and goes
    event_spread: pd.DataFrame | None  # T_diff by broker
    forwarded: pd.DataFrame  # source, target, events, went: which way events went on
    handled_again: Mapping[str, tuple[float, float]]  # by group: share predicted, and measured

    @property
    def share_by_chance(self) -> float:
        """How far runs as long as this are off by chance, mean over subscribers."""
        return float(self.shares_apart.by_chance().mean())

    @property
    def latency_by_chance(self) -> float:
        """The same of mean delays, as a share of them."""
        predicted_s = _by_subscriber(self, "delay_mean_s_a")
        return float((self.delays_apart.by_chance() / predicted_s).mean())

    @property
    def latency_error(self) -> float:
        """Mean over subscribers of |predicted − measured| mean delay, as a share of the latter."""
        return _latency_error(self.against_predicted)

    @property
    def simulated_latency_error(self) -> float:
        """The same of what was simulated; NaN where nothing was."""
        compared = self.against_simulated
        return math.nan if compared is None else _latency_error(compared)

    @property
    def most_share_errors(self) -> float:
        """The largest difference of on-time shares, in standard errors of a run as long as this."""
        return _largest(self.shares_apart.in_standard_errors(_by_subscriber(self, _SHARE)))

    @property
    def most_delay_errors(self) -> float:
        """The same of mean delays; NaN where nothing was delivered."""
        return _largest(self.delays_apart.in_standard_errors(_by_subscriber(self, _DELAY)))

    @property
    def agrees(self) -> bool | None:
        """Whether the prediction is as near to reality as it should be; None: not to be believed.

        Where outages and absences make most of the chance in a run, that is within ``MOST_ERRORS``
        of the standard errors that runs of this length have, shares and delays alike.
        """
        if self.doubts:
            return None
        if not self.is_steady:
            return within_errors(self.most_share_errors, self.most_delay_errors)
        share = self.against_predicted.summary.mean_absolute
        return share <= MOST_SHARE and self.latency_error <= MOST_LATENCY


_SHARE, _DELAY = "on_time_difference", "delay_mean_s_difference"


def within_errors(*errors: float) -> bool:
    """Test whether nothing is off by more than ``MOST_ERRORS``; what is not known (NaN) is not off.

    >>> within_errors(2.9, math.nan), within_errors(0.1, 3.1)
    (True, False)
    """
    return not any(each > MOST_ERRORS for each in errors)


def _largest(errors: pd.Series) -> float:
    return float(errors.abs().max())


def _latency_error(compared: Comparison) -> float:
    table = compared.subscribers
    return float((table["delay_mean_s_difference"] / table["delay_mean_s_b"]).abs().mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class Reality:
    """A system's prediction from a calibration, beside what was measured.

    Runs that are not to be believed are shown, and count in no error and no verdict; nor does any
    where the calibration or the drill is not to be believed (``doubts``).
    """

    fitted: System
    load: float  # of the busiest broker, predicted
    predicted: Outcome
    simulated: Outcome | None
    reconnection: Reconnection | None  # None: nothing fails
    repetitions: tuple[Repetition, ...]
    notes: tuple[str, ...]
    doubts: tuple[str, ...] = ()  # why the prediction itself is not to be believed

    @property
    def trusted(self) -> tuple[Repetition, ...]:
        """The runs that are believed, beside a prediction that is."""
        return () if self.doubts else tuple(one for one in self.repetitions if not one.doubts)

    @property
    def counted(self) -> tuple[Repetition, ...]:
        """The runs that numbers are of: those that are believed; all where none is."""
        return self.trusted or self.repetitions

    @property
    def first(self) -> tuple[int, Outcome]:
        """The first run that numbers are of: which it is, and what was measured.

        Where something fails, comes or goes its standard errors are those of whole runs.
        """
        one = self.counted[0]
        number = next(n for n, each in enumerate(self.repetitions, 1) if each is one)
        provenance = dict(one.measured.provenance) | {"run": number}
        measured = replace(one.measured, provenance=provenance)
        if one.is_steady:
            return number, measured
        who = measured.subscribers["subscriber"]
        errors = {
            "on_time_se": who.map(one.shares_apart.of_run),
            "delay_mean_se_s": who.map(one.delays_apart.of_run),
        }
        return number, replace(measured, subscribers=measured.subscribers.assign(**errors))

    @property
    def all_doubts(self) -> tuple[str, ...]:
        """Everything that speaks against believing something of it, each once, with of what.

        Doubts that mean the same are told together.
        """
        of_runs = (
            f"run {number}: {doubt}"
            for number, each in enumerate(self.repetitions, 1)
            for doubt in each.doubts
        )
        whose: dict[str, list[str]] = {}
        for doubt in (*self.doubts, *of_runs):
            who, _, meaning = doubt.partition(SO_LATE)
            whose.setdefault(meaning, []).append(who)
        return tuple(
            "; ".join(who) + SO_LATE * bool(meaning) + meaning for meaning, who in whose.items()
        )

    @property
    def is_steady(self) -> bool:
        """Whether nothing fails, comes or goes."""
        return all(each.is_steady for each in self.repetitions)

    @property
    def share_error(self) -> float:
        """Mean over subscribers of |predicted − measured| on-time share, all runs together."""
        return float(self._mean(_SHARE).abs().mean())

    @property
    def latency_error(self) -> float:
        """Mean over subscribers of |predicted − measured| mean delay, as a share of the latter."""
        return float(self._latency_errors().mean())

    @property
    def largest_share_error(self) -> float:
        """The largest |predicted − measured| on-time share of a subscriber, all runs together."""
        return _largest(self._mean(_SHARE))

    @property
    def largest_latency_error(self) -> float:
        """The same of mean delays, as a share of what was measured."""
        return _largest(self._latency_errors())

    @property
    def most_share_errors(self) -> float:
        """The largest difference of on-time shares in standard errors of all runs together."""
        return _largest(self._share_errors())

    @property
    def most_delay_errors(self) -> float:
        """The same of mean delays; NaN where nothing was delivered."""
        return _largest(self._delay_errors())

    @property
    def beyond_chance(self) -> dict[str, float]:
        """Who is off by more than ``MOST_ERRORS`` in share or mean delay, and by how many.

        All runs together. Of steady systems what the calibration leaves open is not in them.
        """
        both = pd.concat([self._share_errors(), self._delay_errors()], axis=1).abs().max(axis=1)
        return {str(name): float(off) for name, off in both[both > MOST_ERRORS].items()}

    @property
    def agrees(self) -> bool | None:
        """Whether all runs together agree with the prediction; None: none is to be believed."""
        if not self.trusted:
            return None
        if not self.is_steady:
            return within_errors(self.most_share_errors, self.most_delay_errors)
        return self.share_error <= MOST_SHARE and self.latency_error <= MOST_LATENCY

    def _mean(self, column: str) -> pd.Series:
        """Average a column of the comparisons over runs, by subscriber."""
        return pd.concat([_by_subscriber(one, column) for one in self.counted], axis=1).mean(axis=1)

    def _latency_errors(self) -> pd.Series:
        return (self._mean(_DELAY) / self._mean("delay_mean_s_b")).abs()

    def _share_errors(self) -> pd.Series:
        return self._errors(_SHARE, [each.shares_apart for each in self.counted])

    def _delay_errors(self) -> pd.Series:
        return self._errors(_DELAY, [each.delays_apart for each in self.counted])

    def _errors(self, column: str, apart: Sequence[Apart]) -> pd.Series:
        return mean_tolerance(apart).in_standard_errors(self._mean(column), len(apart))


def _by_subscriber(one: Repetition, column: str) -> pd.Series:
    return one.against_predicted.subscribers.set_index("subscriber")[column]
