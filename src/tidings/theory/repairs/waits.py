"""How long events wait in buffers until everything that the next hop needs is up at once.

The processes that a hop needs are independent, so what they do while nobody looks is known by the
modes of each alone: R(z) = (z − Q)⁻¹ over joint phases is a product in the modes, divided by z less
the sum of their rates. A wait ends when the joint phase is first in the set M of those in which all
are up. Whoever is in M at some time has come there once for the first time, so the transform of
the wait and of what follows it, V, from any joint phase x is V(x) = R[x, M] R[M, M]⁻¹ V(M): with
exponential times up, M is one phase, and V a ratio. Hops are put together from the last to the
first. What is kept of V from hop to hop is how it depends on processes that an earlier hop has met:
the sending broker's, and those that several components need. Processes that are kept and that a
hop does not need stay in their modes, each of which only moves z. Everything is exact.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce

import numpy as np

from tidings.model import topology
from tidings.model.arrays import Complexes, Floats
from tidings.model.routes import Routes
from tidings.theory.delay.delays import Delays, nothing
from tidings.theory.delay.grids import Grid
from tidings.theory.repairs.components import Components, Path, Process

MOST_PHASES = 1 << 12  # joint phases of what one hop follows
MOST_WORK = 1 << 20  # the same times the square of those in which all that it needs is up
_BLOCK = 1 << 18  # numbers handled at once
_SMALL = 1e-4  # z times the mean wait at which the mean is read off


class TooManyPhasesError(Exception):
    """The joint phases of a hop are too many to be followed."""


@dataclass(frozen=True, slots=True)
class Remaining:
    """The transform of the wait from here on, as it depends on the processes that are kept.

    From joint phases x it is Σ_k right[x, k] · values[k], over joint modes k.
    """

    axes: tuple[int, ...]  # the processes
    values: Complexes  # [z, mode of each …]

    def given(self, processes: Sequence[Process], known_up: Collection[int]) -> Complexes:
        """Average over phases: of processes known to be up, and of others at any moment, [z]."""
        values = self.values
        for each in reversed(self.axes):
            process = processes[each]
            shares = process.given_up if each in known_up else process.stationary
            values = values @ (shares @ process.modes.right)
        return values

    def without(self, dropped: Collection[int], processes: Sequence[Process]) -> Remaining:
        """Average over the phases of processes that nobody has met before."""
        values, axes = self.values, list(self.axes)
        for each in dropped:
            shares = processes[each].stationary @ processes[each].modes.right
            values = np.tensordot(values, shares, axes=(1 + axes.index(each), 0))
            axes.remove(each)
        return Remaining(tuple(axes), values)

    def weighted(
        self, processes: Sequence[Process], shares: Floats, order: Sequence[int]
    ) -> Complexes:
        """Sum over joint phases with these shares, the processes in this order, [z]."""
        table = shares.reshape([processes[each].up.size for each in order]).astype(np.complex128)
        for place, each in enumerate(order):
            table = _along(table, place, processes[each].modes.right)
        weights = table.transpose([order.index(each) for each in self.axes])
        return np.asarray(self.values.reshape(len(self.values), -1) @ weights.ravel())


def at_the_end(z: Complexes) -> Remaining:
    """Build what remains at the last broker: no wait."""
    return Remaining((), np.ones(z.size, np.complex128))


def before_hop(
    processes: Sequence[Process],
    needed: Collection[int],
    after: Remaining,
    kept: Collection[int],
    z: Complexes,
) -> Remaining:
    """Compute what remains before a hop from what remains after it.

    Of the processes that the hop needs, only those ``kept`` can be known before it; the others are
    met at any moment.
    """
    hop = tuple(sorted(needed))
    after = after.without([e for e in after.axes if e not in needed and e not in kept], processes)
    beside = tuple(each for each in after.axes if each not in needed)
    if not hop:
        return after
    tables = _tables(processes, hop, beside, kept)
    step = max(_BLOCK // tables.size, 1)
    parts = [
        tables.solved(_when_met(processes, hop, beside, after, slice(begin, begin + step)), z_block)
        for begin, z_block in ((at, z[at : at + step]) for at in range(0, z.size, step))
    ]
    axes = (*beside, *(each for each in hop if each in kept))
    shape = [z.size, *(processes[each].up.size for each in axes)]
    return Remaining(axes, np.concatenate(parts).reshape(shape))


def _when_met(
    processes: Sequence[Process],
    hop: tuple[int, ...],
    beside: tuple[int, ...],
    after: Remaining,
    block: slice,
) -> Complexes:
    """Compute what remains when all that the hop needs is up, [z, mode beside, phase in M]."""
    known = [each for each in hop if each in after.axes]
    order = [1 + after.axes.index(each) for each in (*beside, *known)]
    values = after.values[block].transpose(0, *order)
    size = math.prod(processes[each].up.size for each in beside)
    values = values.reshape(len(values), size, -1)
    if known:  # from modes to phases in M
        values = values @ _product([_from_met(processes[each]) for each in known])
    ups = [int(processes[each].up.sum()) for each in hop]
    shape = [count if each in known else 1 for each, count in zip(hop, ups, strict=True)]
    met = np.broadcast_to(values.reshape(*values.shape[:2], *shape), (*values.shape[:2], *ups))
    return np.asarray(met.reshape(*values.shape[:2], -1), np.complex128)


def _from_met(process: Process) -> Complexes:
    """Make the matrix from modes to phases in which a process is up, [mode, phase up]."""
    matrix: Complexes = process.modes.right[process.up].T
    return matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class _HopTables:
    """One hop in modes, whatever z is."""

    rates: Complexes  # [mode beside, mode of the hop], 1/s
    into: Complexes  # [mode of the hop, phase in M]
    pairs: Complexes  # [mode of the hop, phase in M · phase in M]
    out_of: Complexes  # [mode of the hop, mode of what is kept]

    @property
    def size(self) -> int:
        """How many numbers one z takes."""
        return int(self.rates.shape[0] * max(self.rates.shape[1], self.pairs.shape[1]))

    def solved(self, met: Complexes, z: Complexes) -> Complexes:
        """Compute what remains before the hop, [z, mode beside · mode of what is kept]."""
        resolvent = 1.0 / (z[:, None, None] - self.rates)
        count = met.shape[2]
        between = resolvent @ self.pairs
        matrix = between.reshape(*between.shape[:2], count, count)
        entered = met / between if count == 1 else np.linalg.solve(matrix, met[..., None])[..., 0]
        values = (resolvent * (entered @ self.into.T)) @ self.out_of
        return np.asarray(values.reshape(z.size, -1))


def _tables(
    processes: Sequence[Process],
    hop: tuple[int, ...],
    beside: tuple[int, ...],
    kept: Collection[int],
) -> _HopTables:
    size = math.prod(processes[each].up.size for each in (*hop, *beside))
    ups = math.prod(int(processes[each].up.sum()) for each in hop)
    if size > MOST_PHASES or size * ups**2 > MOST_WORK:
        raise TooManyPhasesError
    entering, leaving = [], []
    for each in hop:
        process, modes = processes[each], processes[each].modes
        entering.append(modes.left[:, process.up])
        met_at_any_moment = (process.stationary @ modes.right)[:, None]
        same = np.eye(process.up.size, dtype=np.complex128)
        leaving.append(same if each in kept else met_at_any_moment)
    into = _product(entering)
    pairs = _product([_from_met(processes[each]) for each in hop])[:, :, None] * into[:, None, :]
    return _HopTables(
        rates=np.add.outer(_sums(processes, beside), _sums(processes, hop)),
        into=into,
        pairs=pairs.reshape(len(pairs), -1),
        out_of=_product(leaving),
    )


def _product(matrices: Sequence[Complexes]) -> Complexes:
    """Compute the Kronecker product over all joint modes: the last matrix varies fastest."""
    product: Complexes = np.ones((1, 1), np.complex128)
    for matrix in matrices:
        product = np.asarray(np.kron(product, matrix), np.complex128)
    return product


def _sums(processes: Sequence[Process], chosen: Sequence[int]) -> Complexes:
    """Sum the rates of all joint modes of some processes, in 1/s, the last varying fastest."""
    rates = [processes[each].modes.rates for each in chosen]
    return np.asarray(reduce(np.add.outer, rates, np.zeros(()))).ravel().astype(np.complex128)


def _along(values: Complexes, axis: int, matrix: Complexes) -> Complexes:
    """Multiply each row vector along an axis by a matrix."""
    turned: Complexes = np.moveaxis(np.tensordot(values, matrix, axes=(axis, 0)), -1, axis)
    return turned


# ---- waits over whole paths ----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Waits:
    """The waits in buffers of a system, path by path."""

    grid: Grid
    routes: Routes
    components: Components
    _over_arc: dict[int, Complexes] = field(default_factory=dict)
    _to_home: dict[tuple[int, int], list[Complexes]] = field(default_factory=dict)

    @cached_property
    def _small_per_s(self) -> float:
        """A z so small that the transform there tells the mean."""
        return _SMALL / typical_wait_s(self.components)

    @cached_property
    def _z(self) -> Complexes:
        small = self._small_per_s
        return np.concatenate([self.grid.z, np.array([small, 2.0 * small], np.complex128)])

    def to_home(self, home: int, tree: int, starts: dict[int, Path]) -> Delays:
        """Compute the wait on all of a path of an event whose first broker is up, [start]."""
        key = (home, tree)
        if key not in self._to_home:
            if any(other[0] != home for other in self._to_home):
                self._to_home.clear()  # homes are asked for one after the other
            self._to_home[key] = self._carried(home, tree)
        rows = self._to_home[key]
        atoms = [self._atom(path) for path in starts.values()]
        return self._as_delays(np.array([rows[start] for start in starts]), np.array(atoms))

    def cut_off(self, path: Path, order: Sequence[int], shares: Floats) -> Delays:
        """Compute the wait of what starts in joint phases of all processes of a path.

        ``shares`` sum to those that wait; the rest does not. One delay.
        """
        everything = {each for needed in self.components.of_path(path) for each in needed}
        remaining, z = at_the_end(self._z), self._z
        hops = list(zip(path.brokers, path.arcs, path.brokers[1:], strict=False))
        for sender, arc, receiver in reversed(hops):
            needed = self.components.hop(sender, arc, receiver)
            remaining = before_hop(self.components.processes, needed, remaining, everything, z)
        held = float(shares.sum())
        values = 1.0 - held + remaining.weighted(self.components.processes, shares, order)
        return self._as_delays(values[None, :], np.array([1.0 - held]))

    def _as_delays(self, values: Complexes, atoms: Floats) -> Delays:
        once, twice = ((1.0 - values[:, -2:].real) / (self._small_per_s * np.array([1.0, 2.0]))).T
        delays = nothing(self.grid, len(values))
        return Delays(
            grid=self.grid,
            survival=delays.survival,
            shift_s=delays.shift_s,
            mean_s=np.where(atoms < 1.0, np.maximum(2.0 * once - twice, 0.0), 0.0),
            atom=atoms,
            values=values[:, :-2],
        )

    def _atom(self, path: Path) -> float:
        """Compute P[all is up that a path needs], given that its first broker is."""
        needs = self.components.of_path(path)
        everything = {each for needed in needs for each in needed}
        return self.components.all_up(everything.difference(needs[0]))

    def _carried(self, home: int, tree: int) -> list[Complexes]:
        """Compute the transform of the wait from each broker to home, [broker]."""
        processes, arcs = self.components.processes, self.routes.arcs
        order = list(topology.walk(self.routes.trees[tree], arcs, home))
        met_before = self._shared_beyond(order)
        memoryless = not self.components.shared and all(each.forgets for each in processes)
        z = self._z
        rows = {home: at_the_end(z)}
        values = {home: rows[home].values}
        for broker, into in order[1:]:
            arc, receiver = into ^ 1, arcs[into].source
            if memoryless:
                values[broker] = self._hop_alone(broker, arc, receiver) * values[receiver]
                continue
            own = self.components.of_broker[broker]
            needed = self.components.hop(broker, arc, receiver)
            kept = met_before[broker].union(own)
            rows[broker] = before_hop(processes, needed, rows[receiver], kept, z)
            values[broker] = rows[broker].given(processes, own)
        return [values[broker] for broker in range(len(values))]

    def _shared_beyond(self, order: Sequence[tuple[int, int]]) -> dict[int, set[int]]:
        """Find, for each broker, failure groups that events may have met until they leave it."""
        parts = self.components
        beyond = {broker: parts.shared.intersection(parts.of_broker[broker]) for broker, _ in order}
        met = {broker: set(groups) for broker, groups in beyond.items()}
        for broker, into in reversed(order):
            if into >= 0:
                link = parts.shared.intersection(parts.of_link[into >> 1])
                met[self.routes.arcs[into].source] |= met[broker] | link
        return met

    def _hop_alone(self, sender: int, arc: int, receiver: int) -> Complexes:
        """Compute the transform of the wait for one hop, where hops are independent."""
        if arc not in self._over_arc:
            processes, own = self.components.processes, self.components.of_broker[sender]
            needed = self.components.hop(sender, arc, receiver)
            before = before_hop(processes, needed, at_the_end(self._z), own, self._z)
            self._over_arc[arc] = before.given(processes, own)
        return self._over_arc[arc]


def typical_wait_s(components: Components) -> float:
    """Bound the mean wait for a hop in seconds, roughly: the longest that a hop is down."""
    longest = 0.0
    for link, (first, second) in enumerate(components.ends):
        needed = components.hop(first, 2 * link, second)
        up, fails_per_s = components.all_up(needed), components.fails_per_s(needed)
        if fails_per_s > 0.0:
            longest = max(longest, (1.0 - up) / (up * fails_per_s))
    return longest or 1.0


def shortest_phase_s(components: Components) -> float:
    """Find the mean of the shortest phase down of any process, in seconds."""
    rates = [float(-np.diag(each.generator)[~each.up].min()) for each in components.processes]
    return 1.0 / max(rates, default=1.0)


def follows(components: Components) -> bool:
    """Tell whether the joint phases of every single hop are few enough to be followed."""
    processes = components.processes
    for link, (first, second) in enumerate(components.ends):
        needed = components.hop(first, 2 * link, second)
        size = math.prod(processes[each].up.size for each in needed)
        ups = math.prod(int(processes[each].up.sum()) for each in needed)
        if size > MOST_PHASES or size * ups**2 > MOST_WORK:
            return False
    return True
