"""From what the kernel taped to rows of the canonical trace tables, part by part.

Probes of every link meet its delay and loss and nothing else. Of subscriptions that come and go
every stay is a subscription of its own. Recorded is how new subscriptions spread, not what brokers
are sent later because a subscription that covered it has ended. Who comes and goes is followed to
the last event, beyond the window: else the last notifications would seem illegal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tidings.kernels.memory import World
from tidings.kernels.streams import stream_states
from tidings.model.arrays import Floats, Ints
from tidings.model.behaviour import Channel
from tidings.model.connectivity_traces import STATES
from tidings.model.routes import classes_of, type_of
from tidings.model.system import System
from tidings.model.trace_files import subscription_table, trace_table
from tidings.simulation.world import run_in_parts

if TYPE_CHECKING:
    from tidings.simulation.groups import Group
    from tidings.simulation.network import CompiledSystem
    from tidings.simulation.world import Window

EPOCH_NS = 1_767_225_600_000_000_000  # 2026-01-01T00:00:00Z: when a recorded window begins
ROWS_AT_ONCE = 1 << 16  # of each table in one part
_KINDS = ("publications", "hops", "sends", "deliveries", "turns", "learnt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tapes:
    """What the kernel taped of a part of a run, as arrays of its records, and when it halted."""

    publications: Any
    hops: Any
    sends: Any
    deliveries: Any
    turns: Any
    learnt: Any
    now_s: float


def tapes_of(world: World, compiled: CompiledSystem, window: Window) -> Iterator[Tapes]:
    """Run a world to its end and give what is taped, a part whenever the tape is full."""
    for _ in run_in_parts(world, compiled, window):
        taken = {}
        for kind in _KINDS:
            rows = int(world.record[0][f"taped_{kind}"])
            taken[kind] = world.tables[f"tape_{kind}"][:rows].copy()
            world.record[0][f"taped_{kind}"] = 0
        yield Tapes(**taken, now_s=float(world.record[0].now))


def nanoseconds(times_s: NDArray[np.float64], window: Window) -> Ints:
    """Convert moments of the simulation to whole nanoseconds since the Unix epoch."""
    since = np.floor((times_s - window.warmup_s) * 1e9 + 0.5)
    return EPOCH_NS + window.starts_ns + since.astype(np.int64)


def turns_in_window(
    turns: Any, window: Window, until_s: float | None = None
) -> tuple[Ints, Ints, Ints]:
    """List what turned, to what, and when, in nanoseconds.

    What turned before the window is listed as if at its beginning.
    """
    taped = turns[turns["turned"] <= (window.end_s if until_s is None else until_s)]
    taped = taped[np.lexsort((taped["turned"], taped["what"]))]
    again = (taped["what"][1:] == taped["what"][:-1]) & (taped["turned"][1:] <= window.warmup_s)
    taped = np.delete(taped, np.flatnonzero(again))  # the next one counts, not this
    at_ns = nanoseconds(np.maximum(taped["turned"], window.warmup_s), window)
    order = np.argsort(at_ns, kind="stable")
    return taped["what"][order], taped["is_on"][order], at_ns[order]


def names_at(names: Sequence[str], positions: NDArray[Any]) -> pa.Array:
    """Look up the names at these positions."""
    return pa.array(list(names), type=pa.string()).take(pa.array(positions))


def generator_of(seed: int, replication: int, entity: str, purpose: str) -> np.random.Generator:
    """Make random numbers of one entity for one purpose; those of the kernel stay as they are."""
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
        """Yield events as they were handed over."""
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
        """Yield copies that brokers were done with."""
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
        """Yield a row for every subscriber: the kernel taped one for all plain ones of a broker."""
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
        whose = pa.array(delivery)
        columns = {
            "event": self._ids(taped["number"]).take(whose),
            "subscriber": names_at([each.name for each in everyone], subscriber),
            "broker": names_at([each.at for each in everyone], subscriber),
            "received_ns": nanoseconds(taped["received"], self._window)[delivery],
        }
        handled = self._handlings(taped) if self._handles else {}
        return trace_table(
            "deliveries", columns | {name: each.take(whose) for name, each in handled.items()}
        )

    @cached_property
    def _handles(self) -> bool:
        """Whether any subscriber takes its time, so that handling begins at some moment."""
        everyone = self._compiled.system.subscribers
        return any(each.processing is not None or each.consumers is not None for each in everyone)

    def _handlings(self, taped: Any) -> dict[str, pa.Array]:
        """Find when, by which member and from which partition deliveries were handled, if so."""
        groups = self._compiled.groups
        members = [member.name for group in groups for member in group.members]
        parts = [part for group in groups for part in _parts_of(group)]
        started_ns = nanoseconds(taped["started"], self._window)
        return {
            "started_ns": pa.array(started_ns, mask=taped["started"] < 0),
            "member": _names_or_none(members, taped["member"]),
            "part": _names_or_none(parts, taped["queue"]),
        }

    def _ids(self, numbers: NDArray[Any]) -> pa.Array:
        return pc.binary_join_element_wise(self._prefix, pa.array(numbers).cast(pa.string()), "")

    def _drawn_contents(self, rows: Ints) -> pa.Array:
        """Draw the contents of events: a row stands for all contents that no filter tells apart."""
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


def _parts_of(group: Group) -> list[str | None]:
    """Name the partitions of a group by their numbers; the one queue of all others has no name."""
    partitions = group.consumers.partitions
    return [None] if partitions is None else [str(number) for number in range(partitions.count)]


def _names_or_none(names: Sequence[str | None], positions: NDArray[Any]) -> pa.Array:
    """Look up the names at these positions; null where they are below 0."""
    return pa.array([*names, None], type=pa.string()).take(
        pa.array(np.where(positions < 0, len(names), positions))
    )


def _members(compiled: CompiledSystem) -> list[list[tuple[str, float]]]:
    """List the contents, with their shares, that each row of the routes stands for."""
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
    """Make states of components and sessions of peers: as the window begins, and changes in it."""
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


def probe_rows(
    system: System, window: Window, seed: int, replication: int, count: int
) -> Iterator[pa.Table]:
    """Yield so many test messages at regular moments over each link, from a moment of its own."""
    for source, target, channel in _links(system):
        generator = generator_of(seed, replication, f"probe {source}--{target}", "probe")
        part = (generator.random() + np.arange(count)) / max(count, 1)
        sent_ns = nanoseconds(window.warmup_s + part * window.length_s, window)
        lost = _lost(channel, generator, count)
        took_s = channel.delay.sample(generator, count)
        if channel.delay_by_time is not None:
            took_s *= channel.delay_by_time.at(part * window.length_s)
        took_ns = np.floor(took_s * 1e9 + 0.5).astype(np.int64)
        columns = {
            "source": [source] * count,
            "target": [target] * count,
            "sent_ns": sent_ns,
            "received_ns": pa.array(sent_ns + took_ns, mask=lost),
        }
        yield trace_table("probes", columns)


def _lost(channel: Channel, generator: np.random.Generator, count: int) -> NDArray[np.bool_]:
    """Draw which probes are lost: alone, or in a row."""
    decides = generator.random(count) < channel.decided_anew
    fails = generator.random(count) >= channel.reliability
    return fails[np.maximum.accumulate(np.where(decides, np.arange(count), 0))]


def _links(system: System) -> Iterator[tuple[str, str, Channel]]:
    """Yield every direction in which events go."""
    for link in system.links:
        one, other = link.between
        yield one, other, link.there
        yield other, one, link.back
    for publisher in system.publishers:
        yield publisher.name, publisher.at, publisher.link
    for subscriber in system.subscribers:
        yield subscriber.at, subscriber.name, subscriber.link


def subscription_rows(compiled: CompiledSystem, tapes: Tapes, window: Window) -> pa.Table:
    """Make the table ``subscriptions`` where some come and go, in the order of time."""
    everyone = compiled.system.subscribers
    lasting = subscription_table([each for each in everyone if each.stays is None], EPOCH_NS)
    turns = _turns(compiled, tapes, window)
    rows = pd.concat([turns, _learnt(compiled, tapes, window, turns)], ignore_index=True)
    churners = [everyone[index] for index, _ in compiled.churn.churners]
    names = np.array([each.name for each in churners], dtype=object)[rows["churner"]]
    filters = subscription_table(churners, EPOCH_NS)["filter"].to_numpy()[rows["churner"]]
    columns = {
        "subscription": names + "/" + rows["stay"].astype(str).to_numpy(),
        "subscriber": names,
        "broker": rows["broker"],
        "action": rows["action"],
        "at_ns": rows["at_ns"],
        "filter": np.where(rows["action"] == "subscribe", filters, None),
    }
    return pa.concat_tables([lasting, trace_table("subscriptions", columns)]).sort_by("at_ns")


def _turns(compiled: CompiledSystem, tapes: Tapes, window: Window) -> pd.DataFrame:
    """List every coming and going, by churner and number of the stay."""
    what, is_on, at_ns = turns_in_window(tapes.turns, window, until_s=math.inf)
    churner = -1 - what - int(compiled.numbers["first_churner"])
    turns = pd.DataFrame({"churner": churner, "is_on": is_on, "at_ns": at_ns})[churner >= 0]
    turns["stay"] = turns.groupby("churner")["is_on"].cumsum()
    # Whoever is away when the window begins has not been seen to leave.
    turns = turns[turns["stay"] > 0].reset_index(drop=True)
    homes = [compiled.system.subscribers[index].at for index, _ in compiled.churn.churners]
    turns["broker"] = np.array(homes, dtype=object)[turns["churner"]]
    turns["action"] = np.where(turns["is_on"] == 1, "subscribe", "unsubscribe")
    return turns


def _learnt(
    compiled: CompiledSystem, tapes: Tapes, window: Window, turns: pd.DataFrame
) -> pd.DataFrame:
    """Find when brokers learnt of what was subscribed in the window, by churner and number of stay.

    What began so late that the run may have ended before all had heard of it is left out.
    """
    taped = tapes.learnt[tapes.learnt["since"] > window.warmup_s]
    longest_s = (taped["learnt"] - taped["since"]).max(initial=0.0)
    taped = taped[taped["since"] <= tapes.now_s - longest_s]
    brokers = np.array([each.name for each in compiled.system.brokers], dtype=object)
    learnt = pd.DataFrame(
        {
            "churner": compiled.tables["pieces"]["churner"][taped["piece"]],
            "since_ns": nanoseconds(taped["since"], window),
            "broker": brokers[taped["broker"]],
            "action": "learnt",
            "at_ns": nanoseconds(taped["learnt"], window),
        }
    )
    began = turns[turns["is_on"] == 1][["churner", "at_ns", "stay"]]
    return learnt.merge(began.rename(columns={"at_ns": "since_ns"}), on=["churner", "since_ns"])
