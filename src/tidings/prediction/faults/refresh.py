"""What it costs that a broker that crashed has its subscriptions back only at the next refresh.

Every ``refresh_s`` a subscription travels from its subscriber's home broker towards the publisher,
as far as all is up, and every broker it reaches knows it (again). An event is published at a moment
U, uniform since the last refresh. Exactly, all brokers and links of a way are a chain looked at
from refresh to refresh: phases, and for each broker how many refreshes ago it was last reached.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from tidings.prediction.faults.components import Components, Path
from tidings.prediction.faults.processes import Bools, Floats, Process, exponentials

MOST_STATES = 30_000
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)
_TOLERANCE = 1e-13
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


def exact_passed(components: Components, path: Path, refresh: Refresh) -> Passed | None:
    """By the chain at refreshes; None where components fail together or are too many."""
    needs = components.of_path(path)
    if any(len(each) > 1 for each in needs) or len({e for n in needs for e in n}) < sum(
        map(len, needs)
    ):
        return None
    parts = [components.processes[each[0]] if each else _PERFECT for each in needs]
    axes = [_broker_axis(p, refresh) if i % 2 == 0 else _LinkAxis(p) for i, p in enumerate(parts)]
    if math.prod(axis.states for axis in axes) > MOST_STATES:
        return None
    shares = _at_refresh(axes, refresh)
    fastest = max(float(-np.diag(part.generator).min()) for part in parts)
    times_s, weights = refresh.moments(fastest)
    # What is left of the joint states after each check, [moment, states of the elements to come].
    left = np.broadcast_to(shares.ravel(), (times_s.size, shares.size))
    up, table = [], []
    for axis in axes:
        split = left.reshape(times_s.size, axis.states, -1)
        up.append(float(weights @ np.einsum("ms,msr->m", axis.up(times_s), split)))
        left = np.einsum("ms,msr->mr", axis.passes(times_s, refresh), split)
        table.append(float(weights @ left.sum(axis=1)))
    return Passed(up=tuple(up), table=tuple(table), off=0.0)


class _LinkAxis:
    """A link between refreshes: its phases."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.states = len(process.up)
        self.is_up = process.up
        self.start = process.stationary

    def later(self, time_s: float) -> Floats:
        """Transition probabilities."""
        return exponentials(self.process.generator, time_s)

    def up(self, times_s: Floats) -> Floats:
        """P[up] at each time, by the state before, [time, state]."""
        found: Floats = exponentials(self.process.generator, times_s)[..., self.is_up].sum(axis=-1)
        return found

    def passes(self, times_s: Floats, _: Refresh) -> Floats:
        """A link need only be up."""
        return self.up(times_s)

    def reached(self, shares: Floats, _axis: int) -> Floats:
        """Nothing to remember."""
        return shares

    def missed(self, shares: Floats, _axis: int) -> Floats:
        """Nothing to remember."""
        return shares


class _BrokerAxis:
    """A broker between refreshes: phases in which it is up by the age of its table, then down.

    States are: up with a table of age 0, 1, …; up without; down.
    """

    def __init__(self, process: Process, ages: int) -> None:
        self.process, self.ages = process, ages
        self.ups = int(process.up.sum())
        downs = len(process.up) - self.ups
        self.states = self.ups * (ages + 1) + downs
        self.is_up = np.arange(self.states) < self.ups * (ages + 1)
        order = np.concatenate([np.flatnonzero(process.up), np.flatnonzero(~process.up)])
        self.generator = process.generator[np.ix_(order, order)]
        self.start = np.zeros(self.states)
        self.start[: self.ups] = process.stationary[order][: self.ups]
        self.start[self.ups * (ages + 1) :] = process.stationary[order][self.ups :]

    def _table(self, age: int) -> slice:
        return slice(age * self.ups, (age + 1) * self.ups)

    def later(self, time_s: float) -> Floats:
        """Transition probabilities: a table lasts as long as the broker is up without a break."""
        every = exponentials(self.generator, time_s)
        lasting = exponentials(self.generator[: self.ups, : self.ups], time_s)
        found = np.zeros((self.states, self.states))
        without = slice(self.ages * self.ups, self.states)
        found[without, without] = every
        for age in range(self.ages):
            found[self._table(age), self._table(age)] = lasting
            found[self._table(age), without] = every[: self.ups]
            found[self._table(age), self._table(self.ages)] -= lasting
        return found

    def up(self, times_s: Floats) -> Floats:
        """P[up] at each time, by the state before, [time, state]."""
        by_phase = exponentials(self.generator, times_s)[..., : self.ups].sum(axis=-1)
        tables = [by_phase[:, : self.ups]] * (self.ages + 1)
        return np.hstack([*tables, by_phase[:, self.ups :]])

    def passes(self, times_s: Floats, refresh: Refresh) -> Floats:
        """P[up with a table] at each time, by the state before, [time, state]."""
        inside = self.generator[: self.ups, : self.ups]
        lasting = exponentials(inside, times_s).sum(axis=-1)
        found = np.zeros((times_s.size, self.states))
        for age in range(self.ages):
            found[:, self._table(age)] = lasting * refresh.holds(age, times_s)[:, None]
        return found

    def reached(self, shares: Floats, axis: int) -> Floats:
        """The refresh has come: whatever is up has a new table."""
        moved = np.moveaxis(shares, axis, 0)
        found = np.zeros_like(moved)
        for age in range(self.ages + 1):
            found[self._table(0)] += moved[self._table(age)]
        found[~self.is_up] = moved[~self.is_up]
        return np.moveaxis(found, 0, axis)

    def missed(self, shares: Floats, axis: int) -> Floats:
        """The refresh has not come: tables grow older, the oldest vanish."""
        moved = np.moveaxis(shares, axis, 0)
        found = np.zeros_like(moved)
        found[~self.is_up] = moved[~self.is_up]
        found[self._table(self.ages)] = moved[self._table(self.ages)]
        for age in range(self.ages):
            found[self._table(age + 1)] += moved[self._table(age)]
        return np.moveaxis(found, 0, axis)


class _LastingAxis(_BrokerAxis):
    """A broker whose tables do not time out: a refresh that does not come changes nothing."""

    def missed(self, shares: Floats, axis: int) -> Floats:
        return shares


def _broker_axis(process: Process, refresh: Refresh) -> _BrokerAxis:
    if refresh.timeout_s is None:
        return _LastingAxis(process, 1)
    return _BrokerAxis(process, refresh.ages)


def _at_refresh(axes: list[_LinkAxis | _BrokerAxis], refresh: Refresh) -> Floats:
    """The shares of all joint states just after a refresh, [state of each element]."""
    shape = tuple(axis.states for axis in axes)
    later = [axis.later(refresh.every_s) for axis in axes]
    start = np.ones(())
    for axis in axes:
        start = np.multiply.outer(start, axis.start)

    def step(flat: Floats) -> Floats:
        shares = flat.reshape(shape)
        for place, matrix in enumerate(later):
            shares = np.moveaxis(np.tensordot(shares, matrix, (place, 0)), -1, place)
        after: Floats = _refreshed(axes, shares).ravel()
        return after

    origin = start.ravel()

    def residue(flat: Floats) -> Floats:
        left: Floats = flat - step(flat) + origin * flat.sum()
        return left

    operator = LinearOperator((origin.size, origin.size), matvec=residue, dtype=np.float64)
    found, failed = gmres(operator, origin, x0=origin, rtol=_TOLERANCE, restart=80, maxiter=50)
    if failed:
        found = _settled(step, found)
    return np.asarray(found).reshape(shape)


def _settled(step: Callable[[Floats], Floats], shares: Floats) -> Floats:
    """Step by step until nothing changes, where the solver did not come that far."""
    for _ in range(100_000):
        after = step(shares)
        if np.abs(after - shares).sum() < _TOLERANCE:
            break
        shares = after
    found: Floats = shares / shares.sum()
    return found


def _refreshed(axes: list[_LinkAxis | _BrokerAxis], shares: Floats) -> Floats:
    """One refresh: it comes from the last broker and goes on as long as all it meets is up."""
    total = np.zeros_like(shares)
    coming = shares
    for place in range(len(axes) - 1, -1, -1):
        axis = axes[place]
        stops = np.moveaxis(coming, place, 0).copy()
        stops[axis.is_up] = 0.0
        stops = np.moveaxis(stops, 0, place)
        goes_on = coming - stops
        for other in range(place):
            stops = axes[other].missed(stops, other)
        total += stops
        coming = axis.reached(goes_on, place)
    return total + coming


def bounded_passed(components: Components, path: Path, refresh: Refresh) -> Passed:
    """The middle between two bounds, for components that are many or fail together.

    A broker that has the table was up at the last refresh and ever since: that bounds from above.
    All of the way up at the last refresh is enough: that bounds from below, and is exact where a
    time-out forgets what the last refresh has not brought.
    """
    needs = components.of_path(path)
    processes = components.processes
    every = {each for element in needs for each in element}
    brokers = {each for element in needs[::2] for each in element}
    fastest = max((float(-np.diag(processes[e].generator).min()) for e in every), default=0.0)
    sharp = refresh.timeout_s is not None and refresh.timeout_s <= refresh.every_s
    times_s, weights = refresh.moments(fastest)
    if sharp:
        weights = weights * refresh.holds(0, times_s)
    stays = {e: processes[e].stays_up(times_s) for e in every}
    twice = {e: stays[e] if e in brokers else processes[e].up_twice(times_s) for e in every}
    low, high = np.zeros(len(needs)), np.zeros(len(needs))
    seen: set[int] = set()
    for place, element in enumerate(needs):
        seen.update(element)
        links_up = components.all_up(seen - brokers)
        above = links_up * math.prod((stays[e] for e in seen & brokers), start=np.ones(1))
        below = components.all_up(every - seen) * math.prod(
            (twice[e] for e in seen), start=np.ones(1)
        )
        low[place] = float(np.sum(weights * below))
        high[place] = low[place] if sharp else float(np.sum(weights * above))
    return _from_bounds(components, needs, low, high)


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
