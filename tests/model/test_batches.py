"""Batches and back-pressure as they are written, and what is wrong with them."""

import pytest

from tidings.errors import InvalidSystemError
from tidings.model import reading
from tidings.model.batches import Batch, Fetch

SYSTEM = """
tidings: 1
brokers: {{b: {{{broker}}}}}
publishers: {{p: {{at: b, {publisher}, content: {{event: {{x: 1}}}}}}}}
subscribers: {{w: {{at: b, wants: {{}}, processing: 1ms, consumers: {consumers}}}}}
"""


def system(broker="", publisher="every: 1s", consumers="{}"):
    return reading.loads(SYSTEM.format(broker=broker, publisher=publisher, consumers=consumers))


def test_batches_and_fetches_are_read():
    of = system(
        publisher="every: 1s, batch: {size: 3, linger: 5ms}",
        consumers="{fetch: {size: 7, handled: together}}",
    )
    assert of.publishers[0].batch == Batch(size=3, linger_s=0.005)
    consumers = of.subscribers[0].consumers
    assert consumers.fetch == Fetch(size=7, linger_s=0.0, handled="together")
    assert consumers.held == 1  # at a time, as far as waiting for acknowledgements goes


def test_buffers_block_only_where_it_is_said():
    blocking = system(
        broker="service: 1ms, buffer: 2, when_full: block",
        consumers="{buffer: 2, when_full: block}",
    )
    dropping = system(broker="service: 1ms, buffer: 2", consumers="{buffer: 2}")
    assert blocking.brokers[0].blocks
    assert blocking.subscribers[0].consumers.blocks
    assert not dropping.brokers[0].blocks
    assert not dropping.subscribers[0].consumers.blocks


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"broker": "service: 1ms, when_full: block"}, "a 'buffer' that can be full"),
        ({"broker": "buffer: 2, when_full: block"}, "a 'service' law"),
        ({"publisher": "every: 1s, batch: {size: 3}"}, "linger"),
        ({"publisher": "every: 1s, batch: {size: 0, linger: 1ms}"}, "1 or more"),
        ({"publisher": "publishes: {period: 1s}, when_blocked: pause"}, "'every' beside 'pause'"),
        (
            {"publisher": "every: 1s, when_blocked: pause", "consumers": "{buffer: 2}"},
            "a 'buffer' with 'when_full: block'",
        ),
        ({"consumers": "{fetch: {size: 3, handled: twice}}"}, "one by one"),
    ],
)
def test_what_cannot_be_is_said(fields, want):
    with pytest.raises(InvalidSystemError) as refused:
        system(**fields)
    assert want in str(refused.value)
