"""Sizes of systems that theory has no answer for: those that cannot keep up are passed over."""

import tidings as td

BATCHES = """
tidings: 1
lifetime: 100ms
brokers: {b: {service: {exponential: 12ms}, servers: 2, discipline: processor-sharing}}
publishers: {p: {at: b, every: {rate: 200/s}, content: {event: {x: 1}}}}
subscribers: {s: {at: b, wants: {x: 1}}}
"""


def test_a_speed_that_overloads_a_broker_is_passed_over():
    """Two servers of 12 ms are offered 1.2 of what they can do."""
    answer = td.plan_capacity(td.loads(BATCHES), broker="b", target=0.9, seconds=10.0)
    assert answer.verdict == "meets"
    assert answer.choice.size > 1.2
    assert min(option.size for option in answer.options) > 1.2
