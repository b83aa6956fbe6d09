"""Which events go where: contents in classes, filters united per arc, rates per publisher.

Contents that no filter tells apart (and that follow the same tree) are one *class*. What crosses an
arc is the union of what is wanted behind it, so an event crosses an arc once however many
subscriptions match behind it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from scipy import sparse

from tidings.model import topology
from tidings.model.arrays import Bools, Floats, Ints
from tidings.model.content import IndependentContent
from tidings.model.content_cells import Cells, Sampling
from tidings.model.events import Event
from tidings.model.filters import Filter
from tidings.model.laws import Law
from tidings.model.match_shares import match_shares
from tidings.model.matching import content_classes, match_matrix
from tidings.model.record_tables import column
from tidings.model.system import System

Numbers = TypeVar("Numbers", Ints, Floats)
# Publisher, event, probability, lifetime, size.
Draft = tuple[int, int, float, Law | None, float | None]
EXACT_IF_POSSIBLE = Sampling()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficRow:
    """A share of a publisher's events alike in all that matters: class, type, lifetime, size."""

    publisher: int
    content_class: int
    probability: float
    lifetime: Law | None
    size_bytes: float | None
    event: int  # an event of this kind, by position in Routes.events


@dataclass(frozen=True, slots=True, kw_only=True)
class Routes:
    """A system's contents, classes and paths; indices are positions in the system's own tuples."""

    events: tuple[Event, ...]  # the distinct contents
    class_of_event: Ints
    rows: tuple[TrafficRow, ...]
    arcs: tuple[topology.Arc, ...]
    trees: tuple[topology.Tree, ...]
    tree_of_class: Ints
    home_of_publisher: Ints
    home_of_subscriber: Ints
    filter_of_subscriber: Ints
    wants: Bools  # [class, filter]
    interest: Ints  # [arc, class]: how many subscribers behind the arc want the class
    sampled: tuple[int, ...]  # publishers whose contents were drawn, being too many
    sampling: Sampling  # how
    drawn_shares: Mapping[int, Floats]  # of each such publisher: what every filter matches, exactly

    @property
    def class_count(self) -> int:
        """How many classes of contents there are."""
        return int(self.wants.shape[0])

    def wanted_by(self, subscriber: int) -> Bools:
        """Find the classes that a subscriber wants."""
        return self.wants[:, self.filter_of_subscriber[subscriber]]

    def rates(self, publisher_rates: Floats) -> Floats:
        """Compute the events published per second, [publisher, class]."""
        rates_per_s = np.zeros((self.home_of_publisher.size, self.class_count))
        for row in self.rows:
            rate = publisher_rates[row.publisher] * row.probability
            rates_per_s[row.publisher, row.content_class] += rate
        return rates_per_s


def route(system: System, sampling: Sampling = EXACT_IF_POSSIBLE) -> Routes:
    """Work out classes, trees and interests of a system.

    ``sampling`` says what becomes of contents that are too many to enumerate.
    """
    trees = topology.trees(system)
    arcs = topology.arcs(system)
    wanted = column(system.subscribers, "wants")
    filters = wanted.values
    events, drafts, sampled = _contents(system, filters, sampling)
    tree_of_event = _trees_of_events(system, trees, events)
    seen = np.column_stack([match_matrix(filters, events), _one_hot(tree_of_event, len(trees))])
    class_of_event, table = content_classes(seen)
    tree_of_class = np.zeros(len(table), dtype=np.int64)
    tree_of_class[class_of_event] = tree_of_event
    wants = table[:, : len(filters)]
    home = system.broker_index
    homes, counts = column(system.subscribers, "at"), column(system.subscribers, "count")
    home_of = np.array([home[at] for at in homes.values], dtype=np.int64)[homes.codes]
    subscriptions = sparse.coo_array(
        (np.array(counts.values, dtype=np.int64)[counts.codes], (home_of, wanted.codes)),
        shape=(len(system.brokers), len(filters)),
    ).tocsr()
    local = (subscriptions @ sparse.csc_array(wants.T, dtype=np.int64)).toarray()
    return Routes(
        events=tuple(events),
        class_of_event=class_of_event,
        rows=_merge(drafts, class_of_event, _types(system, events)),
        arcs=arcs,
        trees=trees,
        tree_of_class=tree_of_class,
        home_of_publisher=np.array([home[p.at] for p in system.publishers], dtype=np.int64),
        home_of_subscriber=home_of,
        filter_of_subscriber=wanted.codes,
        wants=wants,
        interest=behind_arcs(trees, arcs, tree_of_class, local),
        sampled=tuple(sampled),
        sampling=sampling,
        drawn_shares=_drawn_shares(system, filters, sampled),
    )


def _drawn_shares(
    system: System, filters: tuple[Filter, ...], sampled: Sequence[int]
) -> dict[int, Floats]:
    """Compute, by publisher, the share of its events that each filter matches; NaN if unknown.

    Only publishers whose contents were sampled are asked for.
    """
    contents = {index: system.publishers[index].content for index in sampled}
    known: dict[IndependentContent, Floats] = {}
    for content in contents.values():
        if isinstance(content, IndependentContent) and content not in known:
            known[content] = match_shares(filters, content)
    return {
        index: known[content]
        for index, content in contents.items()
        if isinstance(content, IndependentContent)
    }


def _contents(
    system: System, filters: tuple[Filter, ...], sampling: Sampling
) -> tuple[list[Event], list[Draft], list[int]]:
    """List the distinct events, what of them each publisher publishes, and whose were sampled."""
    by = system.routing.by if system.routing else None
    distinguished = [attribute for attribute in (by, system.event_type) if attribute is not None]
    cells = Cells(
        filters=filters,
        contents=tuple(publisher.content for publisher in system.publishers),
        distinguished=tuple(distinguished),
        sampling=sampling,
    )
    places: dict[str, int] = {}
    events: list[Event] = []
    drafts: list[Draft] = []
    sampled: list[int] = []
    for position, publisher in enumerate(system.publishers):
        own_cells, drawn = cells.cells(publisher.content, publisher.name)
        sampled += [position] if drawn else []
        for cell in own_cells:
            place = places.setdefault(cell.text, len(events))
            if place == len(events):
                events.append(cell.event)
            lifetime = system.lifetime_of(publisher, cell.lifetime)
            size = cell.size_bytes or publisher.size_bytes or system.size_bytes
            drafts.append((position, place, cell.probability, lifetime, size))
    return events, drafts, sampled


def classes_of(system: System, routes: Routes, events: Sequence[Event]) -> Ints:
    """Find the class of each of some events that the system's publishers may publish.

    Contents in cells have one example each among the events of the routes; this tells of the rest.
    """
    trees = _trees_of_events(system, routes.trees, events)
    known = {
        (wants.tobytes(), int(tree)): number
        for number, (wants, tree) in enumerate(
            zip(np.packbits(routes.wants, axis=1), routes.tree_of_class, strict=True)
        )
    }
    matched = np.packbits(match_matrix(column(system.subscribers, "wants").values, events), axis=1)
    classes = [
        known[wants.tobytes(), int(tree)] for wants, tree in zip(matched, trees, strict=True)
    ]
    return np.array(classes, dtype=np.int64)


def _trees_of_events(
    system: System, trees: tuple[topology.Tree, ...], events: Sequence[Event]
) -> Ints:
    position = {tree.name: index for index, tree in enumerate(trees)}
    attribute = system.routing.by if system.routing else None
    if attribute is None:
        return np.zeros(len(events), dtype=np.int64)
    default = position[topology.ONLY_TREE]
    values = [event.get(attribute) for event in events]
    # A value is named in the file as it is written there: texts plainly, the rest as in JSON.
    names = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return np.array(
        [
            default if value is None else position.get(name, default)
            for value, name in zip(values, names, strict=True)
        ],
        dtype=np.int64,
    )


def _one_hot(values: Ints, size: int) -> Bools:
    return np.asarray(values[:, None] == np.arange(size)[None, :], dtype=np.bool_)


def type_of(system: System, event: Event) -> str:
    """Write an event's type as the file names it; "" if it has none.

    Texts are written plainly, the rest as in JSON.
    """
    value = None if system.event_type is None else event.get(system.event_type)
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _types(system: System, events: Sequence[Event]) -> list[str]:
    return [type_of(system, event) for event in events]


def _merge(
    drafts: list[Draft], class_of_event: Ints, types: Sequence[str]
) -> tuple[TrafficRow, ...]:
    """Merge contents of one publisher that share class, type, lifetime and size into one row."""
    shares: dict[tuple[int, int, Law | None, float | None, str], list[float]] = {}
    example: dict[tuple[int, int, Law | None, float | None, str], int] = {}
    for publisher, event, probability, lifetime, size in drafts:
        key = (publisher, int(class_of_event[event]), lifetime, size, types[event])
        shares.setdefault(key, []).append(probability)
        example.setdefault(key, event)
    return tuple(
        TrafficRow(
            publisher=key[0],
            content_class=key[1],
            probability=sum(parts),
            lifetime=key[2],
            size_bytes=key[3],
            event=example[key],
        )
        for key, parts in shares.items()
    )


def behind_arcs(
    trees: tuple[topology.Tree, ...],
    arcs: tuple[topology.Arc, ...],
    tree_of_class: Ints,
    local: Numbers,
) -> Numbers:
    """Sum up what is behind each arc, [arc, class], from what is at each broker, in two sweeps.

    From the leaves inwards, what is behind an arc is what is at its end and behind the arcs that
    lead on from there; the arcs outwards then see everything that is not behind their reverse.
    """
    behind_arc = np.zeros((len(arcs), local.shape[1]), dtype=local.dtype)
    for index, tree in enumerate(trees):
        mine = np.flatnonzero(tree_of_class == index)
        here = local[:, mine]
        behind = here.copy()
        order = list(topology.walk(tree, arcs, 0))
        for broker, into in reversed(order):
            if into >= 0:
                behind_arc[into, mine] = behind[broker]
                behind[arcs[into].source] += behind[broker]
        total = here.sum(axis=0)
        for _, into in order:
            if into >= 0:
                behind_arc[into ^ 1, mine] = total - behind_arc[into, mine]
    return behind_arc
