"""A relay between two ends that are no servers: what becomes of events when one of them leaves."""

from __future__ import annotations

import asyncio

import pytest

from tidings.testbed.journal import Journal
from tidings.testbed.relays import Lane, Relay
from tidings.testbed.runs import HOST
from tidings.testbed.servers import free_ports
from tidings.testbed.stations import BrokerStation

EVENTS = [b"PUB ev.x 2\r\n%02d\r\n" % number for number in range(20)]
SERVICE_S = 0.005


def relay_to(behind_port, port, *, outlasts):
    up = Lane(
        name="p→a", source="p", delay=lambda: 0.02, is_lost=lambda: False, broker="a",
        station=BrokerStation(service=lambda: SERVICE_S), outlasts_sender=outlasts,
    )  # fmt: skip
    down = Lane(name="a→p", source="a", delay=lambda: 0.0, is_lost=lambda: False)
    return Relay(port, behind_port, (up, down), Journal())


async def sent_and_left(*, outlasts):
    """What comes out behind a relay of what a client sends that leaves at once; and the journal."""
    port, behind_port = free_ports(2)
    came, ended = [], asyncio.Event()

    async def take(reader, writer):
        came.append(await reader.read())
        writer.close()
        ended.set()

    relay = relay_to(behind_port, port, outlasts=outlasts)
    async with await asyncio.start_server(take, HOST, behind_port):
        await relay.open()
        _, writer = await asyncio.open_connection(HOST, port)
        writer.writelines(EVENTS)
        await writer.drain()
        writer.close()
        await asyncio.wait_for(ended.wait(), 20.0)
        await relay.close()
        await asyncio.sleep(0.02 + len(EVENTS) * SERVICE_S)  # until all timers are over
    return b"".join(came), relay._journal


@pytest.mark.parametrize("outlasts", [True, False])
def test_what_a_client_has_handed_over_arrives_though_it_leaves(outlasts):
    came, journal = asyncio.run(sent_and_left(outlasts=outlasts))
    assert came == (b"".join(EVENTS) if outlasts else b"")
    assert len(journal.visits) == (len(EVENTS) if outlasts else 0)
    assert journal.under_way == 0  # whatever became of them
