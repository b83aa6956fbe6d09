"""Queues of peers that are offered too much, what is random in them, and what stays as it was."""

from __future__ import annotations

import pytest

from tidings.errors import UnstableError
from tidings.model.reading import loads
from tidings.simulation.run import replicate, simulate

SYSTEM = """
tidings: 1
HEAD
brokers: {hub: {}}
publishers:
  p:
    at: hub
    every: {rate: 9/s}
    content: {event: {k: 1}}
    link: {delay: {exponential: 1ms}, reliability: 0.5}
    PUBLISHER
subscribers:
  s: {at: hub, wants: {k: 1}, link: {reliability: 0.5}SUBSCRIBER}
  plain: {at: hub, wants: {}, link: {reliability: 0.5}}
"""
HALF = "connectivity: {on: {exponential: 1s}, off: {exponential: 1s}, service: SERVICEMORE}"


def the_system(*, publisher="", subscriber="", head=""):
    text = SYSTEM.replace("PUBLISHER", publisher).replace("HEAD", head)
    return loads(text.replace("SUBSCRIBER", f", {subscriber}" if subscriber else ""))


def half(service, more=""):
    return HALF.replace("SERVICE", service).replace("MORE", more)


@pytest.mark.parametrize(
    ("peers", "said"),
    [
        # 9 events a second, and half of the time to hand them over.
        ({"publisher": half("60ms")}, "publisher 'p' is overloaded, at 1.08 times"),
        # Half of them get lost before the home broker, and half of the rest before its own queue.
        ({"subscriber": half("120ms")}, "subscriber 's' is overloaded, at 1.08 times"),
        ({"subscriber": "processing: 480ms"}, "subscriber 's' is overloaded, at 1.08 times"),
    ],
)
def test_a_peer_that_is_offered_too_much_is_refused(peers, said):
    with pytest.raises(UnstableError, match=said):
        simulate(the_system(**peers), events=100)


@pytest.mark.parametrize(
    "peers",
    [
        {"publisher": half("54ms")},
        {"subscriber": half("108ms")},
        {"subscriber": "processing: 432ms"},
        {"publisher": half("60ms", ", buffer: 3")},
    ],
)
def test_a_peer_that_can_cope_is_not(peers):
    simulate(the_system(**peers), events=100, replications=2, warmup_s=1.0)


def test_a_queue_that_grows_without_end_is_told_by_the_limit_on_copies():
    system = the_system(subscriber=half("200ms"), head="lifetime: 1h\nexpired: at hop")
    said = r"waiting at one place; subscriber 's' is overloaded, at 1\.8"
    with pytest.raises(UnstableError, match=said):
        simulate(system, duration_s=1e5, warmup_s=0.0, replications=1, max_copies=3_000)


def test_a_subscriber_that_comes_and_goes_shifts_nobody_elses_numbers():
    options = {"seed": 4, "replication": 0, "warmup_s": 0.0, "duration_s": 50.0}
    alone = replicate(the_system(), **options)
    beside = replicate(the_system(subscriber=half("20ms") + ", processing: 1ms"), **options)
    assert alone.delivered[1] == beside.delivered[1] > 50
    assert alone.delay_sum_s[1] == beside.delay_sum_s[1]
    assert alone.delivered[0] == beside.delivered[0]  # on its link it loses the same ones
    assert alone.delay_sum_s[0] < beside.delay_sum_s[0]


def test_a_peer_that_is_never_away_for_long_is_as_if_it_were_always_there():
    options = {"seed": 4, "replication": 0, "warmup_s": 0.0, "duration_s": 50.0}
    always = replicate(the_system(), **options)
    nearly = replicate(the_system(publisher="connectivity: {on: 1s, off: 1us}"), **options)
    assert nearly.delivered.tolist() == always.delivered.tolist()
    assert nearly.delay_sum_s.sum() == pytest.approx(always.delay_sum_s.sum(), abs=1e-3)
