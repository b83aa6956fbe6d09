"""A real server delivers exactly what filters with patterns want."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from tidings.model.filters import as_filter, matches
from tidings.testbed.runs import HOST
from tidings.testbed.servers import ServerPlan, free_ports, servers

nats = pytest.importorskip("nats")

PATTERNS = ["orders", "orders.*", "orders.*.eu", "orders.>", "*", "*.*", "*.eu", "*.*.>", ">"]
TOKENS = ["orders", "eu", "a*", ">b", "$x"]  # wildcards inside a token are ordinary letters
SUBJECTS = [".".join(t) for size in (1, 2, 3) for t in itertools.product(TOKENS, repeat=size)]


async def delivered(port: int) -> dict[str, list[str]]:
    """What each pattern is sent, by one server."""
    got: dict[str, list[str]] = {pattern: [] for pattern in PATTERNS}
    client = await nats.connect(f"nats://{HOST}:{port}")
    for pattern, subjects in got.items():

        async def keep(message, subjects=subjects):
            subjects.append(message.subject)

        await client.subscribe(pattern, cb=keep)
    for subject in SUBJECTS:
        await client.publish(subject)
    await client.drain()  # waits until everything that was sent has been handed over
    return got


def test_a_real_server_delivers_what_the_filter_wants(tmp_path):
    client_port, leaf_port, monitor_port = free_ports(3)
    plan = ServerPlan(
        name="b",
        label="b",
        client_port=client_port,
        broker_port=leaf_port,
        monitor_port=monitor_port,
        dials={},
        links=0,
    )
    with servers({"b": plan}, tmp_path):
        got = asyncio.run(delivered(client_port))
    for pattern, subjects in got.items():
        wanted = as_filter({"topic": {"nats": pattern}})
        assert subjects == [each for each in SUBJECTS if matches(wanted, {"topic": each})], pattern
