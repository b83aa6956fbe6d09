"""Spans as messaging clients and brokers really write them: who got what, and who wanted it."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from tidings.errors import InvalidInputError
from tidings.traces.quarantine import UNREADABLE
from tidings.traces.readers.lifetimes import ODD, parse_lifetimes
from tidings.traces.readers.otlp import NO_PUBLICATION, read_otlp

PRODUCER, CONSUMER, SERVER, INTERNAL = 4, 5, 2, 1


class Spans:
    """Spans written down one by one, as a collector writes them."""

    def __init__(self):
        self.lines: list[str] = []

    def add(self, service, kind, *, parent="", trace="t", name=None, links=(), **attributes):
        """One more span; gives its id. Attributes have ``__`` for dots, links ``trace/span``."""
        span_id = name or f"{trace}-{len(self.lines)}"
        span = {
            "traceId": trace,
            "spanId": span_id,
            "parentSpanId": parent,
            "kind": kind,
            "startTimeUnixNano": str(10**18 + len(self.lines)),
            "endTimeUnixNano": str(10**18 + len(self.lines) + 5),
            "links": [
                {"traceId": each.rpartition("/")[0] or trace, "spanId": each.rpartition("/")[2]}
                for each in links
            ],
            "attributes": [
                {"key": key.replace("__", "."), "value": {"stringValue": value}}
                for key, value in attributes.items()
            ],
        }
        resource = {"attributes": [{"key": "service.name", "value": {"stringValue": service}}]}
        scope = [{"spans": [span]}]
        self.lines.append(
            json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scope}]})
        )
        return span_id


def rabbit(destination, **more):
    return {"messaging__system": "rabbitmq", "messaging__destination__name": destination, **more}


def topic(destination, **more):
    return {"messaging__destination__name": destination, **more}


# By trace: the destination, and what the span says of its lifetime; then what becomes of it.
LIFETIMES = {
    "l1": ("tick.a", {}, 20_000_000_000),
    "l2": ("ticks", {}, 40_000_000_000),
    "l3": ("other", {}, None),
    "l4": ("tick.a", {"messaging__header__expiration": "1500"}, 1_500_000_000),
    "l5": ("other", {"messaging__header__Nats_TTL": "5m"}, 300_000_000_000),
    "l6": ("other", {"own__ttl": '["0.5"]'}, 30_000_000_000),
    "l7": ("other", {"own__ttl": "soon"}, ODD),
    "l8": ("other", {"messaging__header__expiration": "listed"}, 250_000_000),
}


@pytest.fixture(scope="module")
def tables(spark, few_rows, tmp_path_factory):
    spans = Spans()
    # RabbitMQ by today's conventions: a queue that is bound to one of two keys.
    for trace, key in (("r1", "eu"), ("r2", "us"), ("r3", "eu")):
        sent = spans.add("shop", PRODUCER, trace=trace, **rabbit(f"orders:{key}"))
        if trace == "r1":
            got = rabbit("orders:eu:billing")
            spans.add("biller", CONSUMER, trace=trace, parent=sent, **got)
    # By the earlier ones: the exchange, the key apart; consumers name their queue.
    for trace, key in (("o1", "eu"), ("o2", "us")):
        old = {"messaging__rabbitmq__routing_key": key}
        sent = spans.add("till", PRODUCER, trace=trace, **rabbit("sales", **old))
        if key == "eu":
            spans.add("ledger", CONSUMER, trace=trace, parent=sent, **rabbit("ledger-queue"))
    # A broker's own spans between producer and consumer, and the consumer's two steps.
    sent = spans.add("meter", PRODUCER, trace="b1", **topic("power"))
    taken = spans.add("broker", SERVER, trace="b1", parent=sent)
    routed = spans.add("broker", INTERNAL, trace="b1", parent=taken)
    spans.add("screen", CONSUMER, trace="b1", parent=routed, **topic("power"))
    spans.add("meter", PRODUCER, trace="b2", name="linked", **topic("power"))
    handed = spans.add("broker", SERVER, trace="b2", parent="linked")
    spans.add("screen", CONSUMER, trace="b2", links=[handed], **topic("power"))
    # A broker's span in a trace of its own, with a link to the producer; then one of a batch.
    for trace in ("k1", "k2", "k3"):
        spans.add("lamp", PRODUCER, trace=trace, name=f"of-{trace}", **topic("light"))
    for trace, linked in (("own1", ["k1"]), ("own2", ["k2", "k3"])):
        links = [f"{each}/of-{each}" for each in linked]
        routed = spans.add("broker", SERVER, trace=trace, links=links)
        handed = spans.add("broker", INTERNAL, trace=trace, parent=routed)
        spans.add("wall", CONSUMER, trace=trace, parent=handed, **topic("light"))
    # Two subscriptions of one service to one topic.
    sent = spans.add("feed", PRODUCER, trace="s1", **topic("news"))
    for name in ("fast", "slow"):
        own = {"messaging__destination__subscription__name": name}
        spans.add("reader", CONSUMER, trace="s1", parent=sent, **topic("news", **own))
    # A consumer whose message nobody published.
    spans.add("lost", CONSUMER, trace="x1", parent="nowhere", **topic("gone"))
    # Messages that are of use for a while.
    for trace, lifetime in LIFETIMES.items():
        spans.add("clock", PRODUCER, trace=trace, **topic(lifetime[0], **lifetime[1]))
    spans.lines[-1] = spans.lines[-1].replace(
        '{"stringValue": "listed"}', '{"arrayValue": {"values": [{"stringValue": "250"}]}}'
    )
    file = tmp_path_factory.mktemp("spans") / "spans.jsonl"
    file.write_text("\n".join(spans.lines) + "\n")
    rules = parse_lifetimes(["tick.*=20s", "tick*=40s", "@own.ttl=min"])
    reading = read_otlp(spark, [str(file)], lambda frame, _: frame.localCheckpoint(), rules)
    return {name: frame.toPandas() for name, frame in reading.tables.items()}


def wants(tables, subscriber):
    rows = tables["subscriptions"]
    return sorted(rows.loc[rows["subscriber"] == subscriber, "filter"])


def got(tables, subscriber):
    rows = tables["deliveries"]
    rows = rows[(rows["subscriber"] == subscriber) & rows[UNREADABLE].isna()]
    return sorted(event.split(":")[0] for event in rows["event"])


def test_a_queue_of_rabbitmq_wants_what_it_is_bound_to(tables):
    assert wants(tables, "billing") == ['{"key":"eu","topic":"orders"}']
    assert got(tables, "billing") == ["r1"]
    contents = sorted(tables["publications"]["content"])
    assert contents.count('{"key":"eu","topic":"orders"}') == 2
    assert contents.count('{"key":"us","topic":"orders"}') == 1


def test_lifetimes_come_from_headers_then_from_the_first_rule_that_fits(tables):
    rows = tables["publications"]
    rows = rows[rows["publisher"] == "clock"]
    told = zip(rows["event"], rows["lifetime_ns"], rows[UNREADABLE], strict=True)
    assert {
        event.split(":")[0]: wrong or (None if pd.isna(ns) else int(ns))
        for event, ns, wrong in told
    } == {trace: expected for trace, (_, _, expected) in LIFETIMES.items()}


@pytest.mark.parametrize(
    "rule", ["soon", "", "0s", "orders=", "=5s", "@ttl", "@ttl=parsec", "@=ms", "1e30s"]
)
def test_a_rule_of_lifetimes_that_is_none_is_refused(rule):
    with pytest.raises(InvalidInputError, match=r"the lifetime .* wants a time"):
        parse_lifetimes([rule])


def test_earlier_names_of_rabbitmq_are_read_with_their_key(tables):
    assert wants(tables, "ledger") == ['{"key":"eu","topic":"sales"}']
    assert got(tables, "ledger") == ["o1"]


def test_spans_of_a_broker_in_between_are_followed_up(tables):
    assert got(tables, "screen") == ["b1", "b2"]
    assert wants(tables, "screen") == ['{"topic":"power"}']


def test_the_link_of_a_span_in_between_is_followed_up_unless_it_is_a_batch(tables):
    assert got(tables, "wall") == ["k1"]
    rows = tables["deliveries"]
    assert list(rows.loc[rows["subscriber"] == "wall", UNREADABLE].dropna()) == [NO_PUBLICATION]


def test_subscriptions_of_one_service_are_kept_apart(tables):
    assert got(tables, "fast") == got(tables, "slow") == ["s1"]
    assert wants(tables, "reader") == []


def test_what_leads_nowhere_is_set_aside_and_still_wanted(tables):
    rows = tables["deliveries"]
    assert list(rows.loc[rows["subscriber"] == "lost", UNREADABLE]) == [NO_PUBLICATION]
    assert wants(tables, "lost") == ['{"topic":"gone"}']
    assert set(rows.loc[rows[UNREADABLE].notna(), "subscriber"]) == {"lost", "wall"}
