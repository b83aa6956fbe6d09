"""Buffers that block publishers, against queues that are known exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tidings as td
from tidings.errors import UnstableError
from tidings.simulation.run import replicate

LIFETIME_S = 0.2
PUBLISHER = "{at: b, every: {rate: 20/s}, content: {event: {x: 1}}}"
GROUP = "{at: b, wants: {x: 1}, processing: {exponential: 40ms}, consumers: %s}"
BLOCKING = GROUP % "{count: 1, buffer: 2, when_full: block}"


def system(publishers=f"p: {PUBLISHER}", subscribers=f"w: {BLOCKING}", brokers="b: {}", links=""):
    return td.loads(f"""
        tidings: 1
        lifetime: {LIFETIME_S}
        brokers: {{{brokers}}}
        links: [{links}]
        publishers: {{{publishers}}}
        subscribers: {{{subscribers}}}
    """)


def constant(buffer, handled_ms, *, pause=True):
    """A publisher that wants to publish a millisecond after it could, and its blocking group."""
    publisher = "p: {at: b, every: {deterministic: 1ms}, content: {event: {x: 1}}%s}"
    group = "{at: b, wants: {x: 1}, processing: {deterministic: %gms}, consumers: %s}"
    blocking = f"{{count: 1, buffer: {buffer}, when_full: block}}"
    return publisher % (", when_blocked: pause" if pause else ""), group % (handled_ms, blocking)


def delays_s(of, duration_s=1.0, warmup_s=0.1):
    counts = replicate(of, seed=1, replication=0, warmup_s=warmup_s, duration_s=duration_s)
    assert np.all(counts.delivered == counts.wanted)
    return counts.delay_sum_s / counts.delivered, counts


def assert_near(value, expected, error, most=0.02):
    assert 0 < error < most * expected
    assert abs(value - expected) < 4 * error, (value, expected, error)


@pytest.mark.parametrize(
    "blocked",
    [
        {},
        {"subscribers": "w: {at: b, wants: {x: 1}}"}
        | {"brokers": "b: {service: {exponential: 40ms}, buffer: 2, when_full: block}"},
    ],
    ids=["group", "broker"],
)
def test_events_that_wait_before_a_full_buffer_wait_no_longer_in_all(blocked):
    """One server, first come first served: M/M/1, wherever the events stand that wait."""
    found = td.simulate(system(**blocked), seed=4, events=200_000, replications=8)
    row = found.subscribers.iloc[0]
    assert row["delivered"] == 1.0
    assert_near(row["on_time"], 1.0 - math.exp(-(25 - 20) * LIFETIME_S), row["on_time_se"])
    assert_near(row["delay_mean_s"], 1 / (25 - 20), row["delay_mean_se_s"])
    (remark,) = [each for each in found.remarks if each.kind == "blocked publishers"]
    assert remark.where == (("w",) if not blocked else ("b",))
    # An event waits with its publisher where it finds one in service and two in the buffer.
    assert remark.size == pytest.approx((20 / 25) ** 3, abs=0.01)


def test_blocked_publishers_take_turns_and_nobody_is_served_less():
    half = PUBLISHER.replace("20/s", "10/s")
    found = td.simulate(system(f"p: {half}, q: {half}"), seed=4, events=200_000, replications=8)
    row, pairs = found.subscribers.iloc[0], found.pairs
    assert_near(row["delay_mean_s"], 1 / (25 - 20), row["delay_mean_se_s"])
    assert_near(pairs["delay_mean_s"][0], pairs["delay_mean_s"][1], row["delay_mean_se_s"])


def test_a_publisher_that_pauses_cannot_get_ahead():
    """M/M/1 with five places: one in service, three in the buffer, one in the publisher's hand."""
    publisher = PUBLISHER.replace("20/s", "50/s")[:-1] + ", when_blocked: pause}"
    group = GROUP % "{count: 1, buffer: 3, when_full: block}"
    of = system(f"p: {publisher}", f"w: {group}")
    runs = [
        replicate(of, seed=2, replication=number, warmup_s=20, duration_s=2_000)
        for number in range(8)
    ]
    weights = (50 / 25) ** np.arange(6)
    shares = weights / weights.sum()
    per_s = 25 * (1 - shares[0])
    measured = {
        "rate": [each.published.sum() / 2_000 for each in runs],
        "delay": [each.delay_sum_s.sum() / each.delivered.sum() for each in runs],
        "blocked": [each.blocked[0, 0] / each.published.sum() for each in runs],
    }
    expected = {
        "rate": per_s,
        "delay": shares @ np.arange(6) / per_s,
        "blocked": shares[4] / (1 - shares[5]),
    }
    for name, values in measured.items():
        error = np.std(values, ddof=1) / math.sqrt(len(values))
        assert_near(np.mean(values), expected[name], error)


def test_the_wait_of_a_publisher_in_a_closed_loop_by_hand():
    """Wanted 1 ms after the last was taken, taken 1 ms later, waits 2 ms and is handled for 2."""
    publisher, group = constant(1, 2)
    delay, counts = delays_s(system(publisher, f"w: {group}"))
    assert delay[0] == pytest.approx(0.005, rel=1e-6)
    assert counts.published.sum() == pytest.approx(500, abs=1)
    assert counts.blocked[0] == pytest.approx([500, 0.5], rel=0.01)


def test_an_event_needs_room_in_every_buffer_on_its_way():
    """A fast group waits for the slow one, whose full buffer blocks the publisher of both."""
    publisher, slow = constant(1, 2)
    _, fast = constant(1, 0.1)
    delay, _ = delays_s(system(publisher, f"slow: {slow}, fast: {fast}"))
    assert delay == pytest.approx([0.005, 0.0011], rel=1e-6)


def test_those_whose_events_go_elsewhere_are_not_blocked():
    publisher, slow = constant(1, 2)
    other = "o: {at: b, every: {deterministic: 1ms}, content: {event: {x: 2}}}"
    free = "f: {at: b, wants: {x: 2}, link: {delay: 3ms}}"
    delay, _ = delays_s(system(f"{publisher}, {other}", f"w: {slow}, {free}"))
    assert delay == pytest.approx([0.005, 0.003], rel=1e-6)


def test_a_place_is_kept_for_an_event_on_its_way():
    """10 ms over the link and 1 ms in service before the next may leave, wanted 10 ms ago."""
    publisher, _ = constant(1, 1)
    brokers = "b: {}, far: {service: {deterministic: 1ms}, buffer: 0, when_full: block}"
    links = "{between: [b, far], delay: 10ms}"
    delay, counts = delays_s(system(publisher, "s: {at: far, wants: {}}", brokers, links), 1.1)
    assert delay[0] == pytest.approx(0.021, rel=1e-6)
    assert counts.published.sum() == pytest.approx(100, abs=1)


@pytest.mark.parametrize("place", ["publisher", "link"])
def test_a_lost_event_gives_its_place_back(place):
    lossy = "{reliability: 0.5, delay: 1ms}"
    link = f", link: {lossy}" if place == "publisher" else ""
    publisher = f"p: {{at: b, every: {{rate: 20/s}}, content: {{event: {{x: 1}}}}{link}}}"
    far = "c" if place == "link" else "b"
    group = BLOCKING.replace("at: b", f"at: {far}")
    links = "{between: [b, c], reliability: 0.5, delay: 1ms}"
    of = system(publisher, f"w: {group}", "b: {}, c: {}", links)
    row = td.simulate(of, seed=4, events=50_000, replications=4).subscribers.iloc[0]
    assert abs(row["lost_link"] - 0.5) < 4 * math.sqrt(0.25 / row["events"])
    assert row["delivered"] + row["lost_link"] == pytest.approx(1.0)


def test_blocked_events_wait_for_their_publisher_to_be_connected():
    """Served for 1.5 s, there for a second in two: the next leaves when the publisher is back."""
    publisher = constant(1, 1)[0].replace("1ms", "300ms")
    away = ", connectivity: {on: {deterministic: 1s}, off: {deterministic: 1s}}}"
    brokers = "b: {service: {deterministic: 1.5s}, buffer: 0, when_full: block}"
    of = system(publisher[:-1] + away, "s: {at: b, wants: {}}", brokers)
    counts = replicate(of, seed=1, replication=0, warmup_s=20.0, duration_s=200.0)
    assert counts.published.sum() == pytest.approx(100, abs=4)


def test_whoever_sends_much_does_not_hold_up_the_others():
    """An event that comes while another publisher's twenty are blocked is the second to go on."""
    many = "m: {at: b, publishes: {every: 2s, batch: {20: 1}}, content: {event: {x: 1}}}"
    one = "o: {at: b, every: {rate: 10/s}, content: {event: {x: 1}}}"
    group = "{at: b, wants: {}, processing: {deterministic: 10ms}, consumers: %s}"
    of = system(f"{many}, {one}", "w: " + group % "{count: 1, buffer: 1, when_full: block}")
    delay, _ = delays_s(of, 400.0, 2.0)
    # In the tenth of the time that the twenty need it meets one in service, one in the buffer, and
    # one more goes before it: 25 ms. Behind all that wait it would be 100 ms in the mean.
    alone_s, share = 0.010 + 0.5 * 0.1 * 0.010 / (1 - 0.1), 0.1 / (1 - 0.1)
    assert alone_s < delay[1] < alone_s + share * 0.050


def test_what_is_offered_too_much_is_refused_unless_publishers_pause():
    publisher, group = constant(1, 2, pause=False)
    with pytest.raises(UnstableError, match="'w' is offered 1000 events/s"):
        td.simulate(system(publisher, f"w: {group}"), events=1_000)


def test_every_group_of_a_count_blocks_its_publishers():
    """An event leaves when there is room at all three: later than with one, as if listed."""
    seldom = "p: " + PUBLISHER.replace("20/s", "12/s")
    each = {
        "one": f"w: {BLOCKING}",
        "counted": f"w: {BLOCKING[:-1]}, count: 3}}",
        "listed": ", ".join(f"w{number}: {BLOCKING}" for number in range(3)),
    }
    rows = {
        name: td.simulate(
            system(seldom, subscribers), seed=seed, replications=8, events=10_000
        ).subscribers
        for seed, (name, subscribers) in enumerate(each.items())
    }
    mean_s, error_s = (
        {name: found[column].mean() for name, found in rows.items()}
        for column in ("delay_mean_s", "delay_mean_se_s")
    )
    assert mean_s["counted"] - mean_s["one"] > 4 * (error_s["counted"] + error_s["one"])
    assert abs(mean_s["counted"] - mean_s["listed"]) < 4 * (error_s["counted"] + error_s["listed"])
