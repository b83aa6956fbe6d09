import math

import numpy as np
import pytest

from tidings.model.laws import Deterministic, Exponential
from tidings.model.reading import loads
from tidings.theory.answer import answer_by_theory
from tidings.theory.delay.delays import from_law, nothing, stack
from tidings.theory.delay.grids import Grid
from tidings.theory.error_table import stated_errors
from tidings.theory.peers.stay_weights import Meeting, weighed_by_stay

GRID = Grid.spanning(1e-5, 1e5)


def meeting(spreading, stays):
    """The only place where a subscription meets events, which are there at once."""
    return Meeting(
        arcs=[], chances=np.ones(1), spreading=spreading, before=nothing(GRID), stays=stays
    )


def test_a_constant_stay_loses_what_spreading_and_arriving_take():
    # d = (T_ON − D_sub − D_diff)/T_ON for constant delays.
    path = from_law(GRID, Deterministic(value_s=1.0))
    spreading = from_law(GRID, Deterministic(value_s=2.0))
    weighed = weighed_by_stay(path, meeting(spreading, Deterministic(value_s=10.0)))
    assert float(weighed.survival[0]) == pytest.approx(0.7, abs=1e-6)
    assert float(weighed.lost["not_known"][0]) == pytest.approx(0.2, abs=1e-6)
    assert float(weighed.lost["unsubscribed"][0]) == pytest.approx(0.1, abs=1e-6)


def test_exponential_stays_and_delays():
    path = from_law(GRID, Exponential(mean_s=1.0))
    spreading = from_law(GRID, Exponential(mean_s=2.0))
    weighed = weighed_by_stay(path, meeting(spreading, Exponential(mean_s=10.0)))
    assert float(weighed.survival[0]) == pytest.approx(1.0 / (1.1 * 1.2), abs=2e-3)


def test_whoever_draws_events_further_saves_the_spreading():
    path = from_law(GRID, Deterministic(value_s=1.0))
    spreading = stack([from_law(GRID, Deterministic(value_s=value)) for value in (4.0, 0.0)])
    before = stack([nothing(GRID), from_law(GRID, Deterministic(value_s=0.5))])
    halves = Meeting(
        arcs=[0],
        chances=np.array([0.5, 0.5]),
        spreading=spreading,
        before=before,
        stays=Deterministic(value_s=10.0),
    )
    weighed = weighed_by_stay(path, halves)
    assert float(weighed.survival[0]) == pytest.approx(0.5 * 0.5 + 0.5 * 0.9, abs=1e-6)


def test_a_visitor_beside_a_lasting_subscriber_needs_no_spreading():
    text = """
    tidings: 1
    lifetime: 10s
    brokers: {{a: {{}}, b: {{}}}}
    links: [{{between: [a, b], delay: 1s}}]
    publishers: {{p: {{at: a, every: {{exponential: 1s}}, content: {{event: {{x: 1}}}}}}}}
    subscribers:
      visitor: {{at: b, wants: {{}}, stays: {{exponential: 20s}}, away: {{exponential: 20s}}}}
      {other}
    """
    alone = answer_by_theory(loads(text.format(other=""))).outcome.subscribers
    beside = answer_by_theory(
        loads(text.format(other="resident: {at: b, wants: {}}"))
    ).outcome.subscribers
    assert alone["on_time"][0] == pytest.approx(math.exp(-2.0 / 20.0), abs=1e-3)
    assert beside["on_time"][0] == pytest.approx(math.exp(-1.0 / 20.0), abs=1e-3)
    assert beside["on_time"][1] == 1.0


def test_theory_is_not_believed_where_a_broker_is_busy_only_while_somebody_is_there():
    text = """
    tidings: 1
    lifetime: 300ms
    brokers: {{a: {{}}, b: {{service: {{exponential: 30ms}}}}}}
    links: [{{between: [a, b], delay: 10ms}}]
    publishers: {{p: {{at: a, every: {{exponential: 240ms}}, content: {{event: {{x: 1}}}}}}}}
    subscribers:
      visitor: {{at: b, wants: {{}}, stays: {{exponential: 10s}}, away: {{exponential: 20s}}}}
      {other}
    """
    for other, flag in (("", 1.0), ("resident: {at: b, wants: {}}", 0.0)):
        answer = answer_by_theory(loads(text.format(other=other)))
        assert answer.regimes["load_by_presence"].iloc[0] == flag
        assert np.isinf(stated_errors(answer.regimes)[0]) == bool(flag)
