"""Error bars are what predictions of moved systems say, whatever is left out to get them sooner."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tidings.model.reading import loads
from tidings.model.uncertainty import uncertain_parameters, with_values
from tidings.theory.answer import answer_by_theory

SYSTEM = """
tidings: 1
lifetime: 300ms
{more}
brokers: {{a: {{service: {{exponential: 20ms}}}}, b: {{service: {{exponential: 25ms}}{failure}}}}}
links: [{{between: [a, b], delay: {{exponential: 30ms}}, reliability: {reliability}{failure}}}]
publishers: {{p: {{at: a, every: {{exponential: 50ms}}, content: {{event: {{k: 1}}}}}}}}
subscribers:
  passing: {{at: b, wants: {{}}{stays}}}
  steady: {{at: b, wants: {{}}}}
standard_errors:
  brokers.a.service: 0.001
  brokers.b.service: 0.001
  links.a--b.delay: 0.002
  links.a--b.reliability: 0.001
  publishers.p.rate: 0.4
{errors}
"""
PLAIN = {"more": "", "failure": "", "stays": "", "errors": "", "reliability": 0.99}
FAILING = {
    **PLAIN,
    "failure": ", failure: {mtbf: 1min, mttr: 1s}",
    "errors": """
  brokers.b.failure.mtbf: 5
  brokers.b.failure.mttr: 0.1
  links.a--b.failure.mtbf: 5
  links.a--b.failure.mttr: 0.1
""",
}
MIXED = """
tidings: 1
lifetime: 300ms
brokers:
  a: {service: {exponential: 6ms}, disk: {service: {exponential: 8ms}}}
  b: {service: {erlang: {shape: 3, mean: 9ms}}}
  c: {service: 5ms}
links:
  - {between: [a, b], delay: 20ms, reliability: 0.97}
  - {between: [b, c], delay: {shift: 5ms, exponential: 5ms}}
publishers:
  even: {at: a, every: {exponential: 60ms}, content: {event: {k: 1}}}
  bursty:
    at: b
    every: {hyperexponential: [{p: 0.8, mean: 20ms}, {p: 0.2, mean: 120ms}]}
    content: {event: {k: 2}}
  paced:
    at: c
    every: {erlang: {shape: 4, mean: 50ms}}
    link: {delay: {exponential: 3ms}, reliability: 0.95}
    content: {event: {k: 1}}
  roaming:
    at: a
    every: {exponential: 80ms}
    connectivity: {on: {exponential: 5s}, off: {exponential: 200ms}}
    content: {event: {k: 2}}
subscribers:
  far: {at: c, wants: {}, link: {delay: {exponential: 4ms}, reliability: 0.98}}
  near: {at: a, wants: {k: 2}}
  slow: {at: b, wants: {k: 1}, processing: {exponential: 15ms}}
standard_errors:
  brokers.a.service: 0.0002
  brokers.b.service: 0.0003
  brokers.c.service: 0.0001
  links.a--b.delay: 0.001
  links.a--b.reliability: 0.004
  links.b--c.delay: 0.001
  publishers.even.rate: 0.5
  publishers.bursty.rate: 0.9
  publishers.paced.rate: 0.3
  publishers.paced.link.delay: 0.0003
  publishers.paced.link.reliability: 0.01
  publishers.roaming.rate: 0.4
  publishers.roaming.connectivity.on: 0.5
  publishers.roaming.connectivity.off: 0.02
  subscribers.far.link.delay: 0.0005
  subscribers.far.link.reliability: 0.003
"""
CHURNING = """
tidings: 1
lifetime: 400ms
brokers:
  a: {service: {exponential: 8ms}}
  b: {service: {uniform: [2ms, 18ms]}}
  c: {service: {exponential: 6ms}}
  d: {service: 5ms}
links:
  - {between: [a, b], delay: {exponential: 40ms}, reliability: 0.98}
  - {between: [b, c], delay: 30ms}
  - {between: [c, d], delay: {uniform: [10ms, 70ms]}}
publishers:
  p: {at: a, every: {exponential: 40ms}, content: {event: {k: 1}}}
  q: {at: d, every: {erlang: {shape: 3, mean: 60ms}}, content: {event: {k: 2}}}
subscribers:
  near: {at: b, wants: {k: 1}, stays: {weibull: {shape: 0.8, mean: 4s}}, away: {exponential: 6s}}
  far:
    at: d
    wants: {}
    stays: {exponential: 1s}
    away: {exponential: 4s}
    link: {delay: {exponential: 20ms}, reliability: 0.97}
  lasting: {at: c, wants: {k: 2}}
standard_errors:
  brokers.a.service: 0.0004
  brokers.b.service: 0.0005
  brokers.c.service: 0.0003
  links.a--b.delay: 0.003
  links.a--b.reliability: 0.002
  links.b--c.delay: 0.002
  links.c--d.delay: 0.004
  publishers.p.rate: 0.8
  publishers.q.rate: 0.4
  subscribers.near.stays: 0.2
  subscribers.far.stays: 0.06
  subscribers.far.away: 0.3
  subscribers.far.link.delay: 0.002
  subscribers.far.link.reliability: 0.004
"""
CASES = {
    "plain": SYSTEM.format(**PLAIN),
    "mixed": MIXED,
    "churning": SYSTEM.format(
        **{
            **PLAIN,
            "stays": ", stays: {exponential: 2s}, away: {exponential: 3s}",
            "errors": "  subscribers.passing.stays: 0.2\n  subscribers.passing.away: 0.3",
        }
    ),
    "churning far": CHURNING,
    "buffering": SYSTEM.format(**{**FAILING, "more": "recovery: {scheme: buffering}"}),
    "losing": SYSTEM.format(**{**FAILING, "more": "recovery: {scheme: periodic}"}),
    "bypass": SYSTEM.format(**{**FAILING, "more": "recovery: {scheme: bypass}"}),
}


@pytest.mark.parametrize("case", CASES)
def test_bars_are_the_differences_that_moved_parameters_make(case):
    system = loads(CASES[case])
    columns = {"on_time": "on_time_se", "delay_mean_s": "delay_mean_se_s"}
    stated = answer_by_theory(system, error_bars=True).outcome.subscribers
    squares = dict.fromkeys(columns, 0.0)
    for parameter in uncertain_parameters(system)[0]:
        moved = with_values(system, {parameter: parameter.moved})
        other = answer_by_theory(moved, error_bars=False).outcome.subscribers
        for name in columns:
            squares[name] = squares[name] + (other[name] - stated[name]).to_numpy() ** 2
    for name, bar in columns.items():
        # To first order: a tenth is left to curvature, and to dispersion, which is not moved.
        assert stated[bar].to_numpy() == pytest.approx(np.sqrt(squares[name]), rel=0.1, abs=1e-6), (
            bar
        )


EDGE = """
tidings: 1
lifetime: 1s
brokers: {{a: {{service: {{exponential: {service}}}}}}}
publishers: {{p: {{at: a, every: {{exponential: 100ms}}, content: {{event: {{k: 1}}}}}}}}
subscribers: {{s: {{at: a, wants: {{}}}}}}
standard_errors: {{brokers.a.service: {error}}}
"""


@pytest.mark.parametrize(("service", "on_time"), [("99ms", 0.0), ("101ms", 1.0)])
def test_a_standard_error_across_full_load_counts_either_way(service, on_time):
    far_from_full = loads(EDGE.format(service=service, error=0.0001))
    in_doubt = loads(EDGE.format(service=service, error=0.002))
    sure, unsure = (
        answer_by_theory(system, error_bars=True) for system in (far_from_full, in_doubt)
    )
    row = unsure.outcome.subscribers.iloc[0]
    assert row["on_time_se"] == pytest.approx(abs(on_time - row["on_time"]))
    assert not np.isfinite(row["delay_mean_se_s"])
    assert "nearly overloaded" in {remark.kind for remark in unsure.outcome.remarks} - {
        remark.kind for remark in sure.outcome.remarks
    }


def test_parameters_known_exactly_are_not_named_as_left_out():
    system = loads(EDGE.format(service="50ms", error=0.001))
    for error, left_out in ((0.0, []), (0.1, ["messages.per_delivery"])):
        errors = (*system.standard_errors, ("messages.per_delivery", error))
        assert uncertain_parameters(replace(system, standard_errors=errors))[1] == left_out


@pytest.mark.parametrize("scheme", ["periodic", "bypass"])
def test_times_of_failures_that_are_hardly_known_count_by_their_slope(scheme):
    # As for availability A = up/(up + down): its standard error is A (1 − A) · s/up.
    system = loads(SYSTEM.format(**{**FAILING, "more": f"recovery: {{scheme: {scheme}}}"}))
    seldom_seen = replace(system, standard_errors=(("brokers.b.failure.mtbf", 24.0),))
    row = answer_by_theory(seldom_seen, error_bars=True).outcome.subscribers.iloc[0]
    assert row["on_time_se"] == pytest.approx(row["on_time"] / 61.0 * 24.0 / 60.0, rel=0.05)
