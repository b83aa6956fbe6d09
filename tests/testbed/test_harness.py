"""What can go wrong around a run: a clear message, a clean stop, and what there is of it kept."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from real_servers import LINE, servers_under, wait_for
from tidings.cli.commands import run as command
from tidings.errors import EngineError, InvalidInputError, UnsupportedError
from tidings.model.reading import loads
from tidings.testbed import running
from tidings.testbed import servers as servers_module
from tidings.testbed.carrying import Works
from tidings.testbed.journal import Journal
from tidings.testbed.relays import Lane, Relay
from tidings.testbed.running import run_testbed
from tidings.testbed.runs import HOST, TestbedOptions
from tidings.testbed.servers import ServerPlan, free_ports, servers
from tidings.testbed.stations import BrokerStation
from tidings.testbed.tables import doubts, manifest, trace_tables


def plan(name="a", label="b0"):
    first, second, third = free_ports(3)
    return ServerPlan(
        name=name, label=label, client_port=first, broker_port=second, monitor_port=third,
        dials={}, links=0,
    )  # fmt: skip


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks into /proc")
@pytest.mark.slow
def test_whatever_ends_a_testbed_nothing_runs_on_and_what_there_is_of_it_is_kept(tmp_path):
    signals = (signal.SIGKILL, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    begun = {how: start_testbed(tmp_path / how.name) for how in signals}  # side by side
    for how, testbed in begun.items():
        assert_runs(testbed)
        assert len(servers_under(tmp_path / how.name)) == 3
        testbed.send_signal(how)
    for how, testbed in begun.items():
        place = tmp_path / how.name
        _, said = testbed.communicate(timeout=90.0)
        wait_for(lambda place=place: not servers_under(place))
        wait_for(lambda place=place: not list(place.glob("tidings-testbed-*")))
        if how is signal.SIGKILL:
            assert not (place / "traces").exists()
            continue
        assert testbed.returncode == 130
        assert f"interrupted, its traces are kept in {place / 'traces'}" in said
        told = json.loads((place / "traces" / "traces.json").read_text(encoding="utf-8"))
        assert told["incomplete"] == "interrupted"
        assert pq.read_table(place / "traces" / "hops").num_rows > 0


def assert_runs(testbed):
    """Read what a testbed says until it says that it runs; show all of it if it ends before."""
    said = []
    for line in testbed.stderr:
        said.append(line)
        if "running," in line:
            return
    pytest.fail("".join(said))


def start_testbed(place):
    """A run that would last a minute, in a process of its own with its files in a folder."""
    place.mkdir()
    (place / "line.yaml").write_text(LINE, encoding="utf-8")
    code = "import sys; from tidings.cli.main import main; main()"
    words = ["testbed", "run", str(place / "line.yaml"), "--to", str(place / "traces")]
    return subprocess.Popen(
        [sys.executable, "-c", code, *words, "--warmup", "0s", "--duration", "60s"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(place)},
        preexec_fn=_heed_hangups,
    )


def _heed_hangups():
    """Undo what ``nohup`` does, under which the tests may run."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks into /proc")
def test_servers_are_gone_even_if_their_supervisor_is_killed(tmp_path):
    with servers({"a": plan()}, tmp_path) as running:
        (mine,) = servers_under(tmp_path)
        words = Path(f"/proc/{mine}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        os.kill(int(words[1]), signal.SIGKILL)  # its parent
        wait_for(lambda: not servers_under(tmp_path))
        with pytest.raises(
            EngineError, match="the process that supervises the servers ended unexpectedly"
        ):
            running.require_alive()
    wait_for(lambda: not list(tmp_path.iterdir()))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks into /proc")
def test_nothing_is_left_even_if_their_watchdog_is_killed(tmp_path, capfd):
    with servers({"a": plan()}, tmp_path) as running:
        (dog,) = watchdogs_under(tmp_path)
        os.kill(dog, signal.SIGKILL)
        running.require_alive()
    assert servers_under(tmp_path) == []
    assert list(tmp_path.iterdir()) == []
    assert "Traceback" not in capfd.readouterr().err


def watchdogs_under(folder):
    """The processes that tidy up below a folder, by id."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = place.read_bytes()
            if words.endswith(b"watch\0") and str(folder).encode() in words:
                found.append(int(place.parent.name))
    return found


def test_a_broker_may_be_called_anything(tmp_path):
    (tmp_path / "inside").mkdir()
    name = '../x"; port: 1 # \n{'
    with servers({name: plan(name=name)}, tmp_path / "inside") as running:
        running.require_alive()
        assert running.links_up(name) == 0
        assert [each.name for each in tmp_path.iterdir()] == ["inside"]
    assert list((tmp_path / "inside").iterdir()) == []


@pytest.mark.slow
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
    told = trace_tables(found)["publications"].num_rows
    assert 0 < told <= len(found.published) < len(found.publications) / 2
    said = manifest(found)
    assert said["until_ns"] - said["from_ns"] < 15e9  # when it ended, not when it should have
    assert any("incomplete" in doubt for doubt in doubts(found))


def test_a_port_that_is_taken_is_told_with_the_servers_own_words(tmp_path):
    one = plan()
    with (
        servers({"a": one}, tmp_path),
        pytest.raises(EngineError, match=r"broker 'a' ended by itself.*in use"),
        servers({"a": one}, tmp_path),
    ):
        pass


def test_what_cannot_be_run_is_refused(monkeypatch, tmp_path):
    with pytest.raises(UnsupportedError, match=r"lifetimes of subscribers: subscribers\.far"):
        run_testbed(loads(LINE.replace("topic: [a, b]}", "topic: [a, b]}, lifetime: 1s")))
    with pytest.raises(InvalidInputError, match="wants at most 100"):
        run_testbed(loads(LINE), TestbedOptions(most_events=100))
    for_ever = TestbedOptions(duration_s=1e12)  # drawn, that would be more than fits
    with pytest.raises(InvalidInputError, match=r"about 60,000,.* events would be published"):
        run_testbed(loads(LINE), for_ever)
    falling = LINE.replace("rate: 60/s", "rate: 0.00000001/s").replace(
        "left: {service: 4ms}", "left: {service: 4ms, failure: {mtbf: 9s, mttr: 1s}}"
    )
    with pytest.raises(InvalidInputError, match=r"about 100,000,.* outages would be"):
        run_testbed(loads(falling + "recovery: {scheme: periodic, refresh: 0s}\n"), for_ever)
    with pytest.raises(InvalidInputError, match=r"publishers: the name 'p\\r\\n' cannot be sent"):
        run_testbed(loads(LINE.replace("  p:", '  "p\\r\\n":')))
    with pytest.raises(InvalidInputError, match="duration_s is 0"):
        TestbedOptions(duration_s=0.0)
    monkeypatch.setattr(servers_module.sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EngineError, match=r"no nats-server .*tidings\[testbed\]"):
        run_testbed(loads(LINE))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("#!/bin/sh\necho 'no licence' >&2; exit 3\n", r"exit code 3\): no licence"),
        ("#!/bin/sh\nexit 0\n", r"exit code 0\): it wrote no output"),
        ("not a program at all", "a server could not be started or ended: OSError"),
        ("#!/bin/sh\nexec sleep 60\n", r"after 0\.5 s the server of broker 'left' is not ready"),
    ],
)
def test_a_server_that_will_not_start_is_told_with_its_own_words(
    script, said, tmp_path, monkeypatch
):
    binary = tmp_path / "nats-server"
    binary.write_text(script, encoding="utf-8")
    binary.chmod(0o755)
    monkeypatch.setattr(servers_module, "server_binary", lambda: str(binary))
    monkeypatch.setattr(servers_module, "_READY_S", 0.5)
    with pytest.raises(EngineError, match=said):
        run_testbed(loads(LINE))


def test_a_port_that_a_relay_finds_taken_is_told():
    lane = Lane(name="a→b", source="a", delay=lambda: 0.0, is_lost=lambda: False)
    with socket.socket() as other:
        other.bind((HOST, free_ports(1)[0]))
        other.listen()
        relay = Relay(other.getsockname()[1], 1, (lane, lane), Journal())
        with pytest.raises(EngineError, match=r"relay a→b cannot listen at port .*run the command"):
            asyncio.run(relay.open())


@pytest.mark.slow
def test_a_relay_that_dies_ends_the_run_and_the_traces_are_kept(tmp_path, monkeypatch, capsys):
    serve, served = BrokerStation.serve, []

    def until_it_breaks(self, arrival_s):
        served.append(arrival_s)
        if len(served) > 60:
            raise RuntimeError("a bug of ours")
        return serve(self, arrival_s)

    monkeypatch.setattr(BrokerStation, "serve", until_it_breaks)
    (tmp_path / "line.yaml").write_text(LINE, encoding="utf-8")
    words = ["testbed", "run", str(tmp_path / "line.yaml"), "--to", str(tmp_path / "traces")]
    assert command([*words, "--warmup", "0s", "--duration", "20s"]) not in (0, None)
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(r"ended early, its traces are kept in .* marked incomplete: a relay", said)
    said = json.loads((tmp_path / "traces" / "traces.json").read_text(encoding="utf-8"))
    assert "a bug of ours" in said["incomplete"]
    assert (tmp_path / "traces" / "hops").is_dir()


def test_a_task_that_swallows_its_cancellation_does_not_keep_a_run():
    """As waits of the standard library do that end at that very moment; a loop asks only once."""
    ended = []

    async def stubborn():
        try:
            await asyncio.sleep(5.0)
        except asyncio.CancelledError:
            ended.append("swallowed")
        try:
            await asyncio.sleep(5.0)
            ended.append("went on")
        except asyncio.CancelledError:
            ended.append("ended")

    async def begin():
        loop = asyncio.get_running_loop()
        ended.append(loop.create_task(stubborn()))  # held, as a client holds its own
        await asyncio.sleep(0.0)

    nothing = SimpleNamespace(layout=SimpleNamespace(relays=(), servers=()))
    with running._loop(nothing) as runner:
        runner.run(begin())
    assert ended[1:] == ["swallowed", "ended"]


def test_work_that_swallows_its_end_is_ended_all_the_same():
    """As a wait does that has what it waited for at the moment at which its task is cancelled."""
    swallowed = []

    async def work():
        while True:
            try:
                await asyncio.sleep(60.0)
            except asyncio.CancelledError:
                if swallowed:
                    raise
                swallowed.append("once")

    async def whole():
        works = Works(SimpleNamespace())
        works.beside(work())
        await asyncio.sleep(0.0)
        await asyncio.wait_for(works.end(), 20.0)

    asyncio.run(whole())
    assert swallowed == ["once"]
