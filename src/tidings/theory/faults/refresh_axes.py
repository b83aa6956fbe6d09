"""Brokers and links of a way from refresh to refresh: each an axis of the joint states.

A broker's states are: up with a table of age 0, 1, … (refreshes that did not come), up without,
down. A link's are its phases. Between refreshes all axes move independently; a refresh comes from
the last of them and looks at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from tidings.theory.faults.processes import Bools, Floats, Process, exponentials

_TOLERANCE = 1e-13


class LinkAxis:
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

    def passes(self, times_s: Floats, _: Callable[[int], Bools]) -> Floats:
        """A link need only be up."""
        return self.up(times_s)

    def reached(self, shares: Floats, _axis: int) -> Floats:
        """Nothing to remember."""
        return shares

    def missed(self, shares: Floats, _axis: int) -> Floats:
        """Nothing to remember."""
        return shares


class BrokerAxis:
    """A broker between refreshes: phases in which it is up by the age of its table, then down."""

    def __init__(self, process: Process, ages: int, helped_per_s: float = 0.0) -> None:
        self.ages = ages
        self.ups = int(process.up.sum())
        downs = len(process.up) - self.ups
        self.states = self.ups * (ages + 1) + downs
        self.is_up = np.arange(self.states) < self.ups * (ages + 1)
        order = np.concatenate([np.flatnonzero(process.up), np.flatnonzero(~process.up)])
        rates = process.generator[np.ix_(order, order)]
        self.start = np.zeros(self.states)
        self.start[: self.ups] = process.stationary[order][: self.ups]
        self.start[self.ups * (ages + 1) :] = process.stationary[order][self.ups :]
        without = slice(ages * self.ups, self.states)
        self.generator = np.zeros((self.states, self.states))
        self.generator[without, without] = rates
        for age in range(ages):
            self.generator[self.table(age), self.table(age)] = rates[: self.ups, : self.ups]
            self.generator[self.table(age), self.states - downs :] = rates[: self.ups, self.ups :]
        # Others may bring a table back between refreshes; a lost one is like new then.
        self.generator[self.table(ages), self.table(0)] += helped_per_s * np.eye(self.ups)
        self.generator[self.table(ages), self.table(ages)] -= helped_per_s * np.eye(self.ups)

    def table(self, age: int) -> slice:
        """The states with a table of an age; the last age is without."""
        return slice(age * self.ups, (age + 1) * self.ups)

    def later(self, time_s: float) -> Floats:
        """Transition probabilities: a table lasts as long as the broker is up without a break."""
        return exponentials(self.generator, time_s)

    def up(self, times_s: Floats) -> Floats:
        """P[up] at each time, by the state before, [time, state]."""
        found: Floats = exponentials(self.generator, times_s)[..., self.is_up].sum(axis=-1)
        return found

    def passes(self, times_s: Floats, holds: Callable[[int], Bools]) -> Floats:
        """P[up with a table that still holds] at each time, by the state before, [time, state]."""
        later = exponentials(self.generator, times_s)
        found = np.zeros((times_s.size, self.states))
        for age in range(self.ages):
            found += later[..., self.table(age)].sum(axis=-1) * holds(age)[:, None]
        return found

    def reached(self, shares: Floats, axis: int) -> Floats:
        """The refresh has come: whatever is up has a new table."""
        moved = np.moveaxis(shares, axis, 0)
        found = np.zeros_like(moved)
        for age in range(self.ages + 1):
            found[self.table(0)] += moved[self.table(age)]
        found[~self.is_up] = moved[~self.is_up]
        return np.moveaxis(found, 0, axis)

    def missed(self, shares: Floats, axis: int) -> Floats:
        """The refresh has not come: tables grow older, the oldest vanish."""
        moved = np.moveaxis(shares, axis, 0)
        found = np.zeros_like(moved)
        found[~self.is_up] = moved[~self.is_up]
        found[self.table(self.ages)] = moved[self.table(self.ages)]
        for age in range(self.ages):
            found[self.table(age + 1)] += moved[self.table(age)]
        return np.moveaxis(found, 0, axis)


class LastingAxis(BrokerAxis):
    """A broker whose tables do not time out: a refresh that does not come changes nothing."""

    def __init__(self, process: Process, helped_per_s: float = 0.0) -> None:
        super().__init__(process, 1, helped_per_s)

    def missed(self, shares: Floats, axis: int) -> Floats:
        """Nothing happens."""
        return shares


Axis = LinkAxis | BrokerAxis


def at_refresh(axes: Sequence[Axis], every_s: float) -> Floats:
    """The shares of all joint states just after a refresh, [state of each element]."""
    shape = tuple(axis.states for axis in axes)
    later = [axis.later(every_s) for axis in axes]
    start = np.ones(())
    for axis in axes:
        start = np.multiply.outer(start, axis.start)

    def step(flat: Floats) -> Floats:
        shares = flat.reshape(shape)
        for place, matrix in enumerate(later):
            shares = np.moveaxis(np.tensordot(shares, matrix, (place, 0)), -1, place)
        after: Floats = _refreshed(axes, shares).ravel()
        return after

    return settled_shares(step, start.ravel()).reshape(shape)


def settled_shares(step: Callable[[Floats], Floats], origin: Floats) -> Floats:
    """The shares that a step leaves as they are, looked for from some that are not far."""

    def residue(flat: Floats) -> Floats:
        left: Floats = flat - step(flat) + origin * flat.sum()
        return left

    operator = LinearOperator((origin.size, origin.size), matvec=residue, dtype=np.float64)
    found, failed = gmres(operator, origin, x0=origin, rtol=_TOLERANCE, restart=80, maxiter=50)
    if failed:
        found = _step_by_step(step, found)
    return np.asarray(found)


def _step_by_step(step: Callable[[Floats], Floats], shares: Floats) -> Floats:
    """Step by step until nothing changes, where the solver did not come that far."""
    for _ in range(100_000):
        after = step(shares)
        if np.abs(after - shares).sum() < _TOLERANCE:
            break
        shares = after
    found: Floats = shares / shares.sum()
    return found


def _refreshed(axes: Sequence[Axis], shares: Floats) -> Floats:
    """One refresh: it comes from the last broker and goes on as long as all it meets is up."""
    total = np.zeros_like(shares)
    coming = shares
    for place in range(len(axes) - 1, -1, -1):
        stops, goes_on = _split(axes[place], coming, place)
        for other in range(place):
            stops = axes[other].missed(stops, other)
        total += stops
        coming = axes[place].reached(goes_on, place)
    return total + coming


def _split(axis: Axis, shares: Floats, place: int) -> tuple[Floats, Floats]:
    """The shares with one axis down, and with it up."""
    down = np.moveaxis(shares, place, 0).copy()
    down[axis.is_up] = 0.0
    down = np.moveaxis(down, 0, place)
    return down, shares - down
