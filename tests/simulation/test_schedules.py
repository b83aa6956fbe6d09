"""Publishing times made before a run: their rates, their times to each other, their queues."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tidings import predict, simulate
from tidings.model.reading import loads
from tidings.model.system import Publisher
from tidings.simulation.schedules import publishing_times

LONG_S = 20_000.0


def system(**publishes):
    publishers = "\n".join(
        f"  {name}: {{at: hub, content: {{event: {{k: 1}}}}, {form}}}"
        for name, form in publishes.items()
    )
    return loads(
        "tidings: 1\nlifetime: 400ms\nbrokers: {hub: {service: {exponential: 100ms}}}\n"
        f"publishers:\n{publishers}\nsubscribers: {{s: {{at: hub, wants: {{}}}}}}\n"
    )


def times(publisher: Publisher, replication=0, until_s=LONG_S, seed=1):
    return publishing_times(publisher, until_s, seed, replication)


@pytest.fixture
def recorded(tmp_path):
    """Two publishers over 800 s: one Poisson, one that follows it by 10 ms."""
    first = np.sort(np.random.default_rng(5).integers(0, 800 * 10**9, 1600))
    rows = pd.concat(
        pd.DataFrame({"publisher": name, "published_ns": first + late})
        for name, late in (("a", 0), ("b", 10_000_000))
    )
    rows.to_parquet(tmp_path / "times.parquet")
    return tmp_path / "times.parquet"


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("form", "dispersion"),
    [
        ("{every: {exponential: 1s}, batch: {1: 0.5, 5: 0.5}}", 13.0 / 3.0),  # E[n²]/E[n]
        # 1 + 2·rate²·p(1 − p)·τ/mean, τ = 1/(1/on + 1/off)
        ("{rate: 1/s, bursts: [{rate: 8/s, on: 1s, off: 3s}]}", 1 + 2 * 64 * 0.1875 * 0.75 / 3),
        ("{period: 500ms, jitter: {uniform: [0s, 100ms]}}", 0.0),
    ],
)
def test_counts_have_the_mean_and_the_dispersion_of_their_form(form, dispersion):
    publisher = system(p=f"publishes: {form}").publishers[0]
    window_s, rate = 50.0, publisher.rate_per_s
    runs = [np.histogram(times(publisher, n), np.arange(0, LONG_S, window_s))[0] for n in range(20)]
    counts = np.concatenate(runs)
    expected = rate * window_s
    error = np.sqrt(max(dispersion, 0.01) * expected / counts.size)
    assert abs(counts.mean() - expected) < 4.5 * error
    found = counts.var(ddof=1) / expected
    noise = dispersion * np.sqrt(2.0 / counts.size)
    # Windows of so many correlation times miss a few percent of what longer ones have.
    assert abs(found - dispersion) < 4.5 * noise + 0.03 * dispersion + 1.0 / expected


def test_a_schedule_is_the_same_for_a_seed_and_another_for_the_next(recorded):
    publisher = system(a=f"publishes: {{recorded: {recorded}}}").publishers[0]
    assert np.array_equal(times(publisher), times(publisher))
    assert not np.array_equal(times(publisher), times(publisher, replication=1))
    assert not np.array_equal(times(publisher), times(publisher, seed=2))


@pytest.mark.parametrize("how", ["resample", "loop", "resample, block: 7s, cycle: 50s"])
def test_who_shares_a_record_keeps_its_times_to_the_others(recorded, how):
    both = system(
        a=f"publishes: {{recorded: {recorded}, length: 801s, replay: {how}}}",
        b=f"publishes: {{recorded: {recorded}, length: 801s, replay: {how}}}",
    ).publishers
    first, second = (times(each) for each in both)
    gaps = second - first[np.clip(np.searchsorted(first, second - 0.00999), 1, None) - 1]
    # All but those at the seams of blocks.
    assert np.mean(np.abs(gaps - 0.01) < 1e-6) > 0.9


def test_a_loop_is_the_record_turned(recorded):
    publisher = system(a=f"publishes: {{recorded: {recorded}, length: 801s, replay: loop}}")
    found = times(publisher.publishers[0], until_s=801.0)
    known = pd.read_parquet(recorded).query("publisher == 'a'")["published_ns"].to_numpy() / 1e9
    known = np.append(known, known[0] + 801.0)
    gaps = np.sort(np.diff(np.append(found, found[0] + 801.0)))
    assert len(found) == 1600
    assert np.allclose(gaps, np.sort(np.diff(known)), atol=1e-6)


def test_blocks_keep_the_moment_of_the_cycle(tmp_path):
    """Events in the first tenth of every hour only, for four days."""
    hours = np.arange(96)[:, None] * 3600.0 + np.linspace(0.0, 359.0, 40)
    file = tmp_path / "times.parquet"
    pd.DataFrame({"published_ns": (hours.ravel() * 1e9).astype(np.int64)}).to_parquet(file)
    form = f"publishes: {{recorded: {file}, length: 96h, block: 70min, cycle: 1h}}"
    found = times(system(p=form).publishers[0], until_s=48 * 3600.0 - 1.0)
    assert len(found) == 48 * 40
    assert (found % 3600.0).max() < 360.0


def test_one_clock_has_one_beat():
    publishers = system(
        a="publishes: {period: 10s, clock: beat}",
        b="publishes: {period: 10s, offset: 2s, clock: beat}",
        c="publishes: {period: 5s, clock: beat}",
        d="publishes: {period: 10s}",
    ).publishers
    a, b, c, d = (times(each)[5] for each in publishers)
    assert (b - a) % 10.0 == pytest.approx(2.0, abs=1e-6)
    assert min((c - a) % 5.0, (a - c) % 5.0) == pytest.approx(0.0, abs=1e-6)
    assert min((d - a) % 10.0, (a - d) % 10.0) > 1e-3


@pytest.mark.statistical
def test_a_poisson_record_is_served_like_poisson_events(recorded):
    """M/M/1 at load 0.2: P[delay ≤ t] = 1 − exp(−(μ − λ)t); the record says how sure that is."""
    known = system(a=f"publishes: {{recorded: {recorded}, length: 800s}}")
    row = predict(known, by="simulation", seconds=3.0).subscribers.iloc[0]
    exact = 1.0 - np.exp(-8.0 * 0.4)
    assert row["by"] == "simulation"
    assert 0.002 < row["on_time_se"] < 0.02
    assert abs(row["on_time"] - exact) < 4.5 * row["on_time_se"]


@pytest.mark.statistical
def test_a_batch_waits_for_itself():
    """Batches of two to an idle server: the second has two exponential services to go."""
    known = system(p="publishes: {every: 100s, batch: {2: 1}}")
    found = simulate(known, replications=10, events=20_000).subscribers.iloc[0]
    one, two = 1.0 - np.exp(-4.0), 1.0 - 5.0 * np.exp(-4.0)
    assert abs(found["on_time"] - (one + two) / 2) < 4.5 * found["on_time_se"]


def test_theory_hands_what_it_does_not_know_to_the_simulator():
    found = predict(system(p="publishes: {period: 1s, clock: beat}"), within=0.02)
    row = found.subscribers.iloc[0]
    assert (row["by"], row["why"]) == (
        "simulation", "theory does not handle publishers with clocks"
    )  # fmt: skip
