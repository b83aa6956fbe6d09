"""What must hold of any run in which things fail, to the last event."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.errors import UnstableError
from tidings.model.reading import loads
from tidings.simulation.kernel_layout import KERNEL_CAUSES
from tidings.simulation.network import compile_system
from tidings.simulation.run import replicate, simulate
from tidings.simulation.tally import find_units
from tidings.simulation.world import FIRST_ROOM, Window, make_world, run_world

SCHEMES = ("none", "periodic", "buffering", "bypass", "bypass-buffering")
CITY = """
tidings: 1
lifetime: 60ms
RECOVERY
routing: {root: hub, by: k, roots: {"2": far}}
brokers:
  hub: {service: {exponential: 6ms}CRASH}
  east: {service: {uniform: [0ms, 8ms]}, buffer: 3CRASH}
  west: {service: {exponential: 4ms}, cpu: {service: {exponential: 1ms}}CRASH}
  far: {discipline: fcfsCRASH}
links:
  - {between: [hub, east], delay: {exponential: 5ms}, reliability: LOSSBREAK}
  - {between: [hub, west], delay: 4ms}
  - {between: [west, far], delay: {exponential: 1ms}BREAK}
  - {between: [far, east], delay: {exponential: 1ms}BREAK}
publishers:
  p:
    at: east
    every: {exponential: 16ms}
    content: [{p: 0.6, event: {k: 1}}, {p: 0.4, event: {k: 2}, lifetime: 30ms}]
  q: {at: west, every: {exponential: 20ms}, content: {event: {k: 1}}}
subscribers:
  a: {at: west, wants: {k: 1}}
  b: {at: east, wants: {}}
  c: {at: west, wants: {k: 2}, link: {reliability: 0.9}}
  d: {at: far, wants: {k: 1}, lifetime: 20ms}
"""


def city_text(recovery="", failure="", loss="0.95", *, crashes=True):
    broken = f", failure: {{{failure}}}" if failure else ""
    text = CITY.replace("RECOVERY", f"recovery: {{{recovery}}}" if recovery else "")
    text = text.replace("CRASH", broken if crashes else "").replace("BREAK", broken)
    return text.replace("LOSS", loss)


def city(*parts, **more):
    return loads(city_text(*parts, **more))


def same_counts(one, other):
    for field in dataclasses.fields(one):
        if field.name not in ("refreshes", "acknowledgements"):
            yield field.name, np.array_equal(getattr(one, field.name), getattr(other, field.name))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("more", ["", ", refresh: 700ms", ", detection: 5ms, refresh: 1s"])
def test_what_never_fails_gives_the_same_run_to_the_last_bit(scheme, more):
    options = {"seed": 2, "replication": 1, "warmup_s": 1.0, "duration_s": 30.0}
    loss = "1" if "buffering" in scheme else "0.95"  # with acknowledgements losses are repeated
    crashes = scheme != "none"  # without recovery, what may crash has lost its subscriptions
    recovery = f"scheme: {scheme}{more if crashes else ''}"
    system = city(recovery, "up: 1e15s, down: 1s", loss, crashes=crashes)
    assert compile_system(system).faults.matter
    found = dict(same_counts(replicate(city(loss=loss), **options), replicate(system, **options)))
    assert found == dict.fromkeys(found, True)


def losses_add_up(system, **options):
    compiled = compile_system(system)
    units = find_units(compiled)
    given = {"seed": 7, "replication": 0, "warmup_s": 2.0, "duration_s": 30.0} | options
    counts = replicate(system, **given)
    for unit in range(units.count):
        mine = units.pair_unit == unit
        delivered = int(counts.delivered[mine].sum())
        assert (counts.lost[unit] >= 0).all()
        assert int(counts.wanted[mine].sum()) == delivered + int(counts.lost[unit].sum())
        assert counts.on_time[mine].sum() <= delivered
        assert delivered == counts.curves[units.curves[unit]].sum()
    return counts


@st.composite
def failing_systems(draw):
    """Random graphs of two to five brokers, with queues, delays, losses, groups, any scheme."""
    count = draw(st.integers(2, 5))
    names = [f"b{i}" for i in range(count)]
    pairs = {(draw(st.integers(0, i - 1)), i) for i in range(1, count)}  # a tree, and more
    for _ in range(draw(st.integers(0, 3))):
        one, other = draw(st.integers(0, count - 1)), draw(st.integers(0, count - 1))
        if one != other and (other, one) not in pairs:
            pairs.add((one, other))
    law = st.sampled_from(
        ["mtbf: 2s, mttr: 1s", "up: 900ms, down: {uniform: [0s, 500ms]}",
         "up: {weibull: {mean: 3s, shape: 0.5}}, down: {lognormal: {mean: 1s, scv: 3}}"]
    )  # fmt: skip
    failure = st.one_of(st.just(""), law.map(lambda each: f"failure: {{{each}}}"))
    service = st.sampled_from(
        ["", "service: {exponential: 20ms}", "service: {exponential: 50ms}, servers: 2, buffer: 2"]
    )
    channel = st.sampled_from(
        ["", "delay: {exponential: 30ms}", "delay: 10ms, reliability: 0.8", "reliability: 0.9"]
    )

    def joined(*parts):
        return ", ".join(part for part in parts if part)

    scheme = draw(st.sampled_from(SCHEMES))
    recovery = [f"scheme: {scheme}"]
    if scheme != "none":
        refreshes = [[], ["refresh: 300ms"]]
        refreshes += [["refresh: 300ms", f"timeout: {each}"] for each in ("400ms", "200ms")]
        recovery += draw(st.sampled_from(refreshes))
        recovery += draw(st.sampled_from([[], ["detection: 100ms"]]))
    brokers = [f"{n}: {{{joined(draw(service), draw(failure))}}}" for n in names]
    links = [
        f"{{{joined(f'between: [b{a}, b{b}]', draw(channel), draw(failure))}}}"
        for a, b in sorted(pairs)
    ]
    member = draw(st.sampled_from(names))
    group = f"failure_groups: {{g: {{members: [b0, {member}], failure: {{mtbf: 4s, mttr: 1s}}}}}}"
    homes = [draw(st.sampled_from(names)) for _ in range(5)]
    lifetime = draw(st.sampled_from(["50ms", "1s", "{exponential: 500ms}", "1h"]))
    return loads(
        f"""
        tidings: 1
        lifetime: {lifetime}
        expired: {draw(st.sampled_from(["at subscriber", "at hop", "in queue"]))}
        recovery: {{{", ".join(recovery)}}}
        routing: {{root: b0, by: k, roots: {{"1": {draw(st.sampled_from(names))}}}}}
        {group if draw(st.booleans()) else ""}
        brokers: {{{", ".join(brokers)}}}
        links: [{", ".join(links)}]
        publishers:
          p: {{at: {homes[0]}, every: {{exponential: 100ms}},
               content: [{{p: 0.5, event: {{k: 1}}}}, {{p: 0.5, event: {{k: 2}}}}]}}
          q: {{at: {homes[1]}, every: 130ms, content: {{event: {{k: 1}}}}}}
        subscribers:
          a: {{at: {homes[2]}, wants: {{k: 1}}}}
          b: {{at: {homes[3]}, wants: {{}}}}
          c: {{at: {homes[4]}, wants: {{k: 2}}, link: {{reliability: 0.9, delay: 5ms}}}}
        """
    )


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(failing_systems())
def test_every_wanted_event_is_delivered_once_or_lost_once(system):
    losses_add_up(system)


@pytest.mark.nightly
@settings(max_examples=400, deadline=None, derandomize=True)
@given(failing_systems())
def test_every_wanted_event_of_many_systems_is_delivered_once_or_lost_once(system):
    losses_add_up(system)


@pytest.mark.parametrize("scheme", SCHEMES[1:])
def test_losses_by_failures_are_told_apart(scheme):
    recovery = f"scheme: {scheme}, refresh: 200ms, timeout: 300ms"
    counts = losses_add_up(city(recovery, "mtbf: 1s, mttr: 200ms"), duration_s=200.0)
    seen = {
        cause for cause, lost in zip(KERNEL_CAUSES, counts.lost.sum(axis=0), strict=True) if lost
    }
    if "buffering" in scheme:
        assert seen == {"link", "overflow", "broker_down", "expired_in_buffer"}
    else:
        assert seen == {"link", "overflow", "broker_down", "path_down", "not_restored"}
    assert (counts.duplicates > 0) == (scheme == "bypass-buffering")
    assert counts.refreshes > 1_000


def test_a_replication_with_failures_can_be_repeated_alone():
    system = city("scheme: bypass-buffering, refresh: 500ms", "mtbf: 2s, mttr: 300ms")
    options = {"warmup_s": 2.0, "duration_s": 20.0}
    alone = [replicate(system, seed=9, replication=number, **options) for number in range(4)]
    again = replicate(system, seed=9, replication=2, **options)
    assert all(same for _, same in same_counts(again, alone[2]))
    assert not np.array_equal(alone[0].lost, alone[1].lost)
    among = simulate(system, seed=9, replications=4, **options)
    assert among.provenance["messages"]["duplicates"] == sum(each.duplicates for each in alone)
    assert among.subscribers["events"].sum() == sum(each.wanted.sum() for each in alone)


def test_an_unrelated_broker_that_fails_changes_nobody_elses_numbers():
    text = city_text("scheme: periodic, refresh: 500ms", "mtbf: 2s, mttr: 300ms")
    more = text.replace("brokers:\n", "brokers:\n  aside: {failure: {mtbf: 1s, mttr: 1s}}\n")
    more = more.replace("links:\n", "links:\n  - {between: [aside, west]}\n")
    options = {"seed": 2, "replication": 1, "warmup_s": 1.0, "duration_s": 40.0}
    before, after = (replicate(loads(each), **options) for each in (text, more))
    assert before.lost.tolist() == after.lost.tolist()
    assert before.delay_sum_s.tolist() == after.delay_sum_s.tolist()


def test_room_for_kept_copies_grows_and_changes_nothing():
    # A repair takes 100 s: 10 000 events wait for it, more than there is room for at first.
    system = loads(
        """
        tidings: 1
        recovery: {scheme: bypass-buffering}
        brokers: {a: {}, b: {}}
        links: [{between: [a, b], failure: {up: 100s, down: 100s}}]
        publishers: {p: {at: a, every: {rate: 100/s}, content: {event: {k: 1}}}}
        subscribers: {s: {at: b, wants: {}}}
        """
    )
    compiled = compile_system(system)
    window = Window(warmup_s=0.0, end_s=400.0)
    world = make_world(compiled, window, 1, 0)
    run_world(world, compiled, window)
    assert len(world.tables["copies"]) > 2 * FIRST_ROOM
    cell = world.tables["cells"]
    assert cell.delivered.sum() == world.tables["rows"].published.sum()
    assert cell.delay_sum.sum() / cell.delivered.sum() == pytest.approx(25.0, rel=0.02)


def test_what_expires_in_a_buffer_makes_room():
    # 100 000 events come in a repair, but only a thousand of them are alive at any moment.
    system = loads(
        """
        tidings: 1
        lifetime: 1s
        recovery: {scheme: buffering}
        brokers: {a: {}, b: {}}
        links: [{between: [a, b], failure: {up: 1ms, down: 100s}}]
        publishers: {p: {at: a, every: {rate: 1000/s}, content: {event: {k: 1}}}}
        subscribers: {s: {at: b, wants: {}}}
        """
    )
    found = replicate(system, seed=1, replication=0, warmup_s=0.0, duration_s=100.0)
    assert found.most_copies <= FIRST_ROOM
    assert found.lost[0, KERNEL_CAUSES.index("expired_in_buffer")] > 90_000


def test_too_many_kept_copies_are_explained():
    text = city_text("scheme: buffering", "up: 1s, down: 1000h", crashes=False)
    text = text.replace("lifetime: 60ms", "lifetime: 1000h")
    with pytest.raises(UnstableError, match="most of them buffered until a repair"):
        simulate(loads(text), replications=1, warmup_s=0.0, events=9_000, max_copies=3_000)


def test_without_recovery_a_run_says_what_that_means():
    forgetting = city("scheme: none", failure="mtbf: 1h, mttr: 1min")
    warnings = simulate(forgetting, replications=1, events=500).warnings
    assert any("it forwards nothing (hub, east, west, far)" in each for each in warnings)
