"""Of thousands of subscribers, the worst keep their delay distributions, whoever answers."""

from __future__ import annotations

import pytest

from tidings.model.reading import loads
from tidings.simulation import results
from tidings.simulation.run import simulate
from tidings.theory import answer
from tidings.theory.answer import answer_by_theory

MANY, KEPT = 20, 6


@pytest.fixture
def system(monkeypatch):
    for module in (answer, results):
        monkeypatch.setattr(module, "MOST_DELAY_LAWS", MANY - 1)
        monkeypatch.setattr(module, "WORST_DELAY_LAWS", KEPT)
    own = "\n".join(
        f"  s{number}: {{at: b{number % 2}, wants: {{}}, lifetime: {40 + 37 * number % 200}ms}}"
        for number in range(MANY)
    )
    return loads(f"""
tidings: 1
brokers: {{b0: {{service: {{exponential: 20ms}}}}, b1: {{service: {{exponential: 30ms}}}}}}
links: [{{between: [b0, b1], delay: {{exponential: 20ms}}}}]
publishers: {{p: {{at: b0, every: {{exponential: 100ms}}, content: {{event: {{topic: a}}}}}}}}
subscribers:
{own}
""")


@pytest.mark.parametrize("engine", ["theory", "simulation"])
def test_the_worst_keep_their_distributions(system, engine):
    if engine == "theory":
        outcome = answer_by_theory(system).outcome
    else:
        outcome = simulate(system, duration_s=60.0, replications=2)
    assert set(outcome.delays["subscriber"]) == set(outcome.worst(KEPT)["subscriber"])


def test_all_keep_them_where_that_is_asked_for_and_none_where_not(system):
    everybody = answer_by_theory(system, delays=True).outcome
    assert everybody.delays["subscriber"].nunique() == MANY
    assert answer_by_theory(system, delays=False).outcome.delays.empty
    some = answer_by_theory(system).outcome.delays
    same = everybody.delays[everybody.delays["subscriber"].isin(some["subscriber"])]
    assert same.reset_index(drop=True).equals(some)
