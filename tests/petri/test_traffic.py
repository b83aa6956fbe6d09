from __future__ import annotations

import math

import pytest

from tidings.errors import UnstableError
from tidings.petri.cells import NetCells, flatten
from tidings.petri.reading import loads_net
from tidings.petri.simulating import simulate_net
from tidings.petri.traffic import refuse_overload, solve_traffic

LOOP = """
tidings_net: 1
colours: [job]
places:
  a: {{queue: {{service: {{exponential: 100ms}}}}}}
  b: {{queue: {{service: {{exponential: 50ms}}, servers: 2}}}}
transitions:
  come: {{modes: [{{after: {{exponential: 200ms}}, put: [{{place: a, colour: job}}]}}]}}
  pass:
    modes: [{{take: [{{place: a, colour: job}}], put: [{{place: b, colour: job, count: {count}}}]}}]
  back:
    modes:
      - take: [{{place: b, colour: job}}]
        put: [{{place: a, colour: job, share: {share}}}]
      - {{weight: 3, take: [{{place: b, colour: job}}]}}
"""


def traffic(text):
    return solve_traffic(NetCells(net=flatten(loads_net(text))))


def test_loops_and_forks_are_solved_exactly():
    # Of what visits a (rate x), two copies go to b and a quarter of half of these come back.
    found = traffic(LOOP.format(count=2, share=0.5))
    x = 5.0 / (1 - 2 * 0.25 * 0.5)
    assert found.rates_per_s == pytest.approx([x, 2 * x], rel=1e-12)
    assert found.loads == {
        "a": pytest.approx(x * 0.1, rel=1e-12),
        "b": pytest.approx(2 * x * 0.05 / 2, rel=1e-12),
    }


def test_overloaded_places_and_tokens_that_multiply_are_refused_by_name():
    with pytest.raises(UnstableError, match=r"place 'a' is overloaded, at 1 times its capacity"):
        refuse_overload(traffic(LOOP.format(count=2, share=1.0)))
    with pytest.raises(UnstableError, match=r"multiply without limit.*a, b"):
        traffic(LOOP.format(count=4, share=1.0))
    # Four copies go on and one in four comes back: 1 − 1e-10 for each one.
    with pytest.raises(UnstableError, match=r"multiply.*1 come back.*a, b"):
        traffic(LOOP.format(count=4, share=1.0 - 1e-10))
    with pytest.raises(UnstableError, match="place 'a'"):
        simulate_net(loads_net(LOOP.format(count=2, share=1.0)))


def test_a_publisher_that_comes_back_is_a_clock():
    found = traffic(
        """
        tidings_net: 1
        colours: [clock, event]
        places:
          p: {queue: {discipline: infinite-server, service: 250ms}, tokens: {clock: 3}}
          a: {queue: {service: 10ms}}
        transitions:
          publish:
            modes:
              - weight: 1
                take: [{place: p, colour: clock}]
                put: [{place: p, colour: clock}, {place: a, colour: event}]
              - {weight: 3, take: [{place: p, colour: clock}], put: [{place: p, colour: clock}]}
          go: {modes: [{take: [{place: a, colour: event}]}]}
        """
    )
    assert found.rates_per_s == pytest.approx([12.0, 3.0], rel=1e-12)
    assert found.loads == {"a": pytest.approx(0.03, rel=1e-12)}


def test_what_the_equations_do_not_tell_is_left_open():
    found = traffic(
        """
        tidings_net: 1
        colours: [job]
        places:
          think: {queue: {discipline: infinite-server, service: 1s}, tokens: {job: 5}}
          cpu: {queue: {service: 10ms}}
          out: {queue: {service: 10ms}}
        transitions:
          ask: {modes: [{take: [{place: think, colour: job}], put: [{place: cpu, colour: job}]}]}
          answer:
            modes:
              - take: [{place: cpu, colour: job}]
                put: [{place: think, colour: job}, {place: out, colour: job}]
          go: {modes: [{take: [{place: out, colour: job}]}]}
        """
    )
    assert all(math.isnan(rate) for rate in found.rates_per_s)
