"""The cheapest mix of speeds of brokers with which everybody gets what they should.

Overloaded brokers are relieved first. Then that broker is made faster, a step at a time, which for
its cost takes most off what subscribers miss of their targets; tried are the few at which waiting
and service cost them most. At last each is made slower again, as far as the others allow. The same
is done from one factor for all, and the cheaper of both is the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model.json_text import plain
from tidings.model.outcome import Outcome
from tidings.model.progress import Progress
from tidings.model.shown import Shown
from tidings.model.system import System
from tidings.planning.capacity import FASTEST, faster, narrowed
from tidings.planning.changes import changed, in_quotes
from tidings.planning.evidence import MEETS, Evidence, Play, standing, weigh
from tidings.planning.scenarios import foretell
from tidings.planning.targets import Target
from tidings.prediction.predict import PredictOptions, predict

RELIEVED = 0.9  # load of an overloaded broker from which steps begin
STEP = 1.25  # by which factor a broker is made faster at once
CANDIDATES = 4  # brokers that are tried at each step
MOST_STEPS = 60
CLOSE = 0.03  # relative: how near each speed is to the least that will do
SAFER = (0.02, 0.05, 0.1, 0.2, 0.4)  # parts by which added speed grows until it is proven

_WITH_CAUSES = PredictOptions(by="theory", delays=False, error_bars=False, causes=True)

Sizes = dict[str, float]  # how many times as fast each broker is


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Mix(Shown):
    """How fast each broker must be, what that costs, and what one factor for all would cost."""

    _table = "mix"
    _columns = ("broker", "size", "cost", "load", "load_after")

    brokers: Sequence[Mapping[str, Any]]  # those that must be faster, the dearest first
    cost: float  # of all speed that is added, in speeds of a broker of cost 1
    alike: float | None  # one factor for all that will do, too; None where none does
    alike_cost: float | None
    evidence: Evidence
    plan: System

    @property
    def verdict(self) -> str:
        """Whether the mix meets the target."""
        return self.evidence.verdict

    def to_document(self) -> dict[str, Any]:
        """The answer as plain data for JSON."""
        return dict(
            plain(
                {
                    "what": "mix",
                    "mix": list(self.brokers),
                    "cost": self.cost,
                    "alike": self.alike,
                    "alike_cost": self.alike_cost,
                    **self.evidence.to_document(),
                }
            )
        )


def cheapest_mix(
    system: System,
    target: Target,
    costs: Mapping[str, float] | None = None,
    *,
    play: Play | None = None,
    progress: Progress = lambda _: None,
) -> Mix:
    """Find how fast each broker must be so that the target is met and added speed costs least.

    ``costs`` are of a broker's present speed once more; those that are not named cost 1.
    """
    search = _Search(system, target, _costs(system, costs or {}), progress)
    start = dict.fromkeys(search.costs, 1.0)
    alike = search.alike()
    mixes = [start] if alike == 1.0 else search.ways(alike)
    # Where nothing that was tried is predicted to do, the evidence says by how much.
    cheapest = min(mixes, key=search.cost, default=dict.fromkeys(start, FASTEST))
    sizes, evidence = search.proven(cheapest, play)
    return Mix(
        brokers=search.rows(sizes),
        cost=search.cost(sizes),
        alike=alike,
        alike_cost=None if alike is None else search.cost(dict.fromkeys(start, alike)),
        evidence=evidence,
        plan=search.built(sizes),
    )


def _costs(system: System, costs: Mapping[str, float]) -> dict[str, float]:
    names = [each.name for each in system.brokers]
    for name, cost in costs.items():
        if name not in names:
            raise InvalidInputError(f"there is no broker '{name}' to cost {cost:g}")
        if not 0.0 < cost < float("inf"):
            raise InvalidInputError(f"'{name}' costs {cost:g}; wants a number above 0")
    return {name: float(costs.get(name, 1.0)) for name in names if _takes_time(system, name)}


def _takes_time(system: System, broker: str) -> bool:
    try:
        faster(system, broker, STEP)
    except InvalidInputError:  # it does nothing that could be faster
        return False
    return True


class _Search:
    """Mixes of speeds of one system, tried by theory."""

    def __init__(
        self, system: System, target: Target, costs: dict[str, float], progress: Progress
    ) -> None:
        self.system, self.target, self.costs = system, target, costs
        self.progress = progress
        self.wanted = target.wanted(system)
        self.tried = 0

    def built(self, sizes: Sizes) -> System:
        """The system with brokers so many times as fast."""
        return changed(
            self.system,
            [f"speed {in_quotes(name)} x{size!r}" for name, size in sizes.items() if size != 1.0],
        )

    def cost(self, sizes: Sizes) -> float:
        """What the speed that is added costs."""
        return sum(self.costs[name] * (size - 1.0) for name, size in sizes.items())

    def outcome(self, sizes: Sizes) -> Outcome:
        """What is predicted of a mix."""
        self.tried += 1
        self.progress(f"mix {self.tried}, added speed {self.cost(sizes):.3g}")
        return foretell(self.built(sizes))

    def meets(self, sizes: Sizes) -> bool:
        """Whether a mix is predicted to meet the target."""
        return self._meets(self.outcome(sizes))

    def _meets(self, outcome: Outcome) -> bool:
        return standing(self.system, self.target, outcome).meets

    def alike(self) -> float | None:
        """Find the least factor for all brokers that meets the target; None where none does."""

        def enough(factor: float) -> bool:
            return self.meets(dict.fromkeys(self.costs, factor))

        if enough(1.0):
            return 1.0
        return narrowed(enough, 1.0, FASTEST, close=CLOSE) if enough(FASTEST) else None

    def ways(self, alike: float | None) -> list[Sizes]:
        """Find mixes that meet the target, each broker as slow as the others allow."""
        starts = [self.by_steps(), alike and dict.fromkeys(self.costs, alike)]
        return [self.trimmed(each) for each in starts if each]

    def by_steps(self) -> Sizes | None:
        """Make the broker faster that helps most for its cost, again and again until it will do."""
        sizes = self._relieved()
        outcome = self.outcome(sizes)
        for _ in range(MOST_STEPS):
            if self._meets(outcome):
                return sizes
            steps = [{**sizes, name: sizes[name] * STEP} for name in self._promising(sizes)]
            outcomes = [self.outcome(each) for each in steps]
            gains = [
                (self._missed(outcome) - self._missed(after)) / (self.cost(each) - self.cost(sizes))
                for each, after in zip(steps, outcomes, strict=True)
            ]
            if not gains or max(gains) <= 0.0:
                return None
            best = int(np.argmax(gains))
            sizes, outcome = steps[best], outcomes[best]
        return None

    def _relieved(self) -> Sizes:
        rows = self.outcome(dict.fromkeys(self.costs, 1.0)).brokers
        loads = dict(zip(rows["broker"], _loads(rows), strict=True))
        return {
            name: loads[name] / RELIEVED if loads.get(name, 0.0) >= 1.0 else 1.0
            for name in self.costs
        }

    def _missed(self, outcome: Outcome) -> float:
        """What subscribers miss of their targets, added up over heads."""
        rows = outcome.subscribers
        short = np.nan_to_num(np.maximum(self.wanted - rows["on_time"].to_numpy(), 0.0))
        return float((short * rows["count"].to_numpy()).sum())

    def _promising(self, sizes: Sizes) -> list[str]:
        """Find the brokers that cost those most who miss their target, for what speed costs."""
        try:
            outcome = predict(self.built(sizes), _WITH_CAUSES)
        except UnsupportedError:
            return []
        rows = outcome.subscribers
        missing = set(rows["subscriber"][rows["on_time"].to_numpy() < self.wanted])
        causes = outcome.causes
        own = causes["cause"].isin(["waiting", "service"]) & causes["subscriber"].isin(missing)
        worth = causes[own].groupby("place")["cost"].sum()
        by_cost = {
            name: cost / (self.costs[name] * sizes[name])
            for name, cost in worth.items()
            if name in sizes and sizes[name] * STEP <= FASTEST
        }
        return sorted(by_cost, key=lambda name: -round(by_cost[name], 12))[:CANDIDATES]

    def trimmed(self, sizes: Sizes) -> Sizes:
        """Make each broker as slow as the others allow, the one that saves most first."""
        start = dict(sizes)
        for name in sorted(start, key=lambda each: -self.costs[each] * (start[each] - 1.0)):
            if start[name] > 1.0:
                sizes = {**sizes, name: self._least(sizes, name)}
        return sizes

    def _least(self, sizes: Sizes, name: str) -> float:
        """Find how slow one broker may be while the others are as they are."""

        def enough(size: float) -> bool:
            return self.meets({**sizes, name: size})

        return 1.0 if enough(1.0) else narrowed(enough, 1.0, sizes[name], close=CLOSE)

    def proven(self, sizes: Sizes, play: Play | None) -> tuple[Sizes, Evidence]:
        """Add speed where it is added until the evidence says enough, or no more is tried."""
        safer, evidence = sizes, weigh(self.built(sizes), self.target, play)
        for part in SAFER:
            grown = {
                name: min(1.0 + (size - 1.0) * (1.0 + part), FASTEST)
                for name, size in sizes.items()
            }
            if evidence.verdict == MEETS or grown == safer:
                break
            self.progress(f"proving a mix with added speed {self.cost(grown):.3g}")
            safer, evidence = grown, weigh(self.built(grown), self.target, play)
        return safer, evidence

    def rows(self, sizes: Sizes) -> list[dict[str, Any]]:
        """List the brokers that must be faster: by how much, at which cost, how busy then."""
        before, after = (
            dict(zip(each["broker"], _loads(each), strict=True))
            for each in (
                self.outcome(dict.fromkeys(sizes, 1.0)).brokers,
                self.outcome(sizes).brokers,
            )
        )
        rows = [
            {
                "broker": name,
                "size": size,
                "cost": self.costs[name] * (size - 1.0),
                "load": before.get(name, 0.0),
                "load_after": after.get(name, 0.0),
            }
            for name, size in sizes.items()
            if size > 1.0
        ]
        return sorted(rows, key=lambda row: -round(row["cost"], 9))


def _loads(brokers: pd.DataFrame) -> list[float]:
    return [float(load) for load in brokers["arrivals_per_s"] * brokers["service_mean_s"]]
