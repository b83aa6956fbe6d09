from __future__ import annotations

import math

import numpy as np
import pytest

from tidings.errors import UnsupportedError
from tidings.model import reading
from tidings.planning.evidence import foretell
from tidings.theory import other_homes
from tidings.theory.other_homes import Elsewhere

INVERTED = 2e-6  # of a share: what the inversion of smooth transforms leaves
FAINTLY = 1e-7  # of a share: what events do that go faintly where nobody wants them

QUEUE = """
tidings: 1
lifetime: 1s
brokers: {hub: {service: {exponential: 100ms}}, spare: {service: {exponential: 50ms}}}
links: [{between: [hub, spare]}]
publishers: {p: {at: hub, every: {exponential: 200ms}, content: {event: {topic: a}}}}
subscribers: {s: {at: hub, wants: {topic: a}}}
"""
LINE = """
tidings: 1
lifetime: 400ms
brokers:
  a: {service: {exponential: 30ms}}
  b: {service: {exponential: 50ms}}
  c: {service: {exponential: 40ms}}
links:
  - {between: [a, b], delay: {exponential: 20ms}, reliability: 0.98}
  - {between: [b, c], delay: {exponential: 30ms}}
publishers:
  p: {at: a, every: {exponential: 150ms}, content: {event: {topic: x}}}
  q: {at: c, every: {gamma: {mean: 200ms, scv: 2}}, content: {event: {topic: y}}}
subscribers:
  sx: {at: b, wants: {topic: x}, count: 3}
  tx: {at: c, wants: {topic: x}, link: {delay: {exponential: 10ms}}}
  sy: {at: a, wants: {topic: y}}
"""


def on_time(system):
    return foretell(system).subscribers["on_time"].to_numpy()


def test_at_home_theory_says_what_it_says_of_the_whole_system():
    system = reading.loads(LINE)
    around = Elsewhere(system=system, movers=(0, 1, 2))
    assert around.shares_at(["b", "c", "a"]) == pytest.approx(on_time(system), abs=1e-12)
    assert around.shares_near(["b", "c", "a"]) == pytest.approx(on_time(system), abs=FAINTLY)


def test_a_move_that_changes_no_flow_is_known_without_predicting_it():
    """Behind b somebody else wants x, so that it comes to b in any case."""
    system = reading.loads(LINE.replace("sx: {at: b", "sx: {at: c"))
    around = Elsewhere(system=system, movers=(0,))
    moved = on_time(reading.loads(LINE))
    assert around.shares_near(["b"]) == pytest.approx(moved, abs=FAINTLY)
    # Where the present streams are as bursty as they are after the move, theory is exact, too.
    assert around.shares_at(["b"]) == pytest.approx(moved, abs=1e-12)


def test_more_arrivals_do_what_slower_services_do_times_the_load():
    """M/M/1: 1 − exp(−(μ − λ) t) are in time, of which ∂/∂λ is s ∂/∂(log s)."""
    around = Elsewhere(system=reading.loads(QUEUE), movers=(0,))
    now, _ = around.shares
    by_arrivals, _ = around.by_arrivals

    def in_time(service_s):
        return 1.0 - math.exp(-(1.0 / service_s - 5.0) * 1.0)

    step = other_homes._SLOWER
    expected = (in_time(0.1 * (1.0 + step)) - in_time(0.1)) / step * 0.1
    assert now == pytest.approx([in_time(0.1)], abs=INVERTED)
    assert by_arrivals[0] == pytest.approx([expected], abs=2 * INVERTED * 0.1 / step)
    assert by_arrivals[0] == pytest.approx([-math.exp(-5.0)], rel=10.0 * step)  # ∂/∂λ itself
    assert by_arrivals[1] == pytest.approx([0.0], abs=2 * INVERTED)  # nobody goes there


def test_a_broker_without_events_is_looked_at_with_its_service():
    """Behind a hub in an M/M/1 queue of its own: both times together, as if it had moved there."""
    around = Elsewhere(system=reading.loads(QUEUE), movers=(0,))
    fast, slow = 5.0, 20.0  # 1/s: what is left of the hub, and the spare one while it is empty
    both = 1.0 - (slow * math.exp(-fast) - fast * math.exp(-slow)) / (slow - fast)
    assert around.shares[1][0] == pytest.approx([1.0 - math.exp(-5.0), both], abs=INVERTED)


def test_estimates_put_single_moves_in_the_order_of_predictions():
    system = reading.loads(LINE)
    around, now = Elsewhere(system=system, movers=(0, 1, 2)), ("b", "c", "a")
    moves = [
        (*now[:row], broker, *now[row + 1 :])
        for row in range(3)
        for broker in "abc"
        if broker != now[row]
    ]
    guessed, found = (
        sorted(moves, key=lambda each: shares(each) @ np.array([3.0, 1.0, 1.0]))
        for shares in (around.shares_near, around.shares_at)
    )
    assert guessed == found


def test_what_theory_does_not_handle_is_refused():
    system = reading.loads(
        LINE.replace("{exponential: 30ms}}\n  b", "{exponential: 30ms}, buffer: 3}\n  b")
    )
    with pytest.raises(UnsupportedError):
        _ = Elsewhere(system=system, movers=(0,)).shares
