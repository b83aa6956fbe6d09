"""One rule for the law of periods: the measured mean is kept, and distance decides."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from tidings.characterisation.fit.durations import cycle_means_s, durations, durations_of, measure
from tidings.characterisation.fit.failures import fit_failures
from tidings.characterisation.fit.periods import fit_periods
from tidings.model.delay_grid import BINS_PER_DECADE, LOWEST_S
from tidings.model.laws import Empirical

DAY_S = 86_400.0
MINUTES_OR_DAYS = 0.95 * 180.0 + 0.05 * 2 * DAY_S  # the mean of repairs below


def repairs(rng, size):
    """Most take about three minutes, one in twenty about two days."""
    median_s = np.where(rng.random(size) < 0.95, 180.0, 2 * DAY_S) * math.exp(-0.045)
    return median_s * np.exp(rng.normal(0.0, 0.3, size))


def probed(rng, size):
    """As a check every five minutes sees them."""
    return 300.0 * np.ceil(rng.exponential(600.0, size) / 300.0)


TIMES = {
    "exponential": lambda rng, size: rng.exponential(6 * 3600.0, size),
    "weibull": lambda rng, size: 3 * 3600.0 * rng.weibull(0.5, size),
    "lognormal": lambda rng, size: rng.lognormal(9.0, 1.6, size),
    "regular": lambda rng, size: rng.gamma(9.0, 2400.0, size),
    "minutes or days": repairs,
    "probed": probed,
}


def cells_of(changes_s, from_s, until_s, name="hub"):
    """Periods of one component, up first, as Spark counts them; and each with its length."""
    turns_s = [from_s, *changes_s[(changes_s > from_s) & (changes_s < until_s)], until_s]
    number = int(np.searchsorted(changes_s, from_s, side="right"))
    rows = [
        (name, (number + at) % 2 == 0, at > 0, at + 2 < len(turns_s), end_s - begin_s)
        for at, (begin_s, end_s) in enumerate(itertools.pairwise(turns_s))
    ]
    periods = pd.DataFrame(rows, columns=["component", "up", "begun", "ended", "length_s"])
    bins = np.ceil(np.log10(periods["length_s"] / LOWEST_S) * BINS_PER_DECADE - 1e-9)
    keys = ["component", "up", "begun", "ended", "bin"]
    cells = periods.assign(bin=bins.astype(int)).groupby(keys)["length_s"]
    named = {"count": "count", "total_s": "sum", "lowest_s": "min", "highest_s": "max"}
    return cells.agg(**named).reset_index(), periods


def observed(rng, up, down, cycles):
    """A component from some moment on, over so many cycles."""
    lengths_s = np.stack([up(rng, 3 * cycles + 60), down(rng, 3 * cycles + 60)], 1).ravel()
    changes_s = np.cumsum(lengths_s)
    cycle_s = changes_s[-1] / (3 * cycles + 60)
    from_s = rng.uniform(0.0, 20.0) * cycle_s
    return cells_of(changes_s, from_s, from_s + cycles * cycle_s)


def raw_distance(periods, law, *, up):
    """The Kolmogorov distance from the whole periods themselves, both sides of every step."""
    whole = periods[(periods["up"] == up) & periods["begun"] & periods["ended"]]
    times_s = np.sort(whole["length_s"].to_numpy())
    before, after = (
        np.searchsorted(times_s, times_s, side) / times_s.size for side in ("left", "right")
    )
    below, at = law.cdf(np.nextafter(times_s, 0.0)), law.cdf(times_s)
    return max(np.abs(at - after).max(), np.abs(below - before).max())


@pytest.mark.statistical
@pytest.mark.parametrize("down", ["lognormal", "minutes or days", "probed"])
@pytest.mark.parametrize("up", ["exponential", "weibull", "regular"])
def test_a_fitted_component_is_up_as_much_as_it_was_seen_and_what_fits_is_near(up, down):
    rng = np.random.default_rng(2)
    for cycles in (20, 60, 250):
        cells, periods = observed(rng, TIMES[up], TIMES[down], cycles)
        (fitted,) = fit_failures(cells)[0].values()
        seen_s = periods.groupby("up")["length_s"].sum()
        assert fitted.failure.availability == pytest.approx(seen_s[True] / seen_s.sum(), rel=1e-9)
        for each, state in ((fitted.up, True), (fitted.down, False)):
            distance = raw_distance(periods, each.law, up=state)
            if each.verdict == "fits":
                assert distance <= 0.05
                assert each.nearest == 0.0
            elif each.family == "empirical":
                assert each.nearest > 0.0
                assert "the measured distribution itself is used" in each.verdict
            else:
                assert "assumed" in each.verdict


@pytest.mark.statistical
def test_times_of_checks_and_of_two_kinds_are_no_family_but_themselves():
    """Ties, and two humps four decades apart: the measured law has both."""
    rng = np.random.default_rng(4)
    for draw in (probed, repairs):
        times_s = draw(rng, 400)
        fitted = fit_periods(durations(times_s, np.ones(400, bool)), float(times_s.mean()))
        assert isinstance(fitted.law, Empirical)
        assert fitted.law.mean_s == pytest.approx(times_s.mean(), rel=1e-9)
        assert fitted.law.scv == pytest.approx(times_s.var() / times_s.mean() ** 2, rel=1e-2)
        assert fitted.nearest > 0.1 > fitted.distance


@pytest.mark.statistical
def test_two_exponential_laws_are_found_as_a_mixture():
    rng = np.random.default_rng(6)
    times_s = np.where(rng.random(2000) < 0.95, 1.0, 1000.0) * rng.exponential(180.0, 2000)
    fitted = fit_periods(durations(times_s, np.ones(2000, bool)), float(times_s.mean()))
    assert (fitted.family, fitted.verdict) == ("hyperexponential", "fits")
    assert sorted(fitted.law.weights)[0] == pytest.approx(0.05, abs=5 * math.sqrt(0.0475 / 2000))


def test_a_measured_law_with_another_mean_keeps_its_times():
    times_s = np.repeat([300.0, 600.0, 900.0], [50, 30, 20])
    measured = measure(durations(times_s, np.ones(100, bool)))
    for mean_s in (450.0, 510.0, 600.0):
        law = measured.law(mean_s)
        assert law.mean_s == pytest.approx(mean_s, rel=1e-9)
        assert law.cdf([299.9, 899.9])[0] == 0.0
        assert law.cdf([900.0])[0] == 1.0
    assert measured.law().cdf([300.0, 600.0]) == pytest.approx([0.5, 0.8], rel=1e-12)
    assert measured.law(1800.0).mean_s == pytest.approx(1800.0, rel=1e-12)  # beyond all of them


@pytest.mark.statistical
@pytest.mark.parametrize("up", ["exponential", "weibull", "lognormal"])
@pytest.mark.parametrize(("down", "down_s"), [("minutes or days", MINUTES_OR_DAYS)])
def test_standard_errors_cover_the_truth_whatever_the_law(up, down, down_s):
    """Of 400 observations of 100 cycles; a coverage of .95 has a standard error of .011."""
    rng = np.random.default_rng(8)
    exact_s = {"exponential": 6 * 3600.0, "weibull": 6 * 3600.0, "lognormal": math.exp(9.0 + 1.28)}
    truth = np.array([exact_s[up], down_s])
    covered = []
    for _ in range(400):
        cells, _ = observed(rng, TIMES[up], TIMES[down], 100)
        seen = [durations_of(cells[cells["up"] == state]) for state in (True, False)]
        means_s = np.array(cycle_means_s(*seen))
        errors_s = np.array(
            [each.mean_se_s(mean_s) for each, mean_s in zip(seen, means_s, strict=True)]
        )
        covered.append(np.abs(means_s - truth) < 2 * errors_s)
    assert np.mean(covered, axis=0).min() >= 0.85
    assert np.mean(covered, axis=0).max() <= 0.97
