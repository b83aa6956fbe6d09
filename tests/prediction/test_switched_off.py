"""Everything at once with some effects made infinitely small: the same as without them.

Whatever is left must be what the model of the others alone says, so that each dedicated model is a
limit of the whole. How good each of those is, its own tests say.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tidings.model import reading
from tidings.planning.effects import EFFECTS
from tidings.prediction.predicting import predict

# Each effect as it is, and so small that it cannot be noticed.
STRENGTHS: dict[str, tuple[Any, Any]] = {
    "service": ({"exponential": 0.1}, {"exponential": 1e-6}),
    "failures": ({"mtbf": 90.0, "mttr": 10.0}, {"mtbf": 1e9, "mttr": 1e-3}),
    "link delay": ({"exponential": 0.2}, {"exponential": 1e-10}),
    "coming and going": ({"exponential": 2.0}, {"exponential": 1e-10}),
    "churn": ({"exponential": 20.0}, {"exponential": 1e11}),
}


def everything(scheme: str, faint: tuple[str, ...] = ()) -> Any:
    """Three brokers in a line with all effects, some of them faint."""
    strength = {name: pair[name in faint] for name, pair in STRENGTHS.items()}
    connectivity = {"on": {"exponential": 5.0}, "off": strength["coming and going"]}
    guest = {"stays": strength["churn"], "away": {"exponential": 30.0}}
    broker = {"service": strength["service"], "failure": strength["failures"]}
    # With buffers what a link loses by chance is sent again, if failures are faint or not.
    reliability = 0.9 if scheme == "periodic" else 1.0
    link = {"delay": strength["link delay"], "reliability": reliability}
    publisher = {"every": {"exponential": 0.25}, "content": {"event": {"topic": "a"}}}
    return reading.from_document(
        {
            "tidings": 1,
            "lifetime": 1.0,
            "recovery": {"scheme": scheme},
            "brokers": {"a": broker, "b": broker, "c": {"service": strength["service"]}},
            "links": [{"between": ["a", "b"], **link}, {"between": ["b", "c"], **link}],
            "publishers": {
                "p": {"at": "a", **publisher},
                "q": {"at": "b", **publisher},
            },
            "subscribers": {
                "lasts": {"at": "c", "wants": {"topic": "a"}},
                "moves": {"at": "b", "wants": {"topic": "a"}, "connectivity": connectivity},
                "comes": {"at": "c", "wants": {"topic": "a"}, **guest},
                "both": {"at": "b", "wants": {}, **guest, "connectivity": connectivity},
            },
        },
        "everything",
    )


CASES = [
    ("periodic", subset)
    for count in (1, 2, len(STRENGTHS))
    for subset in itertools.combinations(STRENGTHS, count)
    if count != 2 or "churn" in subset
]
CASES += [("buffering", (name,)) for name in STRENGTHS]


@pytest.mark.parametrize(("scheme", "faint"), CASES)
def test_what_is_faint_might_as_well_be_off(scheme: str, faint: tuple[str, ...]):
    without = everything(scheme)
    for name in faint:
        without = EFFECTS[name].without(without)
    expected = predict(without).subscribers
    found = predict(everything(scheme, faint)).subscribers
    for name in ("on_time", "delivered"):
        assert found[name].to_numpy() == pytest.approx(expected[name].to_numpy(), abs=1e-6), name
