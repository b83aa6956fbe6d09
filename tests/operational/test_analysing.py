from __future__ import annotations

import math

import numpy as np
import pytest

from tidings.errors import InvalidInputError
from tidings.model.laws import Deterministic, Exponential
from tidings.model.reading import loads
from tidings.model.system_workload import workload_of
from tidings.model.workload import Centre, Connection, Flow, Node, Source, Workload
from tidings.operational.analysing import analyse
from tidings.operational.paths import delivery_paths
from tidings.operational.scaling import scaled


def exponential(mean_s):
    return Exponential(mean_s=mean_s)


def two_brokers(*, shared_link=True):
    """Two types from two ends; a CPU and a disk at a, a CPU at b, one wire or two between them."""
    wires = (Centre(name="wire"),) if shared_link else (Centre(name="there"), Centre(name="back"))
    cpu_a, disk_a, cpu_b, there = 0, 1, 2, 3
    back = 3 if shared_link else 4
    return Workload(
        nodes=(Node(name="a", centres=(cpu_a, disk_a)), Node(name="b", centres=(cpu_b,))),
        centres=(
            Centre(name="a cpu"),
            Centre(name="a disk", discipline="processor-sharing"),
            Centre(name="b"),
            *wires,
        ),
        connections=(
            Connection(source=0, target=1, centre=there, delay=Deterministic(value_s=0.005)),
            Connection(source=1, target=0, centre=back, reliability=0.9),
        ),
        sources=(
            Source(name="p", home=0, every=exponential(0.05)),
            Source(name="q", home=1, every=exponential(0.1), delay=exponential(0.001)),
        ),
        flows=(
            Flow(
                source=0,
                event_type="order",
                forwarding=((0, 0.5),),
                services=(
                    (cpu_a, exponential(0.01)),
                    (disk_a, exponential(0.02)),
                    (cpu_b, exponential(0.03)),
                ),
                transfers=((0, Deterministic(value_s=0.004)),),
            ),
            Flow(
                source=1,
                event_type="quote",
                forwarding=((1, 0.8),),
                services=(
                    (cpu_a, exponential(0.004)),
                    (disk_a, exponential(0.006)),
                    (cpu_b, exponential(0.01)),
                ),
                transfers=((1, Deterministic(value_s=0.008)),),
            ),
        ),
    )


def test_every_number_of_a_case_by_hand():
    found = analyse(two_brokers())
    # Rates: order 20/s at a, 10/s at b; quote 10/s at b, 8/s sent, 7.2/s at a.
    assert found.rates_per_s == pytest.approx(np.array([[20.0, 10.0], [7.2, 10.0]]), rel=1e-12)
    loads_found = dict(zip(found.centres["centre"], found.centres["utilisation"], strict=True))
    wire = 10 * 0.004 + 8 * 0.008
    expected = {
        "a cpu": 20 * 0.01 + 7.2 * 0.004,
        "a disk": 20 * 0.02 + 7.2 * 0.006,
        "b": 10 * 0.03 + 10 * 0.01,
        "wire": wire,
    }
    assert loads_found == {name: pytest.approx(load, rel=1e-12) for name, load in expected.items()}
    assert found.connections["utilisation"].tolist() == pytest.approx([0.04, 0.064], rel=1e-12)
    assert found.connections["sent_per_s"].tolist() == pytest.approx([10.0, 8.0], rel=1e-12)
    # Order: a cpu, a disk, wire, 5 ms, b.
    cpu_wait = (20 * 0.01**2 + 7.2 * 0.004**2) / (1 - expected["a cpu"])
    b_wait = (10 * 0.03**2 + 10 * 0.01**2) / (1 - expected["b"])
    wire_wait = 0.5 * (10 * 0.004**2 + 8 * 0.008**2) / (1 - wire)
    disk = 1 / (1 - expected["a disk"])
    at_a = 0.01 + cpu_wait + 0.02 * disk
    order = at_a + 0.004 + wire_wait + 0.005 + 0.03 + b_wait
    quote = 0.001 + 0.01 + b_wait + 0.008 + wire_wait + 0.004 + cpu_wait + 0.006 * disk
    latency = found.deliveries.set_index(["publisher", "broker"])["latency_mean_s"]
    assert latency["p", "a"] == pytest.approx(at_a, rel=1e-12)
    assert latency["p", "b"] == pytest.approx(order, rel=1e-12)
    assert latency["q", "a"] == pytest.approx(quote, rel=1e-12)
    assert found.bottleneck == "a disk"
    assert found.headroom == pytest.approx(1 / expected["a disk"], rel=1e-12)
    types = found.flows.set_index(["centre", "type"])["response_mean_s"]
    assert types["wire", "quote"] == pytest.approx(0.008 + wire_wait, rel=1e-12)


def test_a_wire_for_each_direction_has_two_utilisations():
    found = analyse(two_brokers(shared_link=False)).centres.set_index("centre")["utilisation"]
    assert found[["there", "back"]].tolist() == pytest.approx([0.04, 0.064], rel=1e-12)


def test_the_papers_formula_stretches_every_service_alike():
    found = analyse(two_brokers(), formula="paper")
    for row in found.flows.itertuples():
        load = found.centres.set_index("centre")["utilisation"][row.centre]
        assert row.response_mean_s == pytest.approx(row.service_mean_s / (1 - load), rel=1e-12)
    with pytest.raises(InvalidInputError, match="'guess'"):
        analyse(two_brokers(), formula="guess")


def test_several_paths_have_a_plain_and_a_weighted_mean():
    # From s by x (0.9) or by y (0.1), and back from x to s: a path has no repetitions.
    service_s = {0: 0.0, 1: 0.1, 2: 0.3, 3: 0.0}
    edges = [(0, 1, 0.9), (0, 2, 0.1), (1, 3, 1.0), (2, 3, 1.0), (1, 0, 0.05)]
    load = Workload(
        nodes=tuple(Node(name=name, centres=(at,)) for at, name in enumerate("sxyt")),
        centres=tuple(Centre(name=name, discipline="infinite-server") for name in "sxyt"),
        connections=tuple(Connection(source=a, target=b) for a, b, _ in edges),
        sources=(Source(name="p", home=0, every=exponential(1.0)),),
        flows=(
            Flow(
                source=0,
                event_type="",
                forwarding=tuple((at, p) for at, (_, _, p) in enumerate(edges)),
                services=tuple(
                    (at, Deterministic(value_s=mean_s)) for at, mean_s in service_s.items()
                ),
            ),
        ),
    )
    found = analyse(load)
    paths = [path for path in delivery_paths(load, 0) if path.node == 3]
    ways = {"".join(load.nodes[n].name for n in path.nodes(load)) for path in paths}
    assert ways == {"sxt", "syt"}
    assert found.mean_latency_s(paths) == pytest.approx(0.2, rel=1e-12)
    assert found.mean_latency_s(paths, weighted=True) == pytest.approx(0.12, rel=1e-12)
    assert found.rates_per_s[0, 3] == pytest.approx(1 / (1 - 0.045), rel=1e-12)


def test_scaling_is_as_if_measured_anew():
    load = two_brokers()
    what_if = scaled(load, rates={"p": 2.0, "all": 1.1}, speeds={"a": 2.0, "wire": 0.5})
    found = analyse(what_if)
    assert found.rates_per_s == pytest.approx(np.array([[44.0, 22.0], [7.92, 11.0]]), rel=1e-12)
    busy = found.centres.set_index("centre")["utilisation"]
    assert busy["a disk"] == pytest.approx((44 * 0.02 + 7.92 * 0.006) / 2, rel=1e-12)
    assert busy["a cpu"] == pytest.approx((44 * 0.01 + 7.92 * 0.004) / 2, rel=1e-12)
    assert busy["wire"] == pytest.approx(2 * (22 * 0.004 + 8.8 * 0.008), rel=1e-12)
    assert busy["b"] == pytest.approx(22 * 0.03 + 11 * 0.01, rel=1e-12)
    # The headroom is the factor itself.
    edge = scaled(load, rates={"all": analyse(load).headroom})
    assert analyse(edge).centres["utilisation"].max() == pytest.approx(1.0, rel=1e-12)
    for wrong in ({"rates": {"nobody": 2.0}}, {"speeds": {"disk": 1.0}}, {"rates": {"p": 0.0}}):
        with pytest.raises(InvalidInputError):
            scaled(load, **wrong)


def test_an_overloaded_queue_is_infinitely_slow_and_says_by_how_much():
    found = analyse(scaled(two_brokers(), rates={"all": 3.0}))
    assert found.headroom == pytest.approx(1 / (3 * 0.4432), rel=1e-12)
    latency = found.deliveries.set_index(["publisher", "broker"])["latency_mean_s"]
    assert latency["q", "b"] == math.inf
    assert latency["p", "a"] == math.inf


def test_a_system_is_analysed_by_its_routes():
    system = loads(
        """
        tidings: 1
        brokers: {hub: {service: {exponential: 3ms}}, east: {service: {exponential: 5ms}}}
        links: [{between: [hub, east], delay: 20ms, reliability: 0.9}]
        publishers:
          p:
            at: hub
            every: {exponential: 10ms}
            content: [{p: 0.4, event: {x: 1}}, {p: 0.6, event: {x: 2}}]
        subscribers: {near: {at: hub, wants: {}}, far: {at: east, wants: {x: 1}}}
        """
    )
    found = analyse(workload_of(system))
    latency = found.deliveries.set_index("broker")
    hub_s, east_s = 0.003 / (1 - 0.3), 0.005 / (1 - 100 * 0.4 * 0.9 * 0.005)
    assert latency["latency_mean_s"]["hub"] == pytest.approx(hub_s, rel=1e-12)
    assert latency["latency_mean_s"]["east"] == pytest.approx(hub_s + 0.02 + east_s, rel=1e-12)
    assert latency["arrivals_per_s"]["east"] == pytest.approx(36.0, rel=1e-12)
