"""Streams followed to their subscribers: what arrives, when, and which share is in time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from tidings.model.arrays import Floats, Ints
from tidings.model.delay_grid import EDGES_S
from tidings.model.laws import Law
from tidings.model.outcome import QUANTILES
from tidings.prediction.audiences import Audience, Streams, lifetime_nodes
from tidings.prediction.churn import path_arcs, present_share, spread_and_before, weighed_by_stay
from tidings.prediction.delays import Delays, from_law, nothing, stack
from tidings.prediction.network import Network
from tidings.prediction.paths import Paths
from tidings.prediction.regimes import ALONG, FAILING, FEATURES
from tidings.prediction.repairs.expiry import expiring
from tidings.prediction.repairs.schemes import FailingPaths

_EDGES_S = EDGES_S[::2]


@dataclass(frozen=True, kw_only=True)
class Followed:
    """Streams followed to an audience: what its filters want of each, and when that arrives."""

    audience: Audience
    streams: Streams
    used: Ints  # [used stream]: its position in ``streams``
    wanted: sparse.csr_array  # [filter, used stream], events per second
    delays: Delays  # [path]
    path_of: Ints  # [used stream]: its row in ``delays``
    on_time: Floats  # [used stream], share of what is published

    @property
    def by_path(self) -> sparse.csr_array:
        """[filter, path]: events per second that a filter wants of what comes along a path."""
        return _columns_summed(self.wanted, self.path_of, len(self.delays))

    def numbers(self, chosen: Ints | None = None) -> dict[str, Floats]:
        """Compute the columns of the result, [filter], over all streams or some of them."""
        streams = np.arange(self.used.size) if chosen is None else chosen
        delays, path_of = self.delays, self.path_of[streams]
        wanted = self.wanted[:, streams]
        by_path = _columns_summed(wanted, path_of, len(delays))
        total = np.asarray(wanted.sum(axis=1))
        rate = np.where(total > 0.0, total, np.nan)
        delivered = by_path @ delays.survival / rate
        on_time = wanted @ self.on_time[streams] / rate
        spent_s = by_path @ (delays.survival * (delays.shift_s + delays.mean_s)) / rate
        quantiles_s = delays.quantiles(by_path, list(QUANTILES.values()))
        return {
            "wanted_per_s": total,
            "on_time": on_time,
            "delivered": delivered,
            "late": np.maximum(delivered - on_time, 0.0),
            **{
                f"lost_{cause}": np.nan_to_num(by_path @ lost / rate)
                for cause, lost in delays.lost.items()
            },
            "delay_mean_s": spent_s / np.where(delivered > 0.0, delivered, np.nan),
            **{name: quantiles_s[:, index] for index, name in enumerate(QUANTILES)},
        }

    def left_s(self) -> tuple[float, float]:
        """Find what is left of lifetimes after what is certain of delays: least and most."""
        least, most = math.inf, 0.0
        own = self.audience.example.lifetime
        shifts_s = self.delays.shift_s[self.path_of]
        for law in {self.streams.lifetimes[stream] for stream in self.used}:
            mine = np.array([self.streams.lifetimes[stream] == law for stream in self.used])
            for lifetime in (law, own):
                if lifetime is not None:
                    ends_s = np.asarray(lifetime.quantile(np.array([0.01, 0.99])))
                    rests_s = np.subtract.outer(ends_s, shifts_s[mine])
                    least = min(least, float(rests_s[rests_s > 0.0].min(initial=math.inf)))
                    most = max(most, float(rests_s.max()))
        return least, most


@dataclass(frozen=True, kw_only=True)
class Result:
    """What the filters of an audience get."""

    audience: Audience
    numbers: dict[str, Floats]  # [filter]: columns of the table of subscribers
    regimes: Floats  # [filter, feature]
    roughness: Floats  # [filter]: how far its share is off by arithmetic alone
    laws: list[tuple[Floats, Floats]]  # [filter]: delays, and shares arrived by then
    left_s: tuple[float, float]  # of lifetimes after what is certain of delays, least and most
    followed: Followed | None  # where publishers are kept apart


@dataclass(frozen=True, kw_only=True)
class Arriving:
    """Everything that comes to a home broker and that anybody there wants, path by path."""

    network: Network
    home: int
    streams: Streams
    used: Ints  # streams that anybody wants, rising
    paths: Ints  # [path]: a stream that comes along it
    path_of: Ints  # [used stream]

    @cached_property
    def entries(self) -> Delays:
        """[path], or one for all: from the publisher to its broker."""
        return self.network.entry(self.streams.publishers[self.paths])

    def along(self, way: Paths | FailingPaths) -> Delays:
        """[path]: from the publisher to after the home broker."""
        trees = self.streams.trees[self.paths]
        publishers = self.streams.publishers[self.paths]
        order = [np.flatnonzero(trees == tree) for tree in np.unique(trees)]
        parts = [
            way.from_publishers(publishers[chosen], self.home, int(trees[chosen[0]]))
            for chosen in order
        ]
        if not parts:
            return nothing(self.network.grid, 0)
        inside = parts[0]
        if len(parts) > 1:
            inside = stack(parts).take(np.argsort(np.concatenate(order)))
        return self.entries.series(inside)

    @cached_property
    def delays(self) -> list[Delays]:
        """[path], as waits are, and with those that are approximate a step longer."""
        return [self.along(way) for way in self.network.followed]

    @cached_property
    def features(self) -> Floats:
        """[path, feature]: what theory's error depends on."""
        features = np.zeros((self.paths.size, len(FEATURES)))
        trees = self.streams.trees[self.paths]
        for tree in np.unique(trees):
            chosen = np.flatnonzero(trees == tree)
            publishers = self.streams.publishers[self.paths[chosen]]
            features[chosen] = self.network.features(publishers, self.home, int(tree))
        return features

    def rows_for(self, audience: Audience, path_of: Ints) -> tuple[Ints, Ints]:
        """Choose the paths that are followed for an audience, and say which is whose.

        All, once for everybody, where nothing more happens to events; else those it wants.
        """
        exit_ = self.network.exit(audience, self.queue_rate(audience))
        if exit_.is_nothing and audience.example.stays is None:
            return np.arange(self.paths.size), path_of
        rows, which = np.unique(path_of, return_inverse=True)
        return rows, which

    def to(
        self, delays: Delays, way: Paths | FailingPaths, audience: Audience, rows: Ints
    ) -> Delays:
        """[row]: from the publisher to subscribers of one kind; ``delays`` lead to their broker."""
        part = delays if rows.size == len(delays) else delays.take(rows)
        whole = part.series(self.network.exit(audience, self.queue_rate(audience)))
        if audience.example.stays is None:
            return whole
        unfailing = way if isinstance(way, Paths) else way.paths  # by which subscriptions spread
        weighed = [
            _for_a_time(self, unfailing, whole.take([place]), int(row), audience)
            for place, row in enumerate(rows)
        ]
        return stack(weighed) if weighed else whole

    def queue_rate(self, audience: Audience) -> float:
        """Compute what the busiest subscriber of an audience wants, in events per second."""
        return float(demand(self.streams, audience)[1].sum(axis=1).max(initial=0.0))


def arriving(network: Network, audiences: Sequence[Audience], *, by_publisher: bool) -> Arriving:
    """Find everything that comes to one home broker for the audiences there."""
    flowing = network.streams_by_publisher if by_publisher else network.streams
    filters = np.unique(np.concatenate([audience.filters for audience in audiences]))
    used = np.unique(flowing.matched[filters].indices).astype(np.int64)
    paths, path_of = _distinct_paths(flowing, used)
    return Arriving(
        network=network,
        home=audiences[0].home,
        streams=flowing,
        used=used,
        paths=paths,
        path_of=path_of,
    )


def follow(came: Arriving, audience: Audience, *, whole: bool, by_publisher: bool) -> Result:
    """Follow every stream that an audience wants anything of to its subscribers."""
    network, flowing = came.network, came.streams
    used, wanted = demand(flowing, audience)
    along = came.path_of[np.searchsorted(came.used, used)]
    rows, path_of = came.rows_for(audience, along)
    delays, longer = (
        came.to(each, way, audience, rows)
        for each, way in zip(came.delays, network.followed, strict=True)
    )
    nodes = _lifetimes(flowing, used, audience)
    on_time, if_longer = (
        _by_lifetime(each.on_time, path_of, flowing, used, nodes) for each in (delays, longer)
    )
    features = came.features[along]
    features[:, len(ALONG) + len(FAILING) :] = network.of_peers(audience, came.queue_rate(audience))
    rough = _by_lifetime(delays.roughness, path_of, flowing, used, nodes)
    first = network.followed[0]
    if network.buffering and isinstance(first, FailingPaths):
        without = first.without_buffers()
        unkept = came.to(came.along(without), without, audience, rows)
        lifetimes_s = np.vstack(np.broadcast_arrays(*(nodes[flowing.lifetimes[i]] for i in used)))
        delays = expiring(delays.take(path_of), unkept.take(path_of), on_time, lifetimes_s)
        path_of = np.arange(used.size)
    followed = Followed(
        audience=audience,
        streams=flowing,
        used=used,
        wanted=wanted,
        delays=delays,
        path_of=path_of,
        on_time=on_time,
    )
    laws = []
    if whole and used.size:
        laws = [_distribution(delays, row, nodes) for row in followed.by_path.toarray()]
    return Result(
        audience=audience,
        numbers=followed.numbers(),
        regimes=_regimes(wanted, features, on_time, if_longer),
        roughness=_mean(wanted, rough),
        laws=laws,
        left_s=followed.left_s(),
        followed=followed if by_publisher else None,
    )


def _distinct_paths(flowing: Streams, used: Ints) -> tuple[Ints, Ints]:
    """Find the streams that stand for all that share their paths, and who stands for each."""
    keys = np.stack([flowing.publishers[used], flowing.trees[used], flowing.classes[used]])
    _, first, path_of = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    return used[first], path_of.ravel()


def _columns_summed(wanted: sparse.csr_array, group_of: Ints, count: int) -> sparse.csr_array:
    """Add up the columns of a table group by group."""
    ones = np.ones(group_of.size)
    member = sparse.csr_array((ones, (np.arange(group_of.size), group_of)), (group_of.size, count))
    return sparse.csr_array(wanted @ member)


def _regimes(
    wanted: sparse.csr_array, features: Floats, on_time: Floats, if_longer: Floats
) -> Floats:
    """[filter, feature]: means over what a filter wants, and how its share lies."""
    share = _mean(wanted, on_time)
    moved = np.abs(share - _mean(wanted, if_longer))
    return np.column_stack([_mean(wanted, features), moved, np.minimum(share, 1.0 - share)])


def _mean(wanted: sparse.csr_array, values: Floats) -> Floats:
    """[filter]: the mean of what belongs to streams, over what a filter wants; 0 for nothing."""
    total = np.asarray(wanted.sum(axis=1))
    summed: Floats = wanted @ values
    return (summed.T / np.where(total > 0.0, total, 1.0)).T


def on_time_and_mean(came: Arriving, audience: Audience) -> tuple[Floats, Floats]:
    """Compute on-time shares and mean delays in seconds, [filter], and nothing else."""
    flowing, way = came.streams, came.network.followed[0]
    used, wanted = demand(flowing, audience)
    rows, path_of = came.rows_for(audience, came.path_of[np.searchsorted(came.used, used)])
    delays = came.to(came.delays[0], way, audience, rows)
    nodes = _lifetimes(flowing, used, audience)
    on_time = _by_lifetime(delays.on_time, path_of, flowing, used, nodes)
    total = np.asarray(wanted.sum(axis=1))
    by_path = _columns_summed(wanted, path_of, len(delays))
    arriving_per_s = by_path @ delays.survival
    spent_s = by_path @ (delays.survival * (delays.shift_s + delays.mean_s))
    return (
        wanted @ on_time / np.where(total > 0.0, total, np.nan),
        spent_s / np.where(arriving_per_s > 0.0, arriving_per_s, np.nan),
    )


def demand(flowing: Streams, audience: Audience) -> tuple[Ints, sparse.csr_array]:
    """List the streams that an audience wants anything of, and how much each filter does.

    In events per second, [filter, stream].
    """
    mine = flowing.matched[audience.filters]
    used = np.unique(mine.indices).astype(np.int64)
    present = present_share(audience.example.stays, audience.example.away)
    return used, sparse.csr_array(mine[:, used] * present)


def _lifetimes(flowing: Streams, used: Ints, audience: Audience) -> dict[Law | None, Floats]:
    own = audience.example.lifetime
    return {law: lifetime_nodes(law, own) for law in {flowing.lifetimes[index] for index in used}}


def _for_a_time(came: Arriving, way: Paths, whole: Delays, row: int, audience: Audience) -> Delays:
    """The delay along one path for subscribers that stay only for a time."""
    network, flowing, stream = came.network, came.streams, int(came.paths[row])
    stays, away = audience.example.stays, audience.example.away
    assert stays is not None
    publisher = int(flowing.publishers[stream])
    start = int(network.routes.home_of_publisher[publisher])
    arcs = path_arcs(network.routes, start, audience.home, int(flowing.trees[stream]))
    present = present_share(stays, away)
    chances = network.churn.drawn(arcs, int(flowing.classes[stream]), present)
    entry = came.entries if len(came.entries) == 1 else came.entries.take([row])
    ends = (entry, from_law(way.grid, audience.example.link.delay))
    spreading, before = spread_and_before(way, ends, arcs, publisher)
    if present == 1.0:  # who is back at once is still known from before
        spreading = nothing(way.grid, len(spreading))
    return weighed_by_stay(whole, spreading, before, stays, chances)


def _by_lifetime(
    of_rows: Callable[[Floats, Ints], Floats],
    path_of: Ints,
    flowing: Streams,
    used: Ints,
    nodes: dict[Law | None, Floats],
) -> Floats:
    """[used stream]: a number of its path that depends on its lifetime."""
    number = np.zeros(used.size)
    for lifetime, times_s in nodes.items():
        chosen = np.array(
            [place for place, index in enumerate(used) if flowing.lifetimes[index] == lifetime],
            dtype=np.int64,
        )
        number[chosen] = of_rows(np.tile(times_s, (chosen.size, 1)), path_of[chosen])
    return number


def _distribution(
    delays: Delays, weights: Floats, nodes: dict[Law | None, Floats]
) -> tuple[Floats, Floats]:
    """Delays of a mixture in seconds, and the share that has arrived by then."""
    total = weights.sum()
    if total <= 0.0 or not np.any(weights * delays.survival > 0.0):
        return np.empty(0), np.empty(0)
    rows = np.flatnonzero(weights)
    ends_s = delays.quantiles(weights[None, :], (0.001, 0.999))[0]
    first, last = np.searchsorted(_EDGES_S, ends_s)
    lifetimes = [times_s for times_s in nodes.values() if times_s.size == 1]
    certain_s = np.array([each[0] for each in lifetimes if math.isfinite(each[0])])
    times_s = np.unique(np.concatenate([_EDGES_S[max(first - 1, 0) : last + 1], certain_s]))
    arrived = weights[rows] @ delays.at(np.tile(times_s, (rows.size, 1)), rows) / total
    return times_s, arrived
