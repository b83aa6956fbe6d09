from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from tidings.errors import InvalidInputError
from tidings.model import reading
from tidings.model.outcome import Outcome, table
from tidings.model.uncertainty import uncertain_parameters, with_values
from tidings.prediction.predicting import predict
from tidings.simulation.run import simulate
from tidings.validation.intervals import intervals

# Three queues of regular servers in a row: what the second and third see is no Poisson stream.
TANDEM = """
tidings: 1
lifetime: 500ms
brokers:
  a: {service: {uniform: [0s, 140ms]}}
  b: {service: {uniform: [0s, 130ms]}}
  c: {service: {uniform: [0s, 120ms]}}
links: [{between: [a, b], reliability: 0.9}, {between: [b, c]}]
publishers: {p: {at: a, every: {exponential: 100ms}, content: {event: {topic: x}}}}
subscribers: {sa: {at: a, wants: {}}, sb: {at: b, wants: {}}, sc: {at: c, wants: {}}}
standard_errors: {brokers.a.service: 0.001, links.a--b.reliability: 0.01}
"""


def outcome(share, error):
    rows = {"subscriber": ["s"], "on_time": [share], "on_time_se": [error]}
    return Outcome(source="predicted", subscribers=table("subscribers", rows))


def test_errors_of_parameters_and_model_add_in_squares():
    (row,) = intervals(outcome(0.5, 0.03), model_error=0.04).to_dict("records")
    assert row["high"] - 0.5 == pytest.approx(NormalDist().inv_cdf(0.95) * 0.05, rel=1e-12)
    assert 0.5 - row["low"] == pytest.approx(row["high"] - 0.5, rel=1e-12)
    (sure,) = intervals(outcome(0.5, math.nan), model_error=0.0).to_dict("records")
    assert (sure["low"], sure["high"]) == (0.5, 0.5)
    (edge,) = intervals(outcome(0.99, 0.1), level=0.5).to_dict("records")
    assert edge["high"] == 1.0
    with pytest.raises(InvalidInputError):
        intervals(outcome(0.5, 0.1), level=1.0)


@pytest.mark.slow
@pytest.mark.statistical
def test_with_the_models_error_intervals_cover_what_is_simulated():
    truth = reading.loads(TANDEM)
    played = simulate(truth, seed=5, events=40_000, replications=6).subscribers
    assert played["on_time_se"].max() < 0.008  # half of what is allowed for the model alone
    known, _ = uncertain_parameters(truth)
    count, covered = 13, []
    for number in range(count):  # errors spread evenly over their plane, not drawn
        places = (number + 0.5) / count, (0.5 + number * 5 / count) % 1.0
        drawn = {
            one: one.value + one.standard_error * NormalDist().inv_cdf(place)
            for one, place in zip(known, places, strict=True)
        }
        found = intervals(predict(with_values(truth, drawn), delays=False, error_bars=True))
        inside = (found["low"] <= played["on_time"]) & (played["on_time"] <= found["high"])
        covered.append(inside.to_numpy())
    assert np.mean(covered) >= 0.85
