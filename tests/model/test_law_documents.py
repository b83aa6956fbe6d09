"""Laws as documents: every spelling, every mistake, and back to the last bit."""

from __future__ import annotations

import json
import math

import jsonschema
import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import UnsupportedError
from tidings.model.document import Place
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
    law_document,
    law_schema,
    read_law,
)

SCHEMA = jsonschema.Draft202012Validator(law_schema())
SPELLINGS = {
    "250ms": Deterministic(value_s=0.25),
    "0.25": Deterministic(value_s=0.25),
    "0": Deterministic(value_s=0.0),
    "{deterministic: 2 min}": Deterministic(value_s=120.0),
    "{exponential: 3ms}": Exponential(mean_s=0.003),
    "{rate: 4/s}": Exponential(mean_s=0.25),
    "{rate: 4}": Exponential(mean_s=0.25),
    "{rate: 30/min}": Exponential(mean_s=2.0),
    "{uniform: [0s, 20ms]}": Uniform(low_s=0.0, high_s=0.02),
    "{erlang: {mean: 5ms, shape: 3}}": Gamma(mean_s=0.005, shape=3),
    "{gamma: {mean: 5ms, shape: 2.5}}": Gamma(mean_s=0.005, shape=2.5),
    "{gamma: {mean: 5ms, scv: 4}}": Gamma(mean_s=0.005, shape=0.25),
    "{hyperexponential: [{p: 0.3, mean: 1ms}, {p: 0.7, mean: 9ms}]}": HyperExponential(
        weights=(0.3, 0.7), means_s=(0.001, 0.009)
    ),
    "{lognormal: {mean: 5ms, scv: 2}}": LogNormal(mean_s=0.005, scv=2.0),
    "{weibull: {scale: 5ms, shape: 0.7}}": Weibull(scale_s=0.005, shape=0.7),
    "{weibull: {mean: 5ms, shape: 0.5}}": Weibull(scale_s=0.0025, shape=0.5),
    "{phase_type: {initial: [1, 0], generator: [[-2, 2], [0, -4/s]]}}": PhaseType(
        initial=(1, 0), generator=((-2, 2), (0, -4))
    ),
    "{histogram: {edges: [0, 1ms, 1ms, 5ms], weights: [0.2, 0.3, 0.5]}}": Empirical(
        edges_s=(0, 0.001, 0.001, 0.005), weights=(0.2, 0.3, 0.5)
    ),
    "{quantiles: {0: 1ms, 0.5: 4ms, 1: 80ms}}": Empirical(
        edges_s=(0.001, 0.004, 0.08), weights=(0.5, 0.5)
    ),
    "{quantiles: {1: 80ms, '0.5': 4ms, 0: 1ms}}": Empirical(
        edges_s=(0.001, 0.004, 0.08), weights=(0.5, 0.5)
    ),
    "{exponential: 3ms, shift: 2ms}": Shifted(law=Exponential(mean_s=0.003), by_s=0.002),
    "{shift: 2ms, deterministic: 3ms}": Shifted(law=Deterministic(value_s=0.003), by_s=0.002),
}


def as_json(value):
    """The document as JSON has it: every key a text."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize(("text", "law"), SPELLINGS.items(), ids=SPELLINGS)
def test_every_spelling_is_read_and_fits_the_schema(text, law):
    document = yaml.safe_load(text)
    place = Place(document)
    assert read_law(place) == law
    assert place.problems == []
    SCHEMA.validate(as_json(document))


def test_median_and_sigma_describe_a_lognormal():
    for spread in ({"sigma": 0.5}, {"scv": math.expm1(0.25)}):
        law = read_law(Place({"lognormal": {"median": "4ms", **spread}}))
        assert float(law.quantile(0.5)) == pytest.approx(0.004, rel=1e-12)
        assert law.sigma == pytest.approx(0.5, rel=1e-12)


def test_mean_of_a_weibull_is_its_mean():
    assert read_law(Place({"weibull": {"mean": 3.0, "shape": 1.7}})).mean_s == pytest.approx(
        3.0, rel=1e-14
    )


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(law_schema())


MISTAKES = {
    "soon": ("", "a time such as 250ms"),
    "-1ms": ("", "a time such as 250ms"),
    ".nan": ("", "a time such as 250ms"),
    ".inf": ("", "a time such as 250ms"),
    "true": ("", "a time such as 250ms"),
    "null": ("", "a time such as 250ms"),
    "[1, 2]": ("", "a time such as 250ms"),
    "{}": ("", "a distribution such as {exponential: 250ms}"),
    "{shift: 2ms}": ("", "a distribution such as {exponential: 250ms}"),
    "{expnential: 3ms}": ("expnential", "one of the fields"),
    "{exponential: 3ms, uniform: [0, 1]}": ("uniform", "one distribution family"),
    "{exponential: 0ms}": ("exponential", "a time, above 0"),
    "{exponential: -3ms}": ("exponential", "a time, above 0"),
    "{exponential: 3ms, shift: -1}": ("shift", "a time, 0 or more"),
    "{rate: 0/s}": ("rate", "a rate above 0"),
    "{rate: 1e-320}": ("rate", "a finite number above 0"),
    "{uniform: 3ms}": ("uniform", "a list of numbers"),
    "{uniform: [0, 1, 2]}": ("uniform", "two times"),
    "{uniform: [3ms, 1ms]}": ("uniform", "the lower one first"),
    "{uniform: [3ms, 3ms]}": ("uniform", "the lower one first"),
    "{uniform: [3ms, fast]}": ("uniform[2]", "a time, 0 or more"),
    "{erlang: {mean: 5ms}}": ("erlang", "the field shape"),
    "{erlang: {mean: 5ms, shape: 2.5}}": ("erlang.shape", "a whole number, 1 or more"),
    "{erlang: 5ms}": ("erlang", "a mapping such as {mean: ..., shape: ...}"),
    "{gamma: {mean: 5ms, shape: 2, scv: 2}}": ("gamma", "the field shape or scv"),
    "{gamma: {mean: 5ms, shap: 2}}": ("gamma.shap", "one of the fields mean, shape, scv"),
    "{gamma: {mean: 5ms, scv: 1.0e-320}}": ("gamma", "a finite number above 0"),
    "{hyperexponential: {p: 1, mean: 1}}": ("hyperexponential", "a list such as"),
    "{hyperexponential: []}": ("hyperexponential", "weights that sum to 1"),
    "{hyperexponential: [{p: 0.3, mean: 1ms}]}": ("hyperexponential", "weights that sum to 1"),
    "{hyperexponential: [{p: 1, mean: 0}]}": ("hyperexponential[1].mean", "a time, above 0"),
    "{hyperexponential: [3ms]}": ("hyperexponential[1]", "a mapping such as"),
    "{lognormal: {mean: 5ms}}": ("lognormal", "the field scv or sigma"),
    "{lognormal: {mean: 5ms, scv: 1.0e+300}}": ("lognormal.scv", "at most"),
    "{lognormal: {median: 5ms, sigma: 40}}": ("lognormal.sigma", "at most 6"),
    "{weibull: {scale: 5ms, mean: 5ms, shape: 1}}": ("weibull", "the field scale or mean"),
    "{weibull: {mean: 5ms, shape: 0.001}}": ("weibull.shape", "0.05 or more"),
    "{phase_type: {initial: [1], generator: []}}": ("phase_type.generator", "a list of rows"),
    "{phase_type: {initial: [1], generator: 4}}": ("phase_type.generator", "a list of rows"),
    "{phase_type: {initial: [1], generator: [[1]]}}": (
        "phase_type.generator[1]",
        "a negative diagonal",
    ),
    "{phase_type: {initial: [2], generator: [[-1]]}}": ("phase_type.initial[1]", "a share"),
    "{phase_type: {initial: [1], generator: [[x]]}}": ("phase_type.generator[1][1]", "a rate"),
    "{histogram: {edges: [0, 1], weights: [0.5, 0.5]}}": ("histogram", "one edge more"),
    "{histogram: {edges: [0, 2, 1], weights: [0.5, 0.5]}}": ("histogram.edges", "do not decrease"),
    "{histogram: {edges: [0, 1], weights: [-1]}}": ("histogram.weights[1]", "a share"),
    "{quantiles: [1, 2]}": ("quantiles", "a mapping such as"),
    "{quantiles: {}}": ("quantiles", "begin with 0 and end with 1"),
    "{quantiles: {0.5: 1ms, 1: 2ms}}": ("quantiles", "begin with 0 and end with 1"),
    "{quantiles: {0: 5ms, 0.5: 4ms, 1: 9ms}}": ("quantiles", "do not decrease"),
    "{quantiles: {0: 1, p50: 2, 1: 3}}": ("quantiles.p50", "each share once, from 0 to 1"),
    "{quantiles: {0: 1, 1.5: 2, 1: 3}}": ("quantiles.1.5", "each share once, from 0 to 1"),
    "{quantiles: {0: 1, 0.5: 2, '0.50': 2, 1: 3}}": ("quantiles.0.50", "each share once"),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_every_mistake_is_noted_at_its_place(text):
    at, want = MISTAKES[text]
    place = Place(yaml.safe_load(text), ("service",))
    assert read_law(place) is None
    assert len(place.problems) == 1
    assert place.problems[0].at == (f"service.{at}" if at else "service")
    assert want in str(place.problems[0])


def test_all_mistakes_are_found_at_once():
    place = Place({"gamma": {"mean": "-5ms", "shape": 0}, "shift": "later"})
    assert read_law(place) is None
    assert {problem.at for problem in place.problems} == {"gamma.mean", "gamma.shape", "shift"}


# Several faults inside one law, and the place and a word of each; none may hide another.
FAULTS = {
    "{quantiles: {0: 5ms, 0.5: 4ms, 0.9: 3ms, 1.5: 9ms, p99: -1s, 1: 9ms}}": [
        ("quantiles", "got 0.005, then 0.004"),
        ("quantiles", "got 0.004, then 0.003"),
        ("quantiles.1.5", "each share once"),
        ("quantiles.p99", "each share once"),
        ("quantiles.p99", "a time, 0 or more"),
    ],
    "{histogram: {edges: [3, 2, 1, x], weights: [0.5, 0.1, 0.1, 0.1]}}": [
        ("histogram", "one edge more"),
        ("histogram.edges", "got 3, then 2"),
        ("histogram.edges", "got 2, then 1"),
        ("histogram.edges[4]", "a time"),
        ("histogram.weights", "sum to 0.8"),
    ],
    "{phase_type: {initial: [1, 0.5, x], generator: [[1, 2, 3], [-1, 2, -5], [0, 0], [a]]}}": [
        ("phase_type.generator", "wants 3 rows"),
        ("phase_type.generator[1]", "got 3 rates; wants 4 rates"),
        ("phase_type.generator[2]", "got 3 rates; wants 4 rates"),
        ("phase_type.generator[3]", "got 2 rates; wants 4 rates"),
        ("phase_type.generator[4][1]", "a rate"),
        ("phase_type.initial[3]", "a share"),
    ],
    "{phase_type: {initial: [1, 0.5], generator: [[1, 2], [-1, 2]]}}": [
        ("phase_type.generator[1]", "negative diagonal"),
        ("phase_type.generator[2]", "negative diagonal"),
        ("phase_type.generator[2]", "got -1 between phases"),
        ("phase_type.initial", "a sum of at most 1"),
    ],
    "{phase_type: {initial: [1, 0], generator: [[-1, 2], [2, -1]]}}": [
        ("phase_type.generator[1]", "a row that sums to at most 0"),
        ("phase_type.generator[2]", "a row that sums to at most 0"),
    ],
    "{hyperexponential: [{p: 0.3, mean: -1}, {p: 0.2, men: 1}]}": [
        ("hyperexponential", "weights that sum to 0.5"),
        ("hyperexponential[1].mean", "a time, above 0"),
        ("hyperexponential[2].men", "did you mean 'mean'"),
    ],
    "{gamma: {mean: -5ms, shap: 2}, shift: later}": [
        ("gamma.mean", "a time, above 0"),
        ("gamma.shap", "did you mean 'shape'"),
        ("shift", "a time"),
    ],
    "{lognormal: {mean: 0, scv: 1.0e+20}}": [
        ("lognormal.mean", "above 0"),
        ("lognormal.scv", "at most"),
    ],
}


@pytest.mark.parametrize("text", FAULTS)
def test_no_fault_of_a_law_hides_another(text):
    place = Place(yaml.safe_load(text))
    assert read_law(place) is None
    found = sorted(place.problems, key=lambda problem: problem.order)
    assert [problem.at for problem in found] == [at for at, _ in FAULTS[text]]
    for problem in found:
        assert any(at == problem.at and word in str(problem) for at, word in FAULTS[text])
    for at, word in FAULTS[text]:
        assert any(at == problem.at and word in str(problem) for problem in found)


positive = st.floats(1e-9, 1e9)
shares = st.lists(st.floats(0.01, 1.0), min_size=1, max_size=5).map(
    lambda values: tuple(float(value) for value in np.array(values) / sum(values))
)


@st.composite
def laws(draw):
    weights = draw(shares)
    times_s = tuple(sorted(draw(positive) for _ in range(len(weights) + 1)))
    rate = draw(positive)
    base = draw(
        st.sampled_from(
            [
                Deterministic(value_s=draw(st.floats(0, 1e9))),
                Exponential(mean_s=draw(positive)),
                Uniform(low_s=times_s[0], high_s=times_s[0] + 1.0),
                Gamma(mean_s=draw(positive), shape=draw(st.floats(0.01, 500.0))),
                Gamma(mean_s=draw(positive), shape=draw(st.integers(1, 500))),
                HyperExponential(weights=weights, means_s=times_s[1:]),
                LogNormal(mean_s=draw(positive), scv=draw(st.floats(1e-6, 1e3))),
                Weibull(scale_s=draw(positive), shape=draw(st.floats(0.05, 50.0))),
                PhaseType(initial=(0.5, 0.25), generator=((-2 * rate, rate), (0.0, -rate))),
                Empirical(edges_s=times_s, weights=weights),
            ]
        )
    )
    return Shifted(law=base, by_s=draw(st.floats(0, 1e9))) if draw(st.booleans()) else base


@given(laws())
@settings(deadline=None, max_examples=100)
def test_a_written_law_reads_back_as_itself(law):
    document = law_document(law)
    through_yaml = yaml.safe_load(yaml.safe_dump(document))
    for copy in (document, as_json(document), through_yaml):
        place = Place(copy)
        assert read_law(place) == law, place.problems
    SCHEMA.validate(as_json(document))


def test_numbers_of_numpy_are_written_as_plain_numbers():
    document = law_document(Gamma(mean_s=np.float64(0.1), shape=np.float64(2.5)))
    assert yaml.safe_load(yaml.safe_dump(document)) == {"gamma": {"mean": 0.1, "shape": 2.5}}


def test_a_foreign_law_has_no_written_form():
    with pytest.raises(UnsupportedError, match="Foreign"):
        law_document(type("Foreign", (), {})())


FAMILIES = [name for form in law_schema()["anyOf"] for name in form.get("required", ())]
FIELDS = ["mean", "shape", "scv", "sigma", "median", "scale", "p", "initial", "generator"]
FIELDS += ["edges", "weights", "shift"]
scraps = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**400), 10**400),
        st.floats(),
        st.sampled_from(["3ms", "-1s", "nan", "", "4/s", "1e999", "x"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from([*FAMILIES, *FIELDS, "0", "0.5", "1", "junk"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=12,
)


@given(scraps)
@settings(deadline=None, max_examples=200)
def test_whatever_is_written_is_a_law_or_a_problem(scrap):
    place = Place(scrap)
    law = read_law(place)
    assert (law is None) == bool(place.problems)
    if law is not None:
        assert read_law(Place(law_document(law))) == law
