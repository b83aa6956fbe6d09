"""An application served on a socket of its own, by a thread, until whoever started it has done."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from tidings.errors import EngineError, InvalidInputError
from tidings.serving.guard import is_loopback

HOST = "127.0.0.1"
LEAST_TOKEN = 16  # characters: fewer can be guessed
PATIENCE_S = 20.0  # to end
_TOKEN = re.compile(rf"[A-Za-z0-9._~-]{{{LEAST_TOKEN},}}")


_EVERYWHERE = ("0.0.0.0", "::")


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """Where a server listens."""

    host: str
    port: int
    token: str
    ended: threading.Event

    def wait(self, for_s: float | None = None) -> None:
        """Wait so long, or for ever; raises EngineError where the server ends by itself."""
        if self.ended.wait(for_s):
            raise EngineError(f"the server on {self.url} has ended")

    @property
    def url(self) -> str:
        """The address of the server, without the token; of all addresses, this machine's name."""
        host = socket.gethostname() if self.host in _EVERYWHERE else self.host
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}:{self.port}/"

    @property
    def door(self) -> str:
        """The address to open first: with the token, if there is one."""
        return f"{self.url}?token={self.token}" if self.token else self.url


class _StreamServer(uvicorn.Server):
    """A server that has streams ended first; else it would wait for them."""

    def __init__(self, app: ASGIApp, ending: Callable[[], None]) -> None:
        super().__init__(uvicorn.Config(app, **_OPTIONS))
        self._ending = ending

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End all streams, then the server."""
        self._ending()
        await super().shutdown(sockets)


@contextmanager
def listen(
    app: ASGIApp,
    *,
    host: str = HOST,
    port: int,
    token: str,
    ending: Callable[[], None] = lambda: None,
) -> Iterator[Served]:
    """Serve an application from a thread of this process while the block runs.

    Anywhere but on loopback a token is needed. Port 0 takes a free one. ``ending`` is called before
    the server waits for what it still has to answer.
    """
    check_token(token, host)
    listening = _listen(host, port)
    server = _StreamServer(app, ending)
    # A thread whose join is interrupted is taken for ended (until Python 3.13), so an event tells.
    ended = threading.Event()

    def run() -> None:
        try:
            server.run(sockets=[listening])
        finally:
            ended.set()

    threading.Thread(target=run, name="tidings-serve", daemon=True).start()
    try:
        port = listening.getsockname()[1]
        yield Served(host=host, port=port, token=token, ended=ended)
    finally:
        server.should_exit = True
        has_ended = ended.wait(PATIENCE_S)
        listening.close()
    if not has_ended:
        raise EngineError(f"the server on {host} did not end within {PATIENCE_S:g} s")


def check_token(token: str, host: str) -> None:
    """Raise :class:`InvalidInputError` for a token that is missing, or that others may guess."""
    if not token and not is_loopback(host):
        raise InvalidInputError(
            f"to listen on {host} needs a token, as others than this machine's users can ask there"
        )
    if token and not _TOKEN.fullmatch(token):
        raise InvalidInputError(
            f"the token has {len(token)} characters; wants {LEAST_TOKEN} or more of letters, "
            "digits and - . _ ~"
        )


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as problem:
        raise InvalidInputError(
            f"cannot listen on port {port} of {host}: {problem.strerror or problem}; --port 0 "
            "takes a free one"
        ) from problem


# Nothing is printed but what goes wrong inside: requests bear tokens.
_OPTIONS: dict[str, Any] = {
    "access_log": False,
    "log_config": None,
    "server_header": False,
    "ws": "none",
    "limit_concurrency": 1000,
    "timeout_graceful_shutdown": 3,
}
