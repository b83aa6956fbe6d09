"""What a listener hears while counters are read, and which messages came before which reading.

A listener that waits for its processor hears late, and a period's messages seem to be the next
one's. But the listener's own server counts what it has passed on to it. It is asked before and
after every other server, so for each reading it is known how many messages, in their order, had
been published by then, whenever they were heard.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from tidings.model.arrays import Floats
from tidings.running.asking import Pages
from tidings.running.attributing import Attribution, Names, attribute
from tidings.running.nats_counts import INNER, client_name
from tidings.running.nats_pages import read_connections

LISTENER = "tidings-capture"
_FEWEST_READINGS = 3  # two periods
_NONE = (0.0, 0.0)
_BUNCH_S = 0.1  # in which messages of one burst wait for each other
_ENOUGH = 50  # events to tell bursts by


@dataclass(slots=True)
class Heard:
    """Messages in the order in which they were heard: when, and by subject which and how large."""

    moments_s: list[float] = field(default_factory=list)
    numbers: dict[str, list[int]] = field(default_factory=dict)
    bytes: Counter[str] = field(default_factory=Counter)

    def add(self, subject: str, size: int, *, published: bool = True) -> None:
        """Take in a message; one that nobody published counts only in the order of all."""
        if published:
            kind = next((inner for inner in INNER if subject.startswith(inner)), subject)
            self.numbers.setdefault(kind, []).append(len(self.moments_s))
            self.bytes[kind] += size
        self.moments_s.append(time.time())

    def events(self) -> int:
        """Count the messages that are no server's or stream's own."""
        return sum(len(each) for kind, each in self.numbers.items() if kind not in INNER)

    def bunching(self) -> float:
        """Compute how much more counts of events vary than of independent ones, which have 1."""
        numbers = [each for kind, own in self.numbers.items() if kind not in INNER for each in own]
        moments_s = np.array(self.moments_s)[np.sort(numbers)] if numbers else np.zeros(0)
        if moments_s.size < _ENOUGH:
            return 1.0
        since_s = np.maximum(moments_s - moments_s[0], 0.0)  # a clock may be set back
        counts = np.bincount((since_s / _BUNCH_S).astype(int))
        return float(np.var(counts) / np.mean(counts))

    def mean_bytes(self) -> float:
        """Compute the mean size of an event's message."""
        total = sum(size for kind, size in self.bytes.items() if kind not in INNER)
        return total / max(self.events(), 1)


@dataclass(frozen=True, slots=True)
class Moment:
    """A page of a server: when by its own clock and by ours, and how long it took to read."""

    server_s: float | None
    our_s: float
    took_s: float


@dataclass(slots=True)
class Reading:
    """Counters of all servers, read one after the other, and of our listener in between."""

    moments: dict[str, Moment] = field(default_factory=dict)  # by server
    sent: dict[str, tuple[float, float]] = field(default_factory=dict)  # messages, bytes by sender
    passed: list[tuple[Moment, int]] = field(default_factory=list)  # to our listener


Homes = dict[str, tuple[str, str]]  # name and server, by sender


@dataclass(frozen=True, slots=True)
class Listener:
    """The pages of the server at which we listen, if they are known, and our number there."""

    pages: Pages | None
    number: int


def find_listener(servers: Mapping[str, Pages], number: int) -> Listener:
    """Find the server at which we listen, by the number that it gave our connection."""
    for pages in servers.values():
        rows = read_connections(pages, cid=number)
        if any(row.get("name") == LISTENER for row in rows):
            return Listener(pages, number)
    return Listener(None, number)


def read_counters(servers: Mapping[str, Pages], listener: Listener) -> tuple[Reading, Homes]:
    """Read what every client has sent so far, and what each is called and where it is.

    Connections of one name at one server are one sender.
    """
    reading, homes = Reading(), {}
    _read_listener(listener, reading)
    for server, pages in servers.items():
        rows, reading.moments[server] = _read(pages)
        _read_listener(listener, reading)
        for row in rows:
            if row.get("kind", "Client") != "Client" or row.get("name") == LISTENER:
                continue
            name = client_name(row, server)
            sender = f"{name} at {server}"
            messages, size = reading.sent.get(sender, (0.0, 0.0))
            reading.sent[sender] = (messages + row["in_msgs"], size + row["in_bytes"])
            homes[sender] = (name, server)
    return reading, homes


def _read_listener(listener: Listener, reading: Reading) -> None:
    if listener.pages is not None:
        rows, moment = _read(listener.pages, cid=listener.number)
        reading.passed += [(moment, int(row["out_msgs"])) for row in rows]


def _read(pages: Pages, **options: int) -> tuple[list[Any], Moment]:
    asked = time.time()
    rows = read_connections(pages, **options)
    took_s = time.time() - asked
    return rows, Moment(_server_time(rows), asked + took_s / 2, took_s)


def attribute_heard(heard: Heard, readings: Sequence[Reading], homes: Homes) -> Attribution:
    """Find who published on which subject from what was heard between readings of counters."""
    edges = _edges(heard, readings)
    whole = int(np.sum(np.max(list(edges.values()), axis=0) <= len(heard.moments_s)))
    readings = readings[:whole]  # with which the listener has caught up
    subjects = list(heard.numbers)
    senders = [
        sender
        for sender in homes
        if whole and readings[-1].sent.get(sender, _NONE) > readings[0].sent.get(sender, _NONE)
    ]
    names = Names(subjects=tuple(subjects), senders=tuple(senders))
    if whole < _FEWEST_READINGS or not senders or not subjects:
        return Attribution(
            subjects=names.subjects,
            senders=names.senders,
            shares=np.zeros((len(subjects), len(senders))),
            explained=np.zeros(len(senders)),
            unsure=names.subjects,
        )
    by_server = {
        server: np.stack(
            [np.diff(np.searchsorted(heard.numbers[each], own[:whole])) for each in subjects],
            axis=1,
        ).astype(float)
        for server, own in edges.items()
    }
    sizes = np.array([heard.bytes[each] / len(heard.numbers[each]) for each in subjects])
    table = [[each.sent.get(sender, _NONE) for sender in senders] for each in readings]
    grown = np.maximum(np.diff(np.array(table, dtype=float), axis=0), 0.0)
    known = [by_server[homes[sender][1]] for sender in senders]
    return attribute(known, sizes, grown[:, :, 0], grown[:, :, 1], names)


def _edges(heard: Heard, readings: Sequence[Reading]) -> dict[str, Floats]:
    """Tell how many messages had come to the listener when each server was read, by server."""
    at_s = {
        server: _our_times([each.moments[server] for each in readings])
        for server in readings[0].moments
    }
    passed = [each for reading in readings for each in reading.passed]
    if not passed:
        return {
            server: np.searchsorted(heard.moments_s, own, side="right").astype(float)
            for server, own in at_s.items()
        }
    asked_s = _our_times([moment for moment, _ in passed])
    counts = np.array([count for _, count in passed], dtype=float)
    return {server: np.interp(own, asked_s, counts) for server, own in at_s.items()}


def _our_times(moments: Sequence[Moment]) -> Floats:
    """Tell when pages were written: the server's own times, moved to our clock by the fastest."""
    fastest = min(moments, key=lambda each: each.took_s)
    offset_s = fastest.our_s - (fastest.server_s or 0.0)
    return np.array(
        [each.our_s if each.server_s is None else each.server_s + offset_s for each in moments]
    )


def _server_time(rows: Sequence[Any]) -> float | None:
    """Read when a server wrote its page; None where it does not say."""
    try:
        return datetime.fromisoformat(str(rows[0]["now"])).timestamp()
    except (IndexError, KeyError, ValueError):
        return None
