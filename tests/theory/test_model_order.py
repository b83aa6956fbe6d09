"""Which queue model is nearer the truth, where the truth is known in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from exact_queues import crommelin, gi_m_1
from tidings.model.laws import Deterministic, Exponential, Gamma
from tidings.theory.answer import answer_by_theory

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
            answer = answer_by_theory(asked, model=model, delays=False).outcome
            off.append(abs(answer.on_time - exact(every, SERVICE_S, deadline_s)))
        errors[model] = float(np.mean(off))
    assert errors["law"] < errors["gg1"] < errors["mm1"]
