"""How well effects compose: each alone, every pair of them, and all at once.

Predicted against simulated, subscriber by subscriber. Beside it stands what multiplying the shares
of the single effects would give: how far that is off shows how much a pair interacts.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from studies.combined.systems import BROKERS, PARTS, everything, only
from studies.harness import Experiment, Texts, line
from studies.settings.combined import Settings
from tidings.errors import UnsupportedError
from tidings.model.arrays import Floats
from tidings.model.outcome import Outcome
from tidings.model.progress import Progress
from tidings.model.study import Scatter, Study
from tidings.model.system import System
from tidings.planning.evidence import foretell
from tidings.simulation.options import SimulationOptions
from tidings.simulation.run import simulate

WANTED = 0.02  # mean absolute error with everything on
TEXTS = Texts("combined")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One system: some effects on, its shares predicted and simulated, or why it has none."""

    effects: tuple[str, ...]
    predicted: Outcome | None = None
    simulated: Outcome | None = None
    refused: str = ""

    @property
    def name(self) -> str:
        """The effects, or those that are missing."""
        missing = [name for name in PARTS if name not in self.effects]
        if len(self.effects) <= 2:
            return " + ".join(self.effects)
        return "all but " + ", ".join(missing) if missing else "all"


def simulate_all(settings: Settings, progress: Progress) -> tuple[Case, ...]:
    """Predict and simulate every combination of effects."""
    whole = everything(settings.seed, scheme=settings.scheme)
    combinations = [tuple(PARTS)]
    if settings.pairs:
        few = (itertools.combinations(PARTS, number) for number in (1, 2))
        combinations = [*itertools.chain(*few), *combinations]
    cases = []
    for place, effects in enumerate(combinations, start=1):
        name = f"{Case(effects=effects).name} ({place} of {len(combinations)})"
        tell = partial(lambda name, step: progress(f"{name}, {step}"), name)
        cases.append(_case(settings, only(whole, effects), effects, tell))
    return tuple(cases)


def _case(settings: Settings, system: System, effects: tuple[str, ...], progress: Progress) -> Case:
    length = SimulationOptions(
        seed=settings.seed,
        events=settings.events if len(effects) <= 2 else settings.events_of_all,
        replications=settings.replications,
    )
    try:
        progress("predicting")
        predicted = foretell(system)
        simulated = simulate(system, length, progress=progress)
    except UnsupportedError as error:
        return Case(effects=effects, refused=str(error).splitlines()[0])
    return Case(effects=effects, predicted=predicted, simulated=simulated)


def table(cases: Sequence[Case]) -> pd.DataFrame:
    """Tabulate shares, errors of the prediction and of the product of singles, a row a case."""
    alone = {
        case.effects[0]: _shares(case.simulated)
        for case in cases
        if len(case.effects) == 1 and case.simulated is not None
    }
    return pd.DataFrame([_row(case, alone) for case in cases])


def _row(case: Case, alone: Mapping[str, Floats]) -> dict[str, Any]:
    row: dict[str, Any] = {"effects": case.name, "refused": case.refused}
    if case.predicted is None or case.simulated is None:
        return row
    truth = _shares(case.simulated)
    error = _shares(case.predicted) - truth
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
    if len(case.effects) > 1 and alone.keys() >= set(case.effects):
        product = np.prod([alone[effect] for effect in case.effects], axis=0)
        row["product_off"] = float(np.abs(product - truth).mean())
    return row


def _shares(outcome: Outcome) -> Floats:
    shares: Floats = outcome.subscribers["on_time"].to_numpy()
    return shares


def points(case: Case) -> pd.DataFrame:
    """List every subscriber of a case with its predicted and simulated on-time shares."""
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


def run(settings: Settings, progress: Progress) -> Study:
    """Run every combination, and say how well effects compose."""
    return study(settings, simulate_all(settings, progress))


def study(settings: Settings, cases: Sequence[Case]) -> Study:
    """Show the cases: everything on, and which effects interact."""
    rows = table(cases)
    done = [case for case in cases if not case.refused]
    most = max(reversed(done), key=lambda case: len(case.effects))
    of_all = points(most)
    whole = rows[rows["effects"].str.startswith("all") & (rows["refused"] == "")]
    cloud = line(of_all["predicted"], of_all["simulated"])
    scatter = Scatter(title="predicted against simulated", clouds={"seed": cloud})
    shown = rows.assign(product_off=rows.get("product_off", np.nan))
    shown["share"] = shown["on_time"].map("{:.3f}".format).where(rows["refused"] == "", "refused")
    refused = "; ".join(f"{case.name}: {case.refused}" for case in cases if case.refused)
    refused = f"Refused: {refused}" if refused else ""
    return TEXTS.study(
        summary=f"{len(rows)} combinations of effects on a system of {BROKERS} brokers, predicted "
        f"and simulated ({settings.replications} replications).",
        findings=(
            TEXTS.claim("composition", bool(row["mean_absolute"] <= WANTED), **row)
            for row in whole.to_dict("records")
        ),
        sections=(
            TEXTS.section("all", scatter, effects=", ".join(most.effects)),
            TEXTS.section("pairs", TEXTS.grid("pairs", shown), refused=refused),
        ),
        tables={"combinations": rows, "points": of_all},
        plan=asdict(settings),
    )


EXPERIMENT = Experiment(texts=TEXTS, settings=Settings, run=run)
