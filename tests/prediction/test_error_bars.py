"""Error bars are what predictions of moved systems say, whatever is left out to get them sooner."""

from __future__ import annotations

import numpy as np
import pytest

from tidings.model.reading import loads
from tidings.model.uncertainty import uncertain_parameters, with_values
from tidings.prediction.theory import answer_by_theory

SYSTEM = """
tidings: 1
lifetime: 300ms
{more}
brokers: {{a: {{service: {{exponential: 20ms}}}}, b: {{service: {{exponential: 25ms}}{failure}}}}}
links: [{{between: [a, b], delay: {{exponential: 30ms}}}}]
publishers: {{p: {{at: a, every: {{exponential: 50ms}}, content: {{event: {{k: 1}}}}}}}}
subscribers:
  passing: {{at: b, wants: {{}}{stays}}}
  steady: {{at: b, wants: {{}}}}
standard_errors:
  brokers.a.service: 0.001
  brokers.b.service: 0.001
  links.a--b.delay: 0.002
"""
PLAIN = {"more": "", "failure": "", "stays": ""}
CASES = {
    "plain": PLAIN,
    "churning": {**PLAIN, "stays": ", stays: {exponential: 2s}, away: {exponential: 3s}"},
    "failing": {
        **PLAIN,
        "more": "recovery: {scheme: buffering}",
        "failure": ", failure: {mtbf: 1min, mttr: 1s}",
    },
}


@pytest.mark.parametrize("case", CASES)
def test_bars_are_the_differences_that_moved_parameters_make(case):
    system = loads(SYSTEM.format(**CASES[case]))
    columns = {"on_time": "on_time_se", "delay_mean_s": "delay_mean_se_s"}
    stated = answer_by_theory(system, error_bars=True).outcome.subscribers
    squares = dict.fromkeys(columns, 0.0)
    for parameter in uncertain_parameters(system)[0]:
        moved = with_values(system, {parameter: parameter.high})
        other = answer_by_theory(moved, error_bars=False).outcome.subscribers
        for name in columns:
            squares[name] = squares[name] + (other[name] - stated[name]).to_numpy() ** 2
    for name, bar in columns.items():
        # Moved systems keep the first one's grid and dispersion.
        assert stated[bar].to_numpy() == pytest.approx(np.sqrt(squares[name]), rel=0.02), bar
