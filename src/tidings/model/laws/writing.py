"""A law as a document: one canonical spelling, in seconds, that reads back as the same law."""

from __future__ import annotations

from tidings.errors import UnsupportedError
from tidings.model.laws.empirical import Empirical
from tidings.model.laws.heavy import LogNormal, Weibull
from tidings.model.laws.law import Law
from tidings.model.laws.phase_type import HyperExponential, PhaseType
from tidings.model.laws.simple import Deterministic, Exponential, Gamma, Shifted, Uniform


def law_document(law: Law) -> object:
    """Write a distribution as plain numbers, lists and mappings; it reads back to the last bit.

    >>> law_document(Shifted(law=Exponential(mean_s=0.003), by_s=0.5))
    {'exponential': 0.003, 'shift': 0.5}
    >>> law_document(Deterministic(value_s=0.25))
    0.25
    """
    match law:
        case Deterministic():
            return float(law.value_s)
        case Shifted(law=Deterministic(value_s=value_s)):
            return {"deterministic": float(value_s), "shift": float(law.by_s)}
        case Shifted():
            return {**_family(law.law), "shift": float(law.by_s)}
    return _family(law)


def _family(law: Law) -> dict[str, object]:
    """Write a distribution, neither constant nor shifted, under the name of its family."""
    match law:
        case Exponential():
            return {"exponential": float(law.mean_s)}
        case Uniform():
            return {"uniform": [float(law.low_s), float(law.high_s)]}
        case Gamma():
            whole = float(law.shape).is_integer()
            family, shape = ("erlang", int(law.shape)) if whole else ("gamma", float(law.shape))
            return {family: {"mean": float(law.mean_s), "shape": shape}}
        case HyperExponential():
            pairs = zip(law.weights, law.means_s, strict=True)
            return {"hyperexponential": [{"p": p, "mean": mean_s} for p, mean_s in pairs]}
        case LogNormal():
            return {"lognormal": {"mean": float(law.mean_s), "scv": float(law.scv)}}
        case Weibull():
            return {"weibull": {"scale": float(law.scale_s), "shape": float(law.shape)}}
        case PhaseType():
            generator = [list(row) for row in law.generator]
            return {"phase_type": {"initial": list(law.initial), "generator": generator}}
        case Empirical():
            return {"histogram": {"edges": list(law.edges_s), "weights": list(law.weights)}}
    raise UnsupportedError(f"the distribution {type(law).__name__} cannot be written to a file")
