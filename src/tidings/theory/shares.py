"""What becomes of the events an audience wants: shares on time, delivered, lost by cause.

Where an audience is reached by few ways, each is followed on its own, by the law that suits it
best. Where it is reached by many, all are followed together (``panels``), and only those that this
leaves unsure on their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tidings.model.routes import Routes
from tidings.theory.audiences import Audience, Floats, Ints, Stream, Streams
from tidings.theory.bundles import Bundles, Entries
from tidings.theory.faults.expiry import fate
from tidings.theory.flows import Flows
from tidings.theory.inversion import FAR
from tidings.theory.lifetimes import Lifetime, shorter
from tidings.theory.mobility.peers import Accesses
from tidings.theory.panels import Panels
from tidings.theory.path_laws import Workshop, remaining
from tidings.theory.queue_models import Queues
from tidings.theory.stage_columns import (
    StageColumns,
    columns_in_series,
    joined_columns,
    stage_columns,
)
from tidings.theory.stages import Stage
from tidings.theory.ways import Ends, Ways

_SINGLY = 4096  # ways of a system that are followed one by one, each by the law that suits it best
_NOTHING = 1e-6  # share of events that may lie beyond what is far
_SURE_ENOUGH = 2e-5  # error bound of ways that are followed together


def most_singly(audiences: int) -> int:
    """How many ways to an audience are followed one by one, rather than all together."""
    return _SINGLY // max(audiences, 1)


@dataclass(frozen=True, kw_only=True)
class Journeys:
    """All that following streams through a system needs, each thing made once."""

    streams: Streams
    ways: Ways
    workshop: Workshop
    most_singly: int  # ways to an audience that are followed one by one

    @cached_property
    def bundles(self) -> Bundles:
        """Ways by home broker."""
        return Bundles(ways=self.ways)

    @cached_property
    def panels(self) -> Panels:
        """Laws of many ways at once."""
        return Panels(bundles=self.bundles)

    @cached_property
    def _links(self) -> list[Stage]:
        """The links by which streams enter, by kind."""
        return [self.ways.over_channel(channel) for channel in self.streams.channels.values]

    @cached_property
    def _link_columns(self) -> StageColumns:
        return stage_columns(self._links)

    def entries(self, chosen: Ints) -> Entries:
        """Where the ways of some streams begin."""
        links = [self._links[code] for code in self.streams.channels.codes[chosen]]
        return Entries(brokers=self.streams.brokers[chosen], links=links)

    def columns(self, used: Ints, exit_: Ends) -> StageColumns:
        """The ways of some streams to an exit, in columns."""
        if self.ways.singly(exit_):  # nothing is carried from hop to hop then
            return stage_columns(self.stages(used, exit_))
        trees = self.streams.trees[used]
        order, parts = [], []
        for tree in np.unique(trees) if used.size else (0,):
            mine = np.flatnonzero(trees == tree)
            ways = self.bundles.bundle(exit_.broker, int(tree)).ways
            parts.append(ways.take(self.streams.brokers[used[mine]]))
            order.append(mine)
        inside = joined_columns(parts).take(np.argsort(np.concatenate(order)))
        links = self._link_columns.take(self.streams.channels.codes[used])
        first = columns_in_series(links, inside)
        last = stage_columns([self.ways.over_channel(exit_.channel)])
        return columns_in_series(first, last.take(np.zeros(used.size, dtype=np.int64)))

    def stages(self, used: Ints, exit_: Ends) -> tuple[Stage, ...]:
        """The ways of some streams to an exit; streams of different lifetimes share theirs."""
        known: dict[int, Stage] = {}
        numbers = self.streams.ways[used].tolist()
        for number, stream in zip(numbers, used, strict=True):
            if number not in known:
                one = self.streams.each[stream]
                known[number] = self.ways.way(one.entry, exit_, one.tree, one.homes, one.guests)
        return tuple(known[number] for number in numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """What the filters of an audience want and get, by the streams they want anything of."""

    audience: Audience
    journeys: Journeys
    used: Ints  # the streams
    ways: StageColumns  # of each of them
    lifetimes_s: Floats  # of each stream's events for this audience; NaN where that is random
    on_time: Floats  # share of what is published
    error: Floats  # bound of the numerical error of on_time
    expired: Floats  # share that expires in a buffer
    means_s: Floats  # mean delay of what is delivered

    @property
    def wanted(self) -> sparse.csr_array:
        """[filter, used stream]: events per second, over all time; those present want it."""
        found = self.journeys.streams.matched[self.audience.filters]
        return found[:, self.used] * self.audience.present

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams of which anything is wanted."""
        return tuple(self.journeys.streams.each[index] for index in self.used)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The way of each stream."""
        return self.journeys.stages(self.used, self.audience.exit)

    @property
    def few(self) -> bool:
        """Whether the ways were followed one by one."""
        count = np.unique(self.journeys.streams.ways[self.used]).size
        singly = self.journeys.ways.singly(self.audience.exit)
        return singly or count <= self.journeys.most_singly

    @property
    def delivered(self) -> Floats:
        """Share of each stream that is delivered, in time or not."""
        share: Floats = self.ways.survives - self.expired
        return share

    def cuts(self, chosen: Ints) -> tuple[Floats, Floats]:
        """Of what survives the chosen streams' ways: the share in time, and what buffers leave
        of the rest.
        """
        survives, in_time = self.ways.survives[chosen], self.on_time[chosen]
        expired = self.expired[chosen]
        rest = np.where(expired > 0.0, survives - in_time, 1.0)
        return in_time / survives, 1.0 - expired / rest

    @property
    def lost(self) -> Mapping[str, Floats]:
        """Shares lost of each stream, by cause; only causes that occur."""
        if not np.any(self.expired):
            return self.ways.lost
        return {**self.ways.lost, "expired_in_buffer": self.expired}


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A system followed from its contents to the shares of every audience."""

    routes: Routes
    rates: Flows
    queues: Queues
    peers: Accesses
    journeys: Journeys
    results: list[Shares]


def shares(audience: Audience, journeys: Journeys) -> Shares:
    """Follow every stream that the audience wants anything of to its exit."""
    streams = journeys.streams
    used = np.unique(streams.matched[audience.filters].indices).astype(np.int64)
    lifetimes = [shorter(own, audience.lifetime) for own in streams.lifetimes.values]
    mine = streams.lifetimes.codes[used]
    ways = journeys.columns(used, audience.exit)
    certain_s = np.array([lifetime.value_s for lifetime in lifetimes])[mine]
    found = Shares(
        audience=audience,
        journeys=journeys,
        used=used,
        ways=ways,
        lifetimes_s=certain_s,
        on_time=np.zeros(used.size),
        error=np.zeros(used.size),
        expired=np.zeros(used.size),
        means_s=ways.mean_s,
    )
    singly = ways.survives > 0.0
    if not found.few:
        singly &= ~_together(found)
    _one_by_one(found, np.flatnonzero(singly), [lifetimes[code] for code in mine])
    return found


def _one_by_one(found: Shares, chosen: Ints, lifetimes: list[Lifetime]) -> None:
    """Fill in the shares of some streams."""
    stages = found.journeys.stages(found.used[chosen], found.audience.exit)
    for index, stage in zip(chosen, stages, strict=True):
        (value, off), expired, mean_s = fate(stage, lifetimes[index], found.journeys.workshop)
        found.on_time[index], found.error[index] = float(value), float(off)
        found.expired[index], found.means_s[index] = expired, mean_s


def _together(found: Shares) -> NDArray[np.bool_]:
    """Fill in the shares of all streams at once; which of them are sure enough."""
    ways, journeys = found.ways, found.journeys
    rest_s = remaining(found.lifetimes_s, ways.shift_s)
    value = np.where(rest_s >= 0.0, ways.atom, 0.0)
    value[rest_s == np.inf] = 1.0
    error = np.where(np.isnan(rest_s), np.inf, 0.0)
    # So far from all of the law it is enough to know that there is next to nothing between.
    far_s = ways.random_s + FAR * np.sqrt(ways.variance_s2)
    asked_s = np.minimum(rest_s, far_s)
    inside = np.flatnonzero((rest_s > 0.0) & np.isfinite(rest_s) & (ways.random_s > 0.0))
    trees = journeys.streams.trees[found.used[inside]]
    exit_ = journeys.ways.over_channel(found.audience.exit.channel)
    for tree in np.unique(trees):
        mine = inside[trees == tree]
        bundle = journeys.bundles.bundle(found.audience.exit.broker, int(tree))
        entries = journeys.entries(found.used[mine])
        value[mine], error[mine] = journeys.panels.cdf(bundle, entries, exit_, asked_s[mine])
    beyond = np.flatnonzero((rest_s > far_s) & np.isfinite(rest_s) & (ways.random_s > 0.0))
    error[beyond] += np.where(value[beyond] > 1.0 - _NOTHING, _NOTHING, np.inf)
    sure = error <= _SURE_ENOUGH
    found.on_time[sure] = ways.survives[sure] * value[sure]
    off = np.where(np.isfinite(rest_s) & (rest_s >= 0.0), ways.law_error, 0.0)
    found.error[sure] = ways.survives[sure] * (error[sure] + off[sure])
    return sure
