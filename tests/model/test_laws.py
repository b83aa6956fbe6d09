"""Laws of random times against their definitions: integrals of the CDF, closed forms, samples."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from example_laws import COXIAN, LAWS, TABLE
from tidings.errors import InvalidInputError
from tidings.model.laws import (
    Deterministic,
    Empirical,
    Exponential,
    Gamma,
    HyperExponential,
    LogNormal,
    PhaseType,
    Shifted,
    Uniform,
    Weibull,
    from_quantiles,
    phases,
    residual,
    shifted,
    unshifted,
)

EVERY = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
SPREAD = {name: law for name, law in LAWS.items() if law.scv > 0}
EVERY_SPREAD = pytest.mark.parametrize("law", SPREAD.values(), ids=SPREAD)


def pieces_s(law, end_s=math.inf, widest_s=math.inf):
    """Times between which the CDF is smooth and the pieces are narrow, up to ``end_s``."""
    shares = special.expit(np.linspace(-32.0, 32.0, 257))
    points = [0.0, law.mean_s, end_s, *law.quantile(shares), *law.quantile([0.0, 1.0])]
    base, shift_s = unshifted(law)
    if isinstance(base, Empirical):
        points += [shift_s + edge_s for edge_s in base.edges_s]
    points = np.unique([point for point in points if point <= min(end_s, 1e300)])
    counts = np.ceil(np.diff(points) / widest_s).astype(int) if widest_s < math.inf else None
    if counts is None:
        return points
    steps = [
        np.linspace(a, b, max(n, 1) + 1) for (a, b), n in zip(pairwise(points), counts, strict=True)
    ]
    return np.unique(np.concatenate(steps))


def life_measure(law, points):
    """P[X > t] dt as 20 Gauss points in each piece: the times, and what each of them weighs."""
    nodes, weights = np.polynomial.legendre.leggauss(20)
    middle, half = (points[1:] + points[:-1]) / 2, np.diff(points) / 2
    times = middle[:, None] + half[:, None] * nodes
    return times, (1.0 - law.cdf(times)) * half[:, None] * weights


def integral_over_life(law, weigh, points):
    """∫ weigh(t) P[X > t] dt."""
    times, measure = life_measure(law, points)
    return (weigh(times) * measure).sum()


@EVERY
def test_mean_and_variation_are_integrals_of_the_cdf(law):
    points = pieces_s(law)
    mean_s = integral_over_life(law, np.ones_like, points)
    square_s2 = integral_over_life(law, lambda t: 2.0 * t, points)
    # A share of 1e-14 lies beyond the last piece; heavy tails have some of E[X²] there.
    assert law.mean_s == pytest.approx(mean_s, rel=1e-9)
    assert (1.0 + law.scv) * law.mean_s**2 == pytest.approx(square_s2, rel=1e-5)


@EVERY
def test_cdf_begins_at_0_ends_at_1_and_never_falls(law):
    times = np.concatenate([[-1.0, 0.0], np.geomspace(1e-9, 1e9, 2000), [1e300, np.inf]])
    share = law.cdf(times)
    assert share.dtype == np.float64
    assert share[0] == 0.0
    assert share[-1] == 1.0
    assert np.all(np.diff(share) >= -1e-15)
    assert np.all((share >= 0.0) & (share <= 1.0))


@EVERY
def test_quantile_is_the_least_time_that_reaches_the_share(law):
    u = np.concatenate([np.linspace(0.001, 0.999, 333), [1e-9, 1 - 1e-9]])
    times = law.quantile(u)
    assert np.all(law.cdf(times * (1 + 1e-9)) >= u)
    before = law.cdf(times * (1 - 1e-9) - 1e-300)
    assert np.all((before <= u) | np.isclose(before, u, rtol=0, atol=1e-9))


TINY = {
    "phase-type": PhaseType(initial=(1.0,), generator=((-1e300,),)),
    "hyperexponential": HyperExponential(weights=(0.5, 0.5), means_s=(1e-300, 2e-300)),
}


@pytest.mark.parametrize("law", TINY.values(), ids=TINY)
@pytest.mark.parametrize("u", [1e-12, 0.3, 0.999])
def test_quantiles_of_tiny_times_are_found(law, u):
    time = law.quantile(u)
    assert law.cdf(time) >= u > law.cdf(time * (1.0 - 1e-9))


@pytest.mark.parametrize("u", [1e-300, 1e-200])
def test_quantiles_of_tiny_shares_are_found(u):
    for law in (
        PhaseType(initial=(1.0,), generator=((-1.0,),)),
        HyperExponential(weights=(0.5, 0.5), means_s=(1.0, 2.0)),
    ):
        time = law.quantile(u)
        assert 0.0 < time < 1e3 * u
        assert law.cdf(time) >= u


@EVERY
def test_quantiles_end_where_the_law_ends(law):
    low, high = law.quantile([0.0, 1.0])
    assert law.cdf(np.nextafter(low, -1.0)) == 0.0
    assert math.isinf(high) or law.cdf(high) == 1.0


@EVERY_SPREAD
@pytest.mark.parametrize("size", [0.01, 1.0, 8.0])
def test_transform_is_the_integral_of_the_cdf(law, size):
    times, measure = life_measure(law, pieces_s(law, widest_s=5.0 * law.mean_s / size))
    matters = measure != 0.0
    times, measure = times[matters], measure[matters]
    for angle in (0.0, 0.8, -1.4, math.pi / 2):
        z = size / law.mean_s * complex(math.cos(angle), math.sin(angle))
        life = np.exp(-z * times) @ measure
        assert abs(complex(law.transform(z)) - (1.0 - z * life)) < 1e-11 * (1.0 + size)


@EVERY
def test_transform_near_zero_shows_the_moments(law):
    mean_s = law.mean_s or 1.0
    z = 1e-7 / mean_s * np.array([1.0, 1j, 0.6 + 0.8j])
    second_s2 = law.mean_s**2 * (1.0 + law.scv)
    assert np.abs(law.transform(z) - (1.0 - z * law.mean_s + z**2 * second_s2 / 2)).max() < 1e-15
    assert abs(complex(law.transform(0.0)) - 1.0) < 1e-15


@EVERY
def test_transform_is_bounded_symmetric_and_keeps_shapes(law):
    z = np.array([[1e-3, 1 + 2j, 40j], [1e5, 1e8 + 1e8j, 1e12j]])
    value = law.transform(z)
    assert value.shape == (2, 3)
    assert value.dtype == np.complex128
    assert np.all(np.abs(value) <= 1.0 + 1e-12)
    np.testing.assert_allclose(law.transform(z.conj()), value.conj(), atol=1e-15)
    assert law.cdf([[1.0], [2.0]]).shape == law.quantile([[0.1], [0.2]]).shape == (2, 1)
    assert (
        np.shape(law.cdf(1.0)) == np.shape(law.quantile(0.5)) == np.shape(law.transform(1j)) == ()
    )


@EVERY
def test_change_of_unit_changes_nothing_else(law):
    in_ms = law.scaled(1000.0)
    assert type(in_ms) is type(law)
    assert in_ms.mean_s == pytest.approx(1000.0 * law.mean_s, rel=1e-12)
    assert in_ms.scv == pytest.approx(law.scv, rel=1e-9)
    u = np.array([0.05, 0.5, 0.93])
    np.testing.assert_allclose(in_ms.quantile(u), 1000.0 * law.quantile(u), rtol=1e-9)
    z = np.array([0.1, 3.0 + 4j])
    np.testing.assert_allclose(in_ms.transform(z / 1000.0), law.transform(z), rtol=1e-9)


@pytest.mark.statistical
@EVERY
def test_samples_follow_the_law(law):
    count = 40_000
    draws = law.sample(np.random.default_rng(20), count)
    assert draws.shape == (count,)
    assert law.sample(np.random.default_rng(1), (2, 3)).shape == (2, 3)
    points = law.quantile([0.02, 0.2, 0.5, 0.8, 0.98]) * (1 + 1e-12)
    share = law.cdf(points)
    error = np.sqrt(share * (1 - share) / count)
    assert np.all(np.abs((draws[:, None] <= points).mean(axis=0) - share) <= 4.5 * error)


# ---- exact theory -------------------------------------------------------------------------------

ANGLES = np.exp(1j * np.linspace(-np.pi / 2, np.pi / 2, 17))


@pytest.mark.parametrize("size", 10.0 ** np.arange(-8, 13))
def test_weibull_transform_equals_its_closed_forms(size):
    z = size * ANGLES
    root = np.sqrt(z)
    closed = {
        0.5: 0.5 * np.sqrt(np.pi) / root * special.wofz(0.5j / root),
        1.0: 1.0 / (1.0 + z),
    }
    if size < 1e3:  # beyond, the closed form for 2 cancels
        closed[2.0] = 1.0 - 0.5 * z * np.sqrt(np.pi) * special.wofz(0.5j * z)
    for shape, exact in closed.items():
        got = Weibull(scale_s=1.0, shape=shape).transform(z)
        assert np.abs(got - exact).max() < 1e-14 * (1.0 + (size if shape == 2.0 else 0.0))


def direct_transform(law, z):
    """E[exp(−zX)] by adaptive quadrature over y = ln X along the real line."""
    if isinstance(law, LogNormal):

        def integrand(y):
            x = math.exp(law.mu + law.sigma * y)
            return np.exp(-z * x - y * y / 2) / math.sqrt(2 * math.pi)

        ends = np.linspace(-9.0, 9.0, 37)
    else:

        def integrand(y):
            x = law.scale_s * math.exp(y / law.shape)
            return np.exp(-z * x + y - math.exp(y))

        ends = np.linspace(-34.0, 4.0, 39)
    parts = [
        integrate.quad(integrand, a, b, complex_func=True, epsabs=1e-13, epsrel=1e-12, limit=2000)
        for a, b in pairwise(ends)
    ]
    return sum(value for value, _ in parts)


HEAVY = [LogNormal(mean_s=1.0, scv=scv) for scv in (1e-4, 0.1, 0.6, 0.7, 3.0, 50.0)]
HEAVY += [
    Weibull(scale_s=1.0 / math.gamma(1 + 1 / k), shape=k) for k in (0.35, 0.6, 1.4, 3.0, 25.0)
]


@pytest.mark.parametrize("law", HEAVY, ids=str)
@pytest.mark.parametrize("size", [1e-4, 0.03, 1.0, 20.0, 300.0])
def test_heavy_transforms_equal_direct_quadrature(law, size):
    # On the imaginary axis itself nothing damps the direct integral of a heavy tail: keep off it.
    for angle in (0.0, 0.7, 1.2, 1.45):
        z = size * complex(math.cos(angle), math.sin(angle))
        assert abs(complex(law.transform(z)) - direct_transform(law, z)) < 1e-10


def test_narrow_laws_come_close_to_a_constant():
    z = np.array([1.0, 10j, 40 + 30j])
    nearly = LogNormal(mean_s=1.0, scv=1e-12).transform(z)
    np.testing.assert_allclose(nearly, np.exp(-z), atol=1e-9)
    np.testing.assert_allclose(Gamma(mean_s=1.0, shape=1e12).transform(z), np.exp(-z), atol=1e-9)


def test_the_two_ways_to_integrate_a_lognormal_meet():
    border = math.expm1(0.7**2)
    z = np.concatenate([size * ANGLES for size in 10.0 ** np.arange(-6.0, 9.0)])
    below = LogNormal(mean_s=1.0, scv=border * (1 - 1e-13)).transform(z)
    above = LogNormal(mean_s=1.0, scv=border * (1 + 1e-13)).transform(z)
    assert np.abs(below - above).max() < 1e-12


@pytest.mark.parametrize("shape", [1, 2, 7, 40])
def test_erlang_equals_its_phases(shape):
    erlang = Gamma(mean_s=2.0, shape=shape)
    initial, generator, shift_s = phases(erlang)
    chain = PhaseType(initial=tuple(initial), generator=tuple(map(tuple, generator)))
    assert shift_s == 0.0
    assert chain.mean_s == pytest.approx(2.0, rel=1e-13)
    assert chain.scv == pytest.approx(1.0 / shape, rel=1e-11)
    times = np.linspace(0.0, 8.0, 41)
    np.testing.assert_allclose(chain.cdf(times), erlang.cdf(times), atol=2e-14)
    u = np.linspace(0.01, 0.99, 25)
    np.testing.assert_allclose(chain.quantile(u), erlang.quantile(u), rtol=1e-11)
    z = np.array([1e-9, 0.5, 3 + 9j, 1e4j])
    np.testing.assert_allclose(chain.transform(z), erlang.transform(z), atol=1e-14)


@EVERY
def test_phases_reproduce_the_law_where_there_are_any(law):
    found = phases(law)
    base, _ = unshifted(law)
    if isinstance(base, Uniform | LogNormal | Weibull | Empirical) or (
        isinstance(base, Gamma) and base.shape % 1 != 0
    ):
        assert found is None
        return
    initial, generator, shift_s = found
    z = np.array([0.1, 2.0 + 5j, 30j])
    leaving = -generator.sum(axis=1)
    inner = [initial @ np.linalg.solve(x * np.eye(len(initial)) - generator, leaving) for x in z]
    expected = np.exp(-z * shift_s) * (np.array(inner) + 1.0 - initial.sum())
    np.testing.assert_allclose(law.transform(z), expected, atol=1e-13)


def test_phases_of_a_constant_are_none_but_a_shift():
    initial, generator, shift_s = phases(Shifted(law=Deterministic(value_s=1.0), by_s=0.5))
    assert (initial.shape, generator.shape, shift_s) == ((0,), (0, 0), 1.5)


def test_phases_of_a_huge_erlang_are_not_spelt_out():
    assert phases(Gamma(mean_s=1.0, shape=10_000)) is None


@given(
    means=st.lists(st.floats(1e-4, 1e3), min_size=1, max_size=4),
    t_s=st.floats(1e-5, 1e4),
)
@settings(deadline=None, max_examples=50)
def test_hyperexponential_equals_its_phases(means, t_s):
    weights = np.arange(1.0, len(means) + 1.0)
    law = HyperExponential(weights=tuple(weights / weights.sum()), means_s=tuple(means))
    initial, generator, _ = phases(law)
    chain = PhaseType(initial=tuple(initial), generator=tuple(map(tuple, generator)))
    assert float(chain.cdf(t_s)) == pytest.approx(float(law.cdf(t_s)), abs=1e-12)
    assert chain.mean_s == pytest.approx(law.mean_s, rel=1e-12)
    assert chain.scv == pytest.approx(law.scv, rel=1e-9)


def two_phases_ended(go, end, back, t_s):
    """P[X ≤ t] of a chain that leaves phase 1 to 2 or for good, in fifty digits."""
    with localcontext(prec=50):
        go, end, back, t = (Decimal(value) for value in (go, end, back, t_s))
        root = ((go + end + back) ** 2 - 4 * end * back).sqrt()
        slow, fast = (go + end + back - root) / 2, (go + end + back + root) / 2
        weight = (fast - end) / root  # of the slow exponential, from P[X > 0] = 1 and density end
        return float(1 - weight * (-slow * t).exp() - (1 - weight) * (-fast * t).exp())


@pytest.mark.parametrize("t_s", [1e-12, 1e-3, 1.0, 1e3, 1e4, 1e6])
def test_phase_type_cdf_keeps_its_digits_when_rates_differ_by_many_orders(t_s):
    go, end, back = 2.0**20, 2.0**-10, 2.0**13  # exact in binary: so is the diagonal
    law = PhaseType(initial=(1, 0), generator=((-(go + end), go), (back, -back)))
    expected = two_phases_ended(go, end, back, t_s)
    assert float(law.cdf(t_s)) == pytest.approx(expected, rel=1e-12)


def test_atoms_count_at_their_own_time():
    assert TABLE.cdf([0.02 - 1e-12, 0.02]).tolist() == pytest.approx([0.3, 0.55], abs=1e-9)
    assert TABLE.cdf([0.05, 0.17, 0.3, 0.4]).tolist() == pytest.approx([0.75, 0.75, 0.75, 1.0])
    assert TABLE.quantile([0.0, 0.3, 0.4, 0.55, 1.0]).tolist() == pytest.approx(
        [0.01, 0.02, 0.02, 0.02, 0.4], rel=1e-12
    )
    assert float(COXIAN.cdf(0.0)) == pytest.approx(0.2, rel=1e-12)
    assert COXIAN.quantile([0.0, 0.1, 0.2]).tolist() == [0.0, 0.0, 0.0]


def test_quantiles_are_met():
    law = from_quantiles([0, 0.5, 0.99, 1], [0.001, 0.004, 0.03, 0.08])
    np.testing.assert_allclose(law.cdf([0.001, 0.004, 0.03, 0.08]), [0, 0.5, 0.99, 1], atol=1e-15)
    np.testing.assert_allclose(law.quantile([0, 0.5, 0.99, 1]), [0.001, 0.004, 0.03, 0.08])
    assert float(law.cdf(0.017)) == pytest.approx(0.745)  # straight in between


def test_shifted_takes_the_plainest_form():
    law = Exponential(mean_s=1.0)
    assert shifted(law, 0.0) is law
    assert shifted(shifted(law, 1.0), 2.0) == Shifted(law=law, by_s=3.0)
    assert unshifted(Shifted(law=law, by_s=3.0)) == (law, 3.0)
    assert unshifted(law) == (law, 0.0)


def test_laws_compare_and_hash_by_value():
    assert HyperExponential(weights=[0.5, 0.5], means_s=np.array([1, 2])) == HyperExponential(
        weights=(0.5, 0.5), means_s=(1.0, 2.0)
    )
    assert len({COXIAN, TABLE, COXIAN.scaled(1.0)}) == 2


# ---- residual lives -----------------------------------------------------------------------------

RESIDUALS = {
    **{name: law for name, law in SPREAD.items() if name != "zero"},
    "weibull of 0.5": Weibull(scale_s=3.0, shape=0.5),
    "gamma sharp": Gamma(mean_s=1.0, shape=2500.5),
    "lognormal sharp": LogNormal(mean_s=1.0, scv=1e-4),
    "lognormal heavy": LogNormal(mean_s=1.0, scv=400.0),
    "constant": Deterministic(value_s=2.0),
    "shifted table": Shifted(law=TABLE, by_s=0.1),
    "shifted phases": Shifted(law=COXIAN, by_s=0.1),
    "shifted constant": Shifted(law=Deterministic(value_s=1.0), by_s=2.0),
}


@pytest.mark.parametrize("law", RESIDUALS.values(), ids=RESIDUALS)
def test_residual_mean_is_half_the_second_moment_over_the_first(law):
    expected = law.mean_s * (1.0 + law.scv) / 2.0
    exact = phases(law) is not None and unshifted(law)[1] == 0.0
    assert residual(law).mean_s == pytest.approx(expected, rel=1e-11 if exact else 1e-4)


@pytest.mark.parametrize("law", RESIDUALS.values(), ids=RESIDUALS)
def test_residual_cdf_is_the_running_integral_of_what_is_left(law):
    left = residual(law)
    times = [*left.quantile([0.0123, 0.21, 0.5, 0.77, 0.991]), 1.7 * law.mean_s]
    # The times are ends of pieces; most fall within a bin of the table, not on an edge.
    points = np.unique([*pieces_s(law, end_s=max(times)), *times])
    _, measure = life_measure(law, points)
    lived = np.concatenate([[0.0], np.cumsum(measure.sum(axis=1))]) / law.mean_s
    expected = lived[np.searchsorted(points, times)]
    np.testing.assert_allclose(left.cdf(times), expected, rtol=0, atol=1e-5)


def test_residual_in_closed_form():
    law = Exponential(mean_s=0.3)
    assert residual(law) is law
    assert residual(Deterministic(value_s=2.0)) == Uniform(low_s=0.0, high_s=2.0)
    assert residual(Deterministic(value_s=0.0)) == Deterministic(value_s=0.0)
    mixed = residual(HyperExponential(weights=(0.5, 0.5), means_s=(1.0, 3.0)))
    assert mixed == HyperExponential(weights=(0.25, 0.75), means_s=(1.0, 3.0))
    nothing = PhaseType(initial=(0.0,), generator=((-1.0,),))
    assert residual(nothing) == Deterministic(value_s=0.0)
    assert residual(Shifted(law=nothing, by_s=2.0)).mean_s == pytest.approx(1.0)


@pytest.mark.parametrize("shape", [2, 5])
def test_residual_of_erlang_has_the_transform_of_the_equilibrium_law(shape):
    law = Gamma(mean_s=2.0, shape=shape)
    z = np.array([0.3, 1.0 + 2j, 10j])
    expected = (1.0 - law.transform(z)) / (z * law.mean_s)
    np.testing.assert_allclose(residual(law).transform(z), expected, atol=1e-14)


# ---- what is refused ----------------------------------------------------------------------------

BAD = {
    "negative": lambda: Deterministic(value_s=-1.0),
    "nan": lambda: Deterministic(value_s=math.nan),
    "infinite mean": lambda: Exponential(mean_s=math.inf),
    "zero mean": lambda: Exponential(mean_s=0.0),
    "empty range": lambda: Uniform(low_s=1.0, high_s=1.0),
    "reversed range": lambda: Uniform(low_s=2.0, high_s=1.0),
    "no shape": lambda: Gamma(mean_s=1.0, shape=0.0),
    "nan shape": lambda: Weibull(scale_s=1.0, shape=math.nan),
    "tiny shape": lambda: Weibull(scale_s=1.0, shape=0.01),
    "no variation": lambda: LogNormal(mean_s=1.0, scv=0.0),
    "absurd variation": lambda: LogNormal(mean_s=1.0, scv=1e300),
    "weights short of 1": lambda: HyperExponential(weights=(0.5, 0.4), means_s=(1.0, 2.0)),
    "weights unlike means": lambda: HyperExponential(weights=(0.5, 0.5), means_s=(1.0,)),
    "negative weight": lambda: HyperExponential(weights=(1.5, -0.5), means_s=(1.0, 2.0)),
    "no branches": lambda: HyperExponential(weights=(), means_s=()),
    "no phases": lambda: PhaseType(initial=(), generator=()),
    "initial above 1": lambda: PhaseType(initial=(1.5,), generator=((-1.0,),)),
    "not square": lambda: PhaseType(initial=(1.0,), generator=((-1.0, 1.0),)),
    "positive diagonal": lambda: PhaseType(initial=(1.0,), generator=((1.0,),)),
    "negative rate": lambda: PhaseType(initial=(1, 0), generator=((-1, -1), (0, -1))),
    "row above 0": lambda: PhaseType(initial=(1, 0), generator=((-1, 2), (0, -1))),
    "trapped": lambda: PhaseType(initial=(1, 0, 0), generator=((-2, 1, 0), (0, -1, 1), (0, 1, -1))),
    "edges fall": lambda: Empirical(edges_s=(0, 2, 1), weights=(0.5, 0.5)),
    "edges too few": lambda: Empirical(edges_s=(0, 2), weights=(0.5, 0.5)),
    "no bins": lambda: Empirical(edges_s=(0.0,), weights=()),
    "edge not finite": lambda: Empirical(edges_s=(0, math.inf), weights=(1,)),
    "quantiles without end": lambda: from_quantiles([0, 0.9], [0, 1]),
    "quantiles out of order": lambda: from_quantiles([0, 0.9, 0.5, 1], [0, 1, 2, 3]),
    "negative shift": lambda: Shifted(law=Exponential(mean_s=1.0), by_s=-1.0),
    "scaled by 0": lambda: Exponential(mean_s=1.0).scaled(0.0),
    "share above 1": lambda: Exponential(mean_s=1.0).quantile([0.5, 1.5]),
    "share nan": lambda: TABLE.quantile(math.nan),
}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD)
def test_what_is_no_law_is_refused_with_a_reason(make):
    with pytest.raises(InvalidInputError) as caught:
        make()
    (problem,) = caught.value.problems
    assert problem.at
    assert problem.saw
    assert problem.want
