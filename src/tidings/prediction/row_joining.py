"""Two outcomes of one system made one: some rows of the one, the others of the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tidings.model.arrays import Bools
from tidings.model.outcome import Outcome, table


def joined(theory: Outcome, simulated: Outcome, chosen: Bools, **story: Any) -> Outcome:
    """Join a theoretical and a simulated outcome row by row; ``chosen`` rows are simulated.

    A row is of one engine in all its columns but two: how much is wanted is known without chance
    where theory knows it, and the standard error of parameters goes into that of a simulated row.
    Brokers and links are simulated where any row is.
    """
    if not chosen.any():
        return replace(theory, provenance={**theory.provenance, **story})
    names = set(simulated.subscribers["subscriber"][chosen])
    own, other = theory.subscribers, _with_parameters(theory, simulated)
    columns = {name: np.where(chosen, other[name], own[name]) for name in own}
    columns["wanted_per_s"] = own["wanted_per_s"].to_numpy()
    return Outcome(
        source="predicted",
        subscribers=table("subscribers", columns),
        pairs=_mixed(theory.pairs, simulated.pairs, names) if len(theory.pairs) else theory.pairs,
        brokers=simulated.brokers,
        links=simulated.links,
        delays=_mixed(theory.delays, simulated.delays, names),
        causes=theory.causes,
        provenance={**_story(theory, simulated, bool(chosen.all())), **story},
        remarks=tuple(dict.fromkeys((*theory.remarks, *simulated.remarks))),
    )


def _with_parameters(theory: Outcome, simulated: Outcome) -> pd.DataFrame:
    """Give the simulated rows; their standard errors hold what theory makes of parameters'."""
    rows = simulated.subscribers.copy()
    rows["on_time_se"] = np.hypot(
        rows["on_time_se"], np.nan_to_num(theory.subscribers["on_time_se"], posinf=1.0)
    )
    return rows


def _mixed(theory: pd.DataFrame, simulated: pd.DataFrame, names: set[str]) -> pd.DataFrame:
    """Take the rows of the subscribers named from the simulation, in the order of theory."""
    order = pd.concat([theory["subscriber"], simulated["subscriber"]]).drop_duplicates()
    rank = pd.Series(np.arange(len(order)), index=order)
    parts = [
        theory[~theory["subscriber"].isin(names)],
        simulated[simulated["subscriber"].isin(names)],
    ]
    both = pd.concat([each for each in parts if len(each)] or parts[:1], ignore_index=True)
    ranked = both["subscriber"].map(rank).sort_values(kind="stable").index
    return both.loc[ranked].reset_index(drop=True)


def _story(theory: Outcome, simulated: Outcome, alone: bool) -> Mapping[str, Any]:
    """Say how both came about; what theory assumes is of no account where no row is its own."""
    own, other = dict(theory.provenance), dict(simulated.provenance)
    warnings = [] if alone else list(own.get("warnings", ()))
    if alone:
        own.pop("approximations", None)
    kept = ("seed", "replications", "warmup_s", "duration_s", "events_published", "messages")
    return {
        **own,
        "engine": "simulation" if alone else "theory and simulation",
        "simulation": {name: other[name] for name in (*kept, "cpu_s") if name in other},
        "brokers_by": "simulation",
        "warnings": list(dict.fromkeys([*warnings, *other.get("warnings", ())])),
    }
