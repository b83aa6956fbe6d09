"""What ``tidings init`` makes of real NATS servers that somebody else's clients use."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

import tidings as td
from running.nats_cluster import nats_cluster
from tidings.cli.commands import app
from tidings.errors import EngineError
from tidings.running.nats_counts import Consumer, StreamCounts
from tidings.running.nats_network import _stream_consumers, nats_network
from tidings.running.nats_pages import two_rounds
from tidings.running.network import assumptions, file_text
from tidings.testbed.servers import free_ports

nats = pytest.importorskip("nats")

HOSTILE = 'till #1: "x"\n\tlate: yes'
SPACING_S = 0.01


class Traffic(threading.Thread):
    """Clients: a shop that publishes, a ledger, a queue group of two, a JetStream worker."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster, self.ready, self.stop = cluster, threading.Event(), threading.Event()
        self.published = 0
        self.problem: BaseException | None = None

    def run(self):
        try:
            asyncio.run(self._work())
        except BaseException as problem:
            self.problem = problem

    async def _work(self):
        async def ignore(_):
            pass

        async def connect(server, name):
            return await nats.connect(self.cluster.url(server), name=name)

        ledger = await connect("west", "ledger")
        await ledger.subscribe("orders.*.eu", cb=ignore)
        for name in ("one", "two"):
            member = await connect("east", name)
            await member.subscribe("jobs", queue="workers", cb=ignore)
        till = await connect("west", HOSTILE)
        await till.subscribe("orders.>", cb=ignore)
        shop = await connect("leaf", "shop")
        stream = (await connect("leaf", "shipper")).jetstream()
        await stream.add_stream(name="ORDERS", subjects=["orders.>"])
        config = nats.js.api.ConsumerConfig(ack_wait=5, max_ack_pending=100, max_deliver=4)
        pulled = await stream.pull_subscribe("orders.>", durable="ship", config=config)
        await asyncio.sleep(0.3)  # until interest has spread
        count = 0
        while not self.stop.is_set():
            await shop.publish("orders.7.eu" if count % 4 else "orders.7.us", b"x" * 100)
            await shop.publish("jobs", b"y" * 50)
            await shop.flush()
            for message in await pulled.fetch(1, timeout=30):
                await message.ack()
            count += 1
            self.published = 2 * count
            self.ready.set()
            await asyncio.sleep(SPACING_S)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with nats_cluster(tmp_path_factory.mktemp("nats")) as running:
        traffic = Traffic(running)
        traffic.start()
        assert traffic.ready.wait(60), traffic.problem
        running_traffic = (running, traffic)
        yield running_traffic
        traffic.stop.set()
        traffic.join(60)
        assert traffic.problem is None


@pytest.fixture(scope="module")
def seen(cluster):
    """The network, its file, and how fast the shop really was meanwhile."""
    running, traffic = cluster
    before, began = traffic.published, time.monotonic()
    rounds = two_rounds(list(running.pages.values()), 3.0)
    rate = (traffic.published - before) / (time.monotonic() - began)
    return nats_network(*rounds), rate


def test_the_file_is_a_system_that_predicts(seen):
    system = td.loads(file_text(seen[0]))
    assert {broker.name for broker in system.brokers} == {"east", "west", "leaf"}
    ends = {frozenset(link.between) for link in system.links}
    assert ends == {frozenset(("east", "west")), frozenset(("east", "leaf"))}
    outcome = td.predict(system, seconds=5.0)
    assert outcome.subscribers["on_time"].between(0.9, 1.0).all()


def test_rates_and_subjects_are_those_that_were_sent(seen):
    network, rate = seen
    (shop,) = network.publishers
    assert (shop.name, shop.at) == ("shop", "leaf")
    told_rate = float(shop.every.value.split()[1].split("/")[0])
    assert told_rate == pytest.approx(rate, rel=0.15)
    shares = {event["subject"]: share for share, event in shop.events}
    # Half of all are jobs; of the orders three in four are European.
    assert shares == pytest.approx(
        {"jobs": 0.5, "orders.any.eu": 0.375, "orders.any": 0.125}, abs=0.04
    )
    assert shop.size_bytes == pytest.approx(75, abs=3)


def test_groups_and_consumers_come_with_their_settings(seen):
    subscribers = {each.name: each for each in seen[0].subscribers}
    assert set(subscribers) == {"ledger", HOSTILE, "workers", "ORDERS-ship"}
    workers = dict(subscribers["workers"].settings)
    assert workers["count"].value == "2"
    assert not workers["count"].assumed
    consumer = {name: each.value for name, each in subscribers["ORDERS-ship"].settings}
    system = td.loads(file_text(seen[0]))
    (ship,) = [each for each in system.subscribers if each.name == "ORDERS-ship"]
    assert consumer["in_flight"] == "100"
    assert (ship.consumers.ack_wait_s, ship.consumers.deliveries) == (5.0, 4)


def test_clients_that_only_acknowledge_are_no_publishers(seen):
    assert [each.name for each in seen[0].publishers] == ["shop"]
    assert any("shipper" in note for note in seen[0].notes)


def test_a_hostile_name_stays_a_name(seen):
    system = td.loads(file_text(seen[0]))
    assert HOSTILE in {each.name for each in system.subscribers}


def test_what_nobody_told_is_marked(seen):
    text, unknown = file_text(seen[0]), assumptions(seen[0])
    assert text.count("# assumed:") == len(unknown)
    assert {"lifetime", "brokers.east.service", "subscribers.ORDERS-ship.consumers.count"} <= {
        each["where"] for each in unknown
    }


def test_the_system_account_tells_the_same_of_the_servers_it_reaches(cluster, seen):
    running, _ = cluster
    user = f"sys:{quote('s e/c:ret', safe='')}@"
    url = running.url("east").replace("//", f"//{user}")
    network = nats_network(*two_rounds([url, running.pages["leaf"]], 2.0))
    assert network.brokers == seen[0].brokers
    assert {each.name for each in network.subscribers} == {
        each.name for each in seen[0].subscribers
    }


def test_servers_that_were_not_asked_are_named(cluster):
    running, _ = cluster
    network = nats_network(*two_rounds([running.pages["east"]], 0.3))
    assert {each.name for each in network.brokers} == {"east", "west", "leaf"}
    assert any("leaf and west" in note or "leaf, west" in note for note in network.notes)


def test_the_command_only_reads_and_says_what(cluster, tmp_path):
    running, _ = cluster
    file = tmp_path / "seen.yaml"
    urls = list(running.pages.values())
    result = CliRunner().invoke(app, ["init", *urls, "--for", "0.5", "--to", str(file), "--json"])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["text"] == file.read_text()
    assert all(each.startswith("GET http://127.0.0.1:") for each in document["asked"])
    assert len(document["asked"]) == 2 * 3 * 6
    td.load(file)


def test_where_nothing_listens_it_is_told_soon():
    (port,) = free_ports(1)
    told, began = [], time.monotonic()
    with pytest.raises(EngineError, match=r"(?i)connect"):
        two_rounds([f"nats://me:pw@127.0.0.1:{port}"], 5.0, None, told.append)
    assert time.monotonic() - began < 5
    assert told == [f"connecting to nats://127.0.0.1:{port}"]


def test_consumers_of_two_accounts_are_named_as_polls_of_them_are():
    consumer = Consumer(name="C", settings={}, delivered=1.0, in_flight=0.0)
    streams = [
        StreamCounts(
            name="S",
            server="a",
            account=account,
            subjects=("x",),
            stored=1.0,
            consumers=(consumer,),
        )
        for account in ("A", "B")
    ]
    assert [each.name for each in _stream_consumers(streams, True)] == ["A/S-C", "B/S-C"]
    assert [each.name for each in _stream_consumers(streams[:1], True)] == ["S-C"]


def test_a_user_without_rights_is_told_which_are_wanted(cluster, monkeypatch):
    monkeypatch.setattr("tidings.running.nats_pages.PORT", 1)
    with pytest.raises(EngineError, match="system account"):
        two_rounds([cluster[0].url("east").replace("//", "//app:app@")], 0.1)
