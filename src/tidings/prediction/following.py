"""Streams followed to their subscribers: what arrives, when, and which share is in time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

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
class Result:
    """What the filters of an audience want and get, by the streams they want anything of."""

    audience: Audience
    streams: Streams
    used: Ints
    wanted: Floats  # [filter, used stream], events per second
    delays: Delays  # [used stream]
    on_time: Floats  # [used stream], share of what is published
    if_longer: Floats  # the same with all waits a step longer
    regimes: Floats  # [used stream, feature]
    quantiles_s: Floats  # [filter, quantile]
    laws: list[tuple[Floats, Floats]]  # [filter]: delays, and shares arrived by then


def follow(network: Network, audience: Audience, *, whole: bool, by_publisher: bool) -> Result:
    """Follow every stream that an audience wants anything of to its subscribers."""
    flowing = network.streams_by_publisher if by_publisher else network.streams
    used, wanted = demand(flowing, audience)
    queue_rate = float(wanted.sum(axis=1).max(initial=0.0))
    last = network.exit(audience, queue_rate)
    delays, longer = (
        _along(network, paths, flowing, used, last, audience) for paths in network.followed
    )
    nodes = _lifetimes(flowing, used, audience)
    on_time, if_longer = (_shares(each, flowing, used, nodes) for each in (delays, longer))
    features = np.zeros((used.size, len(FEATURES)))
    for tree in np.unique(flowing.trees[used]):
        chosen = np.flatnonzero(flowing.trees[used] == tree)
        publishers = flowing.publishers[used[chosen]]
        features[chosen] = network.features(publishers, audience.home, int(tree))
    features[:, len(ALONG) + len(FAILING) :] = network.of_peers(audience, queue_rate)
    first = network.followed[0]
    if network.buffering and isinstance(first, FailingPaths):
        unkept = _along(network, first.without_buffers(), flowing, used, last, audience)
        lifetimes_s = np.vstack(np.broadcast_arrays(*(nodes[flowing.lifetimes[i]] for i in used)))
        delays = expiring(delays, unkept, on_time, lifetimes_s)
    return Result(
        audience=audience,
        streams=flowing,
        used=used,
        wanted=wanted,
        delays=delays,
        on_time=on_time,
        if_longer=if_longer,
        regimes=features,
        quantiles_s=delays.quantiles(wanted, list(QUANTILES.values())),
        laws=[_distribution(delays, row, nodes) for row in wanted] if whole and used.size else [],
    )


def on_time_and_mean(network: Network, audience: Audience) -> tuple[Floats, Floats]:
    """Compute on-time shares and mean delays in seconds, [filter], and nothing else."""
    flowing = network.streams
    used, wanted = demand(flowing, audience)
    last = network.exit(audience, float(wanted.sum(axis=1).max(initial=0.0)))
    delays = _along(network, network.followed[0], flowing, used, last, audience)
    on_time = _shares(delays, flowing, used, _lifetimes(flowing, used, audience))
    total = wanted.sum(axis=1)
    arriving = wanted @ delays.survival
    spent_s = wanted @ (delays.survival * (delays.shift_s + delays.mean_s))
    return (
        wanted @ on_time / np.where(total > 0.0, total, np.nan),
        spent_s / np.where(arriving > 0.0, arriving, np.nan),
    )


def demand(flowing: Streams, audience: Audience) -> tuple[Ints, Floats]:
    """List the streams that an audience wants anything of, and how much each filter does.

    In events per second, [filter, stream].
    """
    mine = flowing.matched[audience.filters]
    used = np.unique(mine.indices).astype(np.int64)
    present = present_share(audience.example.stays, audience.example.away)
    return used, mine[:, used].toarray() * present


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
    ends = (entries.take([row]), from_law(way.grid, link.delay))
    spreading, before = spread_and_before(way, ends, arcs, publisher)
    if present == 1.0:  # who is back at once is still known from before
        spreading = nothing(way.grid, len(spreading))
    return weighed_by_stay(whole.take([row]), spreading, before, stays, chances)


def _shares(
    delays: Delays, flowing: Streams, used: Ints, nodes: dict[Law | None, Floats]
) -> Floats:
    """[used stream]: the share that arrives within its lifetime."""
    found = np.zeros(used.size)
    for lifetime, times_s in nodes.items():
        chosen = np.array(
            [place for place, index in enumerate(used) if flowing.lifetimes[index] == lifetime],
            dtype=np.int64,
        )
        part = delays.take(chosen)
        found[chosen] = part.at(np.tile(times_s, (chosen.size, 1))).mean(axis=1)
    return found


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
