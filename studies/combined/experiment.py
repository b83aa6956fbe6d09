"""How well effects compose: each alone, every pair of them, and all at once.

Predicted against simulated, subscriber by subscriber. Beside it stands what multiplying the shares
of the single effects would give: how far that is off shows how much a pair interacts.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from studies.combined.systems import PARTS, everything, only
from tidings.errors import UnsupportedError
from tidings.model.outcome import Outcome
from tidings.model.system import System
from tidings.planning.scenarios import foretell
from tidings.simulation.run import SimulationOptions, simulate

Progress = Callable[[str], None]
Shares = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is run, and how long."""

    seed: int = 1
    scheme: str = "periodic"
    events: int = 60_000  # published in each replication of one or two effects
    events_of_all: int = 300_000  # and of all at once
    replications: int = 10
    pairs: bool = True  # also each effect alone and every two of them

    def to_document(self) -> dict[str, Any]:
        """The plan as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One system: some effects on, its shares predicted and simulated, or why it has none."""

    effects: tuple[str, ...]
    predicted: Outcome | None = None
    simulated: Outcome | None = None
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """All cases, and what they say of each combination."""

    plan: Plan
    cases: tuple[Case, ...]

    @property
    def everything(self) -> Case:
        """The case with most effects that is not refused, the last of them."""
        done = [case for case in self.cases if not case.refused]
        return max(reversed(done), key=lambda case: len(case.effects))

    def table(self) -> pd.DataFrame:
        """A row for each case: shares, errors of the prediction and of the product of singles."""
        alone = {case.effects[0]: case for case in self.cases if len(case.effects) == 1}
        return pd.DataFrame([_row(case, alone) for case in self.cases])

    def points(self) -> pd.DataFrame:
        """Every subscriber with all effects on."""
        case = self.everything
        assert case.predicted is not None
        assert case.simulated is not None
        ours, theirs = case.predicted.subscribers, case.simulated.subscribers
        return pd.DataFrame(
            {
                "subscriber": ours["subscriber"],
                "predicted": ours["on_time"],
                "simulated": theirs["on_time"],
                "simulated_se": theirs["on_time_se"],
            }
        )


def reproduce(plan: Plan, progress: Progress = lambda _: None) -> Results:
    """Run every case."""
    whole = everything(plan.seed, scheme=plan.scheme)
    combinations = list(_combinations()) if plan.pairs else [tuple(PARTS)]
    cases = []
    for number, effects in enumerate(combinations, start=1):
        name = f"{_named(effects)} ({number} of {len(combinations)})"

        def tell(step: str, name: str = name) -> None:
            progress(f"{name}, {step}")

        cases.append(_case(plan, only(whole, effects), effects, tell))
    return Results(plan=plan, cases=tuple(cases))


def _combinations() -> Iterator[tuple[str, ...]]:
    for number in (1, 2):
        yield from itertools.combinations(PARTS, number)
    yield tuple(PARTS)


def _case(plan: Plan, system: System, effects: tuple[str, ...], progress: Progress) -> Case:
    options = SimulationOptions(
        seed=plan.seed,
        events=plan.events if len(effects) <= 2 else plan.events_of_all,
        replications=plan.replications,
    )
    try:
        progress("predicting")
        predicted = foretell(system)
        simulated = simulate(system, options, progress=progress)
    except UnsupportedError as error:
        return Case(effects=effects, refused=str(error).splitlines()[0])
    return Case(effects=effects, predicted=predicted, simulated=simulated)


def _row(case: Case, alone: dict[str, Case]) -> dict[str, Any]:
    row: dict[str, Any] = {"effects": _named(case.effects), "refused": case.refused}
    if case.predicted is None or case.simulated is None:
        return row
    ours, truth = _shares(case.predicted), _shares(case.simulated)
    error = ours - truth
    row |= {
        "on_time": float(truth.mean()),
        "least": float(truth.min()),
        "most": float(truth.max()),
        "mean_absolute": float(np.abs(error).mean()),
        "maximum": float(np.abs(error).max()),
        "bias": float(error.mean()),
        "noise": float(case.simulated.subscribers["on_time_se"].mean()),
        "busiest": float(case.predicted.brokers["utilisation"].max()),
    }
    singles = [alone[effect].simulated if effect in alone else None for effect in case.effects]
    if len(case.effects) > 1 and all(single is not None for single in singles):
        product = np.prod([_shares(single) for single in singles if single is not None], axis=0)
        row["product_off"] = float(np.abs(product - truth).mean())
    return row


def _named(effects: tuple[str, ...]) -> str:
    missing = [name for name in PARTS if name not in effects]
    if len(effects) <= 2:
        return " + ".join(effects)
    return "all but " + ", ".join(missing) if missing else "all"


def _shares(outcome: Outcome) -> Shares:
    found: Shares = outcome.subscribers["on_time"].to_numpy()
    return found
