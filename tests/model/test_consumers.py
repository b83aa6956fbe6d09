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
        ("processing: 1ms, stays: 1h, consumers: 2", "without 'stays'"),
        (
            "processing: 1ms, connectivity: {on: 1s, off: 1s}, consumers: 2",
            "without 'connectivity'",
        ),
    ],
)
def test_what_cannot_be_is_said(fields, want):
    with pytest.raises(InvalidSystemError) as refused:
        group(fields)
    assert want in str(refused.value)
