"""Catching up against what is known exactly: busy periods, and constant arrivals by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tidings as td
from tidings.errors import InvalidInputError, UnsupportedError
from tidings.simulation.catching_up import PATIENCE

SERVICE_S, LOAD = 0.01, 0.8
T_95 = 1.97  # of some two hundred replications


def system(subscriber, *, every="{rate: 80/s}", broker="{}", lifetime="1s"):
    return td.loads(f"""
        tidings: 1
        lifetime: {lifetime}
        brokers: {{b: {broker}}}
        publishers: {{p: {{at: b, every: {every}, content: {{event: {{x: 1}}}}}}}}
        subscribers: {{w: {{at: b, wants: {{x: 1}}{subscriber}}}}}
    """)


def group(consumers=1, processing="{exponential: 10ms}", **more):
    return system(f", processing: {processing}, consumers: {consumers}", **more)


EXPONENTIAL = {
    "consumer group": (group(), "w"),
    "subscriber": (system(", processing: {exponential: 10ms}"), "w"),
    "broker": (system("", broker="{service: {exponential: 10ms}}"), "b"),
}


@pytest.mark.statistical
@pytest.mark.parametrize("what", EXPONENTIAL)
def test_from_n_waiting_takes_n_busy_periods(what):
    # M/M/1: one waits less after each busy period, of mean S/(1 − ρ). Whoever is idle when the
    # queue is stopped takes the first at once, so that with probability 1 − ρ one is gone already.
    model, queue = EXPONENTIAL[what]
    found = td.catch_up(model, queue, backlog=60, replications=200, seed=3)
    assert (found.queue.what, found.backlog, found.usual) == (what, 60.0, 4)  # ρ²/(1 − ρ) = 3.2
    busy_s = SERVICE_S / (1.0 - LOAD)
    exact_s = (60 - 4) * busy_s - (1.0 - LOAD) * busy_s
    standard_error = found.gone_error_s / T_95
    assert standard_error < 0.05 * exact_s
    assert abs(found.gone_s - exact_s) < 4.0 * standard_error
    assert found.fluid_s == pytest.approx((60 - 4) * busy_s, rel=1e-9)


@pytest.fixture(scope="module")
def constant():
    model = group(1, "{deterministic: 10ms}", every="{deterministic: 12.5ms}")
    return td.catch_up(model, "w", stopped_s=6.0, replications=4)


def test_constant_arrivals_by_hand(constant):
    # Event k of those that come in the stop T is done (k + 1) S after it, and came at k·a after its
    # start: late while T + (k + 1) S − k·a > L. The phase of arrivals is worth one event.
    late = (6.0 + 0.010 - 1.0) / (0.0125 - 0.010)
    assert constant.late == pytest.approx(late, abs=2.0)
    assert constant.backlog == pytest.approx(6.0 / 0.0125, abs=1.0)
    assert constant.usual == 0
    assert constant.gone_s == pytest.approx((6.0 - 0.0125) / 0.0025 * 0.010, abs=0.05)
    (row,) = constant.subscribers
    assert row.wanted == pytest.approx((6.0 + constant.gone_s) / 0.0125, abs=2.0)
    assert row.lost == 0.0


def test_the_curve_of_constant_arrivals_is_a_line(constant):
    times_s, backlogs, _ = np.transpose(constant.curve)
    falling = times_s < 0.95 * constant.gone_s
    assert falling.sum() > 40
    by_hand = constant.backlog - times_s[falling] * (100.0 - 80.0)
    assert np.abs(backlogs[falling] - by_hand).max() < 3.0
    assert backlogs[times_s > 1.05 * constant.gone_s].max() == 0.0


@pytest.mark.parametrize(
    ("queue", "at_once", "every_s", "usual"), [("w", 1, 0.013, 0), ("b", 4, 0.051, 2)]
)
def test_it_is_gone_at_the_very_event_that_leaves_no_more_than_usual(
    queue, at_once, every_s, usual
):
    # Nobody works at the stop, and the last of 60 have just come: k services later k + 1 are taken
    # and ⌊k S/a⌋ times as many as come at once have come. One event more or less is some 45 ms. Of
    # four, 3, 2, 1 wait for 10 ms each: 1.2 in the mean.
    service_s, waiting = 0.010, 60
    law = f"{{deterministic: {service_s}s}}"
    batch = f"{{every: {{deterministic: {every_s}s}}, batch: {{{at_once}: 1}}}}"
    of_broker = f"{{service: {law}}}" if queue == "b" else "{}"
    of_group = f", processing: {law}, consumers: 1" if queue == "w" else ""
    model = td.loads(f"""
        tidings: 1
        brokers: {{b: {of_broker}}}
        publishers: {{p: {{at: b, publishes: {batch}, content: {{event: {{x: 1}}}}}}}}
        subscribers: {{w: {{at: b, wants: {{}}{of_group}}}}}
    """)
    found = td.catch_up(model, queue, backlog=waiting, replications=20)
    assert found.usual == usual
    services = next(
        k
        for k in range(1000)
        if waiting + at_once * math.floor(k * service_s / every_s) - (k + 1) <= usual
    )
    assert found.gone_s == pytest.approx(services * service_s, abs=1e-9)


def test_the_hottest_partition_is_gone_last():
    shared = group(2, "{deterministic: 20ms}")
    partitions = "{count: 2, shares: [0.6, 0.4]}"
    hot = group(f"{{count: 2, partitions: {partitions}}}", "{deterministic: 20ms}")
    one, two = (td.catch_up(each, "w", stopped_s=20.0, replications=8) for each in (shared, hot))
    assert one.fluid_s == pytest.approx((one.backlog - one.usual) / (100.0 - 80.0), rel=1e-9)
    waiting = two.backlog - two.usual
    assert two.fluid_s == pytest.approx(0.6 * waiting / (50.0 - 0.6 * 80.0), rel=1e-9)
    for each in (one, two):
        assert abs(each.gone_s - each.fluid_s) < 4.0 * each.gone_error_s
        assert each.gone_error_s < 0.4 * each.gone_s
    assert two.gone_s > 3.0 * one.gone_s


@pytest.mark.parametrize("consumers", ["{count: 1, prefetch: 0}", "{count: 1, prefetch: 500}"])
def test_what_is_handed_out_at_once_is_not_gone_before_it_is_handled(consumers):
    """At the moment that a group goes on all that waited is on its way, and nothing waits."""
    pushed = group(consumers, "{exponential: 40ms}", every="{rate: 20/s}")
    found = td.catch_up(pushed, "w", backlog=200, replications=20)
    assert found.fluid_s == pytest.approx((200 - found.usual) / (25.0 - 20.0), rel=0.01)
    assert abs(found.gone_s - found.fluid_s) < 2.0 * found.gone_error_s
    assert found.gone_error_s < 0.2 * found.fluid_s


def test_redelivery_after_a_stop_makes_a_group_slower_than_its_capacity():
    handler = "{deterministic: 28ms}"
    calm = group("{count: 2, prefetch: 10, ack_wait: 400ms}", handler, every="{rate: 20/s}")
    hasty = group("{count: 2, prefetch: 10, ack_wait: 40ms, deliveries: 3}", handler,
                  every="{rate: 20/s}")  # fmt: skip
    slow, quick = (td.catch_up(e, "w", stopped_s=10.0, replications=6) for e in (hasty, calm))
    assert quick.gone_s == pytest.approx(200.0 / (2 / 0.028 - 20.0), rel=0.2)
    assert slow.gone_s > 3.0 * quick.gone_s
    assert slow.fluid_s is None


def test_what_is_delivered_again_for_ever_is_never_gone():
    hasty = group("{count: 2, prefetch: 10, ack_wait: 40ms}", "{deterministic: 28ms}",
                  every="{rate: 14/s}")  # fmt: skip
    found = td.catch_up(hasty, "w", stopped_s=30.0, replications=2)
    assert (found.caught_up, found.gone_s) == (0, math.inf)
    assert found.waited_s == pytest.approx(PATIENCE * (30.0 * 14 + 100) / (2 / 0.028 - 14))
    assert found.curve[-1][1] > found.backlog


def test_an_overloaded_queue_never_catches_up():
    found = td.catch_up(group(every="{rate: 110/s}"), "w", backlog=500)
    assert (found.gone_s, found.replications, found.curve) == (math.inf, 0, ())
    assert found.queue.is_overloaded


def test_what_expires_in_the_queue_is_gone_sooner_and_lost():
    model = group(1, "{deterministic: 10ms}", lifetime="500ms\n        expired: in queue")
    found = td.catch_up(model, "w", stopped_s=6.0, replications=4)
    (row,) = found.subscribers
    assert found.fluid_s is None
    assert found.gone_s < 0.2 * (6.0 * 80.0) / 20.0
    assert row.lost > 5.0 * 80.0


def test_members_that_crash_meanwhile_stay_stopped():
    failing = "{a: {failure: {up: {deterministic: 400ms}, down: {deterministic: 100ms}}}, b: {}}"
    model = group(f"{{members: {failing}}}", "{deterministic: 10ms}")
    found = td.catch_up(model, "w", stopped_s=5.0, replications=6)
    assert found.backlog == pytest.approx(400.0, abs=60.0)  # none was handled in the stop
    assert found.gone_s == pytest.approx(400.0 / (180.0 - 80.0), rel=0.2)


@pytest.mark.parametrize(
    ("queue", "state", "said"),
    [
        ("nobody", {"backlog": 5}, "has no queue"),
        ("b", {"backlog": 5}, "has no service time"),
        ("w", {"backlog": 5, "stopped_s": 1.0}, "either backlog"),
        ("w", {}, "either backlog"),
        ("w", {"backlog": 0}, "1 event or more"),
        ("w", {"stopped_s": -1.0}, "a time above 0"),
        ("w", {"backlog": 5, "replications": 1}, "2 or more"),
        ("w", {"backlog": 11}, "never wait there"),
    ],
)
def test_what_makes_no_sense_is_refused(queue, state, said):
    with pytest.raises(InvalidInputError, match=said):
        td.catch_up(group("{count: 1, buffer: 10}"), queue, **state)


def test_a_backlog_that_is_too_long_to_simulate_is_answered_as_a_flow():
    with pytest.raises(InvalidInputError, match=r"as a steady flow it takes 5\.79 d"):
        td.catch_up(group("{count: 1}", every="{rate: 80/s}"), "w", backlog=10_000_000)


def test_a_broker_of_another_discipline_is_refused_by_name():
    broker = "{service: {exponential: 10ms}, discipline: processor-sharing}"
    with pytest.raises(UnsupportedError, match="'b' serves events other than first come"):
        td.catch_up(system("", broker=broker), "b", backlog=5)
