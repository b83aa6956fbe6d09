"""Joint states of what fails and of what brokers know: phases of processes, ages of tables.

A broker's *table* (the subscription of a home) has an age, 0 since the last refresh, or is missing;
a broker that is down has none. Processes move by themselves; a table is lost when any process that
its broker needs goes down, whether its own or that of a failure group.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tidings.theory.faults.components import Components
from tidings.theory.faults.processes import Bools
from tidings.theory.faults.waiting import phases_of

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Many joint states: of each process its phase, of each table its age."""

    phases: Mapping[int, Ints]
    tables: Mapping[int, Ints]

    def with_tables(self, changed: Mapping[int, Ints]) -> Values:
        """The same states with other ages of some tables."""
        return Values(phases=self.phases, tables={**self.tables, **changed})


@dataclass(frozen=True, kw_only=True, eq=False)
class JointStates:
    """All joint states of some processes and tables that can occur, and the rates between them."""

    components: Components
    processes: tuple[int, ...]
    tables: tuple[int, ...]  # the brokers whose tables are followed
    ages: int  # a table of this age is missing
    codes: Ints  # in ascending order, one of each state

    @property
    def count(self) -> int:
        """How many states there are."""
        return self.codes.size

    @property
    def _sizes(self) -> list[int]:
        phases = [len(self.components.processes[each].up) for each in self.processes]
        return phases + [self.ages + 1] * len(self.tables)

    @cached_property
    def values(self) -> Values:
        """The states themselves."""
        return decoded(self, self.codes)

    def index(self, values: Values) -> Ints:
        """The positions of some states."""
        parts = [values.phases[each] for each in self.processes]
        parts += [values.tables[each] for each in self.tables]
        if not parts:
            return np.zeros(1, np.int64)
        return np.searchsorted(self.codes, np.ravel_multi_index(parts, self._sizes))

    def up(self, values: Values, needed: Iterable[int]) -> Bools:
        """Whether all these processes are up; those that are not followed are."""
        found = np.ones(_length(values), np.bool_)
        for each in needed:
            if each in values.phases:
                found &= self.components.processes[each].up[values.phases[each]]
        return found

    def broker_up(self, values: Values, broker: int) -> Bools:
        """Whether a broker is up."""
        return self.up(values, self.components.of_broker[broker])

    def able(self, values: Values, broker: int) -> Bools:
        """Whether a broker is up and knows the subscription."""
        found = self.broker_up(values, broker)
        if broker in values.tables:
            found = found & (values.tables[broker] < self.ages)
        return found

    @cached_property
    def generator(self) -> sparse.csr_array:
        """The rates between states as time goes by without a refresh, 1/s."""
        rows, columns, rates = [], [], []
        for each in self.processes:
            process = self.components.processes[each]
            hit = [b for b in self.tables if each in self.components.of_broker[b]]
            for here, there in np.argwhere(process.generator > 0.0).tolist():
                chosen = np.flatnonzero(self.values.phases[each] == here)
                moved = taken(self.values, chosen)
                gone = np.full(chosen.size, self.ages)
                after = Values(
                    phases={**moved.phases, each: np.full(chosen.size, there)},
                    tables=moved.tables
                    if process.up[there]
                    else {**moved.tables, **dict.fromkeys(hit, gone)},
                )
                rows.append(chosen)
                columns.append(self.index(after))
                rates.append(np.full(chosen.size, process.generator[here, there]))
        found = _summed(rows, columns, rates, self.count)
        leaving = np.asarray(found.sum(axis=1)).ravel()
        return sparse.csr_array(found - sparse.diags_array(leaving))


def joint_states(
    components: Components,
    processes: Sequence[int],
    tables: Sequence[int],
    ages: int,
    most: int | None = None,
) -> JointStates | None:
    """The joint states of some processes and tables; None where they are more than ``most``."""
    count = phases_of(components.processes, processes)
    if most is not None and count > most:
        return None
    found = JointStates(
        components=components,
        processes=tuple(processes),
        tables=(),
        ages=ages,
        codes=np.arange(count, dtype=np.int64),
    )
    for broker in tables:
        up = found.broker_up(found.values, broker)
        if not found.processes:
            up = np.ones(found.count, np.bool_)
        repeats = np.where(up, ages + 1, 1)
        first = np.repeat(found.codes * (ages + 1), repeats)
        within = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
        age = np.where(np.repeat(up, repeats), within, ages)
        if most is not None and first.size > most:
            return None
        found = JointStates(
            components=components,
            processes=found.processes,
            tables=(*found.tables, broker),
            ages=ages,
            codes=first + age,
        )
    return found


def decoded(states: JointStates, codes: Ints) -> Values:
    """States from their codes."""
    sizes = states._sizes
    parts = np.unravel_index(codes, sizes) if sizes else ()
    split = len(states.processes)
    return Values(
        phases=dict(zip(states.processes, parts[:split], strict=True)),
        tables=dict(zip(states.tables, parts[split:], strict=True)),
    )


def taken(values: Values, chosen: Ints) -> Values:
    """Some of many states."""
    return Values(
        phases={each: at[chosen] for each, at in values.phases.items()},
        tables={each: at[chosen] for each, at in values.tables.items()},
    )


def _length(values: Values) -> int:
    every = [*values.phases.values(), *values.tables.values()]
    return every[0].size if every else 1


def _summed(
    rows: list[Ints], columns: list[Ints], rates: list[NDArray[np.float64]], count: int
) -> sparse.csr_array:
    if not rows:
        return sparse.csr_array((count, count))
    place = np.concatenate(rows), np.concatenate(columns)
    return sparse.csr_array((np.concatenate(rates), place), shape=(count, count))
