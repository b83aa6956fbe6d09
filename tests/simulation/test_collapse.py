"""Groups that redeliveries keep busy: what they can do at most, and which have collapsed."""

from __future__ import annotations

import pytest

import tidings as td
from tidings.simulation.collapse import collapsed_groups
from tidings.simulation.network import compile_system
from tidings.simulation.unsteady import saturated_rate

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
        ("prefetch: 0, ack_wait: 1s", 0.0),  # the more wait, the more is handed out again
        ("prefetch: 0, ack_wait: 1s, deliveries: 2", 30.0),  # ... but twice at most
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


# Well for hours of its own time, until a backlog: it then handles 92 of the 95 events a second.
METASTABLE = SYSTEM.replace("20ms", "10.549ms").replace("count: 3", "count: 6").replace(
    "lifetime: 100ms", "lifetime: 500ms"
)  # fmt: skip


def _metastable(ack_wait: str) -> td.System:
    group = f"prefetch: 8, ack_wait: {ack_wait}"
    return td.loads(METASTABLE.format(group=group, processing="{uniform: [0ms, 100ms]}"))


def test_an_error_reaches_to_what_a_group_gets_that_never_leaves_a_backlog():
    outcome = td.simulate(_metastable("400ms"), replications=5, duration_s=500.0, warmup_s=100.0)
    rows = outcome.subscribers.set_index("subscriber")
    assert rows.loc["slow", "on_time"] > 0.5
    assert rows.loc["slow", "error"] >= rows.loc["slow", "on_time"]
    assert rows.loc["plain", "error"] < 0.01
    (remark,) = [each for each in outcome.remarks if each.kind == "no steady state"]
    assert remark.where == ("slow",)
    assert 80.0 < remark.size < 1000.0 / 10.549


def test_other_runs_of_such_a_group_are_within_its_error():
    """Some of them collapse, and what was seen before that says nothing of them."""
    said = td.predict(_metastable("400ms"), seconds=4.0, causes=False).subscribers.iloc[0]
    other = td.simulate(_metastable("400ms"), seed=99, replications=4, duration_s=4e3, warmup_s=1e3)
    row = other.subscribers.iloc[0]
    assert abs(said["on_time"] - row["on_time"]) <= said["error"] + 2.0 * row["on_time_se"]


def test_a_group_that_has_collapsed_in_all_runs_gets_nothing_for_certain():
    outcome = td.simulate(_metastable("250ms"), replications=5, duration_s=500.0, warmup_s=500.0)
    row = outcome.subscribers.iloc[0]
    assert row["on_time"] == 0.0
    assert row["error"] == pytest.approx(0.001)


def test_who_leaves_every_backlog_keeps_the_error_that_was_seen():
    outcome = td.simulate(_metastable("800ms"), replications=5, duration_s=500.0, warmup_s=100.0)
    assert outcome.subscribers["error"].max() < 0.05
    assert "no steady state" not in [each.kind for each in outcome.remarks]
