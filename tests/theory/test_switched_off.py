"""Everything at once with some effects made infinitely small: the same as without them.

Whatever is left must be what the model of the others alone says, so that each dedicated model is a
limit of the whole. How good each of those is, its own tests say.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

from tidings.model import reading
from tidings.model.content import ContentRow, ContentTable
from tidings.model.system import System
from tidings.planning.changes import changed
from tidings.planning.effects import EFFECTS
from tidings.theory.predicting import predict

# Each effect as it is, and so small that it cannot be noticed.
STRENGTHS: dict[str, tuple[Any, Any]] = {
    "service": ({"exponential": 0.1}, {"exponential": 1e-8}),
    "failures": ({"mtbf": 90.0, "mttr": 10.0}, {"mtbf": 1e9, "mttr": 1e-3}),
    "link delay": ({"exponential": 0.2}, {"exponential": 1e-10}),
    "coming and going": ({"exponential": 2.0}, {"exponential": 1e-10}),
    "churn": ({"exponential": 20.0}, {"exponential": 1e11}),
    "link loss": (0.9, 1.0 - 1e-12),
    "varying lifetimes": ({"exponential": 1.0}, {"uniform": [1.0 - 1e-9, 1.0 + 1e-9]}),
    "filters": (0.6, 1.0 - 1e-12),  # how much of all is what most want
}
DEAR = ("service", "failures", "link delay", "coming and going", "churn")
PLAIN = tuple(name for name in STRENGTHS if name not in DEAR)


def everything(scheme: str, faint: tuple[str, ...] = ()) -> Any:
    """Three brokers in a line with all effects, some of them faint."""
    strength = {name: pair[name in faint] for name, pair in STRENGTHS.items()}
    connectivity = {"on": {"exponential": 5.0}, "off": strength["coming and going"]}
    guest = {"stays": strength["churn"], "away": {"exponential": 30.0}}
    broker = {"service": strength["service"], "failure": strength["failures"]}
    # With buffers what a link loses by chance is sent again, if failures are faint or not.
    reliability = strength["link loss"] if scheme == "periodic" else 1.0
    link = {"delay": strength["link delay"], "reliability": reliability}
    wanted = strength["filters"]
    content = [
        {"p": wanted, "event": {"topic": "a"}},
        {"p": 1.0 - wanted, "event": {"topic": "b"}},
    ]
    publisher = {"every": {"exponential": 0.25}, "content": content}
    return reading.from_document(
        {
            "tidings": 1,
            "lifetime": strength["varying lifetimes"],
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


def without(system: System, effect: str) -> System:
    """The system with one effect switched off."""
    if effect == "varying lifetimes":
        return changed(system, ["lifetime all 1s"])
    if effect == "filters":
        alike = ContentTable(table=(ContentRow(probability=1.0, event={"topic": "a"}),))
        return replace(
            system, publishers=tuple(replace(each, content=alike) for each in system.publishers)
        )
    return EFFECTS[effect].without(system)


def subsets(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """All that are not empty."""
    return [
        each for count in range(1, len(names) + 1) for each in itertools.combinations(names, count)
    ]


# Of the three that only scale or thin what the others do, every subset, and these with all others.
CASES = [("periodic", subset) for subset in subsets(DEAR) + subsets(PLAIN)]
CASES += [("periodic", DEAR + subset) for subset in subsets(PLAIN)]
CASES += [("buffering", (name,)) for name in DEAR]


@pytest.mark.parametrize(("scheme", "faint"), CASES)
def test_what_is_faint_might_as_well_be_off(scheme: str, faint: tuple[str, ...]):
    dedicated = everything(scheme)
    for name in faint:
        dedicated = without(dedicated, name)
    expected = predict(dedicated, delays=False).subscribers
    found = predict(everything(scheme, faint), delays=False).subscribers
    for name in ("on_time", "delivered"):
        assert found[name].to_numpy() == pytest.approx(expected[name].to_numpy(), abs=1e-6), name
