"""What a system makes use of, and refusal of what an engine cannot honour.

Every engine says which features it handles; anything else that a system uses is refused by name and
place, never ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

from tidings.errors import UnsupportedError
from tidings.model.behaviour import Channel, Connectivity, Station
from tidings.model.content import ContentTable
from tidings.model.laws import Deterministic
from tidings.model.record_tables import column, names
from tidings.model.system import System

Places = Iterator[str]


def _channels(system: System, holds: Callable[[Channel], bool]) -> Places:
    """Yield the locations of channels that have a property.

    The reverse direction of a link counts only where it differs.
    """
    for link in system.links:
        if holds(link.there):
            yield f"links.{link.name}"
        if link.back != link.there and holds(link.back):
            yield f"links.{link.name}.back"
    for section in ("publishers", "subscribers"):
        yield from _peers(system, section, "link", holds)


def _peers(system: System, section: str, field: str, holds: Callable[[Any], bool]) -> Places:
    """Yield the locations of one field of peers that have a property.

    Equal values are tested once.
    """
    peers = getattr(system, section)
    having = column(peers, field).where(holds)
    if having.size:
        named = names(peers)
        yield from (f"{section}.{named[index]}.{field}" for index in having)


def _given(value: object) -> bool:
    return value is not None


def _failures(system: System) -> Places:
    yield from (f"brokers.{b.name}.failure" for b in system.brokers if b.failure is not None)
    links = (link for link in system.links if link.there.failure is not None)
    yield from (f"links.{link.name}.failure" for link in links)
    yield from (f"failure_groups.{group.name}" for group in system.failure_groups)


def _client_failures(system: System) -> Places:
    for section in ("publishers", "subscribers"):
        fails = _peers(system, section, "link", lambda link: link.failure is not None)
        yield from (f"{at}.failure" for at in fails)


def _recovery(system: System) -> Places:
    if system.recovery is not None:
        yield "recovery"


def _connectivity(system: System) -> Places:
    for section in ("publishers", "subscribers"):
        yield from _peers(system, section, "connectivity", _given)


def _connected_by(system: System, field: str) -> Places:
    """Yield the locations of one field of connectivity, of peers that give it."""

    def holds(connectivity: Connectivity | None) -> bool:
        return connectivity is not None and getattr(connectivity, field) is not None

    for section in ("publishers", "subscribers"):
        yield from (f"{at}.{field}" for at in _peers(system, section, "connectivity", holds))


def _connectivity_traces(system: System) -> Places:
    yield from _connected_by(system, "trace")


def _peer_buffers(system: System) -> Places:
    yield from _connected_by(system, "buffer")


def _churn(system: System) -> Places:
    yield from _peers(system, "subscribers", "stays", _given)
    yield from _peers(system, "subscribers", "away", _given)


def _processing(system: System) -> Places:
    yield from _peers(system, "subscribers", "processing", _given)


def _consumers(system: System) -> Places:
    yield from _peers(system, "subscribers", "consumers", _given)


def _blocking(system: System) -> Places:
    yield from (f"brokers.{broker.name}.when_full" for broker in system.brokers if broker.blocks)
    blocking = _peers(system, "subscribers", "consumers", lambda c: c is not None and c.blocks)
    yield from (f"{at}.when_full" for at in blocking)


def _batches(system: System) -> Places:
    yield from (f"publishers.{p.name}.batch" for p in system.publishers if p.batch is not None)


def _daily_rates(system: System) -> Places:
    yield from (f"publishers.{p.name}.rates" for p in system.publishers if p.rates is not None)


def _publishing(system: System, field: str) -> Places:
    """Yield the locations of one field of 'publishes', of publishers that give it."""
    for publisher in system.publishers:
        if publisher.publishes is not None and getattr(publisher.publishes, field):
            yield f"publishers.{publisher.name}.publishes.{field.removesuffix('_s')}"


def _bandwidth(system: System) -> Places:
    limited = _channels(system, lambda channel: channel.bandwidth_bytes_per_s is not None)
    yield from (f"{at}.bandwidth" for at in limited)
    shared = _channels(system, lambda channel: channel.network is not None)
    yield from (f"{at}.network" for at in shared)
    yield from (f"networks.{network.name}" for network in system.networks)


def _loss_bursts(system: System) -> Places:
    bursty = _channels(system, lambda channel: channel.loss_burst > 1)
    yield from (f"{at}.loss_burst" for at in bursty)


def _daily_delays(system: System) -> Places:
    daily = _channels(system, lambda channel: channel.delay_by_time is not None)
    yield from (f"{at}.delay_by_time" for at in daily)


def _at_stations(system: System, field: str, holds: Callable[[Station], bool]) -> Places:
    """Yield the locations of one field of brokers' stations that have a property.

    Stations within a broker go by their own name.
    """
    for broker in system.brokers:
        for at, station in zip(broker.station_places, broker.stations, strict=True):
            if holds(station):
                yield f"{at}.{field}"


def _buffers(system: System) -> Places:
    yield from _at_stations(system, "buffer", lambda station: station.buffer is not None)


def _servers(system: System) -> Places:
    yield from _at_stations(system, "servers", lambda station: station.servers > 1)


def _disciplines(system: System) -> Places:
    yield from _at_stations(system, "discipline", lambda station: station.discipline != "fcfs")


def _demands(system: System) -> Places:
    yield from _at_stations(system, "demands", lambda station: bool(station.demands))


def _stations(system: System) -> Places:
    for broker in system.brokers:
        for name in ("cpu", "disk", "out"):
            if getattr(broker, name) is not None:
                yield f"brokers.{broker.name}.{name}"


def _random_lifetimes(system: System) -> Places:
    def random(law: object) -> bool:
        return law is not None and not isinstance(law, Deterministic)

    if random(system.lifetime):
        yield "lifetime"
    for publisher in system.publishers:
        if random(publisher.lifetime):
            yield f"publishers.{publisher.name}.lifetime"
        content = publisher.content
        holders = content.table if isinstance(content, ContentTable) else (content,)
        if any(random(holder.lifetime) for holder in holders):
            yield f"publishers.{publisher.name}.content: lifetime"
    yield from _peers(system, "subscribers", "lifetime", random)


def _own_lifetimes(system: System) -> Places:
    yield from _peers(system, "subscribers", "lifetime", _given)


def _counts(system: System) -> Places:
    yield from _peers(system, "subscribers", "count", lambda count: count > 1)


def _early_expiry(system: System) -> Places:
    if system.expired != "at subscriber":
        yield "expired"


def _several_trees(system: System) -> Places:
    if system.routing is not None and system.routing.by is not None:
        yield "routing.by"


FEATURES: dict[str, Callable[[System], Places]] = {
    "failures": _failures,
    "failures of clients' links": _client_failures,
    "recovery": _recovery,
    "connectivity": _connectivity,
    "connectivity from traces": _connectivity_traces,
    "bounded buffers of peers": _peer_buffers,
    "subscription churn": _churn,
    "subscriber's own queue": _processing,
    "consumer groups": _consumers,
    "blocked publishers": _blocking,
    "publishers that send in batches": _batches,
    "rates by time of day": _daily_rates,
    "recorded publishing times": lambda system: _publishing(system, "recorded"),
    "publishers with clocks": lambda system: _publishing(system, "period_s"),
    "batches of publications": lambda system: _publishing(system, "batch"),
    "bursts of publications": lambda system: _publishing(system, "bursts"),
    "bandwidth": _bandwidth,
    "bursts of losses": _loss_bursts,
    "delays by time of day": _daily_delays,
    "bounded buffers": _buffers,
    "several servers": _servers,
    "other disciplines than fcfs": _disciplines,
    "demands by event type": _demands,
    "several stations in a broker": _stations,
    "random lifetimes": _random_lifetimes,
    "lifetimes of subscribers": _own_lifetimes,
    "subscribers with a count": _counts,
    "dropping expired events on the way": _early_expiry,
    "one tree per topic": _several_trees,
}


def used_features(system: System) -> dict[str, list[str]]:
    """List the features a system uses, each with the places where it does."""
    places_of = {name: list(places(system)) for name, places in FEATURES.items()}
    return {name: places for name, places in places_of.items() if places}


def require_only(system: System, handled: Collection[str], engine: str) -> None:
    """Refuse a system that uses more than ``engine`` handles, naming every field."""
    asked = {name: list(places(system)) for name, places in FEATURES.items() if name not in handled}
    refused = {name: places for name, places in asked.items() if places}
    if refused:
        lines = [
            f"  {name}: {', '.join(places[:4])}"
            + (f" and {len(places) - 4} more" if len(places) > 4 else "")
            for name, places in refused.items()
        ]
        raise UnsupportedError(
            f"{engine} does not handle {len(refused)} of the features this system uses:\n"
            + "\n".join(lines)
            + "\nTo go on without them, remove these fields from the file.",
            refused,
        )
