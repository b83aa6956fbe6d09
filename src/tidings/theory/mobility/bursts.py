"""Where bursts of an ON/OFF publisher pile up on a way, and the wait there and before as one stage.

A broker that takes longer for an event than its publisher does to hand it over works off a burst
long after that: there the waits at the publisher and at the broker are no independent stages
(``gated``). Of several such brokers on a way the slowest counts; the others let events through as
it would. What other publishers that come and go send in bursts adds a wait of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import NamedTuple

import numpy as np

from tidings.model.laws import Exponential
from tidings.model.system import Publisher
from tidings.theory.faults.components import Path
from tidings.theory.flows import Flows
from tidings.theory.mobility.centre import OnOff
from tidings.theory.mobility.gated import GatedWait, Served, is_exact
from tidings.theory.mobility.publishing import (
    mobile_centre,
    reaching_share,
)
from tidings.theory.queues import FULL_LOAD, FittedWait, mean_wait_s
from tidings.theory.stages import NOTHING, Floats, Stage, channel_stage, in_series, law_stage
from tidings.theory.stated_errors import Stated
from tidings.theory.stations import Third
from tidings.theory.traffic import Traffic

MOST_PUBLISHERS = 64  # that come and go, up to which each has a way of its own
_MAINLY = 0.5  # of what makes a broker's arrivals uneven, against the rest
_NOT_FEW = 0.2  # of a publisher's events: those of others beside them
_NOTICED = 0.01  # of a service: waits that are added

JOINT = Stated(
    "bursts of publishers that come and go before slower brokers: waits at both as one, exact for "
    "one publisher that hands over at once, Poisson traffic of others and exponential ON and OFF; "
    "else shares on time were off by up to .02, and too high by .04 where handing over is nearly "
    "as slow and the publisher busy (docs/mobile-peers.md)",
    0.04,
)
APART = (
    "comes and goes and hands events over faster than its broker takes them; waits at both are "
    "taken as independent here ({why}): shares on time may be too low by up to .45 "
    "at lifetimes far below an absence (docs/combined.md)"
)
_APART_ERROR = 0.45

SEVERAL = Stated(
    "has bursts of several publishers that come and go, none of which outweighs the others; waits "
    "there and at these are taken as independent: at lifetimes far below an absence shares on time "
    "were too low by up to .15 (docs/mobile-peers.md)",
    0.15,
)
BESIDE = Stated(
    "has bursts of a publisher that comes and goes beside events of others, whose wait is fitted "
    "to two moments: shares on time of the others were too low by up to .2 at lifetimes far below "
    "an absence, and too high by .04 at longer ones (docs/mobile-peers.md)",
    0.2,
)


class Joint(NamedTuple):
    """The way of a publisher's events to its broker with the waits at some brokers behind it."""

    stage: Stage
    brokers: frozenset[int]  # of which only the services are left


@dataclass(frozen=True, kw_only=True)
class Bursts:
    """The publishers of a system that come and go, as what they do to brokers behind them."""

    traffic: Traffic
    followed: frozenset[int]  # publishers whose bursts are followed
    _known: dict[tuple[int, int, tuple[int, ...]], Joint | None] = field(default_factory=dict)

    def along(self, publisher: int, path: Path, tree: int) -> Joint | None:
        """The joint wait of a publisher's events on a way; None where nothing piles up."""
        key = (publisher, tree, path.brokers)
        if key not in self._known:
            self._known[key] = self._joint(publisher, path, tree)
        return self._known[key]

    @property
    def served(self) -> tuple[Stage, ...]:
        """Of each broker its services alone."""
        return tuple(
            reduce(in_series, map(law_stage, laws), NOTHING) for laws in self.traffic.flows.services
        )

    @property
    def approximations(self) -> list[str]:
        """What following bursts takes for granted, if any were met."""
        return [JOINT] if any(self._known.values()) else []

    @property
    def warnings(self) -> list[str]:
        """Of bursts that pile up at their brokers and are not followed, or not alone there."""
        system = self.traffic.system
        alone, several, joint_per_s = list[str](), set[int](), dict[int, float]()
        for index, publisher in enumerate(system.publishers):
            piled = self._piled_at_home(index)
            if piled is None:
                continue
            broker, rate_per_s = piled
            if index not in self.followed:
                many = "publishers and subscribers are too many, or some of these come and go"
                why = unfollowed(publisher) or many
                said = f"publisher '{publisher.name}' {APART.format(why=why)}"
                alone.append(Stated(said, _APART_ERROR))
            elif not self._mainly(index, broker, rate_per_s):
                several.add(broker)
            else:
                joint_per_s[broker] = joint_per_s.get(broker, 0.0) + rate_per_s
        arrivals = self.traffic.flows.arrivals
        beside = {
            broker
            for broker, own_per_s in joint_per_s.items()
            if arrivals[broker] > (1.0 + _NOT_FEW) * own_per_s
        }
        found = ((SEVERAL, several), (BESIDE, beside))
        return alone + [
            Stated(f"broker '{system.brokers[each].name}' {said}", said.error)
            for said, brokers in found
            for each in sorted(brokers)
        ]

    def _piled_at_home(self, publisher: int) -> tuple[int, float] | None:
        """The broker where bursts of a publisher pile up, if they do, and its events per second."""
        sender = self.traffic.system.publishers[publisher]
        centre = mobile_centre(sender)
        if centre is None or centre.is_overloaded(sender.rate_per_s):
            return None
        broker = int(self.traffic.routes.home_of_publisher[publisher])
        rate_per_s = float(self._published[publisher].sum()) * reaching_share(sender)
        queues = _queues(self.traffic.flows, broker, rate_per_s)
        return (broker, rate_per_s) if piles_up(centre, sender.rate_per_s, queues) else None

    def _joint(self, publisher: int, path: Path, tree: int) -> Joint | None:
        sender = self.traffic.system.publishers[publisher]
        centre = mobile_centre(sender)
        assert centre is not None
        rates = self._rates(publisher, path, tree)
        piled = {
            broker: queues
            for broker, rate in zip(path.brokers, rates, strict=True)
            if (queues := _queues(self.traffic.flows, broker, rate))
            and piles_up(centre, sender.rate_per_s, queues)
            and self._mainly(publisher, broker, rate)
        }
        if not piled:
            return None
        line = [queue for queues in piled.values() for queue in queues]
        slowest = max(line, key=lambda queue: queue.spacing_s * queue.own_per_s)
        others = tuple(queue for queue in line if queue is not slowest)
        wait = GatedWait(
            centre=centre, rate_per_s=sender.rate_per_s, slowest=slowest, others=others
        )
        added = [self._others_bursts(publisher, broker, piled[broker]) for broker in piled]
        own = in_series(Stage(delays=(wait,)), law_stage(centre.service))
        own = in_series(own, channel_stage(sender.link))
        return Joint(stage=reduce(in_series, added, own), brokers=frozenset(piled))

    def _rates(self, publisher: int, path: Path, tree: int) -> list[float]:
        """Events per second of a publisher that come to each broker of a way."""
        routes = self.traffic.routes
        sent = self._published[publisher] * reaching_share(
            self.traffic.system.publishers[publisher]
        )
        found, kept = [float(sent.sum())], routes.tree_of_class == tree
        for link, broker in zip(path.links, path.brokers[1:], strict=True):
            arc = 2 * link if routes.arcs[2 * link].target == broker else 2 * link + 1
            sent = sent * routes.arcs[arc].channel.reliability
            found.append(float((sent * self.traffic.flows.open_to[arc])[kept].sum()))
        return found

    @cached_property
    def _published(self) -> Floats:
        """[publisher, class]."""
        rates = np.array([each.rate_per_s for each in self.traffic.system.publishers])
        return self.traffic.routes.rates(rates)

    def _parts(self, publisher: int, broker: int, rate_per_s: float) -> tuple[Floats, Floats]:
        """I − 1 of all that comes to a broker, by what a publisher has to do with it and the rest.

        The publisher's own part as if nothing had changed it on its way.
        """
        streams = self.traffic.waits.streams
        assert streams is not None  # somebody comes and goes
        network = streams.network
        whole: Floats = (network.arriving @ streams.beyond)[broker]
        sender = self.traffic.system.publishers[publisher]
        share = rate_per_s / float(self.traffic.flows.arrivals[broker])
        own = share * rate_per_s / sender.rate_per_s * network.emitted(publisher)
        return own, whole - own

    def _mainly(self, publisher: int, broker: int, rate_per_s: float) -> bool:
        own, rest = self._parts(publisher, broker, rate_per_s)
        return float(own.max()) >= _MAINLY * float(np.abs(rest).max())

    def _others_bursts(self, publisher: int, broker: int, queues: list[Served]) -> Stage:
        """The wait at a broker that bursts of other publishers add."""
        _, rest = self._parts(publisher, broker, queues[0].own_per_s)
        streams = self.traffic.waits.streams
        assert streams is not None
        station = max(streams.stations[broker], key=lambda each: each.service.mean_s)
        found = station.wait(np.maximum(rest, 0.0), Third())
        plain_s = mean_wait_s(station.rate_per_s, station.service)
        spare = (1.0 - station.load) / station.service.mean_s
        more_s = found.mean_s - plain_s
        if more_s <= _NOTICED * station.service.mean_s:
            return NOTHING
        before_s2 = 2.0 * plain_s * (plain_s / station.load + more_s)
        square_s2 = max(found.square_s2 - before_s2, more_s**2)
        share = min(2.0 * more_s**2 / square_s2, self._in_bursts(publisher, broker) / spare, 1.0)
        return Stage(delays=(FittedWait(waiting=share, mean_s=more_s),))

    def _in_bursts(self, publisher: int, broker: int) -> float:
        """Events per second that other publishers of a broker gather while OFF; infinite if none.

        Each takes a service, and as long as the broker is not done with them others wait for it.
        """
        homes = self.traffic.routes.home_of_publisher
        found = 0.0
        for index in np.flatnonzero(homes == broker):
            centre = mobile_centre(self.traffic.system.publishers[index])
            if centre is not None and index != publisher:
                found += centre.away * float(self._published[index].sum())
        return found or math.inf


def _queues(flows: Flows, broker: int, rate_per_s: float) -> list[Served]:
    """The stations of a broker that a publisher's events go through; none if it is overloaded."""
    total_per_s = float(flows.arrivals[broker])
    if rate_per_s <= 0.0 or flows.loads[broker] >= FULL_LOAD:
        return []
    own_per_s = min(rate_per_s, total_per_s)
    return [
        Served(service=law, own_per_s=own_per_s, others_per_s=total_per_s - own_per_s)
        for law in flows.services[broker]
        if law.mean_s > 0.0
    ]


def piles_up(centre: OnOff, rate_per_s: float, queues: list[Served]) -> bool:
    """Whether a station takes longer for a publisher's events than it does to hand them over."""
    longest_s = max((each.spacing_s * each.own_per_s / rate_per_s for each in queues), default=0.0)
    return longest_s > centre.service.mean_s


def bursting(publishers: tuple[Publisher, ...]) -> frozenset[int]:
    """The publishers that come and go whose bursts can be followed; none if they are too many."""
    found = [
        index
        for index, each in enumerate(publishers)
        if each.connectivity is not None and unfollowed(each) is None
    ]
    return frozenset(found if len(found) <= MOST_PUBLISHERS else ())


def unfollowed(publisher: Publisher) -> str | None:
    """Why bursts of a publisher that comes and goes cannot be followed; None if they can."""
    centre = mobile_centre(publisher)
    assert centre is not None
    assert publisher.connectivity is not None
    if publisher.connectivity.buffer is not None:
        return "its buffer is bounded"
    if centre.is_overloaded(publisher.rate_per_s):
        return "it is overloaded"
    if not is_exact(centre):
        return "its times ON and OFF are not both exponential"
    return None if isinstance(publisher.every, Exponential) else "it does not publish at random"
