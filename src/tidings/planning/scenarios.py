"""What if: a system before and after changes, side by side.

``assess`` answers for one scenario with plain rows, so that many can be asked one by one or all at
once on a cluster, with the same numbers.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from tidings.errors import InvalidInputError, TidingsError
from tidings.model import yaml_text
from tidings.model.json_text import plain
from tidings.model.named_files import folders_of
from tidings.model.outcome import CAUSES, LOSSES, Outcome
from tidings.model.shown import Shown
from tidings.model.system import System
from tidings.planning.changes import changed
from tidings.planning.evidence import foretell

REASONS = ("late", *LOSSES)  # what an event that is not on time may be
SHOWN = ("on_time", "error", *REASONS, "delay_mean_s")


Engine = Callable[[System], Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Changes that are made together, what they are called, and where files they name may lie.

    ``below`` are the folders of :func:`tidings.planning.changes.changed`.
    """

    name: str
    changes: tuple[str, ...]
    below: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Difference(Shown):
    """A system before and after the changes of a scenario, by the same engine."""

    _table = "subscribers"
    _columns = ("subscriber", "change", "broker", "on_time_before", "on_time_after", "why")

    scenario: Scenario
    before: Outcome
    after: Outcome

    def headline(self) -> str:
        """Say what changes make of the on-time share of all events, in percent."""
        before, after = (100 * each.on_time for each in (self.before, self.after))
        return f"{self.scenario.name}: {before:.1f} % on time before, {after:.1f} % after"

    def subscribers(self) -> pd.DataFrame:
        """Make a row for each subscriber: shares before and after, and why those that changed did.

        Who is only there before or only after has no share on the other side.
        """
        both = [each.subscribers.set_index("subscriber") for each in (self.before, self.after)]
        order = list(dict.fromkeys([*both[0].index, *both[1].index]))
        old, new = (each.reindex(order) for each in both)
        rows = {
            "subscriber": order,
            "broker": new["broker"].where(new["broker"].notna(), old["broker"]).to_numpy(),
            "count": new["count"].where(new["count"].notna(), old["count"]).to_numpy(),
        }
        for name in ("by", *SHOWN):
            rows[f"{name}_before"] = old[name].to_numpy()
            rows[f"{name}_after"] = new[name].to_numpy()
        table = pd.DataFrame(rows)
        table.insert(3, "change", table["on_time_after"] - table["on_time_before"])
        changes = {name: table[f"{name}_after"] - table[f"{name}_before"] for name in REASONS}
        table.insert(4, "why", [_why(row) for row in pd.DataFrame(changes).to_dict("records")])
        return table

    def total(self) -> dict[str, dict[str, float]]:
        """Sum over everything wanted by anybody: on-time share, lateness and losses by cause."""
        return {"before": _total(self.before), "after": _total(self.after)}

    def to_document(self) -> dict[str, Any]:
        """Give the comparison as plain data for JSON."""
        document = {
            "scenario": self.scenario.name,
            "changes": list(self.scenario.changes),
            "source": self.after.source,
            "total": self.total(),
            "subscribers": self.subscribers().to_dict("records"),
            "brokers": {
                when: each.brokers[["broker", "utilisation", "wait_mean_s"]].to_dict("records")
                for when, each in (("before", self.before), ("after", self.after))
            },
        }
        return dict(plain(document))


def difference(
    system: System, scenario: Scenario, engine: Engine, before: Outcome | None = None
) -> Difference:
    """Compute what a scenario changes, by an engine such as :func:`foretell`."""
    after = engine(changed(system, scenario.changes, scenario.below))
    return Difference(scenario=scenario, before=before or engine(system), after=after)


def assess(system: System, scenario: Scenario, before: Outcome) -> dict[str, Any]:
    """Make one row for a scenario, and within it one for each subscriber; or say why there is none.

    A scenario that cannot be (a name that is not there, a system that falls apart, a combination
    that is not predicted) spoils nothing else: its row has an ``error`` and no numbers.
    """
    row: dict[str, Any] = {"scenario": scenario.name, "error": None, "subscribers": []}
    try:
        compared = difference(system, scenario, foretell, before)
    except TidingsError as error:
        numbers = ("on_time", "change", "worst_on_time", "most_loss", "utilisation")
        return {**row, "error": str(error), **dict.fromkeys(numbers, math.nan), **_NOBODY}
    table = compared.subscribers()
    worst, loser = (_least(table, name) for name in ("on_time_after", "change"))
    busiest = _greatest(compared.after.brokers, "utilisation")
    return {
        **row,
        "on_time": compared.after.on_time,
        "change": compared.after.on_time - before.on_time,
        "worst": worst.get("subscriber", ""),
        "worst_on_time": worst.get("on_time_after", math.nan),
        "loser": loser.get("subscriber", ""),
        "most_loss": loser.get("change", math.nan),
        "bottleneck": busiest.get("broker", ""),
        "utilisation": busiest.get("utilisation", math.nan),
        "subscribers": compared.after.subscribers[list(SUBSCRIBER_FIELDS)].to_dict("records"),
    }


SUBSCRIBER_FIELDS = ("subscriber", "broker", "count", "wanted_per_s", "by", *SHOWN)
_NOBODY = {"worst": "", "loser": "", "bottleneck": ""}


def read_scenarios(path: str | os.PathLike[str]) -> tuple[Scenario, ...]:
    """Read scenarios from a YAML or JSON file: ``name: [change, change]`` or ``name: change``.

    Files that they name must lie below the folder of that file, as with a system file.
    """
    place, below = yaml_text.read(Path(path)), folders_of(Path(path).parent)
    parts = place.mapping(want="scenarios by name: {rush hour: [rate all x2]}")
    scenarios = []
    for name, part in parts.items():
        value = part.value
        texts = [part.text("a change")] if isinstance(value, str) else []
        if not isinstance(value, str):
            texts = [each.text("a change") for each in part.items("a change, or a list of them")]
            if isinstance(value, list) and not value:
                part.report("at least one change")
        changes = tuple(text for text in texts if text)
        scenarios.append(Scenario(name=name, changes=changes, below=below))
    if place.problems or not scenarios:
        raise InvalidInputError(f"{path}: invalid scenarios", place.problems)
    return tuple(scenarios)


def _total(outcome: Outcome) -> dict[str, float]:
    rows = outcome.subscribers[outcome.subscribers["on_time"].notna()]
    weight = rows["wanted_per_s"] * rows["count"]
    whole = float(weight.sum())
    return {
        name: float((rows[name] * weight).sum()) / whole if whole > 0 else math.nan
        for name in ("on_time", *REASONS)
    }


def _why(changes: Mapping[str, float]) -> str:
    """Name the reason whose share changed most, as a phrase with its sign; empty for no change."""
    reason, change = max(changes.items(), key=lambda each: (abs(each[1]), each[0]))
    if math.isnan(change) or abs(change) < 5e-7:
        return ""
    said = "late" if reason == "late" else CAUSES[reason.removeprefix("lost_")]
    return f"{'more' if change > 0 else 'fewer'} {said}"


def _least(table: pd.DataFrame, column: str) -> dict[str, Any]:
    known = table[table[column].notna()]
    return {} if known.empty else known.loc[known[column].round(9).idxmin()].to_dict()


def _greatest(table: pd.DataFrame, column: str) -> dict[str, Any]:
    known = table[table[column].notna()]
    return {} if known.empty else known.loc[known[column].round(9).idxmax()].to_dict()


def unique_names(scenarios: Sequence[Scenario]) -> None:
    """Refuse scenarios of the same name, whose results could not be told apart."""
    seen: set[str] = set()
    for each in scenarios:
        if each.name in seen:
            raise InvalidInputError(
                f"two scenarios are named '{each.name}'; give each its own name"
            )
        seen.add(each.name)
