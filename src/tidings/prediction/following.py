"""Streams followed to their subscribers: what arrives, when, and which share is in time."""

from __future__ import annotations

import math
from dataclasses import dataclass

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
    laws: list[tuple[Floats, Floats]]  # [filter]: delays, and shares arrived by then
    left_s: tuple[float, float]  # of lifetimes after what is certain of delays, least and most
    followed: Followed | None  # where publishers are kept apart


def follow(network: Network, audience: Audience, *, whole: bool, by_publisher: bool) -> Result:
    """Follow every stream that an audience wants anything of to its subscribers."""
    flowing = network.streams_by_publisher if by_publisher else network.streams
    used, wanted = demand(flowing, audience)
    first, path_of = _distinct_paths(flowing, used)
    queue_rate = float(wanted.sum(axis=1).max(initial=0.0))
    last = network.exit(audience, queue_rate)
    delays, longer = (
        _along(network, paths, flowing, first, last, audience) for paths in network.followed
    )
    nodes = _lifetimes(flowing, used, audience)
    on_time, if_longer = (_shares(each, path_of, flowing, used, nodes) for each in (delays, longer))
    features = _features(network, flowing, first, audience, queue_rate)
    regimes = _regimes(wanted, features[path_of], on_time, if_longer)
    unbuffered = network.followed[0]
    if network.buffering and isinstance(unbuffered, FailingPaths):
        unkept = _along(network, unbuffered.without_buffers(), flowing, first, last, audience)
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
        regimes=regimes,
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


def _features(
    network: Network, flowing: Streams, paths: Ints, audience: Audience, queue_rate: float
) -> Floats:
    """[path, feature]: what theory's error depends on, of paths to an audience."""
    features = np.zeros((paths.size, len(FEATURES)))
    for tree in np.unique(flowing.trees[paths]):
        chosen = np.flatnonzero(flowing.trees[paths] == tree)
        publishers = flowing.publishers[paths[chosen]]
        features[chosen] = network.features(publishers, audience.home, int(tree))
    features[:, len(ALONG) + len(FAILING) :] = network.of_peers(audience, queue_rate)
    return features


def _regimes(
    wanted: sparse.csr_array, features: Floats, on_time: Floats, if_longer: Floats
) -> Floats:
    """[filter, feature]: means over what a filter wants, and how its share lies."""
    total = np.asarray(wanted.sum(axis=1))
    rate = np.where(total > 0.0, total, 1.0)
    share = wanted @ on_time / rate
    moved = np.abs(share - wanted @ if_longer / rate)
    return np.column_stack(
        [wanted @ features / rate[:, None], moved, np.minimum(share, 1.0 - share)]
    )


def on_time_and_mean(network: Network, audience: Audience) -> tuple[Floats, Floats]:
    """Compute on-time shares and mean delays in seconds, [filter], and nothing else."""
    flowing = network.streams
    used, wanted = demand(flowing, audience)
    first, path_of = _distinct_paths(flowing, used)
    last = network.exit(audience, float(wanted.sum(axis=1).max(initial=0.0)))
    delays = _along(network, network.followed[0], flowing, first, last, audience)
    on_time = _shares(delays, path_of, flowing, used, _lifetimes(flowing, used, audience))
    total = np.asarray(wanted.sum(axis=1))
    by_path = _columns_summed(wanted, path_of, len(delays))
    arriving = by_path @ delays.survival
    spent_s = by_path @ (delays.survival * (delays.shift_s + delays.mean_s))
    return (
        wanted @ on_time / np.where(total > 0.0, total, np.nan),
        spent_s / np.where(arriving > 0.0, arriving, np.nan),
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


def _along(
    network: Network,
    way: Paths | FailingPaths,
    flowing: Streams,
    used: Ints,
    last: Delays,
    audience: Audience,
) -> Delays:
    """[used stream]: the whole delay from publisher to subscriber."""
    order: list[Ints] = []
    parts: list[Delays] = []
    for tree in np.unique(flowing.trees[used]):
        chosen = np.flatnonzero(flowing.trees[used] == tree)
        publishers = flowing.publishers[used[chosen]]
        parts.append(way.from_publishers(publishers, audience.home, int(tree)))
        order.append(chosen)
    if not parts:
        return last.take(np.empty(0, dtype=np.int64))
    inside = stack(parts).take(np.argsort(np.concatenate(order)))
    entries = network.entry(flowing.publishers[used])
    whole = entries.series(inside).series(last)
    if audience.example.stays is None:
        return whole
    unfailing = way if isinstance(way, Paths) else way.paths  # by which subscriptions spread
    rows = [
        _for_a_time(network, unfailing, (flowing, int(stream)), (entries, whole, row), audience)
        for row, stream in enumerate(used)
    ]
    return stack(rows)


def _for_a_time(
    network: Network,
    way: Paths,
    stream: tuple[Streams, int],
    delays: tuple[Delays, Delays, int],
    audience: Audience,
) -> Delays:
    """The delay of one stream for subscribers that stay only for a time."""
    (flowing, index), (entries, whole, row) = stream, delays
    stays, away = audience.example.stays, audience.example.away
    assert stays is not None
    publisher = int(flowing.publishers[index])
    start = int(network.routes.home_of_publisher[publisher])
    arcs = path_arcs(network.routes, start, audience.home, int(flowing.trees[index]))
    present = present_share(stays, away)
    chances = network.churn.drawn(arcs, int(flowing.classes[index]), present)
    link = audience.example.link
    entry = entries if len(entries) == 1 else entries.take([row])
    ends = (entry, from_law(way.grid, link.delay))
    spreading, before = spread_and_before(way, ends, arcs, publisher)
    if present == 1.0:  # who is back at once is still known from before
        spreading = nothing(way.grid, len(spreading))
    return weighed_by_stay(whole.take([row]), spreading, before, stays, chances)


def _shares(
    delays: Delays,
    path_of: Ints,
    flowing: Streams,
    used: Ints,
    nodes: dict[Law | None, Floats],
) -> Floats:
    """[used stream]: the share that arrives within its lifetime."""
    share = np.zeros(used.size)
    for lifetime, times_s in nodes.items():
        chosen = np.array(
            [place for place, index in enumerate(used) if flowing.lifetimes[index] == lifetime],
            dtype=np.int64,
        )
        arrived = delays.at(np.tile(times_s, (chosen.size, 1)), path_of[chosen])
        share[chosen] = arrived.mean(axis=1)
    return share


def _distribution(
    delays: Delays, weights: Floats, nodes: dict[Law | None, Floats]
) -> tuple[Floats, Floats]:
    """Delays of a mixture in seconds, and the share that has arrived by then."""
    total = weights.sum()
    if total <= 0.0 or not np.any(weights * delays.survival > 0.0):
        return np.empty(0), np.empty(0)
    ends_s = delays.quantiles(weights[None, :], (0.001, 0.999))[0]
    first, last = np.searchsorted(_EDGES_S, ends_s)
    lifetimes = [times_s for times_s in nodes.values() if times_s.size == 1]
    certain_s = np.array([each[0] for each in lifetimes if math.isfinite(each[0])])
    times_s = np.unique(np.concatenate([_EDGES_S[max(first - 1, 0) : last + 1], certain_s]))
    arrived = weights @ delays.at(np.tile(times_s, (len(delays), 1))) / total
    return times_s, arrived
