"""A consumer group that cannot keep up gets nothing in time; nobody else is the worse for it."""

from __future__ import annotations

import math

import pytest

import tidings as td
from tidings.errors import UnstableError
from tidings.model.causes import Cause, causes_of, total_costs

SYSTEM = """
tidings: 1
lifetime: 100ms
brokers: {{hub: {{service: {{exponential: 8ms}}}}}}
publishers: {{p: {{at: hub, every: {{exponential: 20ms}}, content: {{event: {{}}}}}}}}
subscribers:
  slow: {{at: hub, wants: {{}}, processing: {{exponential: 50ms}}, consumers: {slow}}}
  quick: {{at: hub, wants: {{}}, processing: {{exponential: 1ms}}, consumers: {{count: 2}}}}
  plain: {{at: hub, wants: {{}}}}
"""


def test_others_are_answered_as_if_the_group_took_no_time():
    outcome = td.predict(td.loads(SYSTEM.format(slow="{count: 2}")), seconds=1.0)
    rows = outcome.subscribers.set_index("subscriber")
    assert rows.loc["slow", ["on_time", "late", "lost_overload", "error"]].tolist() == [0, 0, 1, 0]
    assert math.isnan(rows.loc["slow", "delay_mean_s"])
    in_time = 1.0 - math.exp(-(125.0 - 50.0) * 0.1)  # M/M/1
    assert abs(rows.loc["plain", "on_time"] - in_time) <= rows.loc["plain", "error"]
    assert rows.loc["quick", "on_time"] == pytest.approx(in_time, abs=0.01)
    assert total_costs(outcome)[0][0] == Cause("own queue", "slow")
    (remark,) = [each for each in outcome.remarks if each.kind == "overload"]
    assert remark.where == ("slow",)
    assert "2 members can handle 40: add members" in remark.what


def test_a_partition_that_is_too_busy_is_not_helped_by_more_members():
    hot = "{count: 4, partitions: {count: 4, shares: [0.7, 0.1, 0.1, 0.1]}}"
    outcome = td.predict(td.loads(SYSTEM.format(slow=hot)), seconds=1.0)
    (remark,) = [each for each in outcome.remarks if each.kind == "overload"]
    assert "spread the keys over more partitions" in remark.do
    row = outcome.subscribers.set_index("subscriber").loc["slow"]
    assert row["by"] == "simulation"
    assert row["on_time"] > 0.2  # of what the other members get
    assert row["lost_overload"] == pytest.approx(0.7, abs=0.01)


def test_what_grows_without_limit_for_another_reason_has_no_answer(monkeypatch):
    """Such as events that are delivered again and again, to a group that could do its work once."""

    def grows(*_):
        raise UnstableError("delivered again and again")

    monkeypatch.setattr("tidings.prediction.predict._simulated", grows)
    with pytest.raises(UnstableError, match="again and again"):
        td.predict(td.loads(SYSTEM.format(slow="{count: 3, ack_wait: 60ms}")), seconds=1.0)


def test_a_group_that_redeliveries_keep_busy_gets_nothing_in_time():
    system = td.loads(SYSTEM.format(slow="{count: 3, ack_wait: 60ms, prefetch: 5}"))
    outcome = td.predict(system, seconds=1.0)
    rows = outcome.subscribers.set_index("subscriber")
    assert rows.loc["slow", ["on_time", "lost_overload", "error"]].tolist() == [0, 1, 0]
    assert [cause.words for cause, *_ in causes_of(outcome)["slow"]] == [
        "redeliveries of slow", "the queue of slow",
    ]  # fmt: skip
    assert rows.loc["plain", "on_time"] > 0.9


@pytest.mark.parametrize(
    ("group", "cause"),
    [
        ("{members: {a: {processing: 1ms}, b: {processing: {exponential: 90ms}}, c: {}}, "
         "partitions: {count: 2}}", "the slow member b of slow"),
        ("{count: 4, partitions: {count: 4, shares: [0.7, 0.1, 0.1, 0.1]}}",
         "a hot partition of slow"),
        ("{count: 2, ack_wait: 60ms}", "the queue of slow"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_an_overloaded_group_is_named(group, cause):
    outcome = td.predict(td.loads(SYSTEM.format(slow=group)), seconds=1.0)
    assert cause in [named.words for named, *_ in causes_of(outcome)["slow"]]
