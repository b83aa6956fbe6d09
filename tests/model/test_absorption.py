"""The share of chains that have ended, as computed: what a quantile rests on, on every machine."""

from __future__ import annotations

import numpy as np
import pytest

from example_laws import COXIAN, LAWS
from tidings.model.laws import HyperExponential, PhaseType

SHARES = np.array([1e-12, 1e-6, 0.1, 0.5, 0.9, 0.999, 1 - 1e-9, 1 - 1e-12, 1 - 2.0**-53])


def random_law(rng):
    """A chain of 1 to 6 phases with rates of six orders of magnitude, some of it over at once."""
    count = int(rng.integers(1, 7))
    rates = 10.0 ** rng.uniform(-2, 4, (count, count)) * (rng.random((count, count)) < 0.6)
    np.fill_diagonal(rates, 0.0)
    ends = 10.0 ** rng.uniform(-2, 4, count)
    np.fill_diagonal(rates, -(rates.sum(axis=1) + ends))
    initial = rng.dirichlet(np.ones(count)) * rng.choice([1.0, 0.7])
    return PhaseType(initial=tuple(initial), generator=tuple(map(tuple, rates)))


def long_chain(count):
    rates = count * (np.eye(count, k=1) - np.eye(count))
    return PhaseType(initial=tuple(np.eye(count)[0]), generator=tuple(map(tuple, rates)))


def check_quantiles(law, shares):
    """The share is reached there, alone and in company, and not at the number before."""
    times = law.quantile(shares)
    assert np.all(law.cdf(times) >= shares)
    assert np.all(law.cdf(times[::-1])[::-1] >= shares)
    assert all(law.cdf(time) >= share for time, share in zip(times, shares, strict=True))
    later = times > 0
    assert np.all(law.cdf(np.nextafter(times[later], 0.0)) < shares[later])
    assert np.all(law.cdf(times * (1 + 1e-9)) >= shares)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_quantile_is_the_least_time_whose_cdf_as_computed_reaches_the_share(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        check_quantiles(random_law(rng), SHARES)


@pytest.mark.parametrize("law", [COXIAN, LAWS["hyperexponential"]], ids=["phases", "mixture"])
def test_quantiles_of_many_shares(law):
    check_quantiles(law, np.concatenate([SHARES, np.linspace(0.001, 0.999, 333)]))


@pytest.mark.parametrize("law", [COXIAN, LAWS["hyperexponential"]], ids=["phases", "mixture"])
@pytest.mark.parametrize("share", [1 - 1e-9, 1 - 1e-12])
def test_cdf_never_falls_where_nearly_all_have_ended(law, share):
    times = law.quantile(share) * (1.0 + 1e-9 * np.linspace(-3.0, 3.0, 2001))
    assert np.all(np.diff(law.cdf(times)) >= 0.0)


@pytest.mark.parametrize("law", [COXIAN, long_chain(5), long_chain(16), LAWS["hyperexponential"]])
def test_a_time_has_one_share_whatever_is_asked_beside_it(law):
    times = law.mean_s * np.geomspace(1e-6, 30.0, 131)
    together = law.cdf(times)
    for size in (1, 2, 3, 7, 64, 65, 130):
        assert np.array_equal(law.cdf(times[-size:]), together[-size:])
    assert np.array_equal(law.cdf(times[::-1])[::-1], together)


@pytest.mark.parametrize("mean_s", [1e-3, 1.0, 1e4])
def test_what_remains_keeps_its_digits(mean_s):
    slow = HyperExponential(weights=(0.5, 0.5), means_s=(mean_s, 7 * mean_s))
    chain = PhaseType(initial=(0.5, 0.5), generator=((-1 / mean_s, 0.0), (0.0, -1 / (7 * mean_s))))
    times = mean_s * np.linspace(50.0, 200.0, 40)
    remains = 0.5 * np.exp(-times / mean_s) + 0.5 * np.exp(-times / (7 * mean_s))
    spacing = 2.0**-53  # of the numbers just below 1
    np.testing.assert_allclose(chain.cdf(times), 1.0 - remains, rtol=0, atol=spacing)
    np.testing.assert_allclose(slow.cdf(times), 1.0 - remains, rtol=0, atol=2 * spacing)
