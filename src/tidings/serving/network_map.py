"""The map of a watched system: where its brokers stand, and how the subscribers at each fare."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidings.errors import TidingsError
from tidings.model.reading import load
from tidings.model.system import System
from tidings.reporting.layout import lay_out
from tidings.serving.folder import file_mark
from tidings.serving.words import lasting
from tidings.watching.state import Standing, State


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkMap:
    """Brokers and links as the report's map draws them, and the home of each subscriber."""

    document: dict[str, Any] = field(default_factory=dict)  # brokers, links, rows, columns
    homes: dict[str, str] = field(default_factory=dict)
    problem: str = ""  # why there is no map


class Maps:
    """The map of the system file that a state names, made anew when that file changes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made_of: tuple[Any, ...] = ()
        self._map = NetworkMap()

    def of(self, state: State | None) -> NetworkMap:
        """Give the map for a state; one without brokers where there is no system file."""
        name = "" if state is None else state.system_file
        path = self._folder / name  # an absolute one stays as it is
        made_of = (name, *file_mark(path))
        if made_of != self._made_of:
            self._map = _map(path) if name else NetworkMap()
            self._made_of = made_of
        return self._map


def placed(drawn: NetworkMap, state: State | None) -> dict[str, Any]:
    """Give the map's plain data, with shares on time, backlogs and alarms of this state."""
    if state is None or not drawn.document:
        return {}
    shares = _shares(drawn, state.standings)
    alarmed = {name for alarm in lasting(state) for name in alarm.where}
    brokers = [
        {
            **broker,
            "on_time": shares.get(broker["name"]),
            "waiting": state.backlogs.get(broker["name"]),
            "alarmed": broker["name"] in alarmed,
        }
        for broker in drawn.document["brokers"]
    ]
    return {**drawn.document, "brokers": brokers}


def _shares(drawn: NetworkMap, standings: Iterable[Standing]) -> dict[str, float]:
    """Compute the share of wanted events on time by home broker.

    Subscribers are weighted by what they want.
    """
    on_time: dict[str, float] = defaultdict(float)
    wanted: dict[str, float] = defaultdict(float)
    for each in standings:
        home = drawn.homes.get(each.name)
        if home is not None and each.measured is not None and each.wanted:
            on_time[home] += each.wanted * each.measured.share
            wanted[home] += each.wanted
    return {home: on_time[home] / wanted[home] for home in wanted}


def _map(path: Path) -> NetworkMap:
    try:
        system = load(path)
    except (TidingsError, OSError) as problem:
        return NetworkMap(problem=f"The map is not shown, as there is no system to draw: {problem}")
    return NetworkMap(
        document=_document(system), homes={each.name: each.at for each in system.subscribers}
    )


def _document(system: System) -> dict[str, Any]:
    layout = lay_out([each.name for each in system.brokers], [e.between for e in system.links])
    publishers: dict[str, int] = defaultdict(int)
    subscribers: dict[str, int] = defaultdict(int)
    for publisher in system.publishers:
        publishers[publisher.at] += 1
    for subscriber in system.subscribers:
        subscribers[subscriber.at] += subscriber.count
    index = system.broker_index
    return {
        "brokers": [
            {
                "name": broker.name,
                "x": layout.positions[broker.name][0],
                "y": layout.positions[broker.name][1],
                "publishers": publishers[broker.name],
                "subscribers": subscribers[broker.name],
                "load": {},
            }
            for broker in system.brokers
        ],
        "links": [
            {
                "ends": [index[end] for end in link.between],
                "ways": [
                    {"lost": 1 - channel.reliability, "delay_mean_s": channel.delay.mean_s}
                    for channel in (link.there, link.back)
                ],
            }
            for link in system.links
        ],
        "rows": layout.rows,
        "columns": layout.columns,
    }
