"""Open nets whose queues can be solved one by one: those that have a product form.

Without forks these are the networks of Baskett, Chandy, Muntz and Palacios: Poisson sources, tokens
that go from place to place by fixed probabilities, and queues that are first come first served with
one exponential service for all colours, processor sharing or infinite servers with any service.
Forks are allowed as long as no place can be reached over two branches of one: looking back from any
queue, all that led there is then such a network.

What leaves a queue that serves some colours before others is no such stream any more. One with one
exponential law is solved (Cobham) where no other queue, and not itself, comes behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tidings.model.arrays import Floats
from tidings.model.laws import Exponential
from tidings.model.loads import waiting_probability
from tidings.petri.cells import Cells
from tidings.petri.net import Mode, Queue
from tidings.petri.traffic import Traffic


@dataclass(frozen=True, kw_only=True)
class ProductForm:
    """The populations of an open net, queue by queue, where ``problem`` says nothing against it."""

    cells: Cells
    traffic: Traffic

    @cached_property
    def problem(self) -> str:
        """Why the net has no product form that is known here; "" if it has."""
        return next(self._problems(), "")

    @cached_property
    def populations(self) -> Floats:
        """Mean tokens of every cell."""
        tokens = np.zeros(len(self.cells.all))
        for place in self.cells.net.places:
            if place.queue is None:
                continue
            here = [at for at, cell in enumerate(self.cells.all) if cell[0] == place.name]
            work = np.array([self._work(place.queue, at) for at in here])
            offered, servers = float(work.sum()), place.queue.servers
            if place.queue.discipline == "infinite-server" or offered == 0.0:
                tokens[here] = work
                continue
            # Mean wait in services until a server is free, were nobody let past.
            wait = waiting_probability(servers, offered) / servers
            tokens[here] = work * (1.0 + wait * self._queueing(place.queue, here, work / servers))
        return tokens

    def _queueing(self, queue: Queue, here: list[int], loads: Floats) -> Floats:
        """How many times as long colours wait in line as for the first server to become free.

        1/((1 − σ')(1 − σ)), where σ is the load of colours that are served before or in turn with
        one, σ' of those before it (Cobham, 1954); without priorities σ' = 0.
        """
        ranks = np.array([_rank(queue, self.cells.all[at][1]) for at in here])
        before = np.array([loads[ranks > rank].sum() for rank in ranks])
        in_turn = np.array([loads[ranks >= rank].sum() for rank in ranks])
        factors: Floats = 1.0 / ((1.0 - before) * (1.0 - in_turn))
        return factors

    def busy_servers(self, place: str) -> float:
        """Mean number of servers at work."""
        queue = self.cells.places[place].queue
        assert queue is not None
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
        for place in self.cells.net.places:
            if place.queue is not None:
                yield from self._queue_problems(place.name, place.queue)

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
        queue = self.cells.places[place].queue
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
    """Which colours a queue serves first; 0 for all where it heeds no priorities."""
    return dict(queue.priorities).get(colour, 0) if queue.discipline == "priority" else 0
