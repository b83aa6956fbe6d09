from __future__ import annotations

import numpy as np
import pytest

from studies.content_timeliness import TEXTS
from studies.content_timeliness import other_traffic as holds
from studies.content_timeliness.other_traffic import (
    SCENARIOS,
    Scenario,
    bursts,
    bursty,
    system_of,
    tree,
)
from studies.harness import silent
from tidings.model.routes import route
from tidings.theory.queues.flows import flows


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda each: f"{each.name}, {each.load}")
def test_the_busiest_broker_has_the_load_asked_for(scenario):
    system = system_of(7, scenario)
    assert flows(system, route(system)).loads.max() == pytest.approx(scenario.load, rel=1e-9)


def test_the_seed_alone_decides_on_the_structure():
    one, other = (tree(7, scenario) for scenario in (SCENARIOS[0], SCENARIOS[-1]))
    assert [each.at for each in one.publishers] == [each.at for each in other.publishers]
    assert [each.wants for each in one.subscribers] == [each.wants for each in other.subscribers]
    assert [each.at for each in tree(8, SCENARIOS[0]).publishers] != [
        each.at for each in one.publishers
    ]


def test_bursts_are_what_they_are_said_to_be():
    """Against an interrupted Poisson stream played event by event, in standard errors."""
    law, rng, count = bursts(10.0, 20.0), np.random.default_rng(1), 400_000
    stop = 0.1  # while ON, the next thing to happen is the end of the burst, not an event
    pauses = rng.geometric(1.0 - stop, count) - 1  # before the next event
    gaps = rng.gamma(pauses + 1, 1.0 - stop) + 20.0 * rng.standard_gamma(pauses)
    gaps /= gaps.mean()
    assert law.mean_s == pytest.approx(1.0, rel=1e-12)
    assert bursty(6.0).scv == pytest.approx(6.0, rel=1e-12)
    # the influence of each gap on the squared coefficient of variation, the mean's included
    error = np.std((gaps - 1.0) ** 2 - 2.0 * gaps.var() * gaps) / np.sqrt(count)
    assert error < 0.01 * law.scv
    assert abs(law.scv - gaps.var()) < 5.0 * error


@pytest.mark.slow
def test_a_short_run_gives_a_row_for_every_model():
    mine = Scenario(name="mine", every=holds.EXPONENTIAL, service=holds.UNIFORM)
    effort = holds.Effort(seeds=(7,), replications=2, duration_s=200.0)
    points = holds.simulate_all(effort, silent, (mine,))
    found = holds.table(points)
    assert found["model"].tolist() == ["law", "gg1", "mm1"]
    assert found["mean_absolute"].iloc[0] < found["mean_absolute"].iloc[2]
    errors, plots = holds.study(TEXTS, points, effort).sections
    (shown,) = errors.exhibits
    assert shown.columns[3:] == ("law", "gg1", "mm1")
    assert shown.rows[0][:2] == ("mine", "0.75")
    (scatter,) = plots.exhibits
    assert len(scatter.clouds["system 7"]) == found["points"].iloc[0]
