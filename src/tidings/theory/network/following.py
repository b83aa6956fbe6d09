"""Streams followed to their subscribers: what arrives, when, and which share is in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from tidings.model.arrays import Floats, Ints
from tidings.model.delay_grid import EDGES_S
from tidings.model.outcome import QUANTILES
from tidings.theory.delay.distributions import Distributions
from tidings.theory.feature_names import ALONG, FAILING
from tidings.theory.network.arriving import Arriving, Leaving
from tidings.theory.network.audiences import Audience
from tidings.theory.repairs.expiry import expiring
from tidings.theory.repairs.schemes import FailingPaths

_EDGES_S = EDGES_S[::2]
_ROUNDING = 1e-9  # of a lifetime: sums of constants may exceed it by that much and be equal to it


@dataclass(frozen=True, kw_only=True)
class Followed:
    """Streams followed to an audience: what its filters want of each, and when that arrives."""

    audience: Audience
    publishers: Ints  # [stream]
    wanted: sparse.csr_array  # [filter, stream], events per second
    arrivals: Distributions  # [stream]
    on_time: Floats  # [stream], share of what is published

    def numbers(self, chosen: Ints | None = None) -> dict[str, Floats]:
        """Compute the columns of the result, [filter], over all streams or some of them."""
        arrivals, wanted, in_time = self.arrivals, self.wanted, self.on_time
        if chosen is not None:
            arrivals, wanted = arrivals.take(chosen), wanted[:, chosen]
            in_time = in_time[chosen]
        total = np.asarray(wanted.sum(axis=1))
        rate = np.where(total > 0.0, total, np.nan)
        delivered = wanted @ arrivals.survival / rate
        on_time = wanted @ in_time / rate
        spent_s = wanted @ (arrivals.survival * (arrivals.shift_s + arrivals.mean_s)) / rate
        quantiles_s = arrivals.quantiles(wanted, list(QUANTILES.values()))
        return {
            "wanted_per_s": total,
            "on_time": on_time,
            "delivered": delivered,
            "late": np.maximum(delivered - on_time, 0.0),
            **{
                f"lost_{cause}": np.nan_to_num(wanted @ lost / rate)
                for cause, lost in arrivals.lost.items()
            },
            "delay_mean_s": spent_s / np.where(delivered > 0.0, delivered, np.nan),
            **{name: quantiles_s[:, index] for index, name in enumerate(QUANTILES)},
        }


@dataclass(frozen=True, kw_only=True)
class Result:
    """What the filters of an audience get."""

    audience: Audience
    numbers: dict[str, Floats]  # [filter]: columns of the table of subscribers
    regimes: Floats  # [filter, feature]
    roughness: Floats  # [filter]: how far its share is off by arithmetic alone
    possible: Floats  # [filter]: share of events whose lifetime is no shorter than certain delays
    laws: dict[int, tuple[Floats, Floats]]  # by filter: delays, and shares arrived by then
    left_s: tuple[float, float]  # of lifetimes after what is certain of delays, least and most
    followed: Followed | None  # where publishers are kept apart


class Worst:
    """The lowest on-time shares seen so far, as many as are to be kept."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._shares: Floats = np.empty(0)

    @property
    def limit(self) -> float:
        """The highest share that is among them; there may still be room for any."""
        if self._shares.size < self.most or not self.most:
            return math.inf if self.most else -math.inf
        return float(self._shares[-1])

    def add(self, shares: Floats) -> None:
        """See more shares; unknown ones are never among the lowest."""
        known = np.where(np.isnan(shares), math.inf, shares)
        self._shares = np.sort(np.concatenate([self._shares, known]))[: self.most]


def follow(came: Arriving, audience: Audience, worst: Worst, *, by_publisher: bool) -> Result:
    """Follow every stream that an audience wants anything of to its subscribers.

    Whole distributions are given of those that are among the worst so far.
    """
    leaving = Leaving(came=came, audience=audience)
    network, wanted = came.network, leaving.wanted
    arrivals, longer = leaving.arrivals(0), leaving.arrivals(1)
    on_time, if_longer = (leaving.by_lifetime(each.on_time) for each in (arrivals, longer))
    rough = leaving.by_lifetime(arrivals.roughness)
    possible = leaving.by_lifetime(partial(_possible, arrivals.shift_s))
    features = came.features[leaving.rows]
    features[:, len(ALONG) + len(FAILING) :] = network.of_peers(audience, leaving.rate_per_s)
    first = network.followed[0]
    if network.buffering and isinstance(first, FailingPaths) and leaving.rows.size:
        arrivals = _expiring(leaving, arrivals, first, on_time)
    followed = Followed(
        audience=audience,
        publishers=came.publishers[leaving.rows],
        wanted=wanted,
        arrivals=arrivals,
        on_time=on_time,
    )
    numbers = followed.numbers()
    worst.add(numbers["on_time"][audience.filter_of])
    laws = {}
    if leaving.rows.size:
        certain_s = [each[0] for each in leaving.lifetimes_s.values() if each.size == 1]
        laws = {
            int(each): _distribution(arrivals, wanted[[each]].toarray()[0], certain_s)
            for each in np.flatnonzero(~(numbers["on_time"] > worst.limit))
        }
    return Result(
        audience=audience,
        numbers=numbers,
        regimes=_regimes(wanted, features, on_time, if_longer),
        roughness=_mean(wanted, rough),
        possible=_mean(wanted, possible),
        laws=laws,
        left_s=leaving.left_s(arrivals.shift_s),
        followed=followed if by_publisher else None,
    )


def _possible(certain_s: Floats, lifetimes_s: Floats, rows: Ints) -> Floats:
    """Give 0 where what is certain of delays exceeds a lifetime, else 1, [of rows].

    Random lifetimes are known by some quantiles only, so nothing is certain of these.
    """
    if lifetimes_s.size > 1:
        return np.ones(rows.size)
    limit_s = lifetimes_s[0] * (1.0 + _ROUNDING)
    return np.where(certain_s[rows] <= limit_s, 1.0, 0.0)


def _expiring(
    leaving: Leaving, arrivals: Distributions, paths: FailingPaths, on_time: Floats
) -> Distributions:
    """Drop what waited in a buffer and is not in time."""
    unkept = leaving.distributions(paths.without_buffers())
    code_of = leaving.came.streams.lifetime_of[leaving.came.used[leaving.rows]]
    alike = np.vstack(np.broadcast_arrays(*leaving.lifetimes_s.values()))
    lifetimes_s = alike[np.searchsorted(list(leaving.lifetimes_s), code_of)]
    return expiring(arrivals, unkept, on_time, lifetimes_s)


def _regimes(
    wanted: sparse.csr_array, features: Floats, on_time: Floats, if_longer: Floats
) -> Floats:
    """Compute means over what a filter wants, and how its share lies, [filter, feature]."""
    share = _mean(wanted, on_time)
    moved = np.abs(share - _mean(wanted, if_longer))
    return np.column_stack([_mean(wanted, features), moved, np.minimum(share, 1.0 - share)])


def _mean(wanted: sparse.csr_array, values: Floats) -> Floats:
    """Average what belongs to streams over what a filter wants, [filter]; 0 for nothing."""
    total = np.asarray(wanted.sum(axis=1))
    summed: Floats = wanted @ values
    return (summed.T / np.where(total > 0.0, total, 1.0)).T


def _distribution(
    arrivals: Distributions, weights: Floats, lifetimes_s: Sequence[float]
) -> tuple[Floats, Floats]:
    """Compute delays of a mixture, in seconds, and the share that has arrived by then."""
    total = weights.sum()
    if total <= 0.0 or not np.any(weights * arrivals.survival > 0.0):
        return np.empty(0), np.empty(0)
    rows = np.flatnonzero(weights)
    ends_s = arrivals.quantiles(weights[None, :], (0.001, 0.999))[0]
    first, last = np.searchsorted(_EDGES_S, ends_s)
    certain_s = [each for each in lifetimes_s if math.isfinite(each)]
    times_s = np.unique(np.concatenate([_EDGES_S[max(first - 1, 0) : last + 1], certain_s]))
    arrived = weights[rows] @ arrivals.at(np.tile(times_s, (rows.size, 1)), rows) / total
    return times_s, arrived
