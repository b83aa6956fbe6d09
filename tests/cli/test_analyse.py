"""``tidings analyse`` and ``tidings petri`` as people and programs use them."""

from __future__ import annotations

import contextlib
import json
import math

import pytest

from tidings.cli.commands import run

SYSTEM = """
tidings: 1
size: 1kB
brokers: {hub: {service: {exponential: 3ms}}, east: {service: {exponential: 5ms}}}
links: [{between: [hub, east], bandwidth: 1MB/s}]
publishers: {p: {at: hub, every: {exponential: 10ms}, content: {event: {x: 1}}}}
subscribers: {near: {at: hub, wants: {}}, far: {at: east, wants: {x: 1}}}
"""
NET = """
tidings_net: 1
colours: [job]
places:
  cpu: {queue: {service: {exponential: 1s}}}
transitions:
  come: {modes: [{after: {exponential: 2s}, put: [{place: cpu, colour: job}]}]}
  go: {modes: [{take: [{place: cpu, colour: job}]}]}
"""


@pytest.fixture
def system(tmp_path):
    path = tmp_path / "system.yaml"
    path.write_text(SYSTEM)
    return str(path)


@pytest.fixture
def net(tmp_path):
    path = tmp_path / "net.yaml"
    path.write_text(NET)
    return path


def test_analyse_for_a_person_and_for_a_program(system, capsys):
    assert run(["analyse", system]) == 0
    text = capsys.readouterr().out
    assert "hub--east" in text
    assert "The bottleneck is 'east', busy 50.0 % of the time" in text
    assert "factor of 2 until" in text
    assert run(["analyse", system, "--json", "--rate", "p=0.5", "--speed", "east=2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bottleneck"] == "hub"
    assert found["headroom"] == pytest.approx(1 / 0.15, rel=1e-12)
    far = next(row for row in found["deliveries"] if row["broker"] == "east")
    wire_s = 0.001 + 50 * 0.001**2 / 2 / 0.95
    hub_s, east_s = 0.003 / 0.85, 0.0025 / (1 - 50 * 0.0025)
    assert far["latency_mean_s"] == pytest.approx(hub_s + wire_s + east_s, rel=1e-12)


def test_a_workload_comes_from_a_system_or_from_traces(system, tmp_path, capsys):
    for command in (["analyse"], ["petri", "generate"]):
        assert run(command) == 2
        assert "give a SYSTEM, or --traces" in capsys.readouterr().err
        assert run([*command, system, "--traces", str(tmp_path)]) == 2
        assert run([*command, system, "--event-type", "kind"]) == 2
        assert "goes with --traces" in capsys.readouterr().err
        assert run([*command, "--traces", str(tmp_path / "nowhere")]) == 2
        assert "nowhere" in capsys.readouterr().err
    assert run(["petri", "generate", "--traces", str(tmp_path), "--colours", "content"]) == 2


@pytest.mark.slow
def test_recorded_traces_are_analysed_like_their_system(
    spark, system, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("tidings.cli.spark.started", lambda _: contextlib.nullcontext(spark))
    folder = str(tmp_path / "traces")
    plain = tmp_path / "plain.yaml"
    plain.write_text(SYSTEM.replace("size: 1kB\n", "").replace(", bandwidth: 1MB/s", ""))
    recorded = ["simulate", str(plain), "--traces", folder, "--duration", "60s"]
    assert run(recorded) == 0
    found = []
    capsys.readouterr()
    for origin in (["--traces", folder], [str(plain)]):
        assert run(["analyse", *origin, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    busy = [{row["centre"]: row["utilisation"] for row in each["centres"]} for each in found]
    near = 5 * math.sqrt(2 / 6_000)  # standard errors: so many arrivals, so many services
    assert busy[0] == {name: pytest.approx(load, rel=near) for name, load in busy[1].items()}
    assert run(["petri", "generate", "--traces", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["colours"] == ["p"]


def test_analyse_says_what_is_wrong_with_its_options(system, capsys):
    assert run(["analyse", system, "--rate", "p"]) == 2
    assert "NAME=FACTOR" in capsys.readouterr().err
    assert run(["analyse", system, "--speed", "moon=2"]) == 2
    assert "'moon' is none of the nodes and queues" in capsys.readouterr().err
    assert run(["analyse", system, "--formula", "mine"]) == 2
    assert run(["analyse", system, "--rate", "all=3"]) == 0
    assert "'east' is overloaded: it is offered 150.0 %" in capsys.readouterr().out


def test_a_net_of_a_system_is_written_checked_and_read_again(system, tmp_path, capsys):
    target = tmp_path / "made.yaml"
    assert run(["petri", "generate", system, "--to", str(target)]) == 0
    assert run(["petri", "check", str(target), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["valid"]
    assert found["utilisation"] == {
        "hub": pytest.approx(0.3, rel=1e-12),
        "east": pytest.approx(0.5, rel=1e-12),
        "network hub--east": pytest.approx(0.1, rel=1e-12),
    }
    assert run(["petri", "generate", system, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["colours"] == ["p"]


def test_solve_for_a_person_and_for_a_program(net, capsys):
    short = ["--duration", "2000s", "--warmup", "100s", "--replications", "3"]
    assert run(["petri", "solve", str(net), *short]) == 0
    assert "Places with a queue" in capsys.readouterr().out
    texts = []
    for _ in range(2):
        assert run(["petri", "solve", str(net), *short, "--json"]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]
    (place,) = json.loads(texts[0])["places"]
    assert place["utilisation"] == pytest.approx(0.5, abs=0.1)


def test_malformed_and_overloaded_nets_are_refused(net, capsys):
    wrong = NET.replace("cpu, colour: job", "cpu, colour: task", 1)
    net.write_text(wrong.replace("go: {", "go: {weight: -1, "))
    assert run(["petri", "check", str(net), "--json"]) == 2
    told = json.loads(capsys.readouterr().out)["error"]
    assert told["kind"] == "invalid_net"
    assert len(told["problems"]) == 2
    net.write_text(NET.replace("exponential: 2s", "exponential: 1s"))
    for command in ("check", "solve"):
        assert run(["petri", command, str(net)]) == 4
        assert "place 'cpu' is offered 1 times" in capsys.readouterr().err
    assert run(["petri", "check"]) == 2
    assert run(["petri", "check", "--schema"]) == 0
