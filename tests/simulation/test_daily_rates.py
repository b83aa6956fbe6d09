"""Rates by time of day: as many events in each slot as its rate says, from the start of a day."""

from __future__ import annotations

import numpy as np
import pytest

from tidings.model.reading import loads
from tidings.simulation.recording import record
from tidings.simulation.run import simulate

PER_S = [3, 0, 12, 6, 1, 0.5]


def system(more="", others=""):
    return loads(
        f"""
        tidings: 1
        lifetime: 1s
        brokers: {{hub: {{}}}}
        publishers:
          p:
            at: hub
            rates: {{slot: 10s, per_s: {PER_S}{more}}}
            content: {{event: {{k: 1}}}}
          {others}
        subscribers: {{s: {{at: hub, wants: {{}}}}}}
        """
    )


def slots(recording):
    published = recording.tables["publications"]["published_ns"].to_numpy() - recording.from_ns
    return np.bincount(published // 10**10, minlength=6)


@pytest.mark.statistical
def test_slots_have_their_rates_day_after_day():
    found = slots(record(system(), seed=2, duration_s=60.0 * 500, probes_per_s=0.01))
    assert found.size == 6 * 500
    by_day = found.reshape(500, 6)
    expected = 10.0 * np.array(PER_S)
    error = np.sqrt(expected / 500)
    some = expected > 0
    assert (np.abs(by_day.mean(axis=0) - expected)[some] < 4.5 * error[some]).all()
    assert (by_day[:, 1] == 0).all()
    # Poisson: the variance of counts is their mean; its own error is that of 500 squares.
    spread = by_day.var(axis=0, ddof=1)[some] / expected[some]
    noise = np.sqrt((2.0 + 1.0 / expected[some]) / 500)
    assert (np.abs(spread - 1.0) < 4.5 * noise).all()


def test_measured_are_whole_days_after_a_day_of_warm_up():
    found = simulate(system(), replications=2, events=1_000)
    assert found.provenance["warmup_s"] == 60.0
    assert found.provenance["duration_s"] == 60.0 * 5  # 225 events a day are expected
    assert not found.warnings


def test_part_of_a_day_is_said_to_be_one():
    found = simulate(system(), replications=2, duration_s=90.0)
    assert found.provenance["duration_s"] == 90.0
    assert [(each.kind, each.size, each.unit) for each in found.remarks] == [
        ("part of a day", 1.5, "days")
    ]


def test_rates_that_do_not_repeat_end_with_their_day():
    once = system(more=", repeat: false")
    found = simulate(once, replications=4)
    assert found.provenance["duration_s"] == 60.0
    assert 4 * 225 - 150 < found.provenance["events_published"] < 4 * 225 + 150
    taped = slots(record(once, seed=2, duration_s=200.0, probes_per_s=0.01))
    assert taped[6:].sum() == 0
    assert taped[2] > 60


def test_a_day_begins_with_what_is_measured_however_long_the_warm_up():
    always = [record(system(), seed=2, duration_s=60.0, warmup_s=w, probes_per_s=0.01) for w in
              (0.0, 7.0, 600.0)]  # fmt: skip
    for each in always:
        assert slots(each)[1] == 0
        assert slots(each)[2] > 60


@pytest.mark.parametrize("per_s", ["[1e-4]", "[0, 1e-5, 0]"])
def test_slots_far_shorter_than_intervals_are_passed_over_at_once(per_s):
    rare = loads(
        f"""
        tidings: 1
        brokers: {{hub: {{}}}}
        publishers:
          p: {{at: hub, rates: {{slot: 1ms, per_s: {per_s}}}, content: {{event: {{k: 1}}}}}}
        subscribers: {{s: {{at: hub, wants: {{}}}}}}
        """
    )
    rate = rare.publishers[0].rate_per_s
    found = simulate(rare, replications=4, duration_s=2_500 / rate, warmup_s=0.0)
    assert abs(found.provenance["events_published"] - 10_000) < 450
