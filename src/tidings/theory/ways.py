"""The way of an event from a publisher to a subscriber, as one stage made of many.

Publishers with the same home broker and the same kind of link share an *entry*, subscribers an
*exit*; a way is made once for each pair of those and each tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import NamedTuple

from tidings.model import topology
from tidings.model.behaviour import Channel
from tidings.model.laws import Law
from tidings.model.routes import Routes
from tidings.theory.churn.churning import Churn
from tidings.theory.churn.drawing import Guests, drawn_to, draws, others
from tidings.theory.churn.meeting import Meeting
from tidings.theory.faults.components import Path
from tidings.theory.faults.other_homes import OtherHome
from tidings.theory.faults.schemes import Faults
from tidings.theory.mobility.bursts import Bursts, Joint
from tidings.theory.stages import NOTHING, Stage, channel_stage, in_series, lossless

Draws = tuple[tuple[int, float], ...]  # brokers of a way, by place, each with a probability


class _Inside(NamedTuple):
    """From a broker to another: what its stage depends on."""

    start: int
    home: int
    tree: int
    homes: tuple[int, ...]  # other ones
    waited: frozenset[int]  # brokers at which it has waited before
    guest: bool  # whether it is for one who comes and goes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Access:
    """The way between a peer and its broker where it is more than a link: queues of its own."""

    stage: Stage
    told: Stage = NOTHING  # the way of what a subscriber tells its broker
    publisher: int | None = None  # whose bursts are followed, by position


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """An entry or an exit: a broker by position, and the way of a peer to it."""

    broker: int
    channel: Channel | Access
    stays: Law | None = None  # how long subscriptions last there; None: for ever
    present: float = 1.0  # for which share of the time there is one


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """The stages of a system, from which ways are put together."""

    routes: Routes
    at_broker: tuple[Stage, ...]
    over_arc: tuple[Stage, ...]
    faults: Faults | None = None  # None: nothing fails
    bursts: Bursts | None = None  # None: nobody's are followed
    served: tuple[Stage, ...] = ()  # of each broker: its services alone
    for_guests: tuple[Stage, ...] = ()  # of each broker, as those find it who come and go
    _over_channel: dict[Channel, Stage] = field(default_factory=dict)
    _between: dict[tuple[int, int], list[Stage]] = field(default_factory=dict)
    _failing: dict[_Inside, Stage] = field(default_factory=dict)
    _spreading: dict[tuple[int, int], list[Stage]] = field(default_factory=dict)
    _homewards: dict[tuple[int, int], dict[int, tuple[int, int]]] = field(default_factory=dict)
    _churning: dict[tuple[Ends, Ends, int, Draws], Stage] = field(default_factory=dict)
    _churn: Churn = field(default_factory=Churn)

    def way(
        self,
        entry: Ends,
        exit_: Ends,
        tree: int,
        homes: tuple[int, ...] = (),
        guests: tuple[Guests, ...] = (),
    ) -> Stage:
        """From publisher to subscriber: the link of the one, brokers and arcs, the other's link.

        ``homes`` are the brokers with lasting subscribers for the same events: they refresh each
        other, and draw events to where a new subscription need not go first. So do ``guests``,
        who come and go, while they are there.
        """
        joint = self._joint(entry, exit_.broker, tree)
        waited = frozenset() if joint is None else joint.brokers
        comes = exit_.stays is not None
        inside = self._inside(_Inside(entry.broker, exit_.broker, tree, homes, waited, comes))
        first = self.over_channel(entry.channel) if joint is None else joint.stage
        into = in_series(first, inside)
        whole = in_series(into, self.over_channel(exit_.channel))
        if exit_.stays is None:
            return whole
        onwards = self._towards_home(exit_.broker, tree)
        path = _path(onwards, entry.broker, exit_.broker)
        least = drawn_to(onwards, path.brokers, homes)
        rest = others(guests, exit_.broker, exit_.present)
        key = (entry, exit_, tree, draws(onwards, path.brokers, least, rest))
        if key not in self._churning:
            pieces = self._pieces(path, self._stages(waited, guest=True))
            meetings = [
                (chance, self._meeting(first, exit_, tree, (pieces, path, at)))
                for at, chance in key[-1]
            ]
            self._churning[key] = self._churn.stage(whole, exit_.stays, meetings)
        return self._churning[key]

    def _towards_home(self, home: int, tree: int) -> dict[int, tuple[int, int]]:
        key = (home, tree)
        if key not in self._homewards:
            if any(other != home for other, _ in self._homewards):
                self._homewards.clear()
                self._churning.clear()
            self._homewards[key] = _homewards(self.routes, tree, home)
        return self._homewards[key]

    def _meeting(
        self, first: Stage, exit_: Ends, tree: int, where: tuple[list[Stage], Path, int]
    ) -> Meeting:
        """How events meet the subscription of an exit, at a broker of a way by its place.

        ``first`` is the way of the events to the first broker.
        """
        pieces, path, at = where
        spread = self._spread_from(exit_.broker, tree)[path.brokers[at]]
        if self.faults is not None:
            pieces = self.faults.sent(pieces)
            spread = in_series(self.faults.held_up(_back(path, at)), spread)
        link = self.over_channel(exit_.channel)
        spreading = in_series(self._told(exit_.channel), spread)
        return Meeting(  # who is back at once is still known from before
            spreading=spreading if exit_.present < 1.0 else NOTHING,
            before=reduce(in_series, pieces[: 2 * at + 1], first),
            after=in_series(reduce(in_series, pieces[2 * at + 1 :], NOTHING), link),
            failing=self.faults is not None,
        )

    def _told(self, channel: Channel | Access) -> Stage:
        """The way of a message from a subscriber to its home broker: sent until it arrives."""
        return channel.told if isinstance(channel, Access) else lossless(self.over_channel(channel))

    def singly(self, exit_: Ends) -> bool:
        """Whether ways to an exit must be made one by one: something on them is joint."""
        followed = self.bursts is not None and bool(self.bursts.followed)
        return followed or self.faults is not None or exit_.stays is not None

    def over_channel(self, channel: Channel | Access) -> Stage:
        """The stage of a peer's link, with its queues if it has any; equal links are one stage."""
        if isinstance(channel, Access):
            return channel.stage
        if channel not in self._over_channel:
            self._over_channel[channel] = channel_stage(channel)
        return self._over_channel[channel]

    def _joint(self, entry: Ends, home: int, tree: int) -> Joint | None:
        """The waits of an entry that are one with those at brokers on the way, if there are any."""
        if self.bursts is None or not isinstance(entry.channel, Access):
            return None
        publisher = entry.channel.publisher
        if publisher is None or publisher not in self.bursts.followed:
            return None
        path = tree_path(self.routes, tree, entry.broker, home)
        return self.bursts.along(publisher, path, tree)

    def _inside(self, way: _Inside) -> Stage:
        """From one broker to another, both included."""
        if self.faults is None and not way.waited and not way.guest:
            return self._towards(way.home, way.tree)[way.start]
        if way not in self._failing:
            path = tree_path(self.routes, way.tree, way.start, way.home)
            stages = self._stages(way.waited, guest=way.guest)
            if self.faults is None:
                self._failing[way] = reduce(in_series, self._pieces(path, stages))
            else:
                others = tuple(other_homes(self.routes, way.tree, path, way.homes))
                self._failing[way] = self.faults.way(
                    path, lambda other: self._pieces(other, stages), others
                )
        return self._failing[way]

    def _stages(self, waited: frozenset[int], *, guest: bool) -> Sequence[Stage]:
        """Of each broker; of those at which it has ``waited`` already, only the services."""
        usual = self.for_guests if guest and self.for_guests else self.at_broker
        if not waited:
            return usual
        return [self.served[i] if i in waited else stage for i, stage in enumerate(usual)]

    def _pieces(self, path: Path, at_broker: Sequence[Stage]) -> list[Stage]:
        """The stages of a way as if nothing failed: broker, link, broker, …"""
        found = [at_broker[path.brokers[0]]]
        arcs = self.routes.arcs
        for link, broker in zip(path.links, path.brokers[1:], strict=True):
            arc = 2 * link if arcs[2 * link].target == broker else 2 * link + 1
            found += [self.over_arc[arc], at_broker[broker]]
        return found

    def _towards(self, home: int, tree: int) -> list[Stage]:
        """For every broker the way from it (its own queue included) to ``home``."""
        key = (home, tree)
        if key not in self._between:
            if any(other != home for other, _ in self._between):
                self._between.clear()  # audiences come home by home
            found = [NOTHING] * len(self.at_broker)
            arcs = self.routes.arcs
            for broker, into in topology.walk(self.routes.trees[tree], arcs, home):
                found[broker] = self.at_broker[broker]
                if into >= 0:  # the walk leads away from home, the event comes the other way
                    onwards = in_series(self.over_arc[into ^ 1], found[arcs[into].source])
                    found[broker] = in_series(found[broker], onwards)
            self._between[key] = found
        return self._between[key]

    def _spread_from(self, home: int, tree: int) -> list[Stage]:
        """For every broker the way of a subscription from ``home`` to it: over links alone."""
        key = (home, tree)
        if key not in self._spreading:
            if any(other != home for other, _ in self._spreading):
                self._spreading.clear()
            found = [NOTHING] * len(self.at_broker)
            arcs = self.routes.arcs
            for broker, into in topology.walk(self.routes.trees[tree], arcs, home):
                if into >= 0:
                    found[broker] = in_series(
                        found[arcs[into].source], lossless(self.over_arc[into])
                    )
            self._spreading[key] = found
        return self._spreading[key]


def tree_path(routes: Routes, tree: int, start: int, home: int) -> Path:
    """The way from one broker to another within a tree."""
    return _path(_homewards(routes, tree, home), start, home)


def _homewards(routes: Routes, tree: int, home: int) -> dict[int, tuple[int, int]]:
    """For every other broker the next one on its way to ``home``, and the link there."""
    return {  # the walk leads away from home
        broker: (routes.arcs[into].source, into // 2)
        for broker, into in topology.walk(routes.trees[tree], routes.arcs, home)
        if into >= 0
    }


def _path(onwards: Mapping[int, tuple[int, int]], start: int, home: int) -> Path:
    brokers, links = [start], []
    while brokers[-1] != home:
        broker, link = onwards[brokers[-1]]
        brokers.append(broker)
        links.append(link)
    return Path(brokers=tuple(brokers), links=tuple(links))


def _back(path: Path, at: int) -> Path:
    """The way back from the end of a way to a broker by its place."""
    return Path(brokers=path.brokers[at:][::-1], links=path.links[at:][::-1])


def other_homes(routes: Routes, tree: int, path: Path, homes: Iterable[int]) -> Iterator[OtherHome]:
    """The homes, of these, whose subscriptions pass some broker of a way."""
    place = {broker: index for index, broker in enumerate(path.brokers)}
    for home in homes:
        if home == path.brokers[-1]:
            continue
        towards = tree_path(routes, tree, home, path.brokers[-1])
        count = next(index for index, broker in enumerate(towards.brokers) if broker in place)
        joins = place[towards.brokers[count]]
        if joins > 0:
            branch = Path(brokers=towards.brokers[:count], links=towards.links[:count])
            yield OtherHome(joins=joins, branch=branch)


def ways(
    routes: Routes,
    at_broker: tuple[Stage, ...],
    faults: Faults | None = None,
    bursts: Bursts | None = None,
    for_guests: tuple[Stage, ...] = (),
) -> Ways:
    """The ways of a system from the stage of each broker, from what fails and comes in bursts.

    ``for_guests`` are the stages of brokers as those find them who come and go, if they differ.
    """
    known: dict[Channel, Stage] = {}
    for arc in routes.arcs:
        if arc.channel not in known:
            known[arc.channel] = channel_stage(arc.channel)
    return Ways(
        routes=routes,
        at_broker=at_broker,
        over_arc=tuple(known[arc.channel] for arc in routes.arcs),
        faults=faults,
        bursts=bursts,
        served=() if bursts is None else bursts.served,
        for_guests=for_guests,
    )
