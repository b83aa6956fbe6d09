"""From what the kernel taped to rows of the canonical trace tables, part by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.kernels.streams import stream_states
from tidings.model.arrays import Floats, Ints
from tidings.model.connectivity_traces import STATES
from tidings.model.routes import classes_of, type_of
from tidings.model.trace_files import trace_table
from tidings.simulation.network import CompiledSystem
from tidings.simulation.tapes import ROWS_AT_ONCE, Tapes, nanoseconds, turns_in_window
from tidings.simulation.world import Window


def names_at(names: Sequence[str], positions: NDArray[Any]) -> pa.Array:
    """The names at these positions."""
    return pa.array(list(names), type=pa.string()).take(pa.array(positions))


def generator_of(seed: int, replication: int, entity: str, purpose: str) -> np.random.Generator:
    """Random numbers of one entity for one purpose; those of the kernel stay as they are."""
    words = stream_states(seed, replication, [(entity, purpose)])[0]
    return np.random.default_rng([int(word) for word in words])


class TraceRows:
    """Turns the parts of one run, in their order, into rows of trace tables.

    Events of replication 0 are called e1, e2 and so on, those of replication 7 e7-1, e7-2: runs put
    together have no two of the same name.
    """

    def __init__(
        self, compiled: CompiledSystem, window: Window, seed: int, replication: int
    ) -> None:
        self._compiled, self._window = compiled, window
        self._prefix = f"e{replication}-" if replication else "e"
        self._contents = generator_of(seed, replication, "publishers", "which content")

    def publications(self, tapes: Tapes) -> Iterator[pa.Table]:
        """Events as they were handed over."""
        system, taped = self._compiled.system, tapes.publications
        rows = self._compiled.routes.rows
        publisher = np.array([row.publisher for row in rows])[taped["row"]]
        sizes = [None if row.size_bytes is None else round(row.size_bytes) for row in rows]
        endless = np.isinf(taped["lifetime"])
        lifetime_s = np.where(endless, 0.0, taped["lifetime"])
        columns = {
            "event": self._ids(taped["number"]),
            "publisher": names_at([each.name for each in system.publishers], publisher),
            "broker": names_at([each.at for each in system.publishers], publisher),
            "published_ns": nanoseconds(taped["born"], self._window),
            "content": self._drawn_contents(taped["row"]),
            "lifetime_ns": pa.array(np.floor(lifetime_s * 1e9 + 0.5).astype(int), mask=endless),
            "size_bytes": pa.array(sizes, type=pa.int64()).take(pa.array(taped["row"])),
        }
        yield trace_table("publications", columns)

    def hops(self, tapes: Tapes) -> Iterator[pa.Table]:
        """Copies that brokers were done with."""
        system, arcs, taped = self._compiled.system, self._compiled.routes.arcs, tapes.hops
        brokers = [broker.name for broker in system.brokers]
        sources = [brokers[arc.source] for arc in arcs]
        sources += [publisher.name for publisher in system.publishers]
        targets = np.array([arc.target for arc in arcs], dtype=np.int64)
        ends = np.concatenate([[0], np.cumsum(taped["sent"])]).astype(np.int32)
        sent_to = names_at(brokers, targets[tapes.sends["value"]])
        columns = {
            "event": self._ids(taped["number"]),
            "broker": names_at(brokers, taped["broker"]),
            "came_from": names_at(sources, taped["channel"]),
            "arrived_ns": nanoseconds(taped["entered"], self._window),
            "started_ns": nanoseconds(taped["started"], self._window),
            "left_ns": nanoseconds(taped["left"], self._window),
            "sent_to": pa.ListArray.from_arrays(pa.array(ends), sent_to),
        }
        yield trace_table("hops", columns)

    def deliveries(self, tapes: Tapes) -> Iterator[pa.Table]:
        """A row for every subscriber: the kernel taped one for all plain ones of a broker."""
        taped, places = tapes.deliveries, len(self._compiled.system.brokers)
        first, _ = self._audiences
        at = np.where(taped["place"] >= 0, taped["place"], places - 1 - taped["place"])
        key = at * self._compiled.routes.class_count + taped["content_class"]
        table = np.cumsum(first[key + 1] - first[key]) // ROWS_AT_ONCE
        for some in np.split(np.arange(key.size), np.flatnonzero(np.diff(table)) + 1):
            yield self._delivered(taped[some], key[some])

    def _delivered(self, taped: Any, key: Ints) -> pa.Table:
        first, members = self._audiences
        count = first[key + 1] - first[key]
        delivery = np.repeat(np.arange(key.size), count)
        start = np.repeat(first[key] - np.concatenate([[0], np.cumsum(count)[:-1]]), count)
        subscriber = members[start + np.arange(delivery.size)]
        everyone = self._compiled.system.subscribers
        columns = {
            "event": self._ids(taped["number"]).take(pa.array(delivery)),
            "subscriber": names_at([each.name for each in everyone], subscriber),
            "broker": names_at([each.at for each in everyone], subscriber),
            "received_ns": nanoseconds(taped["received"], self._window)[delivery],
        }
        return trace_table("deliveries", columns)

    def _ids(self, numbers: NDArray[Any]) -> pa.Array:
        return pc.binary_join_element_wise(self._prefix, pa.array(numbers).cast(pa.string()), "")

    def _drawn_contents(self, rows: Ints) -> pa.Array:
        """The contents of events: a row stands for all contents that no filter tells apart."""
        texts, bounds, last = self._members
        place = np.searchsorted(bounds, rows + self._contents.random(rows.size), side="right")
        return texts.take(pa.array(np.minimum(place, last[rows])))

    @cached_property
    def _members(self) -> tuple[pa.Array, Floats, Ints]:
        """The contents that each row of the routes stands for, row after row.

        Those of row r divide the numbers from r to r + 1 by their shares; where each ends, and
        which is the last of every row.
        """
        members = _members(self._compiled)
        texts = [text for choices in members for text, _ in choices]
        bounds = []
        for row, choices in enumerate(members):
            shares = np.cumsum([share for _, share in choices])
            bounds.append(row + shares / shares[-1])
        last = np.cumsum([len(choices) for choices in members]) - 1
        return pa.array(texts, type=pa.string()), np.concatenate(bounds), last

    @cached_property
    def _audiences(self) -> tuple[Ints, Ints]:
        """Subscribers by (place, class), list after list; places: brokers, then receivers."""
        routes, brokers = self._compiled.routes, len(self._compiled.system.brokers)
        receiver = self._compiled.receiver_of
        place = np.where(receiver < 0, routes.home_of_subscriber, brokers + receiver)
        keys, members = [], []
        for index in range(len(self._compiled.system.subscribers)):
            wanted = np.flatnonzero(routes.wanted_by(index))
            keys.append(place[index] * routes.class_count + wanted)
            members.append(np.full(wanted.size, index, dtype=np.int64))
        key = np.concatenate(keys)
        order = np.argsort(key, kind="stable")
        places = brokers + len(self._compiled.tables["receivers"])
        counts = np.bincount(key, minlength=places * routes.class_count)
        return np.concatenate([[0], np.cumsum(counts)]), np.concatenate(members)[order]


def _members(compiled: CompiledSystem) -> list[list[tuple[str, float]]]:
    """The contents, with their shares, that each row of the routes stands for."""
    system, routes = compiled.system, compiled.routes
    row_of = {}
    for index, row in enumerate(routes.rows):
        kind = type_of(system, routes.events[row.event])
        row_of[row.publisher, row.content_class, kind, row.lifetime, row.size_bytes] = index
    members: list[list[tuple[str, float]]] = [[] for _ in routes.rows]
    for index, publisher in enumerate(system.publishers):
        contents = publisher.content.rows()
        classes = classes_of(system, routes, [content.event for content in contents]).tolist()
        for content_class, content in zip(classes, contents, strict=True):
            kind = type_of(system, content.event)
            lifetime = system.lifetime_of(publisher, content.lifetime)
            size = content.size_bytes or publisher.size_bytes or system.size_bytes
            row_here = row_of[index, content_class, kind, lifetime, size]
            members[row_here].append((content.text, content.probability))
    return members


def turn_tables(compiled: CompiledSystem, tapes: Tapes, window: Window) -> dict[str, pa.Table]:
    """States of components and sessions of peers: as the window begins, and changes in it."""
    system, tables = compiled.system, {}
    what, is_on, at_ns = turns_in_window(tapes.turns, window)
    components = [each.name for each in system.brokers] + [each.name for each in system.links]
    failing = [each for _, _, parts in compiled.faults.failures for each in parts]
    mine = np.isin(what, failing)
    if mine.any():
        columns = {
            "component": names_at(components, what[mine]),
            "state": names_at(("down", "up"), is_on[mine]),
            "at_ns": at_ns[mine],
        }
        tables["states"] = trace_table("states", columns)
    peers = [each.peer.split(" ", 1)[1] for each in compiled.peer_queues if each.periods]
    mine = (what < 0) & (-1 - what < len(compiled.faults.failures) + len(peers))
    if mine.any():
        switch = -1 - what[mine]  # those of failures come first, those of subscriptions last
        columns = {
            "peer": names_at(peers, switch - len(compiled.faults.failures)),
            "state": names_at(STATES, is_on[mine]),
            "at_ns": at_ns[mine],
        }
        tables["sessions"] = trace_table("sessions", columns)
    return tables
