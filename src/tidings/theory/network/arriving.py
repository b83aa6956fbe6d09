"""What comes to a home broker, stream by stream, and from there to an audience."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from tidings.model.arrays import Floats, Ints
from tidings.model.laws import Law
from tidings.theory.delay.delays import Delays, from_law, nothing, stack
from tidings.theory.delay.distributions import Distributions, side_by_side
from tidings.theory.delay.grids import Grid
from tidings.theory.delay.paths import Paths
from tidings.theory.feature_names import FEATURES
from tidings.theory.network.audiences import Audience, Streams, lifetime_nodes
from tidings.theory.peers.churn import path_arcs, present_share
from tidings.theory.peers.stay_weights import Meeting, spread_and_before, weighed_by_stay
from tidings.theory.repairs.schemes import FailingPaths

if TYPE_CHECKING:
    from tidings.theory.network.network import Network

_AROUND = 1.3  # factor around lifetimes up to which distributions are worked out
_BLOCK = 1 << 17  # transform values that are put together and inverted at once: they fit in caches


@dataclass(frozen=True, kw_only=True)
class Arriving:
    """Everything that comes to a home broker and that anybody there wants, stream by stream."""

    network: Network
    home: int
    streams: Streams
    used: Ints  # those that anybody wants, rising
    filters: Ints  # of everybody there, rising
    own_lifetimes: tuple[Law | None, ...]  # of everybody there
    matched: sparse.csr_array  # [filter, used stream], events per second

    @cached_property
    def publishers(self) -> Ints:
        """[used stream]."""
        return self.streams.publishers[self.used]

    def along(self, paths: Paths | FailingPaths, rows: Ints, grid: Grid | None = None) -> Delays:
        """Compute delays of used streams from the publisher to after the home broker, [row].

        At all times of the paths, or at those of a part of their grid.
        """
        if (
            isinstance(paths, FailingPaths) and rows.size < self.used.size
        ):  # they are known together
            return self.along(paths, np.arange(self.used.size)).take(rows)
        order = self._by_tree(rows)
        parts = [
            paths.from_publishers(self.publishers[rows[chosen]], self.home, tree, grid)
            for tree, chosen in order.items()
        ]
        if len(parts) > 1:
            return stack(parts).take(np.argsort(np.concatenate(list(order.values()))))
        return parts[0] if parts else nothing(paths.grid, 0)

    def _by_tree(self, rows: Ints) -> dict[int, Ints]:
        """Group some used streams by the tree that they follow."""
        trees = self.streams.trees[self.used[rows]]
        return {int(tree): np.flatnonzero(trees == tree) for tree in np.unique(trees)}

    @cached_property
    def at_home(self) -> tuple[Distributions, Distributions]:
        """[used stream], as waits are, and with those that are approximate a step longer.

        The latter only at what is left of lifetimes after what is certain of delays.
        """
        plain, longer = self.network.followed
        known = self._distributions(plain, plain.grid)
        return known, self._distributions(longer, self._around_rests(longer.grid, known.shift_s))

    def _distributions(self, paths: Paths | FailingPaths, grid: Grid) -> Distributions:
        path_of = self.streams.path_of[self.used]
        _, distinct, place = np.unique(path_of, return_index=True, return_inverse=True)
        order = self._by_tree(distinct)
        if isinstance(paths, FailingPaths) or not order:
            return self.along(paths, distinct, grid).distributions.take(place)
        each = side_by_side(
            [
                paths.distributions(self.publishers[distinct[chosen]], self.home, tree, grid)
                for tree, chosen in order.items()
            ]
        )
        if len(order) > 1:
            place = np.argsort(np.concatenate(list(order.values())))[place]
        return each.take(place)

    def _around_rests(self, grid: Grid, shift_s: Floats) -> Grid:
        codes = np.unique(self.streams.lifetime_of[self.used])
        laws = {self.streams.lifetimes[code] for code in codes}
        laws |= set(self.own_lifetimes)
        ends_s = [law.quantile(np.array([0.005, 0.995])) for law in laws if law is not None]
        rests_s = np.subtract.outer(np.ravel(ends_s), shift_s)
        rests_s = rests_s[rests_s > 0.0]
        if not rests_s.size:
            return grid
        return grid.between(max(rests_s.min(), 1e-4 * rests_s.max()), rests_s.max())

    @cached_property
    def features(self) -> Floats:
        """[used stream, feature]: what theory's error depends on."""
        features = np.zeros((self.used.size, len(FEATURES)))
        trees = self.streams.trees[self.used]
        for tree in np.unique(trees):
            chosen = np.flatnonzero(trees == tree)
            features[chosen] = self.network.features(self.publishers[chosen], self.home, int(tree))
        return features


def arriving(network: Network, audiences: Sequence[Audience], *, by_publisher: bool) -> Arriving:
    """Find everything that comes to one home broker for the audiences there."""
    streams = network.streams_by_publisher if by_publisher else network.streams
    filters = np.unique(np.concatenate([audience.filters for audience in audiences]))
    matched = streams.matched[filters]
    used = np.unique(matched.indices).astype(np.int64)
    return Arriving(
        network=network,
        home=audiences[0].home,
        streams=streams,
        used=used,
        filters=filters,
        own_lifetimes=tuple({audience.example.lifetime for audience in audiences}),
        matched=matched[:, used],
    )


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """What an audience wants of all that comes to its home broker, and how that gets there."""

    came: Arriving
    audience: Audience
    faster: float = 1.0  # by which factor its own queue gets more events than it wants

    @cached_property
    def demand(self) -> sparse.csr_array:
        """[filter, used stream of all that comes], events per second."""
        example = self.audience.example
        present = present_share(example.stays, example.away)
        mine = np.searchsorted(self.came.filters, self.audience.filters)
        return sparse.csr_array(self.came.matched[mine] * present)

    @cached_property
    def rate_per_s(self) -> float:
        """What the busiest of the audience wants, in events per second."""
        return float(self.demand.sum(axis=1).max(initial=0.0))

    @cached_property
    def exit(self) -> Delays:
        """From the home broker to the subscriber."""
        return self.came.network.exit(self.audience, self.faster * self.rate_per_s)

    @cached_property
    def nothing_happens(self) -> bool:
        """Whether events are there as soon as the home broker has served them."""
        return self.exit.is_nothing and self.audience.example.stays is None

    @cached_property
    def rows(self) -> Ints:
        """Streams that are followed: all, once for everybody, where nothing more happens."""
        if self.nothing_happens:
            return np.arange(self.came.used.size)
        return np.unique(self.demand.indices).astype(np.int64)

    @cached_property
    def wanted(self) -> sparse.csr_array:
        """[filter, row], events per second."""
        return self.demand if self.nothing_happens else self.demand[:, self.rows]

    def arrivals(self, which: int) -> Distributions:
        """Compute delay distributions from the publisher to the subscriber, [row].

        ``which`` says which of the followed paths.
        """
        if self.nothing_happens:
            return self.came.at_home[which]
        return self.distributions(self.came.network.followed[which])

    def distributions(self, paths: Paths | FailingPaths) -> Distributions:
        """Compute delay distributions from the publisher to the subscriber, [row]."""
        blocks = _blocks(paths, paths.grid, self.rows)
        return side_by_side([self.delays(paths, rows).distributions for rows in blocks])

    def delays(self, paths: Paths | FailingPaths, rows: Ints) -> Delays:
        """Compute delays of some streams that come, from the publisher to the subscriber, [row]."""
        whole = self.staying(paths, rows)
        if self.audience.example.stays is None:
            return whole
        weighed = [
            weighed_by_stay(whole.take([place]), self.meeting(paths, int(row)))
            for place, row in enumerate(rows)
        ]
        return stack(weighed) if weighed else whole

    def staying(self, paths: Paths | FailingPaths, rows: Ints) -> Delays:
        """Compute delays of some streams that come, to subscribers that never leave, [row]."""
        return self.came.along(paths, rows).series(self.exit.on(paths.grid))

    def meeting(self, paths: Paths | FailingPaths, row: int) -> Meeting:
        """Find where the events of one stream meet subscriptions that last only for a time."""
        if isinstance(paths, FailingPaths):
            paths = paths.paths  # by which subscriptions spread
        network, streams, stream = self.came.network, self.came.streams, self.came.used[row]
        stays, away = self.audience.example.stays, self.audience.example.away
        assert stays is not None
        publisher = int(streams.publishers[stream])
        start = int(network.routes.home_of_publisher[publisher])
        arcs = path_arcs(network.routes, start, self.audience.home, int(streams.trees[stream]))
        present = present_share(stays, away)
        entry = network.entry(np.array([publisher])).on(paths.grid)
        ends = (entry, from_law(paths.grid, self.audience.example.link.delay))
        spreading, before = spread_and_before(paths, ends, arcs, publisher)
        if present == 1.0:  # who is back at once is still known from before
            spreading = nothing(paths.grid, len(spreading))
        return Meeting(
            arcs=arcs,
            chances=network.churn.drawn(arcs, int(streams.classes[stream]), present),
            spreading=spreading,
            before=before,
            stays=stays,
        )

    @cached_property
    def lifetimes_s(self) -> dict[int, Floats]:
        """By lifetime of streams: times in seconds, equally likely, after which events expire."""
        laws, own = self.came.streams.lifetimes, self.audience.example.lifetime
        return {int(c): lifetime_nodes(laws[c], own) for c in np.unique(self.lifetime_codes)}

    @cached_property
    def lifetime_codes(self) -> Ints:
        """[row]: which of all lifetimes its stream has."""
        return self.came.streams.lifetime_of[self.came.used[self.rows]]

    def by_lifetime(self, of_rows: Callable[[Floats, Ints], Floats]) -> Floats:
        """Compute a number that depends on the lifetime of its stream, [row]."""
        number = np.zeros(self.rows.size)
        for code, lifetimes_s in self.lifetimes_s.items():
            chosen = np.flatnonzero(self.lifetime_codes == code)
            number[chosen] = of_rows(lifetimes_s, chosen)
        return number

    def left_s(self, shift_s: Floats) -> tuple[float, float]:
        """Find what is left of lifetimes after what is certain of delays [row]: least and most."""
        least, most = math.inf, 0.0
        for code in self.lifetimes_s:
            laws = (self.came.streams.lifetimes[code], self.audience.example.lifetime)
            for lifetime in laws:
                if lifetime is not None:
                    ends_s = np.asarray(lifetime.quantile(np.array([0.01, 0.99])))
                    rests_s = np.subtract.outer(ends_s, shift_s[self.lifetime_codes == code])
                    least = min(least, float(rests_s[rests_s > 0.0].min(initial=math.inf)))
                    most = max(most, float(rests_s.max()))
        return least, most

    def on_time_and_mean(self, paths: Paths | FailingPaths) -> tuple[Floats, Floats]:
        """Compute on-time shares and mean delays in seconds, [filter], and nothing else."""
        wanted, arrivals = self.wanted, self.distributions(paths)
        on_time = self.by_lifetime(arrivals.on_time)
        total = np.asarray(wanted.sum(axis=1))
        arriving_per_s = wanted @ arrivals.survival
        spent_s = wanted @ (arrivals.survival * (arrivals.shift_s + arrivals.mean_s))
        return (
            wanted @ on_time / np.where(total > 0.0, total, np.nan),
            spent_s / np.where(arriving_per_s > 0.0, arriving_per_s, np.nan),
        )


def around_lifetimes(
    network: Network, left_s: Sequence[tuple[float, float]]
) -> Paths | FailingPaths:
    """Give paths around lifetimes, or at all times where something weighs all of them."""
    first = network.followed[0]
    if network.churns or isinstance(first, FailingPaths):
        return first
    least = min((each[0] for each in left_s), default=np.inf)
    most = max((each[1] for each in left_s), default=0.0)
    if not np.isfinite(least) or most <= 0.0:
        least, most = 1.0, 2.0
    return first.on(first.grid.between(max(least, 1e-4 * most) / _AROUND, most * _AROUND))


def _blocks(paths: Paths | FailingPaths, grid: Grid, rows: Ints) -> Iterator[Ints]:
    """Give rows in parts that fit in caches; of what fails, all at once."""
    size = rows.size if isinstance(paths, FailingPaths) else max(_BLOCK // grid.z.size, 1)
    for begin in range(0, max(rows.size, 1), max(size, 1)):
        yield rows[begin : begin + size]


def on_time_and_mean(network: Network) -> tuple[Floats, Floats]:
    """Compute on-time shares and mean delays in seconds, [subscriber], and nothing else."""
    on_time, mean_s = (np.full(len(network.system.subscribers), np.nan) for _ in range(2))
    for group in network.by_home():
        came = arriving(network, group, by_publisher=False)
        for audience in group:
            leaving = Leaving(came=came, audience=audience)
            shares, delays_s = leaving.on_time_and_mean(network.followed[0])
            on_time[audience.subscribers] = shares[audience.filter_of]
            mean_s[audience.subscribers] = delays_s[audience.filter_of]
    return on_time, mean_s
