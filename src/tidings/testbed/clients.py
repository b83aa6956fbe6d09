"""Connections to the servers of a testbed, and whether all is as it should be."""

from __future__ import annotations

from tidings.errors import EngineError
from tidings.testbed.ports import HOST
from tidings.testbed.runs import Run
from tidings.testbed.servers import Servers

try:
    import nats
    from nats.aio.client import Client
except ModuleNotFoundError as problem:
    raise EngineError(
        "the testbed needs the NATS client library; run: pip install 'tidings[testbed]'"
    ) from problem

AGAIN_S = 0.05  # between two tries of a client to connect again


class Clients:
    """All connections of a run; closed together."""

    def __init__(self, run: Run, running: Servers) -> None:
        self._run, self._servers = run, running
        self._open: list[Client] = []
        self._problem: str | None = None

    async def connect(self, port: int, name: str) -> Client:
        """A connection that comes back by itself, and keeps nothing while it is gone."""
        try:
            client = await nats.connect(
                f"nats://{HOST}:{port}",
                name=name,
                error_cb=self._fail,
                max_reconnect_attempts=-1,
                reconnect_time_wait=AGAIN_S,
                pending_size=0,  # what is published while the broker is down is lost, not kept
            )
        except Exception as problem:
            raise EngineError(f"'{name}' cannot connect to its broker: {problem}") from problem
        self._open.append(client)
        return client

    async def leave(self, client: Client) -> None:
        """End one connection."""
        self._open.remove(client)
        await client.close()

    async def close(self) -> None:
        """End all connections."""
        for client in list(self._open):
            await client.close()

    def check(self) -> None:
        """Raise :class:`EngineError` if a server, a relay or a connection ended by itself."""
        self._servers.require_alive()
        if problem := self._run.layout.journal.problem or self._problem:
            raise EngineError(problem)

    async def _fail(self, problem: Exception) -> None:
        if not self._run.outages:  # else connections are meant to break; servers are looked at
            self._problem = self._problem or f"a client lost its connection: {problem!r}"
