"""Groups that redeliveries keep busy: what they can do at most, and which have collapsed."""

from __future__ import annotations

import pytest

import tidings as td
from tidings.simulation.collapse import collapsed_groups, saturated_rate
from tidings.simulation.network import compile_system

SYSTEM = """
tidings: 1
lifetime: 100ms
brokers: {{hub: {{service: {{exponential: 1ms}}}}}}
publishers: {{p: {{at: hub, every: {{exponential: 20ms}}, content: {{event: {{}}}}}}}}
subscribers:
  slow: {{at: hub, wants: {{}}, processing: {processing}, consumers: {{count: 3, {group}}}}}
  plain: {{at: hub, wants: {{}}}}
"""


def _system(group: str, processing: str = "{exponential: 50ms}") -> td.System:
    return td.loads(SYSTEM.format(group=group, processing=processing))


@pytest.mark.parametrize(
    ("group", "per_s"),
    [
        ("prefetch: 1", 60.0),  # all that three members can do
        ("prefetch: 5, ack_wait: 30s", 60.0),
        ("prefetch: 4, ack_wait: 1s", 60.0),  # four take 200 ms, never longer
        # Each is handed out again while it waits for the one before it, and handled twice.
        ("prefetch: 2, ack_wait: 75ms, deliveries: 2", 30.0),
    ],
)
def test_a_group_with_constant_services_that_always_has_work(group, per_s):
    (own,) = compile_system(_system(group, "50ms")).groups
    assert saturated_rate(own) == pytest.approx(per_s, rel=0.03)


def test_a_group_that_prefetches_more_than_it_can_acknowledge_collapses():
    said = collapsed_groups(_system("prefetch: 5, ack_wait: 60ms"))
    assert list(said) == ["slow"]
    assert "longer 'ack_wait' or a smaller 'prefetch'" in said["slow"]


@pytest.mark.parametrize(
    "group",
    [
        "prefetch: 5",
        "prefetch: 5, ack_wait: 10s",
        "prefetch: 5, ack_wait: 60ms, buffer: 3",  # what is dropped keeps nobody busy
    ],
)
def test_others_do_not(group):
    assert collapsed_groups(_system(group)) == {}


def test_a_group_that_may_stay_well_for_long_is_left_to_longer_runs():
    text = SYSTEM.replace("20ms", "10.549ms").replace("count: 3", "count: 6")
    group = "prefetch: 8, ack_wait: 339ms"
    system = td.loads(text.format(group=group, processing="{uniform: [0ms, 100ms]}"))
    assert collapsed_groups(system, seed=1) == {}


def test_who_is_offered_too_much_anyway_is_not_said_to_collapse():
    assert collapsed_groups(_system("prefetch: 5, ack_wait: 60ms", "{exponential: 70ms}")) == {}
