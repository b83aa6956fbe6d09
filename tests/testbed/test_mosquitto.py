"""Mosquitto as a testbed's servers: what bridges pass on, keep and lose."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from real_servers import HAS_MOSQUITTO
from tidings.errors import EngineError, InvalidInputError, UnsupportedError
from tidings.model.reading import loads
from tidings.model.routes import route
from tidings.testbed.breaking import rejoinings
from tidings.testbed.mosquitto import Mosquitto
from tidings.testbed.mqtt_conducting import topics_by_arc, with_homes
from tidings.testbed.outages import Outage
from tidings.testbed.running import run_testbed
from tidings.testbed.runs import TestbedOptions
from tidings.testbed.servers import ServerPlan
from tidings.testbed.tables import trace_tables
from tidings.testbed.workload import contents_of, subjects

# Both ends publish what both ends want: bridges of both directions that did not tell where an
# event comes from would send it round and round.
PAIR = """
tidings: 1
lifetime: {lifetime}
recovery: {{scheme: {scheme}, refresh: 0s}}
brokers: {{a: {{service: 1ms}}, m: {{service: 1ms}}, b: {{service: 1ms}}}}
links:
  - {{between: [a, m], failure: {{mtbf: 1d, mttr: 1s}}}}
  - {{between: [m, b]}}
publishers:
  p: {{at: a, every: 50ms, content: [{{p: 0.5, event: {{t: x}}}}, {{p: 0.5, event: {{t: y}}}}]}}
  q: {{at: b, every: 50ms, content: {{event: {{t: x}}}}}}
subscribers: {{near: {{at: a, wants: {{t: x}}}}, far: {{at: b, wants: {{t: x}}}}}}
"""
CUT = Outage(component="a--m", begin_s=0.5, end_s=1.5)


def system(scheme="periodic", lifetime="500ms"):
    return loads(PAIR.format(scheme=scheme, lifetime=lifetime))


def on_mosquitto(scheme, lifetime, outages):
    chosen = TestbedOptions(duration_s=4.0, warmup_s=0.0, broker="mosquitto")
    return run_testbed(system(scheme, lifetime), chosen, outages=outages)


def missing(run, subscriber):
    """When what this subscriber wanted and did not get was published, in seconds from the start."""
    got = {each.event for each in run.deliveries if each.subscriber == subscriber}
    wanted = [each for each in run.published if each.content.text == '{"t":"x"}']
    return [each.at_s for each in wanted if each.event not in got]


def test_a_bridge_passes_on_what_is_wanted_behind_it_and_from_before_it():
    one = system()
    routes = route(one)
    names = with_homes(one, subjects(one, contents_of(one)))
    by_ends = {
        (one.brokers[routes.arcs[arc].source].name, one.brokers[routes.arcs[arc].target].name): each
        for arc, each in topics_by_arc(one, routes, names).items()
    }
    assert by_ends == {
        ("a", "m"): {"ev/b0/'x"},
        ("m", "b"): {"ev/b0/'x"},
        ("b", "m"): {"ev/b2/'x"},
        ("m", "a"): {"ev/b2/'x"},
    }
    assert set(names.of_subscriber[0]) == {"ev/b0/'x", "ev/b2/'x"}


@pytest.mark.parametrize("qos", [0, 1])
def test_what_a_server_is_told_has_its_topics_and_what_it_keeps(qos, tmp_path):
    kind = Mosquitto({4: {"ev/b0/'x", "ev/b0/'w"}}, qos)
    plan = ServerPlan(
        name="a", label="b0", client_port=1, broker_port=2, monitor_port=3, dials={4: 9, 6: 8},
        links=2,
    )  # fmt: skip
    lines = kind.configuration(plan, tmp_path).splitlines()
    assert [each for each in lines if each.startswith("topic")] == [
        f"topic ev/b0/'w out {qos}", f"topic ev/b0/'x out {qos}", f"topic nothing out {qos}",
    ]  # fmt: skip
    assert ("persistence true" in lines) == bool(qos)
    assert lines.count("cleansession false") == 2 * qos


def test_without_a_server_it_is_told_what_to_install(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(EngineError, match=r"no mosquitto on the PATH .*apt install mosquitto"):
        Mosquitto({}, 0).command(Path("x"))


def test_what_bridges_do_not_do_is_refused_by_name():
    coming = PAIR.replace("at: b, wants", "at: b, stays: 5s, away: 5s, wants")
    visiting = loads(coming.format(scheme="periodic", lifetime="1s"))
    with pytest.raises(UnsupportedError, match=r"(?s)on Mosquitto does not handle .*churn"):
        run_testbed(visiting, TestbedOptions(broker="mosquitto"))
    with pytest.raises(InvalidInputError, match="wants nats or mosquitto"):
        TestbedOptions(broker="rabbit")


@HAS_MOSQUITTO
def test_with_quality_0_a_cut_loses_what_is_sent_until_the_bridge_is_back():
    run = on_mosquitto("periodic", "500ms", [CUT])
    assert run.incomplete is None
    seen = Counter((each.event, each.broker) for each in run.layout.journal.visits)
    assert set(seen.values()) == {1}  # nothing goes round
    unwanted = {each.event for each in run.published if each.content.text == '{"t":"y"}'}
    assert {event for event, broker in seen if broker != "a"}.isdisjoint(unwanted)
    (rejoined,) = rejoinings(run)
    assert 0.0 < rejoined.took_s < 3.0  # bridges try every two seconds
    for subscriber in (0, 1):  # each loses what the other's side sent, and nothing else
        lost_s = missing(run, subscriber)
        assert len(lost_s) > 5
        assert min(lost_s) > CUT.begin_s - 0.1
        assert max(lost_s) < CUT.end_s + rejoined.took_s + 0.1
    hops = trace_tables(run)["hops"].to_pandas()
    ways = {(broker, *to) for broker, to in zip(hops["broker"], hops["sent_to"], strict=True)}
    # A bridge that is down sends nothing, so the end of the way may be at m.
    assert ways == {("a",), ("a", "m"), ("m",), ("m", "b"), ("m", "a"), ("b", "m"), ("b",)}


@HAS_MOSQUITTO
def test_with_quality_1_a_cut_loses_nothing_but_what_expires_meanwhile():
    run = on_mosquitto("buffering", "60s", [CUT])
    assert run.incomplete is None
    assert missing(run, 0) == missing(run, 1) == []
    late_s = max(
        each.received_s - run.start_s - published.at_s
        for each in run.deliveries
        for published in run.published
        if published.event == each.event
    )
    assert late_s > CUT.end_s - CUT.begin_s  # kept, and sent again

    brief = on_mosquitto("buffering", "1s", [Outage(component="a--m", begin_s=0.5, end_s=3.5)])
    lost_s = missing(brief, 1)
    assert len(lost_s) > 5  # brokers drop what is older than a whole second
    assert max(lost_s) < 4.5


GROUP = """
tidings: 1
lifetime: 2s
brokers: {{a: {{}}, b: {{}}}}
links: [{{between: [a, b]}}]
publishers: {{p: {{at: a, every: 20ms, content: {{event: {{t: x}}}}}}}}
subscribers:
  w: {{at: b, wants: {{t: x}}, processing: 30ms, consumers: {{count: 3{more}}}}}
  alone: {{at: b, wants: {{t: x}}, processing: 1ms}}
  all: {{at: b, wants: {{t: x}}}}
"""


@HAS_MOSQUITTO
def test_members_of_a_group_share_its_events_in_turn_and_take_their_time():
    run = run_testbed(
        loads(GROUP.format(more=", prefetch: 0")),
        TestbedOptions(duration_s=2.0, warmup_s=0.0, broker="mosquitto"),
    )
    assert run.incomplete is None
    handled = sorted((int(each.event.split("/")[1]), each.member) for each in run.handlings
                     if each.subscriber == 0)  # fmt: skip
    assert [number for number, _ in handled] == list(range(len(run.published)))  # each by one
    members = [member for _, member in handled]
    assert all(members[at] == members[at + 3] for at in range(len(members) - 3))  # in turn
    assert set(members) == {0, 1, 2}
    took_s = [each.end_s - each.begin_s for each in run.handlings if each.subscriber == 0]
    assert min(took_s) >= 0.03
    for subscriber in (1, 2):  # who is in no group gets everything
        got = {each.event for each in run.deliveries if each.subscriber == subscriber}
        assert len(got) == len(run.published)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (", prefetch: 0, choose: random", "in turn; write 'choose: round robin'"),
        (", prefetch: 5", "unasked; write 'prefetch: 0'"),
    ],
)
def test_a_group_that_mosquitto_does_not_have_is_refused(more, said):
    with pytest.raises(UnsupportedError, match=said):
        run_testbed(loads(GROUP.format(more=more)), TestbedOptions(broker="mosquitto"))


@HAS_MOSQUITTO
def test_a_server_that_is_killed_comes_back_with_its_bridges():
    killed = on_mosquitto("periodic", "500ms", [Outage(component="m", begin_s=0.5, end_s=1.0)])
    assert killed.incomplete is None
    (rejoined,) = rejoinings(killed)
    assert rejoined.component == "m"
    after_s = 1.0 + rejoined.took_s
    assert after_s < 3.9
    assert min(missing(killed, 1)) > 0.4
    assert max(missing(killed, 1)) < after_s + 0.1
