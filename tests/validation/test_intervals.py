from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from tidings.errors import InvalidInputError
from tidings.model import reading
from tidings.model.outcome import Outcome, table
from tidings.model.uncertainty import uncertain_parameters, with_values
from tidings.prediction.predict import predict
from tidings.simulation.run import simulate
from tidings.validation.intervals import intervals, sides

# Two queues of regular servers in a row: what the second sees is no Poisson stream, so that the
# model is off by about as much as the parameters are uncertain.
TANDEM = """
tidings: 1
lifetime: 400ms
brokers: {a: {service: {uniform: [0s, 140ms]}}, b: {service: {uniform: [0s, 130ms]}}}
links: [{between: [a, b], reliability: 0.9}]
publishers: {p: {at: a, every: {exponential: 100ms}, content: {event: {topic: x}}}}
subscribers: {sa: {at: a, wants: {}}, sb: {at: b, wants: {}}}
standard_errors: {brokers.a.service: 0.0003, links.a--b.reliability: 0.003}
"""


def outcome(share, se, **answered):
    rows = {"subscriber": ["s"], "on_time": [share], "on_time_se": [se]}
    rows |= {name: [value] for name, value in answered.items()}
    return Outcome(source="predicted", subscribers=table("subscribers", rows))


def in_log_odds(share, half):
    """How far above a share an interval reaches that has this half-width to first order."""
    logit = math.log(share / (1.0 - share)) + half / (share * (1.0 - share))
    return 1.0 / (1.0 + math.exp(-logit)) - share


@pytest.mark.parametrize("mirrored", [False, True])
def test_few_failures_make_misses_uncertain_by_a_factor(mirrored):
    """A tenth is missed, known to a quarter of itself: so are the odds of missing, nearly."""
    (row,) = intervals(outcome(0.1 if mirrored else 0.9, 0.025), model_error=0.0).to_dict("records")
    low, high = (1.0 - row["high"], 1.0 - row["low"]) if mirrored else (row["low"], row["high"])
    factor = math.exp(NormalDist().inv_cdf(0.95) * 0.025 / 0.09)
    assert (1.0 - low) / low == pytest.approx(factor / 9.0)
    assert (1.0 - high) / high == pytest.approx(1.0 / factor / 9.0)


@pytest.mark.statistical
@pytest.mark.parametrize("failures", [6, 12, 24])
def test_intervals_hold_where_few_failures_were_seen(failures):
    """Of a part that is down 2 % of the time: how often it fails and how long, both drawn."""
    random = np.random.default_rng(3)
    count = np.maximum(random.poisson(failures, 4_000), 2)
    missed = 0.02 * count / failures * random.gamma(count, 1.0 / count)
    errors = missed * np.sqrt(2.0 / count)
    below, above = sides(1.0 - missed, errors, 1.96)
    held = np.mean((missed - above <= 0.02) & (missed + below >= 0.02))
    assert held == pytest.approx(0.95, abs=0.01 + 4.0 * math.sqrt(0.05 * 0.95 / count.size))
    plainly = np.mean(np.abs(missed - 0.02) <= 1.96 * errors)
    assert plainly < held - 0.01


def test_errors_of_parameters_and_model_add_in_squares():
    (row,) = intervals(outcome(0.5, 0.03), model_error=0.04).to_dict("records")
    z = NormalDist().inv_cdf(0.95)
    half = math.hypot(in_log_odds(0.5, z * 0.03), z * 0.04)
    assert row["high"] - 0.5 == pytest.approx(half, rel=1e-12)
    assert 0.5 - row["low"] == pytest.approx(row["high"] - 0.5, rel=1e-12)
    (sure,) = intervals(outcome(0.5, math.nan), model_error=0.0).to_dict("records")
    assert (sure["low"], sure["high"]) == (0.5, 0.5)
    (edge,) = intervals(outcome(0.99, 0.1), level=0.5).to_dict("records")
    assert edge["low"] == pytest.approx(0.99 - NormalDist().inv_cdf(0.75) * 0.1)
    assert 0.999 < edge["high"] <= 1.0
    for share in (0.0, 0.4, 1.0):  # one standard error decides whether a broker is overloaded
        (vague,) = intervals(outcome(share, math.inf)).to_dict("records")
        assert (vague["low"], vague["high"]) == (0.0, 1.0)
    with pytest.raises(InvalidInputError):
        intervals(outcome(0.5, 0.1), level=1.0)


def test_the_error_of_each_row_counts_once():
    """At 95 % an error stated is as wide as that; in a simulated row it is the standard error."""
    (row,) = intervals(outcome(0.5, 0.03, error=0.04, by="theory"), level=0.95).to_dict("records")
    z = NormalDist().inv_cdf(0.975)
    assert row["high"] - 0.5 == pytest.approx(
        math.hypot(in_log_odds(0.5, z * 0.03), 0.04), rel=1e-12
    )
    assert row["model_error"] == 0.04
    played = outcome(0.5, 0.03, error=0.07, by="simulation")
    (row,) = intervals(played, level=0.95).to_dict("records")
    assert row["high"] - 0.5 == pytest.approx(in_log_odds(0.5, z * 0.03), rel=1e-12)
    assert row["model_error"] == 0.0
    (row,) = intervals(outcome(0.5, 0.03), level=0.95).to_dict("records")  # nobody says it
    assert row["high"] - 0.5 == pytest.approx(in_log_odds(0.5, z * 0.03), rel=1e-12)
    assert math.isnan(row["model_error"])


def measured(truth, count, step):
    """Predictions of the system as it may be measured, with errors spread evenly, not drawn."""
    known, _ = uncertain_parameters(truth)
    for number in range(count):
        places = (number + 0.5) / count, (0.5 + number * step / count) % 1.0
        drawn = {
            one: one.value + one.standard_error * NormalDist().inv_cdf(place)
            for one, place in zip(known, places, strict=True)
        }
        yield predict(with_values(truth, drawn), delays=False, error_bars=True, by="theory")


@pytest.mark.slow
@pytest.mark.statistical
def test_with_the_models_error_intervals_cover_what_is_simulated_and_not_too_much_more():
    """Nine times in ten with the error that the model has; too seldom without, too often twice."""
    truth = reading.loads(TANDEM)
    played = simulate(truth, seed=5, events=100_000, replications=8).subscribers
    exact = predict(truth, delays=False, error_bars=False, by="theory").subscribers["on_time"]
    model_error = float(np.sqrt(np.mean((exact - played["on_time"]) ** 2)))
    assert played["on_time_se"].max() < model_error / 2
    predictions = list(measured(truth, 21, 13))

    def covered(allowed):
        found = [intervals(each, model_error=allowed) for each in predictions]
        inside = [played["on_time"].between(each["low"], each["high"]) for each in found]
        return np.mean(inside)

    assert 0.85 <= covered(model_error) <= 0.95
    assert covered(0.0) < 0.85
    assert covered(2 * model_error) > 0.95
