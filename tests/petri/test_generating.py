from __future__ import annotations

import numpy as np
import pytest

from tidings.errors import InvalidInputError
from tidings.model.laws import Deterministic, Exponential
from tidings.model.reading import loads
from tidings.model.system_workload import workload_of
from tidings.model.workload import Centre, Connection, Flow, Node, Source, Workload
from tidings.operational.analysing import analyse
from tidings.petri.cells import NetCells, flatten
from tidings.petri.generating import colour_of, exit_place, generate_net
from tidings.petri.reading import checked
from tidings.petri.simulating import simulate_net
from tidings.petri.traffic import solve_traffic

SYSTEM = """
tidings: 1
event_type: kind
size: 500B
brokers:
  hub: {service: {exponential: 2ms}, cpu: {demands: {a: 1ms, b: {exponential: 3ms}}}}
  east: {service: {exponential: 4ms}}
  west: {service: {exponential: 4ms}, servers: 2}
  none: {}
links:
  - {between: [hub, east], reliability: 0.8, bandwidth: 1MB/s, delay: 5ms}
  - {between: [west, hub], network: lan}
  - {between: [hub, none], network: lan}
networks: {lan: {bandwidth: 2MB/s, duplex: half}}
publishers:
  p:
    at: hub
    every: {erlang: {mean: 10ms, shape: 2}}
    link: {reliability: 0.9, delay: 1ms}
    content:
      - {p: 0.2, event: {kind: a, x: 1}}
      - {p: 0.3, event: {kind: a, x: 2}}
      - {p: 0.1, event: {kind: a, x: 3}}
      - {p: 0.4, event: {kind: b, x: 1}, size: 1kB}
  q: {at: west, every: {exponential: 20ms}, content: {event: {kind: a, x: 1}}}
subscribers:
  s: {at: east, wants: {x: {at_most: 2}}}
  t: {at: west, wants: {x: {at_least: 2}}}
  u: {at: none, wants: {x: 1}}
"""


@pytest.mark.parametrize("forwarding", ["joint", "independent"])
@pytest.mark.parametrize("by", ["type", "content"])
def test_the_traffic_of_the_net_is_that_of_the_workload(forwarding, by):
    load = workload_of(loads(SYSTEM), by=by)
    net = checked(generate_net(load, forwarding=forwarding))
    cells = NetCells(net=flatten(net))
    rates = solve_traffic(cells).rates_per_s
    found = analyse(load)
    for flow in range(len(load.flows)):
        for node in range(len(load.nodes)):
            cell = (exit_place(load, node), colour_of(load, flow))
            rate = found.rates_per_s[flow, node]
            assert (cell in cells.index) == (rate > 0.0)
            if rate > 0.0:
                assert rates[cells.index[cell]] == pytest.approx(rate, rel=1e-12)
    busy = found.centres.set_index("centre")["utilisation"]
    loads_found = solve_traffic(cells).loads
    assert loads_found["hub/cpu"] == pytest.approx(busy["hub cpu"], rel=1e-12)
    assert loads_found["network lan"] == pytest.approx(busy["lan"], rel=1e-12)
    assert loads_found["west"] == pytest.approx(busy["west"], rel=1e-12)


def test_independent_forwarding_has_one_mode_and_joint_one_for_each_set():
    load = workload_of(loads(SYSTEM))

    def modes(forwarding):
        net = generate_net(load, forwarding=forwarding)
        (leave,) = (each for each in net.transitions if each.name == "leave hub")
        return [mode for mode in leave.modes if mode.take[0].colour == "a of p"]

    assert len(modes("independent")) == 1
    # {east, none}, {east, west}, {west}: what the three contents do.
    assert sorted(mode.weight for mode in modes("joint")) == pytest.approx([1 / 6, 2 / 6, 3 / 6])


@pytest.mark.statistical
def test_priorities_of_event_types_are_those_of_their_colours():
    text = """
        tidings: 1
        event_type: kind
        brokers:
          hub:
            service: {exponential: 6ms}
            discipline: priority
            priorities: {alarm: 1}
        publishers:
          p:
            at: hub
            every: {exponential: 8ms}
            content: [{p: 0.4, event: {kind: alarm}}, {p: 0.6, event: {kind: news}}]
        subscribers: {s: {at: hub, wants: {}}}
        """
    load = workload_of(loads(text))
    net = checked(generate_net(load))
    assert net.places[0].queue.priorities == (("alarm of p", 1),)
    exact = analyse(load).flows.set_index("type")["response_mean_s"]
    assert exact["news"] > 2.5 * exact["alarm"]
    found = simulate_net(net, seed=9, quantiles=False)
    for kind in ("alarm", "news"):
        row = found.cell("hub", f"{kind} of p")
        assert row["residence_mean_se_s"] < 0.01 * exact[kind]
        assert abs(row["residence_mean_s"] - exact[kind]) < 5 * row["residence_mean_se_s"]


@pytest.mark.statistical
def test_mixed_sizes_on_a_wire_wait_as_pollaczek_and_khinchine_say():
    text = """
        tidings: 1
        brokers: {a: {}, b: {}}
        links: [{between: [a, b], bandwidth: 1MB/s}]
        publishers:
          p:
            at: a
            every: {exponential: 2ms}
            content: [{p: 0.9, event: {x: 1}, size: 500B}, {p: 0.1, event: {x: 2}, size: 7500B}]
        subscribers: {s: {at: b, wants: {}}}
        """
    load = workload_of(loads(text))
    busy = 500 * (0.9 * 0.5e-3 + 0.1 * 7.5e-3)
    second = 0.9 * 0.5e-3**2 + 0.1 * 7.5e-3**2
    exact = 1.2e-3 + 500 * second / 2 / (1 - busy)
    latency = analyse(load).deliveries.set_index("broker")["latency_mean_s"]["b"]
    assert latency == pytest.approx(exact, rel=1e-12)
    found = simulate_net(generate_net(load), seed=4, replications=40, quantiles=False)
    row = found.cell("network a--b", "p")
    assert row["residence_mean_se_s"] < 0.01 * exact
    assert abs(row["residence_mean_s"] - exact) < 5 * row["residence_mean_se_s"]


def star(leaves, share=0.5):
    """One publisher at a hub, and so many brokers around it."""
    names = ["hub", *(f"leaf{at}" for at in range(leaves))]
    return Workload(
        nodes=tuple(Node(name=name, centres=(at,)) for at, name in enumerate(names)),
        centres=tuple(Centre(name=name) for name in names),
        connections=tuple(Connection(source=0, target=at + 1) for at in range(leaves)),
        sources=(Source(name="p", home=0, every=Exponential(mean_s=1.0)),),
        flows=(
            Flow(
                source=0,
                event_type="",
                forwarding=tuple((at, share) for at in range(leaves)),
                services=tuple((at, Exponential(mean_s=0.4)) for at in range(leaves + 1)),
            ),
        ),
    )


@pytest.mark.statistical
def test_wide_fan_out_is_one_mode_and_every_leaf_its_own_queue():
    net = generate_net(star(60))  # 2^60 sets of next brokers
    assert sum(len(each.modes) for each in net.transitions) == 62
    found = simulate_net(net, seed=3, quantiles=False)
    leaves = found.cells[found.cells["place"] != "hub"]
    exact = 0.4 / (1 - 0.2)  # what leaves the hub is Poisson, and so is what a coin lets pass
    off = (leaves["residence_mean_s"] - exact) / leaves["residence_mean_se_s"]
    # t with 9 degrees of freedom: of 60 hardly one beyond 6, and their mean square is 9/7.
    assert np.abs(off).max() < 6.0
    assert 0.5 < float(np.mean(off**2)) < 2.5
    error = float(np.sqrt(np.mean(leaves["residence_mean_se_s"] ** 2) / 60))
    assert error < 0.002 * exact
    assert abs(leaves["residence_mean_s"].mean() - exact) < 5 * error


@pytest.mark.statistical
def test_a_net_of_a_poisson_system_agrees_with_operational_analysis():
    """One publisher, exponential service, an exponential wire: every queue is M/M/1."""
    load = Workload(
        nodes=(Node(name="a", centres=(0,)), Node(name="b", centres=(1,))),
        centres=(Centre(name="a"), Centre(name="b"), Centre(name="wire")),
        connections=(
            Connection(
                source=0, target=1, centre=2, delay=Exponential(mean_s=0.5), reliability=0.9
            ),
        ),
        sources=(
            Source(
                name="p", home=0, every=Exponential(mean_s=1.0), delay=Deterministic(value_s=0.25)
            ),
        ),
        flows=(
            Flow(
                source=0,
                event_type="",
                forwarding=((0, 0.7),),
                services=((0, Exponential(mean_s=0.6)), (1, Exponential(mean_s=0.1))),
                transfers=((0, Exponential(mean_s=0.8)),),
            ),
        ),
    )
    exact = analyse(load)
    found = simulate_net(generate_net(load), seed=5, replications=40, quantiles=False)
    latency = exact.deliveries.set_index("broker")["latency_mean_s"]
    for place in ("a", "b"):  # a chain of M/M/1 queues and delays: a product form
        row = found.cell(place, "p")
        assert row["age_mean_se_s"] < 0.005 * latency[place]
        assert abs(row["age_mean_s"] - latency[place]) < 5 * row["age_mean_se_s"]
        assert (
            abs(row["throughput_per_s"] - exact.rates_per_s[0]["ab".index(place)])
            < 5 * row["throughput_se_per_s"]
        )


def parts_of_one(every, *shares):
    """A publisher whose flows have some shares of its events, at one broker."""
    return Workload(
        nodes=(Node(name="a", centres=(0,)),),
        centres=(Centre(name="a"),),
        sources=(Source(name="p", home=0, every=every),),
        flows=tuple(
            Flow(source=0, event_type=f"t{at}", share=share, services=((0, every.scaled(0.5)),))
            for at, share in enumerate(shares)
        ),
    )


@pytest.mark.parametrize("every", [Exponential(mean_s=2.0), Deterministic(value_s=2.0)])
def test_events_of_no_flow_are_published_and_go_nowhere(every):
    load = parts_of_one(every, 0.2, 0.3, 0.0)
    net = checked(generate_net(load))
    cells = NetCells(net=flatten(net))
    rates = dict(zip(cells.all, solve_traffic(cells).rates_per_s, strict=True))
    assert rates["a", "t0 of p"] == pytest.approx(0.1, rel=1e-12)
    assert rates["a", "t1 of p"] == pytest.approx(0.15, rel=1e-12)
    assert ("a", "t2 of p") not in rates
    assert analyse(load).rates_per_s.ravel() == pytest.approx([0.1, 0.15, 0.0], rel=1e-12)


def test_flows_of_more_than_all_events_are_no_workload():
    with pytest.raises(InvalidInputError, match=r"flows of p: got shares with a sum of 1\.1"):
        parts_of_one(Exponential(mean_s=1.0), 0.6, 0.5)


@pytest.mark.statistical
def test_a_periodic_publisher_is_a_token_that_comes_back():
    source = Source(name="p", home=0, every=Deterministic(value_s=1.0))
    load = star(1, share=1.0)
    load = Workload(
        nodes=load.nodes,
        centres=load.centres,
        connections=load.connections,
        sources=(source,),
        flows=load.flows,
    )
    found = simulate_net(generate_net(load), seed=2)
    # D/M/1: the sojourn is exponential of rate μ(1 − σ), σ = exp(−μ(1 − σ)).
    sigma = 0.1
    for _ in range(200):
        sigma = np.exp(-(1 - sigma) / 0.4)
    row = found.cell("hub", "p")
    exact = 0.4 / (1 - sigma)
    assert row["age_mean_se_s"] < 0.005 * exact
    assert abs(row["age_mean_s"] - exact) < 5 * row["age_mean_se_s"]
