"""Who wants what, in groups: subscribers that share an exit, events that share way and lifetime.

Nothing here is as large as publishers × subscribers: an *audience* is all subscribers with the same
exit and lifetime of their own, a *stream* is all events with the same entry, tree and lifetime.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tidings.model.behaviour import Channel
from tidings.model.laws import Law
from tidings.model.record_tables import Coded, coded, column
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.theory.churn.drawing import Guests, guests_of_classes, present_share
from tidings.theory.presence import lasting
from tidings.theory.ways import Access, Ends

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BLOCK = 1 << 23  # (class, filter) pairs handled at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Events that enter alike, follow one tree and are of use equally long."""

    entry: Ends
    tree: int
    lifetime: Law | None  # None: for ever
    publisher: int  # −1 where publishers with the same entry are not told apart
    homes: tuple[int, ...] = ()  # brokers with lasting subscribers for them, where that matters
    guests: tuple[Guests, ...] = ()  # others who want them, and come and go


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Subscribers behind the same exit with the same lifetime of their own."""

    exit: Ends
    lifetime: Law | None  # their own
    present: float  # share of time in which they are subscribed
    subscribers: Ints
    filters: Ints  # the distinct filters among them
    filter_of: Ints  # for each subscriber, its position in ``filters``


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """All streams, and how much every filter selects from them."""

    each: tuple[Stream, ...]
    matched: sparse.csr_array  # [filter, stream], events per second
    brokers: Ints  # [stream], where it enters
    trees: Ints
    channels: Coded  # by which it enters
    lifetimes: Coded
    ways: Ints  # [stream]: streams with the same entry, tree, homes and guests have the same


def streams(
    system: System,
    routes: Routes,
    links: Sequence[Channel | Access],
    *,
    by_publisher: bool,
    by_homes: bool = False,
) -> Streams:
    """The streams of a system, per publisher or by who wants them if these are to be told apart.

    ``links`` are those of the publishers. Who wants them is who is there to stay.
    """
    wanted_at = routes.wanted_at(lasting(system)) if by_homes else None
    guests = guests_of_classes(system, routes) if by_homes else [()] * routes.class_count
    known: dict[Ends, Ends] = {}
    entries = [
        Ends(broker=int(home), channel=link)
        for home, link in zip(routes.home_of_publisher, links, strict=True)
    ]
    entries = [known.setdefault(entry, entry) for entry in entries]  # equal ones are one object
    found: dict[Stream, int] = {}
    places: list[int] = []
    rates: list[float] = []
    for row in routes.rows:
        publisher = system.publishers[row.publisher]
        stream = Stream(
            entry=entries[row.publisher],
            tree=int(routes.tree_of_class[row.content_class]),
            lifetime=row.lifetime,
            publisher=row.publisher if by_publisher else -1,
            homes=()
            if wanted_at is None
            else tuple(np.flatnonzero(wanted_at[:, row.content_class]).tolist()),
            guests=guests[row.content_class],
        )
        places.append(found.setdefault(stream, len(found)))
        rates.append(publisher.rate_per_s * row.probability)
    each = tuple(found)
    return Streams(
        each=each,
        matched=_matched(routes, np.array(rates), np.array(places, dtype=np.int64), len(each)),
        brokers=np.array([stream.entry.broker for stream in each], dtype=np.int64),
        trees=np.array([stream.tree for stream in each], dtype=np.int64),
        channels=coded(stream.entry.channel for stream in each),
        lifetimes=coded(stream.lifetime for stream in each),
        ways=coded(
            (id(stream.entry), stream.tree, stream.homes, stream.guests) for stream in each
        ).codes,
    )


def _matched(routes: Routes, rates: Floats, places: Ints, count: int) -> sparse.csr_array:
    """Events per second that each filter selects from each of so many streams.

    By rows of traffic, each with its rate and its stream. Where contents were drawn and all that a
    publisher publishes is one stream, what filters match of it is known without drawing.
    """
    publishers = np.array([row.publisher for row in routes.rows], dtype=np.int64)
    classes = np.array([row.content_class for row in routes.rows], dtype=np.int64)

    def by_class(chosen: NDArray[np.bool_]) -> sparse.csr_array:
        table = (rates[chosen], (places[chosen], classes[chosen]))
        return sparse.coo_array(table, shape=(count, routes.class_count)).tocsr()

    exactly = {
        publisher: shares
        for publisher, shares in routes.drawn_shares.items()
        if np.unique(places[publishers == publisher]).size == 1
    }
    drawn = np.isin(publishers, list(exactly))
    found = _selected(routes, by_class(~drawn))
    if not exactly:
        return found
    known = np.isfinite(next(iter(exactly.values())))  # the same filters of every publisher
    unknown = sparse.diags_array(np.where(known, 0.0, 1.0))
    table = np.zeros(found.shape)
    for publisher, shares in exactly.items():
        mine = publishers == publisher
        table[known, places[mine][0]] += rates[mine].sum() * shares[known]
    found = found + unknown @ _selected(routes, by_class(drawn)) + sparse.csr_array(table)
    found.eliminate_zeros()
    return found


def _selected(routes: Routes, rates: sparse.csr_array) -> sparse.csr_array:
    """Events per second that each filter selects, by class, some filters at a time."""
    count = routes.wants.shape[1]
    size = max(1, _BLOCK // max(routes.class_count, 1))
    parts = [
        sparse.csr_array((rates @ routes.wants[:, begin : begin + size].astype(np.float64)).T)
        for begin in range(0, count, size)
    ]
    return sparse.vstack(parts, format="csr")


def audiences(system: System, routes: Routes, links: Coded) -> Iterator[Audience]:
    """The audiences of a system, by home broker; ``links`` are the ways out to subscribers.

    Neighbours in this order share most of their ways: what is remembered serves the next one too.
    """
    others = (column(system.subscribers, name) for name in ("lifetime", "stays", "away"))
    fields = [links, *others]
    kinds = tuple(len(field.values) for field in fields)
    kind_of = np.ravel_multi_index(tuple(field.codes for field in fields), kinds)
    keys = routes.home_of_subscriber * math.prod(kinds) + kind_of
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    for chosen in np.split(order, starts[1:]):
        places = np.unravel_index(kind_of[chosen[0]], kinds)
        link, lifetime, stays, away = (
            field.values[int(place)] for field, place in zip(fields, places, strict=True)
        )
        home = int(routes.home_of_subscriber[chosen[0]])
        filters, filter_of = np.unique(routes.filter_of_subscriber[chosen], return_inverse=True)
        present = present_share(stays, away)
        yield Audience(
            exit=Ends(broker=home, channel=link, stays=stays, present=present),
            lifetime=lifetime,
            present=present,
            subscribers=chosen,
            filters=filters,
            filter_of=filter_of,
        )
