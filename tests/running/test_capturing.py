"""Traffic of clients that know nothing of Tidings, traced hop by hop on real servers."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections import Counter, defaultdict
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import tidings as td
from running.nats_cluster import nats_cluster
from tidings.cli.capture import _import_all
from tidings.cli.commands import run
from tidings.errors import EngineError
from tidings.running.attributing import Attribution, Names, attribute
from tidings.running.capturing import Captured, CapturePlan, _Capture, capture
from tidings.running.heard import Heard
from tidings.traces.importing import Imported

nats = pytest.importorskip("nats")

PUBLISHERS = {
    "shop": ("leaf", 40.0, ("orders.1.eu", "orders.2.us")),
    "desk": ("west", 25.0, ("orders.9.eu",)),
    "timer": ("east", 15.0, ("jobs",)),
}


class Traffic(threading.Thread):
    """Three publishers; a ledger at west, an audit at east, a queue group of two at east."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        self.cluster, self.ready, self.stop = cluster, threading.Event(), threading.Event()
        self.published = Counter()
        self.moments = defaultdict(list)
        self.received = defaultdict(Counter)
        self.problem = None
        self.late_s = []

    def run(self):
        try:
            asyncio.run(self._work())
        except BaseException as problem:
            self.problem = problem

    async def _work(self):
        def keep(who):
            async def cb(message):
                self.received[who][message.data] += 1

            return cb

        async def connect(server, name):
            return await nats.connect(self.cluster.url(server), name=name)

        clients = [await connect("west", "ledger")]
        await clients[0].subscribe("orders.*.eu", cb=keep("ledger"))
        clients.append(await connect("east", "audit"))
        await clients[-1].subscribe("orders.>", cb=keep("audit"))
        for name in ("one", "two"):
            clients.append(await connect("east", name))
            await clients[-1].subscribe("jobs", queue="workers", cb=keep("workers"))
        clients.append(await connect("leaf", "keeper"))
        kept = clients[-1].jetstream(timeout=10)
        await kept.add_stream(name="KEPT", subjects=["kept.>"])
        await kept.pull_subscribe("kept.>", durable="crew")
        for _ in range(3):
            await kept.publish("kept.a", b"nobody fetches it")
        await asyncio.sleep(0.5)  # until interest has spread
        self.ready.set()
        await asyncio.gather(*(self._publish(connect, name) for name in PUBLISHERS))
        await asyncio.sleep(1.0)
        for client in clients:
            await client.close()

    async def _publish(self, connect, name):
        server, rate, subjects = PUBLISHERS[name]
        client, chance = await connect(server, name), random.Random(name)
        due, number = time.monotonic(), 0
        while not self.stop.is_set():
            due += chance.expovariate(rate)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            self.late_s.append(time.monotonic() - due)
            subject = chance.choice(subjects)
            self.moments[subject].append(time.time())
            await client.publish(subject, f"{name}{number:06d}".encode().ljust(90))
            number += 1
            self.published[subject] += 1
        await client.close()


@pytest.fixture(scope="module")
def captured(spark, few_rows, tmp_path_factory):
    """A capture of all messages and one of a few, while traffic runs; with what clients saw."""
    folder = tmp_path_factory.mktemp("capture")
    with nats_cluster(folder) as cluster:
        traffic = Traffic(cluster)
        traffic.start()
        assert traffic.ready.wait(60), traffic.problem
        pages = tuple(cluster.pages.values())
        plan = CapturePlan(
            url=cluster.url("east"), pages=pages, seconds=6.0, most_per_s=1e6, lifetime_s=0.02
        )
        (folder / "whole").mkdir()
        whole = capture(plan, folder / "whole")
        traces = folder / "traces"
        monitors = [word for page in pages for word in ("--monitor", page)]
        words = ["capture", cluster.url("east"), *monitors, "--most", "8"]
        with pytest.MonkeyPatch.context() as patch:  # Spark is shared by all tests
            patch.setattr("tidings.cli.spark.started", lambda *_, **__: nullcontext(spark))
            code = run([*words, "--for", "5s", "--to", str(traces)])
        traffic.stop.set()
        traffic.join(60)
        assert traffic.problem is None
    reports = [
        json.loads(line) for line in (folder / "whole" / "reports.jsonl").read_text().splitlines()
    ]
    return whole, reports, traffic, (code, traces)


pytestmark = [pytest.mark.spark, pytest.mark.slow]


def skip_if_late(traffic, limit_s=0.005):
    """Times and shares of clients are not judged where the machine keeps no times."""
    late_s = float(np.median(traffic.late_s))
    if late_s > limit_s:
        pytest.skip(f"half of all publications were {late_s:.3f} s late; {limit_s:g} s will do")


def test_nothing_is_delivered_twice(captured):
    _, _, traffic, _ = captured
    wanted = {
        "ledger": traffic.published["orders.1.eu"] + traffic.published["orders.9.eu"],
        "audit": sum(n for subject, n in traffic.published.items() if subject != "jobs"),
        "workers": traffic.published["jobs"],
    }
    for who, count in wanted.items():
        assert set(traffic.received[who].values()) == {1}
        assert len(traffic.received[who]) == pytest.approx(count, abs=3)  # under way at the end


def test_every_message_is_traced_under_its_publisher_at_its_server(captured):
    whole, reports, traffic, _ = captured
    assert whole.sampled == 1.0
    assert whole.traced >= 0.95 * whole.heard > 200
    entered = Counter()
    for report in reports:
        for step in report["events"]:
            if step["type"] == "in" and step["kind"] == 0:
                entered[step["name"], report["server"]["name"], step["subj"]] += 1
    right = sum(
        entered[name, server, subject]
        for name, (server, _, subjects) in PUBLISHERS.items()
        for subject in subjects
    )
    assert entered.total() == whole.traced
    if any("only the likeliest" in note for note in whole.notes):
        skip_if_late(traffic)
    assert right >= 0.9 * whole.traced


def test_reports_name_subscribers_and_leave_out_the_listener(captured):
    _, reports, _, _ = captured
    handed = {
        (step.get("queue") or step["name"], report["server"]["name"])
        for report in reports
        for step in report["events"]
        if step["type"] == "eg" and step["kind"] == 0
    }
    assert handed == {("ledger", "west"), ("audit", "east"), ("workers", "east")}
    assert {report["request"]["msgsize"] for report in reports} == {90}
    assert all(report["request"]["header"]["Nats-TTL"] == ["20ms"] for report in reports)


def test_a_sample_becomes_trace_tables(spark, few_rows, captured):
    _, _, traffic, (code, traces) = captured
    assert code == 0
    skip_if_late(traffic)
    tables = td.read_traces(spark, traces)
    learnt = td.characterise(tables)
    homes = {each.name: each.at for each in learnt.system.publishers}
    assert homes == {name: server for name, (server, _, _) in PUBLISHERS.items()}
    wants = {each.name: each.at for each in learnt.system.subscribers}
    assert wants == {"ledger": "west", "audit": "east", "workers": "east"}
    total = sum(each.rate_per_s for each in learnt.system.publishers)
    assert tables.sampled == pytest.approx(8.0 / 80.0, rel=0.3)  # --most 8 of 80 a second
    assert total == pytest.approx(80.0, rel=0.5)  # of some forty traced
    wanted = learnt.measured.subscribers.set_index("subscriber")["wanted_per_s"]
    assert wanted["audit"] == pytest.approx(65.0, rel=0.5)
    assert not any("clock" in note for note in learnt.notes)


def test_heartbeats_cross_every_link_both_ways(spark, captured):
    whole, reports, traffic, (_, traces) = captured
    probes = td.read_traces(spark, traces).tables["probes"].collect()
    assert {(row.source, row.target) for row in probes} == {
        ("east", "west"),
        ("west", "east"),
        ("east", "leaf"),
        ("leaf", "east"),
    }
    took_s = [(row.received_ns - row.sent_ns) / 1e9 for row in probes if row.received_ns]
    assert len(took_s) == len(probes)  # none is lost
    assert 0 < min(took_s) < 1.0  # servers of one machine have one clock
    assert whole.probes > 0
    subjects = {step.get("subj") for each in reports for step in each["events"]}
    assert "tidings.heartbeat" not in subjects  # they are no messages
    assert "tidings.heartbeat" not in traffic.published


def test_consumers_are_polled_into_a_folder_of_their_own(spark, captured):
    _, _, _, (_, traces) = captured
    levels = td.read_traces(spark, traces / "consumers").tables["levels"]
    counted = {(row.queue, row.entered, row.done) for row in levels.collect()}
    assert counted == {("KEPT-crew", 3, 0)}
    assert levels.count() >= 3  # one a second, of five


def test_copies_are_told_at_the_times_of_their_messages(captured):
    _, reports, traffic, _ = captured
    skip_if_late(traffic)
    published = np.array(sorted(traffic.moments["jobs"]))
    said = np.array(
        [
            int(report["request"]["header"]["Tidings-Published-Ns"][0]) / 1e9
            for report in reports
            for step in report["events"]
            if (step["type"], step.get("subj"), step["kind"]) == ("in", "jobs", 0)
        ]
    )
    before = published[np.searchsorted(published, said) - 1]
    assert said.size > 30
    assert np.median(said - before) < 0.2 / 15.0  # by chance it would be .69/15: fifteen a second


def test_what_consumers_of_a_stream_are_handed_is_no_publication():
    plan = CapturePlan(url="nats://x", pages=(), seconds=1.0)
    capturing = _Capture(plan, lambda stage: None)
    capturing._heard = Heard()
    handed = "$JS.ACK.KEPT.crew.1.3.3.1700000000000000000.0"
    for reply in ("", handed, "inbox.7", handed):
        message = SimpleNamespace(subject="kept.a", reply=reply, data=b"x")
        asyncio.run(capturing._take(message))
    assert len(capturing._heard.numbers["kept.a"]) == 2


def test_a_copy_does_not_follow_its_message_at_once(monkeypatch, tmp_path):
    plan = CapturePlan(url="nats://x", pages=(), seconds=0.5)
    capturing = _Capture(plan, lambda stage: None)
    capturing._polls = tmp_path / "polls"
    sent_s = []

    class Client:
        async def publish(self, *_, **__):
            sent_s.append(time.monotonic())

        async def subscribe(self, *_, **__):
            for _ in range(40):
                asyncio.get_running_loop().call_later(0.1, self.hear)

        async def flush(self):
            pass

        def hear(self):
            self.heard = asyncio.ensure_future(capturing._on_message("a", 1))

    async def connect(*_):
        return Client()

    monkeypatch.setattr(capturing, "_connect", connect)
    monkeypatch.setattr("tidings.running.capturing._LAST_S", 0.0)
    known = Attribution(
        subjects=("a",), senders=("p",), shares=np.ones((1, 1)), explained=np.ones(1)
    )
    server = SimpleNamespace(url="nats://x", pages=None)
    monkeypatch.setattr(capturing, "_beside", lambda _: nullcontext())
    began_s = time.monotonic()
    traced = capturing._trace({"east": server}, known, {"p": ("p", "east")}, 1.0, Client())
    heard, _ = asyncio.run(traced)
    pauses_s = np.array(sent_s) - began_s - 0.1
    assert heard == len(sent_s) == 40
    assert np.mean(pauses_s > 0.2) > 0.7  # evenly from 0 to 2 s
    assert pauses_s.std() > 0.3


def test_silence_is_said(tmp_path):
    with nats_cluster(tmp_path) as cluster:
        plan = CapturePlan(url=cluster.url("east"), pages=(cluster.pages["east"],), seconds=1.0)
        with pytest.raises(EngineError, match="nothing was published"):
            capture(plan, tmp_path)


def test_senders_of_common_subjects_are_told_apart_by_their_counters():
    chance = np.random.default_rng(4)
    heard = chance.poisson([6.0, 6.0, 9.0], size=(40, 3)).astype(float)
    first = chance.binomial(heard[:, 0].astype(int), 0.5) + heard[:, 1]
    second = heard[:, 0] + heard[:, 1] - first + heard[:, 2]
    sent = np.stack([first, second], axis=1)
    sizes = np.array([50.0, 90.0, 90.0])
    names = Names(subjects=("a", "b", "c"), senders=("x", "y"))
    found = attribute([heard, heard], sizes, sent, sent * 80.0, names)
    assert dict(found.of("a"))["x"] == pytest.approx(0.5, abs=0.2)
    assert dict(found.of("c")).get("y", 0.0) > 0.85
    assert found.of("never heard") == []


def test_tables_that_a_new_capture_does_not_have_do_not_stay_from_an_old_one(tmp_path, monkeypatch):
    nothing = Imported(account=pd.DataFrame(), window=None, notes=())
    monkeypatch.setattr("tidings.traces.importing.import_traces", lambda *_: nothing)
    for name in ("hops", "probes", "consumers"):
        (tmp_path / "traces" / name).mkdir(parents=True)
    without = Captured(reports=1, heard=1, traced=1, sampled=1.0, seconds=1.0, probes=0, notes=())
    _import_all(None, without, tmp_path, tmp_path / "traces", lambda _: None)
    assert [each.name for each in (tmp_path / "traces").iterdir()] == ["hops"]
