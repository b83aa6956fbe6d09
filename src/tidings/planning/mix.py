"""The cheapest mix of speeds of brokers with which everybody gets what they should.

It begins with brokers that are all equally busy, or as busy as they are, or with one factor for
all, whichever costs less. Speed is then exchanged: less where it is dear for what it does, more
where it is cheap. At last each is made slower again, as far as the others allow. That is done as if
all speed cost the same, and from there by the costs that are given, so that these never lead to a
dearer mix. Steps are tried by theory's shares alone; the answer is predicted as a whole, with more
speed until it is proven. Where that would cost more than one factor for all, that factor is the
answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model.arrays import Floats
from tidings.model.json_text import plain
from tidings.model.progress import Progress
from tidings.model.shown import Shown
from tidings.model.system import System
from tidings.planning.capacity import FASTEST, faster, narrowed
from tidings.planning.change_kinds import times
from tidings.planning.changes import changed
from tidings.planning.evidence import MEETS, Evidence, Play, Target, foretell, weigh
from tidings.planning.exchanging import exchanged
from tidings.theory.answer import network_of
from tidings.theory.network.arriving import on_time_and_mean
from tidings.theory.network.network import Network

CLOSE = 0.03  # relative: how near each speed is to the least that will do
SAFER = (0.05, 0.1, 0.2, 0.4)  # parts by which added speed grows until it is proven

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
        """Give the answer as plain data for JSON."""
        document = {
            "what": "mix",
            "mix": list(self.brokers),
            "cost": self.cost,
            "alike": self.alike,
            "alike_cost": self.alike_cost,
            **self.evidence.to_document(),
        }
        return dict(plain(document))


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
    search = _MixSearch(system, target, _costs(system, costs or {}), progress)
    start = dict.fromkeys(search.costs, 1.0)
    alike = search.alike()
    if alike is None:  # as no broker does harm by being faster, no mix will do either
        cheapest = dict.fromkeys(start, FASTEST)
    else:
        cheapest = start if alike == 1.0 else search.cheapest(alike)
    one_factor = None if alike is None else dict.fromkeys(start, alike)
    most = math.inf if one_factor is None else search.cost(one_factor)
    sizes, evidence = search.proven(cheapest, play, most)
    if one_factor is not None and most > 0.0 and evidence.verdict != MEETS:
        sizes, evidence = search.proven(one_factor, play)
        one_factor = sizes
    return Mix(
        brokers=search.rows(sizes, evidence.outcome.brokers),
        cost=search.cost(sizes),
        alike=alike if not one_factor else next(iter(one_factor.values())),
        alike_cost=None if one_factor is None else search.cost(one_factor),
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
        faster(system, broker, FASTEST)
    except InvalidInputError:  # it does nothing that could be faster
        return False
    return True


class _MixSearch:
    """Mixes of speeds of one system, tried by theory."""

    def __init__(
        self, system: System, target: Target, costs: dict[str, float], progress: Progress
    ) -> None:
        self.system, self.target, self.costs = system, target, costs
        self.progress = progress
        self.wanted = target.wanted(system)
        self.known: dict[tuple[float, ...], Floats] = {}
        self.base: Network | None = None

    def built(self, sizes: Sizes) -> System:
        """Make each broker so many times as fast."""
        faster = [times("speed", name, size) for name, size in sizes.items() if size != 1.0]
        return changed(self.system, faster)

    def cost(self, sizes: Sizes) -> float:
        """Compute what the added speed costs."""
        return sum(self.costs[name] * (size - 1.0) for name, size in sizes.items())

    def shares(self, sizes: Sizes) -> Floats:
        """Give the on-time shares [subscriber] of a mix by theory; every mix is asked for once."""
        key = tuple(sizes.values())
        if key not in self.known:
            self.progress(f"mix {len(self.known) + 1}, added speed {self.cost(sizes):.3g}")
            self.known[key] = self._predicted(self.built(sizes))
        return self.known[key]

    def _predicted(self, system: System) -> Floats:
        """Give on-time shares by theory; where it has no answer, as predicted otherwise."""
        try:
            network = network_of(system)
        except UnsupportedError:
            shares: Floats = foretell(system).subscribers["on_time"].to_numpy()
            return shares
        if self.base is not None:  # all but the queues of brokers whose speed differs is known
            network = replace(network, base=self.base, solved=self.base.solved)
        return on_time_and_mean(network)[0]

    def meets(self, sizes: Sizes) -> bool:
        """Test whether a mix meets the target by theory."""
        return self.target.is_met(self.target.satisfied_by(self.system, self.shares(sizes)))

    def alike(self) -> float | None:
        """Find the least factor for all brokers that meets the target; None where none does."""

        def enough(factor: float) -> bool:
            return self.meets(dict.fromkeys(self.costs, factor))

        if enough(1.0):
            return 1.0
        return narrowed(enough, 1.0, FASTEST, close=CLOSE) if enough(FASTEST) else None

    def cheapest(self, alike: float) -> Sizes:
        """Find the cheapest mix that meets the target, each broker as slow as the others allow.

        Streams are as bursty as with one factor for all, which is near the answer.
        """
        start = dict.fromkeys(self.costs, alike)
        with suppress(UnsupportedError):
            self.base = network_of(self.built(start))
        self.known.clear()
        same = dict.fromkeys(self.costs, 1.0)
        sizes = min(filter(None, (self._even(), start)), key=lambda each: sum(each.values()))
        sizes = self._trimmed(self._exchanged(sizes, same), same)
        if self.costs == same:
            return sizes
        return self._trimmed(self._exchanged(sizes, self.costs), self.costs)

    def _exchanged(self, sizes: Sizes, costs: Mapping[str, float]) -> Sizes:
        """Make what is dear slower, and faster what for its cost does more."""

        def named(point: Floats) -> Sizes:
            return dict(zip(costs, point.tolist(), strict=True))

        found = exchanged(
            np.array(list(sizes.values())),
            np.array(list(costs.values())),
            FASTEST,
            missed=lambda point: 1.0 - self.shares(named(point)),
            allowed=1.0 - self.wanted,
            enough=lambda point: self.meets(named(point)),
        )
        return named(found)

    def _even(self) -> Sizes | None:
        """Find the highest load to which all busier brokers can be brought; None where none is."""

        def brought_to(load: float) -> Sizes:
            sizes = {name: max(self.loads[name] / load, 1.0) for name in self.costs}
            return {name: min(size, FASTEST) for name, size in sizes.items()}

        busiest = max(self.loads.values())
        if not self.meets(brought_to(busiest / FASTEST)):
            return None
        times = narrowed(lambda n: self.meets(brought_to(busiest / n)), 1.0, FASTEST, close=CLOSE)
        return brought_to(busiest / times)

    @cached_property
    def loads(self) -> dict[str, float]:
        """By broker the work that is offered to it at its present speed, in seconds a second."""
        return _loads(foretell(self.system).brokers)

    def _trimmed(self, sizes: Sizes, costs: Mapping[str, float]) -> Sizes:
        """Make each broker as slow as the others allow, the one that saves most first."""
        start = dict(sizes)
        for name in sorted(start, key=lambda each: -costs[each] * (start[each] - 1.0)):
            if start[name] > 1.0:
                sizes = {**sizes, name: self._least(sizes, name)}
        return sizes

    def _least(self, sizes: Sizes, name: str) -> float:
        """Find how slow one broker may be while the others are as they are."""

        def enough(size: float) -> bool:
            return self.meets({**sizes, name: size})

        low, high, step = sizes[name], sizes[name], 1.0 + CLOSE
        while low == high:  # ever longer steps back
            low = max(high / step, 1.0)
            if enough(low):
                if low == 1.0:
                    return 1.0
                high, step = low, step**2
        return narrowed(enough, low, high, close=CLOSE)

    def proven(
        self, sizes: Sizes, play: Play | None, most: float = math.inf
    ) -> tuple[Sizes, Evidence]:
        """Add speed where it is added until the evidence says enough, or no more is tried.

        None is that costs more than ``most``.

        What prediction alone leaves open lies at the target, where a simulation takes longest to
        say anything: it begins with a little more speed, by less than sizes are worked out to.
        """
        safer, evidence = sizes, weigh(self.built(sizes), self.target)
        for part in SAFER:
            grown = {
                name: min(1.0 + (size - 1.0) * (1.0 + part), FASTEST)
                for name, size in sizes.items()
            }
            if evidence.verdict == MEETS or grown == safer or self.cost(grown) > most:
                break
            self.progress(f"proving a mix with added speed {self.cost(grown):.3g}")
            safer, evidence = grown, weigh(self.built(grown), self.target, play)
        if evidence.verdict != MEETS and safer == sizes:  # it cannot grow
            evidence = weigh(self.built(sizes), self.target, play)
        return safer, evidence

    def rows(self, sizes: Sizes, brokers: pd.DataFrame) -> list[dict[str, Any]]:
        """List the brokers that must be faster: by how much, at which cost, how busy then."""
        after = _loads(brokers)
        rows = [
            {
                "broker": name,
                "size": size,
                "cost": self.costs[name] * (size - 1.0),
                "load": self.loads[name],
                "load_after": after[name],
            }
            for name, size in sizes.items()
            if size > 1.0
        ]
        return sorted(rows, key=lambda row: -round(row["cost"], 9))


def _loads(brokers: pd.DataFrame) -> dict[str, float]:
    work = brokers["arrivals_per_s"] * brokers["service_mean_s"]
    return {str(name): float(load) for name, load in zip(brokers["broker"], work, strict=True)}
