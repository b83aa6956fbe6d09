"""The canonical trace tables, as plain data: readers map to these, statistics read them.

A trace is a folder with one Parquet folder (or file) per table and, optionally, ``traces.json``
with the window that was observed. All times are integer nanoseconds since one epoch shared by all
tables (the Unix epoch for real systems). Contents and filters are canonical JSON texts.
"""

from __future__ import annotations

from dataclasses import dataclass

FORMAT_VERSION = 1
MANIFEST = "traces.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceColumn:
    """One column: its name, its type in Spark's words, its meaning."""

    name: str
    type: str
    meaning: str
    nullable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceTable:
    """One table: what a row is, and its columns."""

    name: str
    row: str
    columns: tuple[TraceColumn, ...]

    @property
    def ddl(self) -> str:
        """The schema as Spark reads it."""
        return ", ".join(
            f"{column.name} {column.type}{'' if column.nullable else ' NOT NULL'}"
            for column in self.columns
        )


def _table(name: str, row: str, *columns: tuple[str, str, str]) -> TraceTable:
    return TraceTable(
        name=name,
        row=row,
        columns=tuple(
            TraceColumn(
                name=key, type=kind.removesuffix("?"), meaning=text, nullable=kind.endswith("?")
            )
            for key, kind, text in columns
        ),
    )


PUBLICATIONS = _table(
    "publications",
    "one event as its publisher handed it over",
    ("event", "string", "id of the event"),
    ("publisher", "string", "who published it"),
    ("broker", "string?", "the publisher's home broker"),
    ("published_ns", "bigint", "when"),
    ("content", "string", "its attributes, as canonical JSON"),
    ("lifetime_ns", "bigint?", "how long it is of use; null: forever"),
    ("size_bytes", "bigint?", "size of the message"),
)
HOPS = _table(
    "hops",
    "one copy of an event at one broker",
    ("event", "string", "id of the event"),
    ("broker", "string", "the broker"),
    ("came_from", "string", "the neighbouring broker or the publisher it came from"),
    ("arrived_ns", "bigint", "when it arrived"),
    ("started_ns", "bigint?", "when the broker began to work on it, if known"),
    ("left_ns", "bigint", "when the broker was done with it"),
    ("sent_to", "array<string>?", "the neighbouring brokers it was forwarded to"),
)
DELIVERIES = _table(
    "deliveries",
    "one event received by one subscriber, or handled by a member of a consumer group, each time",
    ("event", "string", "id of the event"),
    ("subscriber", "string", "who received it; the group that handled it"),
    ("broker", "string?", "the subscriber's home broker"),
    ("received_ns", "bigint", "when; where it was handled, when that ended"),
    ("started_ns", "bigint?", "when the subscriber, or the member, began to handle it, if known"),
    ("member", "string?", "which member of the group handled it"),
    ("part", "string?", "which partition of the group's queue it came from"),
)
PROBES = _table(
    "probes",
    "one test message over one link, in one direction",
    ("source", "string", "who sent it: a broker or a publisher"),
    ("target", "string", "to whom: a broker or a subscriber"),
    ("sent_ns", "bigint", "when it was sent"),
    ("received_ns", "bigint?", "when it arrived; null: it was lost"),
)
STATES = _table(
    "states",
    "one change of a broker or link between up and down",
    ("component", "string", "a broker's name, or a link as a--b"),
    (
        "state",
        "string",
        "up or down; up again from when events can pass it, which may be a while after a repair",
    ),
    ("at_ns", "bigint", "when it changed"),
)
SESSIONS = _table(
    "sessions",
    "one connection or disconnection of a peer",
    ("peer", "string", "the publisher or subscriber"),
    ("state", "string", "connected or disconnected"),
    ("at_ns", "bigint", "when it changed"),
)
SUBSCRIPTIONS = _table(
    "subscriptions",
    "one step in the life of a subscription",
    ("subscription", "string", "id of the subscription"),
    ("subscriber", "string", "whose it is"),
    ("broker", "string", "home broker, or the broker that learnt of it"),
    ("action", "string", "subscribe, unsubscribe, learnt or forgotten"),
    ("at_ns", "bigint", "when"),
    ("filter", "string?", "the filter, as canonical JSON (with subscribe)"),
)
UTILISATION = _table(
    "utilisation",
    "one sample of how busy a resource was",
    ("broker", "string", "whose resource"),
    ("resource", "string", "cpu, disk, or the name of a connection"),
    ("until_ns", "bigint", "end of the sampled interval"),
    ("interval_ns", "bigint", "its length"),
    ("busy", "double", "share of the interval in which the resource was busy"),
)
LEVELS = _table(
    "levels",
    "one poll of the counters of a queue",
    ("queue", "string", "the queue: the subscriber that it belongs to"),
    ("part", "string?", "which partition of it, where it has several: each is first in, first out"),
    ("at_ns", "bigint", "when it was polled"),
    ("entered", "bigint", "how many events had entered by then"),
    ("done", "bigint", "how many had left by then: acknowledged, or dropped"),
    ("in_flight", "bigint?", "how many were handed out and not acknowledged"),
    ("redelivered", "bigint?", "how many had been handed out again by then"),
    ("dropped", "string?", "how many had been dropped by then, by cause, as canonical JSON"),
)
HISTOGRAMS = _table(
    "histograms",
    "one bound of a histogram as it stood at one moment",
    ("name", "string", "the subscriber or broker that it is about"),
    ("what", "string", "delay, from publication to the subscriber; or service, of one event"),
    ("series", "string?", "which of several that add up, such as an instance"),
    ("at_ns", "bigint", "when it was read"),
    ("up_to_s", "double", "the bound in seconds; Infinity is the last one"),
    ("events", "bigint", "how many had taken at most so long by then"),
)

TRACE_TABLES = {
    table.name: table
    for table in (
        PUBLICATIONS,
        HOPS,
        DELIVERIES,
        PROBES,
        STATES,
        SESSIONS,
        SUBSCRIPTIONS,
        UTILISATION,
        LEVELS,
        HISTOGRAMS,
    )
}
