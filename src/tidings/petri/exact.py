"""Small nets with exponential times solved exactly: the stationary law of their Markov chain."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

from tidings.errors import UnsupportedError
from tidings.petri.cells import Cells
from tidings.petri.flattening import flatten
from tidings.petri.markings import Event, Marking, Markings
from tidings.petri.net import Net
from tidings.petri.outcome import NetOutcome
from tidings.petri.reading import checked
from tidings.petri.traffic import refuse_overload, solve_traffic

Floats = NDArray[np.float64]

MOST_STATES = 20_000


def solve_exactly(net: Net, *, most_states: int = MOST_STATES) -> NetOutcome:
    """Throughput, population, residence and utilisation of a small net, exactly.

    All times must be exponential, and the markings that can be reached must be few: closed nets and
    those whose sources stop when something is full. Residence times are by Little's law; quantiles
    and ages are not told.
    """
    cells = Cells(net=flatten(checked(net)))
    refuse_overload(solve_traffic(cells))
    rules = Markings(cells=cells)
    reached, events = _explored(rules, most_states)
    share = _stationary(reached, events)
    throughput, population = np.zeros(len(cells.all)), np.zeros(len(cells.all))
    busy = np.zeros(len(rules.queues))
    for marking, weight in zip(reached, share.tolist(), strict=True):
        population += weight * np.array(marking.held)
        for number, (serving, waiting) in enumerate(marking.lines):
            np.add.at(population, [*serving, *waiting], weight)
            queue = rules.queues[number]
            infinite = queue.discipline == "infinite-server"
            servers = max(1, len(serving)) if infinite else queue.servers
            busy[number] += weight * min(len(serving), servers) / (1 if infinite else servers)
        for event in events[marking]:
            for cell, mean in event.arrivals.items():
                throughput[cell] += weight * event.rate_per_s * mean
    return _outcome(rules, throughput, population, busy, len(reached))


def _explored(
    rules: Markings, most_states: int
) -> tuple[dict[Marking, int], dict[Marking, list[Event]]]:
    """Every marking that can be reached, by position, and what may happen there."""
    reached = {marking: at for at, marking in enumerate(rules.first)}
    events: dict[Marking, list[Event]] = {}
    waiting = list(reached)
    while waiting:
        marking = waiting.pop()
        events[marking] = list(rules.events(marking))
        for event in events[marking]:
            for target in event.targets:
                if target not in reached:
                    reached[target] = len(reached)
                    waiting.append(target)
        if len(reached) > most_states:
            raise UnsupportedError(
                f"this net has more than {most_states:,} markings, or no end of them; exact "
                "solutions are of small nets. Solve it by simulation"
            )
    return reached, events


def _stationary(reached: dict[Marking, int], events: dict[Marking, list[Event]]) -> Floats:
    """The share of time in each marking."""
    size = len(reached)
    rates = sparse.dok_array((size, size), dtype=np.float64)
    for marking, found in events.items():
        for event in found:
            for target, part in event.targets.items():
                if target != marking:
                    rates[reached[marking], reached[target]] += event.rate_per_s * part
    rates = rates.tocsr()
    count, member = csgraph.connected_components(rates, directed=True, connection="strong")
    source, target = rates.nonzero()
    left = set(member[source[member[source] != member[target]]].tolist())
    closed = [each for each in range(count) if each not in left]
    if len(closed) != 1:
        raise UnsupportedError(
            f"this net ends up in one of {len(closed)} sets of markings that it never leaves, by "
            "chance; it has no one steady state"
        )
    inside = np.flatnonzero(member == closed[0])
    block = rates[inside][:, inside]
    generator = block - sparse.diags_array(np.asarray(block.sum(axis=1)).ravel())
    # One balance equation follows from the others; that the shares add up to 1 takes its place.
    balance = generator.T.tocsr()[:-1]
    system = sparse.vstack([balance, sparse.csr_array(np.ones((1, inside.size)))]).tocsc()
    right = np.zeros(inside.size)
    right[-1] = 1.0
    shares = np.zeros(size)
    shares[inside] = sparse_linalg.splu(system).solve(right)
    return shares


def _outcome(
    rules: Markings, throughput: Floats, population: Floats, busy: Floats, states: int
) -> NetOutcome:
    cells = rules.cells
    stay_s = np.divide(
        population, throughput, out=np.full(population.size, np.nan), where=throughput > 0.0
    )
    none, exact = np.full(population.size, np.nan), np.zeros(population.size)
    table = pd.DataFrame(
        {
            "place": [place for place, _ in cells.all],
            "colour": [colour for _, colour in cells.all],
            "throughput_per_s": throughput,
            "throughput_se_per_s": exact,
            "population": population,
            "population_se": exact,
            "residence_mean_s": stay_s,
            "residence_mean_se_s": exact,
            "age_mean_s": none,
            "age_mean_se_s": none,
        }
    )
    names = [place.name for place in cells.net.places if place.queue is not None]
    here = table.groupby("place", sort=False)[["throughput_per_s", "population"]].sum()
    here = here.reindex(names, fill_value=0.0)
    places = pd.DataFrame(
        {
            "place": names,
            "servers": [
                1 if queue.discipline == "infinite-server" else queue.servers
                for queue in rules.queues
            ],
            "discipline": [queue.discipline for queue in rules.queues],
            "throughput_per_s": here["throughput_per_s"].to_numpy(),
            "population": here["population"].to_numpy(),
            "utilisation": busy,
            "utilisation_se": np.zeros(len(names)),
            "residence_mean_s": (here["population"] / here["throughput_per_s"]).to_numpy(),
            "residence_mean_se_s": np.zeros(len(names)),
        }
    )
    provenance = {"engine": "exact: Markov chain of the net", "markings": states, "notes": []}
    return NetOutcome(cells=table, places=places, provenance=provenance)
