"""Waits at brokers: the share that waits, the law of their waits, and how sure both are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.count.hops import hop_statistics
from tidings.characterisation.fit.laws import fit_law
from tidings.characterisation.fit.measured import waiting_parameters
from tidings.characterisation.fit.samples import sample_of
from tidings.model.laws import Exponential
from tidings.traces.window import TraceWindow

S = 10**9
HOPS = (
    "event string, broker string, came_from string, arrived_ns bigint, started_ns bigint, "
    "left_ns bigint, sent_to array<string>"
)


def queued(rng, arrivals, load):
    """Arrivals and starts, in seconds, at a single server with exponential everything."""
    arrived_s = np.cumsum(rng.exponential(1.0, arrivals))
    work_s = rng.exponential(load, arrivals)
    waited_s = np.zeros(arrivals)
    for n in range(1, arrivals):
        gap_s = arrived_s[n] - arrived_s[n - 1]
        waited_s[n] = max(waited_s[n - 1] + work_s[n - 1] - gap_s, 0.0)
    return arrived_s, waited_s, work_s


@pytest.mark.statistical
def test_waits_of_a_single_server_are_those_of_theory(spark, tmp_path):
    """In M/M/1 a share ρ waits, and their waits are exponential with mean 1/(μ − λ)."""
    load = 0.6
    arrived_s, waited_s, work_s = queued(np.random.default_rng(5), 40_000, load)
    arrived_ns = np.rint(arrived_s * S).astype(np.int64)
    started_ns = arrived_ns + np.rint(waited_s * S).astype(np.int64)
    rows = pd.DataFrame(
        {
            "event": [f"e{n}" for n in range(len(arrived_ns))],
            "broker": "hub",
            "came_from": "p",
            "arrived_ns": arrived_ns,
            "started_ns": started_ns,
            "left_ns": started_ns + np.rint(work_s * S).astype(np.int64),
            "sent_to": [[]] * len(arrived_ns),
        }
    )
    rows.to_parquet(tmp_path / "hops.parquet", index=False)
    window = TraceWindow(from_ns=0, until_ns=int(arrived_ns[-1]) + 1)
    hops = hop_statistics(spark.read.schema(HOPS).parquet(str(tmp_path)), window).toPandas()
    mean, share = waiting_parameters("hub", hops)
    some = waited_s[started_ns > arrived_ns]
    assert (mean.path, share.path) == ("brokers.hub.waiting", "brokers.hub.waiting.share")
    assert (mean.count, share.count) == (len(some), len(waited_s))
    assert share.estimate == pytest.approx(len(some) / len(waited_s), rel=1e-12)
    assert mean.fitted.sample.mean_s == pytest.approx(some.mean(), rel=1e-7)  # whole nanoseconds
    assert mean.family == "exponential"
    assert abs(share.estimate - load) < 5 * share.standard_error < 0.05
    truth_s = 1 / (1 / load - 1)
    assert abs(mean.estimate - truth_s) < 5 * mean.standard_error < 0.3 * truth_s
    # waits depend on each other: taken as independent they would seem surer by far
    assert mean.standard_error > 2 * sample_of(some).mean_se_s


def test_times_that_depend_on_each_other_are_judged_as_fewer():
    """Five hundred times, each twenty times: they seem far from their own law, and are not."""
    times_s = np.random.default_rng(3).exponential(0.01, 500).repeat(20)
    sample = sample_of(times_s)
    assert fit_law(sample).family == "empirical"
    fitted = fit_law(sample, as_good_as=500)
    assert isinstance(fitted.law, Exponential)
    assert fitted.count == 10_000
