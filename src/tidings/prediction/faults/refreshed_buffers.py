"""Waits in buffers of brokers that after a crash know no subscriptions until the next refresh.

Such a broker keeps what it has; what it gets from others it takes, and keeps too. All brokers and
links from where the event is to its end are one chain; every ``every_s`` seconds a refresh comes
from the end and goes as far as all is up. At the moment at which it reaches the broker that has
the event, all behind that is up and knows the subscription, and the event goes through.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import sparse

from tidings.prediction.faults.buffer_delays import TabulatedWait
from tidings.prediction.faults.buffered_ways import hops
from tidings.prediction.faults.processes import Floats, Process
from tidings.prediction.faults.refresh_chain import Evolution, RefreshChain
from tidings.prediction.faults.waiting import Hop, Journey, Start, Wait, journey

_MOMENTS, _MOST_MOMENTS = 16, 64  # of an interval between refreshes, for publications
_LONG_REPAIRS = 20.0  # intervals; where repairs take longer, refreshes might as well be random
_LEFT = 1e-3  # share of the waits that the table leaves to its exponential tail
_MOST_INTERVALS = 400


def refreshed_wait(chain: RefreshChain, waits: Floats | None = None) -> TabulatedWait | Wait:
    """The wait of an event whose home is up, on its usual way.

    ``waits`` is, where an event may go other ways, the probability that it has to wait for its
    usual one, by joint phase of the chain.
    """
    around = chain.surroundings
    processes = around.network.components.processes
    phases = around.phases()
    home_up = around.up(phases, around.network.components.of_broker[around.path.brokers[0]])
    chosen = home_up if waits is None else home_up * waits
    start = Start(processes=around.processes, shares=chain.after)
    going = journey(processes, _hops(chain), start)
    renewal, generator = _renewal(chain, going)
    longest_s = max(_mean_down_s(processes[each]) for each in around.processes)
    often = longest_s > _LONG_REPAIRS * chain.refreshes.every_s
    evolution = Evolution(generator)
    count = math.ceil(evolution.per_s * chain.refreshes.every_s)
    count = _MOMENTS if often else min(max(_MOMENTS, count), _MOST_MOMENTS)
    rows = np.array(
        [
            going.initial(
                processes,
                Start(processes=around.processes, shares=shares * chosen / (shares @ home_up)),
            )
            for shares in chain.moments(count)
        ]
    )
    if often:
        return _with_random_refreshes(rows, generator, renewal, chain.refreshes.every_s)
    return _tabulated(rows, evolution, renewal, chain.refreshes.every_s)


def _hops(chain: RefreshChain) -> list[Hop]:
    """The hops of the way; to its end all that refreshes depend on is followed."""
    around = chain.surroundings
    components = around.network.components
    found = hops(components, around.path)
    own = {each for needed in components.of_path(around.path) for each in needed}
    beside = {
        each: np.ones(len(components.processes[each].up), np.bool_)
        for each in set(around.processes) - own
    }
    return [*found[:-1], {**found[-1], **beside}]


def _mean_down_s(process: Process) -> float:
    """The mean time of a repair, in seconds."""
    breaking = process.generator[np.ix_(process.up, ~process.up)].sum(axis=1)
    breaks_per_s = float(process.stationary[process.up] @ breaking)
    return (1.0 - process.availability) / breaks_per_s if breaks_per_s > 0.0 else 0.0


def _renewal(chain: RefreshChain, going: Journey) -> tuple[sparse.csr_array, sparse.csr_array]:
    """What a refresh makes of waiting states, and the rates between them with others' refreshes."""
    around = chain.surroundings
    origins = [None, *(origin for origin, _ in chain.refreshes.streams)]
    rows: list[list[sparse.csr_array]] = [[] for _ in origins]
    processes = around.network.components.processes
    for followed, waiting, entering in zip(
        going.followed, going.waiting, going.entering, strict=True
    ):
        sizes = [len(processes[each].up) for each in followed]
        places = np.flatnonzero(waiting)
        phases = dict(zip(followed, np.unravel_index(places, sizes), strict=True))
        for origin, found in zip(origins, rows, strict=True):
            after = around.renewed(phases, origin) if places.size else phases
            index = np.ravel_multi_index([after[each] for each in followed], sizes)
            found.append(entering[index])
    renewals = [sparse.csr_array(sparse.vstack(found)) for found in rows]
    generator = going.generator
    stays = sparse.eye_array(generator.shape[0])
    for (_, per_s), renewal in zip(chain.refreshes.streams, renewals[1:], strict=True):
        generator = generator + per_s * (renewal - stays)
    return renewals[0], sparse.csr_array(generator)


def _with_random_refreshes(
    rows: Floats, generator: sparse.csr_array, renewal: sparse.csr_array, every_s: float
) -> Wait:
    """Refreshes at random moments, with the same mean time to the next."""
    stays = sparse.eye_array(generator.shape[0])
    rates = generator + (renewal - stays) * (2.0 / every_s)
    return Wait(initial=rows.mean(axis=0), generator=sparse.csr_array(rates))


def _tabulated(
    rows: Floats, chain: Evolution, renewal: sparse.csr_array, every_s: float
) -> TabulatedWait:
    """P[wait > t] at regular moments, for events published in the middle between these.

    In half steps: an event published (j + ½) steps after a refresh meets the next one in the
    middle of a step, and so all others.
    """
    count = len(rows)
    half_s = 0.5 * every_s / count
    seen = [np.ones(rows.shape[1])]
    for _ in range(2 * count - 1):
        seen.append(chain.means(seen[-1], half_s))
    remains = np.array(seen).T  # of each state, so many half steps later if no refresh comes
    lines = [[row @ remains[:, : 2 * (count - place) - 1]] for place, row in enumerate(rows)]
    refreshed = np.empty_like(rows)
    for elapsed in range(1, 2 * count):
        rows = chain.shares(rows, half_s)
        if elapsed % 2:
            place = count - (elapsed + 1) // 2
            refreshed[place] = rows[place] @ renewal
    begun = float(sum(line[0][0] for line in lines))
    for _ in range(_MOST_INTERVALS):
        for line, block in zip(lines, refreshed @ remains, strict=True):
            line.append(block)
        refreshed = chain.shares(refreshed, every_s) @ renewal
        if float(refreshed.sum()) <= _LEFT * begun:
            break
    left = _averaged(lines)
    return TabulatedWait(
        step_s=2.0 * half_s, left=left, tail_per_s=_falling(left[-1 - count], left[-1]) / every_s
    )


def _averaged(lines: Sequence[Sequence[Floats]]) -> Floats:
    """The mean over publications, every second half step as far as all of them are known."""
    length = min(sum(part.size for part in line) for line in lines)
    found: Floats = np.mean([np.concatenate(line)[:length:2] for line in lines], axis=0)
    return found


def _falling(before: float, after: float) -> float:
    """By how much the logarithm of what is left falls in an interval."""
    if after <= 0.0:
        return 1.0
    return max(math.log(before / after), 1e-6)
