"""What causes cost where theory has no answer: against closed forms, and planted ones by name."""

from __future__ import annotations

import math

import pytest

import tidings as td
from tidings.model.causes import Cause, total_costs
from tidings.prediction.simulated_causes import Playing, simulated_causes

SYSTEM = """
tidings: 1
lifetime: 100ms
brokers: {{entry: {{service: 1ms}}, hub: {{service: {{exponential: 8ms}}{broker}}}}}
links: [{{between: [entry, hub], delay: 1ms{link}}}]
networks: {networks}
publishers:
  p: {{at: entry, size: 1kB, every: {{exponential: {every}}}, content: {{event: {{}}}}{publisher}}}
subscribers: {{s: {{at: hub, wants: {{}}{subscriber}}}, near: {{at: entry, wants: {{}}}}}}
"""
CALM = dict.fromkeys(("broker", "link", "publisher", "subscriber"), "") | {
    "networks": "{}",
    "every": "20ms",
}
PLANTED = {
    "waiting at hub": {"broker": ", servers: 2", "every": "4.3ms"},
    "the full queue of hub": {"broker": ", buffer: 1"},
    "travelling entry → hub": {"link": ", bandwidth: 55kB/s"},
    "the shared network lan": {"link": ", network: lan", "networks": "{lan: {bandwidth: 55kB/s}}"},
    "batches of p": {"publisher": ", batch: {size: 20, linger: 150ms}"},
    "the queue of s": {
        "subscriber": ", processing: {exponential: 18ms}",
        "broker": ", discipline: processor-sharing",
    },
    "the slow member b of s": {
        "subscriber": ", consumers: {members: {a: {processing: 5ms}, b: {processing: 120ms}}}",
    },
    "a hot partition of s": {
        "subscriber": ", processing: {exponential: 20ms}, "
        "consumers: {count: 4, partitions: {count: 4, shares: [0.7, 0.1, 0.1, 0.1]}}",
    },
    "redeliveries of s": {
        "subscriber": ", processing: 25ms, consumers: {count: 3, prefetch: 2, ack_wait: 30ms, "
        "deliveries: 2}",
        "every": "18ms",
    },
    "loss on entry → hub": {"link": ", reliability: 0.9, bandwidth: 1MB/s"},
}


def system_with(**words):
    return td.loads(SYSTEM.format(**CALM | words))


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_cause_is_named_first(planted):
    rows = simulated_causes(system_with(**PLANTED[planted]), Playing(seed=1))
    first = rows[rows["subscriber"] == "s"].iloc[0]
    assert Cause(first["cause"], first["place"]).words == planted
    assert rows.empty or set(rows["cost"] > 0.0) == {True}


def test_a_full_queue_costs_what_it_turns_away():
    """M/M/1/K: with load a, (1 − a) a^K / (1 − a^(K + 1)) are turned away; few of the rest late."""
    load, room = 8.0 / 20.0, 2
    turned_away = (1.0 - load) * load**room / (1.0 - load ** (room + 1))
    rows = simulated_causes(system_with(broker=", buffer: 1"), Playing(seed=3))
    cost = rows[(rows["subscriber"] == "s") & (rows["cause"] == "overflow")]["cost"].iloc[0]
    events = 20_000
    noise = math.sqrt(turned_away * (1.0 - turned_away) / events)
    late = math.exp(-0.099 / 0.008)  # of one service; two in a row are as unlikely
    # Events that are turned away come in clusters: their share is known half as well.
    assert cost == pytest.approx(turned_away, abs=4.0 * 2.0 * noise + 20.0 * late)


def test_a_prediction_names_the_cause_and_what_to_do():
    system = system_with(**PLANTED["waiting at hub"])
    outcome = td.predict(system, seconds=1.0)
    (cause, _), *_ = total_costs(outcome)
    assert cause == Cause("waiting", "hub")
    assert td.predict(system, seconds=1.0, causes=False).causes.empty
