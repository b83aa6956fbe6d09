"""The numbers of a system by their paths."""

from __future__ import annotations

import pytest

from tidings.model.parameter_values import parameter_values
from tidings.model.reading import loads

SYSTEM = """
tidings: 1
brokers:
  a: {service: {exponential: 4ms}, failure: {mtbf: 1h, mttr: 60s}}
  b: {}
links: [{between: [a, b], delay: 3ms, reliability: 0.8, failure: {mtbf: 90s, mttr: 5s}}]
publishers: {p: {at: a, every: 250ms, content: {event: {x: 1}}}}
subscribers:
  s: {at: b, wants: {}, link: {reliability: 0.5, loss_burst: 3}}
  t: {at: b, wants: {}, stays: {exponential: 40s}, away: {uniform: [10s, 20s]}}
  u: {at: b, wants: {}, connectivity: {on: 20s, off: {exponential: 2s}}}
"""


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("brokers.a.service", 0.004),
        ("brokers.a.failure.mtbf", 3600.0),
        ("brokers.a.failure.mttr", 60.0),
        ("links.a--b.delay", 0.003),
        ("links.b--a.back.reliability", 0.8),
        ("links.b--a.failure.mttr", 5.0),
        ("publishers.p.rate", 4.0),
        ("subscribers.t.stays", 40.0),
        ("subscribers.t.away", 15.0),
        ("subscribers.u.connectivity.on", 20.0),
        ("subscribers.u.connectivity.off", 2.0),
        # Lost in a row on average: as stated, or by chance where losses are independent.
        ("subscribers.s.link.loss_burst", 3.0),
        ("links.a--b.loss_burst", 1.25),
        ("subscribers.t.link.loss_burst", 1.0),
    ],
)
def test_every_number_has_its_path(path, value):
    assert dict(parameter_values(loads(SYSTEM)))[path] == pytest.approx(value)


def test_what_a_system_does_not_have_has_none():
    paths = dict(parameter_values(loads(SYSTEM)))
    assert not {"brokers.b.service", "brokers.b.failure.mtbf", "subscribers.s.stays"} & paths.keys()
