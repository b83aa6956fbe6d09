"""Who wants what, in groups: events that enter alike, subscribers that share an exit.

Nothing here is as large as publishers × subscribers: a *stream* is all events that enter at the
same place in the same manner, follow one tree and have one lifetime; an *audience* is all
subscribers behind the same exit with the same lifetime of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from tidings.model.arrays import Bools, Floats, Ints
from tidings.model.laws import Deterministic, Law
from tidings.model.record_tables import Coded, column
from tidings.model.routes import Routes
from tidings.model.system import Subscriber, System

_BLOCK = 1 << 23  # (class, filter) pairs handled at once
_NODES = 256  # of a random lifetime, each with the same probability


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """All streams, and how much every filter selects from them."""

    publishers: Ints  # [stream]: one publisher of those that are alike
    path_of: Ints  # [stream]: the same number where only lifetimes differ
    trees: Ints  # [stream]
    classes: Ints  # [stream]: the class of content, where classes are kept apart; else −1
    lifetimes: tuple[Law | None, ...]  # all that there are; None: for ever
    lifetime_of: Ints  # [stream]: its position among these
    matched: sparse.csr_array  # [filter, stream], events per second


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Subscribers at one broker with equal links, peers and lifetimes."""

    home: int
    example: Subscriber  # what they have in common, but for filters
    subscribers: Ints
    filters: Ints  # the distinct filters among them
    filter_of: Ints  # for each subscriber, its position in ``filters``


def streams(
    system: System, routes: Routes, alike: Sequence[object], *, by_class: bool = False
) -> Streams:
    """Group what is published; publishers with equal keys ``alike`` are not kept apart."""
    kinds = {kind: number for number, kind in enumerate(dict.fromkeys(alike))}
    kind_of = [kinds[kind] for kind in alike]
    places: dict[tuple[int, int, int, Law | None], int] = {}
    first: list[tuple[int, int, int, Law | None]] = []
    of_row, rates = [], []
    for row in routes.rows:
        tree = int(routes.tree_of_class[row.content_class])
        own_class = row.content_class if by_class else -1
        key = (kind_of[row.publisher], tree, own_class, row.lifetime)
        if key not in places:
            places[key] = len(first)
            first.append((row.publisher, tree, own_class, row.lifetime))
        of_row.append(places[key])
        rates.append(system.publishers[row.publisher].rate_per_s * row.probability)
    stream_of_row = np.array(of_row, dtype=np.int64)
    known: dict[tuple[int, int, int], int] = {}
    path_of = [known.setdefault(key[:3], len(known)) for key in places]
    lifetimes = {law: place for place, law in enumerate(dict.fromkeys(each[3] for each in first))}
    return Streams(
        publishers=np.array([each[0] for each in first], dtype=np.int64),
        path_of=np.array(path_of, dtype=np.int64),
        trees=np.array([each[1] for each in first], dtype=np.int64),
        classes=np.array([each[2] for each in first], dtype=np.int64),
        lifetimes=tuple(lifetimes),
        lifetime_of=np.array([lifetimes[each[3]] for each in first], dtype=np.int64),
        matched=_matched(routes, np.array(rates), stream_of_row, len(first)),
    )


def _matched(routes: Routes, rates: Floats, stream_of_row: Ints, count: int) -> sparse.csr_array:
    """Compute the events per second that each filter selects from each stream.

    Where contents were drawn and all that a publisher publishes is one stream, what filters match
    of it is known without drawing.
    """
    publishers = np.array([row.publisher for row in routes.rows], dtype=np.int64)
    classes = np.array([row.content_class for row in routes.rows], dtype=np.int64)

    def selected(chosen: Bools) -> sparse.csr_array:
        table = (rates[chosen], (stream_of_row[chosen], classes[chosen]))
        by_class = sparse.coo_array(table, shape=(count, routes.class_count)).tocsr()
        return _selected(routes, by_class)

    exactly = {
        publisher: shares
        for publisher, shares in routes.drawn_shares.items()
        if np.unique(stream_of_row[publishers == publisher]).size == 1
    }
    drawn = np.isin(publishers, list(exactly))
    matched = selected(~drawn)
    if not exactly:
        return matched
    known = np.isfinite(next(iter(exactly.values())))  # the same filters of every publisher
    unknown = sparse.diags_array(np.where(known, 0.0, 1.0))
    table = np.zeros(matched.shape)
    for publisher, shares in exactly.items():
        mine = publishers == publisher
        table[known, stream_of_row[mine][0]] += rates[mine].sum() * shares[known]
    matched = matched + unknown @ selected(drawn) + sparse.csr_array(table)
    matched.eliminate_zeros()
    return matched


def _selected(routes: Routes, rates: sparse.csr_array) -> sparse.csr_array:
    """Compute the events per second that each filter selects, by class, some filters at a time."""
    size = max(1, _BLOCK // max(routes.class_count, 1))
    parts = [
        sparse.csr_array((rates @ routes.wants[:, begin : begin + size].astype(np.float64)).T)
        for begin in range(0, routes.wants.shape[1], size)
    ]
    return sparse.vstack(parts, format="csr")


def audiences(system: System, routes: Routes) -> Iterator[Audience]:
    """Group subscribers, home by home; those with queues of their own also by filter."""
    fields: list[Coded] = [
        column(system.subscribers, name)
        for name in ("link", "connectivity", "processing", "lifetime", "stays", "away")
    ]
    queued = np.zeros(len(system.subscribers), dtype=bool)
    for each in fields[1:3]:
        queued[each.where(lambda value: value is not None)] = True
    apart = np.where(queued, 1 + routes.filter_of_subscriber, 0)
    fields.append(Coded(values=tuple(range(int(apart.max(initial=0)) + 1)), codes=apart))
    kinds = tuple(len(each.values) for each in fields)
    kind_of = np.ravel_multi_index(tuple(each.codes for each in fields), kinds)
    keys = routes.home_of_subscriber * math.prod(kinds) + kind_of
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    for chosen in np.split(order, starts[1:]):
        filters, filter_of = np.unique(routes.filter_of_subscriber[chosen], return_inverse=True)
        yield Audience(
            home=int(routes.home_of_subscriber[chosen[0]]),
            example=system.subscribers[int(chosen[0])],
            subscribers=chosen,
            filters=filters,
            filter_of=filter_of,
        )


def lifetime_nodes(*laws: Law | None) -> Floats:
    """List times in seconds, equally likely, that the shortest of these lifetimes takes.

    One where it is certain; infinite where there is none.

    >>> lifetime_nodes(Deterministic(value_s=2.0), None, Deterministic(value_s=1.0))
    array([1.])
    """
    nodes = np.array([math.inf])
    for law in laws:
        if law is None:
            continue
        if isinstance(law, Deterministic):
            nodes = np.minimum(nodes, law.value_s)
            continue
        drawn = np.asarray(law.quantile((np.arange(_NODES) + 0.5) / _NODES))
        both = np.sort(np.minimum.outer(nodes, drawn).ravel())
        nodes = both.reshape(_NODES, -1).mean(axis=1) if both.size > _NODES else both
    return nodes
