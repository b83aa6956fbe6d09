"""The parts of delays and losses on paths, each with its cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tidings.model.arrays import Bools, Floats, Ints
from tidings.model.behaviour import Channel
from tidings.model.causes import ARROW, LIKE, Cause, usual_s
from tidings.model.record_tables import Coded, column, names
from tidings.theory.delay.delays import Delays, from_law, nothing, stack
from tidings.theory.delay.paths import Paths
from tidings.theory.error_bars.changes import stage_order, stages_of_streams
from tidings.theory.peers.connectivity import peer_delay
from tidings.theory.queues.brokers import processing_stage
from tidings.theory.repairs.components import process_places

if TYPE_CHECKING:
    from tidings.theory.network.arriving import Leaving
    from tidings.theory.network.network import Network
    from tidings.theory.repairs.schemes import FailingPaths


@dataclass(frozen=True, kw_only=True)
class CausePart:
    """What one cause makes of some streams; one delay may serve all of them."""

    cause: Cause
    rows: Ints  # places among the streams of an audience
    delays: Delays


@dataclass(frozen=True, kw_only=True)
class Stages:
    """The stages of a network at the times that matter, and what they are called."""

    network: Network
    paths: Paths | FailingPaths

    @cached_property
    def plain(self) -> Paths:
        """The paths as if nothing failed."""
        return self.paths if isinstance(self.paths, Paths) else self.paths.paths

    @cached_property
    def waiting(self) -> Delays:
        """[source]: at the broker that its events come to."""
        return self.network.stages.waiting.on(self.paths.grid)

    @cached_property
    def serving(self) -> Delays:
        """[source]: at the broker that its events come to."""
        return self.network.stages.serving.on(self.paths.grid)

    @cached_property
    def brokers(self) -> Sequence[str]:
        """Names."""
        return names(self.network.system.brokers)

    @cached_property
    def arcs(self) -> list[str]:
        """Names of links, one for each direction."""
        brokers = self.brokers
        return [
            f"{brokers[arc.source]}{ARROW}{brokers[arc.target]}" for arc in self.network.routes.arcs
        ]

    @cached_property
    def overloaded(self) -> Bools:
        """[source]: whether the broker that its events come to cannot serve them all."""
        return self.waiting.survival <= 0.0

    @cached_property
    def without_overload(self) -> Paths:
        """The paths as if nobody waited at brokers that are overloaded."""
        rows = np.flatnonzero(self.overloaded)
        relieved = _put(self.plain.at_broker, rows, self.serving.take(rows))
        return replace(self.plain, at_broker=relieved)

    @cached_property
    def usual(self) -> Paths:
        """The paths as if nobody waited, and no broker or link were slower than is usual."""
        arcs_s, sources_s = _means_s(self.plain.over_arc), _means_s(self.serving)
        into = self.network.rates.into
        _, place, sources = np.unique(into, return_inverse=True, return_counts=True)
        brokers_s = np.bincount(place, sources_s) / sources
        return replace(
            self.plain,
            at_broker=_no_slower(self.serving, sources_s, usual_s(brokers_s)[place]),
            over_arc=_no_slower(self.plain.over_arc, arcs_s, usual_s(arcs_s)),
            entry=stack([self._entry(each.link) for each in self.network.system.publishers]),
        )

    def _entry(self, link: Channel) -> Delays:
        if link not in self._entries:
            self._entries[link] = self.own_link(link)
        return self._entries[link]

    @cached_property
    def _entries(self) -> dict[Channel, Delays]:
        return {}

    def own_link(self, link: Channel) -> Delays:
        """Build the delay of a client's own link, as if it were no slower than is usual."""
        delay = from_law(self.paths.grid, link.delay, link.reliability)
        means_s = np.array([link.delay.mean_s])
        return _no_slower(delay, means_s, np.array([self._usual_own_s[link.delay.mean_s]]))

    @cached_property
    def _usual_own_s(self) -> dict[float, float]:
        """By their means, what clients' own links would take if they were no slower than usual."""
        system = self.network.system
        clients = (system.subscribers, system.publishers)
        means_s = np.concatenate([_link_means_s(column(each, "link")) for each in clients])
        each, first = np.unique(means_s, return_index=True)
        return dict(zip(each.tolist(), usual_s(means_s)[first].tolist(), strict=True))


def _means_s(delays: Delays) -> Floats:
    return delays.shift_s + delays.mean_s


def _no_slower(delays: Delays, means_s: Floats, limits_s: Floats) -> Delays:
    """Replace delays whose means exceed their limits by constant ones of these, in seconds."""
    slow = np.flatnonzero(means_s > limits_s)
    if not slow.size:
        return delays
    was = delays.take(slow)
    usual = replace(
        nothing(delays.grid, slow.size),
        survival=was.survival,
        lost=was.lost,
        shift_s=limits_s[slow],
    )
    return _put(delays, slow, usual)


def _link_means_s(links: Coded) -> Floats:
    means_s: Floats = np.array([link.delay.mean_s for link in links.values])[links.codes]
    return means_s


def _put(delays: Delays, rows: Ints, part: Delays) -> Delays:
    """Copy delays, with others in the place of some."""
    copied = replace(
        delays,
        **{
            name: getattr(delays, name).copy()
            for name in ("survival", "shift_s", "mean_s", "atom", "values")
        },
    )
    return copied.overwritten(rows, part)


def parts_of_paths(stages: Stages, leaving: Leaving) -> Iterator[CausePart]:
    """Give what can be taken out of the paths of an audience's streams, up to its home broker."""
    network, met = stages.network, stages_of_streams(leaving)
    order, into = stage_order(network), network.rates.into
    rows, sources = np.nonzero(met[:, : into.size])
    for broker in np.unique(into[sources]).tolist():
        here = into[sources] == broker
        of = sources[here]
        if not stages.overloaded[of].any():
            yield CausePart(
                cause=Cause("waiting", stages.brokers[broker]),
                rows=rows[here],
                delays=stages.waiting.take(of),
            )
        yield CausePart(
            cause=Cause("service", stages.brokers[broker]),
            rows=rows[here],
            delays=stages.serving.take(of),
        )
    for arc, name in enumerate(stages.arcs):
        crossing = np.flatnonzero(met[:, order.arc + arc])
        if crossing.size:
            yield from _of_link(name, crossing, stages.plain.over_arc.take([arc]))
    publishers = leaving.came.publishers[leaving.rows]
    for publisher in np.unique(publishers).tolist():
        yield from _of_entry(stages, publisher, np.flatnonzero(publishers == publisher))


def _of_link(name: str, rows: Ints, link: Delays) -> Iterator[CausePart]:
    """Yield the delay of a link and its loss, apart."""
    if link.shift_s[0] + link.mean_s[0] > 0.0:
        yield CausePart(
            cause=Cause("travel", name),
            rows=rows,
            delays=replace(link, survival=np.ones(1), lost={}),
        )
    if link.survival[0] < 1.0:
        lossy = replace(nothing(link.grid), survival=link.survival)
        yield CausePart(cause=Cause("loss", name), rows=rows, delays=lossy)


def _of_entry(stages: Stages, publisher: int, rows: Ints) -> Iterator[CausePart]:
    """Yield what events meet between a publisher and its home broker."""
    one, grid = stages.network.system.publishers[publisher], stages.paths.grid
    link = from_law(grid, one.link.delay, one.link.reliability)
    yield from _of_link(f"{one.name}{ARROW}{one.at}", rows, link)
    if one.connectivity is not None:
        away = peer_delay(grid, one.connectivity, one.rate_per_s)
        if away.survival[0] > 0.0:
            yield CausePart(cause=Cause("away", one.name), rows=rows, delays=away)


def exits_without(stages: Stages, leaving: Leaving) -> Iterator[tuple[Cause, Delays]]:
    """Give what is left between the home broker and a subscriber if one cause there is gone."""
    one, grid = leaving.audience.example, stages.paths.grid
    name = one.name if leaving.audience.subscribers.size == 1 else f"{LIKE}{one.name}"
    link = from_law(grid, one.link.delay, one.link.reliability)
    pieces: dict[Cause, Delays] = {}
    if one.connectivity is not None:
        pieces[Cause("away", name)] = peer_delay(grid, one.connectivity, leaving.rate_per_s)
    for part in _of_link(f"{one.at}{ARROW}{name}", np.arange(1), link):
        pieces[part.cause] = part.delays
    if one.processing is not None:
        arriving_per_s = leaving.rate_per_s * float(link.survival[0])
        pieces[Cause("own queue", name)] = processing_stage(grid, arriving_per_s, one.processing)
    for gone in pieces:
        rest = nothing(grid)
        for cause, piece in pieces.items():
            if cause != gone:
                rest = rest.series(piece)
        yield gone, rest


def unavailable(stages: Stages, leaving: Leaving) -> tuple[list[str], Floats]:
    """Give what may be down on paths: names, and [row, name] the share of time that it is."""
    network = stages.network
    if network.failing is None:
        return [], np.zeros((leaving.rows.size, 0))
    order, met = stage_order(network), stages_of_streams(leaving)
    processes = len(network.failing.processes)
    lossy, waits = (met[:, first : first + processes] for first in (order.loss, order.wait))
    down = [1.0 - each.availability for each in network.failing.processes]
    owner = {place: name for (_, name), place in process_places(network.system).items()}
    return [owner.get(each, "") for each in range(processes)], (lossy | waits) * np.array(down)
