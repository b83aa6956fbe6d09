"""Nets solved exactly: queue by queue where there is a product form, else by their Markov chain.

Open nets without forks that have a product form are the networks of Baskett, Chandy, Muntz and
Palacios: Poisson sources, tokens that go from place to place by fixed probabilities, and queues
that are first come first served with one exponential service for all colours, processor sharing or
infinite servers with any service. Forks are allowed as long as no place can be reached over two
branches of one: looking back from any queue, all that led there is then such a network.

What leaves a queue that serves some colours before others is no such stream any more. One with one
exponential law is solved (Cobham) where no other queue, and not itself, comes behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

from tidings.errors import UnsupportedError
from tidings.model.arrays import Floats
from tidings.model.laws import Exponential
from tidings.model.loads import waiting_probability
from tidings.petri.cells import NetCells, flatten
from tidings.petri.markings import Event, Marking, Markings
from tidings.petri.net import Mode, Net, Queue
from tidings.petri.outcome import NetOutcome, queueing_places
from tidings.petri.reading import checked
from tidings.petri.traffic import NetTraffic, refuse_overload, solve_traffic


@dataclass(frozen=True, kw_only=True)
class ProductForm:
    """The populations of an open net, queue by queue, where ``problem`` says nothing against it."""

    cells: NetCells
    traffic: NetTraffic

    @cached_property
    def problem(self) -> str:
        """Why the net has no product form that is known here; "" if it has."""
        return next(self._problems(), "")

    @cached_property
    def populations(self) -> Floats:
        """Mean tokens of every cell."""
        tokens = np.zeros(len(self.cells.all))
        for name, queue in self.cells.queues.items():
            here = [at for at, cell in enumerate(self.cells.all) if cell[0] == name]
            work = np.array([self._work(queue, at) for at in here])
            offered, servers = float(work.sum()), queue.servers
            if queue.discipline == "infinite-server" or offered == 0.0:
                tokens[here] = work
                continue
            # Mean wait in services until a server is free, were nobody let past.
            wait = waiting_probability(servers, offered) / servers
            tokens[here] = work * (1.0 + wait * self._queueing(queue, here, work / servers))
        return tokens

    def _queueing(self, queue: Queue, here: list[int], loads: Floats) -> Floats:
        """Compute how many times as long colours wait in line as for the first server to be free.

        1/((1 − σ')(1 − σ)), where σ is the load of colours that are served before or in turn with
        one, σ' of those before it (Cobham, 1954); without priorities σ' = 0.
        """
        ranks = np.array([_rank(queue, self.cells.all[at][1]) for at in here])
        before = np.array([loads[ranks > rank].sum() for rank in ranks])
        in_turn = np.array([loads[ranks >= rank].sum() for rank in ranks])
        factors: Floats = 1.0 / ((1.0 - before) * (1.0 - in_turn))
        return factors

    def busy_servers(self, place: str) -> float:
        """Compute the mean number of servers at work."""
        queue = self.cells.queues[place]
        return sum(
            self._work(queue, at) for at, cell in enumerate(self.cells.all) if cell[0] == place
        )

    def _work(self, queue: Queue, cell: int) -> float:
        law = queue.law_of(self.cells.all[cell][1])
        return 0.0 if law is None else float(self.traffic.rates_per_s[cell]) * law.mean_s

    def _problems(self) -> Iterator[str]:
        if any(self.cells.tokens(cell) for cell in self.cells.all):
            yield "there are tokens at the start"
        if not all(self.cells.is_plain):
            yield "some tokens wait for others, or for a timed transition"
        for mode in self.cells.modes:
            yield from self._mode_problems(mode)
        for name, queue in self.cells.queues.items():
            yield from self._queue_problems(name, queue)

    def _mode_problems(self, mode: Mode) -> Iterator[str]:
        if mode.after is not None and not isinstance(mode.after, Exponential):
            yield "a source is not Poisson"
        if any(arc.count > 1 for arc in mode.put):
            yield "several tokens are put into one place at once"
        seen: set[str] = set()
        for arc in mode.put:
            behind = self._reached[arc.place]
            if seen & behind:
                yield f"copies of one token meet again at '{min(seen & behind)}'"
            seen |= behind

    def _queue_problems(self, name: str, queue: Queue) -> Iterator[str]:
        colours = [
            colour
            for at, (place, colour) in enumerate(self.cells.all)
            if place == name and self.traffic.rates_per_s[at] > 0.0
        ]
        laws = {queue.law_of(colour) for colour in colours}
        alike = len(laws) <= 1 and all(isinstance(law, Exponential) for law in laws)
        any_law = queue.discipline == "infinite-server" or (
            queue.discipline == "processor-sharing" and queue.servers == 1
        )
        if not (any_law or alike):
            yield f"'{name}' does not serve all colours with the same exponential service time"
        elif len({_rank(queue, colour) for colour in colours}) > 1:
            behind = set().union(*(self._reached[place] for place in self._onwards[name]))
            waits = sorted(place for place in behind if self._has_line(place))
            if waits:
                yield f"'{name}' serves by priority, and tokens go on to queue at '{waits[0]}'"

    def _has_line(self, place: str) -> bool:
        queue = self.cells.queues.get(place)
        return queue is not None and queue.discipline != "infinite-server"

    @cached_property
    def _onwards(self) -> dict[str, set[str]]:
        """The places that tokens of any colour can come to next from each."""
        next_places: dict[str, set[str]] = {place.name: set() for place in self.cells.net.places}
        for mode in self.cells.modes:
            for taken in mode.take:
                next_places[taken.place] |= {arc.place for arc in mode.put}
        return next_places

    @cached_property
    def _reached(self) -> dict[str, set[str]]:
        """The places that tokens of any colour can come to from each, itself included."""
        reached = {}
        for name in self._onwards:
            seen, waiting = {name}, [name]
            while waiting:
                more = self._onwards[waiting.pop()] - seen
                seen |= more
                waiting += more
            reached[name] = seen
        return reached


def _rank(queue: Queue, colour: str) -> int:
    """Give a colour's priority (the highest is served first); 0 where the queue heeds none."""
    return dict(queue.priorities).get(colour, 0) if queue.discipline == "priority" else 0


MOST_STATES = 20_000


def solve_exactly(net: Net, *, most_states: int = MOST_STATES) -> NetOutcome:
    """Compute throughput, population, residence and utilisation of a net, exactly.

    Open nets need a product form (:class:`ProductForm`). Of any other all times must
    be exponential, and the markings that can be reached few: closed nets, and those whose sources
    stop when something is full. Residence times are by Little's law; quantiles and ages are not
    computed.
    """
    cells = NetCells(net=flatten(checked(net)))
    traffic = solve_traffic(cells)
    refuse_overload(traffic)
    form = ProductForm(cells=cells, traffic=traffic)
    if not form.problem:
        busy = np.array([form.busy_servers(name) for name in cells.queues])
        return _outcome(cells, traffic.rates_per_s, form.populations, busy, "product form")
    return _by_chain(cells, most_states, form.problem)


def _by_chain(cells: NetCells, most_states: int, no_form: str) -> NetOutcome:
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
    """Find every marking that can be reached, by position, and what may happen there."""
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
    """Compute the share of time in each marking."""
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
    cells: NetCells, throughput: Floats, population: Floats, busy: Floats, how: str
) -> NetOutcome:
    """Make the tables, as a simulation gives them; ``busy`` counts servers at work."""
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
    places = queueing_places(cells, table)
    stays = places["population"] / places["throughput_per_s"]
    places = places.assign(
        utilisation=busy / places["servers"].to_numpy(),
        utilisation_se=0.0,
        residence_mean_s=stays,
        residence_mean_se_s=0.0,
    )
    provenance = {"engine": f"exact: {how}", "notes": []}
    return NetOutcome(cells=table, places=places, provenance=provenance)
