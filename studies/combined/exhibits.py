"""All effects at once, as a study: the table of combinations and everybody's shares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from studies.combined.experiment import Results
from studies.combined.systems import BROKERS, LOAD, PUBLISHERS, SUBSCRIBERS
from tidings.model.study import Finding, Grid, Scatter, Section, Study

WANTED = 0.02  # mean absolute error with everything on
SETTINGS = {
    "brokers, publishers, subscribers": f"{BROKERS}, {PUBLISHERS}, {SUBSCRIBERS}",
    "busiest broker": f"{LOAD:g} busy; services exponential, uniform, Erlang and constant",
    "links": "exponential delays of 50 to 300 ms, 0.5 to 3 % lost",
    "failures": "brokers up .94 to .97 of the time, a third of the links .97",
    "mobile peers": "half of the publishers, a third of the subscribers, ON .56 to .69",
    "churn": "half of the subscribers, also mobile ones, stay 20 to 60 s and are away a minute",
    "lifetimes": "4 s for urgent events, exponential with mean 20 s for others",
}
CHOICES = (
    "No paper has all effects; the system is random by its seed, every effect strong enough to be "
    "seen. Every fifth subscriber is at the broker of the one publisher it follows, the others "
    "anywhere.",
    "Pairs are the same system with all other effects switched off: without filters everybody "
    "wants everything, without varying lifetimes all events are of use as long as urgent ones.",
)


def study(results: Results) -> Study:
    """The experiment, to be shown."""
    plan = results.plan
    table = results.table()
    return Study(
        paper="combined",
        title="All effects at once, and which of them interact",
        summary=f"{len(table)} combinations of effects on a system of {BROKERS} brokers, predicted "
        f"and simulated ({plan.replications} replications).",
        settings=SETTINGS,
        choices=CHOICES,
        findings=tuple(_findings(table)),
        sections=(_all(results), _pairs(table)),
        tables={"combinations": table, "points": results.points()},
        plan=plan.to_document(),
    )


def _findings(table: pd.DataFrame) -> Iterator[Finding]:
    whole = table[table["effects"].str.startswith("all") & (table["refused"] == "")]
    for row in whole.to_dict("records"):
        yield Finding(
            section="composition",
            says=f"predicted shares are off by {WANTED:g} at most, on average",
            case=str(row["effects"]),
            found=f"{row['mean_absolute']:.4f} (noise {row['noise']:.4f})",
            holds=bool(row["mean_absolute"] <= WANTED),
        )


def _all(results: Results) -> Section:
    points = results.points()
    pairs = zip(points["predicted"], points["simulated"], strict=True)
    cloud = tuple((float(a), float(b)) for a, b in pairs)
    effects = ", ".join(results.everything.effects)
    return Section(
        title="Everything on",
        words=f"On-time share of every subscriber with {effects}.",
        exhibits=(Scatter(title="predicted against simulated", clouds={"seed": cloud}),),
    )


def _pairs(table: pd.DataFrame) -> Section:
    columns = (
        "effects", "on time", "from", "to", "mean error", "largest", "bias", "noise", "product off",
    )  # fmt: skip
    rows = tuple(_texts(row) for row in table.to_dict("records"))
    refused = [
        f"{row['effects']}: {row['refused']}" for row in table.to_dict("records") if row["refused"]
    ]
    return Section(
        title="Which effects interact",
        words="Mean error: of predicted shares against simulated ones, over subscribers. Noise: "
        "mean standard error of a simulated share. Product off: how far the product of the shares "
        "with one effect each is from the truth, which is how much the effects interact. "
        + ("Refused: " + "; ".join(refused) if refused else ""),
        exhibits=(Grid(title="Combinations", columns=columns, rows=rows),),
    )


def _texts(row: dict[str, Any]) -> tuple[str, ...]:
    if row["refused"]:
        return (str(row["effects"]), "refused", *[""] * 7)
    numbers = [f"{row[name]:.3f}" for name in ("on_time", "least", "most")]
    errors = [f"{row[name]:.4f}" for name in ("mean_absolute", "maximum", "bias", "noise")]
    off = row.get("product_off")
    return (
        str(row["effects"]),
        *numbers,
        *errors,
        "" if off is None or pd.isna(off) else f"{off:.4f}",
    )
