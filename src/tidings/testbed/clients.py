"""Connections to the servers of a testbed, and the course of a run in time.

Events are published on schedule; then there is waiting for what is still to come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tidings.errors import EngineError
from tidings.model.progress import Progress
from tidings.testbed.runs import HOST, Run
from tidings.testbed.servers import Servers
from tidings.testbed.workload import Publication

try:
    import nats
    from nats.aio.client import Client
except ModuleNotFoundError as problem:
    raise EngineError(
        "the testbed needs the NATS client library; run: pip install 'tidings[testbed]'"
    ) from problem

DESTINATION = "trace.out"  # where servers send what they say of each message
QUEUE = "collectors"  # every server has a collector of its own, which it prefers to distant ones
AGAIN_S = 0.05  # between two tries of a client to connect again


class Clients:
    """All connections of a run; closed together."""

    def __init__(self, run: Run, running: Servers) -> None:
        self._run, self._servers = run, running
        self._open: list[Client] = []
        self._problem: str | None = None

    async def connect(self, port: int, name: str) -> Client:
        """Open a connection that reconnects by itself, and keeps nothing while it is down."""
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


_ABSENCES = 10.0  # mean times away of a peer, until it must have come back and taken all
Check = Callable[[], None]

LOOK_S = 0.05
_SETTLE_S = 10.0  # until everything must be ready
_DRAIN_S = 30.0  # after the last publication, until everything must have arrived


def begin(run: Run) -> None:
    """Begin the run, in a moment."""
    run.start_s = asyncio.get_running_loop().time() + 2.0 * LOOK_S
    run.layout.journal.counts_lateness = True


async def publish_on_schedule(
    run: Run, publish: Callable[[Publication], Awaitable[None]], check: Check, tell: Progress
) -> None:
    """Publish every event when it is due, whatever became of those before it."""
    loop = asyncio.get_running_loop()
    looked_s = run.start_s
    for each in run.publications:
        due_s = run.start_s + each.at_s
        if (left_s := due_s - loop.time()) > 0.0:
            await asyncio.sleep(left_s)
        run.published_late_s.append(loop.time() - due_s)
        await publish(each)
        if loop.time() - looked_s > 1.0:
            looked_s = loop.time()
            check()
            tell(f"running, {each.at_s / run.publications[-1].at_s:.0%}")


async def drain(run: Run, check: Check, *, quiet: int = 4) -> None:
    """Wait until nothing is under way and nothing new has come for so many looks."""
    journal, loop = run.layout.journal, asyncio.get_running_loop()
    limit_s = _DRAIN_S + _ABSENCES * _longest_absence_s(run)
    looks, deadline_s = 0, loop.time() + limit_s
    while looks < quiet:
        before = len(run.documents) + len(run.deliveries)
        await asyncio.sleep(2.0 * LOOK_S)
        check()
        after = len(run.documents) + len(run.deliveries)
        looks = looks + 1 if journal.under_way == 0 and before == after else 0
        if loop.time() > deadline_s:
            raise EngineError(
                f"{journal.under_way} events had not arrived {limit_s:g} s after the last one "
                "was published; is a broker overloaded?"
            )
    journal.counts_lateness = False


def _longest_absence_s(run: Run) -> float:
    """Find the longest mean time that a peer is away, in seconds.

    What is kept for it comes only afterwards.
    """
    system = run.system
    known = [each.connectivity for each in system.publishers]
    known += [each.connectivity for each in system.subscribers]
    return max((c.off.mean_s for c in known if c is not None and c.off is not None), default=0.0)


async def until(ready: Callable[[], bool], otherwise: Callable[[], str], check: Check) -> None:
    """Wait for something that is looked at aside from the loop; not for ever."""
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + _SETTLE_S
    while not await asyncio.to_thread(ready):
        check()
        if loop.time() > deadline_s:
            raise EngineError(f"after {_SETTLE_S:g} s {otherwise()}")
        await asyncio.sleep(LOOK_S)
