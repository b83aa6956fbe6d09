"""The accepted spellings of a law, as JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidings.model import units
from tidings.model.laws.heavy import LEAST_WEIBULL_SHAPE, MOST_SIGMA

_NUMBER = r"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
_POSITIVE = {"type": "number", "exclusiveMinimum": 0}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}


def law_schema() -> dict[str, Any]:
    """Make the JSON Schema of all that :func:`read_law` accepts (sums and orders it cannot say).

    >>> sorted(law_schema())
    ['anyOf', 'description']
    """
    time = _quantity(units.SECONDS, minimum=0)
    shift = {"shift": time}
    mappings = [
        {
            "type": "object",
            "properties": {family: form, **shift},
            "required": [family],
            "additionalProperties": False,
        }
        for family, form in _families(time).items()
    ]
    return {
        "description": "A time, or the distribution of a random time",
        "anyOf": [time, *mappings],
    }


def _families(time: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Make the schema of what follows the name of each family."""
    shape = {"type": "number", "minimum": LEAST_WEIBULL_SHAPE}
    sigma = {**_POSITIVE, "maximum": MOST_SIGMA}
    times = {"type": "array", "items": time}
    rates = {"type": "array", "items": _quantity(units.PER_S), "minItems": 1}
    shares = {"type": "array", "items": _SHARE, "minItems": 1}
    branch = _fields({"p": _SHARE, "mean": time}, [["p", "mean"]])
    middle, spread = {"mean": time, "median": time}, {"scv": _POSITIVE, "sigma": sigma}
    return {
        "deterministic": time,
        "exponential": time,
        "rate": _quantity(units.PER_S, minimum=0),
        "uniform": {**times, "minItems": 2, "maxItems": 2},
        "erlang": _fields(
            {"mean": time, "shape": {"type": "integer", "minimum": 1}}, [["mean", "shape"]]
        ),
        "gamma": _fields(
            {"mean": time, "shape": _POSITIVE, "scv": _POSITIVE},
            [["mean", "shape"], ["mean", "scv"]],
        ),
        "hyperexponential": {"type": "array", "items": branch, "minItems": 1},
        "lognormal": _fields({**middle, **spread}, ([m, s] for m in middle for s in spread)),
        "weibull": _fields(
            {"scale": time, "mean": time, "shape": shape}, [["scale", "shape"], ["mean", "shape"]]
        ),
        "phase_type": _fields(
            {"initial": shares, "generator": {"type": "array", "items": rates, "minItems": 1}},
            [["initial", "generator"]],
        ),
        "histogram": _fields(
            {"edges": {**times, "minItems": 2}, "weights": shares}, [["edges", "weights"]]
        ),
        "quantiles": {"type": "object", "minProperties": 2, "additionalProperties": time},
    }


def _fields(forms: dict[str, Any], sets: Iterable[list[str]]) -> dict[str, Any]:
    """Make the schema of a mapping that has exactly one of the given sets of fields."""
    options = [
        {
            "type": "object",
            "properties": {name: forms[name] for name in names},
            "required": names,
            "additionalProperties": False,
        }
        for names in sets
    ]
    return options[0] if len(options) == 1 else {"anyOf": options}


def _quantity(of: dict[str, float], minimum: float | None = None) -> dict[str, Any]:
    """Make the schema of a number in the base unit, or a text with one of the units."""
    sign = "[-+]?" if minimum is None else r"\+?"
    unit = "|".join(of)
    number = {"type": "number"} if minimum is None else {"type": "number", "minimum": minimum}
    text = {"type": "string", "pattern": rf"^\s*{sign}{_NUMBER}\s*({unit})?\s*$"}
    return {"anyOf": [number, text]}
