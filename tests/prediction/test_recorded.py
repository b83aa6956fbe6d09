"""What a record leaves open of a prediction: its parts differ, and so may another time."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tidings import predict
from tidings.model.reading import loads
from tidings.prediction.recorded import PROMISE
from tidings.simulation.network import compile_system
from tidings.simulation.schedules import Replay
from tidings.simulation.stretches import RecordStretch, equal_parts, events_in, play

LENGTH_S, SERVICE_S, LIFETIME_S = 8000.0, 0.1, 0.4


def times_ns(rates_per_s, seed):
    """Poisson times whose rate is another in every eighth of the record."""
    rng = np.random.default_rng(seed)
    edges = np.linspace(0.0, LENGTH_S, len(rates_per_s) + 1)
    parts = [
        rng.uniform(low, high, rng.poisson(rate * (high - low)))
        for low, high, rate in zip(edges[:-1], edges[1:], rates_per_s, strict=True)
    ]
    return (np.sort(np.concatenate(parts)) * 1e9).astype(np.int64)


def system(folder, rates_per_s, seed=1, block="500s"):
    file = folder / f"times-{seed}.parquet"
    pd.DataFrame({"published_ns": times_ns(rates_per_s, seed)}).to_parquet(file)
    how = f"{{recorded: {file}, length: {LENGTH_S + 100.0}s, block: {block}}}"
    return loads(
        f"tidings: 1\nlifetime: {LIFETIME_S}s\n"
        f"brokers: {{hub: {{service: {{exponential: {SERVICE_S}s}}}}}}\n"
        f"publishers: {{p: {{at: hub, content: {{event: {{k: 1}}}}, publishes: {how}}}}}\n"
        "subscribers: {s: {at: hub, wants: {}}}\n"
    )


def in_time(rate_per_s):
    """Share of an M/M/1 queue's events that are through in time."""
    return 1.0 - np.exp(-(1.0 / SERVICE_S - rate_per_s) * LIFETIME_S)


@pytest.mark.statistical
def test_a_steady_record_is_known_as_well_as_its_length_allows(tmp_path):
    row = predict(system(tmp_path, [4.0] * 8), seconds=3.0).subscribers.iloc[0]
    assert abs(row["on_time"] - in_time(4.0)) < 4.5 * row["on_time_se"]
    assert row["on_time_se"] < PROMISE / 1.96 / 2.0


@pytest.mark.statistical
def test_parts_that_differ_make_an_answer_unsure_by_as_much_and_say_so(tmp_path):
    rates = [2.0, 6.0] * 4
    answer = predict(system(tmp_path, rates), seconds=3.0)
    row = answer.subscribers.iloc[0]
    # A ratio of sums over parts; how faster and slower times would be comes on top of it.
    weights = np.array(rates) / np.mean(rates)
    shares = in_time(np.array(rates))
    between = (weights * (shares - np.average(shares, weights=weights))).std(ddof=1)
    assert row["on_time_se"] > between
    said = [each for each in answer.remarks if each.kind == "record"]
    assert [each.where for each in said] == [("s",)]
    assert PROMISE < said[0].size <= 1.96 * row["on_time_se"]


def test_a_record_that_is_looped_leaves_nothing_open(tmp_path):
    looped = system(tmp_path, [2.0, 6.0] * 4, block="500s, replay: loop")
    answer = predict(looped, seconds=1.0)
    assert not [each for each in answer.remarks if each.kind == "record"]


def test_parts_are_of_whole_cycles():
    assert equal_parts(Replay(length_s=80.0, block_s=1.0, cycle_s=0.0))[-1] == RecordStretch(
        begin=0.875, end=1.0
    )
    days = equal_parts(Replay(length_s=15.5, block_s=1.0, cycle_s=1.0))
    assert [round(15.5 * (each.end - each.begin), 9) for each in days] == [2.0] * 7
    assert equal_parts(Replay(length_s=0.5, block_s=0.1, cycle_s=1.0)) == []


def test_a_stretch_has_the_events_of_its_part_of_the_record_alone(tmp_path):
    compiled = compile_system(system(tmp_path, [1.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 5.0]))
    record_s = LENGTH_S + 100.0
    edges = np.linspace(0.0, record_s, 9)
    at_s = times_ns([1.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 5.0], 1) / 1e9
    expected = np.histogram(at_s - at_s[0], edges)[0]
    parts = equal_parts(compiled.records[0])
    assert events_in(compiled, parts).tolist() == expected.tolist()
    third = play(compiled, parts[2], length_s=record_s, most_s=np.inf, seed=1)
    assert third.wanted.tolist() == [expected[2]]
    fast = play(compiled, RecordStretch(speed=4.0), length_s=record_s, most_s=np.inf, seed=1)
    assert fast.wanted.tolist() == [expected.sum()]
    assert fast.on_time[0] / fast.wanted[0] < third.on_time[0] / third.wanted[0]
    cut = play(compiled, parts[2], length_s=record_s, most_s=100.0, seed=1)
    since_s = at_s - at_s[0] - edges[2]
    assert cut.wanted.tolist() == [((since_s >= 0.0) & (since_s <= 100.0)).sum()]
