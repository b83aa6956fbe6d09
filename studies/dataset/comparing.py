"""Predictions beside the truth of a sample, and how far apart the two may be."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from pyspark.sql import SparkSession

from tidings.characterisation.job import characterise
from tidings.model.outcome import Outcome
from tidings.prediction.predict import predict
from tidings.samples.loading import Sample
from tidings.simulation.run import simulate
from tidings.traces.reading import read_traces

RUNS_ALIKE = 200  # simulated, each as long as the real one, to know how much runs differ by chance
_OF_95 = 1.96


def compared(spark: SparkSession, sample: Sample) -> pd.DataFrame:
    """Compare shares by subscriber: the truth, as characterised, and two predictions.

    ``stated`` is predicted from the system that was played, without what servers and relays take;
    ``learnt`` from the system fitted to the traces, with ``off`` standard errors to the truth. A
    standard error has the chance in a run of this length, told by as long simulated ones, and what
    prediction and parameters leave open.
    """
    traces = read_traces(spark, sample.traces)
    found = characterise(traces, base=sample.system)
    learnt = predict(found.system)
    runs = simulate(found.system, seed=1, replications=RUNS_ALIKE, duration_s=traces.window.seconds)
    by_chance = math.sqrt(RUNS_ALIKE) * _column(runs, "on_time_se")
    error = np.sqrt(
        by_chance**2
        + _column(learnt, "on_time_se").fillna(0.0) ** 2
        + (_column(learnt, "error").fillna(0.0) / _OF_95) ** 2
    )
    truth = _column(sample.measured, "on_time")
    return pd.DataFrame(
        {
            "events": _column(sample.measured, "events"),
            "truth": truth,
            "measured": _column(found.measured, "on_time"),
            "stated": _column(predict(sample.system), "on_time"),
            "learnt": _column(learnt, "on_time"),
            "error": error,
            "off": (_column(learnt, "on_time") - truth) / error.clip(lower=1e-6),
        }
    )


def _column(outcome: Outcome, name: str) -> pd.Series:
    return outcome.subscribers.set_index("subscriber")[name]
