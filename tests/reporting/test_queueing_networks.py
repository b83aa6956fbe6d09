"""Systems as queueing networks: what another solver makes of the file, and what is refused."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from xml.etree import ElementTree

import pytest

import tidings as td
from tidings.cli.commands import run
from tidings.errors import UnsupportedError
from tidings.model.reading import loads
from tidings.reporting.queueing_networks import jsimg

ONE = """
tidings: 1
lifetime: 1s
brokers: {hub: {service: {exponential: 4ms}}}
publishers: {shop: {at: hub, every: {exponential: 5ms}, content: [{p: 1, event: {kind: order}}]}}
subscribers: {billing: {at: hub, wants: {kind: order}}}
"""
TREE = """
tidings: 1
lifetime: 1s
brokers:
  hub: {service: {exponential: 4ms}}
  east: {service: {exponential: 5ms}}
  west: {service: {exponential: 8ms}}
links:
  - {between: [hub, east], delay: {exponential: 10ms}, reliability: 0.9}
  - {between: [hub, west], delay: {exponential: 20ms}}
publishers:
  shop:
    at: hub
    every: {exponential: 9ms}
    content: [{p: 0.7, event: {region: eu}}, {p: 0.3, event: {region: us}}]
  till:
    at: east
    link: {delay: 3ms}
    every: {exponential: 20ms}
    content: [{p: 1, event: {region: us}}]
subscribers:
  billing: {at: west, wants: {region: us}}
  stock: {at: east, wants: {region: eu}}
"""
LINE = """
import json, sys
from line_solver import MVA
from line_solver.api.io.jmt_io import jsim2line
rows = MVA(jsim2line(sys.argv[1])).avg_table()
columns = {name: list(rows[name]) for name in ("Station", "JobClass", "RespT", "Tput")}
print(json.dumps([dict(zip(columns, row)) for row in zip(*columns.values())]))
"""


@pytest.fixture
def solved(tmp_path):
    """What LINE makes of a system's file: response time and rate by station and class."""
    if importlib.util.find_spec("line_solver") is None:
        pytest.skip("NOT CROSS-CHECKED: LINE is missing; pip install 'tidings[crosscheck]'")

    def solve(system):
        file = tmp_path / "system.jsimg"
        file.write_text(jsimg(system))
        done = subprocess.run(
            [sys.executable, "-c", LINE, str(file)], capture_output=True, text=True, check=True
        )
        rows = json.loads(done.stdout.splitlines()[-1])
        return {(row["Station"], row["JobClass"]): (row["RespT"], row["Tput"]) for row in rows}

    return solve


@pytest.mark.slow
@pytest.mark.parametrize("text", [ONE, TREE], ids=["one queue", "tree with two classes"])
def test_line_finds_the_waits_that_theory_does(text, solved):
    system = loads(text)
    brokers = td.predict(system, by="theory").brokers.set_index("broker")
    by_line = {key: value for key, value in solved(system).items() if key[0] in brokers.index}
    for (broker, _), (response_s, _) in by_line.items():
        row = brokers.loc[broker]
        # Theory is exact here; LINE prints, and reads back, five digits.
        assert row["wait_mean_s"] + row["service_mean_s"] == pytest.approx(response_s, rel=1e-4)
    for broker, row in brokers.iterrows():
        rate = sum(rate for (at, _), (_, rate) in by_line.items() if at == broker)
        assert row["arrivals_per_s"] == pytest.approx(rate, rel=1e-4)


@pytest.mark.slow
@pytest.mark.statistical
def test_line_finds_the_waits_that_simulation_does_of_several_servers(solved):
    system = loads(TREE.replace("{exponential: 8ms}", "{exponential: 16ms}, servers: 2"))
    west = td.simulate(system, seed=5, replications=8).brokers.set_index("broker").loc["west"]
    response_s, _ = solved(system)["west", "till"]
    wait_s = response_s - 0.016
    assert abs(west["wait_mean_s"] - wait_s) < 4.0 * west["wait_mean_se_s"]
    assert west["wait_mean_se_s"] < 0.05 * wait_s


def turns(root):
    """Where each class goes from each node, with which probability."""
    found = {}
    for node in root.iter("node"):
        for routing in node.iterfind("section[@className='Router']/parameter"):
            for name, strategy in zip(
                routing.iterfind("refClass"), routing.iterfind("subParameter"), strict=True
            ):
                texts = [each.text for each in strategy.iter("value")]
                found[node.get("name"), name.text] = dict(
                    zip(texts[::2], map(float, texts[1::2]), strict=True)
                )
    return found


def test_jobs_go_the_way_of_their_events():
    root = ElementTree.fromstring(jsimg(loads(TREE)).encode())
    assert [each.get("name") for each in root.iter("userClass")] == ["shop 1", "shop 2", "till"]
    way = turns(root)
    assert way["source", "till"] == {"till's link": 1.0}
    assert way["east", "till"] == {"east to hub": 0.9, "sink": pytest.approx(0.1)}
    assert way["hub", "till"] == way["hub", "shop 2"] == {"hub to west": 1.0}
    assert way["hub", "shop 1"] == {"hub to east": 0.9, "sink": pytest.approx(0.1)}
    assert way["east", "shop 1"] == way["west", "till"] == {"sink": 1.0}
    assert way["west", "shop 1"] == {}
    joined = {(each.get("source"), each.get("target")) for each in root.iter("connection")}
    assert joined == {(at, to) for (at, _), targets in way.items() for to in targets}


def test_parts_stand_in_the_order_of_the_schema_and_measures_name_what_is_there():
    root = ElementTree.fromstring(jsimg(loads(TREE)).encode())
    order = ["userClass", "node", "measure", "connection"]
    assert [each.tag for each in root] == sorted((e.tag for e in root), key=order.index)
    nodes = {each.get("name") for each in root.iter("node")}
    classes = {each.get("name") for each in root.iter("userClass")}
    for each in root.iter("measure"):
        assert each.get("referenceNode") in nodes
        assert each.get("referenceUserClass") in classes


def test_no_broker_is_taken_for_the_source_or_the_sink():
    root = ElementTree.fromstring(jsimg(loads(ONE.replace("hub", "source"))).encode())
    assert [each.get("name") for each in root.iter("node")] == ["source_", "source", "sink"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("wants: {region: eu}", "wants: {}"), "events that go on to several brokers"),
        (("{exponential: 9ms}", "{gamma: {mean: 9ms, shape: 2}}"), "is not Poisson"),
        (("{exponential: 8ms}", "{weibull: {scale: 8ms, shape: 2}}"), "distribution Weibull"),
        (("{exponential: 8ms}", "{exponential: 8ms}, buffer: 3"), "bounded buffers"),
        (("wants: {region: us}}", "wants: {region: us}, link: {delay: 1ms}}"), "links of subscr"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_what_the_format_cannot_say_is_refused_by_name(change, said):
    with pytest.raises(UnsupportedError, match=said):
        jsimg(loads(TREE.replace(*change)))


def test_the_command_writes_the_file_or_says_what_it_wants(tmp_path, capsys):
    system = tmp_path / "one.yaml"
    system.write_text(ONE)
    assert run(["export", str(system), "--to", str(tmp_path / "one.jsimg")]) == 0
    assert ElementTree.parse(tmp_path / "one.jsimg").getroot().get("name") == "one"
    assert run(["export", str(system), "--to", str(tmp_path / "one.xml")]) == 2
    assert "no .jsimg file" in capsys.readouterr().err
