"""Laws to try things on: every family, peaked and heavy, with atoms, shifted and at once over."""

from __future__ import annotations

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
)

COXIAN = PhaseType(
    initial=(0.6, 0.1, 0.1),  # 0.2 of it is over at once
    generator=((-9.0, 6.0, 1.0), (0.0, -2.0, 1.5), (0.5, 0.0, -0.7)),
)
TABLE = Empirical(edges_s=(0.01, 0.02, 0.02, 0.05, 0.3, 0.4), weights=(0.3, 0.25, 0.2, 0.0, 0.25))
LAWS = {
    "deterministic": Deterministic(value_s=0.25),
    "zero": Deterministic(value_s=0.0),
    "exponential": Exponential(mean_s=0.003),
    "uniform": Uniform(low_s=0.01, high_s=0.03),
    "uniform from 0": Uniform(low_s=0.0, high_s=20.0),
    "erlang": Gamma(mean_s=5.0, shape=3),
    "gamma peaked": Gamma(mean_s=0.005, shape=40.5),
    "gamma heavy": Gamma(mean_s=0.005, shape=0.4),
    "hyperexponential": HyperExponential(weights=(0.3, 0.6, 0.1), means_s=(0.001, 0.009, 0.2)),
    "lognormal": LogNormal(mean_s=0.005, scv=2.0),
    "lognormal narrow": LogNormal(mean_s=5.0, scv=0.01),
    "lognormal wide": LogNormal(mean_s=5.0, scv=20.0),
    "weibull": Weibull(scale_s=0.2, shape=1.7),
    "weibull heavy": Weibull(scale_s=0.2, shape=0.35),
    "phase-type": COXIAN,
    "histogram": TABLE,
    "atoms": Empirical(edges_s=(0.0, 0.0, 1.0, 1.0), weights=(0.2, 0.3, 0.5)),
    "shifted": Shifted(law=Exponential(mean_s=0.5), by_s=2.0),
}
