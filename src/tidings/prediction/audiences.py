"""Who wants what, in groups: subscribers that share an exit, events that share way and lifetime.

Nothing here is as large as publishers × subscribers: an *audience* is all subscribers with the same
exit and lifetime of their own, a *stream* is all events with the same entry, tree and lifetime.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tidings.model.behaviour import Channel
from tidings.model.laws import Law
from tidings.model.routes import Routes
from tidings.model.system import System
from tidings.prediction.ways import Access, Ends

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Events that enter alike, follow one tree and are of use equally long."""

    entry: Ends
    tree: int
    lifetime: Law | None  # None: for ever
    publisher: int  # −1 where publishers with the same entry are not told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Subscribers behind the same exit with the same lifetime of their own."""

    exit: Ends
    lifetime: Law | None  # their own
    subscribers: Ints
    filters: Ints  # the distinct filters among them
    filter_of: Ints  # for each subscriber, its position in ``filters``


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """All streams, and how much of each class they carry per second."""

    each: tuple[Stream, ...]
    rates: sparse.csr_array  # [stream, class]

    def wanted(self, routes: Routes, filters: Ints) -> Floats:
        """Events per second that each filter selects from each stream, [filter, stream]."""
        chosen = routes.wants[:, filters].astype(np.float64)
        found: Floats = (self.rates @ chosen).T
        return found


def streams(
    system: System, routes: Routes, links: Sequence[Channel | Access], *, by_publisher: bool
) -> Streams:
    """The streams of a system, per publisher if these are to be told apart; links by publisher."""
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
        )
        places.append(found.setdefault(stream, len(found)))
        rates.append(publisher.rate_per_s * row.probability)
    classes = [row.content_class for row in routes.rows]
    table = sparse.coo_array((rates, (places, classes)), shape=(len(found), routes.class_count))
    return Streams(each=tuple(found), rates=table.tocsr())


def audiences(
    system: System, routes: Routes, links: Sequence[Channel | Access]
) -> Iterator[Audience]:
    """The audiences of a system; links by subscriber."""
    members: dict[tuple[Ends, Law | None], list[int]] = {}
    for index, subscriber in enumerate(system.subscribers):
        home = int(routes.home_of_subscriber[index])
        key = (Ends(broker=home, channel=links[index]), subscriber.lifetime)
        members.setdefault(key, []).append(index)
    # Neighbours in this order share most of their ways: what is remembered serves the next one too.
    ordered = sorted(members.items(), key=lambda item: item[0][0].broker)
    for (exit_, lifetime), indices in ordered:
        chosen = np.array(indices, dtype=np.int64)
        filters, filter_of = np.unique(routes.filter_of_subscriber[chosen], return_inverse=True)
        yield Audience(
            exit=exit_,
            lifetime=lifetime,
            subscribers=chosen,
            filters=filters,
            filter_of=filter_of,
        )
