"""How far a run and its prediction may be apart though nothing is wrong with either.

Runs differ by chance. Where something fails or is away, that comes in clusters: one outage decides
about many events. So it is not counted event by event, but known from many simulated runs, each as
long as a real one. And what was calibrated has errors of its own, which no repetition averages out.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tidings.model.outcome import Outcome
from tidings.model.system import System
from tidings.model.uncertainty import Uncertain, uncertain_parameters, with_values
from tidings.prediction.predict import predict

RUNS_ALIKE = 200  # simulated, each as long as a real one, to know how much runs differ by chance
_SAME = 1e-6  # shares that differ by less, or vary by less from run to run, do not differ
_TIMERS_S = 1e-4  # the same of mean delays: timers of a machine are no surer than that
_MEAN_OF_NORMAL = math.sqrt(2.0 / math.pi)  # E|X| in standard deviations
_NUMBERS = ("on_time", "delay_mean_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Apart:
    """Of one number, by subscriber: its standard errors, in its own unit."""

    of_run: pd.Series  # by chance, from run to run
    of_prediction: pd.Series  # by what was calibrated, the same in all runs
    least: float  # what differs by less does not differ

    def by_chance(self) -> pd.Series:
        """How far one run is off on average if nothing but chance is at work."""
        return _MEAN_OF_NORMAL * self.of_run

    def in_standard_errors(self, off: pd.Series, runs: int = 1) -> pd.Series:
        """A mean difference over so many runs, in its standard errors.

        >>> one = Apart(of_run=pd.Series([6.0]), of_prediction=pd.Series([4.0]), least=0.0)
        >>> one.in_standard_errors(pd.Series([10.0]), runs=4).tolist()  # √(6²/4 + 4²) = 5
        [2.0]
        """
        whole = np.sqrt(self.of_run**2 / runs + self.of_prediction**2).clip(lower=self.least)
        return off.where(~(off.abs() <= self.least), 0.0) / whole


def apart(
    measured: Outcome, simulated: Outcome | None, unsure: pd.DataFrame | None
) -> tuple[Apart, Apart]:
    """How far on-time shares and mean delays of a run may be off.

    Chance is known from simulated runs; without any, from stretches of the measured one. ``unsure``
    are the standard errors of the prediction; None: they do not matter.
    """
    known = measured if simulated is None else simulated
    table = known.subscribers.set_index("subscriber")
    of_run = 1.0 if simulated is None else math.sqrt(RUNS_ALIKE)
    errors = pd.DataFrame(0.0, index=table.index, columns=[*_NUMBERS]) if unsure is None else unsure
    return (
        Apart(of_run=of_run * table["on_time_se"], of_prediction=errors["on_time"], least=_SAME),
        Apart(
            of_run=of_run * table["delay_mean_se_s"],
            of_prediction=errors["delay_mean_s"],
            least=_TIMERS_S,
        ),
    )


def together_apart(runs: Sequence[Apart]) -> Apart:
    """What holds for a typical one of several runs."""
    squares = pd.concat([each.of_run**2 for each in runs], axis=1).mean(axis=1)
    return Apart(of_run=np.sqrt(squares), of_prediction=runs[0].of_prediction, least=runs[0].least)


def errors_by_calibration(fitted: System) -> pd.DataFrame:
    """Standard errors of predicted on-time shares and mean delays, by subscriber.

    To first order, from those of the parameters, as in error bars of a prediction; but services
    that were fitted together are wrong together.
    """
    squares = pd.DataFrame(
        0.0, index=[each.name for each in fitted.subscribers], columns=[*_NUMBERS]
    )
    for group in _wrong_together(uncertain_parameters(fitted)[0], fitted):
        low, high = (
            _numbers(with_values(fitted, values))
            for values in ({one: one.low for one in group}, {one: one.high for one in group})
        )
        squares += ((high - low) / 2.0).fillna(0.0) ** 2
    return np.sqrt(squares)


def _wrong_together(parameters: Iterable[Uncertain], fitted: System) -> Iterable[list[Uncertain]]:
    """Parameters to be moved together; those of subscribers, as each concerns nobody else."""
    services = {each.name: each.service for each in fitted.brokers}
    groups: dict[Hashable, list[Uncertain]] = {}
    for one in parameters:
        key: Hashable = one.path
        if one.field == "service":
            key = services[one.owner]
        elif one.section == "subscribers":
            key = one.section, one.field
        groups.setdefault(key, []).append(one)
    return groups.values()


def _numbers(system: System) -> pd.DataFrame:
    subscribers = predict(system, delays=False, error_bars=False).subscribers
    return subscribers.set_index("subscriber")[[*_NUMBERS]]
