"""A queueing Petri net from a workload, as the performance-methodology paper builds it.

A colour for each flow (event type and publisher). A broker is a place with a queue, or a subnet of
its queues one after the other; what has been served there goes to the next brokers by the modes of
one transition. The paper has a mode for every set of next brokers, 2^m of them; here one mode puts
each copy with a probability of its own, or, where it is known which sets occur and how often, a
mode stands for each of those. A Poisson publisher is a timed transition; any other one is an
infinite server whose one token is put back each time it has published. Networks are places too.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from tidings.model.laws import Exponential, Law
from tidings.model.workload import NO_TIME, SHARES_ROUND_BY, Flow, Workload
from tidings.petri.net import FORMAT_VERSION, Mode, Net, Place, Queue, Subnet, TokenArc, Transition
from tidings.petri.options import FORWARDING

CLOCK = "clock"  # the colour of tokens that stand for publishers
COME, DONE = "come", "done"  # ends of a subnet some of whose queues are passed without stopping
# How copies to several brokers hang together: as measured where that is known, or not at all.


def generate_net(workload: Workload, *, forwarding: str = FORWARDING[0]) -> Net:
    """Make the queueing Petri net of a workload.

    ``forwarding="independent"`` leaves aside what is known of sets of next brokers, as the paper's
    firing weights do.
    """
    return _Generator(workload=workload, joint=forwarding == "joint").net()


def exit_place(workload: Workload, node: int) -> str:
    """Name the (flat) place of the generated net that events leave when a node is done."""
    centres = workload.nodes[node].centres
    name = _plain(workload.nodes[node].name)
    if _is_passed_by(workload, node):
        return f"{name}/{DONE}"
    return name if len(centres) < 2 else f"{name}/{_inner_name(workload, node, centres[-1])}"


def _is_passed_by(workload: Workload, node: int) -> bool:
    """Test whether some flow does not use all queues of a node."""
    centres = workload.nodes[node].centres
    return any(
        law == NO_TIME and at in centres for flow in workload.flows for at, law in flow.services
    )


def colour_of(workload: Workload, flow: int) -> str:
    """Give the colour of a flow in the generated net."""
    return workload.name_of(workload.flows[flow])


def _plain(name: str) -> str:
    return name.replace("/", "|")  # a slash joins subnets and their places


def _inner_name(workload: Workload, node: int, centre: int) -> str:
    full, own = workload.centres[centre].name, workload.nodes[node].name
    return _plain(full.removeprefix(own).strip() or full)


@dataclass(frozen=True, kw_only=True)
class _Generator:
    """Builds the net part by part; each part looks up what it needs of the workload."""

    workload: Workload
    joint: bool

    def net(self) -> Net:
        load = self.workload
        places = [*self._publisher_places(), *self._node_places(), *self._wire_places()]
        places += self._delay_places()
        transitions = [*self._publishing(), *self._leaving(), *self._crossing(), *self._landing()]
        colours = [colour_of(load, flow) for flow in range(len(load.flows))]
        colours += [self._wire_colour(flow, at) for flow, at in self._crossings]
        clocks = [CLOCK] if any(not _is_poisson(each.every) for each in load.sources) else []
        return Net(
            version=FORMAT_VERSION,
            colours=tuple(dict.fromkeys([*colours, *clocks])),
            places=tuple(places),
            transitions=tuple(transitions),
        )

    # ---- who goes where ------------------------------------------------------------------------

    @cached_property
    def _visited(self) -> dict[int, list[int]]:
        """The flows that come to each node."""
        flows_at: dict[int, list[int]] = {}
        for index, flow in enumerate(self.workload.flows):
            for node in self._reached(flow) if flow.share > 0.0 else ():
                flows_at.setdefault(node, []).append(index)
        return flows_at

    def _reached(self, flow: Flow) -> list[int]:
        load = self.workload
        home = load.sources[flow.source].home
        onwards: dict[int, list[int]] = {}
        for connection, share in flow.forwarding:
            if share > 0.0:
                ends = load.connections[connection]
                onwards.setdefault(ends.source, []).append(ends.target)
        seen, waiting = {home: None}, [home]
        while waiting:
            for target in onwards.get(waiting.pop(), ()):
                if target not in seen:
                    seen[target] = None
                    waiting.append(target)
        return list(seen)

    @cached_property
    def _crossings(self) -> list[tuple[int, int]]:
        """(flow, connection) of everything that is sent."""
        visited = {node: set(flows) for node, flows in self._visited.items()}
        sources = [each.source for each in self.workload.connections]
        return [
            (index, connection)
            for index, flow in enumerate(self.workload.flows)
            for connection, share in flow.forwarding
            if share > 0.0 and index in visited.get(sources[connection], ())
        ]

    @cached_property
    def _shared(self) -> set[int]:
        """Networks with more than one connection: there a colour must tell the way."""
        uses = Counter(each.centre for each in self.workload.connections)
        return {centre for centre, count in uses.items() if centre is not None and count > 1}

    def _wire_colour(self, flow: int, connection: int) -> str:
        load = self.workload
        colour = colour_of(load, flow)
        if load.connections[connection].centre not in self._shared:
            return colour
        return f"{colour} by {load.connection_name(connection)}"

    # ---- names ---------------------------------------------------------------------------------

    def _node(self, node: int) -> str:
        return _plain(self.workload.nodes[node].name)

    def _wire(self, centre: int) -> str:
        return f"network {_plain(self.workload.centres[centre].name)}"

    def _delay(self, connection: int) -> str:
        return f"link {_plain(self.workload.connection_name(connection))}"

    def _publisher(self, source: int) -> str:
        return f"publisher {_plain(self.workload.sources[source].name)}"

    def _publisher_link(self, source: int) -> str:
        return f"link of {_plain(self.workload.sources[source].name)}"

    # ---- places --------------------------------------------------------------------------------

    def _publisher_places(self) -> Iterator[Place]:
        for index, source in enumerate(self.workload.sources):
            if not _is_poisson(source.every):
                queue = Queue(discipline="infinite-server", service=source.every)
                yield Place(name=self._publisher(index), queue=queue, tokens=((CLOCK, 1),))
            if source.delay.mean_s > 0.0:
                queue = Queue(discipline="infinite-server", service=source.delay)
                yield Place(name=self._publisher_link(index), queue=queue)

    def _node_places(self) -> Iterator[Place]:
        for index, node in enumerate(self.workload.nodes):
            name = self._node(index)
            if index not in self._visited:
                continue
            if not node.centres:
                yield Place(name=name)
            elif _is_passed_by(self.workload, index):
                yield Place(name=name, subnet=self._passed_subnet(index))
            elif len(node.centres) == 1:
                yield Place(name=name, queue=self._queue(index, node.centres[0]))
            else:
                yield Place(name=name, subnet=self._subnet(index))

    def _subnet(self, node: int) -> Subnet:
        """Make the queues of a node, one after the other, each with its colours' service times."""
        centres = self.workload.nodes[node].centres
        names = [_inner_name(self.workload, node, centre) for centre in centres]
        colours = [colour_of(self.workload, flow) for flow in self._visited[node]]
        steps = (
            Transition(
                name=f"from {before} to {after}",
                modes=tuple(
                    Mode(
                        take=(TokenArc(place=before, colour=colour),),
                        put=(TokenArc(place=after, colour=colour),),
                    )
                    for colour in colours
                ),
            )
            for before, after in itertools.pairwise(names)
        )
        return Subnet(
            first=names[0],
            last=names[-1],
            places=tuple(
                Place(name=name, queue=self._queue(node, centre))
                for name, centre in zip(names, centres, strict=True)
            ),
            transitions=tuple(steps),
        )

    def _passed_subnet(self, node: int) -> Subnet:
        """Make the queues of a node; each colour goes from one that it uses to the next."""
        load = self.workload
        names = {at: _inner_name(load, node, at) for at in load.nodes[node].centres}
        steps: dict[tuple[str, str], list[Mode]] = {}
        for flow in self._visited[node]:
            colour, services = colour_of(load, flow), dict(load.flows[flow].services)
            stops = [name for at, name in names.items() if services[at] != NO_TIME]
            for before, after in itertools.pairwise([COME, *stops, DONE]):
                take, put = (TokenArc(place=each, colour=colour) for each in (before, after))
                steps.setdefault((before, after), []).append(Mode(take=(take,), put=(put,)))
        queues = (
            Place(name=name, queue=self._queue(node, at))
            for at, name in names.items()
            if self._stopping(node, at)
        )
        return Subnet(
            first=COME,
            last=DONE,
            places=(Place(name=COME), *queues, Place(name=DONE)),
            transitions=tuple(
                Transition(name=f"from {before} to {after}", modes=tuple(modes))
                for (before, after), modes in steps.items()
            ),
        )

    def _stopping(self, node: int, centre: int) -> list[int]:
        """List the flows that use a queue of a node."""
        flows = self.workload.flows
        return [
            flow for flow in self._visited[node] if dict(flows[flow].services)[centre] != NO_TIME
        ]

    def _queue(self, node: int, centre: int) -> Queue:
        flows = self.workload.flows
        laws = {
            colour_of(self.workload, flow): dict(flows[flow].services)[centre]
            for flow in self._stopping(node, centre)
        }
        priorities = {
            colour_of(self.workload, flow): dict(flows[flow].priorities).get(centre, 0)
            for flow in self._stopping(node, centre)
        }
        queue = self._queue_of(centre, laws)
        if queue.discipline != "priority":
            return queue
        return replace(queue, priorities=tuple(each for each in priorities.items() if each[1]))

    def _queue_of(self, centre: int, laws: dict[str, Law]) -> Queue:
        station = self.workload.centres[centre]
        different = set(laws.values())
        return Queue(
            service=next(iter(different)) if len(different) == 1 else None,
            services=tuple(laws.items()) if len(different) > 1 else (),
            discipline=station.discipline,
            servers=station.servers,
        )

    def _wire_places(self) -> Iterator[Place]:
        load = self.workload
        laws: dict[int, dict[str, Law]] = {}
        for flow, connection in self._crossings:
            centre = load.connections[connection].centre
            if centre is not None:
                law = dict(load.flows[flow].transfers)[connection]
                laws.setdefault(centre, {})[self._wire_colour(flow, connection)] = law
        for centre, own in laws.items():
            yield Place(name=self._wire(centre), queue=self._queue_of(centre, own))

    def _delay_places(self) -> Iterator[Place]:
        used = dict.fromkeys(connection for _, connection in self._crossings)
        for connection in used:
            delay = self.workload.connections[connection].delay
            if delay.mean_s > 0.0:
                queue = Queue(discipline="infinite-server", service=delay)
                yield Place(name=self._delay(connection), queue=queue)

    # ---- transitions ---------------------------------------------------------------------------

    def _publishing(self) -> Iterator[Transition]:
        load = self.workload
        for index, source in enumerate(load.sources):
            flows = [
                n for n, flow in enumerate(load.flows) if flow.source == index and flow.share > 0.0
            ]
            if not flows:
                continue
            name, link = self._publisher(index), source.delay.mean_s > 0.0
            target = self._publisher_link(index) if link else self._node(source.home)
            share = 1.0 if link else source.reliability
            modes = []
            for number in flows:
                put = (TokenArc(place=target, colour=colour_of(load, number), share=share),)
                part = load.flows[number].share
                if _is_poisson(source.every):
                    modes.append(Mode(put=put, after=source.every.scaled(1.0 / part)))
                else:
                    clock = (TokenArc(place=name, colour=CLOCK),)
                    modes.append(Mode(take=clock, put=clock + put, weight=part, newborn=True))
            rest = 1.0 - math.fsum(load.flows[number].share for number in flows)
            if rest > SHARES_ROUND_BY and not _is_poisson(source.every):  # of events of no flow
                modes.append(Mode(take=clock, put=clock, weight=rest, newborn=True))
            yield Transition(name=f"publish {_plain(source.name)}", modes=tuple(modes))
            if link:
                yield Transition(
                    name=f"reach home of {_plain(source.name)}",
                    modes=tuple(
                        Mode(
                            take=(TokenArc(place=target, colour=colour_of(load, number)),),
                            put=(
                                TokenArc(
                                    place=self._node(source.home),
                                    colour=colour_of(load, number),
                                    share=source.reliability,
                                ),
                            ),
                        )
                        for number in flows
                    ),
                )

    def _leaving(self) -> Iterator[Transition]:
        """Yield the transitions by which what a node is done with is forwarded, or gone."""
        for node, flows in sorted(self._visited.items()):
            modes = [mode for flow in flows for mode in self._forwarding(node, flow)]
            yield Transition(name=f"leave {self._node(node)}", modes=tuple(modes))

    def _forwarding(self, node: int, number: int) -> Iterator[Mode]:
        flow = self.workload.flows[number]
        take = (TokenArc(place=self._node(node), colour=colour_of(self.workload, number)),)
        known = [each.sets for each in flow.joint if each.node == node]
        if self.joint and known:
            for connections, share in known[0]:
                if share == 0.0:
                    continue
                put = tuple(self._sent(number, connection, 1.0) for connection in connections)
                yield Mode(take=take, put=put, weight=share)
            return
        put = tuple(
            self._sent(number, connection, share)
            for connection, share in flow.forwarding
            if share > 0.0 and self.workload.connections[connection].source == node
        )
        yield Mode(take=take, put=put)

    def _sent(self, flow: int, connection: int, share: float) -> TokenArc:
        """Make the arc of a copy sent over a connection, on to its first place."""
        ends = self.workload.connections[connection]
        if ends.centre is not None:
            colour = self._wire_colour(flow, connection)
            return TokenArc(place=self._wire(ends.centre), colour=colour, share=share)
        return self._past_wire(flow, connection, share)

    def _past_wire(self, flow: int, connection: int, share: float) -> TokenArc:
        ends, colour = self.workload.connections[connection], colour_of(self.workload, flow)
        if ends.delay.mean_s > 0.0:
            return TokenArc(place=self._delay(connection), colour=colour, share=share)
        arrives = share * ends.reliability
        return TokenArc(place=self._node(ends.target), colour=colour, share=arrives)

    def _crossing(self) -> Iterator[Transition]:
        load = self.workload
        modes: dict[int, list[Mode]] = {}
        for flow, connection in self._crossings:
            centre = load.connections[connection].centre
            if centre is not None:
                colour = self._wire_colour(flow, connection)
                take = (TokenArc(place=self._wire(centre), colour=colour),)
                put = (self._past_wire(flow, connection, 1.0),)
                modes.setdefault(centre, []).append(Mode(take=take, put=put))
        for centre, crossings in modes.items():
            yield Transition(name=f"cross {self._wire(centre)}", modes=tuple(crossings))

    def _landing(self) -> Iterator[Transition]:
        load = self.workload
        modes: dict[int, list[Mode]] = {}
        for flow, connection in self._crossings:
            ends = load.connections[connection]
            if ends.delay.mean_s > 0.0:
                colour = colour_of(load, flow)
                take = (TokenArc(place=self._delay(connection), colour=colour),)
                target = self._node(ends.target)
                put = (TokenArc(place=target, colour=colour, share=ends.reliability),)
                modes.setdefault(connection, []).append(Mode(take=take, put=put))
        for connection, landings in modes.items():
            yield Transition(name=f"land from {self._delay(connection)}", modes=tuple(landings))


def _is_poisson(law: Law) -> bool:
    return isinstance(law, Exponential)
