"""From what the kernel taped to rows of the canonical trace tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.kernels.streams import stream_states
from tidings.model.arrays import Ints
from tidings.model.behaviour import Channel
from tidings.model.connectivity_traces import STATES
from tidings.model.routes import classes_of, type_of
from tidings.model.trace_files import trace_table
from tidings.simulation.network import CompiledSystem
from tidings.simulation.subscription_rows import subscription_rows
from tidings.simulation.tapes import Tapes, nanoseconds, turns_in_window
from tidings.simulation.world import Window


def trace_tables(
    compiled: CompiledSystem, tapes: Tapes, window: Window, seed: int, probes_per_s: float
) -> dict[str, pa.Table]:
    """The trace tables of one run; what never changes has no ``states`` and no ``sessions``."""
    return {
        "publications": _publications(compiled, tapes, window, seed),
        "hops": _hops(compiled, tapes, window),
        "deliveries": _deliveries(compiled, tapes, window),
        "probes": _probes(compiled, window, seed, probes_per_s),
        "subscriptions": subscription_rows(compiled, tapes, window),
        **_turns(compiled, tapes, window),
    }


def _names(names: Sequence[str], positions: NDArray[Any]) -> pa.Array:
    return pa.array(list(names), type=pa.string()).take(pa.array(positions))


def _ids(numbers: NDArray[Any]) -> pa.Array:
    return pc.binary_join_element_wise("e", pa.array(numbers).cast(pa.string()), "")


def _generator(seed: int, entity: str, purpose: str) -> np.random.Generator:
    """Random numbers of one entity for one purpose; those of the kernel stay as they are."""
    words = stream_states(seed, 0, [(entity, purpose)])[0]
    return np.random.default_rng([int(word) for word in words])


# ---- publications ------------------------------------------------------------------------------


def _publications(compiled: CompiledSystem, tapes: Tapes, window: Window, seed: int) -> pa.Table:
    system, taped = compiled.system, tapes.publications
    rows = compiled.routes.rows
    publisher = np.array([row.publisher for row in rows])[taped["row"]]
    sizes = [None if row.size_bytes is None else round(row.size_bytes) for row in rows]
    endless = np.isinf(taped["lifetime"])
    lifetime_ns = np.floor(np.where(endless, 0.0, taped["lifetime"]) * 1e9 + 0.5).astype(np.int64)
    columns = {
        "event": _ids(taped["number"]),
        "publisher": _names([each.name for each in system.publishers], publisher),
        "broker": _names([each.at for each in system.publishers], publisher),
        "published_ns": nanoseconds(taped["born"], window),
        "content": _contents(compiled, taped["row"], seed),
        "lifetime_ns": pa.array(lifetime_ns, mask=endless),
        "size_bytes": pa.array(sizes, type=pa.int64()).take(pa.array(taped["row"])),
    }
    return trace_table("publications", columns)


def _contents(compiled: CompiledSystem, rows: Ints, seed: int) -> pa.Array:
    """The contents of events: a row stands for all contents that no filter tells apart."""
    system = compiled.system
    texts: list[str] = []
    place: dict[str, int] = {}
    found = np.zeros(rows.size, dtype=np.int64)
    members = _members(compiled)
    generators = [
        _generator(seed, f"publisher {p.name}", "which content") for p in system.publishers
    ]
    for row, choices in enumerate(members):
        here = np.flatnonzero(rows == row) if len(rows) else np.zeros(0, dtype=np.int64)
        for text, _ in choices:
            if text not in place:
                place[text] = len(texts)
                texts.append(text)
        shares = np.array([share for _, share in choices])
        generator = generators[compiled.routes.rows[row].publisher]
        chosen = generator.choice(len(choices), size=here.size, p=shares / shares.sum())
        found[here] = np.array([place[text] for text, _ in choices])[chosen]
    return _names(texts, found)


def _members(compiled: CompiledSystem) -> list[list[tuple[str, float]]]:
    """The contents, with their shares, that each row of the routes stands for."""
    system, routes = compiled.system, compiled.routes
    row_of = {}
    for index, row in enumerate(routes.rows):
        kind = type_of(system, routes.events[row.event])
        row_of[row.publisher, row.content_class, kind, row.lifetime, row.size_bytes] = index
    found: list[list[tuple[str, float]]] = [[] for _ in routes.rows]
    for index, publisher in enumerate(system.publishers):
        contents = publisher.content.rows()
        classes = classes_of(system, routes, [content.event for content in contents]).tolist()
        for content_class, content in zip(classes, contents, strict=True):
            kind = type_of(system, content.event)
            lifetime = system.lifetime_of(publisher, content.lifetime)
            size = content.size_bytes or publisher.size_bytes or system.size_bytes
            row_here = row_of[index, content_class, kind, lifetime, size]
            found[row_here].append((content.text, content.probability))
    return found


# ---- hops and deliveries -----------------------------------------------------------------------


def _hops(compiled: CompiledSystem, tapes: Tapes, window: Window) -> pa.Table:
    system, arcs, taped = compiled.system, compiled.routes.arcs, tapes.hops
    brokers = [broker.name for broker in system.brokers]
    sources = [brokers[arc.source] for arc in arcs]
    sources += [publisher.name for publisher in system.publishers]
    targets = np.array([arc.target for arc in arcs], dtype=np.int64)
    ends = np.concatenate([[0], np.cumsum(taped["sent"])]).astype(np.int32)
    sent_to = _names(brokers, targets[tapes.sends["value"]])
    columns = {
        "event": _ids(taped["number"]),
        "broker": _names(brokers, taped["broker"]),
        "came_from": _names(sources, taped["channel"]),
        "arrived_ns": nanoseconds(taped["entered"], window),
        "started_ns": nanoseconds(taped["started"], window),
        "left_ns": nanoseconds(taped["left"], window),
        "sent_to": pa.ListArray.from_arrays(pa.array(ends), sent_to),
    }
    return trace_table("hops", columns)


def _deliveries(compiled: CompiledSystem, tapes: Tapes, window: Window) -> pa.Table:
    """A row for every subscriber: the kernel taped one for all plain ones of a broker."""
    taped, classes = tapes.deliveries, compiled.routes.class_count
    places = len(compiled.system.brokers)
    first, members = _audiences(compiled)
    at = np.where(taped["place"] >= 0, taped["place"], places - 1 - taped["place"])
    key = at * classes + taped["content_class"]
    count = first[key + 1] - first[key]
    delivery = np.repeat(np.arange(key.size), count)
    start = np.repeat(first[key] - np.concatenate([[0], np.cumsum(count)[:-1]]), count)
    subscriber = members[start + np.arange(delivery.size)]
    everyone = compiled.system.subscribers
    columns = {
        "event": _ids(taped["number"]).take(pa.array(delivery)),
        "subscriber": _names([each.name for each in everyone], subscriber),
        "broker": _names([each.at for each in everyone], subscriber),
        "received_ns": nanoseconds(taped["received"], window)[delivery],
    }
    return trace_table("deliveries", columns)


def _audiences(compiled: CompiledSystem) -> tuple[Ints, Ints]:
    """Subscribers by (place, class), one list after the other; places: brokers, then receivers."""
    routes, brokers = compiled.routes, len(compiled.system.brokers)
    receiver = compiled.receiver_of
    place = np.where(receiver < 0, routes.home_of_subscriber, brokers + receiver)
    keys, members = [], []
    for index in range(len(compiled.system.subscribers)):
        wanted = np.flatnonzero(routes.wanted_by(index))
        keys.append(place[index] * routes.class_count + wanted)
        members.append(np.full(wanted.size, index, dtype=np.int64))
    key = np.concatenate(keys)
    order = np.argsort(key, kind="stable")
    places = brokers + len(compiled.tables["receivers"])
    counts = np.bincount(key, minlength=places * routes.class_count)
    return np.concatenate([[0], np.cumsum(counts)]), np.concatenate(members)[order]


# ---- links and subscriptions -------------------------------------------------------------------


def _probes(compiled: CompiledSystem, window: Window, seed: int, probes_per_s: float) -> pa.Table:
    """Test messages at regular moments over every link, each link from a moment of its own."""
    links = _links(compiled)
    count = int(window.length_s * probes_per_s)
    sent, received, lost = [], [], []
    for source, target, channel in links:
        generator = _generator(seed, f"probe {source}--{target}", "probe")
        times = window.warmup_s + (generator.random() + np.arange(count)) / probes_per_s
        fails = generator.random(count) >= channel.reliability
        sent.append(times)
        lost.append(fails)
        received.append(times + channel.delay.sample(generator, count))
    link = np.repeat(np.arange(len(links)), count)
    columns = {
        "source": _names([source for source, _, _ in links], link),
        "target": _names([target for _, target, _ in links], link),
        "sent_ns": nanoseconds(np.concatenate(sent), window),
        "received_ns": pa.array(
            nanoseconds(np.concatenate(received), window), mask=np.concatenate(lost)
        ),
    }
    return trace_table("probes", columns)


def _links(compiled: CompiledSystem) -> list[tuple[str, str, Channel]]:
    system = compiled.system
    names = [broker.name for broker in system.brokers]
    arcs = [(names[a.source], names[a.target], a.channel) for a in compiled.routes.arcs]
    upward = [(each.name, each.at, each.link) for each in system.publishers]
    downward = [(each.at, each.name, each.link) for each in system.subscribers]
    return arcs + upward + downward


# ---- who comes and goes, and what fails --------------------------------------------------------


def _turns(compiled: CompiledSystem, tapes: Tapes, window: Window) -> dict[str, pa.Table]:
    """States of components and sessions of peers: as the window begins, and changes in it."""
    system, found = compiled.system, {}
    what, is_on, at_ns = turns_in_window(tapes.turns, window)
    components = [each.name for each in system.brokers] + [each.name for each in system.links]
    failing = [each for _, _, parts in compiled.faults.failures for each in parts]
    mine = np.isin(what, failing)
    if mine.any():
        columns = {
            "component": _names(components, what[mine]),
            "state": _names(("down", "up"), is_on[mine]),
            "at_ns": at_ns[mine],
        }
        found["states"] = trace_table("states", columns)
    peers = [each.peer.split(" ", 1)[1] for each in compiled.peer_queues if each.periods]
    mine = (what < 0) & (-1 - what < len(compiled.faults.failures) + len(peers))
    if mine.any():
        switch = -1 - what[mine]  # those of failures come first, those of subscriptions last
        columns = {
            "peer": _names(peers, switch - len(compiled.faults.failures)),
            "state": _names(STATES, is_on[mine]),
            "at_ns": at_ns[mine],
        }
        found["sessions"] = trace_table("sessions", columns)
    return found
