"""Why events are not on time: which effect costs each subscriber how much, and what helps most.

One effect is switched off at a time and the system predicted again: what is gained is what the
effect costs, given all the others. Effects overlap (an event that is lost twice is lost once), so
costs need not sum to what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tidings.errors import UnsupportedError
from tidings.model.json_text import plain
from tidings.model.outcome import Outcome, by_share
from tidings.model.progress import Progress
from tidings.model.system import SCHEMES, System
from tidings.planning.changes import changed
from tidings.planning.effects import EFFECTS, effects_of
from tidings.planning.scenarios import foretell

MATTERS = 1e-3  # of all events: an effect that costs less gets no remedies tried
MOST_REMEDIES = 30  # that are tried, the most promising of each kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A single change, and the on-time share of all events after it."""

    change: str
    on_time: float
    gain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What every effect costs everybody, the bottleneck, and single changes by what they give."""

    outcome: Outcome
    costs: dict[str, pd.DataFrame]  # by effect: share and delay_s gained without it, by subscriber
    totals: dict[str, float]  # by effect: on-time share of all events gained without it
    refused: dict[str, str]  # effects that could not be switched off, and why
    untried: dict[str, str]  # changes that are not predicted, and why
    remedies: tuple[Remedy, ...]  # best first

    @property
    def bottleneck(self) -> dict[str, Any]:
        """The busiest broker, its utilisation and its mean wait in seconds; empty where none is."""
        rows = self.outcome.brokers
        busy = rows[rows["utilisation"] > 0]
        if busy.empty:
            return {}
        busiest = busy.loc[busy["utilisation"].idxmax()]
        return {name: busiest[name] for name in ("broker", "utilisation", "wait_mean_s")}

    def subscribers(self, number: int | None = None) -> pd.DataFrame:
        """On-time share, delay, and what each effect costs, the worst subscribers first."""
        own = ["subscriber", "broker", "count", "on_time", "error", "by", "delay_mean_s"]
        table = self.outcome.subscribers[own].copy()
        for name, costs in self.costs.items():
            table[f"{name}: share"] = costs["share"].to_numpy()
            table[f"{name}: delay_s"] = costs["delay_s"].to_numpy()
        table = by_share(table).reset_index(drop=True)
        return table if number is None else table.head(number)

    def to_document(self, worst: int | None = None) -> dict[str, Any]:
        """The budget as plain data for JSON."""
        rows = []
        for row in self.subscribers(worst).to_dict("records"):
            costs = {
                name: {part: row.pop(f"{name}: {part}") for part in ("share", "delay_s")}
                for name in self.costs
            }
            rows.append({**row, "costs": costs})
        document = {
            "on_time": self.outcome.on_time,
            "effects": [
                {"effect": name, "meaning": EFFECTS[name].meaning, "share": share}
                for name, share in self.totals.items()
            ],
            "refused": self.refused,
            "untried": self.untried,
            "bottleneck": self.bottleneck,
            "remedies": [
                {"change": each.change, "on_time": each.on_time, "gain": each.gain}
                for each in self.remedies
            ],
            "subscribers": rows,
        }
        return dict(plain(document))


def draw_up(
    system: System, *, remedies: bool = True, progress: Progress = lambda _: None
) -> Budget:
    """The budget of a system by prediction; with ``remedies``, single changes are tried too."""
    progress("as it is")
    outcome = foretell(system)
    costs, totals, refused = {}, {}, {}
    for name, effect in effects_of(system).items():
        progress(f"without {name}")
        try:
            other = foretell(effect.without(system))
        except UnsupportedError as error:
            refused[name] = str(error)
            continue
        costs[name] = _gained(outcome, other)
        totals[name] = _events_gained(outcome, costs[name])
    tried, untried = _tried(system, outcome, totals, progress) if remedies else ((), {})
    return Budget(
        outcome=outcome,
        costs=costs,
        totals=totals,
        refused=refused,
        remedies=tried,
        untried=untried,
    )


def _gained(outcome: Outcome, other: Outcome) -> pd.DataFrame:
    with_it, without = outcome.subscribers, other.subscribers
    share = without["on_time"].to_numpy() - with_it["on_time"].to_numpy()
    delay_s = with_it["delay_mean_s"].to_numpy() - without["delay_mean_s"].to_numpy()
    return pd.DataFrame({"share": share, "delay_s": delay_s})


def _events_gained(outcome: Outcome, costs: pd.DataFrame) -> float:
    """Over all events, each subscriber weighted as it is: rates may be others without an effect."""
    rows = outcome.subscribers
    weight = (rows["wanted_per_s"] * rows["count"]).to_numpy()
    known = np.isfinite(costs["share"].to_numpy()) & (weight > 0)
    if not known.any():
        return float("nan")
    return float(np.average(costs["share"].to_numpy()[known], weights=weight[known]))


def _tried(
    system: System, outcome: Outcome, totals: dict[str, float], progress: Progress
) -> tuple[tuple[Remedy, ...], dict[str, str]]:
    """Changes by what they give, best first, and those that are not predicted, with the reason."""
    matter = {name for name, share in totals.items() if share >= MATTERS}
    remedies, untried = [], {}
    changes = list(dict.fromkeys(_promising(system, outcome, matter)))[:MOST_REMEDIES]
    for number, change in enumerate(changes, start=1):
        progress(f"{change}, {number} of {len(changes)} changes")
        try:
            after = foretell(changed(system, [change])).on_time
        except UnsupportedError as error:
            untried[change] = str(error)
            continue
        remedies.append(Remedy(change=change, on_time=after, gain=after - outcome.on_time))
    return tuple(sorted(remedies, key=lambda each: -each.gain)), untried


def _promising(system: System, outcome: Outcome, matter: set[str]) -> Iterator[str]:
    """Changes worth trying, of each kind those first where most passes that is slow or lost."""
    each_kind = []
    brokers = outcome.brokers.assign(
        spent=lambda rows: rows["arrivals_per_s"] * (rows["service_mean_s"] + rows["wait_mean_s"])
    ).nlargest(MOST_REMEDIES, "spent")
    if matter & {"queueing", "service"}:
        each_kind.append([f"speed '{name}' x2" for name in brokers["broker"][brokers["spent"] > 0]])
    if "link loss" in matter:
        each_kind.append([f"reliability '{name}' 1" for name in _links(system, outcome, "lost")])
    if "link delay" in matter:
        slow = _links(system, outcome, "delay_mean_s")
        each_kind.append([f"delay '{name}' x0.5" for name in slow])
    if "failures" in matter:
        each_kind.append([f"availability '{name}' 1" for name in _failing(system, outcome)])
        used = system.recovery.scheme if system.recovery else "none"
        each_kind.append([f"scheme {one}" for one in SCHEMES if one not in (used, "none")])
    if "mobility" in matter:
        mobile = [each for each in system.publishers if each.connectivity is not None]
        mobile.sort(key=lambda each: -each.rate_per_s)
        each_kind.append([f"off '{each.name}' x0.5" for each in mobile])
    for rank in range(MOST_REMEDIES):
        yield from (kind[rank] for kind in each_kind if rank < len(kind))


def _flow(outcome: Outcome) -> dict[str, float]:
    """Events per second through each broker and link, by name."""
    events_per_s = dict(
        zip(outcome.brokers["broker"], outcome.brokers["arrivals_per_s"], strict=True)
    )
    for row in outcome.links.to_dict("records"):
        name = "--".join(sorted((row["source"], row["target"])))
        events_per_s[name] = events_per_s.get(name, 0.0) + row["events_per_s"]
    return events_per_s


def _links(system: System, outcome: Outcome, column: str) -> list[str]:
    """Links by what they cost all events that cross them, dearest first; none that cost nothing."""
    cost: dict[str, float] = {}
    for row in outcome.links.to_dict("records"):
        name = "--".join(sorted((row["source"], row["target"])))
        cost[name] = cost.get(name, 0.0) + row["events_per_s"] * row[column]
    named = {"--".join(sorted(link.between)): link.name for link in system.links}
    return [named[key] for key in sorted(cost, key=lambda key: -cost[key]) if cost[key] > 0.0]


def _failing(system: System, outcome: Outcome) -> list[str]:
    flow = _flow(outcome)
    lost = {
        broker.name: flow[broker.name] * (1.0 - broker.failure.availability)
        for broker in system.brokers
        if broker.failure is not None
    }
    for link in system.links:
        if link.there.failure is not None:
            passing = flow["--".join(sorted(link.between))]
            lost[link.name] = passing * (1.0 - link.there.failure.availability)
    return sorted(lost, key=lambda name: -lost[name])
