from __future__ import annotations

import itertools

import pytest

from tidings.errors import InvalidInputError, UnsupportedError
from tidings.model.laws import Deterministic, Exponential
from tidings.model.reading import loads
from tidings.model.system_workload import workload_of
from tidings.model.workload import MOST_SETS, Connection, Flow, Node, Source, Workload

FORK = """
tidings: 1
event_type: kind
size: 500B
brokers:
  hub: {service: {exponential: 2ms}, cpu: {demands: {a: 1ms, b: {exponential: 3ms}}}}
  east: {service: {exponential: 4ms}}
  west: {service: {exponential: 4ms}, servers: 2}
links:
  - {between: [hub, east], reliability: 0.8, bandwidth: 1MB/s, delay: 5ms}
  - {between: [west, hub], network: lan}
networks: {lan: {bandwidth: 2MB/s, duplex: half}}
publishers:
  p:
    at: hub
    every: {exponential: 10ms}
    link: {reliability: 0.9, delay: 1ms}
    content:
      - {p: 0.2, event: {kind: a, x: 1}}
      - {p: 0.3, event: {kind: a, x: 2}}
      - {p: 0.1, event: {kind: a, x: 3}}
      - {p: 0.4, event: {kind: b, x: 1}, size: 1kB}
subscribers:
  s: {at: east, wants: {x: {at_most: 2}}}
  t: {at: west, wants: {x: {at_least: 2}}}
"""


def test_forwarding_is_the_share_of_what_is_wanted_there():
    load = workload_of(loads(FORK))
    names = [load.name_of(flow) for flow in load.flows]
    assert names == ["a of p", "b of p"]
    a, b = load.flows
    assert a.share == pytest.approx(0.6, rel=1e-12)
    arcs = {load.connection_name(at): share for at, share in a.forwarding}
    assert arcs == {
        "hub--east": pytest.approx(0.5 / 0.6, rel=1e-12),
        "hub--west": pytest.approx(0.4 / 0.6, rel=1e-12),
    }
    assert {load.connection_name(at): share for at, share in b.forwarding} == {"hub--east": 1.0}


def test_joint_forwarding_has_the_sets_that_occur_and_their_shares():
    load = workload_of(loads(FORK))
    (joint,) = load.flows[0].joint
    sets = {tuple(load.connection_name(at) for at in arcs): share for arcs, share in joint.sets}
    assert load.nodes[joint.node].name == "hub"
    assert sets == {
        ("hub--east",): pytest.approx(0.2 / 0.6, rel=1e-12),
        ("hub--east", "hub--west"): pytest.approx(0.3 / 0.6, rel=1e-12),
        ("hub--west",): pytest.approx(0.1 / 0.6, rel=1e-12),
    }
    assert load.flows[1].joint == ()  # one way only


def test_by_content_nothing_is_left_to_chance():
    load = workload_of(loads(FORK), by="content")
    assert len(load.flows) == 4
    assert {share for flow in load.flows for _, share in flow.forwarding} == {1.0}
    assert sum(flow.share for flow in load.flows) == pytest.approx(1.0, rel=1e-12)


def test_services_are_by_event_type_and_transfers_by_size_and_bandwidth():
    load = workload_of(loads(FORK))
    centre = {each.name: at for at, each in enumerate(load.centres)}
    assert list(centre) == [
        "hub service",
        "hub cpu",
        "east",
        "west",
        "hub--east",
        "east--hub",
        "lan",
    ]
    assert load.centres[centre["west"]].servers == 2
    a, b = (dict(flow.services) for flow in load.flows)
    assert a[centre["hub cpu"]] == Deterministic(value_s=0.001)
    assert b[centre["hub cpu"]] == Exponential(mean_s=0.003)
    times = [
        {load.connection_name(at): law.mean_s for at, law in flow.transfers} for flow in load.flows
    ]
    assert times[0] == {
        "hub--east": pytest.approx(500 / 1e6, rel=1e-12),
        "hub--west": pytest.approx(500 / 2e6, rel=1e-12),
    }
    assert times[1] == {"hub--east": pytest.approx(1000 / 1e6, rel=1e-12)}


def test_messages_of_several_sizes_take_several_times_on_the_wire():
    text = FORK.replace(
        "{p: 0.3, event: {kind: a, x: 2}}", "{p: 0.3, event: {kind: a, x: 2}, size: 3kB}"
    )
    a = dict(workload_of(loads(text)).flows[0].transfers)
    load = workload_of(loads(text))
    law = {load.connection_name(at): each for at, each in a.items()}
    # To east go x = 1 (500 B) and x = 2 (3 kB), two to three; to west x = 2 and 3, three to one.
    east, west = law["hub--east"], law["hub--west"]
    assert east.cdf([0.49e-3, 0.5e-3, 2.9e-3, 3e-3]).tolist() == pytest.approx([0, 0.4, 0.4, 1])
    assert east.mean_s == pytest.approx(0.4 * 0.5e-3 + 0.6 * 3e-3, rel=1e-12)
    assert west.mean_s == pytest.approx(0.75 * 1.5e-3 + 0.25 * 0.25e-3, rel=1e-12)
    second = 0.4 * 0.5e-3**2 + 0.6 * 3e-3**2
    assert east.mean_s**2 * (1 + east.scv) == pytest.approx(second, rel=1e-12)


def test_priorities_are_those_of_the_event_type():
    text = FORK.replace(
        "east: {service: {exponential: 4ms}}",
        "east: {service: {exponential: 4ms}, discipline: priority, priorities: {b: 3}}",
    )
    for by in ("type", "content"):
        load = workload_of(loads(text), by=by)
        centre = [each.name for each in load.centres].index("east")
        found = {flow.event_type[0]: flow.priorities for flow in load.flows}
        assert found == {"a": (), "b": ((centre, 3),)}


def test_priorities_that_nobody_heeds_are_refused():
    unheeded = FORK.replace("servers: 2}", "servers: 2, priorities: {b: 1}}")
    with pytest.raises(InvalidInputError, match=r"west\.priorities.*others ignore them"):
        loads(unheeded)
    untyped = FORK.replace("event_type: kind\n", "").replace(
        "servers: 2}", "discipline: priority, priorities: {b: 1}}"
    )
    with pytest.raises(InvalidInputError, match="priorities by event type"):
        loads(untyped)


def test_a_half_duplex_network_is_one_queue_and_a_full_duplex_one_two():
    def networks(duplex):
        text = FORK.replace("duplex: half", f"duplex: {duplex}")
        load = workload_of(loads(text))
        ways = (
            c
            for c in load.connections
            if "west" in (load.nodes[c.source].name, load.nodes[c.target].name)
        )
        return {each.centre for each in ways}

    assert len(networks("half")) == 1
    assert len(networks("full")) == 2


def test_what_a_workload_cannot_say_is_refused_by_name():
    with pytest.raises(UnsupportedError, match="failures"):
        workload_of(loads(FORK.replace("east: {", "east: {failure: {mtbf: 1h, mttr: 1s}, ")))
    with pytest.raises(UnsupportedError, match=r"publishers\.p\.link"):
        workload_of(loads(FORK.replace("delay: 1ms}", "delay: 1ms, bandwidth: 1MB/s}")))
    with pytest.raises(InvalidInputError, match="messages have no size"):
        workload_of(loads(FORK.replace("size: 500B\n", "").replace(", size: 1kB", "")))
    with pytest.raises(InvalidInputError, match=r"brokers.hub.cpu.demands.*'b'"):
        workload_of(loads(FORK.replace(", b: {exponential: 3ms}", "")))
    with pytest.raises(InvalidInputError, match="flows by 'colour'"):
        workload_of(loads(FORK), by="colour")


def test_a_workload_by_hand_has_all_its_problems_told():
    with pytest.raises(InvalidInputError) as told:
        Workload(
            nodes=(Node(name="a", centres=(3,)),),
            connections=(Connection(source=0, target=7, reliability=1.5),),
            sources=(Source(name="p", home=0, every=Exponential(mean_s=1.0)),),
            flows=(Flow(source=2, event_type="", forwarding=((0, -0.1),)),),
        )
    places = [problem.at for problem in told.value.problems]
    assert places == [
        "connections[1]",
        "connections[1].reliability",
        "flows[1]",
        "flows[1].forwarding",
        "node a",
    ]


def test_event_types_of_one_class_stay_apart():
    # Nobody tells a from b, but their demands differ.
    text = FORK.replace("{at: east, wants: {x: {at_most: 2}}}", "{at: east, wants: {}}")
    text = text.replace("{at: west, wants: {x: {at_least: 2}}}", "{at: west, wants: {}}")
    shares = {flow.event_type: flow.share for flow in workload_of(loads(text)).flows}
    assert shares == {"a": pytest.approx(0.6), "b": pytest.approx(0.4)}
    assert list(itertools.chain.from_iterable(f.joint for f in workload_of(loads(text)).flows))


def test_sets_that_are_too_many_are_left_to_chance():
    def star(leaves):
        names = [f"b{i}" for i in range(leaves)]
        flags = ", ".join(
            f"k{i}: [{{p: 0.5, value: true}}, {{p: 0.5, value: false}}]" for i in range(leaves)
        )
        lines = [
            "tidings: 1",
            f"brokers: {{hub: {{}}, {', '.join(f'{name}: {{}}' for name in names)}}}",
            f"links: [{', '.join(f'{{between: [hub, {name}]}}' for name in names)}]",
            f"publishers: {{p: {{at: hub, every: 1s, content: {{independent: {{{flags}}}}}}}}}",
            "subscribers:",
            *(f"  s{i}: {{at: b{i}, wants: {{k{i}: true}}}}" for i in range(leaves)),
        ]
        (flow,) = workload_of(loads("\n".join(lines))).flows
        return flow

    few, many = star(8), star(9)
    assert len(few.joint[0].sets) == MOST_SETS == 256
    assert many.joint == ()
    assert list(dict(many.forwarding).values()) == pytest.approx([0.5] * 9)
