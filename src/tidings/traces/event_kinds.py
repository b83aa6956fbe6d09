"""What an event of each kind of a system does, as a small table for Spark to join with."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidings.errors import UnsupportedError
from tidings.model.events import canonical_event
from tidings.model.laws import Deterministic, Law
from tidings.model.routes import Routes, TrafficRow
from tidings.model.system import System
from tidings.model.topology import walk
from tidings.traces.drawing import LAW, law_numbers
from tidings.traces.period_lookup import PLACE, Place
from tidings.traces.window import NANOSECONDS

Places = Mapping[tuple[str, str], Place]  # where periods stand, by what they are of and name
_SUBSCRIBER = f"struct<name string, delay {LAW}, reliability double, away {PLACE}, stays {PLACE}>"
_HOP = (
    f"struct<broker string, came_from string, parent int, delay {LAW}, reliability double, "
    f"cut {PLACE}, down {PLACE}, service {LAW}, sent_to array<string>, "
    f"subscribers array<{_SUBSCRIBER}>>"
)
_KINDS = pa.schema(
    [
        ("kind", pa.int32()),
        ("publisher", pa.string()),
        ("broker", pa.string()),
        ("content", pa.string()),
        ("lifetime_ns", pa.int64()),
        ("size_bytes", pa.int64()),
        ("away", pa.string()),
        ("hops", pa.string()),
    ]
)


def event_kinds(spark: SparkSession, system: System, routes: Routes, places: Places) -> DataFrame:
    """One row per kind of event, as :func:`kind_rows` gives them."""
    frame = spark.createDataFrame(pa.Table.from_pylist(kind_rows(system, routes, places), _KINDS))
    return frame.withColumns(
        {
            "hops": F.from_json("hops", f"array<{_HOP}>"),
            "away": F.from_json("away", PLACE),
        }
    )


def kind_rows(system: System, routes: Routes, places: Places) -> list[dict[str, object]]:
    """Of every kind of event its content, and every broker it goes to, parents first.

    With it go the ``places`` of the periods in which its publisher is away, a link on its way is
    cut, a broker down, or a subscriber away; null where there are none. Raises
    :class:`UnsupportedError` for laws that cannot be drawn.
    """
    rows: list[dict[str, object]] = []
    for number, row in enumerate(routes.rows):
        publisher = system.publishers[row.publisher]
        rows.append(
            {
                "kind": number,
                "publisher": publisher.name,
                "broker": publisher.at,
                "content": canonical_event(routes.events[row.event]),
                "lifetime_ns": _lifetime_ns(row.lifetime),
                "size_bytes": None if row.size_bytes is None else round(row.size_bytes),
                "away": json.dumps(places.get(("away", publisher.name))),
                "hops": json.dumps(_ways(system, routes, row, places)),
            }
        )
    return rows


def _lifetime_ns(lifetime: Law | None) -> int | None:
    if lifetime is None:
        return None
    if not isinstance(lifetime, Deterministic):
        raise UnsupportedError(
            f"traces are not generated with lifetimes of the family {type(lifetime).__name__}; "
            "wants one fixed lifetime for every content"
        )
    return round(lifetime.value_s * NANOSECONDS)


def _ways(
    system: System, routes: Routes, row: TrafficRow, places: Places
) -> list[dict[str, object]]:
    """The brokers that an event of a kind goes to, each after the one it comes from."""
    publisher = system.publishers[row.publisher]
    home = int(routes.home_of_publisher[row.publisher])
    tree = routes.trees[int(routes.tree_of_class[row.content_class])]
    links = {frozenset(link.between): link.name for link in system.links}
    place: dict[int, int] = {}
    found: list[dict[str, object]] = []
    for broker, into in walk(tree, routes.arcs, home):
        if into >= 0:
            arc = routes.arcs[into]
            if not routes.interest[into, row.content_class] or arc.source not in place:
                continue
            channel, parent = arc.channel, place[arc.source]
            came_from = system.brokers[arc.source].name
        else:
            channel, parent, came_from = publisher.link, -1, publisher.name
        name = system.brokers[broker].name
        place[broker] = len(found)
        service = system.brokers[broker].service
        onward = [
            system.brokers[routes.arcs[arc].target].name
            for arc in tree.outgoing[broker]
            if routes.interest[arc, row.content_class]
            and system.brokers[routes.arcs[arc].target].name != came_from
        ]
        found.append(
            {
                "broker": name,
                "came_from": came_from,
                "parent": parent,
                "delay": law_numbers(channel.delay),
                "reliability": channel.reliability,
                "cut": places.get(("down", links.get(frozenset((came_from, name)), ""))),
                "down": places.get(("down", name)),
                "service": law_numbers(service.law if service else Deterministic(value_s=0.0)),
                "sent_to": onward,
                "subscribers": _wanted_at(system, routes, row, broker, places),
            }
        )
    return found


def _wanted_at(
    system: System, routes: Routes, row: TrafficRow, broker: int, places: Places
) -> list[dict[str, object]]:
    return [
        {
            "name": subscriber.name,
            "delay": law_numbers(subscriber.link.delay),
            "reliability": subscriber.link.reliability,
            "away": places.get(("away", subscriber.name)),
            "stays": places.get(("stays", subscriber.name)),
        }
        for index, subscriber in enumerate(system.subscribers)
        if routes.home_of_subscriber[index] == broker and routes.wanted_by(index)[row.content_class]
    ]
