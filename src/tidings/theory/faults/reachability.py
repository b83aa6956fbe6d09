"""Whether two brokers can reach each other: exactly, bounded or sampled, whatever the network asks.

Failure groups are looked at one state of theirs after the other: given it, all that is left to
chance is independent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from tidings.theory.faults.components import Components, Path
from tidings.theory.faults.connectivity import Graph, TooWideError, connected, joined
from tidings.theory.faults.disjoint_paths import disjoint_path_bound
from tidings.theory.faults.disjoint_products import Network, ways_used
from tidings.theory.faults.processes import Floats
from tidings.theory.faults.sampled_connectivity import Samples, samples
from tidings.theory.faults.waiting import Start, phases_of

MOST_GROUPS = 8  # whose states are gone through one by one
_CELLS, _CLOSE = 400, 1e-3  # bounds are taken where so many cells bring them so close
MOST_JOINT_PHASES = 1 << 15  # of all processes of one way
_MOST_SAMPLED = 1 << 13  # the same where they are seen in random states only
_FEW_PHASES = 3  # of a component: up, perhaps up without its subscriptions, down
_MOST_FITTED = 256  # the same where times up and down have several phases, of very unlike rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """P[two brokers can reach each other], how far it can be off, and how it was found."""

    share: float
    error: float | None  # None: not known
    method: str  # exact | bounds | sampled (then the error is a standard error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachability:
    """Answers for one network, each pair computed once."""

    network: Network
    _known: dict[tuple[int, int], Reached] = field(default_factory=dict)
    _samples: list[Samples] = field(default_factory=list)

    def between(self, usual: Path) -> Reached:
        """P[the ends of a way can reach each other over any way]."""
        ends = usual.brokers[0], usual.brokers[-1]
        key = min(ends), max(ends)
        if key not in self._known:
            self._known[key] = self._found(usual)
        return self._known[key]

    def _found(self, usual: Path) -> Reached:
        source, target = usual.brokers[0], usual.brokers[-1]
        try:
            parts = [
                share * connected(graph, source, target)
                for _, share, graph in graphs(self.network, source, target)
            ]
            return Reached(share=math.fsum(parts), error=0.0, method="exact")
        except TooWideError:
            pass
        low, high = self._bounds(usual)
        if high - low <= _CLOSE:
            return Reached(share=0.5 * (low + high), error=0.5 * (high - low), method="bounds")
        seen = self.samples.connected(source, target)
        share = min(max(seen.share, low), high)
        return Reached(share=share, error=min(seen.se, high - low), method="sampled")

    def _bounds(self, usual: Path) -> tuple[float, float]:
        """Between which the probability surely lies, whatever bounds it best.

        Cells cut the states by ways one after the other; ways without a common broker, where
        components fail independently, bound better what has many of them.
        """
        components, ends = self.network.components, (usual.brokers[0], usual.brokers[-1])
        used = ways_used(self.network, usual, gap=_CLOSE, most_cells=_CELLS, shortest=True)
        low, high = used.bounds
        if not components.shared:
            low = max(low, disjoint_path_bound(_graph(self.network, {}), *ends))
        both = {each for end in ends for each in components.of_broker[end]}
        return low, max(min(high, components.all_up(both)), low)

    @property
    def samples(self) -> Samples:
        """Random states of the network, drawn once."""
        if not self._samples:
            self._samples.append(samples(self.network))
        return self._samples[0]

    def sampled_cut_off(self, usual: Path, survives: float) -> tuple[Start, float] | None:
        """As :func:`cut_off`, from random states, with the standard error of shares found by it.

        None where there are too many phases, or more than up and down are to be told apart.
        """
        components = self.network.components
        needed = sorted({each for element in components.of_path(usual) for each in element})
        if any(len(components.processes[each].up) != 2 for each in needed):
            return None
        if 1 << len(needed) > _MOST_SAMPLED:
            return None
        seen = self.samples
        source, target = usual.brokers[0], usual.brokers[-1]
        works = [seen.process_up(each) for each in needed]
        through = np.where(np.all(works, axis=0), 1.0, survives) * seen.joined(source, target)
        waits = seen.up[:, source] * (1.0 - through)
        code = np.zeros(waits.size, np.int64)
        for each, up in zip(needed, works, strict=True):
            code = 2 * code + (up != components.processes[each].up[0])
        home = components.all_up(components.of_broker[source])
        shares = np.bincount(code, waits, 1 << len(needed)) / (waits.size * home)
        start = Start(processes=tuple(needed), shares=shares)
        return start, seen.connected(source, target).se

    def disjoint_paths(self, usual: Path) -> Reached:
        """The published lower bound, for components that fail independently."""
        source, target = usual.brokers[0], usual.brokers[-1]
        graph = _graph(self.network, {})
        share = disjoint_path_bound(graph, source, target)
        return Reached(share=share, error=None, method="disjoint paths")


def graphs(
    network: Network, source: int, target: int
) -> Iterator[tuple[dict[int, bool], float, Graph]]:
    """Every state of the failure groups that matter, its probability, and the graph given it."""
    components = network.components
    relevant = _graph(network, {}).between(source, target) if source != target else None
    groups = sorted(components.shared & _used(network, relevant, source))
    if len(groups) > MOST_GROUPS:
        raise TooWideError
    for combination in itertools.product((True, False), repeat=len(groups)):
        state = dict(zip(groups, combination, strict=True))
        share = math.prod(
            _share(components, each) if up else 1.0 - _share(components, each)
            for each, up in state.items()
        )
        yield state, share, _graph(network, state)


def _share(components: Components, process: int) -> float:
    return components.processes[process].availability


def _used(network: Network, relevant: Graph | None, source: int) -> set[int]:
    """The processes of what lies between two brokers."""
    components = network.components
    brokers = [source] if relevant is None else list(relevant.brokers)
    found = {each for broker in brokers for each in components.of_broker[broker]}
    for needed, ends in zip(components.of_link, network.ends, strict=True):
        if relevant is not None and ends in relevant.links:
            found.update(needed)
    return found


def _graph(network: Network, state: dict[int, bool]) -> Graph:
    """Availabilities given the state of some processes."""
    components = network.components

    def up(needed: tuple[int, ...]) -> float:
        return math.prod(
            float(state[each]) if each in state else _share(components, each) for each in needed
        )

    return Graph(
        brokers={broker: up(needed) for broker, needed in enumerate(components.of_broker)},
        links={
            ends: up(needed) for ends, needed in zip(network.ends, components.of_link, strict=True)
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WayStates:
    """All joint phases of a way's processes, and what each means for the way."""

    processes: tuple[int, ...]
    shares: Floats  # [joint phase]
    up: list[NDArray[np.bool_]]  # of each element of the way: broker, link, broker …
    reached: Floats  # P[the ends reach each other], given the joint phase
    known: NDArray[np.bool_]  # whether all brokers of the way that are up know the subscription

    def waits(self, survives: float) -> Floats:
        """P[an event must wait for its usual way], by joint phase.

        That is when its home cannot reach the other end, a broker of the way that is up does not
        know the subscription, or the copy sent round is lost by chance: it ``survives`` with a
        probability.
        """
        way_up = np.all(self.up, axis=0)
        through = np.where(way_up, 1.0, self.reached * survives)
        return np.asarray(1.0 - self.known * through, np.float64)


def way_states(network: Network, usual: Path) -> WayStates | None:
    """The states of a way, and whether there is a way around; None where there are too many.

    Raises TooWideError where what lies beside the way cannot be followed exactly.
    """
    components = network.components
    needs = components.of_path(usual)
    followed = tuple(sorted({each for needed in needs for each in needed}))
    count = phases_of(components.processes, followed)
    plain = all(len(components.processes[each].up) <= _FEW_PHASES for each in followed)
    if count > (MOST_JOINT_PHASES if plain else _MOST_FITTED):
        return None
    stationary = [components.processes[each].stationary for each in followed]
    shares: Floats = reduce(np.multiply.outer, stationary, np.ones(())).ravel()
    sizes = [each.size for each in stationary]
    phase = np.unravel_index(np.arange(count), sizes) if sizes else ()
    up = {each: components.processes[each].up[at] for each, at in zip(followed, phase, strict=True)}
    able = [components.processes[e].able[at] for e, at in zip(followed, phase, strict=True)]
    element_up = [
        reduce(np.logical_and, [up[each] for each in needed], np.ones(count, np.bool_))
        for needed in needs
    ]
    reached = reached_given(network, usual, up)
    known = np.ones(count, np.bool_)
    for needed, broker_up in zip(needs[::2], element_up[::2], strict=True):
        for each in needed:
            known &= ~broker_up | able[followed.index(each)]
    return WayStates(processes=followed, shares=shares, up=element_up, reached=reached, known=known)


def reached_given(network: Network, usual: Path, up: Mapping[int, NDArray[np.bool_]]) -> Floats:
    """P[the ends of a way reach each other], in many states of the processes of the way.

    Raises TooWideError where what lies beside the way cannot be followed exactly.
    """
    components = network.components
    count = next((each.size for each in up.values()), 1)
    element_up = [
        reduce(np.logical_and, [up[each] for each in needed], np.ones(count, np.bool_))
        for needed in components.of_path(usual)
    ]
    found = np.zeros(count)
    block = set(_graph(network, {}).between(usual.brokers[0], usual.brokers[-1]).brokers)
    for state, share, graph in graphs(network, usual.brokers[0], usual.brokers[-1]):
        mine = np.ones(count, np.bool_)
        for each, works in state.items():
            if each in up:
                mine &= up[each] == works
                share /= _share(components, each) if works else 1.0 - _share(components, each)
        given = [each[mine] for each in element_up]
        found[mine] += share * _reached_given(_beside(graph, usual, block), usual, given)
    return found


def cut_off(network: Network, usual: Path, survives: float = 1.0) -> Start | None:
    """The joint phases of a way's processes when its home is up and an event must wait.

    Shares are of all moments at which the home broker is up. None where there are too many phases.
    """
    states = way_states(network, usual)
    if states is None:
        return None
    home = network.components.all_up(network.components.of_broker[usual.brokers[0]])
    shares = states.shares * states.up[0] * states.waits(survives) / home
    return Start(processes=states.processes, shares=shares)


def lying_between(network: Network, usual: Path) -> tuple[int, ...]:
    """The links of all ways between the ends of a way."""
    if len(usual.brokers) == 1:
        return ()
    part = _graph(network, {}).between(usual.brokers[0], usual.brokers[-1])
    return tuple(link for link, ends in enumerate(network.ends) if ends in part.links)


def _beside(graph: Graph, usual: Path, block: set[int]) -> Graph:
    """What is beside a way; the brokers of the way are as often up as down, its links never."""
    own = {frozenset(pair) for pair in itertools.pairwise(usual.brokers)}
    return Graph(
        brokers={b: 0.5 if b in usual.brokers else graph.brokers[b] for b in block},
        links={
            ends: 0.0 if frozenset(ends) in own else share
            for ends, share in graph.links.items()
            if block.issuperset(ends)
        },
    )


def _reached_given(beside: Graph, usual: Path, up: list[NDArray[np.bool_]]) -> Floats:
    """P[the ends of a way reach each other], given which of its elements are up, for many cases.

    What is beside the way is followed exactly; the way's own links are then put in case by case.
    """
    labels, shares = joined(beside, usual.brokers)
    shares = shares * 2.0 ** len(usual.brokers)
    places = 2 ** np.arange(len(usual.brokers))
    pattern = (np.array(up[::2]).T @ places).astype(np.int64)
    of_labels = (labels > 0) @ places
    link_places = 2 ** np.arange(len(usual.links))
    link_pattern = (np.array(up[1::2]).T @ link_places).astype(np.int64)
    table = np.zeros((2 ** len(usual.brokers), 2 ** len(usual.links)))
    for links in range(table.shape[1]):
        together = _ends_joined(labels, links)
        np.add.at(table[:, links], of_labels[together], shares[together])
    found: Floats = table[pattern, link_pattern]
    return found


def _ends_joined(labels: NDArray[np.uint8], links: int) -> NDArray[np.bool_]:
    """Whether first and last broker are joined once the links of the way that are up are added."""
    merged = labels.copy()
    for link in range(labels.shape[1] - 1):
        if links >> link & 1:
            here, there = merged[:, link], merged[:, link + 1]
            joins = (here > 0) & (there > 0)
            low, high = np.minimum(here, there)[:, None], np.maximum(here, there)[:, None]
            merged = np.where(joins[:, None] & (merged == high), low, merged)
    found: NDArray[np.bool_] = merged[:, 0] == merged[:, -1]
    return found
