"""``tidings analyse`` and ``tidings petri`` as people and programs use them."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path

import pytest

from tidings.characterisation.job import measure_workload
from tidings.cli.commands import run

ROOT = Path(__file__).parents[2]

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


def test_latencies_end_behind_the_subscribers_own_links(tmp_path, capsys):
    path = tmp_path / "links.yaml"
    others = "far: {at: east, wants: {x: 1}, link: {delay: {exponential: 40ms}}}, "
    others += "other: {at: east, wants: {x: 1}, link: {delay: 40ms}, count: 3}, close: {at: east,"
    path.write_text(SYSTEM.replace("far: {at: east,", others))
    assert run(["analyse", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["deliveries"]
    east = {row["link_mean_s"]: row for row in found if row["broker"] == "east"}
    assert {link: row["subscribers"] for link, row in east.items()} == {0.0: 1, 0.04: 4}
    longer = east[0.04]["latency_mean_s"] - east[0.0]["latency_mean_s"]
    assert longer == pytest.approx(0.04, rel=1e-12)
    assert run(["analyse", str(path)]) == 0
    assert "last link" in capsys.readouterr().out


def test_only_deliveries_that_somebody_wants_are_told(tmp_path, capsys):
    path = tmp_path / "kinds.yaml"
    path.write_text("""
tidings: 1
event_type: kind
brokers: {hub: {service: 1ms}, east: {service: 1ms}}
links: [{between: [hub, east], delay: 5ms}]
publishers:
  p: {at: hub, every: {exponential: 10ms}, content: [
    {p: 0.5, event: {kind: order}}, {p: 0.5, event: {kind: quote}}]}
subscribers:
  a: {at: east, wants: {kind: quote}, count: 2}
  b: {at: east, wants: {kind: order}, link: {delay: 7ms}}
  c: {at: east, wants: {}}
  d: {at: hub, wants: {kind: news}}
""")
    assert run(["analyse", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["deliveries"]
    rows = {(row["type"], row["broker"], row["link_mean_s"]): row["subscribers"] for row in found}
    assert rows == {
        ("quote", "east", 0.0): 3,
        ("order", "east", 0.0): 1,
        ("order", "east", 0.007): 1,
    }


def test_publishers_that_are_not_poisson_are_named(tmp_path, capsys):
    path = tmp_path / "regular.yaml"
    path.write_text(SYSTEM.replace("every: {exponential: 10ms}", "every: 10ms"))
    assert run(["analyse", str(path), "--json"]) == 0
    told = capsys.readouterr()
    (note,) = json.loads(told.out)["notes"]
    assert "p (c² = 0) publish otherwise" in note
    assert "warning" in told.err


def test_a_workload_comes_from_a_system_or_from_traces(system, tmp_path, capsys):
    for command in (["analyse"], ["petri", "generate"]):
        assert run(command) == 2
        assert "give either a SYSTEM or --traces" in capsys.readouterr().err
        assert run([*command, system, "--traces", str(tmp_path)]) == 2
        assert run([*command, system, "--event-type", "kind"]) == 2
        assert "works with --traces" in capsys.readouterr().err
        for option, value in (("--bandwidth", "all=1MB/s"), ("--services", "spans")):
            assert run([*command, system, option, value]) == 2
            assert f"{option} works with --traces" in capsys.readouterr().err
        for wrong in (
            ["--bandwidth", "1MB/s"],
            ["--bandwidth", "all=fast"],
            ["--shared-network", "-1"],
            ["--services", "guesses"],
            ["--bandwidth", "all=1MB/s", "--shared-network", "1MB/s"],
        ):
            assert run([*command, "--traces", str(tmp_path), *wrong]) == 2
        assert run([*command, "--traces", str(tmp_path / "nowhere")]) == 2
        assert "nowhere" in capsys.readouterr().err.splitlines()[-1]
    assert run(["petri", "generate", "--traces", str(tmp_path), "--colours", "content"]) == 2


@pytest.mark.slow
def test_recorded_traces_are_analysed_like_their_system(
    spark, few_rows, system, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("tidings.cli.spark.started", lambda _: contextlib.nullcontext(spark))
    measured = []  # by the first command that asks, for both

    def measure_once(traces, how):
        if not measured:
            measured.append((measure_workload(traces, how), how))
        assert how == measured[0][1]
        return measured[0][0]

    monkeypatch.setattr("tidings.characterisation.job.measure_workload", measure_once)
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
    assert found[0]["measured"]["services"][0]["service_mean_se_s"] > 0.0
    assert len(found[0]["measured"]["routing"]) == 1
    for row, exact in zip(*(each["deliveries"] for each in found), strict=True):
        assert row["broker"] == exact["broker"]
        assert row["latency_mean_s"] == pytest.approx(exact["latency_mean_s"], rel=0.2)
    busy = [{row["centre"]: row["utilisation"] for row in each["centres"]} for each in found]
    near = 5 * math.sqrt(2 / 6_000)  # standard errors: so many arrivals, so many services
    assert busy[0] == {name: pytest.approx(load, rel=near) for name, load in busy[1].items()}
    assert run(["petri", "generate", "--traces", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["colours"] == ["p"]


@pytest.mark.slow
def test_the_sample_of_two_brokers_tells_what_was_planted(
    spark, few_rows, tmp_path, monkeypatch, capsys
):
    """docs/samples/brokers.csv: hops without starts, samples of CPUs and a disk."""
    monkeypatch.setattr("tidings.cli.spark.started", lambda *_, **__: contextlib.nullcontext(spark))
    folder, samples = str(tmp_path / "traces"), ROOT / "docs" / "samples"
    mapping = ["--mapping", str(samples / "brokers.yaml")]
    assert run(["import", "table", str(samples / "brokers.csv"), *mapping, "--to", folder]) == 0
    assert run(["analyse", "--traces", folder]) == 2
    assert "--services utilisation" in capsys.readouterr().err
    chosen = ["--traces", folder, "--event-type", "kind", "--services", "utilisation"]
    assert run(["analyse", *chosen, "--shared-network", "1Mbit/s", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    planted = {
        ("hub", "cpu"): {"order": 0.1, "quote": 0.04},
        ("hub", "disk"): {"order": 0.15, "quote": 0.0},
        ("edge", "cpu"): {"order": 0.08, "quote": 0.06},
    }
    services = found["measured"]["services"]
    assert len(services) == 6
    for row in services:
        truth = planted[row["broker"], row["resource"]][row["type"]]
        assert abs(row["service_mean_s"] - truth) < 4 * row["service_mean_se_s"]
        assert row["service_mean_se_s"] < 0.1 * planted[row["broker"], row["resource"]]["order"]
        if (row["broker"], row["resource"]) == ("hub", "cpu"):
            assert row["background"] == pytest.approx(0.06, abs=0.03)
    assert {row["centre"] for row in found["centres"]} == {
        "hub cpu", "hub disk", "edge cpu", "shared network"
    }  # fmt: skip
    network = next(row for row in found["connections"])
    sizes = {"order": 2000, "quote": 500}
    sent = {
        row["type"]: row["forwarded"] * sizes[row["type"]] for row in found["measured"]["routing"]
    }
    assert network["utilisation"] == pytest.approx(sum(sent.values()) / 125e3 / 400, rel=0.01)


def test_analyse_says_what_is_wrong_with_its_options(system, capsys):
    assert run(["analyse", system, "--rate", "p"]) == 2
    assert "NAME=FACTOR" in capsys.readouterr().err
    assert run(["analyse", system, "--speed", "moon=2"]) == 2
    assert "there is no 'moon' among the nodes and queues" in capsys.readouterr().err
    assert run(["analyse", system, "--formula", "mine"]) == 2
    assert run(["analyse", system, "--rate", "all=3"]) == 0
    assert "'east' is overloaded: the load offered to it is 150.0 %" in capsys.readouterr().out


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


def test_an_exact_solution_has_no_errors_to_show(net, capsys):
    assert run(["petri", "solve", str(net), "--exact"]) == 0
    text = capsys.readouterr().out
    assert "50.0 %" in text
    assert "±" not in text
    assert run(["petri", "solve", str(net), "--exact", "--json"]) == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert (cell["residence_mean_s"], cell["residence_mean_se_s"]) == (2.0, 0.0)
    assert run(["petri", "solve", str(net), "--exact", "--precision", "0.1"]) == 2


def test_loads_that_the_equations_do_not_tell_are_not_told(net, capsys):
    joined = NET.replace(
        "go: {modes: [{take: [{place: cpu, colour: job}]}]}",
        "go: {modes: [{take: [{place: cpu, colour: job, count: 2}], "
        "put: [{place: out, colour: job}]}]}\n"
        "  end: {modes: [{take: [{place: out, colour: job}]}]}",
    ).replace("transitions:", "  out: {queue: {service: {exponential: 1s}}}\ntransitions:")
    net.write_text(joined)
    assert run(["petri", "check", str(net)]) == 0
    text = capsys.readouterr().out
    assert "The busiest place is 'cpu', at ρ = 0.5." in text
    assert "The load of out does not follow" in text
    assert run(["petri", "check", str(net), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["utilisation"] == {"cpu": 0.5, "out": None}


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
        assert "place 'cpu' is overloaded, at 1 times" in capsys.readouterr().err
    assert run(["petri", "check"]) == 2
    assert run(["petri", "check", "--schema"]) == 0
