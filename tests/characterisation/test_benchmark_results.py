"""A result of the OpenMessaging Benchmark, read and fitted: its quantiles are given back.

The sample is written as the benchmark writes its results (uneven shares as keys, no word of how far
apart samples are, backlogs below zero), with numbers of our own: two in a thousand delays are far
longer than all others.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize

import tidings as td
from tidings.characterisation.job import characterise
from tidings.traces.importing import import_traces
from tidings.traces.readers.omb import read_omb
from tidings.traces.reading import read_traces

SAMPLE = Path(__file__).parents[1] / "traces" / "readers" / "samples" / "omb.json"
NAME = "OwnQueue 4-partitions-7k-rate"
pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def fitted(spark, few_rows, tmp_path_factory):
    to = tmp_path_factory.mktemp("benchmark") / "traces"
    files = [str(SAMPLE)]
    import_traces(spark, lambda _: read_omb(spark, files), files, to)
    return characterise(read_traces(spark, to))


@pytest.fixture(scope="module")
def result():
    return json.loads(SAMPLE.read_text())


def test_every_quantile_is_within_five_percent(fitted, result):
    (subscriber,) = fitted.system.subscribers
    assert subscriber.name == NAME
    law = subscriber.link.delay
    quantiles = result["aggregatedEndToEndLatencyQuantiles"]
    assert len(quantiles) > 300
    for percent, delay_ms in quantiles.items():
        share = float(percent) / 100.0

        def off(t, share=share):
            return float(np.asarray(law.cdf(t))) - share + 1e-9

        at_s = optimize.brentq(off, 0.0, 1.0, xtol=1e-9)
        assert 1e3 * at_s == pytest.approx(delay_ms, rel=0.05), percent


def test_the_prediction_has_them_too_and_says_their_source(fitted, result):
    row = td.predict(fitted.system).subscribers.iloc[0]
    for column, name in (("p50", "50pct"), ("p95", "95pct"), ("p99", "99pct")):
        expected_s = result[f"aggregatedEndToEndLatency{name}"] / 1e3
        assert row[f"delay_{column}_s"] == pytest.approx(expected_s, rel=0.05)
    numbers = fitted.parameters.set_index("path")
    assert numbers.loc[f"subscribers.{NAME}.link.delay", "source"] == "histograms"
    assert numbers.loc[f"queues.{NAME}.rate", "source"] == "levels"
    assert row["wanted_per_s"] == pytest.approx(np.mean(result["publishRate"]), rel=0.01)
    measured = fitted.measured.subscribers.iloc[0]
    assert measured["by"] == "histograms"
    assert measured["delay_p99_s"] == pytest.approx(row["delay_p99_s"], rel=0.05)
