"""Consumer groups as they are written: short and long forms, and what is wrong with them."""

import pytest

from tidings.errors import InvalidSystemError
from tidings.model import reading

SYSTEM = """
tidings: 1
brokers: {{b: {{}}}}
publishers: {{p: {{at: b, every: 1s, content: {{event: {{x: 1}}}}}}}}
subscribers: {{w: {{at: b, wants: {{}}{fields}}}}}
"""


def group(fields):
    return reading.loads(SYSTEM.format(fields=f", {fields}")).subscribers[0].consumers


def test_a_number_is_short_for_members_that_are_alike():
    assert group("processing: 1ms, consumers: 3") == group("processing: 1ms, consumers: {count: 3}")
    names = [member.name for member in group("processing: 1ms, consumers: 3").each()]
    assert names == ["1", "2", "3"]


def test_members_by_name_are_told_apart():
    members = group("consumers: {members: {a: {processing: 1ms, count: 2}, b: {processing: 2ms}}}")
    assert [member.name for member in members.each()] == ["a 1", "a 2", "b"]


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ("consumers: 2", "'processing'"),
        ("consumers: {members: {a: {processing: 1ms}, b: {}}}", "'processing'"),
        ("processing: 1ms, consumers: 0", "1 or more"),
        ("processing: 1ms, consumers: true", "a mapping"),
        ("processing: 1ms, consumers: 2.5", "got 2.5; wants how many members (a whole number"),
        ("processing: 1ms, consumers: '4'", "did you mean 4?"),
        ("processing: 1ms, consumers: {members: {}}", "at least one member"),
        (
            "processing: 1ms, consumers: {members: {a: {count: 2}, 'a 1': {}}}",
            "got two members 'a 1'",
        ),
        (
            "processing: 1ms, consumers: {members: {a: {processing: 2ms}}}",
            "each of the 'members' has its own",
        ),
        ("processing: 1ms, consumers: {count: 2, members: {a: {}}}", "either 'count'"),
        ("processing: 1ms, consumers: {deliveries: 3}", "'ack_wait'"),
        ("processing: 1ms, consumers: {when_full: drop old}", "'buffer'"),
        ("processing: 1ms, consumers: {when_full: block}", "'buffer'"),
        ("processing: 1ms, consumers: {prefetch: 2, fetch: {size: 3}}", "either 'prefetch'"),
        ("processing: 1ms, consumers: {fetch: {size: 0}}", "1 or more"),
        ("processing: 1ms, consumers: {choose: first}", "round robin"),
        ("processing: 1ms, consumers: {prefetch: 9, refill: 5}", "'choose: longest waiting'"),
        ("processing: 1ms, consumers: {choose: longest waiting, refill: 2}", "at most 'prefetch'"),
        ("processing: 1ms, consumers: {choose: longest waiting, prefetch: 0}", "1 or more"),
        ("processing: 1ms, consumers: {partitions: {count: 2, shares: [1]}}", "each of the 2"),
        ("processing: 1ms, consumers: {partitions: {count: 2, shares: [0.5, 0.4]}}", "add up to 1"),
        ("processing: 1ms, consumers: {partitions: {count: 1, owners: [c]}}", "one of the members"),
        (
            "processing: 1ms, consumers: {choose: random, partitions: {count: 3}}",
            "either 'choose' or 'partitions'",
        ),
        (
            "processing: 1ms, consumers: {partitions: {count: 3, rebalance: 2s}}",
            "members with a 'failure'",
        ),
        ("processing: 1ms, consumers: {fetch: {size: 1, linger: 2ms}}", "a 'size' above 1"),
        (
            "processing: 1ms, consumers: {fetch: {size: 3}, choose: longest waiting}",
            "'prefetch' instead of 'fetch'",
        ),
        ("processing: 1ms, consumers: {ack_wait: 1s, backoff: [1s, 2s]}", "replaces it"),
        (
            "processing: 1ms, consumers: {backoff: [1s, 2s, 3s], deliveries: 2}",
            "at most as many times as 'deliveries', 2",
        ),
        ("processing: 1ms, consumers: {qos: 0, deliveries: 3}", "with 0 nothing is acknowledged"),
        ("processing: 1ms, consumers: {qos: 0, in_flight: 3}", "with 0 nothing is acknowledged"),
        ("processing: 1ms, consumers: {qos: 0, backoff: [1s]}", "with 0 nothing is acknowledged"),
        ("processing: 1ms, consumers: {qos: 0, prefetch: 3}", "0 (no limit)"),
        ("processing: 1ms, stays: 1h, consumers: 2", "without 'stays'"),
        (
            "processing: 1ms, connectivity: {on: 1s, off: 1s}, consumers: 2",
            "without 'connectivity'",
        ),
    ],
)
def test_what_cannot_be_is_said(fields, want):
    assert want in refusal(fields)


def refusal(fields):
    with pytest.raises(InvalidSystemError) as refused:
        group(fields)
    return str(refused.value)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("choose: sticky", "partitions: {count: 8}"),
        ("choose: Key_Shared", "partitions: {count: 8}"),
        ("choose: round-robin", "'round robin'"),
        ("choose: leastBusy", "'least busy'"),
        ("choose: shortest-queue", "'least busy'"),
        ("buffer: 5, when_full: drop-head", "'drop old'"),
        ("qos: exactly once", "that is 2"),
        ("in_flight: -1", "leave it out"),
        ("ack_wait: 1s, deliveries: unlimited", "leave it out"),
        ("prefetch: unlimited", "write 0"),
        ("prefetch_count: 10", "'prefetch'"),
        ("ack_wait: 1s, max_deliver: 4", "'deliveries'"),
        ("MaxAckPending: 100", "'in_flight'"),
        ("x-max-length: 100", "'buffer'"),
        ("fetch: {size: 9, max_wait: 1s}", "'linger'"),
    ],
)
def test_what_brokers_call_it_leads_to_what_is_written_here(written, meant):
    assert meant in refusal(f"processing: 1ms, consumers: {{{written}}}").splitlines()[1]


def test_a_problem_of_qos_0_is_told_once():
    assert refusal("processing: 1ms, consumers: {qos: 0, deliveries: 3}").count("wants") == 1


@pytest.mark.parametrize(
    ("fields", "prefetch"),
    [
        ("qos: 0", 0),  # pushed: nobody tells the broker what a member holds
        ("qos: 0, fetch: {size: 9}", 1),
        ("qos: 0, choose: longest waiting, prefetch: 5", 5),
        ("qos: 0, partitions: {count: 2}, prefetch: 5", 5),
        ("qos: 1", 1),
    ],
)
def test_at_most_once_a_broker_that_pushes_knows_no_limit(fields, prefetch):
    assert group(f"processing: 1ms, consumers: {{{fields}}}").prefetch == prefetch


@pytest.mark.parametrize(
    "fields",
    [
        "count: 4, prefetch: 500, in_flight: 100",  # two limits: the smaller is felt
        "count: 4, fetch: {size: 500, linger: 1s}, in_flight: 100",
        "count: 4, prefetch: 0, choose: random, buffer: 9",  # felt when all members are stopped
        "count: 4, choose: least busy",
        "count: 1, choose: random",
        "count: 8, partitions: {count: 4}, buffer: 9, in_flight: 7, prefetch: 3, ack_wait: 1s",
        "members: {a: {count: 2, failure: {mtbf: 1h, mttr: 1s}}}, "
        "partitions: {count: 4, rebalance: 3s}",
        "backoff: [1s, 2s], deliveries: 2",
    ],
)
def test_settings_that_hold_together_are_read_and_written(fields):
    text = SYSTEM.format(fields=f", processing: 1ms, consumers: {{{fields}}}")
    system = reading.loads(text)
    assert reading.loads(reading.dumps(system)) == system
