"""The share of chains that have ended, as computed: what a quantile rests on, on every machine."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from example_laws import COXIAN, LAWS
from tidings.errors import InvalidInputError
from tidings.model.laws import HyperExponential, PhaseType
from tidings.model.laws.law import LOOK_BACK

SHARES = np.array([1e-12, 1e-6, 0.1, 0.5, 0.9, 0.999, 1 - 1e-9, 1 - 1e-12, 1 - 2.0**-53])


def random_law(rng, low=-2, high=4, *, ending=1.0):
    """A chain of 1 to 6 phases with rates from 10^low to 10^high, some of it over at once.

    ``ending`` is the share of phases from which it may end; it always may from the last.
    """
    while True:
        count = int(rng.integers(1, 7))
        rates = 10.0 ** rng.uniform(low, high, (count, count)) * (rng.random((count, count)) < 0.6)
        np.fill_diagonal(rates, 0.0)
        ends = 10.0 ** rng.uniform(low, high, count) * (rng.random(count) < ending)
        ends[-1] = 10.0 ** rng.uniform(low, high)
        np.fill_diagonal(rates, -(rates.sum(axis=1) + ends))
        initial = rng.dirichlet(np.ones(count)) * rng.choice([1.0, 0.7])
        try:
            return PhaseType(initial=tuple(initial), generator=tuple(map(tuple, rates)))
        except InvalidInputError:  # no way out, or one that is lost in the rounding of a row
            continue


def exact_mean_s(law):
    """The mean in rational numbers, by Gauss; what a row lacks by rounding alone is no way out."""
    rows = [[-Fraction(rate) for rate in row] + [Fraction(1)] for row in law.generator]
    for at, row in enumerate(rows):
        if abs(sum(row[:-1])) <= 1e-15 * row[at]:
            row[at] -= sum(row[:-1])
    for at in range(len(rows)):
        pivot = next(row for row in rows[at:] if row[at])
        rows.remove(pivot)
        rows.insert(at, [each / pivot[at] for each in pivot])
        for other in range(len(rows)):
            if other != at:
                factor = rows[other][at]
                pairs = zip(rows[other], rows[at], strict=True)
                rows[other] = [each - factor * one for each, one in pairs]
    shares = [Fraction(share) for share in law.initial]
    mean_s = sum(share * row[-1] for share, row in zip(shares, rows, strict=True))
    whole = sum(shares)
    return float(mean_s / whole if abs(whole - 1) < 1e-9 else mean_s)


def rarely_ending(phases, rate=1e6, rare=1e-5):
    """A chain that goes on rarely and back to its first phase at once: nearly exponential."""
    rates = np.diag([rare] * (phases - 1), 1)
    rates[1:, 0] = rate
    np.fill_diagonal(rates, -(rates.sum(axis=1) + rare * np.eye(phases)[-1]))
    return PhaseType(initial=tuple(np.eye(phases)[0]), generator=tuple(map(tuple, rates)))


def long_chain(count):
    rates = count * (np.eye(count, k=1) - np.eye(count))
    return PhaseType(initial=tuple(np.eye(count)[0]), generator=tuple(map(tuple, rates)))


def check_quantiles(law, shares):
    """The share is reached there, alone and in company, and at none of the numbers before."""
    times = law.quantile(shares)
    assert np.all(law.cdf(times) >= shares)
    assert np.all(law.cdf(times[::-1])[::-1] >= shares)
    assert all(law.cdf(time) >= share for time, share in zip(times, shares, strict=True))
    later = times > 0
    bits = times[later].view(np.int64)[:, None] - np.arange(1, LOOK_BACK + 1)
    assert np.all(law.cdf(bits.view(np.float64)) < shares[later, None])
    assert np.all(law.cdf(times * (1 + 1e-9)) >= shares)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_cdf_as_computed_reaches_the_share_at_the_quantile_and_not_just_before(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        check_quantiles(random_law(rng), SHARES)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [0.0, 0.2, 1.0])
def test_quantiles_of_rates_that_are_far_apart(ending):
    rng = np.random.default_rng(7)
    for _ in range(25):
        check_quantiles(random_law(rng, -6, 6, ending=ending), SHARES)


@pytest.mark.parametrize("phases", [2, 3, 6, 9])
def test_a_fast_chain_that_hardly_ever_ends(phases):
    law = rarely_ending(phases)
    mean_s = exact_mean_s(law)
    assert mean_s > 1e5 * 10.0 ** (10.9 * (phases - 1))
    assert law.mean_s == pytest.approx(mean_s, rel=1e-13)
    check_quantiles(law, SHARES)
    means = np.array([0.1, 1.0, 9.0])
    np.testing.assert_allclose(law.cdf(mean_s * means), -np.expm1(-means), rtol=1e-10)
    assert law.cdf([1e290, np.inf, -1.0]).tolist() == [1.0, 1.0, 0.0]


@pytest.mark.parametrize("seed", range(5))
def test_the_mean_keeps_its_digits_however_far_apart_the_rates_are(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        law = random_law(rng, -6, 6, ending=rng.choice([0.0, 0.5]))
        assert law.mean_s == pytest.approx(exact_mean_s(law), rel=1e-12)


def test_a_chain_that_takes_longer_than_numbers_go_is_refused():
    with pytest.raises(InvalidInputError, match=r"takes .* s to end; wants at most 1e\+150 s"):
        rarely_ending(15)


@pytest.mark.parametrize("law", [COXIAN, LAWS["hyperexponential"]], ids=["phases", "mixture"])
def test_quantiles_of_many_shares(law):
    check_quantiles(law, np.concatenate([SHARES, np.linspace(0.001, 0.999, 333)]))


@pytest.mark.parametrize("law", [COXIAN, LAWS["hyperexponential"]], ids=["phases", "mixture"])
@pytest.mark.parametrize("share", [1 - 1e-9, 1 - 1e-12])
def test_cdf_never_falls_where_nearly_all_have_ended(law, share):
    times = law.quantile(share) * (1.0 + 1e-9 * np.linspace(-3.0, 3.0, 2001))
    assert np.all(np.diff(law.cdf(times)) >= 0.0)


@pytest.mark.parametrize(
    "law",
    [
        COXIAN,
        long_chain(5),
        long_chain(16),
        long_chain(17),
        long_chain(50),
        LAWS["hyperexponential"],
    ],
)
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
