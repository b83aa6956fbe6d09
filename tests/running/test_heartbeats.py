"""What servers report of heartbeats, as probes; and JetStream consumers polled meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import json

import pytest

from jetstream import jetstream_and_pages, publish
from tidings.running.asking import Pages
from tidings.running.heartbeats import Heartbeats, poll_consumers, probe_rows

nats = pytest.importorskip("nats")


def report(server, event, *steps, hop=None):
    header = {"Nats-Msg-Id": [event]} | ({"Nats-Trace-Hop": [hop]} if hop else {})
    return {"server": {"name": server}, "request": {"header": header}, "events": list(steps)}


def came(second):
    return {"type": "in", "kind": 4, "ts": f"1970-01-01T00:00:0{second}Z"}


def left(to, hop, second):
    return {"type": "eg", "kind": 4, "name": to, "hop": hop, "ts": f"1970-01-01T00:00:0{second}Z"}


def test_a_hop_is_what_two_servers_report_by_the_same_name():
    """From a over b to c; d did not get it, and its own listeners are no hop."""
    own = {"type": "eg", "kind": 0, "name": "listener", "ts": "1970-01-01T00:00:09Z"}
    reports = [
        report("c", "beat-1", came("3.75"), own, hop="1.1"),
        report("a", "beat-1", came("1"), left("b", "1", "1.25"), left("d", "2", "1.5")),
        report("b", "beat-1", came("2"), left("c", "1.1", "2.000000001"), own, hop="1"),
        report("b", "beat-2", came("4"), hop="1"),  # of another heartbeat
    ]
    assert sorted(probe_rows(reports)) == [
        ("a", "b", 1_250_000_000, 2_000_000_000),
        ("a", "d", 1_500_000_000, None),
        ("b", "c", 2_000_000_001, 3_750_000_000),
    ]


def test_only_reports_of_heartbeats_are_taken(tmp_path):
    beats = Heartbeats("anywhere")
    assert not beats.take(json.dumps(report("a", "e1", came("1"))).encode())
    assert not beats.take(json.dumps(report("beat-1", "e1", came("1"))).encode())
    assert beats.take(json.dumps(report("a", "beat-1", left("b", "1", "1"))).encode())
    assert beats.take(json.dumps(report("b", "beat-1", came("2"), hop="1")).encode())
    assert beats.write(tmp_path / "probes.csv") == 1
    lines = (tmp_path / "probes.csv").read_text().split()
    assert lines == ["source,target,sent_ns,received_ns", "a,b,1000000000,2000000000"]


async def _consume(url, count):
    client = await nats.connect(url)
    stream = client.jetstream(timeout=10)
    pulled = await stream.pull_subscribe("ORDERS.>", durable="worker")
    for message in await pulled.fetch(count, timeout=10):
        await message.ack_sync()
    await client.close()


def test_consumers_are_polled_while_it_runs(tmp_path):
    problems = []
    with jetstream_and_pages(tmp_path) as (url, page):
        pages = Pages(page, [])

        async def polled(seconds):
            with contextlib.suppress(TimeoutError):
                folder = tmp_path / "polls"
                await asyncio.wait_for(poll_consumers([pages], 1.0, folder, problems), seconds)

        asyncio.run(polled(0.3))
        assert not (tmp_path / "polls").exists()  # there is no consumer yet
        publish(url, "ORDERS", *((f"a{number}", b"x") for number in range(5)))
        asyncio.run(_consume(url, 2))
        asyncio.run(polled(0.3))
    (file,) = (tmp_path / "polls").glob("*/*.json")
    page = json.loads(file.read_text())
    assert page["polled_ns"] == int(file.stem)  # as 'import jsz' reads it
    (consumer,) = page["account_details"][0]["stream_detail"][0]["consumer_detail"]
    assert (consumer["stream_name"], consumer["name"]) == ("ORDERS", "worker")
    assert (consumer["delivered"]["consumer_seq"], consumer["num_pending"]) == (2, 3)
    assert problems == []


def test_polls_that_fail_are_told_and_the_others_go_on(tmp_path):
    problems = []

    async def polled():
        with contextlib.suppress(TimeoutError):
            nobody = Pages("http://127.0.0.1:9", [])
            await asyncio.wait_for(poll_consumers([nobody, nobody], 1.0, tmp_path, problems), 0.5)

    asyncio.run(polled())
    assert len(problems) == 2
    assert "cannot be read" in problems[0]
