"""Detours load the brokers that they cross, and theory does not speak where that is too much."""

from __future__ import annotations

import numpy as np
import pytest

from systems import frozen
from systems.catalogue import CATALOGUE
from tidings.model.reading import loads
from tidings.model.routes import route
from tidings.prediction.predict import predict
from tidings.theory.network.network import Network

TRIANGLE = """
tidings: 1
lifetime: 1s
recovery: {{scheme: bypass}}
routing: {{tree: [[a, b], [b, c]]}}
brokers:
  a: {{service: {{exponential: 10ms}}}}
  b: {{service: {{exponential: 10ms}}}}
  c: {{service: {{exponential: 10ms}}}}
links:
  - {{between: [a, b], failure: {{mtbf: 1d, mttr: {mttr}}}}}
  - {{between: [b, c]}}
  - {{between: [a, c]}}
publishers:
  p: {{at: a, every: {{exponential: {every}}}, content: {{event: {{k: 1}}}}}}
subscribers:
  near: {{at: b, wants: {{}}}}
  far: {{at: c, wants: {{}}}}
"""


def loads_at_worst(every, mttr="10min"):
    system = loads(TRIANGLE.format(every=every, mttr=mttr))
    network = Network(system=system, routes=route(system))
    return network.regimes.loads_at_worst


def test_a_broker_on_the_way_round_gets_what_it_hands_on_and_its_own():
    # While a – b is down, events reach b by c, and c again from b.
    assert loads_at_worst("40ms") == pytest.approx([0.25, 0.25, 0.5])


def test_overload_for_an_instant_in_a_year_is_no_overload():
    often, rarely = loads_at_worst("15ms"), loads_at_worst("15ms", mttr="1s")
    assert often[2] == pytest.approx(4 / 3)
    assert rarely[2] < 1.0


def test_the_stated_error_holds_where_detours_overload_brokers():
    name = "ring of six with a chord, bypass, 0.48 busy"
    outcome = predict(CATALOGUE[name].make(), error_bars=False)
    rows = frozen.rows(frozen.load()[name], outcome)
    off = np.array([row.error(row.now) for row in rows])
    noise = np.array([row.simulated_se for row in rows])
    # Half-widths of 95 % and the noise of what it is compared with, at 4 standard errors.
    stated = outcome.subscribers["error"].to_numpy()
    assert np.all(off <= 4.0 * np.hypot(stated / 1.96, noise)), (off, stated)
    assert off.max() <= 0.01
