"""Small networks of real servers: what they do is what the system says; nothing stays behind."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tidings.errors import EngineError, InvalidInputError, UnsupportedError
from tidings.model.reading import loads
from tidings.testbed import servers as servers_module
from tidings.testbed.ports import free_ports
from tidings.testbed.running import run_testbed
from tidings.testbed.runs import TestbedOptions
from tidings.testbed.servers import ServerPlan, servers
from tidings.testbed.tables import doubts, lateness, manifest, trace_tables

LINE = """
tidings: 1
lifetime: 500ms
brokers:
  left: {service: 4ms}
  hub: {service: 3ms}
  right: {service: 5ms}
links:
  - {between: [left, hub], delay: 20ms}
  - {between: [right, hub], delay: 10ms, back: {delay: 30ms, reliability: 0.8}}
publishers:
  p:
    {at: left, every: {rate: 60/s}, link: {delay: 5ms},
     content:
       [{p: 0.5, event: {topic: a}}, {p: 0.3, event: {topic: b}}, {p: 0.2, event: {topic: c}}]}
subscribers:
  near: {at: left, wants: {topic: a}}
  far: {at: right, wants: {topic: [a, b]}, link: {delay: 7ms}}
"""


@pytest.fixture(scope="module")
def run():
    return run_testbed(loads(LINE), TestbedOptions(duration_s=4.0, warmup_s=0.5, seed=5))


@pytest.fixture(scope="module")
def tables(run):
    return {name: table.to_pandas() for name, table in trace_tables(run).items()}


def ours():
    """The servers that run now, by process id."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0].endswith(b"nats-server") and b"tidings-testbed-" in b" ".join(words):
            found.append(int(place.parent.name))
    return found


def test_events_go_where_they_are_wanted_and_nowhere_else(tables):
    published = tables["publications"].set_index("event")
    hops = tables["hops"].join(published["content"], on="event")
    topic = hops["content"].map(lambda text: json.loads(text)["topic"])
    assert set(hops["broker"][topic == "c"]) == {"left"}
    assert set(hops["broker"][topic == "b"]) == {"left", "hub", "right"}
    ways = set(zip(hops["came_from"], hops["broker"], strict=True))
    assert ways == {("p", "left"), ("left", "hub"), ("hub", "right")}
    sent = {(broker, *to) for broker, to in zip(hops["broker"], hops["sent_to"], strict=True)}
    assert sent == {("left",), ("left", "hub"), ("hub", "right"), ("right",)}
    at = hops.groupby("event")["broker"].agg(list)
    assert (at.map(len) == at.map(lambda brokers: len(set(brokers)))).all()
    got = tables["deliveries"].join(published["content"], on="event")
    near = got[got["subscriber"] == "near"]
    assert near["event"].is_unique
    wanted = published[published["content"] == '{"topic":"a"}']
    assert set(near["event"]) == set(wanted.index)


def test_losses_on_a_link_are_as_likely_as_it_says(run, tables):
    hops = tables["hops"]
    crossed = int((hops["broker"] == "hub").sum())
    arrived = int((hops["broker"] == "right").sum())
    error = math.sqrt(0.8 * 0.2 / crossed)
    assert abs(arrived / crossed - 0.8) < 4.0 * error
    assert run.layout.journal.lost.keys() == {"hub→right"}


def test_delays_and_services_are_never_shorter_than_the_system_says(tables):
    """Only never shorter: how much longer depends on how busy this machine is."""
    hops = tables["hops"]
    services_ns = {"left": 4_000_000, "hub": 3_000_000, "right": 5_000_000}
    worked = hops["left_ns"] - hops["started_ns"]
    # Moments of the server's clock against moments of ours, told apart to 50 µs.
    assert (worked >= hops["broker"].map(services_ns) - 50_000).all()
    assert (hops["started_ns"] >= hops["arrived_ns"]).all()
    for _, visits in hops.sort_values("started_ns").groupby("broker"):
        begins = visits["started_ns"].to_numpy()
        least = services_ns[visits["broker"].iloc[0]]
        assert (np.diff(begins) >= least - 1_000).all()  # one at a time, whatever the timers
    published = tables["publications"].set_index("event")["published_ns"]
    delay = tables["deliveries"]["received_ns"] - tables["deliveries"]["event"].map(published)
    who = tables["deliveries"]["subscriber"]
    assert (delay[who == "near"] >= 9_000_000 - 50_000).all()
    assert (delay[who == "far"] >= (5 + 4 + 20 + 3 + 30 + 5 + 7) * 1_000_000 - 50_000).all()
    assert delay[who == "far"].median() < 400_000_000


def test_the_window_and_the_lateness_are_told(run, tables):
    said = manifest(run)
    assert said["until_ns"] - said["from_ns"] == pytest.approx(4e9, abs=2)
    times = tables["publications"]["published_ns"]
    assert times.between(said["from_ns"], said["until_ns"]).all()
    assert abs(len(times) - 240) < 5 * math.sqrt(240)
    assert "incomplete" not in said
    late = lateness(run)
    assert set(late) == {f"{who}_{p}_s" for who in ("relay", "publisher") for p in ("p50", "p99")}
    assert 0.0 <= late["relay_p50_s"] <= late["relay_p99_s"]
    late_ns = max(late["relay_p99_s"], late["publisher_p99_s"])
    assert bool(doubts(run)) == (late_ns > 0.05 * 0.003)


def test_nothing_stays_behind(run):
    assert run.incomplete is None
    mine = {str(plan.client_port) for plan in run.layout.servers.values()}
    listening = Path("/proc/net/tcp").read_text(encoding="ascii")
    ports = {str(int(line.split()[1].split(":")[1], 16)) for line in listening.splitlines()[1:]}
    assert not mine & ports


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks into /proc")
def test_servers_are_gone_even_if_the_testbed_is_killed(tmp_path):
    before = set(ours())
    (tmp_path / "line.yaml").write_text(LINE, encoding="utf-8")
    code = "import sys; from tidings.cli.main import main; main()"
    words = ["testbed", "run", str(tmp_path / "line.yaml"), "--to", str(tmp_path / "traces")]
    with subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as testbed:
        wait_for(lambda: len(set(ours()) - before) >= 3)
        testbed.kill()
    wait_for(lambda: not set(ours()) - before)
    assert not (tmp_path / "traces").exists()


def test_a_server_that_dies_ends_the_run_and_what_there_was_is_kept(monkeypatch):
    mine: list[int] = []
    start = servers_module.Servers.start

    def remember(self, name):
        mine.append(start(self, name))
        return mine[-1]

    monkeypatch.setattr(servers_module.Servers, "start", remember)

    def strike(step):
        if step.startswith("running,"):
            os.kill(mine[-1], signal.SIGKILL)

    found = run_testbed(loads(LINE), TestbedOptions(duration_s=30.0), progress=strike)
    assert found.incomplete is not None
    assert "'right' ended by itself" in found.incomplete
    assert manifest(found)["incomplete"] == found.incomplete
    assert trace_tables(found)["publications"].num_rows > 0
    assert any("incomplete" in doubt for doubt in doubts(found))


def test_a_port_that_is_taken_is_told_with_the_servers_own_words(tmp_path):
    first, second, third = free_ports(3)
    plan = ServerPlan(
        name="a", client_port=first, leaf_port=second, monitor_port=third, dials=None, links=0
    )
    with servers({"a": plan}, tmp_path):
        (tmp_path / "again").mkdir()
        with (
            pytest.raises(EngineError, match=r"broker 'a' ended by itself.*in use"),
            servers({"a": plan}, tmp_path / "again"),
        ):
            pass


def test_what_cannot_be_run_is_refused(monkeypatch, tmp_path):
    with pytest.raises(UnsupportedError, match=r"lifetimes of subscribers: subscribers\.far"):
        run_testbed(loads(LINE.replace("topic: [a, b]}", "topic: [a, b]}, lifetime: 1s")))
    with pytest.raises(InvalidInputError, match="wants at most 100"):
        run_testbed(loads(LINE), TestbedOptions(most_events=100))
    with pytest.raises(InvalidInputError, match="duration_s is 0"):
        TestbedOptions(duration_s=0.0)
    monkeypatch.setattr(servers_module.sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match=r"no nats-server .*tidings\[testbed\]"):
        run_testbed(loads(LINE))


def wait_for(happened, seconds=20.0):
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.05)
