"""Delays by time of day: so many times as long in each slot, from the start of a day."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tidings.errors import InvalidSystemError
from tidings.model.reading import from_document, loads, system_document
from tidings.prediction.predict import predict
from tidings.simulation.recording import record
from tidings.simulation.run import simulate

TIMES = (0.5, 1.0, 4.0)
MEAN_S, LIFETIME_S = 0.02, 0.03
DELAY = f"delay: {{exponential: {MEAN_S}}}, delay_by_time: {{slot: 10s, times: {list(TIMES)}}}"
# By the law of each slot, all of which are as long and have as many events.
IN_TIME = np.mean([1.0 - math.exp(-LIFETIME_S / (MEAN_S * times)) for times in TIMES])


def system(link="", publisher="", subscriber="", more=""):
    return loads(
        f"""
        tidings: 1
        lifetime: {LIFETIME_S}
        brokers: {{a: {{}}, b: {{}}}}
        links: [{{between: [a, b]{link and ", "}{link}}}]
        publishers:
          p:
            at: a
            every: {{exponential: 10ms}}
            link: {{{publisher}}}
            {more}
            content: {{event: {{k: 1}}}}
        subscribers: {{s: {{at: b, wants: {{}}, link: {{{subscriber}}}}}}}
        """
    )


@pytest.mark.statistical
@pytest.mark.parametrize("place", ["link", "publisher", "subscriber"])
def test_each_slot_has_its_delays_wherever_the_channel_is(place):
    found = simulate(system(**{place: DELAY}), seed=3, replications=20, duration_s=300.0)
    row = found.subscribers.iloc[0]
    assert row["on_time_se"] < 0.002  # the law of all slots together is .05 away
    assert abs(row["on_time"] - IN_TIME) < 4.5 * row["on_time_se"]


@pytest.mark.statistical
def test_batches_and_those_who_come_and_go_are_as_slow_as_others():
    batched = system(publisher=DELAY, more="batch: {size: 1, linger: 1s}")
    row = simulate(batched, seed=3, replications=20, duration_s=300.0).subscribers.iloc[0]
    assert abs(row["on_time"] - IN_TIME) < 4.5 * row["on_time_se"]
    going = system(subscriber=DELAY)
    text = system_document(going)
    text["subscribers"]["s"]["connectivity"] = {"on": 1.0, "off": 1e-6}
    there = from_document(text)
    row = simulate(there, seed=3, replications=20, duration_s=300.0).subscribers.iloc[0]
    assert abs(row["on_time"] - IN_TIME) < 4.5 * row["on_time_se"]


@pytest.mark.statistical
def test_recorded_hops_and_probes_are_slower_in_slow_slots():
    recorded = record(system(link=DELAY), seed=4, duration_s=600.0, probes_per_s=20.0)
    probes = recorded.tables["probes"].to_pandas()
    crossed = probes[(probes["source"] == "a") & (probes["target"] == "b")]
    hops = recorded.tables["hops"].to_pandas().sort_values("arrived_ns")
    left = hops[hops["broker"] == "a"].set_index("event")["left_ns"]
    came = hops[hops["broker"] == "b"].set_index("event")["arrived_ns"]
    both = {
        "probes": (crossed["sent_ns"], crossed["received_ns"]),
        "hops": (left.reindex(came.index), came),
    }
    for name, (sent_ns, arrived_ns) in both.items():
        slot = (sent_ns - recorded.from_ns).to_numpy() // 10**10 % len(TIMES)
        delay_s = (arrived_ns - sent_ns).to_numpy() / 1e9
        for number, times in enumerate(TIMES):
            some = delay_s[slot == number]
            error = times * MEAN_S / math.sqrt(some.size)
            assert abs(some.mean() - times * MEAN_S) < 4.5 * error, name


def test_measured_are_whole_days():
    found = simulate(system(link=DELAY), replications=2, events=1_000)
    assert found.provenance["duration_s"] == 30.0
    assert found.provenance["warmup_s"] == 30.0


def test_prediction_hands_over_and_says_why():
    found = predict(system(link=DELAY), seed=1)
    row = found.subscribers.iloc[0]
    assert row["by"] == "simulation"
    assert "delays by time of day" in row["why"]
    assert abs(row["on_time"] - IN_TIME) < 2.0 * row["error"] + 0.002


@pytest.mark.parametrize("times", ["[1, 0]", "[1, -2]", "[]"])
def test_times_are_above_0(times):
    with pytest.raises(InvalidSystemError, match="delay_by_time"):
        system(link=f"delay: 1ms, delay_by_time: {{slot: 1h, times: {times}}}")


def test_a_day_of_no_delay_is_a_mistake():
    with pytest.raises(InvalidSystemError, match="delay"):
        system(link="delay_by_time: {slot: 1h, times: [1, 2]}")
