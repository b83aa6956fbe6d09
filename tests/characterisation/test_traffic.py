"""Kinds of traffic are told apart, from counts alone, and described by name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from naive_traffic import interval_rows, samples
from tidings.characterisation.fit import traffic as kinds
from tidings.characterisation.fit.blocks import block_batches
from tidings.characterisation.fit.bursts import fit_bursts
from tidings.characterisation.fit.days import Day
from tidings.characterisation.fit.dispersion import SCALES_S, batches_of, curve_of
from tidings.characterisation.fit.together import find_together, together_notes
from tidings.characterisation.fit.traffic import find_traffic
from tidings.characterisation.fit.traffic_notes import doubts, traffic_notes
from tidings.model.publishing import Burst, Publishing
from tidings.model.system import Publisher
from tidings.simulation.schedules import publishing_times
from tidings.traces.window import TraceWindow

MIDNIGHT_S = 1_700_006_400  # a Wednesday
HOUR_S, DAY_S = 3600.0, 86_400.0


def poisson(rng, rate, length_s):
    return np.sort(rng.uniform(0.0, length_s, rng.poisson(rate * length_s)))


def told(times_s, length_s):
    """What is found of publishers with these times, in seconds since midnight."""
    begin_ns = MIDNIGHT_S * 10**9
    window = TraceWindow(from_ns=begin_ns, until_ns=begin_ns + int(length_s * 1e9))
    inside = {
        name: begin_ns + (each[(each >= 0) & (each < length_s)] * 1e9).astype(np.int64)
        for name, each in times_s.items()
    }
    rows = interval_rows(inside, window.from_ns, window.until_ns)
    return find_traffic(rows, samples(inside), window)


@pytest.fixture(params=range(3))
def rng(request):
    return np.random.default_rng(request.param)


def test_sensors_in_phase_share_a_clock(rng):
    length_s = 2 * HOUR_S
    sensors = {
        f"s{n}": np.arange(1.0, length_s, 10.0) + 0.1 * n + rng.normal(0.0, 0.02, 720)
        for n in range(5)
    }
    alone = {"alone": np.arange(3.0, length_s, 7.3)}
    found = told(sensors | alone, length_s)
    assert {found[name].kind for name in sensors} == {kinds.IN_PHASE}
    assert found["alone"].kind == kinds.RENEWAL
    clocked = [found[f"s{n}"].publishes for n in range(5)]
    assert len({each.clock for each in clocked}) == 1
    middles = [each.offset_s + each.jitter.mean_s for each in clocked]
    # 64 moments each, of a standard deviation of 20 ms.
    apart = (np.diff(middles) + 5.0) % 10.0 - 5.0
    assert np.abs(apart - 0.1).max() < 5.0 * math.sqrt(2.0) * 0.02 / math.sqrt(64)
    assert clocked[0].period_s == pytest.approx(10.0, rel=1e-5)
    assert found["s0"].why.startswith("5 publishers keep one beat of ")


def test_equal_periods_without_a_common_clock_are_no_phase(rng):
    """Intervals of 10 s, independent of each other: phases wander off."""
    length_s = 8 * HOUR_S
    walks = {f"s{n}": np.cumsum(rng.normal(10.0, 0.5, int(length_s / 10.0))) for n in range(3)}
    assert {each.kind for each in told(walks, length_s).values()} == {kinds.RENEWAL}


def test_a_market_that_opens_is_told_from_a_nightly_batch_and_from_noise(rng):
    days = np.arange(5)[:, None] * DAY_S
    market = days + 9 * HOUR_S + rng.exponential(1.5 * HOUR_S, (5, 8000))
    night = days + 3 * HOUR_S + rng.uniform(0.0, 1200.0, (5, 4000))
    noise = poisson(rng, 0.05, 5 * DAY_S)
    found = told(
        {
            "market": np.sort(np.append(market.ravel(), noise)),
            "night": np.sort(np.append(night.ravel(), poisson(rng, 0.005, 5 * DAY_S))),
            "noise": noise,
        },
        5 * DAY_S,
    )
    assert found["market"].kind == kinds.OPENING
    assert "from 09:00 UTC" in found["market"].why
    assert found["night"].kind == kinds.NIGHTLY
    assert "about 03:00 UTC" in found["night"].why
    assert found["noise"].kind == kinds.POISSON
    rates = found["market"].rates
    assert len(rates.per_s) == 24
    # The hour from nine: half of what comes in an hour and a half, and the noise.
    first = 8000 * -math.expm1(-1.0 / 1.5) / HOUR_S + 0.05
    assert rates.per_s[9] == pytest.approx(first, abs=5.0 * math.sqrt(first / HOUR_S / 5.0))


def test_renewal_streams_stay_what_they_were(rng):
    length_s = 2 * HOUR_S
    intervals = {
        "erlang": rng.gamma(4.0, 0.05, 40_000),
        "hyper": rng.exponential(np.where(rng.random(40_000) < 0.1, 1.5, 0.05)),
        "clock": np.full(40_000, 0.25),
    }
    found = told({name: np.cumsum(each) for name, each in intervals.items()}, length_s)
    assert {each.kind for each in found.values()} == {kinds.RENEWAL}
    assert all(each.is_renewal and each.is_kept for each in found.values())
    assert traffic_notes(found) == []


def test_batches_are_told_from_times_that_were_rounded(rng):
    length_s = 2 * HOUR_S
    found = told(
        {
            "batches": np.repeat(poisson(rng, 0.5, length_s), 5),
            "rounded": np.floor(poisson(rng, 3.0, length_s)),
        },
        length_s,
    )
    assert found["batches"].kind == kinds.BATCHED
    assert found["batches"].publishes.batch == (("5", 1.0),)
    assert found["rounded"].is_renewal
    assert found["rounded"].is_kept


def test_bursts_are_fitted_with_their_dispersion(rng):
    length_s = 4 * HOUR_S
    truth = Publishing(rate_per_s=1.0, bursts=(Burst(rate_per_s=20.0, on_s=10.0, off_s=100.0),))
    found = told({"p": _played(truth, length_s, seed=int(rng.integers(100)))}, length_s)["p"]
    assert found.kind == kinds.BURSTY
    assert not found.is_kept
    rate = truth.mean_per_s("p")
    assert found.publishes.mean_per_s("p") == pytest.approx(rate, rel=0.2)
    again = _played(found.publishes, 8 * length_s, seed=1)
    refound = told({"p": again}, 8 * length_s)["p"].curve
    for scale_s in (0.1, 1.0, 10.0):
        fitted, measured = (
            each.dispersion[np.argmin(np.abs(each.scales_s - scale_s))]
            for each in (refound, found.curve)
        )
        error = found.curve.standard_error[np.argmin(np.abs(found.curve.scales_s - scale_s))]
        assert abs(fitted - measured) < 4.5 * error + 0.1 * measured


def _played(publishing, length_s, seed):
    return publishing_times(
        Publisher(name="p", at="b", publishes=publishing, content=None), length_s, seed, 0
    )


def test_a_rate_that_never_settles_is_flagged(rng):
    length_s = 2 * HOUR_S
    found = told({"p": length_s * np.sqrt(rng.random(20_000))}, length_s)
    assert found["p"].kind == kinds.MOVING
    (doubt,) = doubts(found.values())
    assert "take predictions with care" in doubt
    assert "characterise --replay" in doubt


@pytest.mark.statistical
def test_dispersion_of_poisson_counts_is_one_at_every_length():
    scores = []
    for seed in range(40):
        times = poisson(np.random.default_rng(seed), 5.0, HOUR_S)
        curve = measured({"p": (times * 1e9).astype(np.int64)}, 0, int(HOUR_S * 1e9))
        fine = curve.scales_s <= 10.0
        scores.append(((curve.dispersion - 1.0) / curve.standard_error)[fine])
    scores = np.array(scores)
    assert (np.abs(scores.mean(axis=0)) < 4.5 / math.sqrt(40)).all()
    # Errors from 32 batches: Student's law of 31 degrees of freedom has a variance of 1.07.
    assert 0.7 < scores.std() < 1.35


def test_an_index_of_dispersion_by_hand():
    """Windows of 1 ms with 2, 0, 1 and 1 events over and over: variance 0.5 and mean 1."""
    at_ns = np.array([100, 200, 2_000_100, 3_000_100]) + np.arange(100 * 32)[:, None] * 4 * 10**6
    curve = measured({"p": at_ns.ravel()}, 0, 12_800_000_000)
    assert curve.scales_s[0] == SCALES_S[0] == 0.001
    assert curve.dispersion[0] == pytest.approx(0.5, rel=1e-12)


def test_windows_that_batches_cut_are_taken_as_they_are():
    """A thousand events a second, evenly, from a moment that no window begins with."""
    begin_ns = 10**9 // 3
    curve = measured({"p": begin_ns + np.arange(320_000) * 10**6}, begin_ns, begin_ns + 320 * 10**9)
    one_s = curve.scales_s == 1.0
    # Of a batch of ten windows, two are cut: each may hold an event more or less than its part.
    assert abs(curve.dispersion[one_s].item()) < 2.0 * 2.0 / 10.0 * 0.5


def test_nothing_above_poisson_needs_no_bursts():
    curve = measured({"p": np.arange(32_000) * 10**7}, 0, 320 * 10**9)
    assert fit_bursts(curve, 100.0) is None


def measured(times_ns, from_ns, until_ns):
    """The curve of one publisher."""
    window = TraceWindow(from_ns=from_ns, until_ns=until_ns)
    return curve_of(next(batches_of(interval_rows(times_ns, from_ns, until_ns), window)))


def test_blocks_are_as_long_as_neighbours_tell_of_each_other():
    rng = np.random.default_rng(1)
    assert block_batches(rng.poisson(100.0, 32).astype(float)) == 1
    slow = np.repeat(rng.poisson(100.0, 8).astype(float), 4)
    assert block_batches(slow) == 4
    assert block_batches(np.arange(32.0)) == 8


def test_publishers_that_burst_together_are_named(rng):
    length_s = 2 * HOUR_S
    common = _played(_bursts(10.0), length_s, seed=4)
    pick = rng.random(len(common)) < 0.5
    alone = _played(_bursts(6.0), length_s, seed=5)
    found = told({"a": common[pick], "b": common[~pick], "c": alone}, length_s)
    assert {each.kind for each in found.values()} <= {kinds.BURSTY, kinds.MOVING}
    pairs = find_together(found)
    assert list(zip(pairs["publisher"], pairs["other"], strict=True)) == [("a", "b")]
    assert pairs["correlation"].item() > 0.9
    (said,) = together_notes(pairs)
    assert said.startswith("publishers a and b publish more at the same times")


def _bursts(rate):
    return Publishing(bursts=(Burst(rate_per_s=rate, on_s=200.0, off_s=200.0),))


def test_hours_make_parts_of_the_time_expect_their_events():
    window = TraceWindow(from_ns=6 * 3600 * 10**9, until_ns=30 * 3600 * 10**9)
    day = Day(per_s=np.arange(24.0))
    halves = day.expected(window, 2)  # from 6 to 18, and from 18 to 6 of the next day
    assert halves == pytest.approx([3600.0 * sum(range(6, 18)), 3600.0 * (sum(range(18, 24)) + 15)])
