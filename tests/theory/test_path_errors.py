"""Path laws against eighty-digit algebra: every law states its error bound and keeps to it."""

from __future__ import annotations

import importlib.util
import itertools
from decimal import localcontext
from fractions import Fraction
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import special

from tidings.model.laws import Deterministic, Empirical, Exponential, Gamma, Uniform
from tidings.theory.path_laws import Enclosed, Inverted, Rounded, Workshop, path_law
from tidings.theory.pieces import rounding_error
from tidings.theory.queues import fitted_law, whole_law
from tidings.theory.stages import in_series, law_stage

_spec = importlib.util.spec_from_file_location(
    "exact_paths", Path(__file__).parent / "exact_paths.py"
)
exact = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(exact)

WANTED = 1e-6


class Part:
    """A stage of ours, and its law as the algebra has it up to a time."""

    def __init__(self, stage, law):
        self.stage, self.law = stage, law


def exponential(mean):
    return Part(law_stage(Exponential(mean_s=float(mean))), lambda _: exact.exponential(mean))


def erlang(count, mean):
    law = Gamma(mean_s=float(mean), shape=count)
    return Part(law_stage(law), lambda _: exact.erlang(count, mean))


def uniform(low, width):
    law = Uniform(low_s=float(low), high_s=float(low + width))
    return Part(law_stage(law), lambda _: exact.uniform(low, low + width))


def constant(value):
    return Part(law_stage(Deterministic(value_s=float(value))), lambda _: exact.atom(value))


def half_atom(at, width):
    law = Empirical(edges_s=(0.0, float(width), float(at), float(at)), weights=(0.5, 0.0, 0.5))

    def algebra(_):
        half = Fraction(1, 2)
        return exact.plus(
            exact.scaled(exact.uniform(Fraction(0), width), half), exact.atom(at, half)
        )

    return Part(law_stage(law), algebra)


def constant_service(load, service):
    stage = whole_law(float(load / service), Deterministic(value_s=float(service)))

    def algebra(end):
        wait = exact.constant_service_wait(load, service, end)
        return exact.times(wait, exact.atom(service), end)

    return Part(stage, algebra)


def uniform_service(load, width):
    law = Uniform(low_s=0.0, high_s=float(width))

    def algebra(end):
        wait = exact.uniform_service_wait(load, width, end)
        return exact.times(wait, exact.uniform(Fraction(0), width), end)

    return Part(whole_law(float(2 * load / width), law), algebra)


def fitted_uniform(load, width, wait):
    law = Uniform(low_s=0.0, high_s=float(width))
    stage = fitted_law(law, float(wait), float(2 * wait**2 / load))

    def algebra(end):
        return exact.times(exact.fitted_wait(load, wait), exact.uniform(Fraction(0), width), end)

    return Part(stage, algebra)


def estimate(parts, times):
    stage = reduce(in_series, (part.stage for part in parts))
    law = path_law(stage, Workshop())
    return law, law.cdf(np.array([float(t) for t in times]))


def truth(parts, times):
    with localcontext() as context:
        context.prec = exact.DIGITS
        return np.array([exact.cdf([part.law(t) for part in parts], t) for t in times])


F = Fraction
LINKS = {
    "constant link": [constant(F(3, 4))],
    "exponential link": [exponential(F(1, 2))],
    "both": [constant(F(3, 4)), exponential(F(1, 2))],
}


@pytest.mark.parametrize("links", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("load", [F(1, 20), F(1, 2), F(4, 5), F(9, 10)])
def test_constant_services_are_exact_to_1e6_on_both_sides_of_every_corner(load, links):
    parts = [constant_service(load, F(1)), *links]
    shift = sum(Fraction(part.stage.shift_s) for part in parts)
    corners = [F(0), F(1, 2), F(999, 1000), F(1), F(1001, 1000), F(4, 3), F(2), F(2001, 1000)]
    times = [shift + x for x in [*corners, F(3), F(7), F(14)]]
    _, (value, error) = estimate(parts, times)
    assert np.all(np.abs(value - truth(parts, times)) <= error)
    assert error.max() <= WANTED


@pytest.mark.parametrize("links", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("load", [F(1, 20), F(1, 2), F(9, 10)])
def test_uniform_services_are_exact_to_1e6_on_both_sides_of_every_corner(load, links):
    parts = [uniform_service(load, F(1)), *links]
    times = [F(1, 50), F(1, 2), F(99, 100), F(1), F(101, 100), F(7, 4), F(5, 2)]
    law, (value, error) = estimate(parts, times)
    assert np.all(np.abs(value - truth(parts, times)) <= error)
    assert error.max() <= WANTED
    assert isinstance(law.randomness, Rounded)


sizes = st.fractions(F(1, 8), F(4), max_denominator=8)
loads = st.sampled_from([F(1, 10), F(1, 2), F(3, 4), F(9, 10)])
smooth = st.one_of(st.builds(exponential, sizes), st.builds(erlang, st.integers(2, 5), sizes))
rough = st.one_of(
    st.builds(uniform, st.sampled_from([F(0), F(1, 2)]), sizes),
    st.builds(constant_service, loads, sizes),
    st.builds(fitted_uniform, loads, sizes, sizes),
    st.builds(half_atom, st.just(F(5)), sizes),
)


@pytest.mark.slow
@settings(deadline=None, max_examples=100, phases=(Phase.explicit, Phase.generate))
@given(
    parts=st.tuples(st.lists(smooth, max_size=2), st.lists(rough, min_size=1, max_size=2)),
    share=st.fractions(F(1, 20), F(5, 2), max_denominator=40),
)
def test_every_path_law_keeps_to_the_error_it_states(parts, share):
    parts = [*parts[0], *parts[1]]
    mean = sum(F(part.stage.mean_s).limit_denominator(64) for part in parts)
    t = share * mean
    _, (value, error) = estimate(parts, [t])
    assert abs(value[0] - truth(parts, [t])[0]) <= error[0] + 1e-15
    atoms = any((F(5), F(0), 0) in part.law(t) for part in parts)
    assert error[0] <= WANTED or atoms or share > 1  # far beyond the mean lattices grow coarse


def test_a_finer_lattice_has_a_quarter_of_the_bound_and_keeps_to_it():
    parts = [constant_service(F(1, 2), F(1)), uniform(F(0), F(1))]
    stage = reduce(in_series, (part.stage for part in parts))
    form = path_law(stage, Workshop()).randomness
    pieces = [delay.pieces for delay in stage.delays]
    times = [F(k, 16) for k in range(20, 60)]  # across corners at 1, 2 and 3
    known = truth(parts, times)
    bounds = []
    for step in (2.0**-4, 2.0**-5, 2.0**-7, 2.0**-9):
        lattice = Workshop().lattice(2, round(4.0 / step))
        rest = np.array([float(t - 1) for t in times])
        value = form._values(lattice, rest)
        bounds.append(rounding_error(pieces, step))
        assert np.abs(value - known).max() <= bounds[-1]
        assert np.abs(value - known).max() >= bounds[-1] / 100  # a bound worth stating
    assert [a / b for a, b in itertools.pairwise(bounds)] == pytest.approx([4, 16, 16])


def test_atoms_beside_one_smooth_delay_are_bounded_too():
    parts = [half_atom(F(1), F(1, 2)), exponential(F(1))]
    times = [F(9, 10), F(1), F(1001, 1000), F(3, 2)]
    law, (value, error) = estimate(parts, times)
    assert isinstance(law.randomness, Rounded)
    assert np.all(np.abs(value - truth(parts, times)) <= error)
    assert error.max() <= 1e-4


def test_atoms_alone_are_enclosed():
    parts = [half_atom(F(1), F(1, 2)), half_atom(F(1), F(1, 2))]
    law, (value, error) = estimate(parts, [F(7, 4)])
    assert isinstance(law.randomness, Enclosed)
    assert abs(value[0] - truth(parts, [F(7, 4)])[0]) <= error[0]


@pytest.mark.parametrize(
    "shapes", [(0.6, 0.9), (0.7, 2.2, 0.6), (3.3, 5.7), (40.5, 60.25), (300.5, 500.5)]
)
def test_inverted_laws_keep_to_the_error_they_estimate(shapes):
    """Gamma laws of one scale add up to a gamma law; the error is seen between two rules."""
    laws = [Gamma(mean_s=shape, shape=shape) for shape in shapes]
    law = path_law(reduce(in_series, map(law_stage, laws)), Workshop())
    assert isinstance(law.randomness, Inverted)
    middle, spread = sum(shapes), sum(shapes) ** 0.5
    t_s = np.maximum(middle + spread * np.linspace(-4.0, 8.0, 241), 0.01 * middle)
    value, error = law.cdf(t_s)
    off = np.abs(value - special.gammainc(middle, t_s))
    assert np.all(off <= error)
    assert error.max() <= WANTED
