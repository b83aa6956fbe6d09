"""What NATS servers say of themselves: the same documents over HTTP and from the system account.

A server's monitoring pages (``http://HOST:8222/varz`` and others) tell of that server alone. The
system account reaches every server of a cluster and its gateways; leaf nodes only where they share
that account.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from tidings.errors import EngineError
from tidings.model import json_text
from tidings.model.naming import few
from tidings.model.progress import Progress
from tidings.running.asking import Pages, hidden

CLIENT_NAME = "tidings"
PORT = 8222  # where monitoring pages usually are
_PAGE = 1024  # connections asked for at once
_ANSWER_S = 2.0
_AGAIN_S = 0.2  # until a server that did not answer is tried once more
# What is asked of every server, with the options of its page and of its request.
_QUESTIONS: dict[str, tuple[dict[str, str | int], dict[str, Any]]] = {
    "varz": ({}, {}),
    "routez": ({}, {}),
    "leafz": ({}, {}),
    "gatewayz": ({}, {}),
    "jsz": (
        {"streams": 1, "consumers": 1, "config": 1},
        {"accounts": True, "streams": True, "consumer": True, "config": True},
    ),
}

Documents = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsRound:
    """All servers' documents of one moment, by server id, and what was asked for them."""

    servers: dict[str, Documents]
    asked: tuple[str, ...]


def two_rounds(
    urls: Sequence[str],
    seconds: float,
    credentials: str | None = None,
    tell: Progress = lambda stage: None,
) -> tuple[NatsRound, NatsRound]:
    """Ask all servers behind these addresses twice, so many seconds apart.

    ``http://`` is one server's pages; ``nats://`` all servers that its system account reaches.
    """
    tell(f"connecting to {few([hidden(url) for url in urls])}")
    first = _round(urls, credentials)
    tell(f"reading counters twice, {seconds:g} s apart")
    time.sleep(seconds)
    return first, _round(urls, credentials)


def _round(urls: Sequence[str], credentials: str | None) -> NatsRound:
    servers: dict[str, Documents] = {}
    asked: list[str] = []
    for url in urls:
        over_http = url.partition("://")[0] in ("http", "https")
        servers |= _read(url, asked) if over_http else _request(url, credentials, asked)
    return NatsRound(servers=servers, asked=tuple(asked))


def _read(url: str, asked: list[str]) -> dict[str, Documents]:
    """Read all pages of one server, by its id."""
    pages = Pages(url, asked)
    varz = read_varz(pages)
    documents = {
        name: pages.read(name, **options)
        for name, (options, _) in _QUESTIONS.items()
        if name != "varz"
    }
    connections = read_connections(pages, subs="detail", auth=1)
    return {str(varz["server_id"]): {**documents, "varz": varz, "connz": connections}}


def read_varz(pages: Pages) -> Documents:
    """Read a server's own page about itself; raises EngineError where it is none."""
    varz = pages.read("varz")
    if not isinstance(varz, dict) or "server_id" not in varz:
        raise EngineError(f"{pages.base}/varz is no monitoring page of a NATS server")
    return varz


def _request(url: str, credentials: str | None, asked: list[str]) -> dict[str, Documents]:
    """Ask all servers that the system account reaches; else read the pages of this one server."""
    servers = asyncio.run(_request_all(url, credentials, asked))
    if servers:
        return servers
    pages = f"http://{urlsplit(url).hostname}:{PORT}"
    try:
        return _read(pages, asked)
    except EngineError:
        raise EngineError(
            f"{hidden(url)} lets this user ask nothing, and there are no monitoring pages at "
            f"{pages}: give a user of the system account, or the pages of each server "
            "(http://HOST:PORT, as its 'http_port' says)"
        ) from None


def read_connections(pages: Pages, **options: str | int) -> list[Any]:
    """Read all connections of a server, page by page, each with its page's moment as ``now``."""
    connections: list[Any] = []
    while True:
        answer = pages.read("connz", **options, limit=_PAGE, offset=len(connections))
        rows = answer.get("connections") if isinstance(answer, dict) else None
        connections += [
            {**row, "now": answer.get("now")} if isinstance(row, dict) else row
            for row in rows or []
        ]
        if not rows or len(connections) >= int(answer.get("total") or 0):
            return connections


async def _request_all(url: str, credentials: str | None, asked: list[str]) -> dict[str, Documents]:
    client = await connect(url, CLIENT_NAME, user_of(url), credentials)

    async def ask(subject: str, options: dict[str, Any]) -> Any:
        asked.append(f"request {subject}")
        try:
            answer = await client.request(subject, json.dumps(options).encode(), timeout=_ANSWER_S)
        except Exception:
            raise EngineError(f"no answer to {subject} from {hidden(url)}") from None
        return _data(answer.data)

    try:
        servers: dict[str, Documents] = {}
        for server_id in await _present(client, asked):
            at = f"$SYS.REQ.SERVER.{server_id}"
            questions = {name: options for name, (_, options) in _QUESTIONS.items()}
            servers[server_id] = {
                name: await ask(f"{at}.{name.upper()}", options)
                for name, options in questions.items()
            } | {"connz": await _all_connections(ask, f"{at}.CONNZ")}
        return servers
    finally:
        await client.close()


async def connect(url: str, name: str, user: dict[str, str], credentials: str | None) -> Any:
    """Open a connection under this name that does not come back once it is lost."""
    import nats

    problems: list[Exception] = []

    async def remember(problem: Exception) -> None:
        """Keep errors until there is a connection; later they show as answers that do not come."""
        problems[:] = [problem]

    try:
        return await nats.connect(
            hidden(url),
            name=name,
            **user,
            user_credentials=credentials,
            error_cb=remember,
            allow_reconnect=False,
            # The first connection, too, is tried so often; 0 would be for ever.
            max_reconnect_attempts=1,
            reconnect_time_wait=_AGAIN_S,
            connect_timeout=_ANSWER_S,
        )
    except Exception as problem:
        why = problems[0] if problems else problem
        raise EngineError(f"no connection to {hidden(url)}: {why or type(why).__name__}") from None


def user_of(url: str) -> dict[str, str]:
    """Read who asks from the address: a user with a password, or a token.

    >>> user_of("nats://me:a%2Fb@host"), user_of("nats://t0ken@host"), user_of("nats://host")
    ({'user': 'me', 'password': 'a/b'}, {'token': 't0ken'}, {})
    """
    parts = urlsplit(url)
    if parts.username is None:
        return {}
    if parts.password is None:
        return {"token": unquote(parts.username)}
    return {"user": unquote(parts.username), "password": unquote(parts.password)}


async def _all_connections(
    ask: Callable[[str, dict[str, Any]], Awaitable[Any]], subject: str
) -> list[Any]:
    connections: list[Any] = []
    while True:
        options = {"auth": True, "subscriptions": True, "subscriptions_detail": True}
        answer = await ask(subject, options | {"limit": _PAGE, "offset": len(connections)})
        rows = answer.get("connections") or []
        connections += rows
        if not rows or len(connections) >= int(answer.get("total") or 0):
            return connections


async def _present(client: Any, asked: list[str]) -> list[str]:
    """List the ids of all servers that answer a ping: none to users outside the system account."""
    inbox = client.new_inbox()
    answers = await client.subscribe(inbox)
    asked.append("request $SYS.REQ.SERVER.PING")
    await client.publish("$SYS.REQ.SERVER.PING", reply=inbox)
    ids: list[str] = []
    wait_s = _ANSWER_S
    while True:
        try:
            answer = await answers.next_msg(timeout=wait_s)
        except Exception:  # nobody else answers, or we may not ask
            break
        server = json_text.parse(answer.data).get("server") if answer.data else None
        if isinstance(server, dict) and server.get("id"):
            ids.append(str(server["id"]))
            wait_s = _ANSWER_S / 4  # others answer within a round trip or so
    await answers.unsubscribe()
    return ids


def _data(body: bytes) -> Any:
    answer = json_text.parse(body)
    data = answer.get("data") if isinstance(answer, dict) else None
    return data if isinstance(data, dict) else {}
