import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.model.laws import (
    Deterministic,
    Empirical,
    Exponential,
    Gamma,
    HyperExponential,
    LogNormal,
    Uniform,
    Weibull,
)
from tidings.theory.delay.delays import all_lost, from_law, nothing, stack
from tidings.theory.delay.grids import STEP, Grid

GRID = Grid.spanning(1e-6, 1e4)
SMOOTH = {
    "exponential": Exponential(mean_s=0.01),
    "erlang": Gamma(mean_s=0.02, shape=4.0),
    "hyperexponential": HyperExponential(weights=(0.9, 0.1), means_s=(0.01, 1.0)),
    "lognormal": LogNormal(mean_s=0.05, scv=3.0),
    "weibull": Weibull(scale_s=0.01, shape=0.5),
}


@pytest.mark.parametrize("law", SMOOTH.values(), ids=SMOOTH)
def test_a_law_comes_back_from_its_transform(law):
    times_s = law.quantile(np.array([0.01, 0.2, 0.5, 0.9, 0.999]))
    assert from_law(GRID, law).at(times_s[None, :])[0] == pytest.approx(law.cdf(times_s), abs=5e-5)


def test_a_transform_that_one_grid_knows_is_not_another_laws_and_is_not_written_to():
    law = LogNormal(mean_s=0.05, scv=3.0)
    again = from_law(GRID, law).series(from_law(GRID, Exponential(mean_s=0.01)))
    assert from_law(GRID, law).values == pytest.approx(from_law(GRID, law).values, abs=0.0)
    assert again.mean_s == pytest.approx(0.06)
    coarse = Grid.spanning(1e-3, 1e3)
    assert from_law(coarse, law).values.size == coarse.z.size
    narrow, wide = LogNormal(mean_s=0.05, scv=1e-4), LogNormal(mean_s=0.05, scv=2e-4)
    assert not np.array_equal(from_law(GRID, narrow).values, from_law(GRID, wide).values)
    with pytest.raises(ValueError, match="read-only"):
        from_law(GRID, law).values[0, 0] = 0.0


@pytest.mark.parametrize("law", SMOOTH.values(), ids=SMOOTH)
def test_tails_keep_their_relative_size_down_to_a_ten_thousandth(law):
    times_s = law.quantile(1.0 - np.array([1e-2, 1e-3, 1e-4]))
    missed = 1.0 - from_law(GRID, law).at(times_s[None, :])[0]
    assert missed == pytest.approx(1.0 - law.cdf(times_s), rel=0.03)


def test_a_corner_is_smeared_by_no_more_than_a_tenth_of_a_step():
    # At its upper end a lone uniform delay rises by STEP a step of the grid: the worst there is.
    law = Uniform(low_s=0.01, high_s=0.03)
    times_s = np.linspace(0.005, 0.035, 200)
    off = np.abs(from_law(GRID, law).at(times_s[None, :])[0] - law.cdf(times_s))
    assert off.max() < 0.1 * STEP
    assert np.mean(off) < 1e-3


def test_two_exponential_times_and_a_constant_one_in_series():
    delay = from_law(GRID, Exponential(mean_s=0.01)).series(
        from_law(GRID, Exponential(mean_s=0.02))
    )
    delay = delay.series(from_law(GRID, Deterministic(value_s=0.05)))
    t_s = np.geomspace(0.0501, 0.5, 60)
    rest = t_s - 0.05
    exact = 1.0 - (0.02 * np.exp(-rest / 0.02) - 0.01 * np.exp(-rest / 0.01)) / 0.01
    assert delay.at(t_s[None, :])[0] == pytest.approx(exact, abs=5e-6)
    assert delay.at(np.array([0.0499]))[0] == 0.0
    assert float(delay.shift_s[0] + delay.mean_s[0]) == pytest.approx(0.08)


def test_what_is_certain_is_exact_and_rounding_makes_nothing_late():
    parts = [from_law(GRID, Deterministic(value_s=value)) for value in (0.1, 0.2)]
    assert parts[0].series(parts[1]).at(np.array([0.3]))[0] == 1.0
    assert parts[0].series(parts[1]).at(np.array([0.3 * (1 - 1e-9)]))[0] == 0.0


def test_the_first_loss_counts_and_all_is_accounted_for():
    first = from_law(GRID, Deterministic(value_s=1.0), survival=0.9)
    both = first.series(from_law(GRID, Deterministic(value_s=2.0), survival=0.5, cause="overload"))
    assert float(both.survival[0]) == pytest.approx(0.45)
    assert {cause: float(share[0]) for cause, share in both.lost.items()} == pytest.approx(
        {"link": 0.1, "overload": 0.45}
    )
    gone = both.series(all_lost(GRID, "expired"))
    assert float(gone.survival[0] + sum(share[0] for share in gone.lost.values())) == 1.0


def test_a_mix_is_the_mean_of_its_parts():
    laws = [Exponential(mean_s=0.01), Gamma(mean_s=0.5, shape=3.0), Deterministic(value_s=0.1)]
    weights = np.array([[0.5, 0.3, 0.2]])
    mixed = stack([from_law(GRID, law) for law in laws]).mix(weights)
    t_s = np.array([0.005, 0.05, 0.2, 1.0])
    exact = weights[0] @ np.array([law.cdf(t_s) for law in laws])
    assert mixed.at(t_s[None, :])[0] == pytest.approx(exact, abs=0.01)
    assert float(mixed.shift_s[0] + mixed.mean_s[0]) == pytest.approx(0.175)


def test_weighing_by_an_exponential_stay_is_the_transform():
    delay = from_law(GRID, Gamma(mean_s=0.5, shape=2.0)).series(
        from_law(GRID, Deterministic(value_s=0.2))
    )
    weighed = delay.weigh(lambda t_s: np.exp(-t_s / 3.0), "unsubscribed")
    exact = math.exp(-0.2 / 3.0) * (1.0 + 0.25 / 3.0) ** -2
    assert float(weighed.survival[0]) == pytest.approx(exact, abs=1e-4)
    assert float(weighed.lost["unsubscribed"][0]) == pytest.approx(1.0 - exact, abs=1e-4)
    # Weighed once more after another stage: the transform of what was kept is right, too.
    then = weighed.series(from_law(GRID, Exponential(mean_s=1.0)))
    assert float(then.weigh(lambda t_s: np.exp(-t_s), "gone").survival[0]) == pytest.approx(
        0.5 * math.exp(-0.2 * 4 / 3) * (1.0 + 0.25 * 4 / 3) ** -2, abs=2e-4
    )


def test_stretching_by_a_step_stretches_time():
    delay = from_law(GRID, Gamma(mean_s=0.1, shape=3.0))
    t_s = np.array([[0.05, 0.1, 0.3]])
    assert delay.scaled(1).at(t_s * math.exp(0.125)) == pytest.approx(delay.at(t_s), abs=1e-6)


@settings(max_examples=30, deadline=None)
@given(
    mean_s=st.floats(1e-3, 10.0),
    shape=st.floats(0.3, 8.0),
    shift_s=st.floats(0.0, 1.0),
    share=st.floats(0.02, 0.98),
)
def test_the_distribution_at_a_quantile_is_its_share(mean_s, shape, shift_s, share):
    delay = from_law(GRID, Gamma(mean_s=mean_s, shape=shape)).series(
        from_law(GRID, Deterministic(value_s=shift_s), survival=0.8)
    )
    t_s = delay.quantiles(np.ones((1, 1)), [share])[0]
    assert delay.at(t_s)[0] == pytest.approx(0.8 * share, abs=1e-4)


def test_quantiles_of_mixtures_of_paths_with_unlike_shifts():
    parts = stack(
        [
            from_law(GRID, Deterministic(value_s=value)).series(
                from_law(GRID, Exponential(mean_s=0.1))
            )
            for value in (0.0, 5.0)
        ]
    )
    median, last = parts.quantiles(np.array([[0.75, 0.25]]), [0.5, 0.99])[0]
    assert median == pytest.approx(0.1 * math.log(3.0), rel=1e-3)
    assert last == pytest.approx(5.0 + 0.1 * math.log(25.0), rel=1e-3)
    assert np.isnan(parts.quantiles(np.zeros((1, 2)), [0.5])).all()


def test_a_law_that_begins_late_keeps_its_corner():
    law = Empirical(edges_s=(1.0, 1.1, 1.2), weights=(0.5, 0.5))
    delay = from_law(GRID, law)
    assert float(delay.shift_s[0]) == 1.0
    assert delay.at(np.array([0.999]))[0] == 0.0


def test_nothing_takes_no_time():
    assert nothing(GRID, 3).at(np.zeros(3)).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("shape", [60.0, 1000.0, 1e5])
def test_narrow_delays_are_resolved(shape):
    law = Gamma(mean_s=0.02, shape=shape)
    times_s = law.quantile(np.array([0.02, 0.2, 0.5, 0.8, 0.99]))
    delay = from_law(GRID, law)
    assert delay.at(times_s[None, :])[0] == pytest.approx(law.cdf(times_s), abs=2e-3)
    assert float(delay.shift_s[0] + delay.mean_s[0]) == pytest.approx(0.02)
