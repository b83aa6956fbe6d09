from __future__ import annotations

import dataclasses

import pytest

from tidings.model.behaviour import Channel
from tidings.model.content import ContentRow, ContentTable
from tidings.model.filters import as_filter
from tidings.model.laws import Deterministic, Exponential
from tidings.model.outcome import Outcome, table
from tidings.model.system import Broker, Link, Publisher, Subscriber, System
from tidings.reporting.reasons import Deadline, explain


def chain():
    """Publishers at a (3/s) and b (1/s), one subscriber at c: the ways are a-b-c and b-c."""
    content = ContentTable(table=(ContentRow(probability=1.0, event={"topic": "x"}),))
    return System(
        version=1,
        lifetime=Deterministic(value_s=1.0),
        brokers=tuple(Broker(name=name) for name in "abc"),
        links=(
            Link(between=("a", "b"), there=Channel(delay=Exponential(mean_s=0.2), reliability=0.5)),
            Link(between=("c", "b"), back=Channel(delay=Exponential(mean_s=0.1), reliability=0.8)),
        ),
        publishers=(
            Publisher(name="far", at="a", every=Exponential(mean_s=1 / 3), content=content),
            Publisher(name="near", at="b", every=Exponential(mean_s=1.0), content=content),
        ),
        subscribers=(Subscriber(name="s", at="c", wants=as_filter({"topic": "x"})),),
    )


def outcome(*, pairs=(), links=()):
    waits = {"a": 0.5, "b": 0.25, "c": 0.0}
    return Outcome(
        source="measured",
        subscribers=table("subscribers", [{"subscriber": "s", "late": 0.1, "on_time": 0.3}]),
        brokers=table(
            "brokers",
            [{"broker": b, "wait_mean_s": w, "service_mean_s": 0.01} for b, w in waits.items()],
        ),
        pairs=table("pairs", pairs),
        links=table("links", links),
    )


def test_the_parts_of_a_mean_delay_are_weighted_by_what_is_delivered():
    found = explain(chain(), outcome()).subscribers["s"]
    # Of 3/s from afar 3 × 0.5 × 0.8 = 1.2 arrive, of 1/s from near 0.8: shares 0.6 and 0.4.
    parts = {(part.kind, part.place): part.mean_s for part in found.parts}
    assert parts == pytest.approx(
        {
            ("wait", "a"): 0.6 * 0.5,
            ("service", "a"): 0.6 * 0.01,
            ("link", "a → b"): 0.6 * 0.2,
            ("wait", "b"): 0.25,
            ("service", "b"): 0.01,
            ("link", "b → c"): 0.1,
            ("service", "c"): 0.01,
        },
        rel=1e-12,
    )
    assert [part.mean_s for part in found.parts] == sorted(parts.values(), reverse=True)


def test_losses_are_shares_of_the_wanted_and_the_first_link_takes_first():
    found = explain(chain(), outcome())
    losses = dict(found.subscribers["s"].losses)
    assert losses["a → b"] == pytest.approx(3 * 0.5 / 4, rel=1e-12)
    assert losses["b → c"] == pytest.approx((1.5 + 1.0) * 0.2 / 4, rel=1e-12)
    assert found.lost_on["a → b"] == pytest.approx(0.375, rel=1e-12)


def test_what_the_outcome_says_of_a_link_goes_before_the_description():
    seen = {"source": "a", "target": "b", "lost": 0.0, "delay_mean_s": 0.4}
    found = explain(chain(), outcome(links=[seen])).subscribers["s"]
    assert dict(found.losses)["a → b"] == 0.0
    part = next(each for each in found.parts if each.place == "a → b")
    assert part.mean_s == pytest.approx(0.75 * 0.4, rel=1e-12)


def test_late_events_pass_the_brokers_on_their_ways():
    found = explain(chain(), outcome())
    assert found.late_through == pytest.approx({"a": 0.75, "b": 1.0, "c": 1.0}, rel=1e-12)


def test_pairs_say_whose_events_are_late():
    pairs = [
        {"publisher": "far", "subscriber": "s", "late": 0.1},
        {"publisher": "near", "subscriber": "s", "late": 0.7},
    ]
    found = explain(chain(), outcome(pairs=pairs))
    assert found.late_through["a"] == pytest.approx(0.3 / (0.3 + 0.7), rel=1e-12)


def test_deadlines_are_those_of_the_wanted_events():
    system = chain()
    rows = (
        ContentRow(probability=0.5, event={"topic": "x"}, lifetime=Deterministic(value_s=0.2)),
        ContentRow(probability=0.25, event={"topic": "x", "more": 1}),
        ContentRow(probability=0.25, event={"topic": "y"}, lifetime=Deterministic(value_s=9.0)),
    )
    far = dataclasses.replace(system.publishers[0], content=ContentTable(table=rows))
    system = dataclasses.replace(system, publishers=(far,))
    found = explain(system, outcome()).subscribers["s"].deadlines
    assert [each.lifetime_s for each in found] == [0.2, 1.0]
    assert [each.share for each in found] == pytest.approx([2 / 3, 1 / 3], rel=1e-12)


def test_a_subscriber_may_be_stricter_than_the_events():
    system = chain()
    strict = dataclasses.replace(system.subscribers[0], lifetime=Exponential(mean_s=0.3))
    system = dataclasses.replace(system, subscribers=(strict,))
    found = explain(system, outcome()).subscribers["s"].deadlines
    assert found == (Deadline(lifetime_s=0.3, share=1.0, random=True),)


def test_who_wants_what_nobody_publishes_has_nothing_to_explain():
    system = chain()
    lonely = dataclasses.replace(system.subscribers[0], wants=as_filter({"topic": "z"}))
    found = explain(dataclasses.replace(system, subscribers=(lonely,)), outcome())
    assert found.subscribers["s"].parts == ()
    assert found.late_through == {}


def test_the_parts_add_up_to_the_mean_delay(report):
    """In the sample, delays are sums of exactly these parts, so the means must agree."""
    predicted = report.outcomes["predicted"]
    found = explain(report.system, predicted).subscribers
    for row in predicted.subscribers.itertuples():
        total = sum(part.mean_s for part in found[row.subscriber].parts)
        standard_error = 0.8 / 20_000**0.5  # sums of exponentials: no path spreads by more
        assert total == pytest.approx(row.delay_mean_s, abs=5 * standard_error)
