"""Which queue model is nearer the truth, where the truth is known in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from exact_queues import crommelin, gi_m_1
from tidings.model.laws import Deterministic, Exponential, Gamma
from tidings.reproduction.content_timeliness.where_it_holds import SCENARIOS, tree
from tidings.theory import predict

SERVICE_S = 0.1
# Not at whole services, where the law of M/D/1 has corners and steps.
DEADLINES_S = SERVICE_S * np.array([0.55, 1.05, 1.55, 2.05, 3.05, 4.05, 6.05, 8.05])


def m_d_1(every, service_s, t_s):
    """P[sojourn ≤ t] in an M/D/1 queue."""
    return crommelin(service_s / every.mean_s, t_s / service_s - 1.0)


QUEUES = {
    "D/M/1": (Deterministic(value_s=1.0), Exponential(mean_s=SERVICE_S), gi_m_1),
    "E4/M/1": (Gamma(mean_s=1.0, shape=4.0), Exponential(mean_s=SERVICE_S), gi_m_1),
    "M/D/1": (Exponential(mean_s=1.0), Deterministic(value_s=SERVICE_S), m_d_1),
}


@pytest.mark.parametrize("load", [0.6, 0.75, 0.9])
@pytest.mark.parametrize("name", QUEUES)
def test_the_better_model_is_nearer_the_exact_share(make, name, load):
    """Mean absolute error over deadlines from half a service to eight."""
    interval, service, exact = QUEUES[name]
    every = interval.scaled(SERVICE_S / load)
    system = make.line([service])
    system = replace(system, publishers=(replace(system.publishers[0], every=every),))
    errors = {}
    for model in ("law", "gg1", "mm1"):
        off = []
        for deadline_s in DEADLINES_S.tolist():
            asked = replace(system, lifetime=Deterministic(value_s=deadline_s))
            found = predict(asked, model=model, delays=False).subscribers["on_time"].iloc[0]
            off.append(abs(found - exact(every, SERVICE_S, deadline_s)))
        errors[model] = float(np.mean(off))
    assert errors["law"] < errors["gg1"] < errors["mm1"]
    if name == "M/D/1":
        assert errors["law"] < 1e-6


@pytest.mark.parametrize("seed", [7, 8])
def test_both_mean_shifts_are_the_same_where_all_is_exponential(seed):
    (scenario,) = (
        each for each in SCENARIOS if (each.name, each.load) == ("exponential / exponential", 0.75)
    )
    system = tree(seed, scenario)
    one, other = (
        predict(system, model=model, delays=False).subscribers["on_time"].to_numpy()
        for model in ("gg1", "mm1")
    )
    assert 0.05 < np.nanmin(one) < 0.95
    np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-12)
