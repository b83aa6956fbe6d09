"""Predictions from contents that are too many to enumerate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tidings.model.content_cells import Sampling
from tidings.model.filters import as_filter
from tidings.model.match_shares import MOST_CONJUNCTIONS
from tidings.model.reading import from_document
from tidings.theory import predicting
from tidings.theory.predicting import predict


@pytest.fixture(scope="module")
def system():
    """Three publishers of twelve attributes; many filters of one or two of them; a busy tree."""
    random = np.random.default_rng(4)
    levels = [{"p": 0.25, "value": value} for value in range(4)]

    def filter_():
        names = random.choice(12, size=2, replace=False)
        return {f"k{name}": {"below": int(random.integers(1, 3))} for name in names}

    return from_document(
        {
            "tidings": 1,
            "lifetime": "60ms",
            "brokers": {f"b{i}": {"service": {"exponential": 0.012}} for i in range(3)},
            "links": [
                {"between": ["b0", "b1"], "delay": {"exponential": 0.005}},
                {"between": ["b1", "b2"], "delay": {"exponential": 0.005}},
            ],
            "publishers": {
                f"p{i}": {
                    "at": f"b{i}",
                    "every": {"exponential": 0.05},
                    "content": {"independent": {f"k{k}": levels for k in range(12)}},
                }
                for i in range(3)
            },
            "subscribers": {f"s{i}": {"at": f"b{i % 3}", "wants": filter_()} for i in range(9)},
        }
    )


@pytest.fixture
def drawing(monkeypatch):
    """Contents drawn even though they could be enumerated; as many as wanted."""

    def choose(**options):
        monkeypatch.setattr(predicting, "EXACT_IF_POSSIBLE", Sampling(most_cells=10, **options))

    return choose


@pytest.mark.statistical
def test_drawn_contents_agree_with_exact_ones_in_standard_errors(system, drawing):
    exact = predict(system, delays=False)
    assert "contents_drawn" not in exact.provenance
    assert exact.subscribers["on_time_se"].isna().all()
    drawing(draws=8_000, seed=3)
    drawn = predict(system, delays=False)
    assert drawn.provenance["contents_drawn"] == {"publishers": 3, "events": 8_000, "seed": 3}
    assert any("drawn (seed 3)" in said for said in drawn.provenance["approximations"])
    wanted = [each.subscribers["wanted_per_s"].to_numpy() for each in (exact, drawn)]
    np.testing.assert_allclose(*wanted, rtol=1e-12)  # of single filters known without drawing
    for name, error in (("on_time", "on_time_se"), ("delay_mean_s", "delay_mean_se_s")):
        errors = drawn.subscribers[error]
        assert np.all(errors < 0.02 * exact.subscribers[name])  # sharp enough
        z = (drawn.subscribers[name] - exact.subscribers[name]) / errors
        assert np.abs(z).max() < 6.0  # eight parts: Student's t with seven degrees of freedom
        assert np.abs(z).mean() > 0.05


def test_the_same_seed_gives_the_same_prediction(system, drawing):
    def found(seed):
        drawing(draws=500, seed=seed)
        outcome = predict(system, delays=False)
        return outcome.links["events_per_s"].to_numpy(), outcome.subscribers["on_time"].to_numpy()

    (rates, shares), (again, shares_again), (others, _) = found(1), found(1), found(2)
    assert np.array_equal(rates, again)
    assert shares == pytest.approx(shares_again, rel=1e-12)
    assert not np.array_equal(rates, others)


def test_filters_of_many_alternatives_are_drawn_still(system, drawing):
    """Beside filters whose shares are known exactly, and unlike them only near the truth."""
    many = as_filter([{f"k{k}": 0, f"k{k + 1}": 3} for k in range(MOST_CONJUNCTIONS + 1)])
    first, *rest = system.subscribers
    mixed = replace(system, subscribers=(replace(first, wants=many), *rest))
    exact = predict(mixed, delays=False).subscribers["wanted_per_s"].to_numpy()
    drawing(draws=8_000, seed=3)
    off = predict(mixed, delays=False).subscribers["wanted_per_s"].to_numpy() / exact - 1.0
    assert 1e-6 < abs(off[0]) < 0.05
    np.testing.assert_allclose(off[1:], 0.0, atol=1e-12)


def test_errors_of_contents_and_of_parameters_add_up_in_squares(system, drawing):
    drawing(draws=500)
    uncertain = replace(system, standard_errors=(("brokers.b1.service", 2e-4),))
    both = predict(uncertain, delays=False).subscribers["on_time_se"].to_numpy()
    contents = predict(system, delays=False).subscribers["on_time_se"].to_numpy()
    parameters = np.sqrt(both**2 - contents**2)
    assert np.all(both > contents)
    assert np.all(parameters > 0)
    without = predict(uncertain, delays=False, error_bars=False)
    assert without.subscribers["on_time_se"].isna().all()
    assert any("not worked out" in said for said in without.provenance["approximations"])
