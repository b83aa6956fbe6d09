"""Real times connected and away: their laws, and what taking them as exponential is worth.

The paper fits exponential laws to what metro travellers recorded and puts their means into
Theorem 2. Here all laws are fitted, and the response of one ON/OFF centre is worked out under the
exponential, the likeliest and the measured law, all of the same means.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from studies.durations import AS_MEASURED
from studies.mobile_onoff.centre import OnOff, mean_response_s
from studies.mobile_onoff.simulating import Effort, respond_at_centre
from tidings.characterisation.fit.duration_laws import FAMILIES, Fitted, fit, in_seconds, likeliest
from tidings.characterisation.fit.durations import Durations, Measured, measure
from tidings.errors import InvalidInputError
from tidings.model.laws import Exponential, Law
from tidings.model.laws.writing import law_document

STATES = {"connected": True, "away": False}
LEAST_PERIODS = 20  # whole ones of each state; a law from fewer means nothing
LOADS = (0.25, 0.5, 0.8)
SERVICE_S = 0.0625


@dataclass(frozen=True, slots=True, kw_only=True)
class PathFindings:
    """One path (or kind of journey): how its times are spread, by 'connected' and 'away'."""

    path: str
    measured: Mapping[str, Measured]
    fits: Mapping[str, tuple[Fitted, ...]]

    @property
    def laws(self) -> Mapping[str, tuple[Law, Law]]:
        """ON and OFF by three descriptions with the same means."""
        on, off = (self.measured[state] for state in STATES)
        best = [likeliest(self.fits[state]).law for state in STATES]
        return {
            "exponential": (Exponential(mean_s=on.mean_s), Exponential(mean_s=off.mean_s)),
            "likeliest": (best[0], best[1]),
            AS_MEASURED: (on.law(), off.law()),
        }


def examine(periods: Mapping[str, Mapping[bool, Durations]], where: str) -> list[PathFindings]:
    """Fit all laws to every path with enough periods; ``where`` names the traces in errors."""
    enough = {
        path: {state: seen[key] for state, key in STATES.items()}
        for path, seen in periods.items()
        if all(key in seen and seen[key].whole >= LEAST_PERIODS for key in STATES.values())
    }
    if not enough:
        raise InvalidInputError(
            f"{where}: on no path {LEAST_PERIODS} or more whole times both connected and away "
            f"(paths: {', '.join(periods) or 'none'}); record for longer, put paths together, or "
            "say with another threshold what disconnected means"
        )
    return [
        PathFindings(
            path=path,
            measured={state: measure(each) for state, each in seen.items()},
            fits={
                state: tuple(fit(name, each, in_seconds) for name in FAMILIES)
                for state, each in seen.items()
            },
        )
        for path, seen in enough.items()
    ]


def law_table(findings: Sequence[PathFindings]) -> pd.DataFrame:
    """Every law that was fitted; ``law`` is the one that keeps the measured mean, as in a system.

    Its text is that of a law in a system file, in JSON.
    """
    return pd.DataFrame(
        [
            {
                "path": found.path,
                "state": state,
                "family": each.family,
                "parameters": each.parameters,
                "aic": each.aic,
                "distance": each.distance,
                "law": json.dumps(law_document(each.law)),
                "law_distance": each.kept_distance,
                "whole": found.measured[state].whole,
                "cut_off": found.measured[state].cut_off,
                "mean_s": found.measured[state].mean_s,
                "scv": found.measured[state].scv,
            }
            for found in findings
            for state, fits in found.fits.items()
            for each in fits
        ]
    )


def response_table(findings: Sequence[PathFindings], effort: Effort) -> pd.DataFrame:
    """Compute the mean response of one centre by the law of its periods, at several loads.

    Simulated is the measured law.
    """
    return pd.DataFrame([_response(each, load, effort) for each in findings for load in LOADS])


def _response(findings: PathFindings, load: float, effort: Effort) -> dict[str, object]:
    row: dict[str, object] = {"path": findings.path, "load": load}
    for name, (on, off) in findings.laws.items():
        centre = OnOff(service=Exponential(mean_s=SERVICE_S), on=on, off=off)
        rate_per_s = load * centre.most_per_s
        row |= {"rate_per_s": rate_per_s, name: mean_response_s(centre, rate_per_s)}
    return row | respond_at_centre(centre, rate_per_s, effort).columns
