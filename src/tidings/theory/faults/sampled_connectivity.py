"""Which brokers are joined, from random states of a network too large to be followed exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from tidings.theory.faults.disjoint_products import Network

SAMPLES = 40_000
_SEED = 20_120  # of the states drawn; the same network gives the same numbers
_BLOCK = 1 << 19  # brokers handled at once


class Sampled(NamedTuple):
    """A share and its standard error."""

    share: float
    se: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Random states: the part each broker is in, and whether it is up, [state, broker]."""

    parts: NDArray[np.int32]
    up: NDArray[np.bool_]
    works: NDArray[np.uint8]  # which processes are up, eight in a number, [state, number]

    def joined(self, source: int, target: int) -> NDArray[np.bool_]:
        """Whether two brokers are up and joined, [state]."""
        same = self.parts[:, source] == self.parts[:, target]
        return np.asarray(same & self.up[:, source] & self.up[:, target])

    def process_up(self, process: int) -> NDArray[np.bool_]:
        """Whether a process is up, [state]."""
        return np.asarray(self.works[:, process >> 3] >> (7 - process % 8) & 1, np.bool_)

    def connected(self, source: int, target: int) -> Sampled:
        """P[two brokers are up and joined] as seen."""
        both = self.joined(source, target)
        share, count = float(both.mean()), both.size
        # As if one more of each had been seen: no event is ever quite sure.
        careful = (share * count + 1.0) / (count + 2.0)
        return Sampled(share, math.sqrt(careful * (1.0 - careful) / count))


def samples(known: Network, count: int = SAMPLES) -> Samples:
    """Draw so many states of a network, failure groups included."""
    rng = np.random.default_rng(_SEED)
    components = known.components
    brokers = len(components.of_broker)
    step = max(1, _BLOCK // brokers)
    parts = np.empty((count, brokers), np.int32)
    up = np.empty((count, brokers), np.bool_)
    all_works = []
    ends = np.array(known.ends, dtype=np.int64).reshape(-1, 2)
    availability = np.array([each.availability for each in components.processes])
    for begin in range(0, count, step):
        size = min(step, count - begin)
        works = rng.random((size, availability.size)) < availability
        all_works.append(np.packbits(works, axis=1))
        broker_up = _all_up(works, components.of_broker)
        link_up = _all_up(works, components.of_link)
        link_up &= broker_up[:, ends[:, 0]] & broker_up[:, ends[:, 1]]
        state, link = np.nonzero(link_up)
        first, second = (state * brokers + ends[link, side] for side in (0, 1))
        total = size * brokers
        graph = sparse.csr_array((np.ones(first.size, np.int8), (first, second)), (total, total))
        _, labels = csgraph.connected_components(graph, directed=False)
        parts[begin : begin + size] = labels.reshape(size, brokers)
        up[begin : begin + size] = broker_up
    return Samples(parts=parts, up=up, works=np.concatenate(all_works))


def _all_up(works: NDArray[np.bool_], needs: tuple[tuple[int, ...], ...]) -> NDArray[np.bool_]:
    found = np.ones((len(works), len(needs)), np.bool_)
    for column, needed in enumerate(needs):
        if needed:
            found[:, column] = works[:, list(needed)].all(axis=1)
    return found
