from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from studies.fault_tolerance import random_systems, real_uptimes
from studies.fault_tolerance.random_systems import random_system
from studies.fault_tolerance.real_uptimes import Effort, grouped, independent
from studies.fault_tolerance.uptime_traces import Uptimes
from studies.harness import silent
from tidings.model.laws import Weibull
from tidings.prediction.predict import predict

MEANS_S = (50_000.0, 5_000.0)


def bare(scheme="periodic", topology="tree"):
    system = random_system(1, topology=topology, machines="low-end", scheme=scheme)
    perfect = tuple(
        replace(
            each, there=replace(each.there, failure=None), back=replace(each.back, failure=None)
        )
        for each in system.links
    )
    return replace(system, links=perfect)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_alone_or_together_brokers_are_equally_available(share):
    """Subscribers at their publisher's home meet that one broker alone; none does better."""
    alone, group = (
        predict(make(bare(), MEANS_S, share), delays=False, by="theory").subscribers["on_time"]
        for make in (independent, grouped)
    )
    availability = 1.0 / ((1.0 + share * 0.1) * (1.0 + (1.0 - share) * 0.1))
    assert alone.max() == pytest.approx(availability, rel=1e-12)
    assert group.max() == pytest.approx(availability, rel=1e-12)
    # Further away, failing together is kinder: one outage of all, not many of some.
    assert (group >= alone - 1e-12).all()
    assert group.mean() > alone.mean() + 0.01


def uneven_trace():
    """Made-up components whose times are Weibull of shape 0.6, one after the other."""
    rng = np.random.default_rng(8)
    rows = []
    for component in range(20):
        now_s = 0.0
        for number in range(40):
            up = number % 2 == 0
            law = Weibull(scale_s=30_000.0 if up else 3_000.0, shape=0.6)
            length_s = float(law.sample(rng, 1)[0])
            rows.append(("x", component, up, now_s, length_s, True, True))
            now_s += length_s
    columns = ["scope", "component", "up", "begin_s", "length_s", "begun", "ended"]
    return Uptimes(name="made up", periods=pd.DataFrame(rows, columns=columns))


@pytest.mark.slow
@pytest.mark.statistical
def test_the_law_matters_with_buffers_and_not_without(monkeypatch):
    monkeypatch.setattr(random_systems, "BROKERS", 6)  # shorter ways, of the same machines
    monkeypatch.setattr(random_systems, "SUBSCRIBERS", 60)
    effort = Effort(runs=6, cycles=150.0, lifetimes_s=(3_600.0,))
    found = real_uptimes.examine(uneven_trace(), effort, silent)
    rows = found.by_law.set_index(["law", "scheme"])
    without = rows.xs("periodic", level="scheme")
    assert without.loc["fitted", "predicted"] == pytest.approx(
        without.loc["exponential", "predicted"], rel=1e-12
    )
    buffered = rows.xs("buffering", level="scheme")
    claimed = buffered.loc["exponential", "gain_predicted"]
    real = buffered.loc["as measured"]
    # Exponential times promise too much of buffers, by far more than chance.
    assert claimed - real["gain_simulated"] > 5 * real["gain_simulated_se"]
    for name in ("exponential", "fitted"):
        row = buffered.loc[name]
        assert row["gain_simulated_se"] < 0.05 * row["gain_predicted"]
        assert row["gain_predicted"] == pytest.approx(
            row["gain_simulated"], abs=5 * row["gain_simulated_se"]
        )
    groups = found.by_group
    off = (groups["predicted"] - groups["simulated"]).abs() / groups["simulated_se"]
    assert (off < 5).all()
