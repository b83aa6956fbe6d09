"""Histograms that real consumers export, scraped as they run, against every delay they saw."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import time
import urllib.parse
import urllib.request

import numpy as np
import pytest
import yaml

import tidings as td
from jetstream import jetstream_server
from tidings.testbed.runs import HOST
from tidings.testbed.servers import free_ports
from tidings.traces.importing import import_traces
from tidings.traces.readers.prometheus import read_prometheus
from tidings.traces.reading import read_traces

nats = pytest.importorskip("nats")
prometheus_client = pytest.importorskip("prometheus_client")

RUN_S, PER_S, SCRAPE_S = 60.0, 30.0, 1.0
PAUSES = {"steady": (1.0, 0.0), "pausing": (15.0, 2.0)}  # every so many seconds, for so many
# Between the default bounds: of the first almost nothing, of the last almost all is on time.
LIFETIMES_S = (0.017, 0.06, 0.17, 1.7)
SMALL = 0.002  # a few events at the ends, which the first or last scrape does not have
SYSTEM = """
tidings: 1
lifetime: {lifetime}s
brokers: {{hub: {{}}}}
publishers: {{p: {{at: hub, every: {{rate: {rate}/s}}, content: {{event: {{t: x}}}}}}}}
subscribers: {{steady: {{at: hub, wants: {{t: x}}}}, pausing: {{at: hub, wants: {{t: x}}}}}}
"""


async def traffic(url, histogram, seen, scrape):
    """Publish and handle for a while; every delay goes into the histogram and into ``seen``."""
    client = await nats.connect(url)
    stream = client.jetstream()
    await stream.add_stream(name="orders", subjects=["orders"])
    begun, rng = time.time(), np.random.default_rng(3)

    async def publish():
        due = begun
        while due < begun + RUN_S:
            due += rng.exponential(1.0 / PER_S)
            await asyncio.sleep(max(due - time.time(), 0.0))
            await stream.publish("orders", repr(due).encode())

    async def handle(name):
        handling = np.random.default_rng(len(name))
        every_s, paused_s = PAUSES[name]
        puller = await stream.pull_subscribe("orders", durable=name)
        while True:
            try:
                (message,) = await puller.fetch(1, timeout=3.0)
            except nats.errors.TimeoutError:
                return
            phase_s = (time.time() - begun) % every_s
            await asyncio.sleep(max(paused_s - phase_s, 0.0) + handling.exponential(0.015))
            delay_s = time.time() - float(message.data)
            histogram.labels(name).observe(delay_s)
            seen[name].append(delay_s)
            await message.ack()

    async def scraping():
        while True:
            await asyncio.to_thread(scrape)
            await asyncio.sleep(SCRAPE_S)

    scraper = asyncio.create_task(scraping())
    await asyncio.gather(publish(), *map(handle, PAUSES))
    await asyncio.sleep(3.0 * SCRAPE_S)  # so that the last is scraped
    scraper.cancel()
    await client.close()


def start_prometheus(program, folder, port, target):
    """Let a real Prometheus scrape the same page."""
    folder.mkdir()
    rules = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [{"job_name": "w", "static_configs": [{"targets": [target]}]}],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(rules))
    command = [program, "--config.file=prometheus.yml", "--storage.tsdb.path=data"]
    command.append(f"--web.listen-address={HOST}:{port}")
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A run, with the folders of what was scraped of it and all delays by consumer."""
    place = tmp_path_factory.mktemp("histograms")
    pages, streams = place / "scrapes", place / "streams"
    pages.mkdir()
    streams.mkdir()
    registry = prometheus_client.CollectorRegistry()
    histogram = prometheus_client.Histogram(
        "order_delay_seconds", "From publishing to handled.", ["queue"], registry=registry
    )
    seen = {name: [] for name in PAUSES}
    for name in PAUSES:
        histogram.labels(name)  # so that it is there, at 0, in the first scrape
    page_port, own_port = free_ports(2)
    server, _ = prometheus_client.start_http_server(page_port, addr=HOST, registry=registry)
    program, sources = shutil.which("prometheus"), [pages]
    process = None
    if program is not None:
        process = start_prometheus(program, place / "own", own_port, f"{HOST}:{page_port}")

    def scrape():
        page = urllib.request.urlopen(f"http://{HOST}:{page_port}/metrics", timeout=5).read()
        draft = place / "draft"
        draft.write_bytes(page)
        draft.rename(pages / f"{time.time_ns()}.txt")

    begun = time.time()
    try:
        with jetstream_server(streams) as url:
            asyncio.run(traffic(url, histogram, seen, scrape))
        if process is not None:
            asked = {"query": "order_delay_seconds_bucket", "start": begun - 2.0,
                     "end": time.time(), "step": 1}  # fmt: skip
            query = f"http://{HOST}:{own_port}/api/v1/query_range?{urllib.parse.urlencode(asked)}"
            answers = place / "answers"
            answers.mkdir()
            (answers / "answer.json").write_bytes(urllib.request.urlopen(query, timeout=10).read())
            sources.append(answers)
    finally:
        server.shutdown()
        if process is not None:
            process.kill()
            process.wait()
    return sources, {name: np.array(delays) for name, delays in seen.items()}


@pytest.mark.spark
@pytest.mark.nightly
def test_shares_of_scraped_histograms_are_those_of_the_delays(recorded, spark, tmp_path):
    sources, seen = recorded
    off = {name: {} for name in PAUSES}
    assert all(delays_s.size > 0.8 * RUN_S * PER_S for delays_s in seen.values())
    for number, source in enumerate(sources):
        files = [str(each) for each in source.iterdir()]
        into = tmp_path / str(number)
        import_traces(spark, lambda keep, of=files: read_prometheus(spark, of, keep), files, into)
        traces = read_traces(spark, into)
        for lifetime_s in LIFETIMES_S:
            base = td.loads(SYSTEM.format(lifetime=lifetime_s, rate=PER_S))
            found = td.characterise(traces, base=base)
            predicted = td.predict(found.system, seconds=5.0).subscribers.set_index("subscriber")
            for row in found.measured.subscribers.itertuples():
                truth = float(np.mean(seen[row.subscriber] <= lifetime_s))
                assert abs(row.on_time - truth) <= row.error + SMALL
                off[row.subscriber][number, lifetime_s] = abs(row.on_time - truth)
                foretold = predicted.loc[row.subscriber]
                assert foretold.on_time == pytest.approx(row.on_time, abs=0.01 + foretold.error)
    # A pause of 2 s ends anywhere between the bounds of 1 and 2.5 s: only the stated error holds.
    assert max(off["steady"].values()) <= 0.02
    brief = [each for (_, lifetime_s), each in off["pausing"].items() if lifetime_s < 1.0]
    assert max(brief) <= 0.02
