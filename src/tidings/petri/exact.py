"""Nets solved exactly: queue by queue where there is a product form, else by their Markov chain."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

from tidings.errors import UnsupportedError
from tidings.model.arrays import Floats
from tidings.petri.cells import Cells
from tidings.petri.flattening import flatten
from tidings.petri.markings import Event, Marking, Markings
from tidings.petri.net import Net
from tidings.petri.outcome import NetOutcome
from tidings.petri.product_form import ProductForm
from tidings.petri.reading import checked
from tidings.petri.traffic import refuse_overload, solve_traffic

MOST_STATES = 20_000


def solve_exactly(net: Net, *, most_states: int = MOST_STATES) -> NetOutcome:
    """Compute throughput, population, residence and utilisation of a net, exactly.

    Open nets need a product form (:mod:`tidings.petri.product_form`). Of any other all times must
    be exponential, and the markings that can be reached few: closed nets, and those whose sources
    stop when something is full. Residence times are by Little's law; quantiles and ages are not
    computed.
    """
    cells = Cells(net=flatten(checked(net)))
    traffic = solve_traffic(cells)
    refuse_overload(traffic)
    form = ProductForm(cells=cells, traffic=traffic)
    if not form.problem:
        names = [place.name for place in cells.net.places if place.queue is not None]
        busy = np.array([form.busy_servers(name) for name in names])
        return _outcome(cells, traffic.rates_per_s, form.populations, busy, "product form")
    return _by_chain(cells, most_states, form.problem)


def _by_chain(cells: Cells, most_states: int, no_form: str) -> NetOutcome:
    try:
        rules = Markings(cells=cells)
        reached, events = _explored(rules, most_states)
    except UnsupportedError as problem:
        raise UnsupportedError(f"{problem}. It has no product form either: {no_form}") from problem
    share = _stationary(reached, events)
    throughput, population = np.zeros(len(cells.all)), np.zeros(len(cells.all))
    busy = np.zeros(len(rules.queues))
    for marking, weight in zip(reached, share.tolist(), strict=True):
        population += weight * np.array(marking.held)
        for number, (serving, waiting) in enumerate(marking.lines):
            np.add.at(population, [*serving, *waiting], weight)
            queue = rules.queues[number]
            infinite = queue.discipline == "infinite-server"
            busy[number] += weight * min(len(serving), len(serving) if infinite else queue.servers)
        for event in events[marking]:
            for cell, mean in event.arrivals.items():
                throughput[cell] += weight * event.rate_per_s * mean
    how = f"Markov chain of {len(reached):,} markings"
    return _outcome(cells, throughput, population, busy, how)


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
                f"this net has more than {most_states:,} markings; only small nets can be "
                "solved exactly. Leave --exact out to simulate it"
            )
    return reached, events


def _stationary(reached: dict[Marking, int], events: dict[Marking, list[Event]]) -> Floats:
    """The share of time in each marking."""
    size = len(reached)
    rates = sparse.dok_array((size, size), dtype=np.float64)
    for marking, following in events.items():
        for event in following:
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
            "this net has no unique steady state: by chance it ends up in one of "
            f"{len(closed)} sets of markings that it never leaves"
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
    cells: Cells, throughput: Floats, population: Floats, busy: Floats, how: str
) -> NetOutcome:
    """The tables, as a simulation gives them; ``busy`` counts servers at work."""
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
    queues = [place.queue for place in cells.net.places if place.queue is not None]
    servers = [1 if queue.discipline == "infinite-server" else queue.servers for queue in queues]
    places = pd.DataFrame(
        {
            "place": names,
            "servers": servers,
            "discipline": [queue.discipline for queue in queues],
            "throughput_per_s": here["throughput_per_s"].to_numpy(),
            "population": here["population"].to_numpy(),
            "utilisation": busy / np.array(servers),
            "utilisation_se": np.zeros(len(names)),
            "residence_mean_s": (here["population"] / here["throughput_per_s"]).to_numpy(),
            "residence_mean_se_s": np.zeros(len(names)),
        }
    )
    provenance = {"engine": f"exact: {how}", "notes": []}
    return NetOutcome(cells=table, places=places, provenance=provenance)
