"""What it costs that a broker that crashed has its subscriptions back only at the next refresh.

Every ``refresh_s`` a subscription travels from its subscriber's home broker towards the publisher,
as far as all is up, and every broker it reaches knows it (again). An event is published at a moment
U, uniform since the last refresh. Exactly, all brokers and links of a way are a chain looked at
from refresh to refresh: phases, and for each broker how many refreshes ago it was last reached.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tidings.theory.faults.components import Components, Path
from tidings.theory.faults.processes import Bools, Floats, Process, keeps_table
from tidings.theory.faults.refresh_axes import (
    Axis,
    BrokerAxis,
    LastingAxis,
    LinkAxis,
    at_refresh,
)

MOST_STATES = 30_000
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_PERFECT = Process(generator=np.zeros((1, 1)), stationary=np.ones(1), up=np.ones(1, np.bool_))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """How often subscriptions are sent again, and after what time without that they vanish."""

    every_s: float
    timeout_s: float | None = None

    @property
    def ages(self) -> int:
        """How many refreshes without being reached a table may be old; without time-out one age."""
        if self.timeout_s is None:
            return 1
        return math.ceil(self.timeout_s / self.every_s * (1.0 - 1e-12))

    @property
    def oldest_gone_s(self) -> float | None:
        """How long after a refresh the oldest tables time out; None: not before the next one."""
        if self.timeout_s is None:
            return None
        rest_s = self.timeout_s - (self.ages - 1) * self.every_s
        return rest_s if rest_s < self.every_s * (1.0 - 1e-12) else None

    def holds(self, age: int, since_s: Floats) -> Bools:
        """Whether a table is still there so many refreshes and so long after it was renewed."""
        limit_s = math.inf if self.timeout_s is None else self.timeout_s
        return np.asarray(age * self.every_s + since_s <= limit_s)

    def moments(self, fastest_per_s: float) -> tuple[Floats, Floats]:
        """Times since the last refresh and their weights: Gauss's rule between refreshes."""
        cuts_s = [0.0, self.every_s]
        if self.timeout_s is not None:
            rest_s = self.timeout_s - (self.ages - 1) * self.every_s
            cuts_s.insert(1, min(rest_s, self.every_s))
        times, weights = [], []
        for begin_s, end_s in itertools.pairwise(cuts_s):
            panels = min(max(math.ceil((end_s - begin_s) * fastest_per_s / 4.0), 1), 50)
            edges_s = np.linspace(begin_s, end_s, panels + 1)
            half_s = 0.5 * np.diff(edges_s)[:, None]
            times.append((edges_s[:-1, None] + half_s * (1.0 + _NODES)).ravel())
            weights.append((half_s * _WEIGHTS).ravel() / self.every_s)
        return np.concatenate(times), np.concatenate(weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """Probabilities that an event passes the checks of a way, each together with all before."""

    up: tuple[float, ...]  # by element: broker, link, broker …
    table: tuple[float, ...]  # and of a broker, that it has the subscription
    off: float  # how far the last of them can be off


def exact_passed(
    components: Components, path: Path, refresh: Refresh, helped_per_s: Sequence[float]
) -> Passed | None:
    """By the chain at refreshes; None where components fail together or are too many.

    ``helped_per_s`` says how often others refresh each broker of the way as well.
    """
    if components.fail_together(path):
        return None
    needs = components.of_path(path)
    parts = [components.processes[each[0]] if each else _PERFECT for each in needs]
    axes: list[Axis] = [
        LinkAxis(part) if place % 2 else _broker_axis(part, refresh, helped_per_s[place // 2])
        for place, part in enumerate(parts)
    ]
    if math.prod(axis.states for axis in axes) > MOST_STATES:
        return None
    shares = at_refresh(axes, refresh.every_s)
    fastest = max(float(-np.diag(part.generator).min()) for part in parts)
    times_s, weights = refresh.moments(max(fastest, *helped_per_s))
    # What is left of the joint states after each check, [moment, states of the elements to come].
    left = np.broadcast_to(shares.ravel(), (times_s.size, shares.size))
    up, table = [], []
    for axis in axes:
        split = left.reshape(times_s.size, axis.states, -1)
        up.append(float(weights @ np.einsum("ms,msr->m", axis.up(times_s), split)))
        passes = axis.passes(times_s, lambda age: refresh.holds(age, times_s))
        left = np.einsum("ms,msr->mr", passes, split)
        table.append(float(weights @ left.sum(axis=1)))
    return Passed(up=tuple(up), table=tuple(table), off=0.0)


def _broker_axis(process: Process, refresh: Refresh, helped_per_s: float) -> BrokerAxis:
    if refresh.timeout_s is None:
        return LastingAxis(process, helped_per_s)
    return BrokerAxis(process, refresh.ages, helped_per_s)


def bounded_passed(
    components: Components, path: Path, refresh: Refresh, helped_per_s: Sequence[float]
) -> Passed:
    """The middle between two bounds, for components that are many or fail together.

    A broker that has the table was up at the last refresh and ever since: that bounds from above.
    All of the way up at the last refresh is enough: that bounds from below, and is exact where a
    time-out forgets what the last refresh has not brought.
    """
    needs = components.of_path(path)
    processes = components.processes
    every = {each for element in needs for each in element}
    brokers = helped_processes(needs[::2], helped_per_s)
    fastest = max((float(-np.diag(processes[e].generator).min()) for e in every), default=0.0)
    sharp = refresh.timeout_s is not None and refresh.timeout_s <= refresh.every_s
    times_s, weights = refresh.moments(fastest)
    if sharp:
        weights = weights * refresh.holds(0, times_s)
    stays = {e: keeps_table(processes[e], times_s, brokers.get(e, 0.0)) for e in every}
    twice = {e: stays[e] if e in brokers else processes[e].up_twice(times_s) for e in every}
    low, high = np.zeros(len(needs)), np.zeros(len(needs))
    seen: set[int] = set()
    for place, element in enumerate(needs):
        seen.update(element)
        links_up = components.all_up(seen - brokers.keys())
        above = links_up * math.prod((stays[e] for e in seen & brokers.keys()), start=np.ones(1))
        below = components.all_up(every - seen) * math.prod(
            (twice[e] for e in seen), start=np.ones(1)
        )
        low[place] = float(np.sum(weights * below))
        high[place] = low[place] if sharp else float(np.sum(weights * above))
    return _from_bounds(components, needs, low, high)


def helped_processes(
    brokers: Sequence[tuple[int, ...]], helped_per_s: Sequence[float]
) -> dict[int, float]:
    """The processes of a way's brokers, each with how often others refresh what depends on it.

    Of brokers that fail together the one that is helped least counts.
    """
    found: dict[int, float] = {}
    for needed, per_s in zip(brokers, helped_per_s, strict=True):
        for each in needed:
            found[each] = min(found.get(each, math.inf), per_s)
    return found


def _from_bounds(
    components: Components, needs: tuple[tuple[int, ...], ...], low: Floats, high: Floats
) -> Passed:
    middle = 0.5 * (low + high)
    up, table = [], []
    seen: set[int] = set()
    before = 1.0
    for place, element in enumerate(needs):
        share = components.all_up(set(element) - seen)
        seen.update(element)
        up.append(max(before * share, float(middle[place])))
        table.append(float(middle[place]) if place % 2 == 0 else up[-1])
        before = table[-1]
    return Passed(up=tuple(up), table=tuple(table), off=0.5 * float(high[-1] - low[-1]))
