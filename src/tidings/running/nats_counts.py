"""Who is connected to NATS servers, who wants what, and how fast their counters grow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tidings.errors import EngineError
from tidings.running.nats_pages import CLIENT_NAME, Documents, NatsRound
from tidings.running.times import go_seconds, seconds_between

INNER = ("$", "_INBOX.", "_R_.")  # subjects of the servers themselves, and of answers
_GLOBAL = "$G"  # the account of servers that have none


@dataclass(slots=True)
class Client:
    """All connections of one name at one server; rates are per second."""

    name: str
    server: str
    account: str
    sent: float = 0.0
    sent_bytes: float = 0.0
    answers: float = 0.0  # handed to it on subjects of its own
    patterns: dict[str, float] = field(default_factory=dict)  # handed to it
    queues: dict[tuple[str, str], float] = field(default_factory=dict)  # by pattern and queue
    connections: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A JetStream consumer: its configuration, and what it was handed a second."""

    name: str
    settings: dict[str, Any]
    delivered: float
    in_flight: float  # handed out and not acknowledged, mean of the two rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamCounts:
    """A JetStream stream at its leader; ``stored`` is per second."""

    name: str
    server: str
    account: str
    subjects: tuple[str, ...]
    stored: float
    consumers: tuple[Consumer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Two servers that are joined, and the round trip between them in seconds if reported."""

    ends: tuple[str, str]
    kind: str
    round_trip_s: float | None


class CounterGrowth:
    """Two rounds of documents, read as counters that grew in between."""

    def __init__(self, first: NatsRound, second: NatsRound) -> None:
        self.names = _server_names(second)
        self._first, self._second = first, second
        self.elapsed_s = min(self._elapsed_s(server) for server in self.names)

    def clients(self) -> list[Client]:
        """List the clients at all servers, connections of one name taken together."""
        clients: dict[tuple[str, str, str], Client] = {}
        for server, name in self.names.items():
            before = {each.get("cid"): each for each in self._rows(self._first, server, "connz")}
            for now in self._rows(self._second, server, "connz"):
                if now.get("kind", "Client") != "Client" or now.get("name") == CLIENT_NAME:
                    continue
                own_name = client_name(now, name)
                account = str(now.get("account") or _GLOBAL)
                key = (own_name, name, account)
                client = clients.setdefault(key, Client(own_name, name, account))
                self._add(client, before.get(now.get("cid"), {}), now, self._elapsed_s(server))
        return list(clients.values())

    def streams(self) -> list[StreamCounts]:
        """List the streams of JetStream with their consumers, each once, at its leader."""
        return [
            stream
            for server in self.names
            for account in _list(self._second.servers[server]["jsz"], "account_details")
            for now in _list(account, "stream_detail")
            if _map(now, "cluster").get("leader") in (None, self.names[server])
            for stream in [self._stream(server, str(account.get("name") or _GLOBAL), now)]
        ]

    def joins(self) -> list[Join]:
        """List pairs of servers that are joined by routes, leaf nodes or gateways, each once."""
        joins: dict[frozenset[str], Join] = {}
        for server, name in self.names.items():
            for other, kind, row in _neighbours(self._second.servers[server]):
                ends = (name, self.names.get(other, str(row.get("remote_name") or other)))
                round_trip_s = go_seconds(row.get("rtt")) or None  # 0 s: not measured yet
                known = joins.get(frozenset(ends))
                if ends[0] != ends[1] and (known is None or known.round_trip_s is None):
                    joins[frozenset(ends)] = Join(ends=ends, kind=kind, round_trip_s=round_trip_s)
        return list(joins.values())

    def _add(self, client: Client, before: Documents, now: Documents, elapsed_s: float) -> None:
        client.connections += 1
        client.sent += _growth(before, now, "in_msgs") / elapsed_s
        client.sent_bytes += _growth(before, now, "in_bytes") / elapsed_s
        handed_before = {
            each.get("sid"): each for each in _list(before, "subscriptions_list_detail")
        }
        for each in _list(now, "subscriptions_list_detail"):
            pattern, queue = str(each.get("subject")), each.get("qgroup")
            handed = _growth(handed_before.get(each.get("sid"), {}), each, "msgs") / elapsed_s
            if pattern.startswith(INNER):
                client.answers += handed
            elif queue:
                key = (pattern, str(queue))
                client.queues[key] = client.queues.get(key, 0.0) + handed
            else:
                client.patterns[pattern] = client.patterns.get(pattern, 0.0) + handed

    def _stream(self, server: str, account: str, now: Documents) -> StreamCounts:
        elapsed_s = self._elapsed_s(server)
        before = self._stream_before(server, account, now.get("name"))
        earlier = {each.get("name"): each for each in _list(before, "consumer_detail")}
        return StreamCounts(
            name=str(now.get("name")),
            server=self.names[server],
            account=account,
            subjects=tuple(map(str, _map(now, "config").get("subjects") or ())),
            stored=_growth(_map(before, "state"), _map(now, "state"), "last_seq") / elapsed_s,
            consumers=tuple(
                _consumer(earlier.get(each.get("name"), {}), each, elapsed_s)
                for each in _list(now, "consumer_detail")
            ),
        )

    def _stream_before(self, server: str, account: str, name: object) -> Documents:
        documents = self._first.servers.get(server, {}).get("jsz", {})
        for each in _list(documents, "account_details"):
            for stream in _list(each, "stream_detail"):
                if stream.get("name") == name and str(each.get("name") or _GLOBAL) == account:
                    return stream
        return {}

    def _rows(self, taken: NatsRound, server: str, page: str) -> list[Documents]:
        rows = taken.servers.get(server, {}).get(page) or []
        return [each for each in rows if isinstance(each, dict)]

    def _elapsed_s(self, server: str) -> float:
        earlier = self._first.servers.get(server, {}).get("varz", {})
        now = self._second.servers[server]["varz"]
        elapsed_s = seconds_between(earlier.get("now", now.get("start")), now.get("now"))
        if elapsed_s is None or elapsed_s <= 0:
            raise EngineError(f"server '{now.get('server_name')}' does not tell its time in varz")
        return elapsed_s


def client_name(connection: Documents, server: str) -> str:
    """Name a client: as it calls itself, or by the server's number for it."""
    return str(connection.get("name") or f"client-{connection.get('cid')}@{server}")


def _server_names(taken: NatsRound) -> dict[str, str]:
    """Name servers by id; by the id itself where two have one name."""
    names = {
        server: str(documents["varz"].get("server_name") or server)
        for server, documents in taken.servers.items()
    }
    shared = {name for name in names.values() if list(names.values()).count(name) > 1}
    return {server: server if name in shared else name for server, name in names.items()}


def _neighbours(documents: Documents) -> Iterator[tuple[str, str, Documents]]:
    """Yield each server that this one is joined to: its id or name, by what, and its row."""
    for row in _list(documents["routez"], "routes"):
        yield str(row.get("remote_id")), "route", row
    for row in _list(documents["leafz"], "leafs"):
        yield str(row.get("name")), "leaf node", row
    for gateway in _map(documents["gatewayz"], "outbound_gateways").values():
        row = _map(gateway, "connection")
        if row.get("name"):
            yield str(row["name"]), "gateway", row


def _consumer(before: Documents, now: Documents, elapsed_s: float) -> Consumer:
    held = [each.get("num_ack_pending") for each in (before, now)]
    counts = [float(each) for each in held if isinstance(each, int | float)]
    return Consumer(
        name=str(now.get("name")),
        settings=_map(now, "config"),
        delivered=_growth(_map(before, "delivered"), _map(now, "delivered"), "consumer_seq")
        / elapsed_s,
        in_flight=sum(counts) / len(counts) if counts else 0.0,
    )


def _growth(before: Documents, now: Documents, name: str) -> float:
    """Compute by how much a counter grew; one that is smaller than before began anew."""
    after, earlier = now.get(name), before.get(name)
    if not isinstance(after, int | float):
        return 0.0
    known = isinstance(earlier, int | float) and earlier <= after
    return float(after - earlier) if known else float(after)  # type: ignore[operator]


def _list(document: Any, name: str) -> list[Documents]:
    rows = document.get(name) if isinstance(document, dict) else None
    return [each for each in rows if isinstance(each, dict)] if isinstance(rows, list) else []


def _map(document: Any, name: str) -> Documents:
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, dict) else {}
