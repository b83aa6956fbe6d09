"""The cheapest mix of speeds: never dearer than one factor for all, proven, by costs as given."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

import tidings as td
from tidings.errors import InvalidInputError
from tidings.planning.evidence import MEETS, Target, foretell
from tidings.planning.mix import cheapest_mix
from tidings.theory.answer import network_of

# Two branches behind a hub; only the subscriber of one of them asks for anything.
BRANCHES = """
tidings: 1
lifetime: 1s
brokers:
  hub: {service: {exponential: 50ms}}
  busy: {service: {exponential: 80ms}}
  calm: {service: {exponential: 80ms}}
links:
  - {between: [hub, busy]}
  - {between: [hub, calm]}
publishers:
  p: {at: hub, every: {exponential: 100ms}, content: {event: {topic: t}}}
subscribers:
  asks: {at: busy, wants: {}, target: 0.99}
  other: {at: calm, wants: {}}
"""


LINE = """
tidings: 1
lifetime: 1s
brokers: {a: {service: {exponential: 80ms}}, b: {service: {exponential: 80ms}},
          c: {service: {exponential: 80ms}}}
links: [{between: [a, b]}, {between: [b, c]}]
publishers: {p: {at: a, every: {exponential: 100ms}, content: {event: {topic: t}}}}
subscribers: {s: {at: c, wants: {}, target: 0.99}}
"""


# Two branches of two brokers each.
TREE = """
tidings: 1
lifetime: 1s
brokers:
  hub: {service: {exponential: 60ms}}
  west: {service: {exponential: 60ms}}
  east: {service: {exponential: 70ms}}
  a: {service: {exponential: 60ms}}
  b: {service: {exponential: 70ms}}
links:
  - {between: [hub, west]}
  - {between: [hub, east]}
  - {between: [west, a]}
  - {between: [east, b]}
publishers: {p: {at: hub, every: {exponential: 100ms}, content: {event: {topic: t}}}}
subscribers:
  at a: {at: a, wants: {}, target: 0.95}
  at b: {at: b, wants: {}, target: 0.9}
  at west: {at: west, wants: {}, target: 0.99}
"""


def test_only_who_stands_between_is_made_faster():
    mix = cheapest_mix(td.loads(BRANCHES), Target())
    assert mix.verdict == MEETS
    assert {row["broker"] for row in mix.brokers} <= {"hub", "busy"}
    assert mix.alike_cost is not None
    assert mix.cost < 0.7 * mix.alike_cost
    assert td.predict(mix.plan, by="theory").subscribers["on_time"].iloc[0] >= 0.99


def test_one_queue_is_as_fast_as_its_closed_form_asks():
    """P[T > t] = exp(−(μ − λ)t) of M/M/1: the least μ for 99 % within t is λ + ln(100)/t."""
    text = BRANCHES.replace("  hub: {service: {exponential: 50ms}}", "  hub: {service: 0s}")
    mix = cheapest_mix(td.loads(text), Target())
    (row,) = mix.brokers
    least = (10.0 + math.log(100.0)) * 0.08
    assert row["broker"] == "busy"
    assert least * (1.0 - 1e-3) <= row["size"] <= least * 1.04
    assert row["load"] == pytest.approx(0.8)


def test_what_is_dearer_is_spared():
    system = td.loads(BRANCHES)
    sizes = [
        {row["broker"]: row["size"] for row in cheapest_mix(system, Target(), costs).brokers}
        for costs in ({"hub": 20.0}, {"busy": 20.0})
    ]
    assert sizes[0].get("hub", 1.0) < sizes[1].get("hub", 1.0)
    assert sizes[0]["busy"] > sizes[1]["busy"]


def test_costs_never_lead_to_a_dearer_mix_than_none():
    system, costs = td.loads(TREE), {"a": 10.0, "hub": 10.0}
    same, told = cheapest_mix(system, Target()), cheapest_mix(system, Target(), costs)
    assert told.verdict == MEETS
    assert told.cost <= sum(costs.get(r["broker"], 1.0) * (r["size"] - 1.0) for r in same.brokers)


@pytest.mark.parametrize("dearer", [1.0, 5.0])
def test_the_cheapest_mix_of_two_queues_is_that_of_their_closed_form(dearer):
    """Two M/M/1 in a row: times in them are independent, exponential of rate μ − λ each."""
    system = td.loads(LINE.replace("c: {service: {exponential: 80ms}}", "c: {service: 0s}"))
    sizes = np.arange(1.0, 4.0, 0.0071)
    one, other = np.meshgrid(sizes / 0.08 - 10.0, sizes / 0.08 - 10.0 + 1e-6)
    late = (one * np.exp(-other) - other * np.exp(-one)) / (one - other)
    costs = dearer * (one - 2.5) * 0.08 + (other - 2.5) * 0.08
    least = costs[late <= 0.01].min()
    mix = cheapest_mix(system, Target(), {"a": dearer})
    assert least * (1.0 - 1e-3) <= mix.cost <= 1.06 * least  # 5 % more speed to be proven


def test_overload_is_relieved_first():
    system = td.loads(BRANCHES.replace("exponential: 100ms", "exponential: 33ms"))
    mix = cheapest_mix(system, Target())
    assert mix.verdict == MEETS
    assert {row["broker"] for row in mix.brokers} >= {"hub", "busy"}


def test_what_cannot_be_reached_is_said():
    system = td.loads(BRANCHES.replace("[hub, busy]", "[hub, busy], reliability: 0.9"))
    mix = cheapest_mix(system, Target())
    assert mix.verdict != MEETS
    assert mix.alike is None


def test_what_cannot_be_reached_is_tried_with_all_brokers_as_fast_as_can_be_alone():
    """Faster brokers do nobody harm, so that no mix need be tried where that misses."""
    said = []
    system = td.loads(BRANCHES.replace("[hub, busy]", "[hub, busy], reliability: 0.9"))
    cheapest_mix(system, Target(), progress=said.append)
    assert len(said) == 2


def test_a_mix_is_no_dearer_than_equally_busy_brokers():
    """Three alike in a row: by symmetry none should be faster than another, nearly."""
    mix = cheapest_mix(td.loads(LINE), Target())
    assert mix.alike_cost is not None
    assert mix.cost <= mix.alike_cost
    assert mix.verdict == MEETS


@pytest.mark.parametrize("slowest", [0.08 / 1.3, 0.08 / 1.6], ids=["a little", "far"])
def test_a_mix_that_only_more_speed_proves_is_no_dearer_than_one_factor(slowest, monkeypatch):
    """Evidence that asks for more speed of every broker than theory does."""

    def asks_more(system, target, play=None):
        services = [each.service.with_stored(0).mean_s for each in system.brokers]
        verdict = MEETS if max(services) <= slowest else "undecided"
        return SimpleNamespace(verdict=verdict, outcome=foretell(system))

    monkeypatch.setattr("tidings.planning.mix.weigh", asks_more)
    costs = {"a": 1.0, "b": 1.0, "c": 5.0}  # the mix spares what is dear
    mix = cheapest_mix(td.loads(LINE), Target(), costs)
    assert mix.verdict == MEETS
    assert len(mix.brokers) == 3
    assert mix.cost <= mix.alike_cost
    assert mix.alike >= 0.08 / slowest


def test_every_mix_is_asked_for_once_and_its_rows_ask_for_none(monkeypatch):
    asked = []

    def counted(system):
        asked.append(system)
        return network_of(system)

    monkeypatch.setattr("tidings.planning.mix.network_of", counted)
    foretold = []
    monkeypatch.setattr(
        "tidings.planning.mix.foretell", lambda system: foretold.append(system) or foretell(system)
    )
    said = []
    mix = cheapest_mix(td.loads(BRANCHES), Target(), progress=said.append)
    assert len(foretold) == 1  # the present loads
    assert len(asked) == sum(each.startswith("mix ") for each in said) + 1  # and the base of all
    loads = mix.evidence.outcome.brokers.set_index("broker")["utilisation"]
    for row in mix.brokers:
        assert row["load_after"] == pytest.approx(loads[row["broker"]], rel=1e-12)
        assert row["load_after"] == pytest.approx(row["load"] / row["size"], rel=1e-12)


def test_costs_are_of_brokers_and_above_0():
    system = td.loads(BRANCHES)
    with pytest.raises(InvalidInputError, match="no broker 'nobody'"):
        cheapest_mix(system, Target(), {"nobody": 2.0})
    with pytest.raises(InvalidInputError, match="wants a number above 0"):
        cheapest_mix(system, Target(), {"hub": 0.0})
