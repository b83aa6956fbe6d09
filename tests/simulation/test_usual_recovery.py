"""Without a word on recovery, clients subscribe again after a crash, in both engines."""

from __future__ import annotations

import pytest

from tidings.model.reading import loads
from tidings.simulation.run import simulate
from tidings.theory.answer import answer_by_theory

TEXT = """
tidings: 1
brokers: {{hub: {{}}, east: {{failure: {{availability: 0.9, period: 10s}}}}}}
links: [{{between: [hub, east], delay: 1ms}}]
publishers: {{p: {{at: hub, every: {{exponential: 50ms}}, content: {{event: {{topic: a}}}}}}}}
subscribers: {{s: {{at: east, wants: {{}}}}}}
lifetime: 1s
{recovery}
"""


def test_a_crash_costs_its_outage_and_no_more():
    system = loads(TEXT.format(recovery=""))
    theory = answer_by_theory(system).outcome
    assert theory.on_time == pytest.approx(0.9, abs=2e-4)  # some are hit on their way of 1 ms
    simulated = simulate(system, seed=3, duration_s=2_000.0, replications=10, warmup_s=10.0)
    row = simulated.subscribers.iloc[0]
    assert row["on_time_se"] < 0.01
    assert abs(row["on_time"] - theory.on_time) < 4 * row["on_time_se"]
    assert not simulated.warnings


def test_it_is_the_scheme_periodic_unless_another_is_given():
    usual = answer_by_theory(loads(TEXT.format(recovery=""))).outcome.on_time
    periodic = "recovery: {scheme: periodic}"
    assert answer_by_theory(loads(TEXT.format(recovery=periodic))).outcome.on_time == usual
    forgetting = answer_by_theory(loads(TEXT.format(recovery="recovery: {scheme: none}"))).outcome
    assert forgetting.on_time == 0.0
    assert "leave 'recovery' out" in forgetting.warnings[0]
