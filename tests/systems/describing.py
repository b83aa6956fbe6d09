"""How a system of the catalogue is described."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from studies.content_timeliness.other_traffic import bursty
from tidings.model.laws import law_document
from tidings.model.reading import from_document
from tidings.model.system import System

Document = dict[str, Any]

EVENT = {"event": {"topic": "a"}}
# Replications of a simulation are added until 95 of 100 shares are within this, or there are many.
USUAL_RUN = {"seed": 1, "replications": 20, "precision": 0.002, "max_replications": 1_000}
COARSE = {"precision": 0.004, "max_replications": 400}  # where a second costs much


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A named system: what kind it is, how it is made, and how long it is simulated."""

    name: str
    kind: str
    make: Callable[[], System]
    run: Mapping[str, Any] = field(default_factory=dict)

    @property
    def simulation(self) -> dict[str, Any]:
        """The options of its simulation."""
        return {**USUAL_RUN, **self.run}


def case(name: str, kind: str, document: Document, **run: Any) -> Case:
    """A case of a document."""
    return Case(
        name=name, kind=kind, make=lambda: from_document({"tidings": 1, **document}, name), run=run
    )


def exponential(mean: float | str) -> Document:
    """The document of an exponential law."""
    return {"exponential": mean}


def weibull(mean: float | str, shape: float = 0.4) -> Document:
    """The document of a Weibull law, heavy unless told otherwise."""
    return {"weibull": {"mean": mean, "shape": shape}}


def hyperexponential(mean: float, scv: float) -> Any:
    """The document of a hyperexponential law with balanced means."""
    return law_document(bursty(scv).scaled(mean))


def line(
    brokers: Sequence[Document],
    every: Any,
    lifetimes: Sequence[Any] | Any,
    *,
    link: Document | None = None,
    **of_system: Any,
) -> Document:
    """Brokers in a row, one publisher at the first, at each a subscriber with its lifetime."""
    names = [f"b{number}" for number in range(len(brokers))]
    each = lifetimes if isinstance(lifetimes, list) else [lifetimes] * len(names)
    return {
        "brokers": dict(zip(names, brokers, strict=True)),
        "links": [{"between": list(ends), **(link or {})} for ends in pairwise(names)],
        "publishers": {"p": {"at": "b0", "every": every, "content": EVENT}},
        "subscribers": {
            f"s{number}": {"at": at, "wants": {}, "lifetime": lifetime}
            for number, (at, lifetime) in enumerate(zip(names, each, strict=True))
        },
        **of_system,
    }


def single(every: Any, service: Any, lifetime: Any) -> Document:
    """One broker, one publisher, one subscriber."""
    return line([{"service": service}], every, lifetime)
