"""Who publishes what, where what is published is heard late."""

from __future__ import annotations

import numpy as np
import pytest

from tidings.running.capturing import _unseen
from tidings.running.heard import Heard, Moment, Reading, attribute_heard

RATES = {"a": 40.0, "b": 25.0, "c": 15.0}
PUBLISHERS = {"a": "x", "b": "y", "c": "z"}  # x is at east with the listener, others at west
HOMES = {"x at east": ("x", "east"), "y at west": ("y", "west"), "z at west": ("z", "west")}


def played(seed, *, late_s, counted, ahead_s=0.0):
    """Twenty readings, half a second apart; west is read .2 s after east, and its clock ahead."""
    chance = np.random.default_rng(seed)
    published = sorted(
        (float(at), subject)
        for subject, rate in RATES.items()
        for at in np.cumsum(chance.exponential(1 / rate, size=int(rate * 10)))
    )
    moments = np.array([at for at, _ in published])
    heard = Heard()
    for _, subject in published:
        heard.add(subject, 90)
    stalls = late_s * np.floor(moments / late_s + 1) if late_s else moments
    heard.moments_s = list(np.maximum.accumulate(np.maximum(moments, stalls)))
    readings = []
    for number in range(20):
        read_s = {"east": number * 0.5, "west": number * 0.5 + 0.2}
        reading = Reading(moments={"east": Moment(read_s["east"], read_s["east"], 0.001)})
        reading.moments["west"] = Moment(read_s["west"] + ahead_s, read_s["west"], 0.001)
        for sender, (name, server) in HOMES.items():
            sent = sum(at < read_s[server] and PUBLISHERS[s] == name for at, s in published)
            reading.sent[sender] = (float(sent), 90.0 * sent)
        if counted:
            reading.passed = [
                (Moment(at, at, 0.001), int(np.sum(moments < at))) for at in read_s.values()
            ]
        readings.append(reading)
    return heard, readings


def share_right(heard, readings):
    found = attribute_heard(heard, readings, HOMES)
    shares = [
        dict(found.of(subject)).get(next(h for h in HOMES if HOMES[h][0] == name), 0.0)
        for subject, name in PUBLISHERS.items()
    ]
    return min(shares), found.unsure


@pytest.mark.parametrize("seed", range(5))
def test_what_is_heard_late_belongs_to_when_it_was_passed_on(seed):
    right, unsure = share_right(*played(seed, late_s=0.7, counted=True, ahead_s=3600.0))
    assert right > 0.99
    assert unsure == ()


def test_a_listener_that_keeps_up_needs_no_counts():
    right, unsure = share_right(*played(1, late_s=0.0, counted=False, ahead_s=-5.0))
    assert right > 0.99
    assert unsure == ()


def test_without_counts_what_is_heard_late_is_unsure():
    unsure = [share_right(*played(seed, late_s=1.7, counted=False))[1] for seed in range(5)]
    assert all(unsure)


def test_too_few_readings_tell_nothing_for_sure():
    heard, readings = played(1, late_s=0.0, counted=True)
    assert set(attribute_heard(heard, readings[:2], HOMES).unsure) == set(RATES)


def test_bursts_and_large_messages_are_told_from_even_small_ones():
    chance = np.random.default_rng(3)
    even, bursts = Heard(), Heard()
    for _ in range(300):
        even.add("a", 90)
        bursts.add("a", 5000)
    even.moments_s = list(np.cumsum(chance.exponential(0.03, 300)))
    bursts.moments_s = list(np.repeat(np.arange(10) * 1.0, 30))
    for heard in (even, bursts):
        heard.add("$JS.API.x", 10**6)
    assert _unseen(even) == []
    assert [
        word for word in ("bursts", "5.0 kB") if any(word in note for note in _unseen(bursts))
    ] == ["bursts", "5.0 kB"]
