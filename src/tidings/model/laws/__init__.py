"""Laws of random times: what they are, how they are written, and how they are computed with."""

from tidings.model.arrays import Complexes
from tidings.model.laws.absorption import ended_share
from tidings.model.laws.empirical import Empirical, cumulative, from_quantiles, from_values
from tidings.model.laws.heavy import LogNormal, Weibull
from tidings.model.laws.law import Law, Reals
from tidings.model.laws.phase_type import HyperExponential, Phases, PhaseType, phases, walk
from tidings.model.laws.reading import read_law
from tidings.model.laws.residual import left_share, residual
from tidings.model.laws.schema import law_schema
from tidings.model.laws.simple import (
    Deterministic,
    Exponential,
    Gamma,
    Shifted,
    Uniform,
    shifted,
    unshifted,
)
from tidings.model.laws.writing import law_document

__all__ = [
    "Complexes",
    "Deterministic",
    "Empirical",
    "Exponential",
    "Gamma",
    "HyperExponential",
    "Law",
    "LogNormal",
    "PhaseType",
    "Phases",
    "Reals",
    "Shifted",
    "Uniform",
    "Weibull",
    "cumulative",
    "ended_share",
    "from_quantiles",
    "from_values",
    "law_document",
    "law_schema",
    "left_share",
    "phases",
    "read_law",
    "residual",
    "shifted",
    "unshifted",
    "walk",
]
